"""Register driver of the streaming pipeline. Importing this needs pynq."""

from __future__ import annotations

from host.board.ip import AP_START, AUTO_RESTART, CTRL, GeneratedIP


class StreamingIP(GeneratedIP):
    """The pynq driver of a streaming pipeline's registers. The pipeline is started once and then takes frames without
    end."""

    bindto = ["systolic:cnn:streaming_top:1.0"]  # noqa: RUF012 (pynq reads a list)
    scalars = ("frames",)

    @property
    def may_write(self) -> bool:
        """Return False: the pipeline never ends, but only the DMA writes to DDR, and only while a frame is awaited."""
        return False

    def run(self, frames: int) -> None:
        """Start the pipeline. After every ``frames`` frames it restarts itself."""
        self.put(self.offset("frames"), frames)
        self.write(CTRL, AP_START | AUTO_RESTART)
