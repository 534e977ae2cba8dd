"""Lookup tables, exact or piecewise linear, that compute a function of one integer.

For an input of at most 8 bits, a table has one entry per value and is exact. For 9 to 12 bits it may be of this form
too. For other inputs of up to 16 bits the table is piecewise linear, with 256 pieces:

    y = values[i] + ((slopes[i] · f + 2^(F − 1)) >> F),    x − the least x = i · 2^F + f,    F = bits of the input − 8

A piece is exact at its first and at its last input. So the table is exact at 0, where functions bend and jump, and the
table of a rising function rises. Between these inputs the error of y is at most h² / 8 · max|f″| + 1
steps of the output, for pieces of width h, with f in these steps. The first term is the distance of a chord (Burden and
Faires, Numerical Analysis, theorem 3.3), and rounding may add one step. ``worst_step`` measures the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boards.errors import ConflictError, MissingValueError, RangeError
from cnn.checks import check_array, check_numbers
from cnn.datatype import DataType
from cnn.maps import IntArray, short_repr

TABLE_BITS = 8
"""The number of high bits of an input that select a piece. A shorter input is the index of an entry."""

VALUES_BITS = 12
"""The most bits of an input whose table has one entry per value, up to 4,096 entries."""

WIDEST_BITS = 16
"""The most bits of an input of a piecewise-linear table."""

SLOPE_LIMIT = (1 << 17) - 1
"""The greatest slope. With its sign it has 18 bits, which is the width of a factor of one DSP."""


@dataclass(frozen=True, eq=False)
class Table:
    """The lookup table of a function of one integer, the same in every channel, with or without slopes between entries.

    Attributes:
        values: int64. Without slopes, the output for each integer of the input's datatype, which has at most
            VALUES_BITS. With slopes, the output for the first input of each of the 256 pieces.
        slopes: int64, the rise of each piece as in the formula above; None if every input has an entry.
    """

    values: npt.NDArray[np.int64]
    slopes: npt.NDArray[np.int64] | None = None

    __repr__ = short_repr


def fraction_bits(read: DataType) -> int:
    """Return the number of low bits of an input that give its position within a piece of a piecewise-linear table."""
    return max(0, read.bits - TABLE_BITS)


def entries(table: Table, read: DataType) -> int:
    """Return the number of entries that the table has for an input of the datatype ``read``."""
    return (read.high - read.low >> (0 if table.slopes is None else fraction_bits(read))) + 1


def table_of_values(exact: npt.NDArray[np.int64], read: DataType) -> Table:
    """Return the lookup table of a function, given its output for every input; piecewise linear above 8 bits.

    Args:
        exact: The output for every value of the type ``read``, in ascending order of the values.
        read: The datatype of the input.
    """
    places = fraction_bits(read)
    if not places:
        return Table(exact)
    pieces = exact.reshape(-1, 1 << places)
    first, rise = pieces[:, 0], pieces[:, -1] - pieces[:, 0]
    inputs = pieces.shape[1] - 1
    slopes = np.floor(rise * (1 << places) / inputs + 0.5).astype(np.int64)
    return Table(np.ascontiguousarray(first), slopes)


def looked_up(table: Table, array: IntArray, read: DataType) -> IntArray:
    """Return the table's outputs for the integers ``array`` of the datatype ``read``: int64 of the same shape."""
    distance = array.astype(np.int64) - read.low
    if table.slopes is None:
        exact: IntArray = table.values[distance]
        return exact
    places = fraction_bits(read)
    piece, inside = distance >> places, distance & ((1 << places) - 1)
    return np.asarray(table.values[piece] + ((table.slopes[piece] * inside + (1 << places - 1)) >> places))


def all_values(table: Table, read: DataType) -> IntArray:
    """Return the table's output for every value of the input datatype ``read``, in ascending order, as int64."""
    return looked_up(table, np.arange(read.low, read.high + 1), read)


def worst_step(table: Table, exact: npt.NDArray[np.int64], read: DataType) -> int:
    """Return the greatest difference of the table from the exact outputs, in steps (integers) of the output."""
    return int(np.abs(all_values(table, read) - exact).max())


def check_table(table: Table, read: DataType, output: DataType) -> None:
    """Raise an error if a lookup table breaks the arithmetic contract for its input and output datatypes.

    Args:
        table: The table.
        read: The datatype of its input.
        output: The datatype of its output.

    Raises:
        RangeError: The input has too many bits, or a number is outside its range.
        MissingValueError: The input has too many bits for a table without slopes.
        ConflictError: There are slopes although each value has an entry, or the output's datatype is BIPOLAR.
        ShapeError: An array has another shape or data type than required.
    """
    if read.bits > WIDEST_BITS:
        raise RangeError("the bits of the table's input", read.bits, high=WIDEST_BITS)
    if table.slopes is None and read.bits > VALUES_BITS:
        raise MissingValueError("the slopes of the table", f"a table with an input of {read.name} is piecewise linear")
    check_array("the table", table.values, (entries(table, read),))
    if table.slopes is not None:
        if read.bits <= TABLE_BITS:
            subjects = ("slopes of a table", f"an input of {read.name}")
            raise ConflictError(subjects, "each of its values has its own entry")
        check_array("the slopes", table.slopes, (entries(table, read),))
        check_numbers("a slope", table.slopes, -SLOPE_LIMIT, SLOPE_LIMIT)
    check_numbers(f"a value of the table, {output.name},", all_values(table, read), output.low, output.high)
    if output.step != 1:
        subjects = ("a table", f"an output of {output.name}")
        raise ConflictError(subjects, "which lacks values in between", remedy="use Thresholds")
