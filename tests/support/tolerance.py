"""How near the model of the engine in SystemVerilog is to what is counted."""

from __future__ import annotations

from systolic.execution.simulation import Simulation
from systolic.styles.systolic.simulate import SystolicDesign

SHARE = 0.03
"""Of a layer's counted cycles."""

HANDFUL = 30
"""Cycles that a layer of less than a thousand may be off."""


def within(modelled: int, counted: int) -> bool:
    """Whether a layer is as near as is said."""
    return abs(modelled - counted) <= max(HANDFUL, SHARE * counted)


def missed_layers(design: SystolicDesign, simulation: Simulation) -> list[tuple[str, int, int]]:
    """Layers of an executed design that are not, with their modelled and counted cycles."""
    pairs = zip(design.manifest.layers, simulation.cycles, strict=True)
    return [
        (layer.name, layer.modelled_cycles, counted)
        for layer, counted in pairs
        if not within(layer.modelled_cycles, counted)
    ]
