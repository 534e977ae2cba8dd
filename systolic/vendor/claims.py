"""What a design says of itself: II and depth of its loops, primitives of its memories, resources, clock and cycles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from boards.errors import ChoiceError, DamagedFileError, MissingValueError
from host.contract.manifest import read_manifest
from systolic.vendor.reading.text import read_text
from systolic.vendor.sources import DeclaredLoop, DeclaredStorage, Sources, read_sources

LARGEST_SCRIPT = 1 << 20  # bytes


@dataclass(frozen=True)
class MemoryClaim:
    """Memories with one primitive. storages: their directives. impl: bram, uram, lutram or auto. count, depth, bits: so
    many memories of ``depth`` words of ``bits``, None where the design does not say; blocks: of its primitive."""

    name: str
    storages: tuple[DeclaredStorage, ...]
    impl: str
    count: int | None = None
    depth: int | None = None
    bits: int | None = None
    blocks: int | None = None

    @property
    def source(self) -> str:
        """FILE:LINE of the first."""
        return f"{self.storages[0].file}:{self.storages[0].line}"


@dataclass(frozen=True)
class Claims:
    """Of one design. resources: kind → estimated count. cycles: of a start with all its passes, modelled; None where
    the design never stops. cell: its instance in the block design."""

    network: str
    board: str
    top: str
    part: str
    cell: str
    clock_mhz: float
    sources: Sources
    loops: tuple[DeclaredLoop, ...]
    memories: tuple[MemoryClaim, ...]
    resources: dict[str, int]
    cycles: int | None

    @property
    def period_ns(self) -> float:
        """Of the target clock."""
        return 1000 / self.clock_mhz

    def part_of(self, function: str) -> Claims:
        """Return the claims about ``function`` and what it calls; ChoiceError if the design has no such function."""
        named = self.sources.named(function)
        if named is None:
            functions = sorted({part.name for part in self.sources.functions if part.process or part.loops})
            raise ChoiceError("the function", function, functions)
        names = self.sources.reached(named.name)
        return replace(
            self,
            loops=tuple(loop for loop in self.loops if loop.function in names),
            memories=tuple(claim for claim in self.memories if any(s.function in names for s in claim.storages)),
            resources={},
            cycles=None,
        )


def read_claims(folder: Path) -> Claims:
    """Read the claims of a generated folder. Raises the errors of ``read_manifest`` and ``read_sources``,
    MissingValueError if the sources lack the top function, and DamagedFileError for a script of another form."""
    manifest = read_manifest(folder)
    sources = read_sources(folder)
    names = sources.reached(manifest.top)
    if not names:
        what, remedy = f"the function {manifest.top}", "copy the whole generated folder"
        raise MissingValueError(what, where=str(folder / "src"), remedy=remedy)
    estimate = manifest.estimate
    return Claims(
        network=manifest.network,
        board=manifest.board,
        top=manifest.top,
        part=_word_of(folder / "run_hls.tcl", r"set_part \{?([\w.-]+)\}?"),
        cell=_word_of(folder / "build_vivado.tcl", r"set accelerator (\w+)"),
        clock_mhz=manifest.clock_mhz,
        sources=sources,
        loops=tuple(loop for function in sources.functions if function.name in names for loop in function.loops),
        memories=tuple(_memories(sources, names)),
        resources={kind: getattr(estimate, kind) for kind in ("dsp", "bram36", "uram", "lut", "lutram")},
        cycles=round(sum(manifest.pass_cycles)) if manifest.passes > 1 else None,
    )


def _word_of(path: Path, pattern: str) -> str:
    """Return the word that a generated script has at ``pattern``; DamagedFileError if there is none."""
    match = re.search(pattern, read_text(path, LARGEST_SCRIPT))
    if match is None:
        reason = f"is not a script of this project: it has no line {pattern!r}"
        raise DamagedFileError(str(path), reason, remedy="generate it again")
    return match[1]


_SHAPE = re.compile(r"([\d,]+) × ([\d,]+) words of ([\d,]+) bits in ([\d,]+) ")
"""As parameters.h says it beside the macro of a primitive."""


def _memories(sources: Sources, names: frozenset[str]) -> Iterator[MemoryClaim]:
    """One a macro, with all memories that have it; one a directive that names its primitive itself."""
    by_macro: dict[str, list[DeclaredStorage]] = {}
    for function in sources.functions:
        parameters = set(re.findall(r"\w+", function.parameters))
        placed = (storage for storage in function.storages if storage.variable not in parameters)
        for storage in placed if function.name in names else ():
            macro = storage.impl if storage.impl in sources.macros else f"{function.name} {storage.variable}"
            by_macro.setdefault(macro, []).append(storage)
    for macro, storages in by_macro.items():
        impl, comment = sources.macros.get(macro, (storages[0].impl, ""))
        name = ", ".join(f"{storage.function}: {storage.variable}" for storage in storages)
        shape = _SHAPE.match(comment)
        counts = [int(part.replace(",", "")) for part in shape.groups()] if shape else [None] * 4
        yield MemoryClaim(name, tuple(storages), impl, *counts)
