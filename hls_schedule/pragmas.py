"""The pragmas of the sources, assigned to arrays and loops of the compiled code.

A pragma's variable is found by its name and by the function that contains the pragma. The debug information lists the
names of each array, with the function of each name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

from hls_schedule.axi_ports import AxiArgument, AxiPorts, is_axi
from hls_schedule.ports import PLAIN, Binding
from hls_schedule.predict import Knowledge
from hls_schedule.reading.ir import Loop
from hls_schedule.reading.llvm_text import Location, Locations, Module
from hls_schedule.reading.members import Constants, split_memory

Place = tuple[str, int]
"""The file and the first line of a function."""


EVERYWHERE = ("", 0)
"""The place of a variable outside of functions."""


@dataclass(frozen=True)
class Pragma:
    """One ``#pragma HLS`` of the sources.

    Attributes:
        file: The source file.
        line: The source line.
        words: The text after ``#pragma HLS``.
    """

    file: str
    line: int
    words: str

    @property
    def kind(self) -> str:
        """The name of the pragma in capitals: ARRAY_PARTITION, DEPENDENCE, …"""
        return self.words.split()[0].upper() if self.words.split() else ""

    def value(self, name: str) -> str:
        """Return the text after ``name =`` in the pragma; "" if the pragma does not have it."""
        matched = re.search(rf"\b{name}\s*=\s*([^\s=]+)", self.words, re.IGNORECASE)
        return matched[1] if matched else ""

    def has(self, word: str) -> bool:
        """Return whether the pragma contains a word, as an option or as a value."""
        return re.search(rf"\b{word}\b", self.words, re.IGNORECASE) is not None

    def number(self, name: str, default: int) -> int:
        """Return the integer after ``name =`` in the pragma; ``default`` if it is missing or not a number."""
        text = self.value(name)
        return int(text) if text.isdigit() else default


@dataclass(frozen=True)
class Directives:
    """The pragmas of a translation unit, assigned to the arrays and loops of its LLVM module.

    Attributes:
        module: The module.
        pragmas: The pragmas, in the order of the sources.
        widen_bits: Bits to which accesses to an AXI port are widened, if its pragma does not say it
            (config_interface -m_axi_max_widen_bitwidth).
        inferred: Dimensions that Vitis HLS partitions by itself, by the function and the name of an array.
    """

    module: Module
    pragmas: tuple[Pragma, ...]
    widen_bits: int = 0
    inferred: Mapping[tuple[str, str], frozenset[int]] = field(default_factory=dict)

    @cached_property
    def dataflow(self) -> frozenset[Place]:
        """The functions with a DATAFLOW pragma, each as file and first line."""
        return frozenset(self.function_of(pragma) for pragma in self.pragmas if pragma.kind == "DATAFLOW")

    @cached_property
    def registers(self) -> frozenset[tuple[str, str]]:
        """The arrays that are built as registers, as pairs (function, value) of LLVM IR.

        They are the arrays with a dimension that is partitioned completely, and the arrays of a single struct variable,
        of which the compiler may have removed all other members.
        """
        complete = [
            pragma
            for pragma in self.pragmas
            if pragma.kind == "ARRAY_PARTITION" and _partition(pragma)[0] == "complete"
        ]
        return frozenset(
            key
            for key, numbers in self.module.variables.items()
            if any(self._names(pragma, *key) for pragma in complete)
            or {self._locations.kind(number) for number in numbers} == {"DW_TAG_structure_type"}
        )

    def knowledge(self, loop: Loop) -> Knowledge:
        """Return the facts that pragmas give about a loop's memories: their partitions, and which of them are
        independent."""
        bindings = {name: self._binding(loop.function, name) for name in loop.memories}
        free = [
            pragma
            for pragma in self.pragmas
            if pragma.kind == "DEPENDENCE" and pragma.has("false") and not pragma.has("intra")
        ]
        enclosing = [pragma for pragma in free if loop.location is not None and self._encloses(pragma, loop)]
        independent = {
            name for name in loop.memories if any(self._names(pragma, loop.function, name) for pragma in enclosing)
        }
        return Knowledge(bindings, frozenset(independent))

    def process_of(self, location: Location | None) -> str:
        """Return the name of the dataflow process that contains a location: the function called by a DATAFLOW region,
        or the outermost function."""
        if location is None:
            return ""
        return self.dataflow_process(location) or location.scopes[-1]

    def dataflow_process(self, location: Location | None) -> str:
        """Return the function that a dataflow region calls and that contains a location; "" if there is none."""
        called = zip(location.scopes, location.functions[1:], strict=False) if location is not None else ()
        return next((scope for scope, outer in called if outer in self.dataflow), "")

    def keeps_order(self, location: Location | None) -> bool:
        """Return whether the sums at a location keep their written order: an enclosing function has EXPRESSION_BALANCE
        off."""
        return location is not None and not self._in_order.isdisjoint(location.functions)

    @cached_property
    def _in_order(self) -> frozenset[Place]:
        return frozenset(self.function_of(p) for p in self.pragmas if p.kind == "EXPRESSION_BALANCE" and p.has("off"))

    def binding_pragma(self, function: str, value: str) -> Pragma | None:
        """Return the BIND_STORAGE pragma of an array; None if it has none."""
        return next((pragma for pragma in self._of(function, value) if pragma.kind == "BIND_STORAGE"), None)

    def _encloses(self, pragma: Pragma, loop: Loop) -> bool:
        """Return whether a loop is in the function that contains a pragma, or is inlined into that function."""
        file, line = self.function_of(pragma)
        return loop.location is not None and (file, line) in loop.location.functions

    def _binding(self, function: str, value: str) -> Binding:
        partitions, reshaped, aggregated, storage, primitive = dict(PLAIN.partitions), set(), False, "", ""
        for pragma in self._of(function, value):
            if pragma.kind == "ARRAY_PARTITION":
                partitions[pragma.number("dim", 1)] = _partition(pragma)
            elif pragma.kind == "ARRAY_RESHAPE":
                reshaped.add(pragma.number("dim", 1))
            elif pragma.kind in ("AGGREGATE", "DATA_PACK"):
                aggregated = True
            elif pragma.kind == "BIND_STORAGE":
                storage, primitive = pragma.value("type").lower(), pragma.value("impl").lower()
        key = ("" if value.startswith("@") else function, value)
        partitions |= dict.fromkeys(self.inferred.get(key, ()), ("complete", 1))
        bundle, beat, narrow = self._axi.port(self.names_of(function, value))
        return Binding(partitions, aggregated, storage, primitive, frozenset(reshaped), bundle, beat, narrow)

    @cached_property
    def _axi(self) -> AxiPorts:
        axi = {p: self.function_of(p) for p in self.pragmas if p.kind == "INTERFACE" and is_axi(p.words)}
        arguments = [
            AxiArgument(
                pragma.value("port"), place, pragma.value("bundle") or "gmem",
                pragma.number("max_widen_bitwidth", self.widen_bits) // 8,
            )
            for pragma, place in axi.items()
        ]  # fmt: skip
        return AxiPorts(self.module, tuple(arguments))

    def _of(self, function: str, value: str) -> Iterator[Pragma]:
        noted = self.module.notes.get((function, value), set()) | self.module.notes.get(("", value), set())
        _, member = split_memory(value)
        names = {member} if member else {name for name, _ in self.names_of(function, value)}
        numbers = {number for name in names for number in self._numbers.get(name, ())}
        for number in sorted(noted | numbers):
            pragma = self.pragmas[number]
            if number in noted or self._names(pragma, function, value):
                yield pragma

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        """For each variable's name, the indices of the pragmas that name it."""
        numbers: dict[str, list[int]] = {}
        for number, pragma in enumerate(self.pragmas):
            if pragma.value("variable"):
                numbers.setdefault(pragma.value("variable"), []).append(number)
        return numbers

    def _names(self, pragma: Pragma, function: str, value: str) -> bool:
        """Return whether a pragma's ``variable`` is the given value of LLVM IR, which is an array or a struct's
        member."""
        root, member = split_memory(value)
        if member:
            return pragma.value("variable") == member and self._constants.is_in_struct(root, pragma.file, pragma.line)
        name, names = (pragma.value("variable"), self.function_of(pragma)), self.names_of(function, value)
        return name in names or ((name[0], EVERYWHERE) in names and name not in self._local)

    def source_name(self, function: str, value: str) -> str:
        """Return the longest C++ name of a value of LLVM IR; the name in LLVM IR if it has none."""
        root, member = split_memory(value)
        if member:
            return f"{self.source_name(function, root)}.{member}"
        names = sorted({name for name, _ in self.names_of(function, value)} - {"this", ""}, key=lambda name: -len(name))
        return names[0] if names else value.strip("%@")

    def owned_name(self, function: str, value: str) -> str:
        """Return the C++ name of a value of LLVM IR at its definition, not as an argument; ``source_name`` if there is
        none."""
        records = (self.module.record(number) for number in sorted(self.module.variables_of(function, value)))
        names = [record["name"] for record in records if "name" in record and "arg" not in record]
        return names[0] if names else self.source_name(function, value)

    def names_of(self, function: str, value: str) -> frozenset[tuple[str, Place]]:
        """Return the C++ names of a value of LLVM IR, each with the file and first line of its function."""
        key = (function, value)
        if key not in self._known:
            numbers = self.module.variables_of(function, value)
            names = (self._locations.variable(number) for number in numbers)
            self._known[key] = frozenset((name, place) for name, place in names if place[0] != "marks.h")
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[str, str], frozenset[tuple[str, Place]]]:
        return {}

    @cached_property
    def _places(self) -> dict[Pragma, Place]:
        return {}

    def function_of(self, pragma: Pragma) -> Place:
        """Return the function that contains a pragma, as its file and first line."""
        if pragma not in self._places:
            lines = [line for file, line in self._functions if file == pragma.file and line <= pragma.line]
            self._places[pragma] = (pragma.file, max(lines, default=0))
        return self._places[pragma]

    @cached_property
    def _local(self) -> frozenset[tuple[str, Place]]:
        """The C++ names of all variables, each with the file and first line of its function."""
        numbers = [n for n, (kind, _) in self.module.records.items() if kind in ("DILocalVariable", "DIGlobalVariable")]
        return frozenset(self._locations.variable(number) for number in numbers)

    @cached_property
    def _locations(self) -> Locations:
        return Locations(self.module)

    @cached_property
    def _constants(self) -> Constants:
        return Constants(self.module)

    @cached_property
    def _functions(self) -> frozenset[Place]:
        return frozenset(
            (PurePath(self._locations.file(record.get("file", ""))).name, int(record.get("line", "0")))
            for record in self.module.records_of("DISubprogram")
        )


def _partition(pragma: Pragma) -> tuple[str, int]:
    """Return the type (complete, cyclic or block) and the factor of an ARRAY_PARTITION; the type is complete if the
    pragma has none."""
    kind = next((name for name in ("complete", "cyclic", "block") if pragma.has(name)), "complete")
    return kind, pragma.number("factor", 1)
