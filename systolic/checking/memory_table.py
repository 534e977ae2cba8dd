"""The memories of a design: BRAMs, URAMs or LUTs derived after partitioning, next to the generator's estimate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hls_schedule.memories import BuiltMemory
from scheduler.hardware.primitives import bram18, bram36, constant_luts, distributed_luts, uram
from scheduler.streaming.area.memory import style
from systolic.styles.estimates import Estimates

_BOUND = re.compile(r"BIND_STORAGE variable\s*=\s*(\w+).*?impl\s*=\s*(\w+)")
_ESTIMATE = re.compile(r"#define (\w+) \w+  // .* in ([\d,]+) \w+$", re.MULTILINE)


@dataclass(frozen=True)
class MemoryRow:
    """A row of the memory table: one memory, or the memories whose primitive one macro of parameters.h sets.

    Attributes:
        name: The names of the arrays in the generated code.
        process: The process that accesses the memory, or "" if several do.
        source: The position in the generated code, file:line.
        primitive: The primitive that the memory is bound to: "bram", "uram" or "lutram".
        unit: The unit of the counts: BRAM36, BRAM18, URAM or LUT.
        estimated: The estimated count. None if the design has no estimate for the memory.
        derived: The count derived from the sources. None if it cannot be derived.
    """

    name: str
    process: str
    source: str
    primitive: str
    unit: str
    estimated: int | None
    derived: int | None

    @property
    def holds(self) -> bool:
        """Return whether the derived number of primitives is at most the estimated one, or one of them is unknown."""
        return self.estimated is None or self.derived is None or self.derived <= self.estimated


def memory_rows(
    memories: Sequence[BuiltMemory], sources: Path, family: str, estimates: Estimates
) -> tuple[MemoryRow, ...]:
    """Return one row per memory. Memories whose primitive the same macro of parameters.h sets share a row.

    Args:
        memories: The memories derived from the sources.
        sources: The folder of the generated code. Its ``parameters.h`` has the estimates of the systolic engine.
        family: The board's FPGA family.
        estimates: The estimates of a streaming pipeline.
    """
    parameters = {
        name: int(count.replace(",", "")) for name, count in _ESTIMATE.findall(_text(sources / "parameters.h"))
    }
    groups: dict[tuple[str, ...], list[BuiltMemory]] = {}
    for memory in memories:
        macro = _macro(sources, memory)
        groups.setdefault((macro,) if macro else (*memory.processes, memory.name), []).append(memory)
    return tuple(_row(group, parameters.get(key[0]), family, estimates) for key, group in groups.items())


def _row(group: Sequence[BuiltMemory], estimated: int | None, family: str, estimates: Estimates) -> MemoryRow:
    memory, halves = group[0], estimates.halves
    primitive = style(memory.bits, memory.words, memory.primitive) if halves else memory.primitive
    if halves:
        estimated = next(iter(_estimates(estimates, memory)), None)
    counts = [_primitives(each, primitive, family, halves) for each in group]
    processes = sorted({process for each in group for process in each.processes})
    return MemoryRow(
        ", ".join(sorted({each.name for each in group})),
        processes[0] if len(processes) == 1 else "",
        memory.source,
        primitive,
        {"uram": "URAM", "lutram": "LUT"}.get(primitive, "BRAM18" if halves else "BRAM36"),
        estimated,
        None if None in counts else sum(count or 0 for count in counts),
    )


def _estimates(estimates: Estimates, memory: BuiltMemory) -> list[int]:
    """Return the estimated number of primitives of a pipeline's memory in each process that has an estimate."""
    keys = ((process, memory.name) for process in memory.processes)
    return [estimates.memories[key][1] for key in keys if key in estimates.memories]


def _primitives(memory: BuiltMemory, primitive: str, family: str, halves: bool) -> int | None:
    """Return how many BRAMs, URAMs or LUTs a memory takes with all partitions and copies. None if not one of these."""
    luts = constant_luts if memory.constant else distributed_luts
    each = {
        "bram": lambda: (bram18 if halves else bram36)(memory.bits, memory.words),
        "uram": lambda: uram(memory.bits, memory.words),
        "lutram": lambda: luts(memory.bits, memory.words, family),
    }.get(primitive)
    return memory.partitions * memory.copies * each() if each is not None else None


def _macro(sources: Path, memory: BuiltMemory) -> str:
    """Return the macro of parameters.h that sets a memory's primitive, or "" if its pragma names the primitive."""
    file, _, _ = memory.source.partition(":")
    bound = dict(_BOUND.findall(_text(sources / file)))
    return bound.get(memory.name, "") if bound.get(memory.name, "").endswith("_MEMORY") else ""


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""
