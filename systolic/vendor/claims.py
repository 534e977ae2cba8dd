"""A design's claims: declared II and depth of loops, memory primitives, estimated resources, clock and cycles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from boards.errors import ChoiceError, DamagedFileError, MissingValueError
from host.contract.manifest import read_manifest
from systolic.vendor.reading.text import read_text
from systolic.vendor.sources import DeclaredLoop, DeclaredStorage, Sources, read_sources

MAX_SCRIPT_BYTES = 1 << 20
"""The size in bytes above which a Tcl script is refused."""


@dataclass(frozen=True)
class MemoryClaim:
    """The primitive that a design declares for one memory, or for several that one macro of parameters.h binds.

    Attributes:
        name: "FUNCTION: VARIABLE" of each directive, with commas between them.
        storages: Their BIND_STORAGE directives.
        impl: bram, uram, lutram or auto.
        count: The number of memories. This and the next three are unknown (None) if the design does not declare them.
        depth: The number of words of each memory.
        bits: The width of a word.
        blocks: The number of blocks of the primitive that all memories take together.
    """

    name: str
    storages: tuple[DeclaredStorage, ...]
    impl: str
    count: int | None = None
    depth: int | None = None
    bits: int | None = None
    blocks: int | None = None

    @property
    def source(self) -> str:
        """ "FILE:LINE" of the first BIND_STORAGE directive."""
        return f"{self.storages[0].file}:{self.storages[0].line}"


@dataclass(frozen=True)
class Claims:
    """The figures that a design declares or estimates: loops, memories, resources, clock and cycles.

    Attributes:
        part: Vivado's name of the part.
        cell: The name of the accelerator's instance in the block design.
        loops: The pipelined loops of the top function and of all functions that it calls.
        resources: Kind → estimated count.
        cycles: The modelled cycles of one start, which runs all passes; None if the design has no passes.
    """

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
        """The period of the target clock in ns."""
        return 1000 / self.clock_mhz

    def part_of(self, function: str) -> Claims:
        """Return only the claims about ``function`` and the functions that it calls, without resources and cycles.

        Raises:
            ChoiceError: The design has no such function.
        """
        named = self.sources.named(function)
        if named is None:
            functions = sorted({part.name for part in self.sources.functions if part.process or part.loops})
            raise ChoiceError("--only", function, functions)
        names = self.sources.reached(named.name)
        return replace(
            self,
            loops=tuple(loop for loop in self.loops if loop.function in names),
            memories=tuple(claim for claim in self.memories if any(s.function in names for s in claim.storages)),
            resources={},
            cycles=None,
        )


def read_claims(folder: Path) -> Claims:
    """Read what a design declares and estimates from its C++, manifest and Tcl scripts.

    Raises:
        MissingValueError: The sources lack the top function.
        DamagedFileError: A Tcl script does not have the form of the generated ones.
        SystolicError: The manifest or the sources are refused; see ``read_manifest`` and ``read_sources``.
    """
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
    """Return the part of a generated Tcl script that ``pattern`` captures; DamagedFileError if nothing matches."""
    match = re.search(pattern, read_text(path, MAX_SCRIPT_BYTES))
    if match is None:
        reason = f"is not a script of this project: it has no line {pattern!r}"
        raise DamagedFileError(str(path), reason, remedy="generate it again")
    return match[1]


_SHAPE = re.compile(r"([\d,]+) × ([\d,]+) words of ([\d,]+) bits in ([\d,]+) ")
"""The comment in parameters.h that follows the macro of a primitive: "COUNT × DEPTH words of BITS bits in BLOCKS"."""


def _memories(sources: Sources, names: frozenset[str]) -> Iterator[MemoryClaim]:
    """Yield one claim per macro that binds memories to a primitive, and one per directive that names the primitive.

    Directives on parameters are left out, because the memory belongs to the caller.
    """
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
