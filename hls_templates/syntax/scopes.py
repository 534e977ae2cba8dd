"""Resolves names: finds the variables that are visible at a node, and the functions that a call may mean."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tree_sitter import Node

from hls_templates.syntax.declarations import NAMES, Variable, variables
from hls_templates.syntax.nodes import LOOPS, ancestors, is_pragma, text_of, walk
from hls_templates.syntax.program import FunctionDefinition, Program


def members(program: Program, owner: str | None) -> dict[str, Variable]:
    """Return the data members of the class named ``owner``, by name, including the members of its known base
    classes."""
    inherited: dict[str, Variable] = {}
    for base in program.bases.get(owner or "", ()):
        inherited |= members(program, base) if base != owner else {}
    return inherited | dict(program.fields.get(owner or "", {}))


def locals_of(node: Node, streams: frozenset[str] = frozenset()) -> dict[str, Variable]:
    """Return all variables that are declared inside of ``node``, by name."""
    declarations = (n for n in walk(node) if n.type in ("declaration", "for_range_loop", "parameter_declaration"))
    return {variable.name: variable for n in declarations for variable in variables(n, streams)}


def visible(program: Program, node: Node) -> dict[str, Variable]:
    """Return the variables in scope at ``node``, by name: globals, members, parameters, and locals declared before the
    node."""
    function = program.function_of(node)
    scope = dict(program.globals)
    if function is not None:
        scope |= members(program, function.owner) | {parameter.name: parameter for parameter in function.params}
    for block in reversed(list(ancestors(node))):
        declared = (variable for declaration in _declarations_in(block) for variable in variables(declaration))
        scope |= {variable.name: variable for variable in declared if variable.start < node.start_byte}
    return scope


def _declarations_in(node: Node) -> Iterable[Node]:
    if node.type == "compound_statement":
        return (n for child in node.children for n in _unlabelled(child) if n.type == "declaration")
    if node.type in LOOPS:
        return [node] if node.type == "for_range_loop" else (c for c in node.children if c.type == "declaration")
    if node.type == "lambda_expression":
        return (n for n in walk(node) if "parameter_declaration" in n.type)
    return ()


def _unlabelled(node: Node) -> list[Node]:
    return node.children if node.type == "labeled_statement" else [node]


def callee_name(call: Node) -> str:
    """Return the bare name of the function that a call calls: f for ``ns::f<3>(…)``, run for ``a.run(…)``."""
    node = call.child_by_field_name("function")
    while node is not None and node.type not in NAMES:
        if node.type == "field_expression":
            node = node.child_by_field_name("field")
        elif node.type in ("qualified_identifier", "template_function", "template_method"):
            node = node.child_by_field_name("name")
        else:
            return text_of(node)
    return text_of(node)


def arguments(call: Node) -> list[Node]:
    """Return the argument nodes of a call."""
    listed = call.child_by_field_name("arguments")
    return [child for child in listed.named_children if not is_pragma(child)] if listed is not None else []


def expanded(call: Node) -> int | None:
    """Return the index of a call's argument that is an expanded pack, such as 1 for ``f(value, outs...)``; else
    None."""
    return next((i for i, argument in enumerate(arguments(call)) if argument.type == "parameter_pack_expansion"), None)


def candidates(program: Program, call: Node, caller: FunctionDefinition | None) -> tuple[FunctionDefinition, ...]:
    """Return the function definitions that a call in ``caller`` may mean, by name and number of arguments."""
    count, expands = len(arguments(call)), expanded(call) is not None
    fitting = tuple(
        function for function in program.functions.get(callee_name(call), ()) if function.takes(count, expands)
    )
    callee = call.child_by_field_name("function")
    if callee is None or callee.type != "field_expression":
        return _plain_candidates(fitting, callee, caller)
    return _method_candidates(program, fitting, call, callee, caller)


def _plain_candidates(
    fitting: tuple[FunctionDefinition, ...], callee: Node | None, caller: FunctionDefinition | None
) -> tuple[FunctionDefinition, ...]:
    """Return the functions in ``fitting`` that a call ``f(…)`` or ``scope::f(…)`` may mean.

    These are methods of the class ``scope`` or of the caller's class, or free functions if there are no such methods.
    """
    scope = text_of(callee).rpartition("::")[0].split("<")[0].rpartition("::")[2]
    owners = {scope, caller.owner if caller is not None else None} - {None}
    methods = tuple(function for function in fitting if function.owner in owners)
    return methods or tuple(function for function in fitting if function.owner is None)


def _method_candidates(
    program: Program,
    fitting: tuple[FunctionDefinition, ...],
    call: Node,
    callee: Node,
    caller: FunctionDefinition | None,
) -> tuple[FunctionDefinition, ...]:
    """Return the functions in ``fitting`` that are methods of the object's class in a call ``object.f(…)``."""
    target = callee.child_by_field_name("argument")
    if target is not None and target.type == "this":
        return tuple(f for f in fitting if caller is not None and f.owner == caller.owner)
    declared = visible(program, call).get(text_of(target))
    if declared is None:
        return ()
    class_name = re.split(r"[<\s]", declared.type)[0].rpartition("::")[2]
    return tuple(f for f in fitting if f.owner == class_name) if class_name in program.fields else ()
