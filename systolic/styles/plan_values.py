"""The JSON of a generated design, with the same keys of every style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from scheduler.hardware.ddr import DdrRate
from systolic.styles.style import NetworkMapping

Values = Mapping[str, Any]


class Resources(Protocol):
    """What is asked of an estimate of either style. lut: with those that are memory; lutram: these alone."""

    @property
    def dsp(self) -> int: ...

    @property
    def lut(self) -> int: ...

    @property
    def lutram(self) -> int: ...

    @property
    def bram36(self) -> int: ...

    @property
    def uram(self) -> int: ...


def plan_values(
    style: str,
    mapping: NetworkMapping,
    ddr: DdrRate,
    modelled_cycles: int,
    usage: Resources,
    *,
    batch: int = 1,
    array: Values | None = None,
    layers: Sequence[Values] | None = None,
    folding: Values | None = None,
    blocks: Sequence[Values] | None = None,
    fifos: Values | None = None,
) -> dict[str, Any]:
    """Return {network, board, clock_mhz, style, ddr, batch, modelled_cycles: of a batch, fits, estimate, array, layers,
    folding, blocks, fifos}. array, layers, folding, blocks and fifos are null if the style has none."""
    return {
        "network": mapping.network.name,
        "board": mapping.board.name,
        "clock_mhz": mapping.clock.mhz,
        "style": style,
        "ddr": asdict(ddr),
        "batch": batch,
        "modelled_cycles": modelled_cycles,
        "fits": mapping.fits,
        "estimate": {name: getattr(usage, name) for name in ("dsp", "lut", "lutram", "bram36", "uram")},
        "array": array,
        "layers": layers,
        "folding": folding,
        "blocks": blocks,
        "fifos": fifos,
    }
