"""The arithmetic of networks that were quantised by training: weights and batch norms as integers.

n = 2^(weight_bits − 1) − 1, N = 2^in_bits − 1 and M = 2^output_bits − 1 (DoReFa-Net, arXiv:1606.06160). For values that
are −1 and +1, or −1, 0 and +1, the respective number is 1:

    weight = round(n · tanh(w) / max|tanh(w)|)

    a = gamma / (sqrt(var) + epsilon)
    b = beta − mean / (sqrt(var) + epsilon) · gamma

    s = weight_bits − 1 + in_bits + extra_bits
    inc = round(a · M · 2^s / (n · N))
    bias = round(b · M · 2^s)
    output = clip((acc · inc + bias + 2^(s − 1)) >> s, low, M)

The same function as thresholds: output ≥ v if a · acc / (n · N) + b ≥ (v − ½) / M. For outputs of −1 and +1 the output
is +1 if that sum is ≥ 0. The last functions of this module make requantisers without a batch norm: from thresholds or
from inc and bias that a file holds, and for additions.

Batch norms are computed in float32 and in the order above, as the exporters do, because the exporters' hardware uses
the integers of that computation. Weights are computed in float64, because tanh in float32 differs between processors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from boards.errors import InvalidValueError, RangeError, UnsupportedError
from cnn.datatype import BIPOLAR, TERNARY, DataType, TensorType
from cnn.exported.topology import Kernel, Topology, TopologyLayer
from cnn.maps import FloatArray, IntArray
from cnn.requantise import (
    MULTIPLIER_LIMIT,
    PRODUCT_BIAS_LIMIT,
    SHIFT_LIMIT,
    THRESHOLD_LIMIT,
    MultiplyShift,
    Requantiser,
    Requantising,
    Thresholds,
)

NORM = ("gamma", "beta", "mean", "var")


@dataclass(frozen=True)
class LayerTypes:
    """The datatypes of a layer's weights, input and output, from which its integer arithmetic follows.

    Attributes:
        layer: The layer, a ``Kernel``.
        weights: The datatype of its weights.
        values: The type of its input.
        out: The datatype of its output.
    """

    layer: TopologyLayer
    weights: DataType
    values: TensorType
    out: DataType

    @property
    def kernel(self) -> Kernel:
        """The description of the layer's convolution."""
        assert isinstance(self.layer.op, Kernel)
        return self.layer.op

    @property
    def sums(self) -> int:
        """The accumulator value that represents the real value 1.0."""
        return self.weights.high * round(1 / self.values.scale)


def output_type(kernel: Kernel) -> DataType:
    """Return the output datatype of a convolution that has an activation: UINT, BIPOLAR or TERNARY.

    It is UINT for the unit activation, and BIPOLAR or TERNARY for the symmetric one.
    """
    assert kernel.output_bits is not None
    if kernel.activation == "unit":
        return DataType(kernel.output_bits, False)
    return BIPOLAR if kernel.output_bits == 1 else TERNARY


def requantising(topology: Topology, step: LayerTypes, norm: Mapping[str, FloatArray]) -> Requantising:
    """Return the requantiser that computes a layer's batch norm and activation on its integer sums.

    BIPOLAR outputs always use thresholds, because the other form cannot skip 0.

    Args:
        topology: The network's topology.
        step: The types of the layer.
        norm: The batch norm's arrays, float32 [filters], by the names in NORM.
    """
    if topology.requantise_of(step.kernel) == "thresholds" or step.out == BIPOLAR:
        return thresholds(topology, step, norm)
    return multiply_shift(topology, step, norm)


def integer_weights(weights: FloatArray, bits: int, source: str) -> tuple[IntArray, DataType]:
    """Return DoReFa's integer weights round(n · tanh(w) / max|tanh(w)|) and their datatype.

    With one bit the integer is the sign, with +1 for 0. With two bits it is −1, 0 or +1.

    Raises:
        InvalidValueError: All weights are 0; the error's place is ``source``.
    """
    squeezed = np.tanh(weights.astype(np.float64))
    if bits == 1:
        return np.where(squeezed < 0, -1, 1).astype(np.int8), BIPOLAR
    greatest = np.abs(squeezed).max()
    if not greatest > 0:
        remedy = "check the file: it is damaged, or training failed"
        raise InvalidValueError("the greatest weight", float(greatest), "above 0", where=source, remedy=remedy)
    datatype = TERNARY if bits == 2 else DataType(bits, True)
    return np.rint(datatype.high * (squeezed / greatest)).astype(datatype.carrier), datatype


