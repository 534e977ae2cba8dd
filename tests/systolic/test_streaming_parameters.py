"""Test param.h and config.h of a folded network against the folding of UltraNet's own accelerator."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from cnn import zoo
from cnn.exported.network import read_exported
from cnn.ops import QConvolution
from cnn.quantized import QuantizedNetwork
from cnn.requantise import MultiplyShift
from scheduler.streaming.graph import Fold, MatrixVector, StreamingFolding, VectorVector
from scheduler.streaming.lower import lower
from systolic.model import DesignInputs
from systolic.styles.streaming.generation.generate import FoldedNetwork, generate
from systolic.styles.streaming.generation.parameters import can_be_written, parameter_files

PE = (16, 8, 8, 4, 2, 2, 2, 2, 2)
SIMD = (3, 16, 16, 16, 8, 8, 8, 8, 8)
TILES = (9, 36, 144, 576, 2304, 2304, 2304, 2304, 144)


def winners_folding(network: QuantizedNetwork) -> StreamingFolding:
    """Return the folding of UltraNet's own accelerator."""
    folds, pairs = [], iter(zip(PE, SIMD, strict=True))
    graph = lower(network)
    for block in graph.blocks:
        pe, simd = next(pairs) if isinstance(block.op, MatrixVector) else (1, 1)
        folds.append(Fold(pe=pe, simd=simd))
    return StreamingFolding(graph, tuple(folds))


def defined(text: str) -> dict[str, int]:
    """Return the numeric macros of a header."""
    return {name: int(value) for name, value in re.findall(r"#define (\w+) (-?\d+)", text)}


def array(text: str, name: str) -> list[list[int]]:
    """Return the rows of an array of hexadecimal words in a header."""
    body = re.search(rf"{name}\[\d+\]\[\d+\] = \{{\n(.*?)\n\}};", text, re.DOTALL)
    assert body is not None
    return [[int(value, 16) for value in re.findall(r'"(-?0x[0-9a-f]+)"', row)] for row in body[1].split("\n")]


def test_parameter_files_of_ultranet_match_its_accelerator() -> None:
    network = zoo.load_exported("ultranet", 1).quantized
    files = parameter_files(network, winners_folding(network))
    values = defined(files["config.h"])
    assert tuple(values[f"CONV{i}_W_TILES"] for i in range(9)) == TILES
    assert [values[f"CONV{i}_A_TILES"] for i in range(8)] == [1, 4, 8, 16, 32, 32, 32, 32]
    assert [values[f"CONV{i}_L_SHIFT"] for i in range(8)] == [8] * 8
    assert [values[f"CONV{i}_IFM_ROW"] for i in range(9)] == [160, 80, 40, 20, 10, 10, 10, 10, 10]
    assert "CONV8_INC_BIT" not in values
    convolutions = [node.op for node in network.nodes if isinstance(node.op, QConvolution)]
    for i, op in enumerate(convolutions[:8]):
        assert isinstance(op.requantiser, MultiplyShift)
        found = np.array(array(files["param.h"], f"conv{i}_inc")).T.reshape(-1)
        np.testing.assert_array_equal(found, op.requantiser.multiplier)


@pytest.mark.shared
def test_parameter_words_of_trained_ultranet_match_its_weights(shared: Path) -> None:
    """Compare each lane with the trained weights. The picture's channels are RGB here."""
    weights = shared / "data/ultranet/ultranet_4w4a.npz"
    network = read_exported(zoo.topology_file("ultranet"), weights).quantized
    files = parameter_files(network, winners_folding(network))
    with np.load(weights) as arrays:
        floats = np.tanh(arrays["conv1_w"].astype(np.float64))
    expected = np.rint(7 * floats / np.abs(floats).max()).astype(int)
    words = array(files["param.h"], "conv1_w")
    for pe, tile in ((0, 0), (3, 8), (7, 35)):
        lanes = [words[pe][tile] >> (4 * lane) & 15 for lane in range(16)]
        tap = tile % 9
        assert lanes == (expected[tile // 9 * 8 + pe, :, tap // 3, tap % 3] & 15).tolist()


@pytest.mark.engine
def test_parameter_files_of_depthwise_and_binary_layers() -> None:
    network = zoo.load_exported("mobilenet-w4a4", 1).quantized
    graph = lower(network)
    folds = tuple(Fold(pe=4, simd=3) if isinstance(b.op, VectorVector) else Fold() for b in graph.blocks)
    values = defined(parameter_files(network, StreamingFolding(graph, folds))["config.h"])
    assert (values["DEPTH2_W_TILES"], values["DEPTH2_A_TILES"]) == (32 // 4 * 3, 32 // 4)
    assert (values["DEPTH2_S"], values["DEPTH2_P"], values["CONV1_S"]) == (2, 1, 2)
    network = zoo.load_exported("cnv-w1a1", 1).quantized
    graph = lower(network)
    files = parameter_files(network, StreamingFolding(graph, (Fold(),) * len(graph.blocks)))
    assert "_inc" not in files["param.h"]
    assert set(array(files["param.h"], "full3_w")[0]) == {0, 1}


def test_design_holds_parameter_files_if_they_can_be_written() -> None:
    """Expect the same bytes in the folder. Designs with padded channels or a million weights have no parameter
    files."""
    network = zoo.load_exported("ultranet", 1).quantized
    folding = winners_folding(network)
    picture = np.zeros((3, 160, 320), np.uint8)
    board = load("ultra96-v2")
    source = FoldedNetwork(network, folding, board, board.clocks()[-1])
    estimate = {"dsp": 1, "bram36": 1, "uram": 0, "lut": 1, "lutram": 0}
    files = generate(source, DesignInputs({}, picture), estimate).files
    expected = parameter_files(network, folding)
    assert {name: files[f"parameters/{name}"].decode() for name in expected} == expected
    assert "const ap_uint<64> conv1_w[8][36] = {" in files["parameters/param.h"].decode()
    units = [i for i, block in enumerate(folding.graph.blocks) if isinstance(block.op, MatrixVector)]
    padded = list(folding.folds)
    padded[units[0]] = replace(padded[units[0]], pad_out=2)
    assert can_be_written(folding)
    assert not can_be_written(replace(folding, folds=tuple(padded)))
