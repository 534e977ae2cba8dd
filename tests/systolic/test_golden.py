"""Test the C++ golden program against the numpy golden model, and its errors for damaged files."""

from __future__ import annotations

import math
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

import numpy as np
import pytest

from boards.errors import (
    FileAccessError,
    InvalidValueError,
    MissingToolError,
    RangeError,
    ShapeError,
    ToolError,
)
from cnn.datatype import BIPOLAR, INT8, INT16, INT32, TERNARY, UINT8, DataType, TensorType
from cnn.integer_model import run_integer
from cnn.maps import Padding, Shape
from cnn.ops import (
    Concat,
    MaxPool,
    Pad,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QOp,
    Region,
    Reorg,
    Slice,
    Softmax,
    TopK,
    Upsample,
    Yolo,
    label_type,
)
from cnn.ops.softmax import SHARES, softmax_of
from cnn.quantized import QNode, QuantizedNetwork, has_integers
from cnn.requantise import MultiplyShift, Requantiser, Requantising, Thresholds
from cnn.tables import Table
from systolic.golden import (
    build_golden,
    checksum,
    checksums,
    first_difference,
    golden_files,
    run_golden,
)
from systolic.loading import load_model
from systolic.model import Calibration, networks, quantise_model, sample_pictures
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.kinds import as_kind

UINT4, INT3, UINT32 = DataType(4, False), DataType(3, True), DataType(32, False)
INT4, UINT2 = DataType(4, True), DataType(2, False)
NONE, AROUND = Padding(), Padding(1, 1, 1, 1)

# ---------------------------------------------------------------- networks with every operation


