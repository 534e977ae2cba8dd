"""The C++ constants of a block: its weights and the parameters of its activation.

All arrays have the shape [PE][…]. PE p computes channel n · PE + p in fold n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cnn.datatype import DataType, magnitude
from cnn.maps import IntArray
from cnn.ops.softmax import POWER_BITS
from cnn.requantise import HALVES, MultiplyShift, Requantiser, Requantising, Thresholds
from cnn.tables import Table, fraction_bits
from hls_schedule.ports import COPIES
from hls_templates.streaming.sources import Constant
from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming.area.activations import slope_bits

Integers = npt.NDArray[np.integer]

NEVER = (1 << 31) - 1
"""The greatest 32-bit integer, as a threshold that is never reached."""


def value_type(datatype: DataType) -> str:
    """Return the C++ class of an activation value in datatype.h, such as ``uint_t<4>``."""
    if datatype.few:
        return {"BIPOLAR": "bipolar_t", "TERNARY": "narrow_t<2>"}[datatype.few]
    return f"{'int' if datatype.signed else 'uint'}_t<{datatype.bits}>"


def weight_type(datatype: DataType) -> str:
    """Return the C++ class of a weight, such as ``narrow_t<4>``, which holds −7…7."""
    return value_type(datatype) if datatype.few else f"narrow_t<{datatype.bits}>"


def sum_bits(weights: IntArray, values: DataType) -> int:
    """Return the bits of a signed accumulator that holds every partial sum: those for Σ|w| · max|a|, and a sign.

    Args:
        weights: The weights, of shape (output channels, …).
        values: The type of the input values a.
    """
    rows = np.abs(weights.reshape(weights.shape[0], -1).astype(np.int64)).sum(axis=1)
    return max(2, (int(rows.max()) * magnitude(values)).bit_length() + 1)


def carried(weights: IntArray, datatype: DataType) -> Integers:
    """Return the weights as the C++ constants store them: BIPOLAR −1 and +1 as 0 and 1, others unchanged."""
    return (weights > 0).astype(np.int8) if datatype.few == "BIPOLAR" else weights


@dataclass(frozen=True, eq=False)
class Activation:
    """The C++ constant of a block's activation: the type of the functor in activation.h and its arrays.

    Attributes:
        type: The C++ type of the functor in activation.h.
        fields: The arrays of the functor; empty if the sums themselves are the output.
    """

    type: str
    fields: tuple[Integers, ...]

    def constant(self, name: str, reason: str) -> Constant:
        return Constant(name, self.type, self.fields, (), reason)


def lookup(table: Table, types: tuple[DataType, DataType], pe: int, pixels: int) -> Activation:
    """Return the C++ functor that looks an activation up in a table, with copies of the table for all PEs.

    The constant has enough copies of the table for all lanes. A copy can serve only COPIES lanes, because Vitis HLS
    replicates a memory no more often.

    Args:
        table: The table.
        types: The types of the table's input and of its output.
        pe: The PEs of the block.
        pixels: The pixels per word. Each PE looks up one value per pixel.
    """
    source, out = types
    copies = ceil_div(pe, max(1, COPIES // pixels))
    if table.slopes is None:
        return _table(table, (out.bits, out.signed), source.low, copies)
    pieces = f"{source.low}, {fraction_bits(source)}, {slope_bits(table.slopes)}, {copies}"
    fields = np.tile(table.values, (copies, 1)), np.tile(table.slopes, (copies, 1))
    return Activation(f"pieces_t<{out.bits}, {'true' if out.signed else 'false'}, {pieces}>", fields)


def powers(table: Table, low: int, pe: int) -> Activation:
    """Return the C++ functor of a softmax's table of powers of e.

    Args:
        table: The table.
        low: The input value of the table's first entry.
        pe: The PEs of the block.
    """
    return _table(table, (POWER_BITS, False), low, ceil_div(pe, COPIES))


def _table(table: Table, out: tuple[int, bool], low: int, copies: int) -> Activation:
    """Return the C++ functor of a table with one entry per input value, without interpolation.

    Args:
        table: The table.
        out: The bits of an entry, and whether it is signed.
        low: The input value of the first entry.
        copies: The number of copies of the table.
    """
    bits, signed = out
    parameters = f"{bits}, {'true' if signed else 'false'}, {low}, {table.values.size}, {copies}"
    return Activation(f"table_t<{parameters}>", (np.tile(table.values, (copies, 1)),))


def activation(requantising: Requantising | None, out: DataType, pe: int, channels: int) -> Activation:
    """Return the C++ functor that requantises a block's sums to output values.

    Args:
        requantising: The parameters of each channel; None if the sums themselves are the output.
        out: The type of an output value.
        pe: The PEs of the block.
        channels: The output channels, including added channels. Parameters of added channels are filled in.
    """
    if requantising is None:
        return Activation(f"identity_t<{out.bits}>", ())
    signed = "true" if out.signed and out.few != "BIPOLAR" else "false"
    nf = channels // pe
    shape = f"{out.bits}, {signed}"
    narrow = "true" if out.few == "TERNARY" else "false"  # two bits would also hold −2, which TERNARY does not have
    halves = 0 if isinstance(requantising, Thresholds) else HALVES.index(requantising.halves)
    further = f", {narrow}, {halves}" if halves else ", true" * (out.few == "TERNARY")
    saturated = f"{shape}, {pe}, {nf}{further}"

    def fold(values: Integers, padding: int) -> Integers:
        padded = np.full((channels, *values.shape[1:]), padding, np.int64)
        padded[: len(values)] = values
        folded: Integers = padded.reshape(nf, pe, *values.shape[1:]).swapaxes(0, 1)
        return folded

    fields: tuple[Integers, ...]
    if isinstance(requantising, Requantiser):
        fields = (
            fold(requantising.bias, 0),
            fold(requantising.multiplier, 1),
            fold(requantising.negative, 0),
            fold(requantising.shift, 1),
        )
        return Activation(f"requantise_t<{saturated}>", fields)
    if isinstance(requantising, MultiplyShift):
        fields = fold(requantising.multiplier, 0), fold(requantising.bias, 0), fold(requantising.shift, 1)
        return Activation(f"multiply_shift_t<{saturated}>", fields)
    assert isinstance(requantising, Thresholds)
    low = 0 if out.few == "BIPOLAR" else out.low
    thresholds = fold(np.clip(requantising.thresholds, -NEVER - 1, NEVER), NEVER)
    bits = max(int(np.abs(thresholds).max()).bit_length() + 1, 2)
    fields = thresholds, fold(requantising.flip.astype(np.int64), 0)
    return Activation(f"thresholds_t<{shape}, {low}, {out.levels}, {bits}, {pe}, {nf}>", fields)
