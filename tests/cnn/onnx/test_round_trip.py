"""Tests that quantised networks, exported in both dialects and read again, have the same layers and integers.

Further tests change the exported file as other tools may do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from cnn import zoo
from cnn.datatype import INT8, TERNARY, DataType, TensorType
from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.maps import Shape
from cnn.network import Network
from cnn.onnx.file import parsed
from cnn.onnx.network import network_of, read_model, read_onnx
from cnn.onnx.quantised.export import DIALECTS, to_onnx
from cnn.onnx.quantised.stated import MULTIPLIERS, REQUANTISER
from cnn.ops import Detection, QActivate, QAdd, QAveragePool, QMultiply, QOp, ScaledYolo
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise, quantise_format
from cnn.quantized import QNode, QuantizedNetwork, has_integers
from cnn.requantise import HALVES, MultiplyShift, Requantiser, Thresholds
from systolic.loading import load_model
from tests.support import networks
from tests.support.cases import cases
from tests.support.onnx.chains import chain, convolved, full, weights
from tests.support.onnx.qonnx_execution import executed
from tests.support.onnx.yolov8 import Detector, Form

Array = np.ndarray[Any, Any]

SIZES = dict.fromkeys(("shapes", "unet-small", "squeezenet", "skynet", "yolo-fastest"), 32)
SEED = 1


class Curved(Detector):
    """Writer of a detector with another activation function after its convolutions."""

    def __init__(self, function: str) -> None:
        super().__init__(Form(4, 1, 32, 4))
        self.function = function

    def conv(self, source: str, filters: int, size: int = 1, stride: int = 1, curve: bool = True) -> str:
        name = super().conv(source, filters, size, stride, curve and self.function == "silu")
        if curve and self.function != "silu":
            last = self.writer.put("Tanh", [self.writer.put("Softplus", [name])])
            curved = (
                self.writer.put("Mul", [name, last]) if self.function == "mish" else self.writer.put("Sigmoid", [name])
            )
            self.channels[curved] = self.channels[name]
            return curved
        return name


def curved(function: str) -> Network:
    """Return the detector's network up to the maps that the head reads."""
    detector = Curved(function)
    return network_of(detector.writer.model(detector.sizes(), (1, 3, 32, 32)), "net.onnx", "net")


MADE: dict[str, Callable[[], Network]] = {
    **{function: partial(curved, function) for function in ("silu", "mish", "sigmoid")},
    "branches": networks.branches,
    "classifier": networks.classifier,
}


@cache
def quantised_network(name: str, bits: int) -> QuantizedNetwork:
    """Return a small built-in network or one of MADE, calibrated on wave images and quantised to ``bits``."""
    side = SIZES.get(name)
    if name in MADE:
        network = MADE[name]()
    else:
        model = load_model(name, seed=None if zoo.has_numbers(name) else SEED, size=(side, side) if side else None)
        if model.quantized is not None:
            return model.quantized
        network = model.network
    pictures = networks.pictures(network.input_shape, 2)
    return quantise_format(network, calibrate(network, pictures, bits=min(bits, 12)), bits)


def read_again(data: bytes, folder: Path) -> QuantizedNetwork:
    """Write the data to a file and read it as any ONNX file."""
    path = folder / "net.onnx"
    path.write_bytes(data)
    read = read_onnx(path)
    assert read.quantized is not None
    assert not read.notes
    return read.quantized


def ends_of(network: QuantizedNetwork) -> list[int]:
    """Return the nodes with integers that no other node on the accelerator reads."""
    nodes = network.nodes
    inside = [i for i in range(len(nodes)) if has_integers(nodes, i)]
    read = {i for index in inside for i in nodes[index].inputs}
    return [i for i in inside if i not in read]


