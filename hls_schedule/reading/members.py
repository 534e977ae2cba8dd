"""Members of constant structs, from the debug information. Each member is a separate array with its own pragmas.

The LLVM type of such a constant cannot be used: the compiler splits an array whose end is zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from hls_schedule.reading.llvm_text import NAME_TAGS, Locations, Module

_STRUCTS = ("DW_TAG_structure_type", "DW_TAG_class_type")
_BETWEEN = "#"


@dataclass(frozen=True)
class Member:
    """A member of a constant struct, which is built as an array of its own.

    Attributes:
        name: Its name.
        start: Its first byte in the struct.
        kind: Its LLVM type, in which an element is an integer of the element's size.
    """

    name: str
    start: int
    kind: str


def member_memory(root: str, member: str) -> str:
    """Return the name of the memory of a struct's member: the constant's name, "#", and the member's name."""
    return root + _BETWEEN + member


def split_memory(memory: str) -> tuple[str, str]:
    """Split a memory's name into the constant and the struct's member; the member is "" if the memory is a whole
    variable."""
    root, _, member = memory.partition(_BETWEEN)
    return root, member


class Constants:
    """The constants of an LLVM module, of which each struct with arrays is split into its members."""

    def __init__(self, module: Module) -> None:
        self.module, self._locations = module, Locations(module)
        self._known: dict[str, tuple[Member, ...]] = {}

    def member(self, root: str, byte: int) -> Member | None:
        """Return the struct's member that contains byte ``byte`` of a constant; None if the constant is not a struct
        with arrays."""
        if root not in self._known:
            self._known[root] = self._members(root)
        return max(
            (each for each in self._known[root] if each.start <= byte), key=lambda each: each.start, default=None
        )

    def types_of(self, function: str, memory: str) -> Iterator[str]:
        """Yield the debug types (``!number``) of a memory, which is a variable or a struct's member."""
        root, name = split_memory(memory)
        for number in sorted(self.module.variables_of(function, root)):
            reference = self.module.record(number).get("type", "")
            members = self.module.elements(self._named(reference)) if name else ()
            yield from (record.get("baseType", "") for record in members if record.get("name") == name)
            if not name:
                yield reference

    def is_in_struct(self, root: str, file: str, line: int) -> bool:
        """Return whether a source line is in the struct type of a constant: no other struct begins between its first
        line and that line."""
        begins = (place for place in self._begins if place[0] == file and place[1] <= line)
        return max(begins, default=None) == self._place(self._struct(root))

    @cached_property
    def _begins(self) -> frozenset[tuple[str, int]]:
        records = self.module.records_of("DICompositeType")
        return frozenset(self._place(record) for record in records if record.get("tag") in _STRUCTS)

    def _place(self, record: Mapping[str, str]) -> tuple[str, int]:
        return PurePath(self._locations.file(record.get("file", ""))).name, int(record.get("line", "0"))

    def _members(self, root: str) -> tuple[Member, ...]:
        members = tuple(
            Member(record["name"], int(record.get("offset", "0")) // 8, self._kind(record.get("baseType", "")))
            for record in self.module.elements(self._struct(root))
            if record.get("tag") == "DW_TAG_member" and "Static" not in record.get("flags", "") and "name" in record
        )
        return members if any(member.kind.startswith("[") for member in members) else ()

    def _struct(self, root: str) -> Mapping[str, str]:
        for number in sorted(self.module.variables_of("", root)) if root.startswith("@") else ():
            record = self._named(self.module.record(number).get("type", ""))
            if record.get("tag") in _STRUCTS:
                return record
        return {}

    def _named(self, reference: str) -> Mapping[str, str]:
        """Return the debug record of a type (``!number``), with typedefs and qualifiers resolved."""
        record = self.module.record(int(reference[1:]) if reference.startswith("!") else 0)
        return self._named(record.get("baseType", "")) if record.get("tag") in NAME_TAGS else record

    def _kind(self, reference: str) -> str:
        record = self._named(reference)
        if record.get("tag") != "DW_TAG_array_type":
            return f"i{record.get('size', '64')}"
        kind = self._kind(record.get("baseType", ""))
        for dimension in reversed(tuple(self.module.elements(record))):
            kind = f"[{dimension.get('count', '1')} x {kind}]"
        return kind
