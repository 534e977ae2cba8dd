"""Addresses and indices as linear sums, Σ factor · value + constant, if the code that computes them is linear."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hls_schedule.reading.layout import Types, bits_of
from hls_schedule.reading.llvm_text import Instruction, arguments_of, split

_OPERAND = re.compile(r'(%(?:"[^"]*"|[-\w$.]+)|@(?:"[^"]*"|[-\w$.]+)|-?\d+|true|false)$')
_PARTS = re.compile(r"_ssdm_op_BitConcatenate")
MAX_DEPTH = 64
"""Limit for the length of a chain of instructions that is followed."""


@dataclass(frozen=True)
class Linear:
    """A linear sum Σ factor · value + constant: sorted pairs (value's name, factor), and the constant."""

    terms: tuple[tuple[str, int], ...]
    constant: int

    def times(self, factor: int) -> Linear:
        """Return this sum multiplied by ``factor``."""
        if not factor:
            return ZERO
        return Linear(tuple((name, factor * value) for name, value in self.terms), factor * self.constant)

    def plus(self, addend: Linear) -> Linear:
        """Return this sum plus ``addend``."""
        if not self.terms or not addend.terms:
            return Linear(self.terms or addend.terms, self.constant + addend.constant)
        factors = Counter(dict(self.terms))
        factors.update(dict(addend.terms))
        return Linear(tuple(sorted((n, f) for n, f in factors.items() if f)), self.constant + addend.constant)


ZERO = Linear((), 0)


@dataclass(frozen=True)
class Address:
    """A memory address: ``offset`` bytes after ``root``, a global, an alloca, an argument, or a pointer of unknown
    origin."""

    root: str
    offset: Linear


class Addresses:
    """The pointers and integers that one LLVM function computes, as linear sums.

    Args:
        definitions: The instruction that defines each value.
        types: The types of the module.
        scalars: Allocas of a single value. A value loaded from one is a variable with the alloca's name.
    """

    def __init__(self, definitions: Mapping[str, Instruction], types: Types, scalars: frozenset[str]) -> None:
        self._definitions, self._types, self._scalars = definitions, types, scalars
        self._values: dict[str, Linear] = {}
        self.arrays: dict[str, str] = {}
        """The array type of each root that has no type of its own, as addresses in it name it."""

    def pointer(self, operand: str) -> Address:
        """Return the address to which a pointer operand points. The operand is a value's name or a constant
        expression."""
        operand = operand.strip()
        if operand.startswith("getelementptr"):
            return self._element(operand[operand.index("(") + 1 :])
        matched = _OPERAND.search(operand)
        name = matched[1] if matched else operand
        definition = self._definitions.get(name)
        if definition is not None and definition.opcode == "getelementptr":
            return self._element(definition.text)
        if definition is not None and definition.opcode in ("bitcast", "addrspacecast"):
            return self.pointer(definition.text.partition(" to ")[0])
        return Address(name, ZERO)

    def _element(self, text: str) -> Address:
        """Return the address that a getelementptr computes; ``text`` is the instruction from its flags on."""
        pieces = split(text)
        kind = re.sub(r"^(?:(?:inbounds|nuw|nusw|inrange\(.*?\)) )*", "", pieces[0])
        start = self.pointer(pieces[1].removeprefix("ptr "))
        if self._types.array(kind) and start.offset == ZERO:
            self.arrays.setdefault(start.root, kind)
        offset = start.offset
        for number, index in enumerate(pieces[2:]):
            value = self.value(index)
            if number == 0:
                offset = offset.plus(value.times(self._types.size(kind)))
            elif self._types.array(kind):
                kind = self._types.element(kind, None)[0]
                offset = offset.plus(value.times(self._types.size(kind)))
            else:
                kind, byte = self._types.element(kind, value.constant)
                offset = offset.plus(Linear((), byte))
        return Address(start.root, offset)

    def value(self, operand: str, depth: int = 0) -> Linear:
        """Return an integer operand as a linear sum of other values; the operand may have its type in front."""
        matched = _OPERAND.search(operand)
        name = matched[1] if matched else operand
        if name.lstrip("-").isdigit():
            return Linear((), int(name))
        if name in ("true", "false"):
            return Linear((), int(name == "true"))
        if name not in self._values:
            self._values[name] = self._taken_apart(name, depth)
        return self._values[name]

    def _taken_apart(self, name: str, depth: int) -> Linear:
        definition = self._definitions.get(name)
        linear = None if definition is None or depth > MAX_DEPTH else self._linear(name, definition, depth + 1)
        return Linear(((name, 1),), 0) if linear is None else linear

    def _linear(self, name: str, definition: Instruction, depth: int) -> Linear | None:
        """Return an instruction's integer result as a linear sum of other values; None if it is not linear."""
        text = definition.text
        if definition.opcode in ("zext", "sext", "trunc"):
            return self._extended(definition, depth)
        if definition.opcode == "load":
            return self._loaded(split(text)[1].removeprefix("ptr "))
        if definition.opcode == "call" and _PARTS.search(text):
            return self._concatenated(text, depth)
        pieces = split(text)
        if definition.opcode == "and" and pieces[-1].isdigit() and int(pieces[-1]):
            return Linear(((name, int(pieces[-1]) & -int(pieces[-1])),), 0)  # a multiple of the mask's lowest bit
        if definition.opcode not in ("add", "sub", "mul", "shl", "or"):
            return None
        return _combined(definition.opcode, "disjoint" in text, *(self.value(piece, depth) for piece in pieces))

    def _extended(self, definition: Instruction, depth: int) -> Linear | None:
        narrow = self.value(definition.text.partition(" to ")[0], depth)
        wraps = definition.opcode == "sext" and _wraps(narrow, bits_of(definition.text.split()[0]))
        return None if wraps else narrow

    def _loaded(self, root: str) -> Linear | None:
        return Linear(((root, 1),), 0) if root in self._scalars else None

    def _concatenated(self, text: str, depth: int) -> Linear:
        total = ZERO
        for part in arguments_of(text):
            bits = int(re.match(r"i(\d+)", part)[1])  # type: ignore[index]
            value = self.value(part, depth + 1)
            unsigned = value if value.terms else Linear((), value.constant % (1 << bits))
            total = total.times(1 << bits).plus(unsigned)
        return total


def _wraps(value: Linear, bits: int) -> bool:
    """Return whether a linear sum with variables has a constant outside the range of signed numbers of ``bits``
    bits."""
    return bool(value.terms) and not -(1 << (bits - 1)) <= value.constant < 1 << (bits - 1)


def _disjoint(first: Linear, second: Linear) -> bool:
    """Return whether ``second`` is a constant that has no bit in common with the multiples that ``first`` can be."""
    lowest = min((factor & -factor for _, factor in first.terms), default=0)
    return not second.terms and 0 <= second.constant < lowest and first.constant % lowest == 0


def _combined(opcode: str, disjoint: bool, first: Linear, second: Linear) -> Linear | None:
    if opcode == "add" or (opcode == "or" and (disjoint or _disjoint(first, second))):
        return first.plus(second)
    if opcode == "sub":
        return first.plus(second.times(-1))
    if opcode == "mul" and not (first.terms and second.terms):
        return first.times(second.constant) if not second.terms else second.times(first.constant)
    if opcode == "shl" and not second.terms:
        return first.times(1 << min(second.constant, 128))
    return None
