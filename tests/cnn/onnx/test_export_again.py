"""Tests that networks written as QONNX and FINN-ONNX are read again with the same integers in every layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from boards.errors import UnsupportedError
from cnn.datatype import BIPOLAR, INT8, DataType, TensorType
from cnn.integer_model import run_integer
from cnn.maps import Padding
from cnn.onnx.file import parsed
from cnn.onnx.network import read_model
from cnn.onnx.quantised.export import to_onnx
from cnn.ops import MaxPool, QConvolution, QDense, QOp, Segmentation, Slice, Softmax, Upsample
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import MultiplyShift, Requantiser, Thresholds
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.low_bit import Layers
from tests.support.onnx.chains import chain, convolved, full, weights
from tests.support.onnx.integers import INTEGERS
from tests.support.onnx.trained import few_bits, of_one_bit, streamlined, unstreamlined

FORMS: dict[str, Callable[[], Any]] = {
    **{"few bits": few_bits, "one bit": of_one_bit, "streamlined": streamlined, "unstreamlined": unstreamlined},
}


def exported(network: QuantizedNetwork, dialect: str) -> Any:
    return parsed(to_onnx(network, dialect), "net.onnx")


def nodes_of(model: Any) -> tuple[QNode, ...]:
    """Return the layers of the network read from the exported model."""
    network = read_model(model, "net.onnx", "net").quantized
    assert network is not None
    return network.nodes


def steps_off(network: QuantizedNetwork, dialect: str) -> int:
    """Return the greatest difference of the outputs, in steps."""
    again = read_model(exported(network, dialect), "net.onnx", "net").quantized
    assert again is not None
    shape, worst = network.input_shape, 0
    for seed in range(3):
        picture = np.random.default_rng(seed).integers(0, 256, (shape.channels, shape.height, shape.width), np.uint8)
        ours, theirs = run_integer(network, picture)[-1], run_integer(again, picture)[-1]
        assert ours is not None
        assert theirs is not None
        worst = max(worst, int(np.abs(_steps(network, ours) - _steps(again, theirs)).max()))
        assert len(np.unique(ours)) >= 2
    return worst


def _steps(network: QuantizedNetwork, integers: Any) -> Any:
    """Return the steps above the lowest integer, so that zero points and signs make no difference."""
    datatype = network.nodes[-1].type.datatype
    return (integers.astype(np.int64) - datatype.low) // datatype.step


@cases("dialect", ["qonnx", "finn"])
@cases("name", [*INTEGERS, *FORMS])
def test_exported_network_is_read_with_equal_integers(name: str, dialect: str) -> None:
    network = read_model({**INTEGERS, **FORMS}[name](), "net.onnx", "net").quantized
    assert network is not None
    assert steps_off(network, dialect) == 0


@cases("dialect", ["qonnx", "finn"])
def test_exported_dilated_convolution_keeps_dilation_and_integers(dialect: str) -> None:
    network = Layers(3, 9, 8, "INT8", "INT8").spaced(4, 3, 3).network()
    (op,) = (node.op for node in nodes_of(exported(network, dialect)) if isinstance(node.op, QConvolution))
    assert (op.weights.shape, op.dilation) == ((4, 3, 3, 3), (3, 3))
    assert steps_off(network, dialect) == 0


@cases("dialect", ["qonnx", "finn"])
@cases("mode", ["edge", "reflect"])
def test_exported_pad_of_values_keeps_integers(dialect: str, mode: str) -> None:
    network = Layers(3, 9, 8, "INT8", "INT8").conv(4, 1).around(mode, Padding(1, 2, 3, 1)).conv(4, 3).network()
    assert [type(node.op) for node in nodes_of(exported(network, dialect))] == [type(n.op) for n in network.nodes]
    assert steps_off(network, dialect) == 0


# --- networks written by hand


BOTH_SIGNS = MultiplyShift(full(900, -900, 0), full(40000, -30000, 5 << 16), full(16, 16, 16))


@cases("dialect", ["qonnx", "finn"])
@cases("zero", [0, -3])
def test_exported_filter_with_negative_or_zero_gain_keeps_integers(dialect: str, zero: int) -> None:
    type_ = TensorType(INT8, 0.125, zero)
    network = chain((convolved(BOTH_SIGNS, weights(3, 3, 1, 1)), (3, 4, 4), type_))
    assert steps_off(network, dialect) == 0


@cases("dialect", ["qonnx", "finn"])
@cases("negative", [(900, 700, 800), (0, 0, 0), (90, 70, 80)])
def test_exported_requantiser_keeps_its_activation(dialect: str, negative: tuple[int, int, int]) -> None:
    by = Requantiser(full(500, -700, 0), full(900, 700, 800), full(*negative), full(16, 16, 16))
    network = chain((convolved(by, weights(3, 3, 3, 3), Padding(1, 1, 1, 1)), (3, 4, 4), TensorType(INT8, 0.125)))
    assert steps_off(network, dialect) == 0


def test_requantiser_with_another_slope_is_exported_only_as_finn() -> None:
    by = Requantiser(full(0), full(900), full(450), full(16))
    network = chain((convolved(by, weights(1, 3, 1, 1)), (1, 4, 4), TensorType(INT8, 0.125)))
    with raises(
        UnsupportedError,
        subject="the export of 'layer0' (net:2) as qonnx",
        reason="ONNX has no activation with its multipliers for sums below 0",
    ):
        to_onnx(network)
    assert steps_off(network, "finn") == 0


def test_exported_descending_thresholds_keep_integers() -> None:
    edges = np.sort(np.random.default_rng(2).integers(-2000, 2000, (3, 3)), axis=1)
    by = Thresholds(edges, np.array([True, False, True]))
    network = chain((convolved(by, weights(3, 3, 1, 1)), (3, 4, 4), TensorType(DataType(2, False), 0.5)))
    assert steps_off(network, "finn") == steps_off(network, "qonnx") == 0


def test_exported_bipolar_weights_with_zero_gain_become_ternary() -> None:
    kernel = full(1, -1, 1, 1, 1, 1, -1, -1, 1).reshape(3, 3, 1, 1)
    by = MultiplyShift(full(9000, 0, 9000), full(0, 0, 0), full(16, 16, 16))
    op = QConvolution(kernel.astype(np.int8), BIPOLAR, by, 1, Padding(), 1)
    network = chain((op, (3, 4, 4), TensorType(INT8, 0.125)))
    kinds = [node.op_type for node in exported(network, "qonnx").graph.node]
    assert "BipolarQuant" not in kinds
    assert steps_off(network, "qonnx") == 0
    without = MultiplyShift(full(9000, -9000, 9000), by.bias, by.shift)
    network = chain((replace(op, requantiser=without), (3, 4, 4), TensorType(INT8, 0.125)))
    assert "BipolarQuant" in [node.op_type for node in exported(network, "qonnx").graph.node]
    assert steps_off(network, "qonnx") == 0


def test_exported_file_contains_all_attributes_and_arrays() -> None:
    by = MultiplyShift(full(900, 900, 900, 900), full(0, 0, 0, 0), full(16, 16, 16, 16))
    small = TensorType(INT8, 0.125)
    nodes: list[tuple[QOp, Sequence[int], TensorType]] = [
        (convolved(by, weights(4, 3, 3, 3), Padding(1, 0, 2, 1), 2), (4, 3, 2), small),
        (MaxPool(3, 1, Padding(2, 0, 1, 1)), (4, 4, 1), small),
        (Slice(1, 2), (2, 4, 1), small),
        (Upsample(2), (2, 8, 2), small),
        (
            QDense(
                weights(5, 32).astype(np.int8),
                DataType(4, True),
                MultiplyShift(*(full(*[n] * 5) for n in (900, 0, 16))),
            ),
            (5, 1, 1),
            small,
        ),
        (Softmax(1), (5, 1, 1), small),
        (Segmentation((), 5, True), (5, 1, 1), small),
    ]
    model = exported(chain(*nodes), "qonnx")
    arrays = {array.name: array for array in model.graph.initializer}
    kinds = {node.op_type: node for node in model.graph.node}
    attributes = {kind: {a.name: list(a.ints) or a.i for a in node.attribute} for kind, node in kinds.items()}
    assert attributes["Conv"] == {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 2, 1], "group": 1}
    assert attributes["MaxPool"] == {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [2, 0, 1, 1]}
    assert attributes["Softmax"] == {"axis": 1}
    quants = [{a.name: a.i for a in node.attribute} for node in model.graph.node if node.op_type == "Quant"]
    assert [quant["narrow"] for quant in quants] == [0, 1, 0, 1, 0]  # the image, then weights and map of two layers
    assert [quant["signed"] for quant in quants] == [0, 1, 1, 1, 1]
    ends = [np.frombuffer(arrays[name].raw_data, np.int64).tolist() for name in kinds["Slice"].input[1:]]
    assert ends == [[1], [3], [1]]
    assert np.frombuffer(arrays[kinds["Resize"].input[2]].raw_data, np.float32).tolist() == [1, 1, 2, 2]
    assert np.frombuffer(arrays[kinds["Reshape"].input[1]].raw_data, np.int64).tolist() == [1, 5, 1, 1]
    assert [output.name for output in model.graph.output] == [kinds["Softmax"].output[0]]
    assert [side.dim_value for side in model.graph.input[0].type.tensor_type.shape.dim] == [1, 3, 4, 4]


def test_export_of_softmax_over_parts_is_refused() -> None:
    for groups, shape in ((2, (4, 1, 1)), (1, (4, 1, 2)), (1, (4, 2, 1))):
        by = MultiplyShift(*(full(*[n] * 4) for n in (900, 0, 16)))
        kernel = weights(4, 3, 5 - shape[1], 5 - shape[2])
        network = chain(
            (convolved(by, kernel), shape, TensorType(INT8, 0.125)), (Softmax(groups), shape, TensorType(INT8, 0.125))
        )
        with raises(UnsupportedError, reason="its softmax is over parts of the channels, or over several positions"):
            to_onnx(network)


@cases("name", ["leaky", "logistic", "gated"])
def test_exported_table_becomes_a_gather_of_its_floats(name: str) -> None:
    """Compare with onnx's reference implementation for every integer of the table."""
    network = read_model(INTEGERS[name](), "net.onnx", "net").quantized
    assert network is not None
    node, source = network.nodes[-1], network.nodes[-2]
    model = exported(network, "qonnx")
    arrays = {array.name: np.frombuffer(array.raw_data, np.float32) for array in model.graph.initializer}
    divided, added, cast, gathered, typed = model.graph.node[-5:]
    assert [part.op_type for part in model.graph.node[-5:]] == ["Div", "Add", "Cast", "Gather", "Quant"]
    integers = np.arange(source.type.datatype.low, source.type.datatype.high + 1)
    floats = ((integers - source.type.zero_point) * source.type.scale).astype(np.float32)
    places = (floats / arrays[divided.input[1]] + arrays[added.input[1]]).astype(np.int64)
    assert cast.attribute[0].i == 7
    expected = (node.op.table.values - node.type.zero_point) * node.type.scale  # type: ignore[union-attr]
    np.testing.assert_allclose(arrays[gathered.input[0]][places], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(arrays[typed.input[1]], node.type.scale, rtol=1e-6)
    assert [arrays[name].item() for name in typed.input[2:]] == [node.type.zero_point, node.type.datatype.bits]
