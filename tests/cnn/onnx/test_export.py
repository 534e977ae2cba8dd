"""Tests of quantised networks written as QONNX and FINN-ONNX: qonnx executes them, and they are read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import ChoiceError
from cnn import zoo
from cnn.datatype import UINT8, TensorType
from cnn.integer_model import run_integer
from cnn.maps import Shape
from cnn.onnx.file import parsed
from cnn.onnx.network import read_model, read_onnx
from cnn.onnx.quantised.export import to_onnx
from cnn.ops import DepthToSpace, QInput, Reorg
from cnn.quantized import QNode, QuantizedNetwork
from cnn.requantise import Thresholds
from cnn.stored.quantized_file import to_npz
from systolic.cli.main import main
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.onnx.qonnx_execution import steps_off
from tests.support.onnx.quantising import Form, quantised
from tests.support.onnx.residual import SHAPE, residual

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def asymmetric(tmp_path_factory: pytest.TempPathFactory) -> QuantizedNetwork:
    network = read_onnx(quantised(residual(), tmp_path_factory.mktemp("onnx"), Form(), SHAPE)).quantized
    assert network is not None
    return network


def test_exported_finn_file_gives_equal_integers(asymmetric: QuantizedNetwork) -> None:
    assert steps_off(asymmetric, "finn") == 0


def test_exported_bipolar_network_gives_equal_integers_in_both_dialects() -> None:
    network = zoo.load_exported("cnv-w1a1", 3).quantized
    body = QuantizedNetwork(network.name, network.nodes[:8])
    assert any(isinstance(node.requantiser, Thresholds) for node in body.nodes)
    assert steps_off(body, "finn") == steps_off(body, "qonnx") == 0


def test_exported_qonnx_file_is_read_as_the_same_network(asymmetric: QuantizedNetwork) -> None:
    again = read_model(parsed(to_onnx(asymmetric), "net.onnx"), "net.onnx", "net").quantized
    assert again is not None
    assert len(again.nodes) == len(asymmetric.nodes)
    picture = np.random.default_rng(8).integers(0, 256, SHAPE[1:], np.uint8)
    for node, ours, theirs in zip(
        asymmetric.nodes, run_integer(asymmetric, picture), run_integer(again, picture), strict=True
    ):
        assert ours is not None
        assert theirs is not None
        assert np.array_equal(ours, theirs), node.name
    assert to_npz(again)


MOVES: dict[str, tuple[Reorg | DepthToSpace, Shape, Shape]] = {
    "darknet's reorg": (Reorg(2), Shape(12, 6, 4), Shape(48, 3, 2)),
    "rows alone": (DepthToSpace(3, 1), Shape(12, 6, 4), Shape(4, 18, 4)),
    "rows and columns": (DepthToSpace(2, 3), Shape(12, 6, 4), Shape(2, 12, 12)),
}


@cases("name", MOVES)
def test_exported_reorg_without_an_operator_becomes_reshapes_and_a_transpose(name: str) -> None:
    op, before, after = MOVES[name]
    pixels = TensorType(UINT8, 1 / 255)
    nodes = QNode("input", QInput(), (), before, pixels, "net:1"), QNode("move", op, (0,), after, pixels, "net:2")
    network = QuantizedNetwork("net", nodes)
    for dialect in ("qonnx", "finn"):
        assert steps_off(network, dialect) == 0


def test_unknown_dialect_is_refused(asymmetric: QuantizedNetwork) -> None:
    with raises(ChoiceError, what="the dialect", got="caffe", choices=("qonnx", "finn")):
        to_onnx(asymmetric, "caffe")


def test_export_command_writes_a_file_that_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shapes.onnx"
    assert main(["export", "ultranet", "--seed", "1", "--size", "32x32", "-o", str(file), "--dialect", "finn"]) == 0
    assert capsys.readouterr().out.endswith(f"written to {file} as finn\n")
    assert read_onnx(file).quantized is not None
    assert main(["export", "ultranet", "--seed", "1", "--size", "32x32", "-o", str(file)]) == 0
    told = capsys.readouterr().out
    assert told.endswith(
        "as qonnx; other tools execute this dialect in floating point, so use --dialect finn to keep every integer\n"
    )
