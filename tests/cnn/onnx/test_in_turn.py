"""Tests that files ordered by level are read like files ordered by depth: operators follow the layer they belong to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cnn.float_model import run_float
from cnn.maps import FloatArray
from cnn.network import Network
from cnn.onnx.graph import Graph, OnnxOperation
from cnn.onnx.in_turn import in_turn
from cnn.onnx.network import OnnxNetwork, read_onnx
from cnn.onnx.quantised.patterns import QUANT
from cnn.ops import Output
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise
from scheduler.systolic.layers import lower
from tests.support import networks

pytest.importorskip("onnx", reason="ONNX needs the package onnx: pip install 'systolic-cnn[onnx]'")

import onnx

from tests.support.onnx.writer import Writer

LEVELS, BRANCHES = 5, 3


def branches(folder: Path, by_level: bool) -> OnnxNetwork:
    """Write three branches of a head: a convolution, its SiLU, a sum with a shared map, and a 1×1 convolution."""
    made, random = Writer(), np.random.default_rng(4)
    stem = made.put("Conv", ["picture", made.constant(random.normal(size=(8, 3, 1, 1)))])
    first = [made.constant(random.normal(size=(8, 8, 1, 1))) for _ in range(BRANCHES)]
    last = [made.constant(random.normal(size=(4, 8, 1, 1))) for _ in range(BRANCHES)]
    given: dict[tuple[int, int], str] = {}

    def put(level: int, branch: int) -> str:
        before = given.get((level - 1, branch), stem)
        kinds = "Conv", "Sigmoid", "Mul", "Add", "Conv"
        others: list[list[str]] = [[first[branch]], [], [given.get((0, branch), "")], [stem], [last[branch]]]
        return made.put(kinds[level], [before, *others[level]])

    steps = [(level, branch) for level in range(LEVELS) for branch in range(BRANCHES)]
    for step in steps if by_level else sorted(steps, key=lambda step: step[1]):
        given[step] = put(*step)
    path = folder / f"{by_level}.onnx"
    onnx.save(made.model([given[LEVELS - 1, branch] for branch in range(BRANCHES)], (1, 3, 8, 8)), path)
    return read_onnx(path)


def test_branches_ordered_by_level_equal_branches_ordered_by_depth(tmp_path: Path) -> None:
    by_level, by_depth = (branches(tmp_path, way).network for way in (True, False))
    picture = networks.pictures(by_level.input_shape)[0]
    for ours, theirs in zip(heads(by_level, picture), heads(by_depth, picture), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_qonnx_quants_follow_their_convolution() -> None:
    kinds = (("Conv", "x", "a"), ("Conv", "x", "b"), (QUANT, "a", "c"), (QUANT, "b", "d"))
    operations = tuple(OnnxOperation("", kind, (source,), (given,), {}) for kind, source, given in kinds)
    graph = Graph("net", 13, "x", (1, 3, 8, 8), ("c", "d"), operations, {})
    assert [operation.outputs[0] for operation in in_turn(graph).operations] == ["a", "c", "b", "d"]


def heads(network: Network, picture: FloatArray) -> list[FloatArray]:
    """Return the outputs that no layer reads, branch by branch."""
    read = {i for node in network.nodes for i in node.inputs}
    ends = {i for node in network.nodes if isinstance(node.op, Output) for i in node.inputs}
    outputs = run_float(network, picture)
    return [values for i, values in enumerate(outputs) if i in ends or i not in read]


def test_function_and_sum_run_in_the_pass_of_their_convolution(tmp_path: Path) -> None:
    network = branches(tmp_path, by_level=True).network
    quantised = quantise(network, calibrate(network, networks.pictures(network.input_shape)))
    layers = lower(quantised, fused=True)
    assert [layer.name[:4] for layer in layers] == ["conv"] * (1 + 2 * BRANCHES)
    assert sum(layer.table is not None and layer.added is not None for layer in layers) == BRANCHES
