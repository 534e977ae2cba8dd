"""Memories: comparison of the declared primitives and their number with what Vitis HLS built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from systolic.vendor.claims import Claims, MemoryClaim
from systolic.vendor.comparison.rows import BETTER, HOLDS, OPEN, WORSE, MemoryRow
from systolic.vendor.pairing import pair_storages
from systolic.vendor.reading.facts import StorageFact, Synthesis

_PRIMITIVES = {"bram": "BRAM36", "uram": "URAM", "lutram": "LUTRAM"}


def memory_rows(claims: Claims, synthesis: Synthesis | None) -> Iterator[MemoryRow]:
    """Yield one row per claimed memory, then one for all FIFOs and one for all AXI adapters, which have no claim."""
    pairs, unclaimed = pair_storages(claims, synthesis.storages if synthesis else ())
    for claim, facts in pairs.items():
        yield _memory_row(claim, facts, synthesis is not None)
    for kind in ("fifo", "m_axi"):
        facts = [fact for fact in unclaimed if fact.kind == kind]
        if facts:
            yield MemoryRow(
                name={"fifo": "FIFOs of streams", "m_axi": "adapters of AXI ports"}[kind],
                source="",
                claimed="",
                achieved=_achieved(facts),
                bram36=_halves(facts),
                uram=sum(fact.uram for fact in facts),
                verdict=OPEN,
                advice="",
            )


def _memory_row(claim: MemoryClaim, facts: Sequence[StorageFact], synthesised: bool) -> MemoryRow:
    primitive = _PRIMITIVES.get(claim.impl, claim.impl)
    shape = f" in {claim.count:,} of {claim.depth:,} × {claim.bits:,} bits" if claim.count else ""
    claimed = f"{claim.blocks:,} {primitive}{shape}" if claim.blocks is not None else primitive
    verdict, advice = _memory_verdict(claim, facts) if facts else (OPEN, "")
    if not facts and synthesised:
        advice = (
            "the report has no memory of this name: its function was not synthesised, or the tool used registers for it"
        )
    return MemoryRow(
        name=claim.name,
        source=claim.source,
        claimed=claimed,
        achieved=_achieved(facts) if facts else "",
        bram36=_halves(facts) if facts else None,
        uram=sum(fact.uram for fact in facts) if facts else None,
        verdict=verdict,
        advice=advice,
    )


def _memory_verdict(claim: MemoryClaim, facts: Sequence[StorageFact]) -> tuple[str, str]:
    bram36, uram = _halves(facts), sum(fact.uram for fact in facts)
    wrong = sorted({fact.impl for fact in facts if fact.impl not in (claim.impl, "auto", "")})
    if wrong and claim.impl != "auto":
        return WORSE, (
            f"the tool used {', '.join(wrong)}: its log says at {claim.source} why the directive was not followed"
        )
    if claim.blocks is None:
        return HOLDS, ""
    allowed = {"bram": (claim.blocks, 0), "uram": (0, claim.blocks)}.get(claim.impl, (0, 0))
    if bram36 <= allowed[0] and uram <= allowed[1]:
        return (BETTER if (bram36, uram) < allowed else HOLDS), ""
    parts = (
        f"{len(facts)} memories instead of the claimed {claim.count}: the tool split a struct with an array of lanes, "
        "or partitioned an array on its own. One wide word, or AGGREGATE, keeps the memory whole"
        if claim.count and len(facts) > claim.count
        else "the words are wider or more numerous than the sources declare; compare the width in the report with the "
        "claim"
    )
    return WORSE, parts


def _halves(facts: Sequence[StorageFact]) -> float:
    return sum(fact.bram18 for fact in facts) / 2


def _achieved(facts: Sequence[StorageFact]) -> str:
    blocks = {"BRAM36": _halves(facts), "URAM": float(sum(fact.uram for fact in facts))}
    parts = [f"{count:g} {name}" for name, count in blocks.items() if count]
    kinds = sorted({fact.impl for fact in facts if fact.impl})
    return f"{' and '.join(parts) or ', '.join(kinds) or 'no block'} in {len(facts):,}"
