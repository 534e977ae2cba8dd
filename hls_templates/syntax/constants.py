"""Finds compile-time constants, and loops with a constant trip count."""

from __future__ import annotations

from tree_sitter import Node

from hls_templates.syntax.declarations import variables
from hls_templates.syntax.nodes import ancestors, text_of
from hls_templates.syntax.program import Program
from hls_templates.syntax.scopes import arguments, callee_name, visible

_LITERALS = frozenset({"number_literal", "true", "false", "char_literal", "sizeof_expression"})
_TRANSPARENT = frozenset(  # expressions that are constant if all their operands are
    {
        "binary_expression",
        "unary_expression",
        "parenthesized_expression",
        "conditional_expression",
        "cast_expression",
    }
)
_DEEPEST = 40
"""The longest chain of definitions that is followed. A cycle of definitions is longer, and is not a constant."""


def template_values(node: Node) -> frozenset[str]:
    """Return the names of the C++ non-type template parameters in scope at ``node``."""
    lists = (a.child_by_field_name("parameters") for a in ancestors(node) if a.type == "template_declaration")
    nodes = (p for parameters in lists if parameters is not None for p in parameters.named_children)
    declarations = (n for n in nodes if "parameter_declaration" in n.type and "type_parameter" not in n.type)
    return frozenset(variable.name for declaration in declarations for variable in variables(declaration))


def is_constant(program: Program, node: Node | None, constants: frozenset[str] = frozenset(), depth: int = 0) -> bool:
    """Return whether a C++ expression is a compile-time constant.

    Args:
        program: The whole program.
        node: The expression, or None, which is not a constant.
        constants: Further names that count as constants.
        depth: The number of definitions that led to this expression.
    """
    if node is None or depth > _DEEPEST:
        return False
    if node.type in _LITERALS or node.type == "qualified_identifier":
        return True
    if node.type in _TRANSPARENT:
        parts = [child for child in node.named_children if child.type != "type_descriptor"]
        return all(is_constant(program, part, constants, depth + 1) for part in parts)
    if node.type == "identifier":
        return _constant_name(program, node, constants, depth)
    if node.type == "call_expression":
        return _constant_call(program, node, constants, depth)
    return False


def _constant_name(program: Program, node: Node, constants: frozenset[str], depth: int) -> bool:
    name = text_of(node)
    if name in constants or name in program.enumerators or name in template_values(node):
        return True
    variable = visible(program, node).get(name)
    if variable is None:
        return program.open and name.isupper()
    if not variable.const or variable.value is None or variable.start >= node.start_byte:
        return False
    return is_constant(program, variable.value, constants, depth + 1)


def _constant_call(program: Program, node: Node, constants: frozenset[str], depth: int) -> bool:
    cast = text_of(node.child_by_field_name("function")).startswith("static_cast")
    if not cast and not _all_constexpr(program, callee_name(node)):
        return False
    return all(is_constant(program, argument, constants, depth + 1) for argument in arguments(node))


def _all_constexpr(program: Program, name: str) -> bool:
    """Return whether the program has functions with this name, and declares all of them constexpr."""
    overloads = program.functions.get(name, ())
    heads = [text_of(function.node)[: function.body.start_byte - function.node.start_byte] for function in overloads]
    return bool(heads) and all("constexpr" in head for head in heads)


def counter_of(loop: Node) -> str | None:
    """Return the name of the variable that the header of a ``for`` loop declares or sets; None if there is none."""
    start = loop.child_by_field_name("initializer")
    if start is None:
        return None
    if start.type == "declaration":
        return next((variable.name for variable in variables(start)), None)
    return text_of(start.child_by_field_name("left")) or None


def bounded(program: Program, loop: Node, constants: frozenset[str] = frozenset()) -> bool:
    """Return whether the trip count of a loop is a compile-time constant. ``constants`` are further constant names."""
    if loop.type == "for_range_loop":
        return True
    if loop.type != "for_statement":
        condition = loop.child_by_field_name("condition")
        return loop.type == "do_statement" and text_of(condition).strip("() ") in ("0", "false")
    counter, ends = counter_of(loop), _ends(loop)
    if counter is None or len(ends) != 1:
        return False
    parts = [_start(loop), *ends, *_step(loop)]
    return all(is_constant(program, part, constants | {counter}) for part in parts)


def _ends(loop: Node) -> list[Node | None]:
    """Return the sides of a ``for`` condition that are not the counter, such as ``n`` in ``i < n``. A loop with a plain
    bound has one."""
    condition = loop.child_by_field_name("condition")
    if condition is None or condition.type != "binary_expression":
        return []
    sides = [condition.child_by_field_name("left"), condition.child_by_field_name("right")]
    return [side for side in sides if text_of(side) != counter_of(loop)]


def _start(loop: Node) -> Node | None:
    """Return the expression of the initial value of a ``for`` loop's counter."""
    initializer = loop.child_by_field_name("initializer")
    if initializer is None:
        return None
    declared = variables(initializer)
    return declared[0].value if declared else initializer.child_by_field_name("right")


def _step(loop: Node) -> list[Node | None]:
    """Return, as a list, the right side of ``i += 2`` in the header of a ``for`` loop; an empty list for ``++i``."""
    update = loop.child_by_field_name("update")
    return (
        [update.child_by_field_name("right")] if update is not None and update.type == "assignment_expression" else []
    )
