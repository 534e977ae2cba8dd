"""The widths of FIFOs that a generated design states, and the widths of their words."""

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
    """Return the bits of each stream by name, as its SYSTOLIC_FIFO states them."""
    return {name: int(bits) for name, bits, _, _ in FIFO.findall(sources["top.cpp"])}


def widths_of_words(sources: Mapping[str, str]) -> dict[str, int | None]:
    """Return the bits of each stream by name, computed from the types of the synthesised sources.

    A stream of one of the vendor's own types has None.
    """
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
