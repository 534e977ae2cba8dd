"""Concats on chip in the engine in SystemVerilog: every integer of every layer, and cycles as modelled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from systolic.styles.systolic.simulate import simulate
from tests.support.accelerators import picture_for
from tests.support.arrays.concats import NETWORKS
from tests.support.rtl.engines import ARRAYS, design_of
from tests.support.tolerance import missed_layers
from tests.support.traced import load_into, wrong_looked_inside

pytestmark = pytest.mark.engine

ADDING = {bits: replace(array, added_maps=True, map_depth=2048, row_depth=2048) for bits, array in ARRAYS.items()}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("bits", ADDING)
def test_a_concat_on_chip_has_the_golden_models_bits(engines: Path, bits: int, name: str) -> None:
    """On 2 rows in words of 4 lanes, and on 3 rows in words of 8."""
    network = NETWORKS[name](bits)
    design = load_into(engines / str(bits), design_of(network, ADDING[bits], stay=True))
    beside = [layer for layer in design.manifest.layers if layer.output.pitch and layer.output.map_buffer]
    assert beside, "maps that lie side by side stay on chip"
    simulation = simulate(design, picture_for(network, 6))
    assert [(layer.name, layer.mismatches) for layer in simulation.layers if layer.mismatches] == []
    assert missed_layers(design, simulation) == []
    assert wrong_looked_inside(design, picture_for(network, 6)) == []
