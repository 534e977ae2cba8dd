"""The widths of FIFOs that a generated design states, and those of the words that they carry."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hls_templates.lint.source import expand
from hls_templates.syntax.declarations import variables
from hls_templates.syntax.nodes import walk
from hls_templates.syntax.program import parse
from hls_templates.syntax.types import Types

FIFO = re.compile(r"^\s*SYSTOLIC_FIFO\((\w+), (\d+), (\d+), (\w+)\);$", re.MULTILINE)


def stated_widths(sources: Mapping[str, str]) -> dict[str, int]:
    """Bits by name of a stream, as its SYSTOLIC_FIFO says."""
    return {name: int(bits) for name, bits, _, _ in FIFO.findall(sources["top.cpp"])}


def widths_of_words(sources: Mapping[str, str]) -> dict[str, int | None]:
    """The same, as the types of the synthesised sources have it; None where a type is the vendor's own."""
    unit = expand(sources)
    program = parse(unit.text, bool(unit.absent))
    types, stated = Types(program), stated_widths(sources)
    return {
        variable.name: types.stream_bits(variable.type)
        for function in program.all_functions
        for node in walk(function.body)
        for variable in (variables(node) if node.type == "declaration" else ())
        if variable.name in stated
    }
