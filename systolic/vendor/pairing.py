"""Which loop and which memory of a report is which of the sources.

Vitis HLS calls a loop without a label VITIS_LOOP_LINE_NUMBER, a flattened nest by all its names, and the hardware of a
loop FUNCTION_Pipeline_LOOP. A line may be that of several headers, so the function, or one that calls it, decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from systolic.vendor.claims import Claims, MemoryClaim
from systolic.vendor.reading.facts import LoopFact, StorageFact
from systolic.vendor.sources import DeclaredLoop, Sources

_LINES = re.compile(r"VITIS_LOOP_(\d+)_\d+")


def pair_loops(claims: Claims, facts: Iterable[LoopFact]) -> tuple[dict[DeclaredLoop, list[LoopFact]], list[LoopFact]]:
    """Declared loop → what became of it, once an instance of its function; and the loops that nothing is declared
    of."""
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
    """The function whose hardware a module is, "" where no name fits: instances of templates and copies end in more."""
    base = module.partition("_Pipeline_")[0]
    names = (f.name for f in sources.functions if base == f.name or base.startswith(f"{f.name}_"))
    return max(names, key=len, default="")


def pair_storages(
    claims: Claims, facts: Iterable[StorageFact]
) -> tuple[dict[MemoryClaim, list[StorageFact]], list[StorageFact]]:
    """Claim → the memories that it became, and those that nothing is claimed of: FIFOs, adapters, what the tool
    chose."""
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
    """Partitions are numbered behind the variable's name; a static's stands behind its function and type. Of several
    the one in the function itself, then the longest name: map_buffer is no buffer."""
    function = function_of(claims.sources, fact.module)
    callees = claims.sources.reached(function)
    fitting = [
        (storage.function == function, len(storage.variable), claim)
        for claim in claims.memories
        for storage in claim.storages
        if storage.function in callees and re.search(rf"(?:^|_){re.escape(storage.variable)}(?:_|$)", fact.variable)
    ]
    return max(fitting, key=lambda match: match[:2])[2] if fitting else None
