"""Tests of QuantizeLinear, Clip and DequantizeLinear (QCDQ), Brevitas' form of integers narrower than their storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from boards.errors import UnsupportedError
from cnn.datatype import DataType
from cnn.integer_model import run_integer
from cnn.onnx.network import OnnxNetwork, read_onnx
from tests.support.cases import cases
from tests.support.errors import raises_among
from tests.support.onnx.quantising import run_file
from tests.support.onnx.writer import Writer

SHAPE = (1, 3, 9, 7)


class Clipped(Writer):
    """Writer of values that are quantised by three operators."""

    def grid(self, scale: Any, zero: Any, kind: Any) -> list[str]:
        """Return the names of scale and zero point, one for the map or one per channel."""
        return [self.constant(scale), self.constant(zero, kind)]

    def stepped(self, source: str, grid: list[str], ends: tuple[int, int], kind: Any, readers: int = 1) -> list[str]:
        """Write the three operators, with one DequantizeLinear per reader."""
        integers = self.put("QuantizeLinear", [source, *grid], axis=0)
        return self.cut(integers, grid, ends, kind, readers)

    def cut(self, integers: str, grid: list[str], ends: tuple[int, int], kind: Any, readers: int = 1) -> list[str]:
        """Write Clip and one DequantizeLinear per reader."""
        cut = self.put("Clip", [integers, *(self.constant(end, kind) for end in ends)])
        return [self.put("DequantizeLinear", [cut, *grid], axis=0) for _ in range(readers)]

    def pixels(self) -> str:
        """Return the image, quantised to its 8-bit pixels."""
        grid = self.grid(1 / 255, 0, np.uint8)
        return self.put("DequantizeLinear", [self.put("QuantizeLinear", ["picture", *grid]), *grid])


def kernel(writer: Clipped, rounded: bool) -> str:
    """Write weights of 4 bits without −8, with one scale per filter.

    Args:
        rounded: whether the file stores floats and rounds them, or stores the integers.
    """
    random, grid = np.random.default_rng(3), writer.grid(np.linspace(0.02, 0.05, 6), [0] * 6, np.int8)
    if rounded:
        floats = writer.constant(random.normal(0, 0.15, (6, 3, 3, 3)))
        return writer.stepped(floats, grid, (-7, 7), np.int8)[0]
    return writer.cut(writer.constant(random.integers(-8, 8, (6, 3, 3, 3)), np.int8), grid, (-7, 7), np.int8)[0]


def read(writer: Clipped, last: str, folder: Path) -> tuple[OnnxNetwork, Path]:
    path = folder / "net.onnx"
    onnx.save(writer.model([last], SHAPE), path)
    return read_onnx(path), path


@cases("rounded", [True, False])
@cases(
    "kind, ends, zero, datatype",
    [
        (np.uint8, (0, 15), 0, DataType(4, True)),
        (np.uint8, (0, 63), 9, DataType(6, True)),
        (np.int8, (-4, 3), 0, DataType(3, True)),
        (np.int8, (-15, 15), -2, DataType(5, True)),
    ],
)
def test_clipped_integers_have_the_bits_of_their_range(
    kind: Any, ends: tuple[int, int], zero: int, datatype: DataType, rounded: bool, tmp_path: Path
) -> None:
    writer = Clipped()
    sums = writer.put("Conv", [writer.pixels(), kernel(writer, rounded)])
    (last,) = writer.stepped(sums, writer.grid(0.11, zero, kind), ends, kind)
    network, path = read(writer, last, tmp_path)
    assert network.quantized is not None
    picture = np.random.default_rng(4).integers(0, 256, SHAPE[1:], np.uint8)
    (expected,) = run_file(path, picture).values()
    result, type_ = run_integer(network.quantized, picture)[-1], network.quantized.nodes[-1].type
    assert type_.datatype == datatype
    assert result is not None
    steps = np.abs((result.astype(np.int64) - type_.zero_point) - np.rint(expected[0] / np.float32(0.11)))
    assert steps.max() <= 1
    assert np.count_nonzero(steps) <= result.size // 100, "only values near a half may differ"
    values = {low + type_.zero_point for low in np.rint([expected.min() / 0.11, expected.max() / 0.11])}
    assert {int(result.min()), int(result.max())} == values, "both ends of the range must be reached"


def test_clipped_map_with_several_readers_is_quantised_once(tmp_path: Path) -> None:
    writer = Clipped()
    sums = writer.put("Conv", [writer.pixels(), kernel(writer, True)])
    first, second = writer.stepped(sums, writer.grid(0.2, 0, np.uint8), (0, 15), np.uint8, readers=2)
    added = writer.put("Add", [first, writer.put("MaxPool", [second], kernel_shape=[1, 1])])
    (last,) = writer.stepped(added, writer.grid(0.4, 0, np.uint8), (0, 15), np.uint8)
    network, _ = read(writer, last, tmp_path)
    assert [node.name for node in network.network.nodes] == ["input", "conv1", "pool1", "add1"]


@cases("ends, other", [((-3, 7), False), ((0, 15), True)])
def test_clip_without_a_whole_range_or_one_scale_is_refused(ends: tuple[int, int], other: bool, tmp_path: Path) -> None:
    """Use a range that no number of bits has, and another scale after the Clip."""
    writer = Clipped()
    sums = writer.put("Conv", [writer.pixels(), kernel(writer, True)])
    kind, grid = (np.uint8 if ends[0] == 0 else np.int8), 0.2
    integers = writer.put("QuantizeLinear", [sums, *writer.grid(grid, 0, kind)])
    (last,) = writer.cut(integers, writer.grid(grid * (1 + other), 0, kind), ends, kind)
    with raises_among(
        UnsupportedError,
        reason="integers are clipped only to a range of 1 to 16 bits, between quantisers of one scale",
    ):
        read(writer, last, tmp_path)
