"""What surrounds the array as numbers: one array, or a grid of them, priced by the same formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.systolic.array import Array

Numbers: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True, eq=False)
class Knobs:
    """The numbers of arrays of one M × N × L. The four arrays broadcast together, [knobs, 1] in the search."""

    rows: int
    columns: int
    lanes: int
    word_bytes: int
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
    def weight_bytes(self) -> Numbers:
        """What one weight port gives a cycle."""
        return np.asarray(self.word_bytes * self.weight_words, np.int64)


def knobs_of(array: Array) -> Knobs:
    def one(value: int) -> Numbers:
        return np.array(value, np.int64)

    return Knobs(
        array.rows,
        array.columns,
        array.lanes,
        array.word_bytes,
        one(array.save_rows),
        one(array.chunk),
        one(array.map_ports),
        one(array.weight_ports),
        one(array.weight_words),
    )