@dataclass
class Builder:
    """A network under construction, with random numbers. Each method adds a layer and returns its node's index."""

    random: np.random.Generator
    picture: Shape
    nodes: list[QNode] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes.append(QNode("input", QInput(), (), self.picture, TensorType(UINT8, 1 / 255), "test:1"))

    def put(self, name: str, op: QOp, inputs: tuple[int, ...], shape: Shape, out: DataType | None = None) -> int:
        type = self.nodes[inputs[0]].type if out is None else TensorType(out, 0.1)
        self.nodes.append(QNode(name, op, inputs, shape, type, f"test:{len(self.nodes) + 1}"))
        return len(self.nodes) - 1

    def requantiser(self, channels: int, spread: float, out: DataType) -> Requantiser:
        """Return a requantiser that maps sums of size ``spread`` to about the output's range.

        Some outputs saturate. The slopes vary per channel.
        """
        multiplier = self.random.integers(1 << 14, 1 << 15, channels)
        slope = self.random.choice([0.0, 0.1, 1.0, 1.9], channels)
        wanted = np.log2(multiplier * max(spread, 1) / max(out.high, 1)) - self.random.uniform(-2, 1, channels)
        bias = self.random.integers(-int(spread / 2) - 1, int(spread / 2) + 2, channels)
        return Requantiser(
            bias, multiplier, np.rint(multiplier * slope).astype(np.int64), np.clip(wanted, 1, 47).astype(np.int64)
        )

    def requantising(self, form: str, channels: int, spread: float, out: DataType) -> Requantising:
        """Return requantising numbers of the given form.

        Some channels rise and some fall, and some values reach both ends of the range.
        """
        plain = self.requantiser(channels, spread, out)
        if form == "requantiser":
            return plain
        signs = self.random.choice([-1, 1], channels)
        if form == "multiply_shift":
            offset = self.random.integers(-(1 << 20), 1 << 20, channels)
            return MultiplyShift(signs * plain.multiplier, plain.bias * plain.multiplier + offset, plain.shift)
        edges = np.sort(self.random.normal(0, spread, (channels, out.levels)), axis=1)
        return Thresholds(np.rint(edges).astype(np.int64), signs < 0)

    def convolution(
        self,
        name: str,
        at: int,
        filters: int,
        kernel: tuple[int, int] = (3, 3),
        stride: int = 1,
        padding: Padding = AROUND,
        groups: int = 1,
        weight_type: DataType = INT8,
        out: DataType = INT8,
        form: str = "requantiser",
        dilation: tuple[int, int] = (1, 1),
    ) -> int:
        source = self.nodes[at]
        weights = self.weights((filters, source.shape.channels // groups, *kernel), weight_type)
        spread = self.spread(at, weights[0].size, weight_type)
        by = self.requantising(form, filters, spread, out)
        op = QConvolution(weights, weight_type, by, stride, padding, groups, dilation=dilation)
        high = (source.shape.height + padding.top + padding.bottom - op.window[0]) // stride + 1
        wide = (source.shape.width + padding.left + padding.right - op.window[1]) // stride + 1
        return self.put(name, op, (at,), Shape(filters, high, wide), out)

    def dense(self, name: str, at: int, outputs: int, out: DataType = INT16, form: str = "requantiser") -> int:
        weights = self.weights((outputs, self.nodes[at].shape.values), INT8)
        r = self.requantising(form, outputs, self.spread(at, weights.shape[1], INT8), out)
        return self.put(name, QDense(weights, INT8, r), (at,), Shape(outputs, 1, 1), out)

    def average(self, name: str, at: int, form: str = "requantiser") -> int:
        shape = self.nodes[at].shape
        spread = shape.height * shape.width * self.nodes[at].type.datatype.high / 4
        op = QAveragePool(self.requantising(form, shape.channels, spread, INT8))
        return self.put(name, op, (at,), Shape(shape.channels, 1, 1), INT8)

    def add(self, name: str, *at: int, out: DataType = INT8, form: str = "requantiser") -> int:
        multipliers = tuple(int(m) for m in self.random.integers(1, 1 << 14, len(at)))
        shape = self.nodes[at[0]].shape
        spread = max(multipliers) * self.nodes[at[0]].type.datatype.high
        r = self.requantising(form, shape.channels, spread, out)
        return self.put(name, QAdd(multipliers, r), at, shape, out)

    def curve(self, name: str, at: int) -> int:
        source = self.nodes[at]
        values = np.random.default_rng(at).integers(-(1 << 15), 1 << 15, source.type.datatype.levels + 1)
        return self.put(name, QActivate(Table(values.astype(np.int64))), (at,), source.shape, INT16)

    def pool(self, name: str, at: int, size: int, stride: int, padding: Padding = NONE) -> int:
        shape = self.nodes[at].shape
        high = (shape.height + padding.top + padding.bottom - size) // stride + 1
        wide = (shape.width + padding.left + padding.right - size) // stride + 1
        return self.put(name, MaxPool(size, stride, padding), (at,), Shape(shape.channels, high, wide))

    def concat(self, name: str, *at: int) -> int:
        shape = self.nodes[at[0]].shape
        return self.put(name, Concat(), at, replace(shape, channels=sum(self.nodes[i].shape.channels for i in at)))

    def slice(self, name: str, at: int, first: int, channels: int) -> int:
        return self.put(name, Slice(first, channels), (at,), replace(self.nodes[at].shape, channels=channels))

    def reorg(self, name: str, at: int, s: int) -> int:
        shape = self.nodes[at].shape
        return self.put(name, Reorg(s), (at,), Shape(shape.channels * s * s, shape.height // s, shape.width // s))

    def pad(self, mode: str, at: int, padding: Padding) -> int:
        shape = self.nodes[at].shape
        high, wide = shape.height + padding.top + padding.bottom, shape.width + padding.left + padding.right
        return self.put(mode, Pad(padding, mode), (at,), Shape(shape.channels, high, wide))

    def depth(self, name: str, at: int, s: int) -> int:
        shape = self.nodes[at].shape
        after = Shape(shape.channels * s * s, shape.height // s, shape.width // s)
        return self.put(name, Reorg(s, "block"), (at,), after)

    def choose(self, name: str, at: int, k: int, labels: bool = True) -> int:
        source = self.nodes[at]
        kind = label_type(source.shape.channels) if labels else source.type
        shape = replace(source.shape, channels=k)
        self.nodes.append(QNode(name, TopK(k, labels), (at,), shape, kind, f"test:{len(self.nodes) + 1}"))
        return len(self.nodes) - 1

    def shares(self, method: str, at: int) -> int:
        source = self.nodes[at]
        op = softmax_of(method, source.type)
        self.nodes.append(QNode(method, op, (at,), source.shape, SHARES, f"test:{len(self.nodes) + 1}"))
        return len(self.nodes) - 1

    def upsample(self, name: str, at: int, s: int) -> int:
        shape = self.nodes[at].shape
        return self.put(name, Upsample(s), (at,), Shape(shape.channels, shape.height * s, shape.width * s))

    def weights(self, shape: tuple[int, ...], type: DataType) -> np.ndarray:
        steps = self.random.integers(0, 2 * type.high // type.step + 1, shape)
        return (steps * type.step - type.high).astype(type.carrier)

    def spread(self, at: int, terms: int, weight_type: DataType) -> float:
        return 0.3 * weight_type.high * self.nodes[at].type.datatype.high * math.sqrt(terms)

    def network(self) -> QuantizedNetwork:
        return QuantizedNetwork("random \\ */ network", tuple(self.nodes))


def branches(seed: int) -> QuantizedNetwork:
    """Return a network with branches and even sides.

    It has slices, grouped and depthwise convolutions, additions of two and three maps, a reorg by 2, an upsample and
    concats.
    """
    b = Builder(np.random.default_rng(seed), Shape(3, 14, 10))
    stem = b.convolution("stem", 0, 8)
    half = b.slice("half", stem, 3, 4)
    mixed = b.convolution("mixed", half, 4, groups=2)
    summed = b.add("summed", half, mixed, half)
    deep = b.reorg("deep", summed, 2)
    down = b.convolution("down", stem, 8, stride=2, groups=8)
    low = b.convolution("low", down, 6, (5, 5), 2, Padding(2, 2, 2, 2))
    up = b.upsample("up", low, 2)
    cut = b.convolution("cut", b.curve("curve", up), 6, (2, 2), padding=Padding(0, 0, 0, 1))
    met = b.add("met", down, b.convolution("other", down, 8, (1, 1), padding=NONE))
    both = b.concat("both", deep, down, met, deep)
    head = b.convolution("head", both, 7, (1, 1), padding=NONE, out=INT16)
    b.dense("unread", cut, 3, INT32)
    b.put("region", Region(((1.0, 2.0),), 2, True), (head,), b.nodes[head].shape)
    return b.network()


def pools(seed: int) -> QuantizedNetwork:
    """Return a network with pools and odd sides.

    The pools have size/stride 2/2, 2/1, 3/2 and 3/3 with padding, and windows of a row and of a column. A convolution
    of stride 3, dense layers, softmax and top-k layers follow.
    """
    b = Builder(np.random.default_rng(seed), Shape(3, 23, 19))
    c1 = b.convolution("int", 0, 5, padding=Padding(1, 0, 2, 1))
    p1 = b.pool("main", c1, 2, 2)
    c2 = b.convolution("c2", p1, 6)
    p2 = b.pool("p2", c2, 2, 1, Padding(bottom=1, right=1))
    p3 = b.pool("p3", p2, 3, 2, Padding(1, 1, 1, 1))
    p4 = b.pool("p4", p2, 3, 3, Padding(2, 0, 2, 2))
    tall = b.nodes[c2].shape
    b.put(
        "row",
        MaxPool(1, 2, Padding(0, 2, 0, 1), 4),
        (c2,),
        Shape(6, (tall.height - 1) // 2 + 1, (tall.width - 1) // 2 + 1),
    )
    b.put("column", MaxPool(3, 1, Padding(1, 0, 1, 0), 1), (c2,), tall)
    c3 = b.convolution("c3", p3, 4, (3, 1), padding=Padding(1, 0, 1, 0))
    b.average("mean", p4)
    b.convolution("far", p2, 3, (3, 5), 3, Padding(0, 4, 0, 4))
    d1 = b.dense("d1", c3, 9, INT8)
    d2 = b.dense("d2", d1, 5)
    b.put("softmax", Softmax(), (d2,), b.nodes[d2].shape)
    b.choose("labels", d2, 3)
    b.choose("values", d2, 3, labels=False)
    b.choose("classes", p1, 1)
    for method, at in (("stable", d1), ("latency", p1), ("argmax", p2)):
        b.shares(method, at)
    for mode, sides in (("edge", Padding(1, 0, 9, 2)), ("reflect", Padding(2, 1, 0, 3)), ("wrap", Padding(0, 3, 2, 1))):
        b.pad(mode, p3, sides)
    b.convolution("apart", p2, 4, padding=Padding(2, 3, 2, 1), dilation=(2, 3))
    return b.network()


def types(seed: int) -> QuantizedNetwork:
    """Return a network with datatypes from UINT4 to UINT32, weights of one, two and four bytes, and a reorg by 3."""
    b = Builder(np.random.default_rng(seed), Shape(9, 15, 9))
    r3 = b.reorg("r3", 0, 3)
    c1 = b.convolution("c1", r3, 4, out=UINT4)
    c2 = b.convolution("c2", c1, 4, weight_type=INT3, out=INT16)
    c3 = b.convolution("c3", c2, 3, (1, 1), padding=NONE, weight_type=DataType(12, True), out=INT32)
    b.pool("wide", c3, 2, 1, Padding(1, 1, 0, 0))
    c4 = b.convolution("c4", c1, 3, (1, 1), padding=NONE, weight_type=DataType(20, True), out=UINT32)
    b.pool("unsigned", c4, 2, 2, Padding(1, 1, 1, 1))
    b.add("narrow", c2, c2, out=INT3)
    return b.network()


def heads(seed: int) -> QuantizedNetwork:
    """Return a network with three heads, each next to the layer that it reads, so host nodes are between integer
    layers."""
    b = Builder(np.random.default_rng(seed), Shape(3, 12, 16))
    trunk = b.convolution("stem", 0, 8)
    for number in range(3):
        trunk = b.convolution(f"trunk{number}", trunk, 8, stride=2)
        head = b.convolution(f"head{number}", trunk, 7, (1, 1), padding=NONE, out=INT16)
        detection = Yolo(((1.0, 2.0),), 2, True)
        b.put(f"boxes{number}", detection, (head,), b.nodes[head].shape)
    b.convolution("last", trunk, 4, (1, 1), padding=NONE)
    return b.network()


NETWORKS: dict[str, Callable[[], QuantizedNetwork]] = {
    "branches": lambda: branches(1),
    "pools": lambda: pools(2),
    "types": lambda: types(3),
    "trained": lambda: trained(4),
    "heads": lambda: heads(5),
}


def trained(seed: int) -> QuantizedNetwork:
    """Return a network as trained with quantisation.

    All operations use MultiplyShift or Thresholds. The datatypes are unsigned, BIPOLAR and TERNARY, and one layer moves
    space to depth.
    """
    b = Builder(np.random.default_rng(seed), Shape(3, 12, 16))
    c0 = b.convolution("c0", 0, 6, weight_type=INT4, out=UINT4, form="multiply_shift")
    c1 = b.convolution("c1", c0, 5, weight_type=TERNARY, out=UINT2, form="thresholds")
    c2 = b.convolution("c2", c1, 8, weight_type=BIPOLAR, out=BIPOLAR, form="thresholds")
    c3 = b.convolution("c3", c2, 8, padding=NONE, weight_type=BIPOLAR, out=TERNARY, form="thresholds")
    b.pool("least", c2, 2, 1, AROUND)
    depth = b.depth("depth", c0, 2)
    c4 = b.convolution("c4", depth, 6, (1, 1), padding=NONE, weight_type=INT4, out=INT8, form="multiply_shift")
    b.convolution("c5", c4, 6, stride=2, groups=6, weight_type=INT4, out=INT3, form="thresholds")
    b.average("mean", c3, "multiply_shift")
    b.add("sum", c4, c4, out=UINT8, form="thresholds")
    b.dense("d", c3, 7, UINT4, "thresholds")
    b.dense("e", c2, 7, INT16, "multiply_shift")
    return b.network()


def picture_of(network: QuantizedNetwork, seed: int = 0) -> np.ndarray:
    """Return a random picture of the network's input shape."""
    shape = network.input_shape
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (shape.channels, shape.height, shape.width), np.uint8)


def expected(network: QuantizedNetwork, picture: np.ndarray) -> dict[str, int]:
    """Return the checksum of each layer's integers, computed by the numpy model."""
    return checksums(network, run_integer(network, picture))


def write(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files into a folder and return the folder."""
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of each network's golden files. The first test that runs a program compiles it."""
    at = tmp_path_factory.mktemp("golden")
    return {name: write(at / name, golden_files(make())) for name, make in NETWORKS.items()}


@pytest.fixture
def branches_copy(folders: dict[str, Path], tmp_path: Path) -> Path:
    """Return a copy of a folder with its compiled program, which the test may damage."""
    build_golden(folders["branches"])
    return Path(shutil.copytree(folders["branches"], tmp_path / "copy"))


# ---------------------------------------------------------------- equality with the numpy model


@pytest.mark.parametrize("name", NETWORKS)
def test_golden_program_matches_numpy_in_every_layer(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    network = NETWORKS[name]()
    picture = picture_of(network)
    outputs = run_integer(network, picture)
    assert run_golden(folders[name], picture, dump=tmp_path) == checksums(network, outputs)
    for node, output in zip(network.nodes, outputs, strict=True):
        if output is not None:
            dumped = np.fromfile(tmp_path / f"{node.name}.{output.dtype.name}", output.dtype.newbyteorder("<"))
            np.testing.assert_array_equal(dumped.reshape(output.shape), output, node.name)
    assert len(list(tmp_path.iterdir())) == sum(output is not None for output in outputs)


@cases("value", [0, 1, 255])
def test_golden_program_matches_numpy_on_flat_pictures(value: int, folders: dict[str, Path]) -> None:
    network = pools(2)
    picture = np.full_like(picture_of(network), value)
    assert first_difference(expected(network, picture), run_golden(folders["pools"], picture)) is None


def test_golden_networks_cover_operations_and_ranges() -> None:
    """Expect every operation. Computed outputs must reach both ends of the range, values between, and negative
    values."""
    moves = {"QSoftmax", "MaxPool", "Concat", "Slice", "Reorg", "Upsample", "Softmax", "TopK", "Pad", "Region", "Yolo"}
    operations: set[str] = set()
    for name, make in NETWORKS.items():
        network = make()
        parts: list[np.ndarray] = []
        for node, output in zip(network.nodes, run_integer(network, picture_of(network)), strict=True):
            operations.add(type(node.op).__name__)
            if isinstance(node.op, (QConvolution, QAdd)) and output is not None:
                low, high = node.type.datatype.low, node.type.datatype.high
                parts.append(np.stack([output == low, output == high, output < 0]).reshape(3, -1))
        at_low, at_high, negative = np.concatenate(parts, axis=1).mean(axis=1)
        assert min(at_low, at_high) > 0.02, name
        assert at_low + at_high < 0.7, name
        assert negative > 0.1, name
    assert operations == {"QInput", "QConvolution", "QDense", "QAveragePool", "QAdd", "QActivate"} | moves


@pytest.mark.engine
def test_golden_program_runs_without_undefined_behaviour(folders: dict[str, Path], tmp_path: Path) -> None:
    for name in ("branches", "pools", "trained", "heads"):
        check_sanitised(NETWORKS[name](), folders[name], tmp_path / "picture")


SMALLER = {"ultranet": (64, 32), "ultranet-skip": (64, 32), "tiny-yolov2-coco": (64, 64), "tiny-yolov2-voc": (64, 64)}
"""Input sizes at which the sanitised program takes seconds. A larger input only repeats the same kinds of accesses."""


@pytest.mark.engine
@pytest.mark.parametrize("name", networks())
def test_golden_program_of_built_in_network_runs_without_undefined_behaviour(name: str, tmp_path: Path) -> None:
    model = load_model(name, seed=None if name == "shapes" else 1, size=SMALLER.get(name))
    network = quantise_model(model, Calibration(sample_pictures()[:1]))
    check_sanitised(network, write(tmp_path / "golden", golden_files(network)), tmp_path / "picture")


def check_sanitised(network: QuantizedNetwork, folder: Path, raw: Path) -> None:
    """Run the program under the sanitisers. Check that they report nothing and that every integer matches numpy."""
    checks = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-D_GLIBCXX_ASSERTIONS")
    warnings = ("-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror")
    picture = picture_of(network)
    program = build_golden(folder, ("-std=c++17", "-O1", *checks, *warnings))
    picture.tofile(raw)
    done = _start(program, folder / "golden.bin", raw)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    values = [node.shape.values for i, node in enumerate(network.nodes) if has_integers(network.nodes, i)]
    assert [int(count) for _, count, _ in lines] == values
    assert {name: int(value, 16) for name, _, value in lines} == expected(network, picture)


# ---------------------------------------------------------------- planted faults


def shift_offset(network: QuantizedNetwork, data: bytes, name: str) -> int:
    """Return the offset of a layer's first shift in golden.bin, by the layout that golden.cpp describes."""
    position = 12
    for node in network.nodes:
        if isinstance(node.op, QActivate):
            position += 4 + 4 * node.op.table.values.size
        if not isinstance(node.op, (QConvolution, QDense, QAveragePool, QAdd)):
            continue
        channels, weights, weight_bytes = struct.unpack_from("<IQI", data, position)
        position += 16 + weights * weight_bytes + 3 * 4 * channels
        if node.name == name:
            return int(position)
        position += 4 * channels
    raise AssertionError(name)


def below(network: QuantizedNetwork, name: str) -> set[str]:
    """Return the names of the layer and of every layer that depends on it."""
    found: set[int] = set()
    for index, node in enumerate(network.nodes):
        if node.name == name or found & set(node.inputs):
            found.add(index)
    return {network.nodes[i].name for i in found}


@cases("layer", ["stem", "summed", "down", "low", "head"])
def test_golden_program_shows_changed_shift_from_its_layer_on(
    layer: str, folders: dict[str, Path], branches_copy: Path
) -> None:
    network = branches(1)
    picture = picture_of(network)
    data = bytearray((folders["branches"] / "golden.bin").read_bytes())
    at = shift_offset(network, bytes(data), layer)
    shift = struct.unpack_from("<i", data, at)[0]
    op = next(node.op for node in network.nodes if node.name == layer)
    assert isinstance(op, QConvolution | QDense | QAdd | QAveragePool)
    assert shift == as_kind(Requantiser, op.requantiser).shift[0]
    struct.pack_into("<i", data, at, shift + 2)
    (branches_copy / "golden.bin").write_bytes(data)
    wanted, found = expected(network, picture), run_golden(branches_copy, picture)
    assert first_difference(wanted, found) == layer
    differing = {name for name in wanted if wanted[name] != found[name]}
    assert differing <= below(network, layer)


def test_golden_program_shows_changed_pixel_at_the_input(folders: dict[str, Path]) -> None:
    network = branches(1)
    picture = picture_of(network)
    wanted = expected(network, picture)
    picture[2, 13, 9] ^= 1
    assert first_difference(wanted, run_golden(folders["branches"], picture)) == "input"


# ---------------------------------------------------------------- damaged files


def _spoil(at: int, value: bytes) -> Callable[[bytes], bytes]:
    """Return a function that replaces the bytes at an offset."""
    return lambda data: data[:at] + value + data[at + len(value) :]


def _spoil_shift(value: int) -> Callable[[bytes], bytes]:
    """Return a function that replaces the first shift of the layer "mixed"."""
    return lambda data: _spoil(shift_offset(branches(1), data, "mixed"), struct.pack("<i", value))(data)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda data: data[:-1], r"golden\.bin must have \d+ bytes, but has \d+; is it truncated"),
        (lambda data: b"", r"golden\.bin must have \d+ bytes, but has 0; is it truncated"),
        (lambda data: data + b"\0", r"golden\.bin must have \d+ bytes, but has more; is it of another network\?"),
        (_spoil(0, b"PK"), r"golden\.bin must begin with GOLDEN01"),
        (_spoil(8, b"\x07"), r"golden\.bin: its count of layers must be 11, not 7"),
        (_spoil(12, b"\x09"), r"golden\.bin: stem: the channels must be 8, not 9"),
        (_spoil(23, b"\x80"), r"golden\.bin: stem: the count of weights must be 216, not -\d+"),
        (_spoil(24, b"\x02"), r"golden\.bin: stem: the bytes of a weight must be 1, not 2"),
        (_spoil_shift(0), r"golden\.bin: mixed: a shift must be 1 to 47, not 0"),
        (_spoil_shift(64), r"golden\.bin: mixed: a shift must be 1 to 47, not 64"),
    ],
)
def test_golden_program_refuses_damaged_parameters(
    spoil: Callable[[bytes], bytes], sentence: str, branches_copy: Path
) -> None:
    file = branches_copy / "golden.bin"
    file.write_bytes(spoil(file.read_bytes()))
    with raises(ToolError, tool="the golden program", reason="ended with status 1") as caught:
        run_golden(branches_copy, picture_of(branches(1)))
    assert re.search(sentence, caught.value.output), caught.value.output


def test_golden_program_refuses_overflowing_accumulator(branches_copy: Path) -> None:
    """Use a bias near 2^31, which a valid network does not have together with these weights."""
    network, file = branches(1), branches_copy / "golden.bin"
    data = file.read_bytes()
    at = shift_offset(network, data, "head") - 3 * 4 * 7
    file.write_bytes(_spoil(at, struct.pack("<7i", *(7 * [(1 << 31) - 1])))(data))
    with raises(ToolError, tool="the golden program", output="head: an accumulator does not fit 32 bits"):
        run_golden(branches_copy, picture_of(network))


def test_golden_program_refuses_unsorted_thresholds(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["trained"], tmp_path / "copy"))
    op = trained(4).nodes[2].op
    assert isinstance(op, QConvolution)
    assert isinstance(op.requantiser, Thresholds)
    row = op.requantiser.thresholds[2].astype("<i8").tobytes()
    data = (folder / "golden.bin").read_bytes()
    assert data.count(row) == 1
    (folder / "golden.bin").write_bytes(data.replace(row, op.requantiser.thresholds[2][::-1].astype("<i8").tobytes()))
    with raises(ToolError, output=f"{folder}/golden.bin: c1: thresholds must ascend"):
        run_golden(folder, picture_of(trained(4)))


def test_golden_program_refuses_pictures_of_other_sizes(folders: dict[str, Path]) -> None:
    picture = picture_of(branches(1))
    for shape, size in (((1, 29, 14), "406"), ((3, 14, 11), "more")):
        with raises(ToolError, tool="the golden program") as caught:
            run_golden(folders["branches"], np.zeros(shape, np.uint8))
        assert f"picture must have 420 bytes, but has {size}" in caught.value.output
    with raises(ShapeError, what="the picture", got="float32 3×14×10"):
        run_golden(folders["branches"], picture.astype(np.float32))
    with raises(ShapeError, what="the picture", got="uint8 420"):
        run_golden(folders["branches"], picture.reshape(-1))


def _start(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a command and return its status and output."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def test_golden_program_prints_usage_and_file_errors(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = folders["branches"]
    program, parameters = build_golden(folder), folder / "golden.bin"
    picture_of(branches(1)).tofile(tmp_path / "picture")
    for arguments in ([], [parameters], [parameters, "p", "--dumb", "d"], [parameters, "p", "--dump"]):
        done = _start(program, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "usage: golden golden.bin PICTURE [--dump DIR]\n"
    done = _start(program, parameters, tmp_path / "absent")
    assert (done.returncode, done.stderr) == (1, f"{tmp_path}/absent cannot be opened\n")
    done = _start(program, parameters, tmp_path / "picture", "--dump", tmp_path / "absent")
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path}/absent/input.uint8 cannot be opened for writing; DIR must exist\n"


# ---------------------------------------------------------------- compiling


def test_build_golden_compiles_once(folders: dict[str, Path]) -> None:
    first = build_golden(folders["branches"])
    written = first.stat().st_mtime_ns
    assert build_golden(folders["branches"]) == first
    assert first.stat().st_mtime_ns == written


def test_run_golden_without_compiler_raises_missing_tool_error(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with raises(MissingToolError, tool="the C++17 compiler 'no-such-compiler'"):
        run_golden(folders["branches"], picture_of(branches(1)))


def test_run_golden_of_bad_source_raises_tool_error(folders: dict[str, Path], tmp_path: Path) -> None:
    text = (folders["branches"] / "golden.cpp").read_bytes().replace(b"struct window_t", b"struct glass_t")
    folder = write(tmp_path / "broken", {"golden.cpp": text})
    with raises(ToolError, reason="does not compile the generated code") as caught:
        run_golden(folder, picture_of(branches(1)))
    assert re.search(r"golden\.cpp:\d+:.*error: .*window_t", caught.value.output)


def test_run_golden_without_source_raises_file_access_error(tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path / "golden.cpp")):
        run_golden(tmp_path, picture_of(branches(1)))


# ---------------------------------------------------------------- the generated text


def renamed(network: QuantizedNetwork, index: int, name: str) -> QuantizedNetwork:
    """Return the network with another name for one node."""
    nodes = list(network.nodes)
    nodes[index] = replace(nodes[index], name=name)
    return replace(network, nodes=tuple(nodes))


def test_golden_files_are_reproducible() -> None:
    files = [golden_files(branches(1)), golden_files(branches(1))]
    assert files[0] == files[1]
    assert sorted(files[0]) == ["golden.bin", "golden.cpp"]
    assert golden_files(branches(2))["golden.bin"] != files[0]["golden.bin"]


def test_golden_source_includes_only_the_standard_library() -> None:
    lines = golden_files(types(3))["golden.cpp"].decode().splitlines()
    includes = [line for line in lines if "#include" in line]
    assert len(includes) == 9
    assert all(line.endswith(">") and ".h" not in line for line in includes)
    assert not any("using namespace" in line for line in lines)
    assert lines[0].startswith("// random _ _ network: the golden model of every integer")
    assert lines[1].startswith("// Build:  g++ ")
    assert lines[2].endswith("PICTURE: raw uint8 [9][15][9], 1215 bytes")


@cases("name", ["../stem", "a\n", 'a"b', "1st", "", "été", "conv/1"])
def test_golden_files_with_bad_identifier_are_refused(name: str) -> None:
    with raises(InvalidValueError, what="an identifier", got=name):
        golden_files(renamed(branches(1), 4, name))


def test_golden_source_omits_names_of_host_layers() -> None:
    network = branches(1)
    text = golden_files(renamed(network, len(network.nodes) - 1, "*/ #error"))["golden.cpp"]
    assert text == golden_files(network)["golden.cpp"]


def test_golden_files_with_duplicate_name_are_refused() -> None:
    with raises(InvalidValueError, what="the name of a layer", got="head"):
        golden_files(renamed(branches(1), 3, "head"))


def test_golden_files_of_invalid_network_are_refused() -> None:
    network = branches(1)
    stem = network.nodes[1]
    shift = np.zeros(8, np.int64)
    convolution = as_kind(QConvolution, stem.op)
    op = replace(convolution, requantiser=replace(as_kind(Requantiser, convolution.requantiser), shift=shift))
    wrong = replace(network, nodes=(network.nodes[0], replace(stem, op=op), *network.nodes[2:]))
    with raises(RangeError, where="'stem' (test:2)", what="shift", got=0, low=1, high=47):
        golden_files(wrong)


# ---------------------------------------------------------------- checksums


def slow_checksum(values: list[int]) -> int:
    """Return the checksum as its definition computes it, value by value: a sum of splitmix64 hashes."""
    total, mask = 0, (1 << 64) - 1
    for position, value in enumerate(values):
        z = (value + (position + 1) * 0x9E3779B97F4A7C15) & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        total += z ^ z >> 31
    return total & mask


@cases("shape", [(1, 1, 1), (3, 5, 7), (2, 128, 257)])
def test_checksum_matches_its_definition(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(prod(shape)).integers(-(1 << 31), 1 << 31, shape)
    assert checksum(values) == slow_checksum(values.reshape(-1).tolist())
    assert checksum(values.astype(np.int32)) == checksum(values)
    assert checksum(values.transpose(2, 1, 0)) == checksum(values.transpose(2, 1, 0).copy())


def test_checksum_is_splitmix64() -> None:
    """Zeros give the generator's own sequence from seed 0, whose first outputs are published."""
    outputs = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    for count in (1, 2, 3):
        assert checksum(np.zeros(count, np.int8)) == sum(outputs[:count]) % (1 << 64)


def test_checksum_changes_with_exchanged_or_changed_values() -> None:
    values = np.arange(-60, 60, dtype=np.int8).reshape(2, 6, 10)
    others = [values[::-1], values[:, ::-1], values[:, :, ::-1], values + np.int8(1), values.reshape(-1)[:-1]]
    others += [np.where(np.arange(120).reshape(values.shape) == i, 100, values) for i in range(120)]
    assert len({checksum(other) for other in [values, *others]}) == 1 + len(others)


def test_first_difference_names_the_first_layer() -> None:
    assert first_difference({"a": 1, "b": 2}, {"a": 1, "b": 2}) is None
    assert first_difference({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 0, "c": 0}) == "b"
    assert first_difference({"a": 1, "b": 2}, {"a": 1}) == "b"
