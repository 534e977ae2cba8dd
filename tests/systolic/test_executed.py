"""Test trained networks, and one with every kind of layer, on executed designs: every integer matches the golden
model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cnn.ops import (
    Concat,
    DepthToSpace,
    MaxPool,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QMultiply,
    Reorg,
    Slice,
    Upsample,
)
from systolic.execution.build import build
from systolic.execution.simulation import Simulation
from systolic.loading import load_model
from systolic.model import Calibration, quantise_model, sample_pictures
from systolic.styles.streaming.simulate import simulate as simulate_pipeline
from systolic.styles.systolic.simulate import SystolicDesign, simulate
from tests.support import accelerators
from tests.support.accelerators import picture_for
from tests.support.arrays.joins import every_layer
from tests.support.arrays.map_strides import shortcut
from tests.support.pipelines import folded, make
from tests.support.rtl import engines
from tests.support.traced import load_into

KINDS = {
    *(QConvolution, QDense, MaxPool, QAveragePool, Concat, Slice, Reorg, DepthToSpace),
    *(Upsample, QAdd, QMultiply, QActivate),
}
"""The kinds of layer that the array computes."""

Executed = Callable[..., SystolicDesign]


@pytest.fixture(scope="module", params=["cpp", "systemverilog"])
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Executed:
    """Return a function that loads a network into one compiled engine, which has every optional unit.

    With ``stay``, the maps of the network stay on chip.
    """
    if request.param == "systemverilog":
        engine = request.getfixturevalue("engine")
        return lambda network, **stay: load_into(engine, engines.design_of(network, engines.SMALL, **stay))
    folder = tmp_path_factory.mktemp("cpp") / "8"
    load_into(folder, accelerators.design_of(engines.FIRST, engines.SMALL))
    build(folder)
    return lambda network, **stay: load_into(folder, accelerators.design_of(network, engines.SMALL, **stay))


def differing(result: Simulation) -> list[tuple[str, int]]:
    """Return the names and mismatches of the layers that differ."""
    return [(layer.name, layer.mismatches) for layer in result.layers if layer.mismatches]


def test_trained_shapes_matches_golden_model(loaded: Executed) -> None:
    network = quantise_model(load_model("shapes"), Calibration(sample_pictures()[:1]))
    result = simulate(loaded(network), picture_for(network, 5))
    assert differing(result) == []
    assert len(result.layers) == 9


def test_layers_of_every_kind_match_golden_model(loaded: Executed) -> None:
    network = every_layer()
    assert {type(node.op) for node in network.nodes[1:]} == KINDS
    result = simulate(loaded(network), picture_for(network, 5))
    assert differing(result) == []
    assert len(result.layers) > 10


def test_maps_on_chip_match_golden_model(loaded: Executed) -> None:
    """Read the first map with stride 2 by a 3 × 3 convolution and by a 1 × 1 convolution."""
    network = shortcut()
    design = loaded(network, stay=True)
    assert [bool(layer.output.map_buffer) for layer in design.manifest.layers[:2]] == [True, True]
    assert differing(simulate(design, picture_for(network, 6))) == []


def test_ultranet_small_pipeline_matches_golden_model(tmp_path: Path) -> None:
    network = load_model("ultranet-small").quantized
    assert network is not None
    made = make(network, folded(network, 200_000), tmp_path / "design")
    result = simulate_pipeline(made.pipeline, made.picture)
    assert differing(result) == []
    assert len(result.layers) == 13
