"""Additions and ORs that are only wiring: the two numbers have no bit in common.

Packing fields into a word is an OR. LLVM's reassociation turns some ORs into additions. It turns them back only if it
sees that no bits overlap, and it looks only a few instructions deep. In hardware, such an addition is wiring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hls_schedule.reading.layout import bits_of
from hls_schedule.reading.llvm_text import Instruction, split

MAX_DEPTH = 400
"""Limit for the length of a chain of instructions that is followed."""

_TYPED = re.compile(r"(?:(?:nuw|nsw|nneg|disjoint|exact) )*(i\d+) ")


@dataclass
class BitFields:
    """The bits that may be 1 in each integer of an LLVM function."""

    definitions: Mapping[str, Instruction]
    _masks: dict[str, int] = field(default_factory=dict)

    def disjoint(self, instruction: Instruction) -> bool:
        """Return whether an instruction is an addition or an OR of two numbers that never have a 1 in the same bit."""
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
            known = definition is not None and depth < MAX_DEPTH
            self._masks[operand] = self._of(definition, depth + 1) & every if known and definition else every
        return self._masks[operand] & every

    def _of(self, definition: Instruction, depth: int) -> int:
        """Return the mask of the bits that may be 1 in an instruction's result; −1, every bit, if nothing is known."""
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
    if opcode == "and":
        return first & second
    if opcode == "add" and first & second:
        return -1  # a carry can reach any bit
    return first | second
