"""Rules 6.3 and 8.1: ports and streams that the tool would build otherwise than they are meant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tree_sitter import Node

from hls_templates.lint.checks.uses import holds, uses
from hls_templates.lint.findings import Fault, fault
from hls_templates.lint.syntax.declarations import variables
from hls_templates.lint.syntax.nodes import text_of, walk
from hls_templates.lint.syntax.program import Function, Program
from hls_templates.lint.syntax.types import Types

WIDEST_STREAM = 4096
_APART = (("read_request", "read"), ("write_request", "write_response"))


def check(program: Program) -> Iterator[Fault]:
    """The faults of the ports and streams of all functions."""
    types = Types(program)
    for function in program.all_functions:
        yield from _requests(program, function)
        yield from _streams(function, types)


def _requests(program: Program, function: Function) -> Iterator[Fault]:
    for port in function.params:
        methods: dict[int, dict[str, Node]] = defaultdict(dict)
        for use in uses(program, function, port.name) if port.kind == "port" else ():
            if use.around.pipeline is not None and holds(function.body, use.around.pipeline):
                methods[use.around.pipeline.id].setdefault(_method(use.node), use.node)
        for called in methods.values():
            for first, second in _APART:
                if first in called and second in called:
                    yield fault(called[first], "request-apart", actual=port.name, first=first, second=second)


def _method(node: Node) -> str:
    parent = node.parent
    return (
        text_of(parent.child_by_field_name("field")) if parent is not None and parent.type == "field_expression" else ""
    )


def _streams(function: Function, types: Types) -> Iterator[Fault]:
    for node in walk(function.body):
        for variable in variables(node) if node.type == "declaration" else ():
            bits = types.stream_bits(variable.type)
            if bits is not None and bits > WIDEST_STREAM:
                yield fault(node, "wide-stream", actual=variable.name, bits=bits, limit=WIDEST_STREAM)
