"""Resources of the whole: estimate, synthesis and placement side by side."""

from __future__ import annotations

from collections.abc import Iterator

from systolic.vendor.claims import Claims
from systolic.vendor.comparison.rows import BETTER, HOLDS, OPEN, WORSE, ResourceRow
from systolic.vendor.reading.facts import Resources
from systolic.vendor.reading.reports import Reports

KINDS = ("dsp", "bram36", "uram", "lut", "lutram", "ff")
GENEROUS = ("lut", "ff")
"""What Vitis HLS estimates well above of what is placed: no verdict before Vivado has counted."""


def resource_rows(claims: Claims, reports: Reports) -> Iterator[ResourceRow]:
    """A row a kind. After placement Vivado decides, before it the synthesis of what it does not estimate well above."""
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
        return WORSE, f"{fact:,g} do not fit the device's {available:,g}: take a smaller array or folding"
    if claimed is None or fact is None:
        return OPEN, ""
    if fact > claimed:
        return WORSE, f"{fact - claimed:,g} more than estimated: the rows of memories and modules say where"
    return (HOLDS if fact == claimed else BETTER), ""
