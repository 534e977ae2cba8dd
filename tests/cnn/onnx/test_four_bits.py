"""Tests of weights and maps of 4 bits, which ONNX packs two per byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boards.errors import MismatchError
from cnn.onnx.network import read_onnx
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.onnx.quantising import steps_on_noise
from tests.support.onnx.writer import Writer

ml_dtypes = pytest.importorskip("ml_dtypes")
SHAPE = (1, 3, 9, 7)


def saved(writer: Writer, last: str, folder: Path, **options: Any) -> Path:
    model, path = writer.model([last], SHAPE), folder / "net.onnx"
    model.ir_version = 10
    onnx.save(model, path, **options)
    return path


def stepped(writer: Writer, source: str, scale: float, zero: Any) -> str:
    grid = [writer.constant(scale), writer.constant(zero, zero.dtype)]
    return writer.put("DequantizeLinear", [writer.put("QuantizeLinear", [source, *grid]), *grid])


def packed(kind: str, folder: Path, map_kind: Any = np.uint8, outside: bool = False) -> Path:
    """Write a convolution with 135 packed weights, which end within a byte, with a zero point and scale per filter."""
    writer, random, type_ = Writer(21), np.random.default_rng(5), getattr(ml_dtypes, kind)
    low, zero = (-8, 0) if kind == "int4" else (0, 7)
    weights = writer.constant(random.integers(low, low + 16, (5, 3, 3, 3)), type_)
    grid = [writer.constant(np.linspace(0.03, 0.06, 5)), writer.constant([zero] * 5, type_)]
    kernel = writer.put("DequantizeLinear", [weights, *grid], axis=0)
    sums = writer.put("Conv", [stepped(writer, "picture", 1 / 255, np.array(0, np.uint8)), kernel])
    last = stepped(writer, sums, 0.25, np.array(3).astype(map_kind))
    options = {"save_as_external_data": True, "location": "beside", "size_threshold": 0} if outside else {}
    return saved(writer, last, folder, **options)


@cases("kind", ["int4", "uint4"])
def test_tensor_of_4_bits_is_within_a_step_of_onnxruntime(kind: str, tmp_path: Path) -> None:
    steps = steps_on_noise(packed(kind, tmp_path))
    assert len(steps) == 2
    assert max(steps.values()) <= 1, steps


@cases("outside", [False, True])
@cases("kind", ["int4", "uint4"])
def test_map_of_4_bits_keeps_4_bits(kind: str, outside: bool, tmp_path: Path) -> None:
    network = read_onnx(packed(kind, tmp_path, getattr(ml_dtypes, kind), outside)).quantized
    assert network is not None
    assert (network.nodes[-1].type.datatype.bits, network.nodes[-1].type.datatype.signed) == (4, True)
    assert network.nodes[-1].type.zero_point == (3 if kind == "int4" else -5)


def test_packed_tensor_with_a_missing_byte_is_refused(tmp_path: Path) -> None:
    path = packed("int4", tmp_path)
    model = onnx.load(path)
    (tensor,) = (each for each in model.graph.initializer if list(each.dims) == [5, 3, 3, 3])
    tensor.raw_data = tensor.raw_data[:-1]
    onnx.save(model, path)
    with raises(MismatchError, what="the length in bytes", got="67", expected="68"):
        read_onnx(path)
