"""Group 4, statements and loops: checks that DATAFLOW regions are canonical. ``channels`` checks their channels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from tree_sitter import Node

from hls_templates.lint.checks import channels
from hls_templates.lint.checks.access import Accesses
from hls_templates.lint.findings import Fault, fault
from hls_templates.syntax.constants import is_constant
from hls_templates.syntax.declarations import variables
from hls_templates.syntax.nodes import block_of, is_assert, is_pragma, owner_of, text_of, walk
from hls_templates.syntax.pragmas import pragmas, read_pragma
from hls_templates.syntax.program import FunctionDefinition, Program
from hls_templates.syntax.scopes import arguments, callee_name, candidates, visible

_HARMLESS = frozenset(  # nodes of a block that are not statements of a region
    {
        "{",
        "}",
        "preproc_call",
        "comment",
        "static_assert_declaration",
        "alias_declaration",
        "using_declaration",
        "type_definition",
        "empty_statement",
    }
)
_WHOLE = frozenset(  # arguments that are whole variables or constants
    {
        "identifier",
        "field_expression",
        "this",
        "number_literal",
        "true",
        "false",
        "string_literal",
        "nullptr",
        "qualified_identifier",
        "lambda_expression",
    }
)
_TITLES = {
    "if_statement": "a condition",
    "return_statement": "a return",
    "for_statement": "a loop",
    "while_statement": "a loop",
    "do_statement": "a loop",
    "for_range_loop": "a loop",
    "switch_statement": "a condition",
    "goto_statement": "a goto",
    "throw_statement": "a throw",
    "compound_statement": "a block",
}
_MAX_VARIANTS = 64


def check(program: Program, accesses: Accesses) -> Iterator[Fault]:
    """Yield a fault for each rule violation in DATAFLOW regions. Each region is checked once, even if it has several
    directives."""
    seen: set[int] = set()
    for pragma in pragmas(program):
        block, function = block_of(pragma.node), program.function_of(pragma.node)
        if pragma.name != "DATAFLOW" or block is None or function is None or block.id in seen:
            continue
        seen.add(block.id)
        yield from _content(program, block, function)
        kind, loop = owner_of(block)
        if kind == "loop":
            yield from _loop(program, loop, function)
        if kind == "function":
            yield from _call_sites(program, function)
            yield from _stable_structs(program, block, function)
        for variant in _variants(block):
            yield from channels.check(channels.Region(pragma, block, function, tuple(variant)), accesses)


# ------------------------------------------------------------------------------------------ statements


def _statements(block: Node) -> Iterator[Node]:
    for child in block.children:
        node = child.named_children[-1] if child.type == "labeled_statement" else child
        if node.type not in _HARMLESS and text_of(node).strip() != ";" and not is_assert(node):
            yield node


def _is_compile_time(node: Node) -> bool:
    return node.type == "if_statement" and any(child.type == "constexpr" for child in node.children)


def _branches(node: Node) -> list[list[Node]]:
    """Return the statements of each branch of an ``if constexpr``, of which only one is built."""
    branches: list[list[Node]] = []
    for name in ("consequence", "alternative"):
        branch = node.child_by_field_name(name)
        if branch is not None and branch.type == "else_clause":
            branch = branch.named_children[-1]
        if branch is None:
            branches.append([])
        else:
            branches.append([*_statements(branch)] if branch.type == "compound_statement" else [branch])
    return branches


def _variants(block: Node) -> list[list[Node]]:
    """Return the statement lists of a DATAFLOW region, one for each choice of its compile-time conditions, at most
    64."""
    return _expand(list(_statements(block)))


def _expand(statements: list[Node]) -> list[list[Node]]:
    variants: list[list[Node]] = [[]]
    for node in statements:
        tails = [[node]]
        if _is_compile_time(node):
            tails = [tail for branch in _branches(node) for tail in _expand(branch)]
        variants = [[*head, *tail] for head in variants for tail in tails][:_MAX_VARIANTS]
    return variants


def _content(program: Program, block: Node, function: FunctionDefinition) -> Iterator[Fault]:
    statements = {node.id: node for variant in _variants(block) for node in variant}
    for node in statements.values():
        if node.type == "declaration":
            yield from _declaration(node)
        elif (call := channels.call_of(node)) is not None:
            yield from _process(program, call, function)
        else:
            yield fault(node, "dataflow-statement", actual=_TITLES.get(node.type, f"«{_short(node)}»"))


def _declaration(node: Node) -> Iterator[Fault]:
    words = {text_of(child) for child in node.children}
    if words & {"const", "constexpr"}:
        return
    for variable in variables(node):
        if "static" in words and variable.kind != "stream":
            yield fault(node, "dataflow-static", actual=variable.name)
        if variable.value is not None and any(part.type == "call_expression" for part in walk(variable.value)):
            yield fault(node, "dataflow-statement", actual=f"«{_short(node)}»")


def _process(program: Program, call: Node, function: FunctionDefinition) -> Iterator[Fault]:
    name, definitions = callee_name(call), candidates(program, call, function)
    for argument in arguments(call):
        if not _is_whole(program, argument):
            yield fault(argument, "dataflow-argument", process=name, actual=_short(argument))
    if not definitions:
        yield fault(call, "dataflow-unknown", process=name, count=len(arguments(call)))
    for definition in definitions:
        if definition.returns not in ("void", ""):
            yield fault(call, "dataflow-return", process=name, actual=definition.returns)


def _is_whole(program: Program, argument: Node) -> bool:
    """Return whether a process's argument is a whole variable, a constant, or a value made of constants."""
    if argument.type in _WHOLE or is_constant(program, argument):
        return True
    if argument.type == "subscript_expression":
        return _is_stream_of_array(program, argument)
    if argument.type not in ("call_expression", "compound_literal_expression", "initializer_list"):
        return False
    scope = visible(program, argument)
    return not any(node.type == "identifier" and text_of(node) in scope for node in walk(argument))


