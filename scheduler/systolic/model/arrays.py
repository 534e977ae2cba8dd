"""Arrays as numbers: one array, or a grid of them, priced by the same formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.systolic.array import Array

Numbers: TypeAlias = "npt.NDArray[np.int64]"

PERIPHERALS = ("save_rows", "chunk", "map_ports", "weight_ports", "weight_words")
"""Numbers of what surrounds the PEs: arrays of one M × N × L differ in them, beside the depths of their buffers."""


@dataclass(frozen=True, eq=False)
class ArrayGrid:
    """Arrays of one M × N × L. The five arrays of numbers, PERIPHERALS, broadcast together; [arrays, 1] in the
    search."""

    rows: int
    columns: int
    lanes: int
    word_bytes: int
    added_maps: int
    save_rows: Numbers
    chunk: Numbers
    map_ports: Numbers
    weight_ports: Numbers
    weight_words: Numbers

    @property
    def port_beats(self) -> Numbers:
        """Cycles in which the weight ports give one step."""
        return np.asarray(self.columns // (self.weight_ports * self.weight_words), np.int64)

    @property
    def port_bytes(self) -> Numbers:
        """What one weight port gives a cycle."""
        return np.asarray(self.word_bytes * self.weight_words, np.int64)


def array_grid(array: Array) -> ArrayGrid:
    """One array, its numbers of no dimension."""
    numbers = (np.array(getattr(array, name), np.int64) for name in PERIPHERALS)
    return ArrayGrid(array.rows, array.columns, array.lanes, array.word_bytes, array.added_maps, *numbers)


def array_column(arrays: Sequence[Array]) -> ArrayGrid:
    """Arrays of one M × N × L as a column, [arrays, 1]."""
    columns = (np.array([[getattr(array, name)] for array in arrays], np.int64) for name in PERIPHERALS)
    first = arrays[0]
    return ArrayGrid(first.rows, first.columns, first.lanes, first.word_bytes, first.added_maps, *columns)
