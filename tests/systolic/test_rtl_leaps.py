"""Test maps on chip that are read with strides of 3 to 7 by the SystemVerilog engine: every integer matches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from systolic.styles.systolic.simulate import simulate
from tests.support.accelerators import picture_for
from tests.support.arrays.leaps import networks
from tests.support.rtl.engines import ARRAYS, design_of
from tests.support.tolerance import missed_layers
from tests.support.traced import load_into, wrong_looked_inside

pytestmark = pytest.mark.engine

LEAPING = {
    "2 rows": replace(ARRAYS[8], map_stride=7, row_depth=2048),
    "3 rows of 4 bits": replace(ARRAYS[4], map_stride=7, row_depth=2048),
    "6 rows": replace(ARRAYS[8], rows=6, columns=8, lanes=8, map_ports=2, map_stride=7, row_depth=2048),
}


@pytest.mark.parametrize("name", networks())
@pytest.mark.parametrize("array", LEAPING)
def test_rtl_large_stride_from_map_buffer_matches_golden_model(engines: Path, array: str, name: str) -> None:
    network = networks(LEAPING[array].bits)[name]
    design = load_into(engines / array.replace(" ", "-"), design_of(network, LEAPING[array], stay=True))
    assert design.manifest.layers[0].output.map_buffer, "the map that is read with the stride must be on chip"
    simulation = simulate(design, picture_for(network, 6))
    assert [(layer.name, layer.mismatches) for layer in simulation.layers if layer.mismatches] == []
    assert missed_layers(design, simulation) == []
    assert wrong_looked_inside(design, picture_for(network, 6)) == []
