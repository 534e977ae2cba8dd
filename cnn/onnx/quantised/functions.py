"""Activations that read a layer's sums directly: the activation follows the layer, and the quantiser follows the
activation.

    Conv → Tanh → QuantizeLinear becomes sums → intermediate integers → table → the file's integers

The file does not determine the intermediate integers, so they are chosen here. They cover the range of the sums in
which the function's output changes, and saturate beyond it. If every sum is a whole number of one step, and not too
many sums are distinguished, each sum has an entry of the table, which is exact. Otherwise the sums are requantised to
16 bits. Their table is piecewise linear with 256 pieces, which are fitted to the sums that occur
(cnn.quantisation.table_fit). The result is then compared with the file for every sum that can occur.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError, listed
from cnn.activations import FUNCTIONS, LEAKY_SLOPE
from cnn.datatype import INT16, DataType, TensorType
from cnn.network import Network
from cnn.onnx.activations import GATES
from cnn.onnx.quantised.fitted import Reach
from cnn.onnx.quantised.mark import NO_MARK, Mark
from cnn.ops import (
    Activate,
    Add,
    AveragePool,
    Convolution,
    Dense,
    DepthToSpace,
    MaxPool,
    Multiply,
    Output,
    Pad,
    Reorg,
    Slice,
    Upsample,
)
from cnn.quantisation.table_fit import fit_table, table_points
from cnn.requantise import MultiplyShift, Requantiser, numbers_of, requantise
from cnn.tables import TABLE_BITS, VALUES_BITS, WIDEST_BITS, Table, all_values, looked_up, table_of_values

Doubles: TypeAlias = npt.NDArray[np.float64]
Longs: TypeAlias = npt.NDArray[np.int64]
R = TypeVar("R")
Function: TypeAlias = Callable[[Doubles], Longs]
"""A function from the real values of sums to the file's integers."""

MOVES = (MaxPool, Slice, Reorg, DepthToSpace, Pad, Upsample)
"""Operations that move the values of one map and change none."""

WEIGHTED, OF_MAPS = (Convolution, Dense), (Add, AveragePool, Multiply)
"""Operations that have sums: of products with weights, and of maps. Only functions may read sums of maps."""

PLACES = 1 << 14
"""Points at which functions are sampled to find where their outputs last change."""

CLOSER = 12
"""The most times that the samples are repeated, closer to the last change."""

MAX_COMPARED = 1 << 22
"""The most sums that are compared. Of more, some at equal distances are."""

SAME = 2.0**-23
"""The relative error of a float32 bias that represents a whole number of steps.

It is also the greatest difference of two channels' fractions of a step that are treated as one fraction.
"""

PIECE, TRIES = 1 << 8, 5
"""The number of 16-bit integers in a piece of a table; and the number of offsets of sums within pieces to try."""

MAX_RATIO = 1 << 14
"""The greatest ratio of a sum's step to the step of the intermediate integers."""


