"""Cycles by their cause, for a grid of candidates, and a layer's DDR bytes by kind."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from scheduler.systolic.model.arrays import Numbers


@dataclass(frozen=True, eq=False)
class Cycles:
    """The cycles of a pass, layer or frame by their cause. The causes do not overlap, so their sum is the total.

    Attributes:
        fill: Cycles until the first rows of a pass are on chip.
        compute: Cycles in which the array computes, positions × steps.
        rows: Cycles in which the array waits for the loop that loads rows.
        weights: Cycles in which the array waits for the loop that loads weights.
        saver: Cycles in which the array waits for the Saver.
        ddr: Cycles in which the array waits for words that arrive later than these loops need them.
        drain: Cycles from the array's last step of a pass to the end of the pass.
        program: Cycles in which the engine only fetches the control words of passes.
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
        """The sum of the cycles over all causes."""
        return np.asarray(sum(getattr(self, f.name) for f in fields(self)), np.int64)

    def __add__(self, part: Cycles) -> Cycles:
        return Cycles(*(getattr(self, name) + getattr(part, name) for name in PARTS))

    def times(self, count: Numbers) -> Cycles:
        """Return the cycles of ``count`` equal passes or frames, by cause."""
        return Cycles(*(getattr(self, name) * count for name in PARTS))

    def bound_by(self, ddr_cycles: int) -> str:
        """Return the name of the cause that limits one layer's speed: the largest part of its cycles, or "ddr".

        It is the largest part of the cycles, or "ddr" if the DDR needs still more cycles to move the layer's bytes.

        Args:
            ddr_cycles: Cycles in which the DDR moves the layer's bytes.
        """
        parts = {name: int(getattr(self, name)) for name in PARTS}
        parts["ddr"] = max(parts["ddr"], ddr_cycles)
        return max(parts, key=lambda name: (parts[name], name == "compute"))

    @property
    def overhead(self) -> Overhead:
        """The largest cause of one layer's cycles other than compute."""
        part = max((name for name in PARTS if name != "compute"), key=lambda name: int(getattr(self, name)))
        return Overhead(part, int(getattr(self, part)))


@dataclass(frozen=True)
class Overhead:
    """A cause of cycles in which the array does not compute, with its cycles in a layer."""

    part: str
    cycles: int


PARTS = tuple(f.name for f in fields(Cycles))
"""The names of the parts of ``Cycles``."""


@dataclass(frozen=True)
class Traffic:
    """The DDR bytes of one layer by kind, in one frame or in all frames of a batch."""

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
