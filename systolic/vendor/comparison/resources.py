"""Resources of the whole design: comparison of the estimate with Vitis HLS's synthesis and Vivado's placement."""

from __future__ import annotations

from collections.abc import Iterator

from systolic.vendor.claims import Claims
from systolic.vendor.comparison.rows import BETTER, HOLDS, OPEN, WORSE, ResourceRow
from systolic.vendor.reading.facts import Resources
from systolic.vendor.reading.reports import Reports

KINDS = ("dsp", "bram36", "uram", "lut", "lutram", "ff")
GENEROUS = ("lut", "ff")
"""Kinds that Vitis HLS overestimates by far; they get no verdict before Vivado has placed them."""


def resource_rows(claims: Claims, reports: Reports) -> Iterator[ResourceRow]:
    """Yield one row per resource (DSP, BRAM36, URAM, LUT, LUTRAM, FF) that is estimated or reported.

    Vivado's count decides the verdict. Before placement the count of Vitis HLS decides it, except for ``GENEROUS``.
    """
    vivado, synthesis = reports.accelerator or reports.utilisation, reports.synthesis
    estimated = synthesis.resources if synthesis else Resources()
    counted = vivado.counts if vivado else Resources()
    limits = [part.available for part in (reports.utilisation, synthesis) if part]
    for kind in KINDS:
        claimed, synthesised, placed = claims.resources.get(kind), estimated.count(kind), counted.count(kind)
        available = next((count for limit in limits if (count := limit.count(kind)) is not None), None)
        fact = synthesised if placed is None and kind not in GENEROUS else placed
        verdict, advice = _resource_verdict(claimed, fact, available)
        if (claimed, synthesised, placed) != (None, None, None):
            yield ResourceRow(kind, claimed, synthesised, placed, available, verdict, advice)


def _resource_verdict(claimed: int | None, fact: float | None, available: float | None) -> tuple[str, str]:
    if fact is not None and available is not None and fact > available:
        return WORSE, f"{fact:,g} do not fit the device's {available:,g}: generate a smaller array or folding"
    if claimed is None or fact is None:
        return OPEN, ""
    if fact > claimed:
        return (
            WORSE,
            f"{fact - claimed:,g} more than estimated: the rows of the memories and the tool's report say where",
        )
    return (HOLDS if fact == claimed else BETTER), ""
