"""The multipliers that Vitis HLS builds for a translation unit: their number, width and primitive.

Each product is one multiplier. A DSP adds the product to a sum by itself, and packing several products into one
multiplication is done in the sources. A function that is called twice has each multiplier twice, unless an ALLOCATION
pragma limits its instances.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

from hls_schedule.pragmas import Directives
from hls_schedule.reading.llvm_text import Function, Locations, Module, split
from hls_schedule.reading.products import few_digits, products_of
from hls_schedule.reading.widths import Ranges

_BOUND = re.compile(r"hls_schedule5boundILi(\d+)E")
_TYPED = re.compile(r"(?:(?:nuw|nsw) )*(i\d+) ")


@dataclass(frozen=True)
class BuiltMultiplier:
    """``count`` equal hardware multipliers of two signed factors, for the products of one source line.

    Attributes:
        process: The function of the dataflow region that contains the product.
        source: File and line of the product.
        wide_bits: Bits of the wider factor.
        narrow_bits: Bits of the narrower factor.
        primitive: "dsp" or "fabric" by a BIND_OP pragma, else "auto".
        chained: Whether sums keep their order (EXPRESSION_BALANCE off), so that a cascade of DSPs can add them. Other
            sums may become a tree with adders of its own.
        count: The number of multipliers.
    """

    process: str
    source: str
    wide_bits: int
    narrow_bits: int
    primitive: str
    chained: bool
    count: int


def built_multipliers(module: Module, directives: Directives) -> tuple[BuiltMultiplier, ...]:
    """Return the multipliers that Vitis HLS builds for a module, sorted by process and source line. A product with a
    constant of few signed digits has none."""
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
    """The inlined calls of each function with an ALLOCATION pragma, as numbers of their locations."""

    @cached_property
    def locations(self) -> Locations:
        return Locations(self.module)

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """The largest number of instances of each function that has an ALLOCATION pragma, by the function's name."""
        allocations = (pragma for pragma in self.directives.pragmas if pragma.kind == "ALLOCATION")
        return {p.value("instances"): p.number("limit", 1) for p in allocations if p.has("function")}

    def keys(self, function: Function) -> Iterator[tuple[str, str, int, int, str, bool]]:
        """Yield one tuple per multiplier of a function: process, source line, bits of both factors, primitive, and
        whether sums keep their order.

        Multipliers of calls beyond an ALLOCATION's limit are skipped: they share the instances of other calls.
        """
        ranges, primitives = Ranges(function.definitions), self._bound(function)
        for block in function.blocks.values():
            for position, instruction in enumerate(block):
                matched = _TYPED.match(instruction.text)
                if instruction.opcode != "mul" or matched is None:
                    continue
                factors = split(instruction.text[matched.end() :])[:2]
                number = next((later.location for later in block[position:] if later.location is not None), None)
                if any(few_digits(factor) for factor in factors) or not self._built(number):
                    continue
                location = self.locations.location(number)
                narrow, broad = sorted(ranges.factor_bits(factor, matched[1]) for factor in factors)
                source = f"{PurePath(location.file).name}:{location.line}" if location else ""
                primitive = primitives.get(instruction.name, "auto")
                chained = self.directives.keeps_order(location)
                yield self.directives.process_of(location), source, broad, narrow, primitive, chained

    def instances(self, name: str) -> int:
        """Return how often a function that is not inlined is built: once per call and instance of the caller, up to its
        limit."""
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
        """Return whether no call that the code at a debug location was inlined from exceeds the limit of an ALLOCATION.

        Code that the compiler merged from several calls has line 0 as its place; it is counted once.
        """
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
        """Return the primitive of each product whose result a BIND_OP names, by the product's name in LLVM IR (``bind``
        of include/marks.h)."""
        primitives: dict[str, str] = {}
        for block in function.blocks.values():
            for instruction in block:
                marked = _BOUND.search(instruction.text) if instruction.opcode == "call" else None
                for name in products_of(function.definitions, instruction) if marked else ():
                    primitives[name] = self.directives.pragmas[int(marked[1])].value("impl").lower() if marked else ""
        return primitives
