"""Test concats on chip in the SystemVerilog engine: every integer matches the golden model, and cycles match the
model."""

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
def test_rtl_concat_on_chip_matches_golden_model(engines: Path, bits: int, name: str) -> None:
    """Use 2 rows with words of 4 lanes, and 3 rows with words of 8 lanes."""
    network = NETWORKS[name](bits)
    design = load_into(engines / str(bits), design_of(network, ADDING[bits], stay=True))
    beside = [layer for layer in design.manifest.layers if layer.output.pitch and layer.output.map_buffer]
    assert beside, "some adjacent maps of a concat must be on chip"
    simulation = simulate(design, picture_for(network, 6))
    assert [(layer.name, layer.mismatches) for layer in simulation.layers if layer.mismatches] == []
    assert missed_layers(design, simulation) == []
    assert wrong_looked_inside(design, picture_for(network, 6)) == []