@dataclass(frozen=True, eq=False)
class FloatSums:
    """The real values (sum + shift) · unit of the integer sums (accumulators) that each channel can have.

    Attributes:
        unit: The real value of a sum of 1, per row.
        shift: The offset in sums, per row.
        reach: The sums that each row can reach.
        channel: The channel whose requantiser each row has.
    """

    unit: Doubles
    shift: Doubles
    reach: Reach
    channel: Longs

    @property
    def value_range(self) -> tuple[float, float]:
        """The least and the greatest real value of any channel's sums."""
        low, high = ((end + self.shift) * self.unit for end in (self.reach.low, self.reach.high))
        return float(low.min()), float(high.max())

    @property
    def common_integers(self) -> WholeSums | None:
        """The sums of all channels as integers of one scale; None if their scales and offsets do not allow it."""
        unit = float(self.unit.min())
        steps = np.rint(self.unit / unit)
        offset = self.shift * steps
        part = float(offset[0] - np.rint(offset[0]))
        apart = np.abs(offset - part - np.rint(offset - part)) > SAME * np.maximum(np.abs(offset), 1)
        if np.any(apart | (np.abs(self.unit / unit - steps) > SAME * steps)) or steps.max() > MAX_RATIO:
            return None
        low, high = (np.rint(end * steps + offset - part) for end in (self.reach.low, self.reach.high))
        return WholeSums(unit, part, int(low.min()), int(high.max()))

    def merged(self, by: Requantiser | MultiplyShift) -> FloatSums:
        """Return the sums with one row for all channels that have the same real values and requantiser parameters.

        Channels that differ by a whole number of steps are joined too, if their sums follow each other without a gap.
        The requantiser is compared as well, because a channel that always saturates may have another bias than its real
        values require.
        """
        whole_shift = np.rint(self.shift)
        numbers = {name: array[self.channel] for name, array in numbers_of(by).items()}
        moved_bias = numbers["bias"] - whole_shift * (numbers["multiplier"] if isinstance(by, MultiplyShift) else 1)
        others = [array for name, array in numbers.items() if name != "bias"]
        key = np.stack([self.unit, np.rint((self.shift - whole_shift) / SAME), moved_bias, *others])
        _, first, group = np.unique(key, axis=1, return_index=True, return_inverse=True)
        group = group.ravel()
        moved = (whole_shift - whole_shift[first][group]).astype(np.int64)
        lows, highs = self.reach.low + moved, self.reach.high + moved
        rows: list[tuple[int, int, int]] = []  # the first channel of a group, its least sum and its greatest sum
        for channel in np.lexsort((lows, group)):
            start, low, high = int(first[group[channel]]), int(lows[channel]), int(highs[channel])
            if rows and rows[-1][0] == start and low <= rows[-1][2] + 1:
                rows[-1] = start, rows[-1][1], max(high, rows[-1][2])
            else:
                rows.append((start, low, high))
        source, lowest, highest = np.array(rows, np.int64).T
        reach = Reach(lowest, highest, self.reach.greatest[source])
        return FloatSums(self.unit[source], self.shift[source], reach, self.channel[source])


@dataclass(frozen=True)
class WholeSums:
    """Sums of all channels as integers ``low`` … ``high`` of one scale: real value (integer + part) · unit."""

    unit: float
    part: float
    low: int
    high: int


@dataclass(frozen=True)
class SumTarget:
    """The integer type to which sums are requantised before an activation's lookup table reads them.

    Attributes:
        type: The type of the integers.
        left: A real value that is subtracted first, so that the rest is a whole number of steps. The tables add it.
    """

    type: TensorType
    left: float = 0.0


Requantisers: TypeAlias = Callable[[SumTarget], Requantiser | MultiplyShift]
"""A function that returns the requantiser of a layer's sums for a target."""


@dataclass(frozen=True)
class Difference:
    """The difference of an activation's lookup table from the file, over the sums that can occur.

    Attributes:
        steps: The greatest difference, in steps of the output.
        off: The number of compared sums that differ.
        compared: The number of compared sums.
    """

    steps: int
    off: int
    compared: int


@dataclass(frozen=True, eq=False)
class FunctionTables:
    """A requantiser of a layer's sums to intermediate integers, and the lookup tables that activations need for these.

    Attributes:
        type: The type of the intermediate integers.
        by: The requantiser.
        tables: The lookup table of each activation, by the index of its node.
        differences: The difference of each table from the file, by the index of the activation's node.
    """

    type: TensorType
    by: Requantiser | MultiplyShift
    tables: Mapping[int, Table]
    differences: Mapping[int, Difference]

    @property
    def cost(self) -> tuple[int, int]:
        """The greatest difference of the tables from the file, in output steps, and the number of differing sums."""
        each = self.differences.values()
        return max(one.steps for one in each), sum(one.off for one in each)


@dataclass(frozen=True, eq=False)
class Reader:
    """An activation that reads a layer's sums, with the type of its output.

    Attributes:
        function: The activation, from real values to the integers of its output.
        type: The type of its output.
    """

    function: Function
    type: TensorType


@dataclass(frozen=True)
class ReadBy:
    """The activations that read a layer's sums, and whether nothing else does.

    Attributes:
        functions: The indices of the nodes of these activations.
        alone: Whether there are no other readers, so that sums may saturate if no activation distinguishes them.
    """

    functions: tuple[int, ...]
    alone: bool


