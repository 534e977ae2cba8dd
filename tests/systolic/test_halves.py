"""Test an ONNX file that rounds halves to even, in designs of every kind: every integer matches the golden model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import systolic
from cnn.integer_model import run_integer
from cnn.onnx.network import read_onnx
from cnn.quantized import QuantizedNetwork
from cnn.requantise import EVEN, ODD
from systolic.golden import checksums, golden_files, run_golden
from systolic.styles.systolic.mapping import SystolicMapping
from tests.support.onnx.grids import Grids
from tests.support.onnx.integers import SIDES
from tests.support.onnx.quantising import differences

STYLES: dict[str, dict[str, Any]] = {
    "cpp": {"array": "4x8x8"},
    "rtl": {"array": "4x8x8", "engine": "rtl"},
    "streaming": {"style": "streaming", "search": "greedy"},
}


def block() -> Any:
    """Return an ONNX model with a residual block, a mean and a matrix product.

    The scales are powers of two. The zero points are even and odd.
    """
    w = Grids()

    def convolved(source: str, inputs: int, size: int, zero: int) -> str:
        weights = w.floats_of([w.whole(-9, 9, 8, inputs, size, size), *w.grid(2**-5)])
        sums = w.put("Conv", [source, weights], kernel_shape=[size, size], pads=[size // 2] * 4)
        return w.floats_of(w.integers_of(sums, w.grid(2**-4, zero)))

    pixels = w.floats_of(w.integers_of("picture", w.grid(1 / 255, -128)))
    first = convolved(pixels, 3, 1, 4)
    second = convolved(first, 8, 3, -3)
    added = w.floats_of(w.integers_of(w.put("Add", [first, second]), w.grid(2**-3, 5)))
    mean = w.integers_of(w.put("GlobalAveragePool", [added]), w.grid(2**-5, 1))
    flat = w.put("Flatten", [w.floats_of(mean)])
    weights = w.floats_of([w.whole(-9, 9, 8, 5), *w.grid(2**-4)])
    return w.floats(w.integers_of(w.put("MatMul", [flat, weights]), w.grid(2**-3, 2)))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of the residual block."""
    path = tmp_path_factory.mktemp("halves") / "net.onnx"
    onnx.save(block(), path)
    return path


@pytest.fixture(scope="module")
def network(path: Path) -> QuantizedNetwork:
    """Return the file's quantised network, after a check of two facts.

    Its integers equal the integers of onnxruntime, and its layers round halves to even and to odd.
    """
    read = read_onnx(path)
    assert read.quantized is not None
    assert set(differences(path, read, picture()).values()) == {0}
    kinds = {getattr(node.requantiser, "halves", None) for node in read.quantized.nodes}
    assert {EVEN, ODD} <= kinds
    return read.quantized


def picture() -> Any:
    """Return random pixels of shape (channels, height, width)."""
    return np.random.default_rng(2).integers(0, 256, SIDES[1:], np.uint8)


@pytest.mark.engine
def test_golden_program_rounds_halves_to_even(network: QuantizedNetwork, tmp_path: Path) -> None:
    for name, data in golden_files(network).items():
        (tmp_path / name).write_bytes(data)
    assert run_golden(tmp_path, picture()) == checksums(network, run_integer(network, picture()))


@pytest.mark.engine
@pytest.mark.parametrize("name", STYLES)
def test_design_rounds_halves_to_even(name: str, path: Path, network: QuantizedNetwork) -> None:
    """Test the Saver's requantiser and its residual add, in C++ and in SystemVerilog, and the functors of a
    pipeline."""
    design = systolic.design(systolic.load(path), "zcu104", **STYLES[name])
    if isinstance(design.mapping, SystolicMapping):
        assert design.mapping.schedule.array.late_offsets == 2
    frame = np.moveaxis(picture(), 0, -1)
    result = design.simulate(frame)
    assert result.right
    assert result.mismatches == 0
