"""What a layer costs, by what it is spent on: cycles of a grid, bytes of a layer."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from scheduler.systolic.model.arrays import Numbers


@dataclass(frozen=True, eq=False)
class Cycles:
    """Cycles by what they are spent on; they add up.

    fill: until the first rows of a pass are on chip. compute: positions × steps. rows, weights, saver: what the array
    waits for the loop that loads rows, for the one that loads weights, and for the Saver. ddr: for words that come
    later than these loops want them. drain: after the last position of a pass. program: fetching the passes.
    """

    fill: Numbers
    compute: Numbers
    rows: Numbers
    weights: Numbers
    saver: Numbers
    ddr: Numbers
    drain: Numbers
    program: Numbers

    @property
    def total(self) -> Numbers:
        """Numbers of the whole layer."""
        return np.asarray(sum(getattr(self, f.name) for f in fields(self)), np.int64)

    def __add__(self, part: Cycles) -> Cycles:
        return Cycles(*(getattr(self, name) + getattr(part, name) for name in PARTS))

    def times(self, count: Numbers) -> Cycles:
        return Cycles(*(getattr(self, name) * count for name in PARTS))

    def bound_by(self, moving: int) -> str:
        """Name what takes longest of one layer: a part of its cycles, or "ddr", which moves its bytes in ``moving``
        cycles meanwhile."""
        parts = {name: int(getattr(self, name)) for name in PARTS}
        parts["ddr"] = max(parts["ddr"], moving)
        return max(parts, key=lambda name: (parts[name], name == "compute"))

    @property
    def overhead(self) -> Overhead:
        """The part of one layer's cycles that is the largest but for compute."""
        part = max((name for name in PARTS if name != "compute"), key=lambda name: int(getattr(self, name)))
        return Overhead(part, int(getattr(self, part)))


@dataclass(frozen=True)
class Overhead:
    """A part of a layer's cycles in which the array does not compute."""

    part: str
    cycles: int


PARTS = tuple(f.name for f in fields(Cycles))


@dataclass(frozen=True)
class Traffic:
    """DDR bytes of one layer in one frame, or in all frames of a batch."""

    maps_read: int
    maps_written: int
    weights: int
    requantisers: int
    program: int

    @property
    def total(self) -> int:
        return sum(getattr(self, f.name) for f in fields(self))

    def __add__(self, layer: Traffic) -> Traffic:
        return Traffic(*(getattr(self, f.name) + getattr(layer, f.name) for f in fields(self)))