def kernel_weights(kernel: Kernel, values: FloatArray, source: str) -> tuple[IntArray, DataType]:
    """Return a convolution's integer weights and their datatype, from its array convN_w in the file.

    ``values`` is the array convN_w. It holds the integers themselves if ``kernel.integers`` is set; otherwise
    ``integer_weights`` computes them.

    Raises:
        InvalidValueError: The array must hold integers of the kernel's bits and does not; the place is ``source``.
    """
    if not kernel.integers:
        return integer_weights(values, kernel.weight_bits, source)
    datatype = TERNARY if kernel.weight_bits == 2 else DataType(kernel.weight_bits, True)
    wrong = values[(values != np.rint(values)) | (np.abs(values) > datatype.high)]
    if wrong.size:
        required = f"whole and within ±{datatype.high}, since the network file says 'integers'"
        what = f"a number of conv{kernel.number}_w"
        raise InvalidValueError(what, float(wrong[0]), required, where=source, remedy="export it again")
    return values.astype(datatype.carrier), datatype


def multiply_shift(topology: Topology, step: LayerTypes, norm: Mapping[str, FloatArray]) -> MultiplyShift:
    """Return a batch norm as MultiplyShift (UltraNet's inc, bias and shift); RangeError if it needs too many bits."""
    gain, offset = _gain(topology, step, norm)
    unit = float(np.ldexp(step.out.high, product_shift(topology, step)))  # an output of 1.0, at the product's scale
    with np.errstate(over="ignore"):  # ``shifted`` reports an overflow
        inc = np.rint(gain * np.float32(unit / step.sums))
        bias = np.rint(offset * np.float32(unit))
    return shifted(topology, step, inc, bias)


def product_shift(topology: Topology, step: LayerTypes) -> int:
    """Return the bits of the right shift that turns a requantiser's product into an output value."""
    return step.weights.bits - 1 + step.values.datatype.bits + topology.extra_bits_of(step.kernel)


def shifted(topology: Topology, step: LayerTypes, inc: FloatArray, bias: FloatArray) -> MultiplyShift:
    """Return the MultiplyShift with the integers ``inc`` and ``bias``, [filters] each, and the layer's shift.

    Raises:
        RangeError: A number or the shift needs too many bits.
    """
    layer, shift, extra_bits = step.layer, product_shift(topology, step), topology.extra_bits_of(step.kernel)
    for name, values, limit in (("inc", inc, MULTIPLIER_LIMIT), ("bias", bias, PRODUCT_BIAS_LIMIT)):
        wrong = values[~(np.abs(values) <= limit)]
        if wrong.size:
            what, remedy = f"{name} of {layer.name!r}", f"give it fewer extra_bits than {extra_bits}"
            raise RangeError(what, float(wrong[0]), -limit, limit, where=layer.source, remedy=remedy)
    if not 1 <= shift <= SHIFT_LIMIT:
        raise RangeError(f"the shift of {layer.name!r}", shift, 1, SHIFT_LIMIT, where=layer.source)
    return MultiplyShift(inc.astype(np.int64), bias.astype(np.int64), np.full(inc.size, shift, np.int64))


def thresholds(topology: Topology, step: LayerTypes, norm: Mapping[str, FloatArray]) -> Thresholds:
    """Return a batch norm and activation as thresholds: per filter the least sum that reaches each output value.

    Raises:
        InvalidValueError: The batch norm gives a number that is not finite.
    """
    gain, offset = _gain(topology, step, norm)
    out = step.out
    above = np.arange(out.low + out.step, out.high + 1, out.step, dtype=np.float64)
    edges = above - 1 if out == BIPOLAR else (above - 0.5) / out.high
    needed = (edges - offset[:, None].astype(np.float64)) * step.sums
    size = np.abs(gain, dtype=np.float64)[:, None]
    # A gain of 0 makes the output constant: every sum reaches the threshold, or no sum does.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        sums = np.where(size > 0, np.ceil(needed / size), np.where(needed <= 0, -np.inf, np.inf))
    return Thresholds(np.clip(sums, -THRESHOLD_LIMIT, THRESHOLD_LIMIT).astype(np.int64), gain < 0)


