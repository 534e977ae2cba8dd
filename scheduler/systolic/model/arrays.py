"""Arrays as numbers: one array, or a grid of them, priced by the same formulas; and the tilings that they are priced
under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    search. weight_depth: of the weight buffer, 0 where it is not chosen yet. array: one of them, for what all of them
    have."""

    rows: int
    columns: int
    lanes: int
    word_bytes: int
    added_maps: int
    table_slopes: int
    save_rows: Numbers
    chunk: Numbers
    map_ports: Numbers
    weight_ports: Numbers
    weight_words: Numbers
    weight_depth: int
    array: Array

    @property
    def port_beats(self) -> Numbers:
        """Cycles in which the weight ports give one step."""
        return np.asarray(self.columns // (self.weight_ports * self.weight_words), np.int64)

    @property
    def port_bytes(self) -> Numbers:
        """What one weight port gives a cycle."""
        return np.asarray(self.word_bytes * self.weight_words, np.int64)


@dataclass(frozen=True, eq=False)
class PassTilings:
    """One pass of a layer under each of its tilings, [tilings].

    width: columns of the column tile. words: of a row of its input, read in so many ``bursts``. next_steps: of the
    weight tile that is loaded for the pass after. The flags are 0 or 1.
    """

    width: Numbers
    words: Numbers
    bursts: Numbers
    next_steps: Numbers
    resident: Numbers
    inputs_resident: Numbers
    overlap: Numbers

    def pick(self, chosen: npt.NDArray[np.bool_]) -> PassTilings:
        """Those of the chosen tilings."""
        return PassTilings(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def array_grid(array: Array) -> ArrayGrid:
    """One array, its numbers of no dimension."""
    return _grid(array, {name: np.array(getattr(array, name), np.int64) for name in PERIPHERALS}, array.weight_depth)


def array_column(arrays: Sequence[Array]) -> ArrayGrid:
    """Arrays of one M × N × L as a column, [arrays, 1], before depths are chosen."""
    columns = {name: np.array([[getattr(array, name)] for array in arrays], np.int64) for name in PERIPHERALS}
    return _grid(arrays[0], columns, 0)


def _grid(array: Array, numbers: Mapping[str, Numbers], weight_depth: int) -> ArrayGrid:
    return ArrayGrid(
        array.rows,
        array.columns,
        array.lanes,
        array.word_bytes,
        array.added_maps,
        array.table_slopes,
        **numbers,
        weight_depth=weight_depth,
        array=array,
    )
