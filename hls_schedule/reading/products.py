"""Products in LLVM IR: those that a BIND_OP pragma names, and those that are sums of few shifted operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hls_schedule.reading.llvm_text import Instruction

MAX_DISTANCE = 3
"""Limit for the operations between a product and the result that a BIND_OP names: extensions, selects and sums."""

MAX_DIGITS = 3
"""Limit for the non-zero signed digits of a constant factor. Such a product is built of shifts and additions."""


def products_of(
    definitions: Mapping[str, Instruction], instruction: Instruction, depth: int = MAX_DISTANCE
) -> Iterator[str]:
    """Yield the products from which a value is computed, within a few operations."""
    for value in instruction.values:
        source = definitions.get(value)
        if source is not None and source.opcode == "mul":
            yield value
        elif source is not None and depth:
            yield from products_of(definitions, source, depth - 1)


def few_digits(factor: str) -> bool:
    """Return whether a factor is a constant that is a sum of at most ``MAX_DIGITS`` powers of two, each added or
    subtracted."""
    if not factor.lstrip("-").isdigit():
        return False
    number, digits = abs(int(factor)), 0
    while number:
        if number & 1:
            digits += 1
            number += -1 if number & 3 == 1 else 1
        number >>= 1
    return digits <= MAX_DIGITS