def outputs_of(network: QuantizedNetwork, picture: Array) -> list[Array]:
    """Return the integers of the network's outputs, counted from the lowest."""
    arrays, ends = run_integer(network, picture), ends_of(network)
    types = [network.nodes[i].type.datatype for i in ends]
    return [(np.int64(0) + arrays[i] - type_.low) // type_.step for i, type_ in zip(ends, types, strict=True)]


def check_equal(first: QuantizedNetwork, second: QuantizedNetwork) -> None:
    for seed in range(2):
        picture = networks.picture(first.input_shape, seed)
        ours, theirs = outputs_of(first, picture), outputs_of(second, picture)
        assert len(ours) == len(theirs) >= 1
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other.reshape(mine.shape))
            assert len(np.unique(mine)) > 1


def parts(network: QuantizedNetwork) -> list[tuple[str, str]]:
    """Return the operation and the requantiser kind of each layer, which determine its hardware."""
    nodes = [node for node in network.nodes if not isinstance(node.op, Detection)]
    return [(type(node.op).__name__, type(node.requantiser).__name__) for node in nodes]


NAMES = ("resnet8", "ds-cnn", *SIZES, *MADE)
FEW_BITS = [("resnet8", 4), ("cnv-w1a1", 8), ("ultranet-small", 8), ("ultranet-skip", 8)]
ROWS = [
    *((name, bits, DIALECTS[(i + j) % 2]) for i, name in enumerate(NAMES) for j, bits in enumerate((8, 16))),
    *((name, bits, dialect) for name, bits in FEW_BITS for dialect in DIALECTS),
]
"""Cases: every network in both dialects and with both numbers of bits, but not in each combination."""


def is_long(name: str, bits: int) -> bool:
    return name in ("squeezenet", "yolo-fastest") or (bits == 16 and name != "ds-cnn")


@pytest.mark.parametrize(
    ("name", "bits", "dialect"),
    [pytest.param(*row, marks=pytest.mark.engine) if is_long(*row[:2]) else row for row in ROWS],
)
def test_exported_network_is_read_again_with_equal_integers(name: str, bits: int, dialect: str, tmp_path: Path) -> None:
    network = quantised_network(name, bits)
    read = read_again(to_onnx(network, dialect), tmp_path)
    assert parts(read) == parts(network)
    check_equal(network, read)


@cases("name", ["resnet8", "ds-cnn", "silu", "ultranet-small"])
def test_exported_thresholds_alone_give_equal_integers(name: str) -> None:
    """Remove the project's own attributes, as tools do that do not know them."""
    network = quantised_network(name, 8)
    model = bare(to_onnx(network, "finn"))
    read = read_model(model, "net.onnx", "net").quantized
    assert read is not None
    assert sum(isinstance(node.requantiser, Thresholds) for node in read.nodes) >= 5
    check_equal(network, read)


@cases("dialect", DIALECTS)
@cases("name", ["resnet8", "shapes", "silu"])
def test_float_network_of_an_exported_file_is_near_its_integers(name: str, dialect: str, tmp_path: Path) -> None:
    """Expect an SQNR of at least 20 dB, an error of a tenth, because the design's SQNR is measured against it."""
    network = quantised_network(name, 8)
    path = tmp_path / "net.onnx"
    path.write_bytes(to_onnx(network, dialect))
    read = read_onnx(path)
    assert read.quantized is not None
    picture = networks.picture(network.input_shape)
    floats = run_float(read.network, picture.astype(np.float32) / np.float32(255))
    integers, (index, *_) = run_integer(read.quantized, picture), ends_of(read.quantized)
    values = dequantise(integers[index], read.quantized.nodes[index].type)  # type: ignore[arg-type]
    error = floats[index].astype(np.float64) - values
    assert (error**2).sum() * 10**2 < (values.astype(np.float64) ** 2).sum()


def bare(data: bytes) -> Any:
    """Return the model without the integers that are stored next to its floats."""
    model = parsed(data, "net.onnx")
    for node in model.graph.node:
        for place in reversed([i for i, each in enumerate(node.attribute) if each.name in (REQUANTISER, MULTIPLIERS)]):
            del node.attribute[place]
    return model


