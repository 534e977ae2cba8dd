"""Tests of numbers in ONNX files at the last accepted value and the first refused one, and of computed constants."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from boards.errors import (
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.activations import FUNCTIONS, activate
from cnn.float_model import run_float
from cnn.limits import MAX_CHANNELS, MAX_KERNEL, MAX_WINDOW
from cnn.network import Network
from cnn.onnx.activations import _TABLES
from cnn.onnx.constants import MAX_COMPUTED_VALUES, _size
from cnn.onnx.file import array_of
from cnn.onnx.graph import OnnxOperation
from cnn.onnx.heads import MAX_HEADS, MAX_TENSORS, NamedHead, _expectation, _followed, _of_size, parse_heads
from cnn.onnx.network import network_of, read_model
from cnn.onnx.quantised.linear import ONE_SCALE
from cnn.ops import MAX_BINS, Convolution, Detection, QConvolution
from tests.support.cases import cases
from tests.support.errors import raises, raises_among, refused
from tests.support.onnx.grids import QUANTISES, Grids, reaching, read, requantised
from tests.support.onnx.networks import RANDOM, check_against_runtime, convolved, pixels
from tests.support.onnx.outputs import with_a_reader
from tests.support.onnx.trained import DOMAIN, Trained
from tests.support.onnx.writer import Writer

SIDES = (1, 3, 11, 14)


def network(graph: Callable[[Writer], str], sides: tuple[int, ...] = SIDES, opset: int = 17) -> Network:
    writer = Writer(opset)
    return network_of(writer.model([graph(writer)], sides), "net.onnx", "net")


def ones(writer: Writer, *values: int) -> str:
    return writer.constant(values, np.int64)


def after_convolution(kind: str, *constants: Any, **attributes: Any) -> Callable[[Writer], str]:
    """Return a function that writes a convolution with an output of 4×9×12 and the operator after it.

    Args:
        kind: the operator.
        constants: its other inputs. A tuple becomes int64, any other value float32.
        attributes: its attributes.
    """

    def graph(writer: Writer) -> str:
        arrays = [ones(writer, *c) if isinstance(c, tuple) else writer.constant(c) for c in constants]
        return writer.put(kind, [convolved(writer, "picture", 3, 4), *arrays], **attributes)

    return graph


def around(rows: int) -> Callable[[Writer], str]:
    """Return a function that writes zero padding around a map that no convolution reads."""

    def graph(writer: Writer) -> str:
        source = writer.put("Pad", [convolved(writer, "picture", 3, 4), ones(writer, 0, 0, rows, 0, 0, 0, 0, 0)])
        return writer.put("Relu", [source])

    return graph


def one_value(*sides: int) -> Callable[[Writer], str]:
    """Return a function that writes one value with the given sides, and an operator that reads a map."""

    def graph(writer: Writer) -> str:
        source = writer.put("GlobalAveragePool", [convolved(writer, "picture", 3, 1)])
        return writer.put("GlobalMaxPool", [writer.put("Reshape", [source, ones(writer, *sides)])])

    return graph


def unfitting(writer: Writer) -> str:
    """Write a constant of four values that is reshaped to three."""
    values = writer.put("Reshape", [writer.constant(np.arange(4)), ones(writer, 3)])
    return writer.put("Add", [convolved(writer, "picture", 3, 4), values])


def cast(**attributes: Any) -> Callable[[Writer], str]:
    """Return a function that writes an integer constant, which is cast and added."""

    def graph(writer: Writer) -> str:
        values = writer.put("Cast", [ones(writer, 2)], **attributes)
        return writer.put("Add", [convolved(writer, "picture", 3, 4), values])

    return graph


LIMITS: dict[str, tuple[Callable[[Writer], str], Callable[[Writer], str], SystolicError]] = {
    "Pad": (
        around(MAX_KERNEL - 1),
        around(MAX_KERNEL),
        RangeError("padding before and after together", MAX_KERNEL, 0, MAX_KERNEL - 1, where="Relu '/Relu_2'"),
    ),
    "values": (
        one_value(1, 1),
        one_value(1),
        ShapeError("its input", (1,), (1, 1, 1, 1), where="GlobalMaxPool '/GlobalMaxPool_3'"),
    ),
    "sides": (
        one_value(1, 1, 1, 1),
        one_value(1, 1, 1, 1, 1),
        ShapeError("its input", (1, 1, 1, 1, 1), (1, 1, 1, 1), where="GlobalMaxPool '/GlobalMaxPool_3'"),
    ),
    "Resize": (
        after_convolution("Resize", np.array([]), np.array([1, 1, 1, 1])),
        after_convolution("Resize", np.array([]), np.array([1, 1, 0, 0])),
        InvalidValueError(
            "scales",
            [1.0, 1.0, 0.0, 0.0],
            "finite, above 0, 1 for batch and channels, and such that height and width are 1 or more",
            where="Resize '/Resize_1'",
        ),
    ),
    "Flatten": (
        after_convolution("Flatten", axis=1),
        after_convolution("Flatten", axis=4),
        ShapeError(
            "its output",
            (432, 1),
            "a batch of 1 in front and the same number of values as (1, 4, 9, 12)",
            where="Flatten '/Flatten_1'",
        ),
    ),
    "AveragePool": (
        after_convolution("AveragePool", kernel_shape=[1, 2]),
        after_convolution("AveragePool", kernel_shape=[0, 2]),
        InvalidValueError("kernel_shape", (0, 2), "two numbers of 1 or more", where="AveragePool '/AveragePool_1'"),
    ),
    "AveragePool, long": (
        after_convolution("AveragePool", kernel_shape=[9, 11]),
        after_convolution("AveragePool", kernel_shape=[MAX_WINDOW + 1, 2]),
        RangeError("rows or columns of a window", MAX_WINDOW + 1, 1, MAX_WINDOW, where="AveragePool '/AveragePool_1'"),
    ),
    "Cast": (
        cast(to=1),
        cast(),
        InvalidValueError("the attribute to", 0, "the number of an ONNX type", where="Cast '/Cast_0'"),
    ),
    "constants": (
        after_convolution("Add", np.ones((4, 1, 1))),
        unfitting,
        UnsupportedError(
            "Reshape '/Reshape_0'",
            "it cannot be computed from its constants: cannot reshape array of size 4 into shape (3,)",
        ),
    ),
}


@cases("name", LIMITS)
def test_number_at_its_limit_is_read_and_the_next_is_refused(name: str) -> None:
    last, beyond, fault = LIMITS[name]
    network(last)
    with refused(fault):
        network(lambda writer: with_a_reader(writer, beyond(writer)))


def test_channels_above_the_limit_are_refused() -> None:
    whole = network(lambda writer: writer.put("Sigmoid", ["picture"]), (1, MAX_CHANNELS, 1, 1))
    assert whole.nodes[-1].shape.channels == MAX_CHANNELS
    with raises_among(RangeError, what="channels of its output", high=MAX_CHANNELS):
        network(
            lambda writer: writer.put("Concat", ["picture", writer.put("Sigmoid", ["picture"])], axis=1),
            (1, MAX_CHANNELS // 2 + 1, 1, 1),
        )


def test_squeeze_without_axes_keeps_the_batch() -> None:
    """Keep the batch of 1 although the format drops it too: the row after it is the same."""

    def graph(writer: Writer) -> str:
        values = writer.put("Squeeze", [writer.put("GlobalAveragePool", [convolved(writer, "picture", 3, 4)])])
        return writer.put("MatMul", [values, writer.constant(RANDOM.normal(size=(4, 5)))])

    assert str(network(graph).nodes[-1].shape) == "5×1×1"


def test_average_pool_of_one_value_is_no_layer() -> None:
    plain = network(lambda writer: convolved(writer, "picture", 3, 4))
    assert len(network(after_convolution("AveragePool", kernel_shape=[1, 1])).nodes) == len(plain.nodes) == 2
    assert len(network(after_convolution("AveragePool", kernel_shape=[1, 1], strides=[2, 2])).nodes) == 3
    assert len(network(after_convolution("AveragePool", kernel_shape=[1, 2])).nodes) == 3


def test_layer_that_no_output_needs_is_removed() -> None:
    def graph(writer: Writer) -> str:
        convolved(writer, "picture", 3, 4)
        return convolved(writer, "picture", 3, 5)

    assert [str(node.shape) for node in network(graph).nodes] == ["3×11×14", "5×9×12"]


@cases(
    "ends, activation",
    [((0.0,), "relu"), ((0.0, np.inf), "relu"), ((0.0, 6.0), "relu6"), ((0.0, 7.0), "clip"), ((0.0, 5.0), "clip")],
)
def test_clip_from_0_becomes_a_relu(ends: tuple[float, ...], activation: str) -> None:
    op: Any = network(after_convolution("Clip", *ends)).nodes[-1].op
    assert getattr(op, "activation", None) == activation or getattr(op, "function", None) == activation


def test_average_pool_over_all_keeps_its_sides() -> None:
    """Read its output with a convolution."""
    writer = Writer()
    mean = writer.put("AveragePool", [convolved(writer, "picture", 3, 4)], kernel_shape=[9, 12])
    last = writer.put("Conv", [mean, writer.constant(RANDOM.normal(size=(5, 4, 1, 1)))])
    check_against_runtime(writer.model([last], SIDES), pixels(3, 11, 14))


def test_pool_along_the_only_row_equals_onnxruntime() -> None:
    for sides, window in (((1, 3, 1, 14), [1, 3]), ((1, 3, 14, 1), [3, 1])):
        writer = Writer()
        pooled = writer.put("MaxPool", ["picture"], kernel_shape=window, strides=[2, 2])
        check_against_runtime(writer.model([writer.put("Sigmoid", [pooled])], sides), pixels(3, *sides[2:]))


# --- constants --------------------------------------------------------------------------------------------------------


@cases(
    "kind, shapes, size",
    [
        ("Gather", [(30, 4), (5,)], 600),
        ("Concat", [(30, 4), (5,)], 125),
        ("Add", [(3, 1), (1, 4)], 12),
        ("Add", [(3,), (4,)], 7),
        ("Slice", [(30,), (1,), (1,)], 32),
        ("Transpose", [(2, 3)], 6),
        ("Exp", [()], 1),
    ],
)
def test_size_of_a_computed_constant_is_known_in_advance(kind: str, shapes: list[tuple[int, ...]], size: int) -> None:
    operation = OnnxOperation("", kind, ("a", "b"), ("c",), {})
    assert _size(operation, [np.zeros(shape) for shape in shapes]) == size


@cases("values, fits", [(MAX_COMPUTED_VALUES - 3, True), (MAX_COMPUTED_VALUES - 2, False)])
def test_computed_constants_above_the_limit_are_refused(values: int, fits: bool) -> None:
    """Count the start, end and axis of the Slice too."""

    def graph(writer: Writer) -> str:
        number = writer.put("Neg", [writer.constant(np.zeros(values))])
        part = [ones(writer, side) for side in (0, 1, 0)]
        return writer.put("Add", [convolved(writer, "picture", 3, 4), writer.put("Slice", [number, *part])])

    if fits:
        network(graph)
    else:
        with raises_among(
            RangeError, what="the number of values that it computes from constants", got=65537, high=65536
        ):
            network(graph)


@cases("size", [15, 17, 20])
def test_tensor_data_of_another_length_is_refused(size: int) -> None:
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[2, 2], raw_data=bytes(size))
    with raises(MismatchError, what="the length in bytes", got=str(size), expected="16", where="net.onnx: it"):
        array_of(tensor, "net.onnx", "it")
    beside = TensorProto(data_type=TensorProto.FLOAT, dims=[2, 2], data_location=TensorProto.EXTERNAL)
    with raises(UnsupportedError, subject="data in another file", where="net.onnx: it"):
        array_of(beside, "net.onnx", "it")
    tensor.raw_data = np.arange(4, dtype=np.float32).tobytes()
    assert array_of(tensor, "net.onnx", "it").tolist() == [[0, 1], [2, 3]]


# --- heads ------------------------------------------------------------------------------------------------------------

HEAD = {"kind": "anchor-free", "tensors": ["boxes", "classes"], "bins": 16}


def test_heads_and_tensors_above_the_limits_are_refused() -> None:
    assert len(parse_heads(json.dumps({"heads": [HEAD] * MAX_HEADS}), "heads.json")) == MAX_HEADS == 64
    for count in (0, MAX_HEADS + 1, MAX_HEADS + 2):
        with raises(RangeError, what="the number of 'heads'", got=count, low=1, high=64, where="heads.json"):
            parse_heads(json.dumps({"heads": [HEAD] * count}), "heads.json")
    for names in ([], ["a"] * (MAX_TENSORS + 1), ["a", ""]):
        with raises(InvalidValueError, what="'tensors'", got=names, required="a list of 1 to 8 names"):
            parse_heads(json.dumps({"heads": [{**HEAD, "tensors": names}]}), "heads.json")


@cases(
    "weights, bins",
    [
        (np.arange(16.0).reshape(1, 16, 1, 1), 16),
        (np.arange(2.0).reshape(1, 2, 1, 1), 2),
        (np.arange(float(MAX_BINS)).reshape(1, MAX_BINS, 1, 1), MAX_BINS),
        (np.arange(float(MAX_BINS + 1)).reshape(1, MAX_BINS + 1, 1, 1), 0),
        (np.zeros((1, 1, 1, 1)), 0),
        (np.arange(16.0).reshape(16, 1, 1, 1), 0),
        (np.arange(16.0), 0),
        (np.arange(1, 17.0).reshape(1, 16, 1, 1), 0),
        (None, 0),
    ],
)
def test_bins_are_recognised_by_weights_counting_from_0(weights: Any, bins: int) -> None:
    """Check also one bin, which is not a distribution."""
    constants = {} if weights is None else {"w": weights}
    assert _expectation(OnnxOperation("", "Conv", ("x", "w"), ("y",), {}), constants) == bins
    for inputs in ((), ("x",)):
        assert _expectation(OnnxOperation("", "Conv", inputs, ("y",), {}), constants) == 0
    assert _expectation(OnnxOperation("", "MatMul", ("x", "w"), ("y",), {}), constants) == 0


def test_scale_of_a_head_is_a_concat_of_two_maps() -> None:
    def joined(count: int, axis: int) -> dict[str, OnnxOperation]:
        sources = tuple(f"x{index}" for index in range(count))
        views = {
            f"v{step}": OnnxOperation("", "Reshape", (f"v{step - 1}",), (f"v{step}",), {}) for step in range(1, 10)
        }
        return {**views, "v0": OnnxOperation("", "Concat", sources, ("v0",), {"axis": axis})}

    head = _of_size("v1", joined(2, 1), 16)
    assert head is not None
    assert (head.kind, head.tensors, head.bins) == ("anchor-free", ("x0", "x1"), 16)
    for producers in (joined(3, 1), joined(1, 1), joined(2, 0), {}):
        assert _of_size("v1", producers, 16) is None
    assert _followed("v7", joined(2, 1)) is not None
    assert _followed("v8", joined(2, 1)) is None  # eight views are followed; the Concat would be the ninth


# --- integers ---------------------------------------------------------------------------------------------------------


FLOATS = "its weights are floats, not of a DequantizeLinear; quantise all layers (onnxruntime: as QDQ) or none"
THRESHOLDS = "qonnx.custom_op.general.MultiThreshold '/MultiThreshold"
SCALE_BEFORE = "integers of one scale must be before it, or a convolution or matrix that nothing else reads"


def _floating(rows: Any) -> Any:
    """Write a quantised file with a convolution of float weights, of shape (filters, 3)."""
    writer = Grids()
    weights = writer.constant(np.reshape(rows, (-1, 3, 1, 1)))
    return writer.floats(writer.integers_of(writer.conv("", weights), writer.grid(0.05)))


def test_float_filter_with_one_weight_needs_no_scale() -> None:
    quantized = read(_floating([[0, 0.3, 0], [-0.7, 0, 0], [0, 0, 0], [0, 0, 1e-3]])).quantized
    assert quantized is not None
    op = quantized.nodes[-1].op
    assert isinstance(op, QConvolution)
    assert op.weights.reshape(4, 3).tolist() == [[0, 127, 0], [-127, 0, 0], [0, 0, 0], [0, 0, 127]]
    with refused(UnsupportedError("'conv1' (net.onnx: Conv '/Conv_2')", FLOATS)):
        read(_floating([[0, 0.3, 0], [0.7, 0.2, 0]]))


def test_map_with_several_scales_or_zero_points_is_refused() -> None:
    for scales, zeros in ((2, ()), (2, (1,)), (2, (2,))):
        model = requantised(
            lambda w, n=scales, z=zeros: [w.constant([0.1] * n), w.constant(np.zeros(z), np.int8)]  # type: ignore[misc]
        )
        with refused(
            ShapeError("the scale of a map", f"{scales} values", "one value", remedy=ONE_SCALE, where=QUANTISES)
        ):
            read(model)


def test_thresholds_after_an_activation_are_refused() -> None:
    writer = Trained()
    edges = writer.constant(np.zeros((1, 3)))
    options: dict[str, Any] = {"domain": DOMAIN, "out_dtype": "UINT2"}
    kernel = writer.constant(np.ones((2, 3, 1, 1)))
    last = writer.put("Relu", [writer.put("Conv", [writer.quant("picture", 8, 1 / 255, signed=0), kernel])])
    with refused(UnsupportedError(f"{THRESHOLDS}_3'", SCALE_BEFORE)):
        read(writer.file(writer.put("MultiThreshold", [last, edges], **options)))


def test_thresholds_of_two_scales_or_of_large_shared_sums_are_refused() -> None:
    def added(scale: float) -> Any:
        writer = Trained()
        kernel = writer.constant(np.ones((2, 3, 1, 1)))
        sums = (writer.put("Conv", [writer.quant("picture", 8, 1 / 255, signed=0), kernel]) for _ in range(2))
        maps = [writer.quant(each, 8, size) for each, size in zip(sums, (0.1, scale), strict=True)]
        options: dict[str, Any] = {"domain": DOMAIN, "out_dtype": "UINT2"}
        inputs = [writer.put("Add", maps), writer.constant(np.zeros((1, 3)))]
        return writer.file(writer.put("MultiThreshold", inputs, **options))

    with refused(UnsupportedError(f"{THRESHOLDS}_7'", SCALE_BEFORE)):
        read(added(0.2))
    writer = Trained()
    last = writer.put("GlobalAveragePool", [writer.quant("picture", 12, 1 / 100, signed=0)])
    options: dict[str, Any] = {"domain": DOMAIN, "out_dtype": "UINT2"}
    twice = [writer.put("MultiThreshold", [last, writer.constant(np.zeros((1, 3)))], **options) for _ in range(2)]
    with refused(
        *(RangeError("the greatest sum before it", 491_400, high=32767, where=f"{THRESHOLDS}_{i}'") for i in (2, 3))
    ):
        read(writer.file(*twice))


def test_zero_point_of_more_than_17_bits_is_refused() -> None:
    """Check also zero points of 17 bits that the datatype cannot hold, for which the error differs."""
    for bias in (-65535.0, 65535.0):
        with refused(RangeError("the zero point", int(-bias), 0, 3, where="'conv1' (net.onnx: Conv '/Conv_1')")):
            read(reaching(np.zeros((1, 3)), out_bias=bias))
    for bias in (-65536.0, 65536.0, 100_000.0):
        with raises_among(InvalidValueError, what="out_bias", got=bias, required="a whole multiple of the scale 1"):
            read(reaching(np.zeros((1, 3)), out_bias=bias))


def test_zero_padding_becomes_a_layer_that_adds_zeros() -> None:
    """Expect a convolution with one weight of 1."""
    padded = network(around(3))
    picture = pixels(3, 11, 14)
    before, output = run_float(padded, picture)[1:3]
    assert isinstance(padded.nodes[2].op, Convolution)
    assert np.array_equal(output, np.maximum(np.pad(before, ((0, 0), (3, 0), (0, 0))), 0))


@cases("name", ["relu", "relu6", "leaky"])
def test_table_of_integers_equals_the_activation(name: str) -> None:
    values = np.linspace(-9, 9, 181, dtype=np.float32)
    table = _TABLES[name]
    ours = FUNCTIONS[table.function].values(values.astype(np.float64), *table.parameters)
    np.testing.assert_allclose(ours, activate(values.copy(), name), rtol=1e-6)


@cases(
    "kind, extra, anchors, channels, classes",
    [
        ("region", {}, 2, 2 * (5 + 3), 3),
        ("yolo", {}, 3, 3 * (5 + 1), 1),
        ("gaussian-yolo", {}, 2, 2 * (9 + 4), 4),
        ("cells", {"bins": 3}, 2, 9 * (4 + 2 * 5), 4),
        ("cells", {"bins": 1}, 1, 7, 2),
        ("anchor-free", {"bins": 4}, 0, 16 + 5, 5),
        ("segmentation", {}, 0, 6, 6),
    ],
)
def test_head_without_classes_has_the_remaining_channels(
    kind: str, extra: dict[str, int], anchors: int, channels: int, classes: int
) -> None:
    def maps(count: int) -> Any:
        writer = Writer()
        return writer.model([convolved(writer, "picture", 3, count)], SIDES)

    entry = {"kind": kind, "tensors": ["conv0"], "anchors": [[1, 2]] * anchors, **extra}
    (head,) = parse_heads(json.dumps({"heads": [entry]}), "heads.json")
    node = read_model(maps(channels), "net.onnx", "net", (head,)).network.nodes[-1]
    assert isinstance(node.op, Detection)
    assert (node.op.classes, node.op.channels, node.name) == (classes, channels, f"{kind.replace('-', '_')}1")
    if channels > classes:
        wrong = NamedHead(kind, ("conv0",), classes, head.anchors, bins=head.bins)
        with raises(MismatchError, got=channels - classes, expected=channels, where="net.onnx: head 2"):
            read_model(maps(channels - classes), "net.onnx", "net", (NamedHead("segmentation", ("conv0",)), wrong))


def test_input_with_another_view_is_refused() -> None:
    def graph(writer: Writer) -> str:
        source = writer.put("Reshape", [convolved(writer, "picture", 3, 4), ones(writer, 1, 4, 12, 9)])
        return writer.put("GlobalMaxPool", [source])

    with raises_among(ShapeError, what="its input", got=(1, 4, 12, 9), required=(1, 4, 9, 12)):
        network(graph)
