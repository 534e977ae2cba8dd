"""The time that a start of the simulated board takes: the design's own time, slowed by a factor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from boards.errors import DamagedFileError, InvalidValueError, MismatchError, cut
from host.contract.codec import read_json
from host.contract.parts import Manifest

MAX_TRACE_BYTES = 64 << 20  # bytes
MAX_CYCLES = 1e12
"""Cycles of a pass must be below this number."""

_CYCLES, _REMEDY = f"at least 1 and below {MAX_CYCLES:g}", "trace the design again"

CYCLES = "cycles.json"
"""File next to the manifest, written when a design is traced: {"pass_cycles": [cycles of each pass]}."""


@dataclass(frozen=True)
class Pace:
    """The time of each pass (engine instruction, or streamed frame) on a simulated board: cycles · time_scale / clock,
    or its execution time if longer.

    Attributes:
        pass_cycles: Clock cycles of each pass (engine instruction, or streamed frame).
        clock_mhz: The design's target clock.
        time_scale: Factor by which the simulated board is slower than the design.
        source: "traced" or "modelled": the origin of the cycles. It is printed with every rate.
    """

    pass_cycles: tuple[float, ...]
    clock_mhz: float
    time_scale: float
    source: str

    def seconds(self, first: int, count: int) -> float:
        total = len(self.pass_cycles)
        cycles = sum(self.pass_cycles[index % total] for index in range(first, first + count))
        return cycles * self.time_scale / (self.clock_mhz * 1e6)


def pace(folder: Path, manifest: Manifest, time_scale: float | str | None) -> Pace | None:
    """Return the time that each start takes on a simulated board, or None without a time scale.

    The board does not wait without one. The cycles are the traced ones of cycles.json if the folder has that
    file, or else the modelled ones of the manifest.
    """
    if time_scale is None:
        return None
    scale = float(time_scale)
    traced = _traced(folder / CYCLES, manifest)
    if traced is not None:
        return Pace(traced, manifest.clock_mhz, scale, "traced")
    return Pace(manifest.pass_cycles, manifest.clock_mhz, scale, "modelled")


def _traced(path: Path, manifest: Manifest) -> tuple[float, ...] | None:
    if not path.is_file():
        return None
    try:
        cycles = tuple(float(count) for count in read_json(path, MAX_TRACE_BYTES)["pass_cycles"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise DamagedFileError(str(path), f"is not usable: {cut(error)}", remedy=_REMEDY) from error
    if len(cycles) != manifest.passes:
        raise MismatchError("the number of passes", len(cycles), manifest.passes, where=str(path), remedy=_REMEDY)
    wrong = next((count for count in cycles if not 1 <= count < MAX_CYCLES), None)
    if wrong is not None:
        raise InvalidValueError("the cycles of a pass", wrong, _CYCLES, where=str(path), remedy=_REMEDY)
    return cycles
