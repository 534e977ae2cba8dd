"""Test functions applied directly to quantised sums, for every sum, executed by both engines and by a pipeline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from cnn.onnx.network import OnnxNetwork, read_onnx
from cnn.ops import QActivate
from cnn.quantized import QuantizedNetwork
from contract.geometry import HLS, RTL
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.rules import check_schedule
from systolic.files import DesignFiles
from systolic.model import DesignInputs
from systolic.styles.streaming.simulate import simulate as simulate_pipeline
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.simulate import simulate
from tests.support.onnx.sums import OfSums, every_sum, off
from tests.support.pipelines import folded, make
from tests.support.rtl.engines import SMALL
from tests.support.schedules import first_fit
from tests.support.traced import load_into

pytestmark = pytest.mark.engine


def curved(folder: Path, more: bool) -> tuple[Path, OnnxNetwork]:
    """Return an ONNX file whose tanh has a table with an entry for each of 2,048 sums.

    With ``more``, the network also has a hard swish with a table of 4,096 entries. Its channels have different scales,
    and its product has an offset. A 16-bit sigmoid as a piecewise-linear table and a softplus of a product of maps
    follow.
    """
    writer = OfSums(21)
    last = writer.stepped(writer.put("Tanh", [writer.sums(1 / 256)]), 1 / 127)
    if more:
        random = np.random.default_rng(3)
        for function, between in (("HardSwish", 8), ("Sigmoid", 16)):
            scales = np.array([0.0011, 0.00037, 0.0029, 0.0017]) if between == 8 else np.array(0.0023)
            grid = [writer.constant(scales), writer.constant(np.zeros(scales.shape), np.int8)]
            weights = random.integers(-127, 128, (4, 2 if between == 8 else 4, 1, 1))
            kernel = writer.put("DequantizeLinear", [writer.constant(weights, np.int8), *grid], axis=0)
            sums = writer.put("Conv", [last, kernel])
            sums = sums if between == 8 else writer.stepped(sums, 1 / 8000, bits=16)
            before, last = last, writer.stepped(writer.put(function, [sums]), 1 / 200)
        last = writer.stepped(writer.put("Softplus", [writer.put("Mul", [before, last])]), 1 / 150)
    path = writer.saved(last, folder)
    return path, read_onnx(path)


BITS = [11, 12, 16, 12]
"""Bits of the value that looks up each table."""


def integers_of(read: OnnxNetwork, bits: list[int]) -> QuantizedNetwork:
    """Return the quantised network, after a check that its tables are looked up by ``bits`` bits."""
    network = read.quantized
    assert network is not None
    tables = [node for node in network.nodes if isinstance(node.op, QActivate)]
    assert [network.nodes[node.inputs[0]].type.datatype.bits for node in tables] == bits
    return network


def designed(network: QuantizedNetwork, array: Array) -> DesignFiles:
    """Return the files of a design on the array, with a picture that reaches every sum."""
    board = load("zcu104")
    schedule = check_schedule(first_fit(network, array))
    mapping = price(schedule, board, ddr_timing(board, board.clocks()[-1].mhz))
    return generate(mapping, DesignInputs({}, every_sum()))


ARRAYS = {
    False: replace(SMALL, table_depth=2048, table_slopes=False),
    True: replace(SMALL, table_depth=4096, late_offsets=2),
}
"""The array without ``more`` has tables of values alone. The other also has piecewise-linear tables, products with
an offset, and rounding of halves to even."""


@pytest.mark.parametrize("more", [False, True])
def test_cpp_array_looks_up_every_sum(more: bool, tmp_path: Path) -> None:
    path, read = curved(tmp_path, more)
    network = integers_of(read, BITS if more else BITS[:1])
    design = load_into(tmp_path / "design", designed(network, replace(ARRAYS[more], engine=HLS)))
    assert [layer.mismatches for layer in simulate(design, every_sum()).layers] == [0] * len(network.nodes[1::2])
    assert off(path, read).max() <= more


@pytest.mark.parametrize("more", [False, True])
def test_rtl_array_looks_up_every_sum(more: bool, engines: Path, tmp_path: Path) -> None:
    _, read = curved(tmp_path, more)
    network = integers_of(read, BITS if more else BITS[:1])
    design = load_into(engines / str(more), designed(network, replace(ARRAYS[more], engine=RTL)))
    assert [layer.mismatches for layer in simulate(design, every_sum()).layers] == [0] * len(network.nodes[1::2])


def test_pipeline_looks_up_every_sum(tmp_path: Path) -> None:
    _, read = curved(tmp_path, True)
    network = integers_of(read, BITS)
    made = make(network, folded(network, 20_000), tmp_path / "design")
    sources = "".join(source.read_text() for source in (tmp_path / "design/src").iterdir())
    assert "table_t<8, true, -1024, 2048, 1>" in sources
    layers = simulate_pipeline(made.pipeline, every_sum()).layers
    assert [layer.mismatches for layer in layers] == [0] * len(layers)
