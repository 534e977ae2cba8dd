"""The tolerance of the cycle model of the SystemVerilog engine."""

from __future__ import annotations

from systolic.execution.simulation import Simulation
from systolic.styles.systolic.simulate import SystolicDesign

SHARE = 0.03
"""The tolerance as a fraction of a layer's counted cycles."""

HANDFUL = 30
"""The minimum tolerance in cycles, which applies to layers of less than a thousand cycles."""


def within(modelled: int, counted: int) -> bool:
    """Return whether the modelled cycles of a layer are within the tolerance."""
    return abs(modelled - counted) <= max(HANDFUL, SHARE * counted)


def missed_layers(design: SystolicDesign, simulation: Simulation) -> list[tuple[str, int, int]]:
    """Return the layers of an executed design outside the tolerance, with their modelled and counted cycles."""
    pairs = zip(design.manifest.layers, simulation.cycles, strict=True)
    return [
        (layer.name, layer.modelled_cycles, counted)
        for layer, counted in pairs
        if not within(layer.modelled_cycles, counted)
    ]
