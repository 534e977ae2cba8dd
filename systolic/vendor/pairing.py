"""Pairs each loop and memory in a Vitis HLS report with the loop and memory of the C++ that it came from.

Vitis HLS calls a loop without a label VITIS_LOOP_LINE_NUMBER. It joins the names of a flattened loop nest, and it calls
the hardware of a loop FUNCTION_Pipeline_LOOP. Several headers can have a loop at the same line. Then the function, or
one that calls it, decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from systolic.vendor.claims import Claims, MemoryClaim
from systolic.vendor.reading.facts import LoopFact, StorageFact
from systolic.vendor.sources import DeclaredLoop, Sources

_LINES = re.compile(r"VITIS_LOOP_(\d+)_\d+")


def pair_loops(claims: Claims, facts: Iterable[LoopFact]) -> tuple[dict[DeclaredLoop, list[LoopFact]], list[LoopFact]]:
    """Return {declared loop: its instances in the report}, and the reported loops that no C++ declares."""
    pairs: dict[DeclaredLoop, list[LoopFact]] = {loop: [] for loop in claims.loops}
    undeclared: list[LoopFact] = []
    for fact in facts:
        loop = _declared(claims, fact)
        if loop is None:
            undeclared.append(fact)
        else:
            pairs[loop].append(fact)
    return pairs, undeclared


def _declared(claims: Claims, fact: LoopFact) -> DeclaredLoop | None:
    file = fact.source.rpartition(":")[0].rpartition("/")[2]
    function = function_of(claims.sources, fact.module)
    callees = claims.sources.reached(function)
    for line in reversed(_LINES.findall(fact.name)):
        loops = [loop for loop in claims.loops if loop.line == int(line) and file in ("", loop.file)]
        direct = [loop for loop in loops if loop.function == function]
        called = [loop for loop in loops if loop.function in callees]
        for candidates in (direct, called, loops if not function else []):
            if len(candidates) == 1:
                return candidates[0]
    return None


def function_of(sources: Sources, module: str) -> str:
    """Return the C++ function that an RTL module of the report implements; "" if no name fits.

    The module's name has a suffix if the function is a template or the tool copied it. The longest fitting name is
    taken.
    """
    base = module.partition("_Pipeline_")[0]
    names = (f.name for f in sources.functions if base == f.name or base.startswith(f"{f.name}_"))
    return max(names, key=len, default="")


def pair_storages(
    claims: Claims, facts: Iterable[StorageFact]
) -> tuple[dict[MemoryClaim, list[StorageFact]], list[StorageFact]]:
    """Return {claim: the reported memories it is about}, and the reported memories without a claim.

    FIFOs, adapters and memories that the tool chose by itself have no claim.
    """
    pairs: dict[MemoryClaim, list[StorageFact]] = {claim: [] for claim in claims.memories}
    unclaimed: list[StorageFact] = []
    for fact in facts:
        claim = None if fact.kind in ("fifo", "m_axi", "s_axilite") else _claim(claims, fact)
        if claim is None:
            unclaimed.append(fact)
        else:
            pairs[claim].append(fact)
    return pairs, unclaimed


def _claim(claims: Claims, fact: StorageFact) -> MemoryClaim | None:
    """Return the claim about a memory of the report; None if its name contains no claimed variable's name.

    A partition has a number after the variable's name. The name of a static variable follows the names of its function
    and type. If several claims fit, one in the function itself is preferred, then the longest variable name, so that
    ``map_buffer`` is not taken for ``buffer``.
    """
    function = function_of(claims.sources, fact.module)
    callees = claims.sources.reached(function)
    fitting = [
        (storage.function == function, len(storage.variable), claim)
        for claim in claims.memories
        for storage in claim.storages
        if storage.function in callees and re.search(rf"(?:^|_){re.escape(storage.variable)}(?:_|$)", fact.variable)
    ]
    return max(fitting, key=lambda match: match[:2])[2] if fitting else None
