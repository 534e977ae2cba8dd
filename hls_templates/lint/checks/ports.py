"""Rules 6.3, 8.1, 8.3 and 8.4: finds ports, outputs and streams that the tool would not build as intended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from hls_templates.lint.checks.uses import Use, holds, uses
from hls_templates.lint.findings import Fault, fault
from hls_templates.syntax.constants import is_constant
from hls_templates.syntax.declarations import Variable, variables
from hls_templates.syntax.nodes import ancestors, is_pragma, text_of, walk
from hls_templates.syntax.pragmas import ParsedPragma, read_pragma
from hls_templates.syntax.program import FunctionDefinition, Program
from hls_templates.syntax.types import Types

WIDEST_STREAM = 4096
"""The most bits of a stream's word."""

SHIFT_BITS, SHIFT_DEPTH = 1024, 2
"""Without a directive, a FIFO of at most SHIFT_BITS bits in total or SHIFT_DEPTH words is a shift register."""

_APART = (("read_request", "read"), ("write_request", "write_response"))
"""Methods of a port that must not be in the same pipeline: the request and its answer."""


def check(program: Program) -> Iterator[Fault]:
    """Yield a fault (rule violation) for each port, output and stream that Vitis HLS would not build as intended."""
    types = Types(program)
    for function in program.all_functions:
        yield from _requests(program, function)
        yield from _outputs(program, function)
        yield from _streams(function, types)


def _requests(program: Program, function: FunctionDefinition) -> Iterator[Fault]:
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


def _outputs(program: Program, function: FunctionDefinition) -> Iterator[Fault]:
    for output in function.params:
        if output.kind != "pointer" or output.const or "volatile" in _head(program, output):
            continue
        for use in uses(program, function, output.name):
            if use.around.looped and not use.around.calls and _overwritten(program, use):
                yield fault(use.node, "volatile-output", actual=output.name)


def _head(program: Program, parameter: Variable) -> str:
    """Return the source text of a parameter's declaration."""
    node = program.root.descendant_for_byte_range(parameter.start, parameter.start)
    return next((text_of(a) for a in ancestors(node) if a.type == "parameter_declaration"), "") if node else ""


def _overwritten(program: Program, use: Use) -> bool:
    """Return whether a use writes the same element of an output pointer in every iteration: ``*output = …`` or
    ``output[constant] = …``."""
    target = use.node.parent
    if target is None or target.type not in ("pointer_expression", "subscript_expression"):
        return False
    assigned = target.parent
    if assigned is None or assigned.type != "assignment_expression" or assigned.child_by_field_name("left") != target:
        return False
    indices = target.child_by_field_name("indices")
    return indices is None or all(is_constant(program, index) for index in indices.named_children)


def _streams(function: FunctionDefinition, types: Types) -> Iterator[Fault]:
    directives = [read_pragma(node) for node in walk(function.body) if is_pragma(node)]
    for node in walk(function.body):
        for variable in variables(node) if node.type == "declaration" else ():
            bits = types.stream_bits(variable.type)
            if bits is None:
                continue
            if bits > WIDEST_STREAM:
                yield fault(node, "wide-stream", actual=variable.name, bits=bits, limit=WIDEST_STREAM)
            named = [p for p in directives if p.get("variable") == variable.name]
            depth = _depth(named, types)
            if depth > SHIFT_DEPTH and bits * depth > SHIFT_BITS and not any(p.name == "BIND_STORAGE" for p in named):
                limit = f"{SHIFT_BITS:,}"
                yield fault(node, "unbound-fifo", actual=variable.name, bits=bits, depth=depth, limit=limit)


def _depth(named: Sequence[ParsedPragma], types: Types) -> int:
    """Return the FIFO depth that a stream's directives state, in words; the tool's default of 2 if they state none."""
    stated = (p.get("depth") for p in named if p.name == "STREAM")
    values = [types.value(depth) for depth in stated if depth is not None]
    return next((value for value in values if value is not None), SHIFT_DEPTH)
