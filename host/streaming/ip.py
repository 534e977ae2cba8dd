"""The streaming pipeline's registers. Importing this needs pynq."""

from __future__ import annotations

from host.board.ip import AP_START, AUTO_RESTART, CTRL, GeneratedIP


class StreamingIP(GeneratedIP):
    """The streaming pipeline: started once, it takes frames for ever."""

    bindto = ["systolic:cnn:streaming_top:1.0"]  # noqa: RUF012 (pynq reads a list)
    scalars = ("frames",)

    @property
    def may_write(self) -> bool:
        """It never ends, but what it gives the DMA writes, and only while a frame is awaited."""
        return False

    def run(self, frames: int) -> None:
        """From here on; after each ``frames`` it starts itself again."""
        self.put(self.offset("frames"), frames)
        self.write(CTRL, AP_START | AUTO_RESTART)
