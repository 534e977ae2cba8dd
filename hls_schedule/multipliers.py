"""Multipliers of a translation unit as they are built: how many, how wide, and in what.

A product is a multiplier of its own, whatever its sum becomes: a DSP adds what it multiplies, and several products in
one are what the sources pack into it. A function that is called twice has two of each, unless an ALLOCATION allows it
fewer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

from hls_schedule.pragmas import Directives
from hls_schedule.reading.llvm_text import Function, Instruction, Locations, Module, split
from hls_schedule.reading.widths import Ranges

SUMMED = 3
"""Operations between a product and the result that a BIND_OP names: extensions, choices and sums."""

ADDED = 3
"""Signed digits of a constant up to which a product with it is additions of what is shifted."""

_BOUND = re.compile(r"hls_schedule5boundILi(\d+)E")
_TYPED = re.compile(r"(?:(?:nuw|nsw) )*(i\d+) ")


@dataclass(frozen=True)
class BuiltMultiplier:
    """``count`` multipliers of signed factors, the wider first. source: file and line of the product.

    primitive: "dsp" or "fabric" where a BIND_OP says so, else "auto". chained: whether its sums stay in their order, as
    a cascade of DSPs adds them (EXPRESSION_BALANCE off); a tool may make a tree of others, with adders of its own.
    """

    process: str
    source: str
    wide_bits: int
    narrow_bits: int
    primitive: str
    chained: bool
    count: int


def built_multipliers(module: Module, directives: Directives) -> tuple[BuiltMultiplier, ...]:
    """Every product of two values that change, by its process and place. One with a constant of few digits is none."""
    counted: Counter[tuple[str, str, int, int, str, bool]] = Counter()
    products = _Products(module, directives)
    for function in module.functions.values():
        times = products.instances(function.name)
        for key in products.keys(function):
            counted[key] += times
    return tuple(BuiltMultiplier(*key, count) for key, count in sorted(counted.items()))


@dataclass
class _Products:
    module: Module
    directives: Directives
    sites: dict[str, list[int]] = field(default_factory=dict)
    """Function of an ALLOCATION → the calls that were inlined, by their location's number."""

    @cached_property
    def locations(self) -> Locations:
        return Locations(self.module)

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """Function → how often ALLOCATION lets it be built."""
        allocations = (pragma for pragma in self.directives.pragmas if pragma.kind == "ALLOCATION")
        return {p.value("instances"): p.number("limit", 1) for p in allocations if p.has("function")}

    def keys(self, function: Function) -> Iterator[tuple[str, str, int, int, str, bool]]:
        """Process, source, bits of both factors, primitive and chaining of each multiplier, those of calls beyond a
        limit left out."""
        ranges, primitives = Ranges(function.definitions), self._bound(function)
        for block in function.blocks.values():
            for position, instruction in enumerate(block):
                matched = _TYPED.match(instruction.text)
                if instruction.opcode != "mul" or matched is None:
                    continue
                factors = split(instruction.text[matched.end() :])[:2]
                number = next((later.location for later in block[position:] if later.location is not None), None)
                if any(_few_digits(factor) for factor in factors) or not self._built(number):
                    continue
                location = self.locations.location(number)
                narrow, broad = sorted(ranges.factor_bits(factor, matched[1]) for factor in factors)
                source = f"{PurePath(location.file).name}:{location.line}" if location else ""
                primitive = primitives.get(instruction.name, "auto")
                chained = self.directives.keeps_order(location)
                yield self.directives.process_of(location), source, broad, narrow, primitive, chained

    def instances(self, name: str) -> int:
        """How often a function that is not inlined is built: once for each call, in each instance of its caller."""
        calls = 0
        for caller in self.module.functions.values():
            called = sum(
                instruction.opcode == "call" and name in instruction.values
                for block in caller.blocks.values()
                for instruction in block
            )
            calls += called * self.instances(caller.name) if called and caller.name != name else 0
        limit = next((limit for function, limit in self.limits.items() if f"{len(function)}{function}" in name), calls)
        return max(1, min(calls, limit))

    def _built(self, number: int | None) -> bool:
        """Whether all functions that a location was inlined from are within their limits. What a compiler joined of
        several calls, whose place is line 0, is there once."""
        while number is not None:
            record = self.module.record(number)
            name, called_at = self.locations.function_name(record.get("scope", "")), record.get("inlinedAt", "")
            number = int(called_at[1:]) if called_at.startswith("!") else None
            if number is not None and name in self.limits and self.module.record(number).get("line") != "0":
                sites = self.sites.setdefault(name, [])
                if number not in sites:
                    sites.append(number)
                if sites.index(number) >= self.limits[name]:
                    return False
        return True

    def _bound(self, function: Function) -> Mapping[str, str]:
        """Product → primitive, of those whose result a BIND_OP names (``bind`` of include/marks.h)."""
        primitives: dict[str, str] = {}
        for block in function.blocks.values():
            for instruction in block:
                marked = _BOUND.search(instruction.text) if instruction.opcode == "call" else None
                for name in _products_of(function, instruction, SUMMED) if marked else ():
                    primitives[name] = self.directives.pragmas[int(marked[1])].value("impl").lower() if marked else ""
        return primitives


def _products_of(function: Function, instruction: Instruction, depth: int) -> Iterator[str]:
    """The products that a value is made of."""
    for value in instruction.values:
        source = function.definitions.get(value)
        if source is not None and source.opcode == "mul":
            yield value
        elif source is not None and depth:
            yield from _products_of(function, source, depth - 1)


def _few_digits(factor: str) -> bool:
    """Whether a constant is the sum of few powers of two, each added or subtracted."""
    if not factor.lstrip("-").isdigit():
        return False
    number, digits = abs(int(factor)), 0
    while number:
        if number & 1:
            digits += 1
            number += -1 if number & 3 == 1 else 1
        number >>= 1
    return digits <= ADDED
