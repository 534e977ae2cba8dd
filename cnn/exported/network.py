"""A network that was quantised by training, as DAC-SDC teams export it: a topology (JSON) and float arrays (npz).

before   float weights, a float batch norm, and outputs clamp(0, 1) in steps of 1 / 15

after    QConvolution with integer weights; the requantiser is computed from the batch norm or given by the file

cnn.exported.integers has the formulas. The output of a convolution without output_bits is its exact sums. If only
detection heads read the sums, the host adds the bias convN_b. Otherwise the accelerator adds convN_b, rounded to the
sums' scale. See docs/reference/exported.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from boards.errors import ConflictError, RangeError, ShapeError, SystolicError, UnsupportedError
from cnn.activations import SIGN, SYMMETRIC, UNIT
from cnn.datatype import BIPOLAR, INT16, INT32, UINT8, DataType, TensorType, magnitude
from cnn.exported.contest.numbered import is_numbered, read_numbered
from cnn.exported.integers import (
    GIVEN,
    GIVEN_MULTIPLIERS,
    NORM,
    LayerTypes,
    float_variance,
    given_multipliers,
    given_thresholds,
    kernel_weights,
    norm_of_multipliers,
    norm_of_thresholds,
    output_type,
    requantised_sum,
    requantising,
)
from cnn.exported.pixels import check_reader, normalised, pixel_zero
from cnn.exported.topology import Kernel, Sum, Topology, TopologyLayer
from cnn.exported.topology_file import read_topology
from cnn.maps import FloatArray, IntArray
from cnn.network import Network, Node
from cnn.ops import (
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Convolution,
    Detection,
    Input,
    IntegerSoftmax,
    MaxPool,
    Op,
    QAdd,
    QAveragePool,
    QConvolution,
    QInput,
    QOp,
    QSoftmax,
    Reorg,
    Softmax,
    TopK,
    Upsample,
    assert_never,
    label_type,
)
from cnn.ops.softmax import SHARES, softmax_of
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.requantise import MultiplyShift, Requantising, identity
from cnn.stored.npz import array_names, read_arrays

PIXEL = TensorType(UINT8, 1 / 255)


@dataclass(frozen=True, eq=False)
class Exported:
    """A network that was quantised by training: float network and integer network, with the same node indices.

    Both forms take an RGB picture, also if training read BGR pictures.

    Attributes:
        topology: The layers as the file describes them.
        arrays: The file's arrays by name.
        network: The float form. It has the quantised weights, but rounds no activation.
        quantized: The integer form.
    """

    topology: Topology
    arrays: Mapping[str, FloatArray]
    network: Network
    quantized: QuantizedNetwork


def read_exported(topology: Path, weights: Path) -> Exported:
    """Return the float and the integer network of a topology JSON and an .npz of arrays.

    Raises the errors of ``read_topology``, ``read_arrays`` and ``make_exported``.
    """
    layers = read_topology(topology)
    shapes = array_shapes(layers)
    if is_numbered(array_names(weights)):
        return make_exported(layers, read_numbered(weights, shapes, layers.epsilon)[0])
    return make_exported(layers, read_arrays(weights, shapes, [name for name in shapes if name.endswith("_bias")]))


def array_shapes(topology: Topology) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of the arrays that the .npz of a topology must hold.

    Every layer has convN_w. A layer without an activation also has convN_b. A layer with an activation has bnN_…, and
    convN_b if a bias is added before the batch norm. Given thresholds replace these by convN_t, and given multipliers
    replace them by convN_inc and convN_bias.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for _, kernel in topology.kernels:
        shapes[f"conv{kernel.number}_w"] = kernel.weights
        if kernel.output_bits is None:
            shapes[f"conv{kernel.number}_b"] = (kernel.filters,)
        elif topology.requantise_of(kernel) == GIVEN:
            shapes[f"conv{kernel.number}_t"] = (kernel.filters, output_type(kernel).levels)
        elif topology.requantise_of(kernel) == GIVEN_MULTIPLIERS:
            shapes.update({f"conv{kernel.number}_{part}": (kernel.filters,) for part in ("inc", "bias")})
        else:
            if kernel.bias:
                shapes[f"conv{kernel.number}_b"] = (kernel.filters,)
            shapes.update({f"bn{kernel.number}_{part}": (kernel.filters,) for part in NORM})
    return shapes


def make_exported(topology: Topology, arrays: Mapping[str, FloatArray]) -> Exported:
    """Return the float and the integer network of a topology and its arrays.

    Raises an error, whose place is the layer, if the arrays do not give integers, or if these break the arithmetic
    contract (``check_quantized``).

    Args:
        topology: The layers.
        arrays: Float arrays with the names and shapes of ``array_shapes``.
    """
    picture = Node("input", Input(), (), topology.input, topology.name)
    pixel = replace(PIXEL, zero_point=pixel_zero(topology))
    floats, integers = [picture], [QNode("input", QInput(), (), topology.input, pixel, topology.name)]
    for layer in topology.layers:
        inputs = [integers[i].type for i in layer.inputs]
        source = _Source(topology, layer, arrays)
        forms = _forms(source, inputs)
        floats.append(Node(layer.name, forms.op, layer.inputs, layer.shape, layer.source))
        integers.append(QNode(layer.name, forms.integer, layer.inputs, layer.shape, forms.type, layer.source))
    network = Network(topology.name, tuple(floats), topology.labels)
    quantized = check_quantized(QuantizedNetwork(topology.name, tuple(integers), topology.labels))
    return Exported(topology, arrays, network, quantized)


@dataclass(frozen=True)
class _Source:
    """A layer of a topology, with the whole topology and the file's arrays, from which its nodes are made."""

    topology: Topology
    layer: TopologyLayer
    arrays: Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class _Forms:
    """The operation of a layer in the float and in the integer network, and the type of its integer output."""

    op: Op
    integer: QOp
    type: TensorType


