"""True widths of values: the range that follows from the operations that compute a value.

The width of a multiplier follows from the ranges of its factors, not from the type of the product in the sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hls_schedule.reading.layout import bits_of
from hls_schedule.reading.llvm_text import Instruction, split

MAX_DEPTH = 200
"""Limit for the length of a chain of instructions that is followed."""

_TYPED = re.compile(r"(?:(?:nuw|nsw|nneg|disjoint|exact) )*(i\d+) ")

_EXTENSIONS = ("sext", "zext", "trunc")
_SUMS = ("add", "sub", "or")
_KEEPING = (*_EXTENSIONS, *_SUMS, "shl", "ashr", "lshr", "and")
"""Operations that keep lower zero bits, or shift them."""

Interval = tuple[int, int]
"""Lowest and highest value, as signed numbers."""


@dataclass
class Ranges:
    """The lowest and highest values that each integer of an LLVM function can have."""

    definitions: Mapping[str, Instruction]
    _known: dict[str, Interval] = field(default_factory=dict)
    _empty: dict[str, int] = field(default_factory=dict)

    def signed_bits(self, operand: str, kind: str) -> int:
        """Return the bits of the narrowest signed number that holds every value of an operand of type ``kind``."""
        low, high = self._range(operand, bits_of(kind), 0)
        return max(low if low >= 0 else ~low, high if high >= 0 else ~high).bit_length() + 1

    def factor_bits(self, operand: str, kind: str) -> int:
        """Return the bits that a multiplier needs for a factor. Lower bits that are always 0 do not count, because they
        only shift the product."""
        return max(1, self.signed_bits(operand, kind) - self._zeros(operand, 0))

    def _zeros(self, operand: str, depth: int) -> int:
        """Return the number of an operand's lower bits that are always 0."""
        if operand.lstrip("-").isdigit():
            return max(0, (int(operand) & -int(operand)).bit_length() - 1)
        if operand not in self._empty:
            definition = self.definitions.get(operand)
            keeps = definition is not None and depth <= MAX_DEPTH and definition.opcode in _KEEPING
            self._empty[operand] = self._zeros_of(definition, depth) if definition is not None and keeps else 0
        return self._empty[operand]

    def _zeros_of(self, definition: Instruction, depth: int) -> int:
        matched = _TYPED.match(definition.text)
        if matched is None:
            return 0
        pieces = split(definition.text[matched.end() :].partition(" to ")[0])[:2]
        if definition.opcode in _SUMS:
            return min(self._zeros(piece, depth + 1) for piece in pieces)
        if definition.opcode == "and":
            return max(self._zeros(piece, depth + 1) for piece in pieces)
        by = int(pieces[1]) if pieces[-1].isdigit() else 0
        return max(0, self._zeros(pieces[0], depth + 1) + (by if definition.opcode == "shl" else -by))

    def _range(self, operand: str, bits: int, depth: int) -> Interval:
        if operand.lstrip("-").isdigit():
            return int(operand), int(operand)
        if operand in ("true", "false"):
            return (-1, -1) if operand == "true" else (0, 0)
        if operand not in self._known:
            definition = self.definitions.get(operand)
            values = self._of(definition, depth + 1) if definition is not None and depth < MAX_DEPTH else None
            self._known[operand] = _within(values, bits)
        return self._known[operand]

    def _of(self, definition: Instruction, depth: int) -> Interval | None:
        """Return the lowest and highest value of an instruction's result; None if nothing is known."""
        text, opcode = definition.text, definition.opcode
        if opcode == "select":
            return self._chosen([piece.split(" ", 1) for piece in split(text)[1:3]], depth)
        matched = _TYPED.match(text)
        if matched is None or opcode not in (*_EXTENSIONS, *_COMBINED):
            return None
        bits, operands = bits_of(matched[1]), text[matched.end() :]
        if opcode in _EXTENSIONS:
            source = self._range(operands.partition(" to ")[0], bits, depth)
            return (0, (1 << bits) - 1) if opcode == "zext" and source[0] < 0 else source
        first, second = split(operands)[:2]
        shift = self._shifted_left(first, bits, depth) if opcode == "ashr" and second.isdigit() else None
        if shift is not None:
            return shift[0] >> int(second), shift[1] >> int(second)
        return _COMBINED[opcode](self._range(first, bits, depth), self._range(second, bits, depth))

    def _chosen(self, choices: Sequence[Sequence[str]], depth: int) -> Interval:
        """Return the lowest and highest value of a select; each of its choices is (type, operand)."""
        ranges = [self._range(operand, bits_of(kind), depth) for kind, operand in choices]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def _shifted_left(self, operand: str, bits: int, depth: int) -> Interval | None:
        """Return the range of a number that a shift moves up to the sign bit, so that its upper bits are lost; None for
        other operands."""
        shift = self.definitions.get(operand)
        matched = _TYPED.match(shift.text) if shift is not None and shift.opcode == "shl" else None
        source, by = split(shift.text[matched.end() :])[:2] if shift is not None and matched else ("", "")
        if not by.isdigit():
            return None
        extension, width = self.definitions.get(source), bits
        if extension is not None and extension.opcode == "zext":
            kind, _, source = extension.text.removeprefix("nneg ").partition(" ")
            source, width = source.partition(" to ")[0], bits_of(kind)
        low, high = _within(self._range(source, width, depth), min(width, bits - int(by)))
        return (low << int(by), high << int(by)) if width >= bits - int(by) else None


def _all(bits: int) -> Interval:
    return -(1 << bits - 1), (1 << bits - 1) - 1


def _within(values: Interval | None, bits: int) -> Interval:
    """Return the given range, or the whole signed range of ``bits`` bits if the range is unknown or exceeds it."""
    low, high = _all(bits)
    return values if values is not None and low <= values[0] and values[1] <= high else (low, high)


def _sum(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def _difference(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _masked(a: Interval, b: Interval) -> Interval | None:
    """Return the range of a bitwise AND, from its operands' ranges: at most the lower maximum of its non-negative
    operands."""
    limits = [high for low, high in (a, b) if low >= 0]
    return (0, min(limits)) if limits else (min(a[0], b[0]), max(a[1], b[1], 0))


def _joined(a: Interval, b: Interval) -> Interval | None:
    """Return the range of a bitwise OR or XOR, from its operands' ranges: it has the width of the wider operand."""
    low, high = min(a[0], b[0]), max(a[1], b[1])
    bits = max(low if low >= 0 else ~low, high if high >= 0 else ~high).bit_length()
    return (0 if low >= 0 else -(1 << bits)), (1 << bits) - 1


def _left(a: Interval, b: Interval) -> Interval | None:
    return (a[0] << b[0], a[1] << b[0]) if b[0] == b[1] and 0 <= b[0] < 512 else None


def _right(a: Interval, b: Interval) -> Interval | None:
    return (a[0] >> b[0], a[1] >> b[0]) if b[0] == b[1] and 0 <= b[0] < 512 else a


def _logical(a: Interval, b: Interval) -> Interval | None:
    return _right(a, b) if a[0] >= 0 else None


_COMBINED = {
    "add": _sum, "sub": _difference, "mul": _product, "and": _masked, "or": _joined, "xor": _joined,
    "shl": _left, "ashr": _right, "lshr": _logical,
}  # fmt: skip
