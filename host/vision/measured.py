"""What the frames of a stream took, and which stage bounded them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from boards.errors import StateError
from host.vision.frame import Span


@dataclass(frozen=True)
class Measured:
    """What the frames of a stream took. All seconds are wall time on this machine.

    busy: mean seconds of a frame in each stage; for a stage of n workers, divided by n, since n frames are in it, and
    what frames take together is shared. first: frames of the first batch.
    """

    frames: int
    seconds: float
    busy: dict[str, float]
    latency: float
    label: str = ""
    first: int = 1

    @property
    def throughput(self) -> float:
        """Frames a second in the steady state: from the first frame's end, or its batch's, to the last's; 0 of one."""
        return (self.frames - self.first) / self.seconds if self.frames > self.first and self.seconds else 0.0

    @property
    def bound_by(self) -> str:
        """The stage that the others wait for."""
        return max(self.busy, key=lambda name: self.busy[name])

    @property
    def overlap(self) -> float:
        """Throughput over what the slowest stage alone would give; 1 where all else hides behind it."""
        return self.throughput * self.busy[self.bound_by]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in self.busy.items())
        return (
            f"{self.frames} frames, {self.throughput:.1f} frames/s, latency {1e3 * self.latency:.1f} ms; "
            f"ms a frame: {parts}; bound by {self.bound_by} ({self.overlap:.0%} of it alone)"
            + (f"; {self.label}" if self.label else "")
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{1e3 * seconds:.2f}</td><td>{1 / seconds if seconds else 0:.1f}</td>"
            f"<td>{'← bounds the frame rate' if name == self.bound_by else ''}</td></tr>"
            for name, seconds in self.busy.items()
        )
        return (
            f"<p><b>{self.throughput:.1f} frames/s</b>, latency {1e3 * self.latency:.1f} ms, {self.frames} frames. "
            f"{escape(self.label)}</p><table><tr><th>stage</th><th>ms a frame</th><th>frames/s alone</th><th></th></tr>"
            f"{rows}</table>"
        )


def measure(spans: Sequence[tuple[Span, ...]], workers: dict[str, int], label: str = "") -> Measured:
    """spans: of each frame in order. workers: of each stage that has more than one."""
    if not spans:
        raise StateError("the stream", "has no frame to measure yet", remedy="take all its frames first")
    # Frames of a batch have a span in common.
    busy = {
        stage.stage: sum(span.seconds for span in {frame[i] for frame in spans})
        / len(spans)
        / workers.get(stage.stage, 1)
        for i, stage in enumerate(spans[0])
    }
    latency = sum(frame[-1].end - frame[0].begin for frame in spans) / len(spans)
    first = sum(not set(spans[0]).isdisjoint(frame) for frame in spans)
    return Measured(len(spans), spans[-1][-1].end - spans[first - 1][-1].end, busy, latency, label, first)