def _forms(source: _Source, inputs: list[TensorType]) -> _Forms:
    """Return a layer's float and integer operations; ``inputs`` are the types of the integer maps that it reads."""
    layer, op, values = source.layer, source.layer.op, inputs[0]
    if 0 in layer.inputs and not isinstance(op, (Kernel, Sum)):
        check_reader(source.topology, layer)
    match op:
        case Sum():
            return _sum_of_maps(layer, op, inputs)
        case Kernel():
            return _convolution_forms(source, op, values)
        case AveragePool():
            return _Forms(op, QAveragePool(mean_requantiser(source.topology, layer)), values)
        case TopK() if op.labels:
            return _Forms(op, op, label_type(source.topology.shape_of(layer.inputs[0]).channels))
        case IntegerSoftmax():
            return _Forms(op, _softmax_integers(layer, op, values), SHARES)
        case Detection():
            head = replace(op, bias=_host_bias(source))
            return _Forms(head, head, values)
        case MaxPool() | Concat() | Reorg() | Upsample() | Softmax() | TopK():
            return _Forms(op, op, values)
    assert_never(op)


def _softmax_integers(layer: TopologyLayer, op: IntegerSoftmax, values: TensorType) -> QSoftmax:
    try:
        return softmax_of(op.method, values)
    except SystolicError as error:
        raise error.at(layer.source) from error


def _convolution_forms(source: _Source, kernel: Kernel, values: TensorType) -> _Forms:
    layer, number = source.layer, kernel.number
    weights, weight_type = kernel_weights(kernel, source.arrays[f"conv{number}_w"], layer.source)
    if source.topology.order == "BGR" and 0 in layer.inputs:
        weights = _rgb(weights, kernel, layer)
    form = (kernel.stride, kernel.padding, kernel.groups, values.zero_point)
    plain = QConvolution(weights, weight_type, identity(kernel.filters), *form)
    source = _without_bias(source, kernel)
    if 0 in layer.inputs:
        arrays = normalised(source.topology, layer, np.asarray(weights / weight_type.high), source.arrays)
        source = replace(source, arrays=arrays)
    if kernel.output_bits is None:
        return _sum_forms(source, kernel, plain, values)
    out = output_type(kernel)
    by, float_norm, beta = _activation(source, LayerTypes(layer, weight_type, values, out))
    activation = UNIT if kernel.activation == "unit" else SIGN if out == BIPOLAR else SYMMETRIC
    float_form = _float_form(plain, beta, float_norm, activation)
    float_form = replace(float_form, around=source.topology.mean[0] if 0 in layer.inputs else 0.0)
    return _Forms(float_form, replace(plain, requantiser=by), TensorType(out, 1 / out.high))