@cases("dialect", DIALECTS)
def test_heads_survive_export_with_all_their_maps(dialect: str, tmp_path: Path) -> None:
    for name in ("shapes", "yolo-fastest"):
        network = quantised_network(name, 8)
        read = read_again(to_onnx(network, dialect), tmp_path)
        heads = [[node.op for node in each.nodes if isinstance(node.op, Detection)] for each in (network, read)]
        assert heads[0] == heads[1]
        assert heads[0]


def test_head_of_several_maps_survives_export_with_all_of_them(tmp_path: Path) -> None:
    picture, boxes = one_layer().nodes
    classes = replace(boxes, name="classes", type=TensorType(INT8, 0.25))
    head = ScaledYolo(((3.0, 4.0),), 1, False, scale_xy=2.0)
    joined = QNode("head", head, (1, 2), Shape(6, 2, 2), boxes.type, "net:4")
    network = QuantizedNetwork("net", (picture, boxes, classes, joined))
    read = read_again(to_onnx(network), tmp_path)
    assert [(node.op, node.inputs) for node in read.nodes[3:]] == [(head, (1, 2))]
    assert [node.type.scale for node in read.nodes[1:3]] == [0.125, 0.25]


def test_heads_are_omitted_with_a_note_if_their_tensors_are_renamed(tmp_path: Path) -> None:
    model = parsed(to_onnx(quantised_network("shapes", 8)), "net.onnx")
    last = model.graph.output[0].name
    model.graph.output[0].name = "global_out"
    next(node for node in model.graph.node if last in node.output).output[0] = "global_out"
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    read = read_onnx(path)
    (note,) = read.notes
    assert note.startswith("net.onnx: its heads are left out, since another tool renamed the tensors that they read")
    assert not any(isinstance(node.op, Detection) for node in read.network.nodes)


# --- executed by qonnx


def steps_of_qonnx(network: QuantizedNetwork, dialect: str) -> int:
    """Return the greatest difference of any output from qonnx's, in steps."""
    picture, worst = networks.picture(network.input_shape), 0
    ours = outputs_of(network, picture)
    for index, floats, mine in zip(ends_of(network), executed(to_onnx(network, dialect), picture), ours, strict=True):
        type_ = network.nodes[index].type
        theirs = np.rint(floats.reshape(-1) / type_.scale) + type_.zero_point - type_.datatype.low
        worst = max(worst, int(np.abs(theirs - mine.reshape(-1)).max()))
    return worst


@pytest.mark.engine
def test_exported_tables_give_equal_integers_in_qonnx() -> None:
    """End the network at its last table, because 16-bit layers after it would round floats in qonnx."""
    network = quantised_network("silu", 8)
    body = QuantizedNetwork("net", network.nodes[: max(curves_of(network)) + 1])
    assert steps_of_qonnx(body, "finn") == 0


def curves_of(network: QuantizedNetwork) -> list[int]:
    return [i for i, node in enumerate(network.nodes) if isinstance(node.op, QActivate)]


def test_exported_add_of_12_bits_is_near_qonnx() -> None:
    network = networks.branches()
    wide = quantise(network, calibrate(network, networks.pictures(network.input_shape), bits=12), activation_bits=12)
    (index,) = (i for i, node in enumerate(wide.nodes) if isinstance(node.op, QAdd))
    assert len({wide.nodes[i].type.scale for i in wide.nodes[index].inputs}) == 2
    body = QuantizedNetwork("net", wide.nodes[: index + 1])
    assert wide.nodes[index].type.datatype == DataType(12, True)
    for dialect in DIALECTS:
        assert steps_of_qonnx(body, dialect) <= 2  # three layers in turn, each within one step


# --- changes by other tools


BY = Requantiser(full(500, -700, 0), full(40900, 40700, 40800), full(4090, 4070, 4081), full(22, 22, 22))


