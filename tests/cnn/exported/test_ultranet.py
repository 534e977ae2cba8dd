"""Tests of the trained UltraNet against recorded integers of every layer.

The integers were computed with the hardware parameters of the contest winner.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cnn import zoo
from cnn.datatype import INT32
from cnn.exported.network import Exported, read_exported
from cnn.integer_model import run_integer
from cnn.ops import QConvolution
from cnn.ops.convolution import convolve
from cnn.quantisation.fidelity import fidelity
from cnn.requantise import MultiplyShift, identity
from tests.support.kinds import as_kind

LAYERS = [f"conv{i}" for i in range(9)]


@pytest.fixture(scope="module")
def ultranet(shared: Path) -> Exported:
    weights = shared / "data/ultranet/ultranet_4w4a.npz"
    return read_exported(zoo.folder("ultranet") / "ultranet.json", weights)


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, np.ndarray]:
    with np.load(shared / "data/ultranet/boat6_0_int_golden.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def picture(golden: dict[str, np.ndarray]) -> np.ndarray:
    """Return the image in RGB order, of shape (channels, rows, columns)."""
    return np.ascontiguousarray(golden["input"][..., ::-1].transpose(2, 0, 1))


@pytest.mark.shared
def test_outputs_of_all_nine_layers_equal_the_recorded_integers(
    ultranet: Exported, golden: dict[str, np.ndarray], picture: np.ndarray
) -> None:
    names = [node.name for node in ultranet.quantized.nodes]
    outputs = dict(zip(names, run_integer(ultranet.quantized, picture), strict=True))
    for name in LAYERS[:-1]:
        np.testing.assert_array_equal(outputs[name], golden[f"{name}_out"], name)
    np.testing.assert_array_equal(outputs["conv8"], golden["conv8_acc"])


@pytest.mark.shared
def test_accumulators_of_all_nine_layers_equal_the_recorded_integers(
    ultranet: Exported, golden: dict[str, np.ndarray], picture: np.ndarray
) -> None:
    nodes = ultranet.quantized.nodes
    outputs = run_integer(ultranet.quantized, picture)
    for node in nodes:
        if isinstance(node.op, QConvolution):
            source = node.inputs[0]
            sums = QConvolution(
                node.op.weights, node.op.weight_type, identity(node.shape.channels), 1, node.op.padding, 1
            )
            before = nodes[source].type.datatype
            found = convolve(np.asarray(outputs[source]), before, sums, node.shape, INT32)
            np.testing.assert_array_equal(found, golden[f"{node.name}_acc"], node.name)


@pytest.mark.shared
def test_trained_network_has_negative_gammas_and_agrees_with_its_float_form(
    ultranet: Exported, picture: np.ndarray
) -> None:
    requantiser = as_kind(QConvolution, ultranet.quantized.nodes[1].op).requantiser
    assert (as_kind(MultiplyShift, requantiser).multiplier < 0).any()
    assert min(layer.sqnr_db for layer in fidelity(ultranet.network, ultranet.quantized, picture)) > 20