def _without_bias(source: _Source, kernel: Kernel) -> _Source:
    """Return the layer and arrays with the convolution's bias moved into the mean of its batch norm.

    Raises:
        ConflictError: The layer has a bias, but no batch norm that could take it.
    """
    if not kernel.bias:
        return source
    mean, bias = f"bn{kernel.number}_mean", f"conv{kernel.number}_b"
    if mean not in source.arrays:
        subjects = (f"'bias' of {source.layer.name!r}", f"'requantise': {source.topology.requantise_of(kernel)!r}")
        reason = "the bias is moved into a batch norm, and there is none"
        raise ConflictError(subjects, reason, where=source.layer.source, remedy="leave 'bias' out")
    return replace(source, arrays={**source.arrays, mean: source.arrays[mean] - source.arrays[bias]})


def _activation(source: _Source, step: LayerTypes) -> tuple[Requantising, BatchNorm, FloatArray]:
    """Return a layer's requantiser for the integer network, and its batch norm and beta for the float network."""
    number, topology = step.kernel.number, source.topology
    if topology.requantise_of(step.kernel) == GIVEN:
        rows = source.arrays[f"conv{number}_t"]
        norm = norm_of_thresholds(step, rows)
        return given_thresholds(step, rows), BatchNorm(norm["gamma"], norm["mean"], norm["var"], 0.0), norm["beta"]
    if topology.requantise_of(step.kernel) == GIVEN_MULTIPLIERS:
        inc, bias = (source.arrays[f"conv{number}_{part}"] for part in ("inc", "bias"))
        norm = norm_of_multipliers(topology, step, inc, bias)
        shifting = given_multipliers(topology, step, inc, bias)
        return shifting, BatchNorm(norm["gamma"], norm["mean"], norm["var"], 0.0), norm["beta"]
    norm = {part: source.arrays[f"bn{number}_{part}"] for part in NORM}
    by = requantising(topology, step, norm)
    return by, BatchNorm(norm["gamma"], norm["mean"], float_variance(topology, norm["var"]), 0.0), norm["beta"]


def _sum_of_maps(layer: TopologyLayer, op: Sum, inputs: list[TensorType]) -> _Forms:
    """Return an addition's float and integer operations. Without output_bits its integer output is exact."""
    values, count = inputs[0], len(inputs)
    if 0 in layer.inputs:
        reason = "it adds layers of one datatype and scale"
        raise UnsupportedError("an add that reads the picture", reason, where=layer.source)
    if len(set(inputs)) > 1:
        got = ", ".join(f"{form.datatype.name} of {form.scale:g}" for form in inputs)
        raise ShapeError("the inputs of an add", got, "one datatype and scale", where=layer.source)
    multipliers, channels = (1,) * count, layer.shape.channels
    if op.output_bits is None:
        reach = count * magnitude(values.datatype)
        if reach > INT32.high:
            raise RangeError("the greatest sum of an add", reach, high=INT32.high, where=layer.source)
        bits, signed = reach.bit_length(), values.datatype.signed
        out = DataType(bits + signed, signed) if bits + signed <= 8 else INT16 if bits <= 15 else INT32
        return _Forms(Add("linear"), QAdd(multipliers, identity(channels)), TensorType(out, values.scale))
    out = DataType(op.output_bits, False)
    by = requantised_sum(values.scale, out, channels)
    return _Forms(Add(UNIT), QAdd(multipliers, by), TensorType(out, 1 / out.high))


