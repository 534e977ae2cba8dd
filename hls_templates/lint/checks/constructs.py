"""Group 5: finds constructs that cannot be synthesised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from tree_sitter import Node

from hls_templates.documented.synthesis import FLOAT_TYPES, HOST_STREAMS, HOST_TYPES, MEMORY_CALLS, SYSTEM_CALLS
from hls_templates.lint.checks.pipelines import headline, unrolled_counters
from hls_templates.lint.findings import Fault, fault
from hls_templates.syntax.constants import bounded
from hls_templates.syntax.declarations import variables
from hls_templates.syntax.nodes import LOOPS, block_of, body_of, text_of, walk
from hls_templates.syntax.pragmas import pragma_in
from hls_templates.syntax.program import FunctionDefinition, Program
from hls_templates.syntax.scopes import callee_name, candidates

Check = Callable[[Program, Node], Iterator[Fault]]


def check(program: Program) -> Iterator[Fault]:
    """Yield a fault (rule violation) for each C++ construct that cannot be synthesised, and for each function that
    calls itself."""
    for node in walk(program.root):
        if node.type in _CHECKS:
            yield from _CHECKS[node.type](program, node)
    yield from _recursion(program)


def _always(rule: str, actual: str) -> Check:
    """Return a check for a type of syntax node that always violates ``rule``."""

    def always_a_fault(program: Program, node: Node) -> Iterator[Fault]:
        yield fault(node, rule, actual=actual)

    return always_a_fault


def _calls(program: Program, node: Node) -> Iterator[Fault]:
    function, name = node.child_by_field_name("function"), callee_name(node)
    if function is None or function.type == "field_expression" or name in program.functions:
        return
    if name in MEMORY_CALLS:
        yield fault(node, "dynamic-memory", actual=name)
    elif name in SYSTEM_CALLS:
        yield fault(node, "system-call", actual=name)
    elif name in ("dynamic_cast", "typeid"):
        yield fault(node, "run-time-type", actual=name)


def _qualified(program: Program, node: Node) -> Iterator[Fault]:
    if node.parent is not None and node.parent.type == "qualified_identifier":
        return
    if match := HOST_TYPES.match(text_of(node)):
        yield fault(node, "standard-library", actual=re.sub(r"\s", "", match[0]))
    elif match := HOST_STREAMS.match(text_of(node)):
        yield fault(node, "system-call", actual=re.sub(r"\s", "", match[0]))


def _float_type(program: Program, node: Node) -> Iterator[Fault]:
    if text_of(node) in FLOAT_TYPES:
        yield fault(node, "floating-point", actual=text_of(node))


def _float_literal(program: Program, node: Node) -> Iterator[Fault]:
    text = text_of(node)
    is_hex = text.lower().startswith("0x")
    if "." in text or (not is_hex and re.search(r"\de[+-]?\d", text.lower())):
        yield fault(node, "floating-point", actual=text)


def _pointers(program: Program, node: Node) -> Iterator[Fault]:
    declarator = node.child_by_field_name("declarator") or next(
        (child for child in node.named_children if "declarator" in child.type), None
    )
    if declarator is not None and declarator.type == node.type:
        yield fault(node, "pointer-to-pointer", actual=f"«{text_of(node)}»")


def _function_pointers(program: Program, node: Node) -> Iterator[Fault]:
    declarator = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
    wrapped = ("parenthesized_declarator", "abstract_parenthesized_declarator")
    if declarator is None or declarator.type not in wrapped:
        return
    if any("pointer" in child.type for child in declarator.named_children):
        yield fault(node, "function-pointer", actual=f"«{text_of(node)}»")


def _statics(program: Program, node: Node) -> Iterator[Fault]:
    words = {text_of(child) for child in node.children}
    if "static" not in words or words & {"const", "constexpr"} or block_of(node) is None:
        return
    for variable in variables(node):
        yield fault(node, "static-local", actual=variable.name)


def _loops(program: Program, loop: Node) -> Iterator[Fault]:
    condition = text_of(loop.child_by_field_name("condition"))
    if loop.type != "for_range_loop" and condition.strip("() ") in ("", "true", "1"):
        yield fault(loop, "endless-loop", actual=headline(loop))
        return
    noted = pragma_in(body_of(loop), "LOOP_TRIPCOUNT") is not None
    if not noted and not bounded(program, loop, unrolled_counters(loop)):
        yield fault(loop, "unbounded-loop", actual=headline(loop))


_CHECKS: Mapping[str, Check] = {
    "new_expression": _always("dynamic-memory", "new"),
    "delete_expression": _always("dynamic-memory", "delete"),
    "throw_statement": _always("exception", "throw"),
    "try_statement": _always("exception", "try"),
    "virtual": _always("virtual", "this function"),
    "goto_statement": _always("goto", "goto"),
    "call_expression": _calls,
    "qualified_identifier": _qualified,
    "primitive_type": _float_type,
    "type_identifier": _float_type,
    "number_literal": _float_literal,
    "pointer_declarator": _pointers,
    "abstract_pointer_declarator": _pointers,
    "function_declarator": _function_pointers,
    "abstract_function_declarator": _function_pointers,
    "declaration": _statics,
    **dict.fromkeys(LOOPS, _loops),
}
"""The check for each type of node."""


def _recursion(program: Program) -> Iterator[Fault]:
    callees = {function.node.id: _callees(program, function) for function in program.all_functions}
    for function in program.all_functions:
        if function.node.id in _reached(callees, function):
            direct = any(callee.node.id == function.node.id for callee in callees[function.node.id])
            path = "calls itself" if direct else "reaches itself through the functions that it calls"
            yield fault(function.node, "recursion", actual=f"{function.name} {path}")


def _reached(callees: Mapping[int, list[FunctionDefinition]], function: FunctionDefinition) -> set[int]:
    """Return the syntax node ids of all functions that a call of ``function`` may reach."""
    reached: set[int] = set()
    stack = list(callees[function.node.id])
    while stack:
        callee = stack.pop().node.id
        if callee not in reached:
            reached.add(callee)
            stack.extend(callees[callee])
    return reached


def _callees(program: Program, function: FunctionDefinition) -> list[FunctionDefinition]:
    """Return the functions that ``function`` certainly calls.

    A call with several candidates is left out. So is a call with template arguments, because they may end a recursion
    at compile time.
    """
    callees: list[FunctionDefinition] = []
    for node in walk(function.body):
        if node.type == "call_expression" and "<" not in text_of(node.child_by_field_name("function")):
            definitions = candidates(program, node, function)
            callees += definitions if len(definitions) == 1 else []
    return callees