def one_layer() -> QuantizedNetwork:
    return chain((convolved(BY, weights(3, 3, 3, 3)), (3, 2, 2), TensorType(INT8, 0.125)))


def last_of(model: Any) -> Any:
    return model.graph.node[-1]


def read_last(model: Any) -> Any:
    quantised_network = read_model(model, "net.onnx", "net").quantized
    assert quantised_network is not None
    return quantised_network.nodes[-1].requantiser


def same(first: Any, second: Any) -> bool:
    pairs = zip(vars(first).values(), vars(second).values(), strict=True)
    return type(first) is type(second) and all(np.array_equal(*pair) for pair in pairs)


def with_rows(change: Callable[[Array], Array], dialect: str = "qonnx") -> Any:
    """Return the layer's file with changed integers."""
    model = parsed(to_onnx(one_layer(), dialect), "net.onnx")
    (attribute,) = (each for each in last_of(model).attribute if each.name == REQUANTISER)
    attribute.t.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(attribute.t).copy())))
    return model


def test_stored_integers_are_read_if_the_floats_match() -> None:
    for dialect in DIALECTS:
        assert same(read_last(with_rows(lambda rows: rows, dialect)), BY)
    without = read_last(bare(to_onnx(one_layer())))
    assert without.negative.tolist() == [4090, 4070, 4080]


ODD = TensorType(INT8, 0.125, -3)
LINEAR = Requantiser(full(500, -700, 0), full(40900, 40700, 40800), full(40900, 40700, 40800), full(22, 22, 22))
LATE = MultiplyShift(full(40900, 40700, 0), full(123_456_789, -98_765_432, 9 << 22), full(22, 22, 22))
MEAN = Requantiser(full(12, 12, 12), full(60001, 60001, 60001), full(60001, 60001, 60001), full(17, 17, 17))
BEHIND: dict[str, tuple[QOp, tuple[int, ...], TensorType]] = {
    "convolution": (convolved(BY, weights(3, 3, 1, 1), around=-3), (3, 2, 2), TensorType(INT8, 0.125)),
    "late bias": (convolved(LATE, weights(3, 3, 1, 1), around=-3), (3, 2, 2), TensorType(INT8, 0.125, 5)),
    "average": (QAveragePool(MEAN), (3, 1, 1), TensorType(INT8, 0.0683)),
}


@cases("dialect", DIALECTS)
@cases("name", BEHIND)
def test_zero_points_survive_export(name: str, dialect: str) -> None:
    """Use numbers that floats do not determine: slopes that are not a tenth, biases between sums, and close scales."""
    network = chain((convolved(LINEAR, weights(3, 3, 3, 3)), (3, 2, 2), ODD), BEHIND[name])
    ours, theirs = network.nodes[-1], read_last(parsed(to_onnx(network, dialect), "net.onnx"))
    assert same(theirs, ours.requantiser)


@cases("dialect", DIALECTS)
def test_add_multipliers_survive_export(dialect: str) -> None:
    """Use multipliers that are twice the ratio of the scales, and zero points on both inputs."""
    picture, first = chain((convolved(LINEAR, weights(3, 3, 3, 3)), (3, 2, 2), ODD)).nodes
    second = replace(first, name="second", type=replace(ODD, zero_point=7))
    by = Requantiser(full(-8, -8, -8), full(40000, 40000, 40000), full(40000, 40000, 40000), full(17, 17, 17))
    added = QNode("sum", QAdd((2, 2), by), (1, 2), first.shape, TensorType(INT8, 0.2048), "net:4")
    network = QuantizedNetwork("net", (picture, first, second, added))
    read = read_model(parsed(to_onnx(network, dialect), "net.onnx"), "net.onnx", "net").quantized
    assert read is not None
    assert read.nodes[-1].op.multipliers == (2, 2)  # type: ignore[union-attr]
    assert same(read.nodes[-1].requantiser, by)


