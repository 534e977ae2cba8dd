"""The edges of the arithmetic contract: the last number that passes, and the first one that is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from boards.errors import QuantiseError
from cnn.datatype import BIPOLAR, INT8, INT32, UINT8, DataType
from cnn.integer_model import requantise
from cnn.network import Concat, MaxPool, Padding, Reorg, Shape, Slice, Softmax, TopK, Upsample
from cnn.quantisation.tensor_types import _scale
from cnn.quantisation.thresholds import thresholds_of
from cnn.quantized import (
    MultiplyShift,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QNode,
    QOp,
    QuantizedNetwork,
    Table,
    TensorType,
    Thresholds,
    identity,
    label_type,
)
from cnn.quantized_check import check_quantized
from tests.support import networks

PIXELS = TensorType(UINT8, 1 / 255)
SUMS = TensorType(INT32, 1.0)


def network(
    op: QOp, source: Shape, shape: Shape, kind: TensorType = SUMS, inputs: Sequence[int] = (0,)
) -> QuantizedNetwork:
    """The picture and one node behind it."""
    picture = QNode("picture", QInput(), (), source, PIXELS, "test:1")
    return QuantizedNetwork("edges", (picture, QNode("node", op, tuple(inputs), shape, kind, "test:2")))


def refusal(of: QuantizedNetwork) -> str:
    with pytest.raises(QuantiseError) as caught:
        check_quantized(of)
    return str(caught.value)


def one(value: int) -> np.ndarray:
    return np.array([value], np.int64)


def dense(weights: Sequence[int], **fields: np.ndarray) -> QuantizedNetwork:
    """One output of a dense layer."""
    op = QDense(np.array([weights], np.int8), INT8, replace(identity(1), **fields))
    return network(op, Shape(len(weights), 1, 1), Shape(1, 1, 1))


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [
        ("bias", -(2**31) + 1, 2**31 - 1),
        ("multiplier", 1, 65535),
        ("negative", 0, 65535),
        ("shift", 1, 47),
    ],
)
def test_numbers_of_a_requantiser(field: str, low: int, high: int) -> None:
    for value in (low, high):
        check_quantized(dense([0], **{field: one(value)}))
    for value in (low - 1, high + 1):
        sentence = f"{field} must be {low}…{high}, not {value}…{value}"
        assert sentence in refusal(dense([0], **{field: one(value)}))


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [("multiplier", -65535, 65535), ("bias", -(2**47) + 1, 2**47 - 1), ("shift", 1, 47)],
)
def test_numbers_of_a_multiply_shift(field: str, low: int, high: int) -> None:
    numbers = {"multiplier": one(1), "bias": one(0), "shift": one(1)}

    def with_value(value: int) -> QuantizedNetwork:
        op = QDense(np.zeros((1, 1), np.int8), INT8, MultiplyShift(**{**numbers, field: one(value)}))
        return network(op, Shape(1, 1, 1), Shape(1, 1, 1))

    for value in (low, high):
        check_quantized(with_value(value))
    for value in (low - 1, high + 1):
        assert f"{field} must be {low}…{high}, not {value}…{value}" in refusal(with_value(value))


def test_thresholds_lie_within_33_bits_and_ascend() -> None:
    def with_thresholds(*values: int) -> QuantizedNetwork:
        thresholds = Thresholds(np.array([values], np.int64), np.zeros(1, np.bool_))
        op = QDense(np.zeros((1, 1), np.int8), INT8, thresholds)
        return network(op, Shape(1, 1, 1), Shape(1, 1, 1), TensorType(DataType(2, False), 1.0))

    check_quantized(with_thresholds(-(2**31), 0, 2**31))
    check_quantized(with_thresholds(5, 5, 5))
    assert f"thresholds must be −2^31…2^31, not {-(2**31) - 1}…1" in refusal(with_thresholds(-(2**31) - 1, 0, 1))
    assert f"thresholds must be −2^31…2^31, not 0…{2**31 + 1}" in refusal(with_thresholds(0, 1, 2**31 + 1))
    assert "thresholds must ascend in every channel" in refusal(with_thresholds(0, 2, 1))
    assert "thresholds must be int64 [1, 3], not int64 [1, 2]" in refusal(with_thresholds(0, 1))


def test_a_table_has_a_value_of_the_output_for_each_of_its_input() -> None:
    def with_values(values: Sequence[int], out: DataType = INT8) -> QuantizedNetwork:
        op = QActivate(Table(np.array(values, np.int64)))
        return network(op, Shape(1, 1, 1), Shape(1, 1, 1), TensorType(out, 1.0))

    check_quantized(with_values(range(-128, 128)))
    assert "a table must be int64 [256], not int64 [255]" in refusal(with_values(range(-128, 127)))
    assert "a table's values must be INT8, not -127…128" in refusal(with_values(range(-127, 129)))
    assert "a table gives no BIPOLAR" in refusal(with_values([-1] * 256, BIPOLAR))
    wide = dense([1])
    reader = QNode("reader", QActivate(Table(np.zeros(256, np.int64))), (1,), Shape(1, 1, 1), SUMS, "test:3")
    assert "a table's input has at most 16 bits, not INT32" in refusal(replace(wide, nodes=(*wide.nodes, reader)))


def test_thresholds_make_at_most_8_bits() -> None:
    def with_bits(bits: int) -> QuantizedNetwork:
        thresholds = Thresholds(np.zeros((1, 2**bits - 1), np.int64), np.zeros(1, np.bool_))
        op = QDense(np.zeros((1, 1), np.int8), INT8, thresholds)
        return network(op, Shape(1, 1, 1), Shape(1, 1, 1), TensorType(DataType(bits, False), 1.0))

    check_quantized(with_bits(8))
    assert "thresholds make at most 8 bits, not UINT9" in refusal(with_bits(9))


def test_a_sum_fits_32_bits() -> None:
    """255 · 127 = 32385 and the bias that is left of 2^31 − 1."""
    left = 2**31 - 1 - 32385
    check_quantized(dense([127], bias=one(left)))
    check_quantized(dense([-127], bias=one(-left)))
    assert f"|bias| = {2**31} needs 33" in refusal(dense([127], bias=one(left + 1)))


def test_weights_are_narrow() -> None:
    check_quantized(dense([127, -127]))
    assert "weights must be narrow, -127…127, not -128…127" in refusal(dense([127, -128]))


def test_an_average_pool_sums_its_map() -> None:
    """A map of 255 · positions; beside it the bias that is left."""
    positions = 7 * 5
    left = 2**31 - 1 - 255 * positions

    def pool(bias: int) -> QuantizedNetwork:
        op = QAveragePool(replace(identity(1), bias=one(bias)))
        return network(op, Shape(1, 7, 5), Shape(1, 1, 1))

    check_quantized(pool(left))
    assert "needs 33" in refusal(pool(left + 1))


@pytest.mark.parametrize("multiplier", [1, 16384])
def test_multipliers_of_an_add(multiplier: int) -> None:
    def add(*multipliers: int) -> QuantizedNetwork:
        return network(QAdd(multipliers, identity(2)), Shape(2, 3, 3), Shape(2, 3, 3), inputs=(0, 0))

    check_quantized(add(multiplier, 1))
    wrong = {1: 0, 16384: 16385}[multiplier]
    assert f"an add needs one multiplier of 1…16384 an input, not ({wrong}, 1)" in refusal(add(wrong, 1))
    assert "an add needs one multiplier of 1…16384 an input, not (1,)" in refusal(add(1))


NONE = Padding()


def convolution(source: Shape, shape: Shape, padding: Padding = NONE, *, stride: int = 1) -> QuantizedNetwork:
    """Of windows of 3×2."""
    weights = np.ones((shape.channels, source.channels, 3, 2), np.int8)
    return network(QConvolution(weights, INT8, identity(shape.channels), stride, padding, 1), source, shape)


@pytest.mark.parametrize(
    ("height", "width", "padding", "stride"),
    [
        (8, 9, Padding(), 1),
        (8, 9, Padding(1, 0, 2, 3), 1),
        (8, 9, Padding(1, 0, 2, 3), 2),
        (8, 9, Padding(0, 1), 3),
        (3, 2, Padding(), 5),
        (1, 1, Padding(255, 255, 255, 255), 7),
    ],
)
def test_the_shape_a_convolution_leaves(height: int, width: int, padding: Padding, stride: int) -> None:
    """The windows of 3×2 that lie within the padded map, counted."""
    rows = len(range(0, height + padding.top + padding.bottom - 2, stride))
    columns = len(range(0, width + padding.left + padding.right - 1, stride))
    source = Shape(2, height, width)
    check_quantized(convolution(source, Shape(4, rows, columns), padding, stride=stride))
    for wrong in (Shape(4, rows + 1, columns), Shape(4, rows, columns + 1)):
        sentence = f"its inputs give the shape {Shape(4, rows, columns)}, not {wrong}"
        assert sentence in refusal(convolution(source, wrong, padding, stride=stride))


def test_windows_that_do_not_fit() -> None:
    assert "a window of 3×2 is larger than the padded 2×2×2" in refusal(convolution(Shape(2, 2, 2), Shape(1, 1, 1)))
    assert "a window of 3×2 is larger than the padded 2×3×1" in refusal(convolution(Shape(2, 3, 1), Shape(1, 1, 1)))
    for padding in (Padding(256), Padding(0, -1), Padding(right=256)):
        assert "padding is 0…255, not" in refusal(convolution(Shape(2, 9, 9), Shape(1, 9, 9), padding))
    assert "the stride is at least 1" in refusal(convolution(Shape(2, 9, 9), Shape(1, 9, 9), stride=0))


@pytest.mark.parametrize(("filters", "channels", "groups"), [(4, 2, 3), (3, 3, 2), (4, 3, 1), (4, 6, 0), (4, 6, -1)])
def test_groups_divide_filters_and_channels(filters: int, channels: int, groups: int) -> None:
    op = QConvolution(np.ones((filters, channels, 1, 1), np.int8), INT8, identity(filters), 1, NONE, groups)
    sentence = f"{channels} weights' channels × {groups} groups do not fit 6×4×4 and {filters} filters"
    assert sentence in refusal(network(op, Shape(6, 4, 4), Shape(filters, 4, 4)))


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        (MaxPool(2, 2, Padding()), Shape(4, 3, 3)),
        (MaxPool(3, 1, Padding(2, 2, 2, 2)), Shape(4, 8, 8)),
        (Concat(), Shape(4, 6, 6)),
        (Slice(0, 4), Shape(4, 6, 6)),
        (Slice(3, 1), Shape(1, 6, 6)),
        (Reorg(2, "darknet"), Shape(16, 3, 3)),
        (Reorg(3, "block"), Shape(36, 2, 2)),
        (Upsample(1, 1.0), Shape(4, 6, 6)),
        (Upsample(3, 1.0), Shape(4, 18, 18)),
        (Softmax(), Shape(4, 6, 6)),
        (TopK(3, labels=False), Shape(3, 6, 6)),
    ],
)
def test_the_shape_that_is_passed_on(op: QOp, shape: Shape) -> None:
    check_quantized(network(op, Shape(4, 6, 6), shape, PIXELS))
    wrong = Shape(shape.channels + 1, shape.height, shape.width)
    assert f"its inputs give the shape {shape}, not {wrong}" in refusal(network(op, Shape(4, 6, 6), wrong, PIXELS))


@pytest.mark.parametrize(
    ("op", "sentence"),
    [
        (MaxPool(0, 1, Padding()), "size and stride of a pool are at least 1"),
        (MaxPool(2, 0, Padding()), "size and stride of a pool are at least 1"),
        (MaxPool(2, 1, Padding(2)), "a pool's padding is smaller than its size"),
        (Slice(-1, 1), "channels -1…-1 are not all in 4×6×6"),
        (Slice(0, 0), "channels 0…-1 are not all in 4×6×6"),
        (Slice(1, 4), "channels 1…4 are not all in 4×6×6"),
        (Reorg(3, "darknet"), "reorg by 3 needs channels % 9, height % 3 and width % 3 to be 0: 4×6×6"),
        (Reorg(4, "block"), "reorg by 4 needs channels % 1, height % 4 and width % 4 to be 0: 4×6×6"),
        (Upsample(0, 1.0), "upsample keeps integers with scale 1, not 1.0"),
        (Upsample(2, 2.0), "upsample keeps integers with scale 1, not 2.0"),
    ],
)
def test_an_operation_that_does_not_fit_its_input(op: QOp, sentence: str) -> None:
    assert sentence in refusal(network(op, Shape(4, 6, 6), Shape(4, 6, 6), PIXELS))


def test_a_tensor_of_the_greatest_size() -> None:
    check_quantized(network(Concat(), Shape(1, 1 << 14, 1 << 14), Shape(1, 1 << 14, 1 << 14), PIXELS))
    large = Shape(1, 1 << 14, (1 << 14) + 1)
    assert "a tensor has at most 268435456 values" in refusal(network(Concat(), large, large, PIXELS))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_a_scale_is_a_finite_number_above_0(scale: float) -> None:
    kind = TensorType(INT32, scale)
    assert f"a scale is finite and above 0, not {scale}" in refusal(
        network(QDense(np.zeros((1, 1), np.int8), INT8, identity(1)), Shape(1, 1, 1), Shape(1, 1, 1), kind)
    )


@pytest.mark.parametrize("inputs", [(), (0, 0), (1,), (-1,), (2,)])
def test_inputs_come_before_and_are_as_many_as_are_read(inputs: tuple[int, ...]) -> None:
    op = QDense(np.zeros((1, 1), np.int8), INT8, identity(1))
    sentence = refusal(network(op, Shape(1, 1, 1), Shape(1, 1, 1), inputs=inputs))
    valid = all(i == 0 for i in inputs)
    assert (
        f"has one input(s), not {len(inputs)}" if valid else f"inputs must come before it, not {inputs}"
    ) in sentence


def test_labels_have_a_type_of_their_own() -> None:
    """As many bits as the greatest label has; k is no more than there are channels."""
    for channels, name in ((1, "UINT1"), (2, "UINT1"), (3, "UINT2"), (256, "UINT8"), (257, "UINT9")):
        assert label_type(channels) == TensorType(DataType.parse(name), 1.0)
        check_quantized(network(TopK(1), Shape(channels, 1, 1), Shape(1, 1, 1), label_type(channels)))
    for wrong in (PIXELS, TensorType(DataType(2, False), 0.5), TensorType(DataType(3, False), 1.0)):
        assert "labels are of the type" in refusal(network(TopK(2), Shape(4, 1, 1), Shape(2, 1, 1), wrong))
    for k in (0, 5):
        choice = network(TopK(k), Shape(4, 1, 1), Shape(max(1, k), 1, 1), label_type(4))
        assert f"of 4 channels 1…4 are chosen, not {k}" in refusal(choice)


def test_nothing_that_computes_reads_what_runs_on_the_host() -> None:
    host = network(Softmax(), Shape(4, 1, 1), Shape(4, 1, 1), PIXELS)
    reader = QNode("reader", QAveragePool(identity(4)), (1,), Shape(4, 1, 1), SUMS, "test:3")
    assert "no integer layer reads one that runs on the host" in refusal(replace(host, nodes=(*host.nodes, reader)))
    again = QNode("again", Softmax(), (1,), Shape(4, 1, 1), PIXELS, "test:3")
    check_quantized(replace(host, nodes=(*host.nodes, again)))


@pytest.mark.parametrize(
    ("bits", "signed", "kind"),
    [(33, True, "INT2…INT32"), (1, True, "INT2…INT32"), (33, False, "UINT1…UINT32"), (0, False, "UINT1…UINT32")],
)
def test_bits_that_no_datatype_has(bits: int, signed: bool, kind: str) -> None:
    with pytest.raises(QuantiseError, match=f"a datatype is {kind}, not "):
        DataType(bits, signed)


def test_sums_of_33_bits_and_more() -> None:
    """66,400 products of 127 · 255 and a bias of 2^31 − 1 are above 2^32."""
    assert "needs 34" in refusal(dense([127] * 66_400, bias=one(2**31 - 1)))


def test_a_requantiser_that_leaves_the_sum_as_it_is() -> None:
    sums = np.array([[-129, -128, -3, -1, 0, 1, 5, 127, 128]])
    assert requantise(sums, identity(1), INT8).tolist() == [[-128, -128, -3, -1, 0, 1, 5, 127, 127]]
    assert requantise(sums, identity(1), INT32).tolist() == sums.tolist()


@pytest.mark.parametrize("multiplier", [-2, -1, 1, 2])
def test_thresholds_of_a_falling_function(multiplier: int) -> None:
    """Sum by sum: (m · acc + 1) >> 1, cut to −2…1."""
    by = thresholds_of(MultiplyShift(one(multiplier), one(0), one(1)), DataType(2, True))
    assert by.flip.tolist() == [multiplier < 0]
    sums = np.arange(-9, 10)[None]
    expected = [min(1, max(-2, (multiplier * int(acc) + 1) >> 1)) for acc in sums[0]]
    assert requantise(sums, by, DataType(2, True)).tolist() == [expected]


def test_a_layer_that_gives_nothing_has_the_scale_of_1() -> None:
    node = networks.tiny_yolo().nodes[1]
    assert _scale(node, 0.0, 127) == 1 / 127
    assert _scale(node, 12.7, 127) == pytest.approx(0.1)
