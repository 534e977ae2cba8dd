"""Sizes of LLVM's types in bytes, as clang lays them out for the machine that a check compiles for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hls_schedule.reading.llvm_text import split

_ARRAY = re.compile(r"\[(\d+) x (.*)\]$")
_INTEGER = re.compile(r"i(\d+)$")
_FLOATS = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


@dataclass(frozen=True)
class Types:
    """The LLVM types of a module, with their sizes; ``named`` has the type of each struct name."""

    named: Mapping[str, str]

    @cached_property
    def _known(self) -> dict[str, tuple[int, int]]:
        return {}

    def size(self, kind: str) -> int:
        """Return the bytes that a value of a type takes in memory, padding included."""
        return self._extent(kind)[0]

    def element(self, kind: str, index: int | None) -> tuple[str, int]:
        """Return the type of element ``index`` of a struct or an array, and its first byte; ``None`` is the first
        element."""
        resolved = self.named.get(kind, kind)
        array = _ARRAY.match(resolved)
        if array is not None:
            return array[2], (index or 0) * self.size(array[2])
        position = 0
        for number, member in enumerate(self.members(resolved)):
            size, align = self._extent(member)
            position = _rounded(position, 1 if resolved.startswith("<") else align)
            if number == (index or 0):
                return member, position
            position += size
        return resolved, 0

    def members(self, kind: str) -> tuple[str, ...]:
        """Return the types of a struct's members; empty if the type is not a struct."""
        resolved = self.named.get(kind, kind)
        braced = resolved.strip("<>").strip()
        return split(braced[1:-1]) if braced.startswith("{") else ()

    def array(self, kind: str) -> tuple[int, str] | None:
        """Return the length and the element type of an array; None if the type is not an array."""
        matched = _ARRAY.match(self.named.get(kind, kind))
        return (int(matched[1]), matched[2]) if matched else None

    def _extent(self, kind: str) -> tuple[int, int]:
        """Return the size and the alignment of a type in bytes."""
        if kind not in self._known:
            self._known[kind] = self._measured(kind)
        return self._known[kind]

    def _measured(self, kind: str) -> tuple[int, int]:
        resolved = self.named.get(kind, kind)
        integer, array = _INTEGER.match(resolved), _ARRAY.match(resolved)
        if integer is not None:
            stored = (int(integer[1]) + 7) // 8
            align = next((power for power in (1, 2, 4, 8) if power >= stored), 16)
            return _rounded(stored, align), align
        if array is not None:
            size, align = self._extent(array[2])
            return int(array[1]) * size, align
        members = self.members(resolved)
        if not members:
            size = _FLOATS.get(resolved, 8)
            return size, size
        packed, position, widest = resolved.startswith("<"), 0, 1
        for member in members:
            size, align = self._extent(member)
            align = 1 if packed else align
            position, widest = _rounded(position, align) + size, max(widest, align)
        return _rounded(position, widest), widest


def _rounded(value: int, step: int) -> int:
    return -(-value // step) * step


def bits_of(kind: str) -> int:
    """Return the bits of a value of an LLVM type; 64 for addresses and structs."""
    integer = _INTEGER.match(kind)
    return int(integer[1]) if integer else 8 * _FLOATS.get(kind, 8)