def _gain(topology: Topology, step: LayerTypes, norm: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return a and b of a batch norm y = a · x + b, [filters] each; InvalidValueError if one is not finite."""
    deviation = _deviation(topology, norm["var"], step.layer)
    with np.errstate(over="ignore", invalid="ignore"):
        gain = norm["gamma"] / deviation
        offset = norm["beta"] - norm["mean"] / deviation * norm["gamma"]
    for values in (gain, offset):
        wrong = values[~np.isfinite(values)]
        if wrong.size:
            what = f"a number that the batch norm of {step.layer.name!r} gives"
            remedy = "check the file: it is damaged, or training diverged"
            raise InvalidValueError(what, float(wrong[0]), "finite", where=step.layer.source, remedy=remedy)
    return gain, offset


def _deviation(topology: Topology, variance: FloatArray, layer: TopologyLayer) -> FloatArray:
    """Return the divisor of a batch norm (root of variance and epsilon), [filters]; RangeError if it is not above 0."""
    if variance.min() < 0:
        raise RangeError("a variance", float(variance.min()), low=0, where=layer.source)
    epsilon, root = np.float32(topology.epsilon), topology.epsilon_of == "root"
    deviation = np.sqrt(variance) + epsilon if root else np.sqrt(variance + epsilon)
    if not deviation.min() > 0:
        what = "the divisor of a batch norm, from variance and epsilon,"
        raise RangeError(what, float(deviation.min()), low=0, exclusive=True, where=layer.source)
    return np.asarray(deviation, np.float32)


def float_variance(topology: Topology, variance: FloatArray) -> FloatArray:
    """Return the variance [filters] that gives the same batch norm with an epsilon of 0."""
    exact = variance.astype(np.float64)
    root = topology.epsilon_of == "root"
    return np.asarray((np.sqrt(exact) + topology.epsilon) ** 2 if root else exact + topology.epsilon, np.float32)


GIVEN = "given_thresholds"
"""The value of "requantise" in a topology whose file holds the thresholds as arrays."""

GIVEN_MULTIPLIERS = "given_multiply_shift"
"""The value of "requantise" in a topology whose file holds inc and bias as arrays."""

MULTIPLIER_BITS = 15


def given_thresholds(step: LayerTypes, rows: FloatArray) -> Thresholds:
    """Return the requantiser for thresholds that the file holds as an array, [filters, levels].

    Args:
        step: The types of the layer.
        rows: float32 [filters, levels]. A row rises if the filter's output rises with the sum, and falls if it falls.
            Number v of a row is the least sum, or the greatest if it falls, that gives the v-th value above the least.

    Raises:
        InvalidValueError: A row both rises and falls.
    """
    steps = np.diff(rows, axis=1)
    sinks = np.any(steps < 0, axis=1)
    mixed = np.flatnonzero(sinks & np.any(steps > 0, axis=1))
    if mixed.size:
        what = f"the thresholds of filter {mixed[0]} of {step.layer.name!r}"
        raise InvalidValueError(what, rows[mixed[0]].tolist(), "rising or falling", where=step.layer.source)
    sums = np.ceil(np.where(sinks[:, None], -rows, rows).astype(np.float64))
    return Thresholds(np.clip(sums, -THRESHOLD_LIMIT, THRESHOLD_LIMIT).astype(np.int64), sinks)


def norm_of_thresholds(step: LayerTypes, rows: FloatArray) -> dict[str, FloatArray]:
    """Return a batch norm for the float network, a line through each filter's first and last threshold."""
    out = step.out
    edges = (np.arange(out.levels) + 0.5) * out.step + out.low
    width = (rows[:, -1] - rows[:, 0]).astype(np.float64)
    slope = np.divide(edges[-1] - edges[0], width, out=np.ones_like(width), where=width != 0)
    offset = edges[0] - slope * rows[:, 0]
    plain = np.zeros(len(rows), np.float32)
    gamma, beta = (np.asarray(values / out.high, np.float32) for values in (slope * step.sums, offset))
    return {"gamma": gamma, "beta": beta, "mean": plain, "var": plain + 1}


def given_multipliers(topology: Topology, step: LayerTypes, inc: FloatArray, bias: FloatArray) -> MultiplyShift:
    """Return the requantiser for inc and bias that the file holds as arrays, [filters] each.

    Raises:
        InvalidValueError: A number is not whole.
        RangeError: A number needs too many bits.
        UnsupportedError: The outputs are −1 and +1, which only thresholds can give.
    """
    if step.out == BIPOLAR:
        subject, remedy = f"{GIVEN_MULTIPLIERS!r} for −1 and +1", f"say 'requantise': {GIVEN!r}"
        raise UnsupportedError(subject, "only thresholds give them", where=step.layer.source, remedy=remedy)
    for name, values in (("inc", inc), ("bias", bias)):
        wrong = values[values != np.rint(values)]
        if wrong.size:
            what = f"a number of conv{step.kernel.number}_{name}"
            required = f"whole, since the network file says {GIVEN_MULTIPLIERS!r}"
            raise InvalidValueError(what, float(wrong[0]), required, where=step.layer.source, remedy="export it again")
    return shifted(topology, step, inc, bias)


def norm_of_multipliers(
    topology: Topology, step: LayerTypes, inc: FloatArray, bias: FloatArray
) -> dict[str, FloatArray]:
    """Return the batch norm, with an epsilon of 0, that computes the same as a file's ``inc`` and ``bias`` in float."""
    unit = float(np.ldexp(step.out.high, product_shift(topology, step)))
    plain = np.zeros(len(inc), np.float32)
    gamma, beta = (np.asarray(values, np.float32) for values in (inc * (step.sums / unit), bias / unit))
    return {"gamma": gamma, "beta": beta, "mean": plain, "var": plain + 1}


def requantised_sum(scale: float, out: DataType, channels: int) -> Requantiser:
    """Return a requantiser for which a sum of the real value 1.0 becomes the greatest integer of ``out``.

    The multiplier has 15 bits. scale: the real value of a sum of 1.
    """
    ratio = scale * out.high
    shift = MULTIPLIER_BITS - ceil(log2(ratio))
    full = (np.full(channels, value, np.int64) for value in (0, round(ratio * 2**shift), 0, shift))
    return Requantiser(*full)
