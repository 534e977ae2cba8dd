"""Tests of the limits of the arithmetic contract: the last accepted number and the first refused one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boards.errors import (
    ChoiceError,
    ConflictError,
    DoesNotFitError,
    InvalidValueError,
    MismatchError,
    RangeError,
    ShapeError,
    SystolicError,
    UnsupportedError,
)
from cnn.datatype import BIPOLAR, INT8, INT32, UINT8, DataType, TensorType
from cnn.maps import Padding, Shape
from cnn.ops import (
    Concat,
    Custom,
    DepthToSpace,
    MaxPool,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QOp,
    Reorg,
    Slice,
    Softmax,
    TopK,
    Upsample,
    label_type,
)
from cnn.quantisation.tensor_types import _scale
from cnn.quantisation.thresholds import thresholds_of
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.requantise import MultiplyShift, Thresholds, identity, requantise
from cnn.tables import Table
from tests.support import networks
from tests.support.errors import check_refusals, raises
from tests.support.kinds import as_kind

PIXELS = TensorType(UINT8, 1 / 255)
SUMS = TensorType(INT32, 1.0)


def network(
    op: QOp, source: Shape, shape: Shape, kind: TensorType = SUMS, inputs: Sequence[int] = (0,)
) -> QuantizedNetwork:
    """Return a network of the input image and one node after it."""
    picture = QNode("picture", QInput(), (), source, PIXELS, "test:1")
    return QuantizedNetwork("edges", (picture, QNode("node", op, tuple(inputs), shape, kind, "test:2")))


def one(value: int) -> np.ndarray:
    return np.array([value], np.int64)


def dense(weights: Sequence[int], **fields: Any) -> QuantizedNetwork:
    """Return a dense layer with one output."""
    op = QDense(np.array([weights], np.int8), INT8, replace(identity(1), **fields))
    return network(op, Shape(len(weights), 1, 1), Shape(1, 1, 1))


LIMITS = {"bias": (-(2**31) + 1, 2**31 - 1), "multiplier": (1, 65535), "negative": (0, 65535), "shift": (1, 47)}
SHIFT_LIMITS = {"multiplier": (-65535, 65535), "bias": (-(2**47) + 1, 2**47 - 1), "shift": (1, 47)}


def test_requantiser_outside_its_limits_is_refused() -> None:
    for field, (low, high) in LIMITS.items():
        for value in (low, high):
            check_quantized(dense([0], **{field: one(value)}))
        for value in (low - 1, high + 1):
            with raises(RangeError, what=field, got=value, low=low, high=high, where="'node' (test:2)"):
                check_quantized(dense([0], **{field: one(value)}))


def test_multiply_shift_outside_its_limits_is_refused() -> None:
    numbers: dict[str, Any] = {"multiplier": one(1), "bias": one(0), "shift": one(1)}

    def with_value(field: str, value: int) -> QuantizedNetwork:
        op = QDense(np.zeros((1, 1), np.int8), INT8, MultiplyShift(**{**numbers, field: one(value)}))
        return network(op, Shape(1, 1, 1), Shape(1, 1, 1))

    for field, (low, high) in SHIFT_LIMITS.items():
        for value in (low, high):
            check_quantized(with_value(field, value))
        for value in (low - 1, high + 1):
            with raises(RangeError, what=field, got=value, low=low, high=high):
                check_quantized(with_value(field, value))


def test_requantiser_arrays_of_wrong_shape_are_refused() -> None:
    wrong: dict[str, np.ndarray] = {"bias": np.zeros(2, np.int64), "shift": np.ones(1, np.int32)}
    for field, array in wrong.items():
        with raises(ShapeError, what=field, got=f"type {array.dtype} and shape {array.shape}"):
            check_quantized(dense([0], **{field: array}))


def test_thresholds_beyond_33_bits_or_descending_are_refused() -> None:
    def with_thresholds(values: Sequence[int]) -> QuantizedNetwork:
        thresholds = Thresholds(np.array([values], np.int64), np.zeros(1, np.bool_))
        op = QDense(np.zeros((1, 1), np.int8), INT8, thresholds)
        return network(op, Shape(1, 1, 1), Shape(1, 1, 1), TensorType(DataType(2, False), 1.0))

    check_quantized(with_thresholds((-(2**31), 0, 2**31)))
    check_quantized(with_thresholds((5, 5, 5)))
    limits = {"what": "a threshold", "low": -(2**31), "high": 2**31}
    check_refusals(
        lambda values: check_quantized(with_thresholds(values)),
        [
            ((-(2**31) - 1, 0, 1), RangeError, {"got": -(2**31) - 1, **limits}),
            ((0, 1, 2**31 + 1), RangeError, {"got": 2**31 + 1, **limits}),
            ((0, 2, 1), InvalidValueError, {"what": "the thresholds of channel 0", "got": [0, 2, 1]}),
            ((0, 1), ShapeError, {"what": "the thresholds", "required": "type int64 and shape (1, 3)"}),
        ],
    )


def test_table_of_wrong_size_or_values_is_refused() -> None:
    def with_values(values: Sequence[int], out: DataType = INT8) -> QuantizedNetwork:
        op = QActivate(Table(np.array(values, np.int64)))
        return network(op, Shape(1, 1, 1), Shape(1, 1, 1), TensorType(out, 1.0))

    check_quantized(with_values(range(-128, 128)))
    with raises(ShapeError, what="the table", required="type int64 and shape (256,)"):
        check_quantized(with_values(range(-128, 127)))
    with raises(RangeError, what="a value of the table, INT8,", got=128, low=-128, high=127):
        check_quantized(with_values(range(-127, 129)))
    with raises(ConflictError, subjects=("a table", "an output of BIPOLAR"), remedy="use Thresholds"):
        check_quantized(with_values([-1] * 256, BIPOLAR))
    wide = dense([1])
    reader = QNode("reader", QActivate(Table(np.zeros(256, np.int64))), (1,), Shape(1, 1, 1), SUMS, "test:3")
    with raises(RangeError, what="the bits of the table's input", got=32, high=16, where="'reader' (test:3)"):
        check_quantized(replace(wide, nodes=(*wide.nodes, reader)))


def test_thresholds_for_more_than_8_bits_are_refused() -> None:
    def with_bits(bits: int) -> QuantizedNetwork:
        thresholds = Thresholds(np.zeros((1, 2**bits - 1), np.int64), np.zeros(1, np.bool_))
        op = QDense(np.zeros((1, 1), np.int8), INT8, thresholds)
        return network(op, Shape(1, 1, 1), Shape(1, 1, 1), TensorType(DataType(bits, False), 1.0))

    check_quantized(with_bits(8))
    with raises(RangeError, what="the bits of UINT9, computed by thresholds,", got=9, high=8):
        check_quantized(with_bits(9))


def test_sum_of_more_than_32_bits_is_refused() -> None:
    """Add 255 · 127 = 32385 and a bias that reaches exactly 2^31 − 1."""
    left = 2**31 - 1 - 32385
    check_quantized(dense([127], bias=one(left)))
    check_quantized(dense([-127], bias=one(-left)))
    with raises(DoesNotFitError, resource="bits", need=33, have=32) as caught:
        check_quantized(dense([127], bias=one(left + 1)))
    assert f"= {2**31}," in caught.value.subject
    # 66,400 products of 127 · 255 and a bias of 2^31 − 1 are above 2^32.
    with raises(DoesNotFitError, resource="bits", need=34, have=32):
        check_quantized(dense([127] * 66_400, bias=one(2**31 - 1)))


def test_weight_of_the_lowest_integer_is_refused() -> None:
    check_quantized(dense([127, -127]))
    with raises(RangeError, what="a weight", got=-128, low=-127, high=127):
        check_quantized(dense([127, -128]))


def test_average_pool_sum_of_more_than_32_bits_is_refused() -> None:
    """Add 255 · positions and a bias that reaches exactly 2^31 − 1."""
    positions = 7 * 5
    left = 2**31 - 1 - 255 * positions

    def pool(bias: int) -> QuantizedNetwork:
        op = QAveragePool(replace(identity(1), bias=one(bias)))
        return network(op, Shape(1, 7, 5), Shape(1, 1, 1))

    check_quantized(pool(left))
    with raises(DoesNotFitError, need=33, have=32):
        check_quantized(pool(left + 1))


def test_add_multipliers_outside_their_limits_are_refused() -> None:
    def add(*multipliers: int) -> QuantizedNetwork:
        return network(QAdd(multipliers, identity(2)), Shape(2, 3, 3), Shape(2, 3, 3), inputs=(0, 0))

    for multiplier, wrong in ((1, 0), (16384, 16385)):
        check_quantized(add(multiplier, 1))
        with raises(RangeError, what="a multiplier", got=wrong, low=1, high=16384):
            check_quantized(add(wrong, 1))
    with raises(MismatchError, what="the number of multipliers", got=1, expected=2):
        check_quantized(add(1))


NONE = Padding()


def convolution(source: Shape, shape: Shape, padding: Padding = NONE, *, stride: int = 1) -> QuantizedNetwork:
    """Return a convolution with windows of 3×2."""
    weights = np.ones((shape.channels, source.channels, 3, 2), np.int8)
    return network(QConvolution(weights, INT8, identity(shape.channels), stride, padding, 1), source, shape)


def test_convolution_of_wrong_output_shape_is_refused() -> None:
    """Count the windows of 3×2 within the padded map."""
    for height, width, padding, stride in (
        (8, 9, Padding(), 1),
        (8, 9, Padding(1, 0, 2, 3), 1),
        (8, 9, Padding(1, 0, 2, 3), 2),
        (8, 9, Padding(0, 1), 3),
        (3, 2, Padding(), 5),
        (1, 1, Padding(255, 255, 255, 255), 7),
    ):
        rows = len(range(0, height + padding.top + padding.bottom - 2, stride))
        columns = len(range(0, width + padding.left + padding.right - 1, stride))
        source = Shape(2, height, width)
        check_quantized(convolution(source, Shape(4, rows, columns), padding, stride=stride))
        for wrong in (Shape(4, rows + 1, columns), Shape(4, rows, columns + 1)):
            with raises(MismatchError, what="the shape", got=str(wrong), expected=f"4×{rows}×{columns}"):
                check_quantized(convolution(source, wrong, padding, stride=stride))


def test_window_padding_or_stride_outside_the_limits_is_refused() -> None:
    for source in (Shape(2, 2, 2), Shape(2, 3, 1)):
        with raises(InvalidValueError, what="the window", got="3×2") as caught:
            check_quantized(convolution(source, Shape(1, 1, 1)))
        assert caught.value.required == f"at most the padded input, {source.height}×{source.width}"
    for padding, side in ((Padding(4096), 4096), (Padding(0, -1), -1), (Padding(right=4096), 4096)):
        with raises(RangeError, what="the padding", got=side, low=0, high=4095):
            check_quantized(convolution(Shape(2, 9, 9), Shape(1, 9, 9), padding))
    wide = Shape(2, 9 + 4095 + 4095, 9 + 4095 + 4095)
    with raises(RangeError, what="values of the padded input", got=wide.values, high=1 << 27):
        check_quantized(convolution(Shape(2, 9, 9), wide, Padding(4095, 4095, 4095, 4095)))
    with raises(RangeError, what="the stride", got=0, low=1):
        check_quantized(convolution(Shape(2, 9, 9), Shape(1, 9, 9), stride=0))


def test_groups_that_do_not_divide_filters_and_channels_are_refused() -> None:
    def grouped(case: tuple[int, int, int]) -> QuantizedNetwork:
        filters, channels, groups = case
        op = QConvolution(np.ones((filters, channels, 1, 1), np.int8), INT8, identity(filters), 1, NONE, groups)
        return check_quantized(network(op, Shape(6, 4, 4), Shape(filters, 4, 4)))

    check_refusals(
        grouped,
        [
            ((4, 2, 3), InvalidValueError, {"what": "the groups", "got": 3}),
            ((3, 3, 2), InvalidValueError, {"what": "the groups", "got": 2, "required": "a divisor of 3 filters"}),
            ((4, 3, 1), MismatchError, {"got": 3, "expected": 6}),
            ((4, 6, 0), InvalidValueError, {"what": "the groups", "got": 0}),
            ((4, 6, -1), InvalidValueError, {"what": "the groups", "got": -1}),
        ],
    )


PASSED_ON: list[tuple[QOp, Shape]] = [
    (MaxPool(2, 2, Padding()), Shape(4, 3, 3)),
    (MaxPool(3, 1, Padding(2, 2, 2, 2)), Shape(4, 8, 8)),
    (Concat(), Shape(4, 6, 6)),
    (Slice(0, 4), Shape(4, 6, 6)),
    (Slice(3, 1), Shape(1, 6, 6)),
    (Reorg(2, "darknet"), Shape(16, 3, 3)),
    (Reorg(3, "block"), Shape(36, 2, 2)),
    (DepthToSpace(2, 2), Shape(1, 12, 12)),
    (Upsample(1, 1.0), Shape(4, 6, 6)),
    (Upsample(3, 1.0), Shape(4, 18, 18)),
    (Softmax(), Shape(4, 6, 6)),
    (TopK(3, labels=False), Shape(3, 6, 6)),
]


def test_node_of_wrong_output_shape_is_refused() -> None:
    for op, shape in PASSED_ON:
        check_quantized(network(op, Shape(4, 6, 6), shape, PIXELS))
        wrong = Shape(shape.channels + 1, shape.height, shape.width)
        with raises(MismatchError, what="the shape", got=str(wrong), expected=str(shape)):
            check_quantized(network(op, Shape(4, 6, 6), wrong, PIXELS))


def test_operation_that_does_not_fit_its_input_is_refused() -> None:
    check_refusals(
        lambda op: check_quantized(network(op, Shape(4, 6, 6), Shape(4, 6, 6), PIXELS)),
        [
            (MaxPool(0, 1, Padding()), RangeError, {"what": "the size and the stride of the pool", "got": 0, "low": 1}),
            (MaxPool(2, 0, Padding()), RangeError, {"what": "the size and the stride of the pool", "got": 0}),
            (MaxPool(2, 1, Padding(2)), InvalidValueError, {"got": Padding(2), "required": "less than its size, 2×2"}),
            (Slice(-1, 1), RangeError, {"what": "the first channel of the slice", "got": -1, "low": 0, "high": 3}),
            (Slice(4, 1), RangeError, {"what": "the first channel of the slice", "got": 4}),
            (Slice(0, 0), RangeError, {"what": "the number of channels of the slice", "got": 0, "low": 1}),
            (Slice(1, 4), RangeError, {"what": "the number of channels of the slice", "got": 4, "high": 3}),
            (Reorg(3, "darknet"), InvalidValueError, {"what": "the stride of the reorg", "got": 3}),
            (Reorg(4, "block"), InvalidValueError, {"got": 4, "required": "a divisor of height and width of 4×6×6"}),
            (Reorg(0, "block"), InvalidValueError, {"what": "the stride of the reorg", "got": 0}),
            (Reorg(2, "tile"), ChoiceError, {"got": "tile", "choices": ("darknet", "block")}),
            (DepthToSpace(3, 1), InvalidValueError, {"what": "the block", "got": "3×1"}),
            (DepthToSpace(0, 2), InvalidValueError, {"what": "the block", "got": "0×2"}),
            (Upsample(0, 1.0), RangeError, {"what": "the stride of the upsample", "got": 0, "low": 1}),
            (Upsample(1, 2.0), InvalidValueError, {"what": "the scale of the upsample", "got": 2.0}),
            (QDense(np.ones((4, 7), np.int8), INT8, identity(4)), ShapeError, {"required": "shape (outputs, 144)"}),
        ],
    )


def test_custom_operation_is_refused_at_its_node() -> None:
    with pytest.raises(SystolicError) as caught:
        check_quantized(network(Custom("unknown"), Shape(4, 6, 6), Shape(4, 6, 6), PIXELS))
    assert caught.value.where == "'node' (test:2)"


def test_joined_maps_of_different_shapes_are_refused() -> None:
    first = network(Upsample(2, 1.0), Shape(4, 6, 6), Shape(4, 12, 12), PIXELS)
    for op, required in ((QAdd((1, 1), identity(4)), "one shape"), (Concat(), "one height and width")):
        node = QNode("meet", op, (0, 1), Shape(4, 6, 6), PIXELS, "test:3")
        with raises(ShapeError, got="4×6×6, 4×12×12", required=required, where="'meet' (test:3)"):
            check_quantized(replace(first, nodes=(*first.nodes, node)))


def test_tensor_above_the_largest_size_is_refused() -> None:
    check_quantized(network(Concat(), Shape(1, 1 << 14, 1 << 14), Shape(1, 1 << 14, 1 << 14), PIXELS))
    large = Shape(1, 1 << 14, (1 << 14) + 1)
    with raises(RangeError, what="the number of values", got=large.values, high=1 << 28):
        check_quantized(network(Concat(), large, large, PIXELS))


def scaled(scale: float, zero: int = 0, datatype: DataType = INT8) -> QuantizedNetwork:
    op = QDense(np.zeros((1, 1), np.int8), INT8, identity(1))
    return network(op, Shape(1, 1, 1), Shape(1, 1, 1), TensorType(datatype, scale, zero))


def test_scale_that_is_not_finite_and_positive_is_refused() -> None:
    for scale in (0.0, -1.0, float("inf"), float("-inf")):
        with raises(InvalidValueError, what="the scale", got=scale):
            check_quantized(scaled(scale))
    with raises(InvalidValueError, what="the scale"):
        check_quantized(scaled(float("nan")))


def test_zero_point_outside_the_datatype_is_refused() -> None:
    check_quantized(scaled(1.0, -128))
    for zero in (-129, 128):
        with raises(RangeError, what="the zero point", got=zero, low=-128, high=127):
            check_quantized(scaled(1.0, zero))


def test_shape_with_an_empty_side_is_refused() -> None:
    with raises(RangeError, what="the least side of the shape 0×1×1", got=0, low=1):
        check_quantized(network(Concat(), Shape(0, 1, 1), Shape(0, 1, 1), PIXELS))


def test_inputs_of_wrong_number_or_index_are_refused() -> None:
    op = QDense(np.zeros((1, 1), np.int8), INT8, identity(1))
    for inputs in ((), (0, 0)):
        with raises(RangeError, what="the number of inputs of QDense", got=len(inputs), low=1, high=1):
            check_quantized(network(op, Shape(1, 1, 1), Shape(1, 1, 1), inputs=inputs))
    for index in (1, -1, 2):
        with raises(RangeError, what="the index of an input", got=index, low=0, high=0):
            check_quantized(network(op, Shape(1, 1, 1), Shape(1, 1, 1), inputs=(index,)))


def test_input_image_at_another_place_than_node_0_is_refused() -> None:
    made = network(Concat(), Shape(1, 1, 1), Shape(1, 1, 1), PIXELS)
    picture = made.nodes[0]
    with raises(InvalidValueError, what="node 0", got="Concat", where="edges"):
        check_quantized(replace(made, nodes=made.nodes[1:]))
    with raises(InvalidValueError, what="node 0", got="nothing"):
        check_quantized(replace(made, nodes=()))
    with raises(InvalidValueError, what="the input picture", got="node 1", where="'picture' (test:1)"):
        check_quantized(replace(made, nodes=(picture, picture)))
    with raises(RangeError, what="the index of an input"):
        check_quantized(replace(made, nodes=(replace(picture, inputs=(0,)),)))


def test_weights_that_are_unsigned_or_too_wide_are_refused() -> None:
    unsigned: np.ndarray = np.ones((1, 1), np.uint8)
    with raises(InvalidValueError, what="the datatype of the weights", got="UINT8"):
        check_quantized(network(QDense(unsigned, UINT8, identity(1)), Shape(1, 1, 1), Shape(1, 1, 1)))
    with raises(ShapeError, what="the weights", got="type int16"):
        check_quantized(network(QDense(np.ones((1, 1), np.int16), INT8, identity(1)), Shape(1, 1, 1), Shape(1, 1, 1)))


def test_padding_that_is_not_the_zero_point_is_refused() -> None:
    made = convolution(Shape(2, 9, 9), Shape(1, 9, 9), Padding(1, 0, 1, 1))
    check_quantized(made)
    op = as_kind(QConvolution, made.nodes[1].op)
    with raises(MismatchError, got=3, expected=0):
        check_quantized(replace(made, nodes=(made.nodes[0], replace(made.nodes[1], op=replace(op, around=3)))))
    signs = replace(made.nodes[0], type=TensorType(BIPOLAR, 1.0))
    with raises(ConflictError, subjects=("padding", "a BIPOLAR input")):
        check_quantized(replace(made, nodes=(signs, made.nodes[1])))


def test_node_that_keeps_values_must_keep_their_type() -> None:
    with raises(MismatchError, got=SUMS, expected=PIXELS, where="'node' (test:2)"):
        check_quantized(network(Concat(), Shape(1, 1, 1), Shape(1, 1, 1), SUMS))


def test_labels_of_another_type_are_refused() -> None:
    """Expect the bits of the greatest label, and at most as large a k as there are channels."""
    for channels, name in ((1, "UINT1"), (2, "UINT1"), (3, "UINT2"), (256, "UINT8"), (257, "UINT9")):
        assert label_type(channels) == TensorType(DataType.parse(name), 1.0)
        check_quantized(network(TopK(1), Shape(channels, 1, 1), Shape(1, 1, 1), label_type(channels)))
    for wrong in (PIXELS, TensorType(DataType(2, False), 0.5), TensorType(DataType(3, False), 1.0)):
        with raises(MismatchError, what="the type of the labels", got=wrong, expected=label_type(4)):
            check_quantized(network(TopK(2), Shape(4, 1, 1), Shape(2, 1, 1), wrong))
    for k in (0, 5):
        choice = network(TopK(k), Shape(4, 1, 1), Shape(max(1, k), 1, 1), label_type(4))
        with raises(RangeError, what="the number of channels that are chosen", got=k, low=1, high=4):
            check_quantized(choice)


def test_integer_layer_that_reads_a_host_layer_is_refused() -> None:
    host = network(Softmax(), Shape(4, 1, 1), Shape(4, 1, 1), PIXELS)
    reader = QNode("reader", QAveragePool(identity(4)), (1,), Shape(4, 1, 1), SUMS, "test:3")
    with raises(UnsupportedError, subject="an integer layer that reads 'node'", where="'reader' (test:3)"):
        check_quantized(replace(host, nodes=(*host.nodes, reader)))
    again = QNode("again", Softmax(), (1,), Shape(4, 1, 1), PIXELS, "test:3")
    check_quantized(replace(host, nodes=(*host.nodes, again)))


def test_datatype_of_wrong_bits_is_refused() -> None:
    for bits, signed, low in ((33, True, 2), (1, True, 2), (33, False, 1), (0, False, 1)):
        with raises(RangeError, got=bits, low=low, high=32):
            DataType(bits, signed)


def test_identity_requantiser_keeps_the_sum() -> None:
    sums = np.array([[-129, -128, -3, -1, 0, 1, 5, 127, 128]])
    assert requantise(sums, identity(1), INT8).tolist() == [[-128, -128, -3, -1, 0, 1, 5, 127, 127]]
    assert requantise(sums, identity(1), INT32).tolist() == sums.tolist()


def test_thresholds_of_a_falling_function_are_flipped() -> None:
    """Compare with (m · acc + 1) >> 1, clipped to −2…1, for each sum."""
    for multiplier in (-2, -1, 1, 2):
        by = thresholds_of(MultiplyShift(one(multiplier), one(0), one(1)), DataType(2, True))
        assert by.flip.tolist() == [multiplier < 0]
        sums = np.arange(-9, 10)[None]
        expected = [min(1, max(-2, (multiplier * int(acc) + 1) >> 1)) for acc in sums[0]]
        assert requantise(sums, by, DataType(2, True)).tolist() == [expected], multiplier


def test_layer_with_an_empty_range_has_a_range_of_1() -> None:
    node = networks.tiny_yolo().nodes[1]
    assert _scale(node, 0.0, 127) == 1 / 127
    assert _scale(node, 12.7, 127) == pytest.approx(0.1)