def _sum_forms(source: _Source, kernel: Kernel, plain: QConvolution, values: TensorType) -> _Forms:
    """Return the float and integer operations of a convolution that outputs its accumulators without requantising."""
    name, scale = f"conv{kernel.number}_b", sum_scale(kernel, values.scale, plain.weight_type.high)
    bias = source.arrays[name]
    if heads_alone_read(source.topology, source.layer):
        bias = np.zeros_like(bias)  # the host adds it, in float
    integer = np.rint(bias.astype(np.float64) / scale)
    greatest = float(np.abs(integer).max())
    if greatest >= 1 << 31:
        raise RangeError(f"{name} in sums of {scale:g}", greatest, high=INT32.high, where=source.layer.source)
    op = replace(plain, requantiser=replace(identity(kernel.filters), bias=integer.astype(np.int64)))
    out = INT16 if op.accumulator_bound(values.datatype) <= INT16.high else INT32
    floats = _float_form(plain, bias, None, "linear")
    floats = replace(floats, weights=floats.weights * np.float32(kernel.scale))
    return _Forms(floats, op, TensorType(out, scale))


def sum_scale(kernel: Kernel, values: float, greatest: int) -> float:
    """Return the real value of an accumulator value of 1 in a convolution that outputs its accumulators.

    Args:
        kernel: The convolution.
        values: The scale of its input.
        greatest: The integer weight that represents 1.0.
    """
    return values / greatest * kernel.scale


def heads_alone_read(topology: Topology, layer: TopologyLayer) -> bool:
    """Return whether only detection heads read a layer, so that the host adds its bias in float."""
    number = topology.layers.index(layer) + 1
    readers = [reader for reader in topology.layers if number in reader.inputs]
    return bool(readers) and all(isinstance(reader.op, Detection) for reader in readers)


def mean_requantiser(topology: Topology, layer: TopologyLayer) -> MultiplyShift:
    """Return the requantiser of a global average pool, which divides a channel's sum by its number of positions.

    The multiplier has 15 bits.
    """
    source = topology.shape_of(layer.inputs[0])
    positions = source.height * source.width
    shift = 14 + positions.bit_length()
    inc = round((1 << shift) / positions)
    full = (np.full(source.channels, value, np.int64) for value in (inc, 0, shift))
    return MultiplyShift(*full)


def _float_form(op: QConvolution, bias: FloatArray, norm: BatchNorm | None, activation: str) -> Convolution:
    weights = np.asarray(op.weights / op.weight_type.high, np.float32)
    return Convolution(weights, bias, norm, op.stride, op.padding, op.groups, activation)


def _host_bias(source: _Source) -> tuple[float, ...]:
    """Return the bias of the convolution before a detection head, which the host adds; () if the accelerator adds it.

    Return () if a layer that is not a head reads that convolution too, because the accelerator then adds the bias.
    """
    index = source.layer.inputs[0]
    if index == 0:
        return ()
    feeding = replace(source, layer=source.topology.layers[index - 1])
    kernel = feeding.layer.op
    if (
        not isinstance(kernel, Kernel)
        or kernel.output_bits is not None
        or not heads_alone_read(feeding.topology, feeding.layer)
    ):
        return ()
    return tuple(float(value) for value in source.arrays[f"conv{kernel.number}_b"])


def _rgb(weights: IntArray, kernel: Kernel, layer: TopologyLayer) -> IntArray:
    """Return first-layer weights for RGB images from ones trained on BGR images; the host always passes RGB."""
    if weights.shape[1] != 3 or kernel.groups != 1:
        subject = f"a picture in BGR order for {kernel.groups} groups of {weights.shape[1]} channels"
        reason = "channels are swapped for one group that reads 3 of them"
        raise UnsupportedError(subject, reason, where=layer.source)
    return np.ascontiguousarray(weights[:, ::-1])