def reading_two(op: QOp, type_: TensorType, *inputs: int) -> QuantizedNetwork:
    """Return a network with a layer that reads two convolutions of one scale."""
    picture, first = chain((convolved(LINEAR, weights(3, 3, 3, 3)), (3, 2, 2), TensorType(INT8, 0.125))).nodes
    second = QNode("second", convolved(LINEAR, weights(3, 3, 3, 3, seed=2)), (0,), first.shape, first.type, "net:3")
    return QuantizedNetwork("net", (picture, first, second, QNode("last", op, inputs, first.shape, type_, "net:4")))


def offset_pixels() -> QuantizedNetwork:
    picture, first = one_layer().nodes
    return QuantizedNetwork("net", (replace(picture, type=replace(picture.type, zero_point=199)), first))


TERNARY_LATE = MultiplyShift(full(5000, 7000, 0), full(1 << 21, -(1 << 20), 1 << 22), full(22, 22, 22))
SHARED = Requantiser(full(0, 0, 0), full(40000, 40000, 40000), full(40000, 40000, 40000), full(19, 19, 19))
SUM = TensorType(INT8, 0.125 * 2**19 / 40000)
PRODUCT = TensorType(INT8, 0.125**2 * 2**19 / 40000)
MADE_BY_HAND: dict[str, Callable[[], QuantizedNetwork]] = {
    "pixels with a zero point": offset_pixels,
    "ternary": lambda: chain(
        (convolved(TERNARY_LATE, weights(3, 3, 3, 3)), (3, 2, 2), TensorType(TERNARY, 1.0)),
        (convolved(LINEAR, weights(3, 3, 1, 1)), (3, 2, 2), TensorType(INT8, 0.125)),
    ),
    "unsigned": lambda: reading_two(QAdd((1, 1), SHARED), TensorType(DataType(4, False), 0.125 * 2**19 / 40000), 1, 2),
    "three maps": lambda: reading_two(QAdd((1, 1, 1), SHARED), SUM, 1, 2, 1),
    "product": lambda: reading_two(QMultiply(SHARED), PRODUCT, 1, 2),
}


@cases("dialect", DIALECTS)
@cases("name", ["pixels with a zero point", "ternary", "three maps", "product"])
def test_layer_exported_as_several_operators_is_one_layer_again(name: str, dialect: str) -> None:
    network = MADE_BY_HAND[name]()
    read = read_model(parsed(to_onnx(network, dialect), "net.onnx"), "net.onnx", "net").quantized
    assert read is not None
    check_values(network, read)
    late = [[isinstance(node.requantiser, MultiplyShift) for node in each.nodes] for each in (network, read)]
    assert sum(late[0]) == sum(late[1])
    assert len(read.nodes) == len(network.nodes) + (name == "pixels with a zero point" or (name, dialect) == QONNX_CUTS)


QONNX_CUTS = ("ternary", "qonnx")
"""The case in which a layer after the convolution clips the lowest of the 2-bit values."""


def check_values(network: QuantizedNetwork, read: QuantizedNetwork) -> None:
    for seed in range(3):
        picture = networks.picture(network.input_shape, seed)
        arrays = [run_integer(each, picture)[-1] for each in (network, read)]
        zeros = [each.nodes[-1].type.zero_point for each in (network, read)]
        ours, theirs = (np.int64(0) + array - zero for array, zero in zip(arrays, zeros, strict=True))
        np.testing.assert_array_equal(ours, theirs)
        assert len(np.unique(ours)) > 1


@cases("dialect", DIALECTS)
def test_unsigned_output_keeps_its_bias_between_sums(dialect: str) -> None:
    network = MADE_BY_HAND["unsigned"]()
    read = read_model(parsed(to_onnx(network, dialect), "net.onnx"), "net.onnx", "net").quantized
    assert read is not None
    assert isinstance(read.nodes[-1].requantiser, MultiplyShift)
    check_values(network, read)


def set_rows(rows: Array, place: tuple[int, int], value: int) -> Array:
    rows[place] = value
    return rows