def _is_stream_of_array(program: Program, argument: Node) -> bool:
    """Return whether a process's argument is one element of an array of streams, at a constant index."""
    variable = visible(program, argument).get(text_of(argument).split("[")[0])
    index = argument.child_by_field_name("indices")
    fixed = index is not None and all(is_constant(program, node) for node in index.named_children)
    return fixed and variable is not None and "stream" in variable.type


def _short(node: Node) -> str:
    return re.sub(r"\s+", " ", text_of(node))[:60]


# ----------------------------------------------------------------------------------------- dataflow loop


def _loop(program: Program, loop: Node, function: FunctionDefinition) -> Iterator[Fault]:
    others = [
        node
        for node in _statements(function.body)
        if node.type != "declaration" and not node.start_byte <= loop.start_byte < node.end_byte
    ]
    if loop.type != "for_statement":
        yield fault(loop, "dataflow-loop", required="be a for loop", actual="this is another kind")
        return
    if others:
        actual = f"«{_short(others[0])}» is in it too"
        yield fault(others[0], "dataflow-loop", required="be alone in its function", actual=actual)
    yield from _header(program, loop, function)


def _header(program: Program, loop: Node, function: FunctionDefinition) -> Iterator[Fault]:
    start, condition = loop.child_by_field_name("initializer"), loop.child_by_field_name("condition")
    declared = variables(start) if start is not None and start.type == "declaration" else []
    if not declared or not is_constant(program, declared[0].value):
        required = "declare its counter in the header with a constant start"
        yield fault(loop, "dataflow-loop", required=required, actual=f"«{_short(loop)}» does not")
    bound = condition.child_by_field_name("right") if condition is not None else None
    scalars = {parameter.name for parameter in function.params if parameter.kind == "value"}
    if text_of(bound) not in scalars and not is_constant(program, bound):
        required = "end at a constant or a scalar argument"
        yield fault(loop, "dataflow-loop", required=required, actual=f"its end is «{text_of(bound)}»")


# ------------------------------------------------------------------------------------------- call sites


def _call_sites(program: Program, function: FunctionDefinition) -> Iterator[Fault]:
    """Yield a rule violation for each further call of a DATAFLOW region whose functions have static variables.

    Two calls may become two copies of the hardware, each with its own state.
    """
    state = next(_state(program, function, set()), None)
    sites: dict[str, Node] = {}
    for caller in program.all_functions if state is not None else ():
        for node in walk(caller.body):
            if node.type == "call_expression" and function in candidates(program, node, caller):
                # The template arguments belong to the name: run<1> and run<2> are two functions.
                instance = text_of(node.child_by_field_name("function"))
                first = sites.setdefault(instance, node)
                if first != node:
                    yield fault(node, "dataflow-call-sites", actual=instance, state=state, first=first)


def _stable_structs(program: Program, block: Node, function: FunctionDefinition) -> Iterator[Fault]:
    """Yield a rule violation for each struct that a DATAFLOW region passes by value without STABLE.

    Each member of such a struct is a scalar, and becomes a FIFO to every process that takes the struct.
    """
    directives = (read_pragma(node) for node in walk(block) if is_pragma(node))
    stable = {directive.get("variable") for directive in directives if directive.name == "STABLE"}
    calls = [node for node in walk(block) if node.type == "call_expression"]
    for parameter in function.params:
        if parameter.kind == "value" and parameter.type in program.fields and parameter.name not in stable:
            for call in islice(_takers(calls, parameter.name), 1):
                yield fault(
                    call, "stable-struct", actual=parameter.name, type=parameter.type, process=callee_name(call)
                )


def _takers(calls: Iterable[Node], name: str) -> Iterator[Node]:
    """Yield each of the ``calls`` that has the variable ``name`` as an argument."""
    return (call for call in calls if name in map(text_of, arguments(call)))


def _state(program: Program, function: FunctionDefinition, visited: set[int]) -> Iterator[str]:
    """Yield the names of the static variables of a function and of all functions that it calls."""
    visited.add(function.node.id)
    for node in walk(function.body):
        words = {text_of(child) for child in node.children} if node.type == "declaration" else set()
        if "static" in words and not words & {"const", "constexpr"}:
            yield from (variable.name for variable in variables(node))
        for callee in candidates(program, node, function) if node.type == "call_expression" else ():
            if callee.node.id not in visited:
                yield from _state(program, callee, visited)
