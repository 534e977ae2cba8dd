"""Partitions that Vitis HLS infers for a local array without a pragma, if an unrolled loop reads it.

The log reports them as "Inferring pragma 'array_partition type=complete dim=…' … due to pipeline pragma" (HLS 214-270).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hls_schedule.ports import DUAL_PORT, PLAIN, shape_of
from hls_schedule.pragmas import Directives
from hls_schedule.reading.ir import Access, Loop
from hls_schedule.reading.layout import Types

MAX_ELEMENTS = 128
"""Limit for the elements along a dimension that is partitioned: the most that a public log shows."""


def inferred_partitions(
    loops: Sequence[Loop], types: Types, directives: Directives
) -> Mapping[tuple[str, str], frozenset[int]]:
    """Return the dimensions that are partitioned completely, by the function and the name of each array."""
    inferred: dict[tuple[str, str], frozenset[int]] = {}
    for loop in loops:
        bindings = directives.knowledge(loop).bindings
        for name, memory in loop.memories.items():
            local = name.startswith("%") and not memory.interface
            if local and bindings[name] == PLAIN and memory.kind.startswith("["):
                key = loop.function, name
                dimensions = _unrolled(loop, types, name)
                inferred[key] = inferred.get(key, frozenset()) | dimensions
    return {key: dimensions for key, dimensions in inferred.items() if dimensions}


def _unrolled(loop: Loop, types: Types, name: str) -> frozenset[int]:
    """Return the dimensions of an array, counted from 1, along which an iteration accesses several constant indices."""
    accesses = [
        access
        for operation in loop.operations
        for access in operation.accesses
        if access.memory == name and not access.register and not access.stream
    ]
    if len(set(accesses)) <= DUAL_PORT * max(1, loop.declared_ii):
        return frozenset()
    dimensions = shape_of(loop.memories[name].kind, types).dimensions
    indices = [_constant_indices(access, [dimension.stride for dimension in dimensions]) for access in accesses]
    return frozenset(
        number
        for number, dimension in enumerate(dimensions, 1)
        if 1 < dimension.count <= MAX_ELEMENTS
        and None not in (along := {index[number - 1] for index in indices})
        and len(along) > 1
    )


def _constant_indices(access: Access, strides: Sequence[int]) -> list[int | None]:
    """Return the index along each dimension; None if it is not a constant."""
    byte, terms = access.offset.constant, dict(access.offset.terms)
    indices: list[int | None] = []
    for stride in strides:
        index, byte = divmod(byte, stride)
        moving = {term for term, factor in terms.items() if factor % stride == 0}
        terms = {term: factor for term, factor in terms.items() if term not in moving}
        indices.append(None if moving else index)
    return indices