class Functions:
    """The activations of a network that become lookup tables, while its layers get their integers.

    Attributes:
        readers: The activations that read a layer's sums, by the index of its node.
        tables: The lookup tables that are known, by the index of the node.
        differences: The difference from the file of each table that may be inexact, by the index of the node.
    """

    def __init__(self, network: Network, marks: Mapping[int, Mark]) -> None:
        self.network, self.marks = network, marks
        self.readers = _read_by_functions(network, marks)
        self.differences: dict[int, Difference] = {}
        self.tables: dict[int, Table] = {}

    def at(self, index: int) -> AtNode:
        """Return the activations that read node ``index``, or that it is, as an ``AtNode``."""
        return AtNode(self, index)

    def mark(self, index: int) -> Mark:
        """Return what the file states about the node ``index``, such as its output's type."""
        return self.marks.get(index, NO_MARK)

    def notes(self) -> tuple[str, ...]:
        """Return notes for the user about lookup tables whose outputs differ from what the file's functions give."""
        nodes = self.network.nodes
        off = {nodes[i].name: each for i, each in self.differences.items() if each.off}
        if not off:
            return ()
        compared, count = (
            sum(each.compared for each in self.differences.values()),
            sum(each.off for each in off.values()),
        )
        several = f"{len(off)} of {len(self.differences)} functions ({listed(off)})"
        return (
            f"{self.network.name}: the tables of {several} differ from the file for {count:,} of {compared:,} integers "
            f"that they can read, by at most {max(each.steps for each in off.values())} step(s) of the output",
            *(
                f"{self.network.name}: {name} differs from the file by up to {each.steps} steps of its output, for "
                f"{each.off:,} of {each.compared:,} integers that it can read; quantise its input to 8 bits"
                for name, each in off.items()
                if each.steps > 1
            ),
        )

    def reader(self, index: int, activation: str = "linear") -> Reader:
        """Return the activation at node ``index``, combined with the previous layer's ``activation``."""
        op, mark = self.network.nodes[index].op, self.mark(index)
        assert isinstance(op, Activate)
        assert mark.type is not None
        return Reader(function_of(op, mark, activation), mark.type)


@dataclass(frozen=True, eq=False)
class AtNode:
    """The activations that read the sums of the node ``index``, or the lookup table of the activation that it is."""

    all: Functions
    index: int

    @property
    def read_sums(self) -> bool:
        """Return whether activations read the node's sums directly, before any quantiser."""
        return self.index in self.all.readers

    def tables_for(self, sums: FloatSums, requantiser: Requantisers) -> FunctionTables:
        """Return the requantiser of the node's sums and the lookup tables of the activations that read them."""
        readers, alone = self._readers, self.all.readers[self.index].alone
        functions = [each.function for each in readers.values()]
        ends = _distinguished_range(sums.value_range, functions) if alone else sums.value_range
        return nearest_tables(sums, readers, requantiser, ends, alone)

    @property
    def _readers(self) -> dict[int, Reader]:
        """The activations that read the node's sums, by their node's index."""
        activation = getattr(self.all.network.nodes[self.index].op, "activation", "linear")
        return {i: self.all.reader(i, activation) for i in self.all.readers[self.index].functions}

    def with_differences(self, made: FunctionTables, sums: Longs, floats: Doubles) -> FunctionTables:
        """Return the lookup tables ``made`` with their differences from the file, for these sums and real values.

        Args:
            made: The requantiser and the tables.
            sums: Sums of channel 0.
            floats: The real values that these sums have in the file.
        """
        read = made.type.datatype
        places = first_channel_outputs(made.by, sums, read)
        ones = np.ones(sums.size, np.int64)
        differences = {
            index: _difference(made.tables[index], read, places, reader.function(floats), ones)
            for index, reader in self._readers.items()
        }
        return replace(made, differences=differences)

    def store_tables(self, made: FunctionTables) -> None:
        """Store the lookup tables for the activations that read the node's sums, and the tables' differences."""
        self.all.tables.update(made.tables)
        self.all.differences.update(made.differences)

    def table(self, source: TensorType) -> Table:
        """Return the lookup table of the activation at this node, for an input of the type ``source``.

        Raises:
            RangeError: The input has more than 16 bits.
        """
        if self.index in self.all.tables:
            return self.all.tables[self.index]
        read = source.datatype
        if read.bits > WIDEST_BITS:
            remedy = f"quantise its input to {WIDEST_BITS} bits or fewer"
            raise RangeError("the bits of the table's input", read.bits, high=WIDEST_BITS, remedy=remedy)
        reader = self.all.reader(self.index)
        inputs = np.arange(read.low, read.high + 1)
        right = reader.function(np.asarray((inputs - source.zero_point) * np.float64(source.scale), np.float64))
        ones = np.ones(inputs.size, np.int64)
        table = table_of_values(right, read)
        if table.slopes is not None and not np.array_equal(all_values(table, read), right):
            table = fit_table(table_points(read, inputs, right, ones), right, reader.type.datatype)
        if table.slopes is not None:
            self.all.differences[self.index] = _difference(table, read, inputs, right, ones)
        return table


