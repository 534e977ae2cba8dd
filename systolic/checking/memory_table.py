"""Memories of a design after partitioning, in primitives, beside what its generation estimated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hls_schedule.memories import BuiltMemory
from scheduler.hardware.primitives import bram36, distributed_luts, uram

_BOUND = re.compile(r"BIND_STORAGE variable\s*=\s*(\w+).*?impl\s*=\s*(\w+)")
_ESTIMATE = re.compile(r"#define (\w+) \w+  // .* in ([\d,]+) \w+$", re.MULTILINE)


@dataclass(frozen=True)
class MemoryRow:
    """estimated, derived: BRAM36, URAM or LUTs of a primitive; None where nothing says."""

    name: str
    source: str
    primitive: str
    estimated: int | None
    derived: int | None

    @property
    def holds(self) -> bool:
        """Whether no more is built than estimated."""
        return self.estimated is None or self.derived is None or self.derived <= self.estimated


def memory_rows(memories: Sequence[BuiltMemory], sources: Path, family: str) -> tuple[MemoryRow, ...]:
    """sources: the folder of the generated code, whose parameters tell the estimates. Memories that share one are a
    row."""
    estimates = {
        name: int(count.replace(",", "")) for name, count in _ESTIMATE.findall(_text(sources / "parameters.h"))
    }
    groups: dict[str, list[BuiltMemory]] = {}
    for memory in memories:
        groups.setdefault(_macro(sources, memory) or memory.source, []).append(memory)
    return tuple(_row(group, estimates.get(macro), family) for macro, group in groups.items())


def _row(group: Sequence[BuiltMemory], estimated: int | None, family: str) -> MemoryRow:
    counts = [_primitives(memory, family) for memory in group]
    derived = sum(count for count in counts if count is not None) if None not in counts else None
    names = ", ".join(sorted({memory.name for memory in group}))
    return MemoryRow(names, group[0].source, group[0].primitive, estimated, derived)


def _primitives(memory: BuiltMemory, family: str) -> int | None:
    """Of all partitions."""
    each = {
        "bram": lambda: bram36(memory.bits, memory.words),
        "uram": lambda: uram(memory.bits, memory.words),
        "lutram": lambda: distributed_luts(memory.bits, memory.words, family),
    }.get(memory.primitive)
    return memory.partitions * each() if each is not None else None


def _macro(sources: Path, memory: BuiltMemory) -> str:
    """The parameter that names a memory's primitive; "" where its pragma names the primitive itself."""
    file, _, _ = memory.source.partition(":")
    bound = dict(_BOUND.findall(_text(sources / file)))
    return bound.get(memory.name, "") if bound.get(memory.name, "").endswith("_MEMORY") else ""


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""
