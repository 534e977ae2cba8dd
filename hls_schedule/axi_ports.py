"""The AXI ports of a top function: the argument of each, and the bytes of their beats.

Accesses of an iteration that are next to each other are one beat, up to the width to which the port is widened. The
arguments of a port whose elements are narrower than the port are not read in bursts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from hls_schedule.reading.llvm_text import NAME_TAGS, Locations, Module

_OPTIONS = frozenset({
    "mode", "port", "bundle", "offset", "depth", "latency", "name", "register", "storage_impl", "channel",
    "num_read_outstanding", "num_write_outstanding", "max_read_burst_length", "max_write_burst_length",
    "max_widen_bitwidth", "direct_io",
})  # fmt: skip
"""Options of ``INTERFACE m_axi`` in UG1399. Vitis HLS ignores a pragma with any other option (HLS 207-5569)."""
_BETWEEN = NAME_TAGS | {"DW_TAG_pointer_type", "DW_TAG_array_type"}


def is_axi(words: str) -> bool:
    """Return whether an INTERFACE pragma makes an argument an AXI port."""
    options = {option.lower() for option in re.findall(r"(\w+)\s*=", words)}
    return re.search(r"\bm_axi\b", words, re.IGNORECASE) is not None and options <= _OPTIONS


@dataclass(frozen=True)
class AxiArgument:
    """An argument of the top function with an AXI port.

    Attributes:
        name: Its name.
        function: The file and the first line of its function.
        bundle: The name of the port.
        widened_bytes: Bytes to which its accesses are widened; 0 if they are not.
    """

    name: str
    function: tuple[str, int]
    bundle: str
    widened_bytes: int


@dataclass(frozen=True)
class AxiPorts:
    """The AXI ports of a module."""

    module: Module
    arguments: tuple[AxiArgument, ...]

    def port(self, names: Iterable[tuple[str, tuple[str, int]]]) -> tuple[str, int, bool]:
        """Return the port of a variable, the bytes of a beat, and whether the port has wider arguments.

        Args:
            names: The names of the variable in the sources, each with its function.
        """
        known = set(names)
        argument = next((each for each in self.arguments if (each.name, each.function) in known), None)
        if argument is None:
            return "", 0, False
        own = self._bytes(argument)
        widest = max(self._bytes(each) for each in self.arguments if each.bundle == argument.bundle)
        return argument.bundle, max(own, argument.widened_bytes), own < widest and not argument.widened_bytes

    def _bytes(self, argument: AxiArgument) -> int:
        """Return the bytes of an element of an argument."""
        return self._elements.get((argument.name, argument.function), 1)

    @cached_property
    def _elements(self) -> dict[tuple[str, tuple[str, int]], int]:
        locations, elements = Locations(self.module), {}
        for number, (kind, _) in self.module.records.items():
            if kind == "DILocalVariable":
                record = self._pointed(self.module.record(number).get("type", ""))
                elements[locations.variable(number)] = max(1, int(record.get("size", "0")) // 8)
        return elements

    def _pointed(self, reference: str) -> Mapping[str, str]:
        """Return the type of an element of a type: without pointers, arrays and other names."""
        record = self.module.record(int(reference[1:]) if reference.startswith("!") else 0)
        while record.get("tag") in _BETWEEN and record.get("baseType", "").startswith("!"):
            record = self.module.record(int(record["baseType"][1:]))
        return record