def function_of(op: Activate, mark: Mark, activation: str = "linear") -> Function:
    """Return an activation as a function from the real value of a sum to the integer of its quantised output.

    Args:
        op: The operation.
        mark: Has the type of the operation's output.
        activation: The activation of the layer before, which the function includes.
    """
    before, type_, gate = _BEFORE[activation], mark.type, mark.gate
    assert type_ is not None
    if gate is None:
        values = FUNCTIONS[op.function].values
        return lambda x: quantised_values(values(before(x), *op.parameters), type_, mark.zero_first)
    (factor,) = (FUNCTIONS[name].values for name, product in GATES.items() if product == op.function)
    own = gate

    def product(x: Doubles) -> Longs:
        cut = before(x)
        return quantised_values(
            cut * (quantised_values(factor(cut, *op.parameters), own) - own.zero_point) * own.scale,
            type_,
            mark.zero_first,
        )

    return product


_BEFORE: Mapping[str, Callable[[Doubles], Doubles]] = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "relu6": lambda x: np.clip(x, 0.0, 6.0),
    "leaky": lambda x: np.where(x < 0, LEAKY_SLOPE * x, x),
}


def quantised_values(values: Doubles, type_: TensorType, zero_first: bool = False) -> Longs:
    """Return real values quantised to the integers of a type, halves rounded to even as in ONNX.

    The quotient is a float32 number, as in a file's quantiser. zero_first: see Mark.
    """
    steps, zero = np.nan_to_num(values).astype(np.float32) / np.float32(type_.scale), type_.zero_point
    integers = np.rint(steps + np.float32(zero)) if zero_first else np.rint(steps).astype(np.float64) + zero
    return np.asarray(np.clip(integers, type_.datatype.low, type_.datatype.high), np.int64)


def _read_by_functions(network: Network, marks: Mapping[int, Mark]) -> dict[int, ReadBy]:
    readers: dict[int, list[int]] = {}
    for index, node in enumerate(network.nodes):
        for source in node.inputs:
            readers.setdefault(source, []).append(index)

    def functions_after(index: int) -> tuple[tuple[int, ...], bool]:
        """Return the activations that read the node's output, directly or moved, and whether only they read it.

        There are no functions if a reader cannot take the sums themselves.
        """
        functions: list[int] = []
        alone = True
        for reader in readers.get(index, ()):
            op = network.nodes[reader].op
            if isinstance(op, Activate) and marks.get(reader, NO_MARK).type is not None:
                functions.append(reader)
            elif isinstance(op, MOVES) and reader in readers:
                further, alone_there = functions_after(reader)
                functions += further
                alone = alone and alone_there
            elif isinstance(op, (*WEIGHTED, Output)):
                alone = False
            else:
                return (), False
        return tuple(functions), alone

    readers_of = {
        index: functions_after(index)
        for index, node in enumerate(network.nodes)
        if isinstance(node.op, (*WEIGHTED, *OF_MAPS)) and marks.get(index, NO_MARK).type is None
    }

    def may_read(index: int, alone: bool) -> bool:
        op = network.nodes[index].op
        return alone or (isinstance(op, WEIGHTED) and op.activation == "linear")

    return {index: ReadBy(*each) for index, each in readers_of.items() if each[0] and may_read(index, each[1])}


def float_sums(unit: Doubles, shift: Doubles, reach: Reach) -> FloatSums:
    """Return the real values (sum + shift) · unit of the channels' sums, with nearly whole shifts rounded."""
    whole = np.rint(shift)
    shift = np.where(np.abs(shift - whole) <= SAME * np.maximum(np.abs(whole), 1), whole, shift)
    return FloatSums(unit, shift, reach, np.arange(len(unit)))


def nearest_tables(
    sums: FloatSums, readers: Mapping[int, Reader], requantiser: Requantisers, ends: tuple[float, float], alone: bool
) -> FunctionTables:
    """Return the requantiser of a layer's sums and its activations' lookup tables that differ least from the file.

    Args:
        sums: The real values of the sums.
        readers: The functions, by node.
        requantiser: Returns the requantiser for a target.
        ends: The range of real values that the functions distinguish.
        alone: Whether only these functions read the sums.
    """
    corners = _corners(ends, [each.function for each in readers.values()])
    targets = dict.fromkeys(target for corner in corners for target in _targets(sums, ends, corner, alone))
    made = (_built(sums, readers, requantiser(target), target.type, ends) for target in targets)
    return nearest(made, lambda each: each.cost)


