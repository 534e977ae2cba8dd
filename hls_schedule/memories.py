"""The memories that Vitis HLS builds for a translation unit: partitions, words, and the true width of a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hls_schedule.ports import Ports, Shape, shape_of
from hls_schedule.pragmas import Directives, Pragma
from hls_schedule.reading.ir import Loop
from hls_schedule.reading.layout import Types
from hls_schedule.reading.llvm_text import NAME_TAGS, Module
from hls_schedule.reading.members import Constants

_WIDTH = re.compile(r"ap_int_base<(\d+)")


@dataclass(frozen=True)
class BuiltMemory:
    """The memories that Vitis HLS builds for one array: ``partitions`` memories of ``words`` words of ``bits`` bits.

    Attributes:
        source: File and line of the pragma that binds the array.
        primitive: The primitive that the pragma names, in lower case.
        constant: Whether the array is never written.
        processes: The processes that access it.
        copies: Copies of each partition. A type for many readers (ROM_NP) has one copy per reader of an iteration.
    """

    name: str
    source: str
    primitive: str
    partitions: int
    words: int
    bits: int
    constant: bool
    processes: tuple[str, ...]
    copies: int = 1


def built_memories(module: Module, directives: Directives, loops: Sequence[Loop]) -> tuple[BuiltMemory, ...]:
    """Return the memories of each array that has a BIND_STORAGE pragma and that a pipelined loop accesses, sorted by
    pragma."""
    types, constants = Types(module.types), Constants(module)
    built: dict[tuple[str, str], BuiltMemory] = {}
    processes: dict[tuple[str, str], set[str]] = {}
    for loop in loops:
        bindings = directives.knowledge(loop).bindings
        ports = Ports(loop, types, bindings)
        for name in _memories(loop):
            binding = bindings[name]
            pragma = directives.binding_pragma(loop.function, name)
            if pragma is not None and loop.memories[name].kind:
                key = ("" if name.startswith("@") else loop.function, name)
                processes.setdefault(key, set()).add(directives.process_of(loop.location))
                shape = shape_of(loop.memories[name].kind, types, binding)
                bits = _true_bits(constants, (loop.function, name), shape)
                variable = directives.owned_name(loop.function, name)
                copies = max(built[key].copies if key in built else 1, ports.copies(name))
                built[key] = _built(variable, pragma, shape, bits, processes[key], copies)
    return tuple(sorted(built.values(), key=lambda memory: (memory.source, memory.processes, memory.name)))


def _memories(loop: Loop) -> set[str]:
    accesses = (access for operation in loop.operations for access in operation.accesses)
    return {access.memory for access in accesses if not access.register and not access.stream}


def _built(name: str, pragma: Pragma, shape: Shape, bits: int, processes: set[str], copies: int) -> BuiltMemory:
    return BuiltMemory(
        name, f"{pragma.file}:{pragma.line}", pragma.value("impl").lower(), shape.partitions, shape.words, bits,
        pragma.value("type").lower().startswith("rom"), tuple(sorted(processes)), copies,
    )  # fmt: skip


def _true_bits(constants: Constants, key: tuple[str, str], shape: Shape) -> int:
    """Return the bits of one word of an array, by the array's type in the sources; if that is unknown, by its size in
    bytes."""
    for reference in constants.types_of(*key):
        total = _bits(constants.module, reference)
        if total and total % (shape.partitions * shape.words) == 0:
            return total // (shape.partitions * shape.words)
    return shape.bits


def _bits(module: Module, reference: str) -> int:
    """Return the bits of a type, whose debug record is given as ``!number``; 0 if they are not known."""
    record = module.record(int(reference[1:])) if reference.startswith("!") else {}
    kind, tag = record.get("kind", ""), record.get("tag", "")
    width = _WIDTH.match(record.get("name", ""))
    if width is not None:
        return int(width[1])
    if tag in NAME_TAGS | {"DW_TAG_member"}:
        return _bits(module, record.get("baseType", ""))
    if tag == "DW_TAG_array_type":
        counts = [int(element.get("count", "0")) for element in module.elements(record)]
        return prod(counts) * _bits(module, record.get("baseType", ""))
    if tag in ("DW_TAG_structure_type", "DW_TAG_class_type"):
        members = [element for element in module.elements(record) if element.get("tag") == "DW_TAG_member"]
        return sum(_bits(module, member.get("baseType", "")) for member in members)
    if kind == "DIBasicType":
        return 1 if record.get("name") == "bool" else int(record.get("size", "0"))
    return 0
