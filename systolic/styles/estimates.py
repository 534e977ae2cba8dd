"""The DSPs and memories that were estimated for each process of a design when it was generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Estimates:
    """The estimated DSPs and memories of each process; a process is a function of the generated C++.

    Attributes:
        dsps: The DSPs of each process that has any, by the process's name in the sources.
        memories: For each (process, variable) the memory primitive and the number of such primitives.
        halves: Whether BRAM is counted in BRAM18 instead of BRAM36.
        cascaded: The processes whose DSPs pass their sums along a cascade, so that no adders are estimated for them.
    """

    dsps: Mapping[str, int]
    memories: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    halves: bool = False
    cascaded: frozenset[str] = frozenset()
