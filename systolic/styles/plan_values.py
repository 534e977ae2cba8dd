"""The JSON object that describes a generated design. It has the same keys in every style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from scheduler.hardware.ddr import DdrRate
from systolic.styles.ddr_profiles import profile_values
from systolic.styles.style import NetworkMapping

Values = Mapping[str, Any]


class EstimatedResources(Protocol):
    """The estimated DSPs, LUTs, BRAMs and URAMs of a design, in either style.

    Attributes:
        dsp: The number of DSPs.
        lut: The number of LUTs, including the LUTs that are used as memory.
        lutram: The number of LUTs that are used as memory.
        bram36: The number of BRAM36.
        uram: The number of URAMs.
    """

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
    usage: EstimatedResources,
    *,
    batch: int = 1,
    array: Values | None = None,
    layers: Sequence[Values] | None = None,
    folding: Values | None = None,
    blocks: Sequence[Values] | None = None,
    fifos: Values | None = None,
) -> dict[str, Any]:
    """Return the JSON object of a generated design, with the same keys in both styles.

    Args:
        style: The name of the style.
        mapping: The mapping of the network onto the board.
        ddr: The rate of the board's memory.
        modelled_cycles: The modelled clock cycles of one batch.
        usage: The estimated resources.
        batch: The number of frames that one start of the design computes.
        array: The parameters of the systolic array; None in the streaming style.
        layers: An object for each layer; None in the streaming style.
        folding: The folding; None in the systolic style.
        blocks: An object for each block; None in the systolic style.
        fifos: The FIFOs; None if the style reports none.
    """
    return {
        "network": mapping.network.name,
        "board": mapping.board.name,
        "clock_mhz": mapping.clock.mhz,
        "clock_link": "target",
        "style": style,
        "ddr": asdict(ddr),
        **profile_values(mapping.board, ddr, mapping.ddr_profiles),
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
