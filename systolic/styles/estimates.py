"""What a design was said to take when it was generated, process by process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Estimates:
    """dsps: of each process that has any, by its name in the sources. memories: (process, variable) → (primitive, how
    many of it); ``halves``: BRAM is counted in BRAM18, not BRAM36. cascaded: processes whose DSPs pass sums on, so that
    no adders are estimated for them."""

    dsps: Mapping[str, int]
    memories: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    halves: bool = False
    cascaded: frozenset[str] = frozenset()
