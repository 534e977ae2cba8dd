"""Rule 8: streams that the tool would build otherwise than they are meant."""

from __future__ import annotations

from collections.abc import Iterator

from hls_templates.lint.findings import Fault, fault
from hls_templates.lint.syntax.declarations import variables
from hls_templates.lint.syntax.nodes import walk
from hls_templates.lint.syntax.program import Function, Program
from hls_templates.lint.syntax.types import Types

WIDEST_STREAM = 4096


def check(program: Program) -> Iterator[Fault]:
    """The faults of the streams of all functions."""
    types = Types(program)
    for function in program.all_functions:
        yield from _streams(function, types)


def _streams(function: Function, types: Types) -> Iterator[Fault]:
    for node in walk(function.body):
        for variable in variables(node) if node.type == "declaration" else ():
            bits = types.stream_bits(variable.type)
            if bits is not None and bits > WIDEST_STREAM:
                yield fault(node, "wide-stream", actual=variable.name, bits=bits, limit=WIDEST_STREAM)