def nearest(readings: Iterable[R], cost: Callable[[R], tuple[float, ...]]) -> R:
    """Return the first candidate that does not differ from the file, or else the one with the least ``cost``.

    Readings after one without a difference are not computed.

    Args:
        readings: The readings, the preferred ones first.
        cost: Returns numbers that are all 0 if there is no difference.
    """
    best: R | None = None
    least: tuple[float, ...] = ()
    for reading in readings:
        found = cost(reading)
        if best is None or found < least:
            best, least = reading, found
        if not any(least):
            break
    assert best is not None
    return best


def first_channel_outputs(by: Requantiser | MultiplyShift, sums: Longs, datatype: DataType) -> Longs:
    """Return the output integers that the requantiser's first channel gives for these sums."""
    first: dict[str, Any] = {name: numbers[:1] for name, numbers in numbers_of(by).items()}
    return np.asarray(requantise(sums[None], replace(by, **first), datatype)[0], np.int64)


def _distinguished_range(ends: tuple[float, float], functions: Sequence[Function]) -> tuple[float, float]:
    """Return the range of real values outside which no activation's output changes."""
    low, high = ends
    for _ in range(CLOSER):
        x = np.linspace(low, high, PLACES)
        changed = np.zeros(PLACES - 1, np.bool_)
        for function in functions:
            changed |= np.diff(function(x)) != 0
        where = np.flatnonzero(changed)
        if not where.size:
            return low, low
        nearer = float(x[where[0]]), float(x[where[-1] + 1])
        if nearer[1] - nearer[0] > 0.9 * (high - low):
            return nearer
        low, high = nearer
    return low, high


def _jump(ends: tuple[float, float], functions: Sequence[Function]) -> float:
    """Return the real value at which an activation's output jumps most; 0 if it jumps by at most one integer."""
    low, high = ends
    for _ in range(CLOSER):
        x = np.linspace(low, high, PLACES)
        change = np.max([np.abs(np.diff(function(x))) for function in functions], axis=0)
        where = int(np.argmax(change))
        if change[where] <= 1:
            return 0.0
        low, high = float(x[where]), float(x[where + 1])
    return high


def _corners(ends: tuple[float, float], functions: Sequence[Function]) -> tuple[float, ...]:
    """Return real values at which a piece of a piecewise-linear table should begin, such as jumps; else (0.0,).

    They are a jump, and the values at which one of several functions stops changing. If there is none, 0 is returned.
    """
    jump = _jump(ends, functions)
    inner = [end for function in functions for end in _distinguished_range(ends, [function]) if ends[0] < end < ends[1]]
    near = (ends[1] - ends[0]) / PLACES
    found = [jump] if jump else []
    found += [end for end in inner if min(end - ends[0], ends[1] - end) > near and len(functions) > 1]
    return tuple(found) or (0.0,)


def _targets(sums: FloatSums, ends: tuple[float, float], jump: float, alone: bool) -> Iterator[SumTarget]:
    """Yield intermediate integer types for a layer's sums, in the order in which they are to be tried.

    Args:
        sums: The real values of the sums.
        ends: The range of real values that the functions distinguish.
        jump: The real value at which a piece should begin.
        alone: Whether only functions read the sums. A layer that reads them too needs 16 bits, or an integer per sum.
    """
    whole = sums.common_integers
    if whole is not None:
        unit, part = whole.unit, whole.part
        low = min(0, max(math.floor(ends[0] / unit - part), whole.low))
        high = max(0, min(math.ceil(ends[1] / unit - part), whole.high))
        if high - low < 1 << VALUES_BITS:
            datatype = DataType(max(TABLE_BITS, (high - low).bit_length()), True)
            yield SumTarget(TensorType(datatype, unit, datatype.low - low), part * unit)
            return
        if high - low <= INT16.levels:
            yield from (
                SumTarget(type_, part * unit) for type_ in _spread(unit, low, high, math.ceil(jump / unit - part))
            )
    least, most = min(ends[0], 0.0), max(ends[1], 0.0)
    finest = float(sums.unit.max()) / MAX_RATIO
    shared = [(DataType(VALUES_BITS, True), 1)] if alone else []
    for datatype, piece in ((INT16, PIECE), (INT16, 1), *shared):
        scale = max((most - least) / (datatype.levels - piece), finest)
        below, ahead = math.ceil(-least / scale), math.ceil(jump / scale)
        zero = datatype.low + below + -(below + ahead) % piece
        yield SumTarget(TensorType(datatype, scale, min(zero, datatype.high)))
    # If biases are rounded before they are multiplied, only a zero point of 0 keeps them exact.
    scale = max(max(most, -least) / INT16.high, finest)
    pieces = math.floor(abs(jump) / scale / PIECE)
    yield SumTarget(TensorType(INT16, abs(jump) / (PIECE * pieces - math.copysign(0.5, jump)) if pieces else scale))