CHANGES: dict[str, Callable[[Array], Array]] = {
    "another bias": lambda rows: set_rows(rows, (0, 0), 600),
    "another multiplier": lambda rows: set_rows(rows, (1, 1), 41500),
    "another slope": lambda rows: set_rows(rows, (2, 2), 0),
    "another shift": lambda rows: set_rows(rows, (3, 0), 21),
    "no shift": lambda rows: set_rows(rows, (3, 0), 0),
    "a shift of 64": lambda rows: set_rows(rows, (3, 0), 64),
    "a multiplier of 0": lambda rows: set_rows(rows, (1, 0), 0),
    "the least integer": lambda rows: set_rows(rows, (0, 0), -(1 << 63)),
    "a channel more": lambda rows: np.concatenate([rows, rows[:, :1]], axis=1),
    "no channels": lambda rows: rows[:, :0],
    "floats": lambda rows: rows.astype(np.float32),
    "fewer bits": lambda rows: rows.astype(np.int32),
    "a row more": lambda rows: np.concatenate([rows, rows[:1]]),
    "another form": lambda rows: rows[1:],
    "one side": lambda rows: rows.ravel(),
}


@cases("name", CHANGES)
def test_stored_integers_that_the_floats_contradict_are_ignored(name: str) -> None:
    for dialect in DIALECTS:
        model = with_rows(CHANGES[name], dialect)
        assert same(read_last(model), read_last(bare(model.SerializeToString())))


@cases("zero", [0, 1, -3])
@cases("halves", HALVES)
def test_rounding_of_halves_survives_export(halves: str, zero: int) -> None:
    """Check both dialects for each form of requantiser."""
    multiplier, shift = BY.multiplier, BY.shift
    forms: list[Requantiser | MultiplyShift] = [
        Requantiser(BY.bias, multiplier, multiplier, shift, halves=halves),
        MultiplyShift(multiplier, multiplier * 9, shift, halves=halves),
    ]
    for by in forms:
        network = chain((convolved(by, weights(3, 3, 3, 3)), (3, 2, 2), TensorType(INT8, 0.125, zero)))
        for dialect in DIALECTS:
            assert same(read_last(parsed(to_onnx(network, dialect), "net.onnx")), by)


@cases("factor", [0.98, 1.02])
def test_floats_changed_by_another_tool_take_precedence(factor: float) -> None:
    model = parsed(to_onnx(one_layer()), "net.onnx")
    name = last_of(model).input[1]
    (scale,) = (array for array in model.graph.initializer if array.name == name)
    scale.CopyFrom(numpy_helper.from_array(np.float32(0.125 * factor) + np.zeros((), np.float32), name))
    by = read_last(model)
    assert same(by, read_last(bare(model.SerializeToString())))
    np.testing.assert_allclose(by.multiplier / BY.multiplier, 1 / factor, rtol=1e-3)


@cases("multipliers", [(127,), (0, 127), (1, 127), (127, 127, 127), (1 << 15, 1 << 15)])
def test_stored_multipliers_that_the_scales_contradict_are_ignored(multipliers: tuple[int, ...]) -> None:
    network = quantised_network("branches", 8)
    (index,) = (i for i, node in enumerate(network.nodes) if isinstance(node.op, QAdd))
    model = parsed(to_onnx(QuantizedNetwork("net", network.nodes[: index + 1])), "net.onnx")
    (attribute,) = (each for each in last_of(model).attribute if each.name == MULTIPLIERS)
    attribute.ints[:] = multipliers
    ours, theirs = (read_model(each, "net.onnx", "net").quantized for each in (model, bare(model.SerializeToString())))
    assert ours is not None
    assert theirs is not None
    assert ours.nodes[-1].op.multipliers == theirs.nodes[-1].op.multipliers  # type: ignore[union-attr]
    assert same(ours.nodes[-1].requantiser, theirs.nodes[-1].requantiser)
