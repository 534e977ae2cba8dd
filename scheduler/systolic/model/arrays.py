"""One array or a grid of arrays as numpy numbers, and a layer's tilings as numpy numbers.

The same formulas price one array and a grid of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.systolic.array import Array

Numbers: TypeAlias = "npt.NDArray[np.int64]"

PERIPHERALS = ("save_rows", "chunk", "map_ports", "weight_ports", "weight_words")
"""Parameters of the logic around the PEs. Arrays of one geometry M × N × L (rows × columns × lanes) differ in these
parameters and in the depths of their buffers."""


@dataclass(frozen=True, eq=False)
class ArrayGrid:
    """The arrays of one geometry (rows × columns × lanes of PEs) as numpy numbers, so that one formula prices all of
    them.

    The five PERIPHERALS are numpy arrays that broadcast together. In the search their shape is (arrays, 1).

    Attributes:
        rows: Rows of PEs, M.
        columns: Columns of PEs, N.
        lanes: Lanes per PE, L.
        word_bytes: Bytes per word of a feature map.
        added_maps: Feature maps that the Saver can add, 0 or 1.
        table_slopes: 1 if activation tables are piecewise linear, else 0.
        save_rows: Output rows that the Saver requantises per cycle.
        chunk: Output columns per chunk, the unit that the Saver reorders and writes.
        map_ports: The number of ports that read rows. The same number of ports write results.
        weight_ports: Ports that read weights.
        weight_words: Words per cycle of each weight port.
        weight_depth: Words per memory of the weight buffer, 0 if it is not chosen yet.
        array: One of the arrays, for the parameters that all of them share.
    """

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
        """Cycles in which the weight ports together read the weights of one step, which is one cycle of the array."""
        return np.asarray(self.columns // (self.weight_ports * self.weight_words), np.int64)

    @property
    def port_bytes(self) -> Numbers:
        """Bytes per cycle that one weight port reads."""
        return np.asarray(self.word_bytes * self.weight_words, np.int64)


@dataclass(frozen=True, eq=False)
class PassTilings:
    """The numbers of one pass of a layer (the run over one column tile) under each candidate tiling, as arrays of shape
    (tilings,).

    Attributes:
        width: Output columns of the column tile, before the pool.
        words: Words of one row of the column tile's input.
        bursts: Pieces of consecutive DDR words in which these words are read.
        next_steps: Steps of the weight tile that is loaded for the next pass.
        weights_resident: 1 if the weights stay on chip, else 0.
        inputs_resident: 1 if the input rows stay on chip, else 0.
        overlap: 1 if rows are loaded while the array computes, else 0.
    """

    width: Numbers
    words: Numbers
    bursts: Numbers
    next_steps: Numbers
    weights_resident: Numbers
    inputs_resident: Numbers
    overlap: Numbers

    def pick(self, chosen: npt.NDArray[np.bool_]) -> PassTilings:
        """Return the numbers of only the candidate tilings for which ``chosen`` is True."""
        return PassTilings(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def array_grid(array: Array) -> ArrayGrid:
    """Return a single array as an ``ArrayGrid`` whose numpy numbers have no dimension."""
    return _grid(array, {name: np.array(getattr(array, name), np.int64) for name in PERIPHERALS}, array.weight_depth)


def array_column(arrays: Sequence[Array]) -> ArrayGrid:
    """Return several arrays of one geometry as an ``ArrayGrid`` of shape (arrays, 1). Its buffers have no depths
    yet."""
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
