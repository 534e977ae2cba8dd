"""Additions and disjunctions that are none: of numbers that have no bit in common.

A word that is put together of fields is a disjunction. LLVM's reassociation turns some of them into additions, and back
only where it sees that no bit meets another, for which it looks a few instructions deep. To hardware it is wiring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hls_schedule.reading.layout import bits_of
from hls_schedule.reading.llvm_text import Instruction, split

DEEPEST = 400
"""Instructions that are looked through, one behind the other."""

_TYPED = re.compile(r"(?:(?:nuw|nsw|nneg|disjoint|exact) )*(i\d+) ")


@dataclass
class BitFields:
    """Of a function's values the bits that may be set."""

    definitions: Mapping[str, Instruction]
    _masks: dict[str, int] = field(default_factory=dict)

    def disjoint(self, instruction: Instruction) -> bool:
        """Whether an addition or a disjunction is one of two numbers without a common bit."""
        matched = _TYPED.match(instruction.text)
        if instruction.opcode not in ("add", "or") or matched is None:
            return False
        first, second = split(instruction.text[matched.end() :])[:2]
        return not self._mask(first, bits_of(matched[1]), 0) & self._mask(second, bits_of(matched[1]), 0)

    def _mask(self, operand: str, bits: int, depth: int) -> int:
        every = (1 << bits) - 1
        if operand.lstrip("-").isdigit():
            return int(operand) & every
        if operand not in self._masks:
            definition = self.definitions.get(operand)
            known = definition is not None and depth < DEEPEST
            self._masks[operand] = self._of(definition, depth + 1) & every if known and definition else every
        return self._masks[operand] & every

    def _of(self, definition: Instruction, depth: int) -> int:
        """-1 for every bit, where nothing is known."""
        text, opcode = definition.text, definition.opcode
        if opcode == "select":
            return self._either([piece.split(" ", 1) for piece in split(text)[1:3]], depth)
        matched = _TYPED.match(text)
        if matched is None:
            return -1
        bits, rest = bits_of(matched[1]), text[matched.end() :]
        if opcode in ("zext", "trunc"):
            return self._mask(rest.partition(" to ")[0], bits, depth)
        pieces = split(rest)
        if opcode in ("shl", "lshr") and pieces[1].isdigit():
            mask, by = self._mask(pieces[0], bits, depth), int(pieces[1])
            return mask << by if opcode == "shl" else mask >> by
        if opcode in ("and", "or", "xor", "add"):
            return _joined(opcode, *(self._mask(piece, bits, depth) for piece in pieces[:2]))
        return -1

    def _either(self, pieces: list[list[str]], depth: int) -> int:
        masks = [self._mask(operand, bits_of(kind), depth) for kind, operand in pieces]
        return masks[0] | masks[1]


def _joined(opcode: str, first: int, second: int) -> int:
    """A sum of numbers with common bits may have any."""
    if opcode == "and":
        return first & second
    return -1 if opcode == "add" and first & second else first | second