def _spread(unit: float, low: int, high: int, jump: int) -> Iterator[TensorType]:
    """Yield 16-bit types that space the integer sums as far apart as possible, at several offsets within table pieces.

    The offsets are whole multiples of this distance, because a requantiser cannot have others.
    """
    apart = (INT16.levels + 1) // (high - low + 1)
    if jump and apart > 1:
        apart -= 1  # then the sums can be moved
    while INT16.high // apart + -INT16.low // apart < high - low:
        apart -= 1
    zeros = np.arange(-(-INT16.low // apart) - low, INT16.high // apart - high + 1)
    ahead = ((zeros + jump) * apart - INT16.low) % PIECE  # the position of the jump within its piece
    tried = [zeros[np.argmin(ahead)], *zeros[:: max(1, len(zeros) // TRIES)]]
    for zero in dict.fromkeys(int(each) for each in tried):
        yield TensorType(INT16, unit / apart, zero * apart)


def _built(
    sums: FloatSums,
    readers: Mapping[int, Reader],
    by: Requantiser | MultiplyShift,
    type_: TensorType,
    ends: tuple[float, float],
) -> FunctionTables:
    """Return lookup tables for the intermediate integers that the requantiser ``by`` gives, with their differences."""
    sums = sums.merged(by)
    row, integers, weights = _compared_sums(sums, type_, ends)
    x: Doubles = np.asarray((integers + sums.shift[row]) * sums.unit[row], np.float64)
    channel = sums.channel[row]
    arrays: dict[str, Any] = {name: array[channel] for name, array in numbers_of(by).items()}
    each = replace(by, **arrays)
    read = type_.datatype
    places = requantise(integers, each, read).astype(np.int64)
    own: Doubles = np.asarray((np.arange(read.low, read.high + 1) - type_.zero_point) * type_.scale, np.float64)
    tables, differences = {}, {}
    for index, reader in readers.items():
        right = reader.function(x)
        points = table_points(read, places, right, weights)
        tables[index] = fit_table(points, reader.function(own), reader.type.datatype)
        differences[index] = _difference(tables[index], read, places, right, weights)
    return FunctionTables(type_, by, tables, differences)


def _difference(table: Table, read: DataType, places: Longs, right: Longs, weights: Longs) -> Difference:
    """Return the difference of a lookup table from the right outputs at ``places``, its inputs, counted by
    ``weights``."""
    off = np.abs(looked_up(table, places, read) - right)
    return Difference(int(off.max()), int(weights[off > 0].sum()), int(weights.sum()))


def _compared_sums(sums: FloatSums, type_: TensorType, ends: tuple[float, float]) -> tuple[Longs, Longs, Longs]:
    """Return channel row, sum and weight of each sum at which a lookup table is compared with the file.

    These are the sums between the ends, some next to them, and the least and the greatest of each row. The last two
    represent all sums that saturate.
    """
    reach, room = sums.reach, 2 + 2 * type_.scale / sums.unit
    first = np.clip(np.floor(ends[0] / sums.unit - sums.shift - room), reach.low, reach.high).astype(np.int64)
    last = np.clip(np.ceil(ends[1] / sums.unit - sums.shift + room), first, reach.high).astype(np.int64)
    step = max(1, int((last - first + 1).sum()) // MAX_COMPARED)
    parts: list[Longs] = []
    weights: list[Longs] = []
    for low, begin, end, high in zip(reach.low, first, last, reach.high, strict=True):
        inner = np.arange(begin, end + 1, step)
        parts.append(np.append(inner, [low, high]))
        weights.append(np.append(np.full(inner.size, step), [begin - low, high - end]))
    row = np.repeat(np.arange(len(first)), [part.size for part in parts])
    return row, np.concatenate(parts), np.concatenate(weights)
