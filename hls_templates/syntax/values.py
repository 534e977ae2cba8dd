"""Evaluates constant C++ expressions: numbers, names, operators, choices by a condition and calls of constexpr
functions."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from hls_templates.syntax.nodes import text_of
from hls_templates.syntax.program import FunctionDefinition, syntax_tree
from hls_templates.syntax.scopes import arguments

MAX_EXPRESSION_LENGTH = 500  # characters
MAX_VALUE = 1 << 64
"""The limit of a value's magnitude. Without it, constants that square each other could fill the memory."""
MAX_STEPS = 100_000
"""The limit of evaluated nodes. Without it, a function that calls itself twice could take exponential time."""
_DEEPEST = 40
"""The longest chain of definitions and calls that is followed."""

_NUMBER = re.compile(r"([-+]?)(0[xX][\da-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)[uUlLzZ]*")
_WIDE_ENOUGH = re.compile(r"(std::)?((u?int(32|64)?(_t)?|s?size_t)|((unsigned|signed|long|int)\s*)+)")
"""Types that hold each number of ``_CAST_RANGE``, so that a cast to one of them keeps the value."""
_CAST_RANGE = range(1 << 31)


def _quotient(first: int, second: int) -> int:
    """Return the quotient as C++ rounds it, towards zero."""
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient


def _shifted(first: int, second: int) -> int:
    if not 0 <= second < MAX_VALUE.bit_length():
        raise ValueError(second)
    return first << second


_UNARY: Mapping[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda value: int(not value),
}
_BINARY: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda first, second: first - second * _quotient(first, second),
    "<<": _shifted,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_DECIDED_BY_LEFT = {"&&": 0, "||": 1}
"""The left side's truth with which an operator's right side is not evaluated."""


@dataclass(frozen=True)
class ConstantFunction:
    """A constexpr function whose body is one ``return``.

    Attributes:
        parameters: The names of its parameters.
        value: The text of the expression that it returns.
    """

    parameters: tuple[str, ...]
    value: str


def constant_functions(functions: Iterable[FunctionDefinition]) -> dict[str, ConstantFunction]:
    """Return the functions of a program that ``constant_value`` can call, by name.

    These are free constexpr functions without template parameters whose body is one ``return``. A name with several
    different definitions is left out.
    """
    found: dict[str, set[ConstantFunction | None]] = {}
    for function in functions:
        found.setdefault(function.name, set()).add(_constant_function(function))
    unique = {name: next(iter(several)) for name, several in found.items() if len(several) == 1}
    return {name: function for name, function in unique.items() if function is not None}


def _constant_function(function: FunctionDefinition) -> ConstantFunction | None:
    head = text_of(function.node)[: function.body.start_byte - function.node.start_byte]
    parent = function.node.parent
    is_template = parent is not None and parent.type == "template_declaration"
    statements = [child for child in function.body.named_children if child.type != "comment"]
    if "constexpr" not in head or function.owner or is_template or len(statements) != 1:
        return None
    returned = statements[0].named_children if statements[0].type == "return_statement" else []
    if len(returned) != 1:
        return None
    return ConstantFunction(tuple(parameter.name for parameter in function.params), text_of(returned[0]))


def constant_value(
    expression: str, definitions: Mapping[str, str], functions: Mapping[str, ConstantFunction] | None = None
) -> int | None:
    """Return the integer value of a constant C++ expression.

    None for an expression with other names, calls or operators, with a number of more than 64 bits, or for one that
    takes too long. Values are whole numbers of any sign: an unsigned type that wraps around is not modelled.

    Args:
        expression: The text of the expression.
        definitions: The expressions of constants by name.
        functions: The constexpr functions by name, as ``constant_functions`` returns them.
    """
    return _Evaluator(definitions, functions or {}).value(expression)


class _UnknownError(Exception):
    """A part of an expression has no known value."""


class _Evaluator:
    """Evaluates expressions over one set of definitions. Each name is evaluated once."""

    def __init__(self, definitions: Mapping[str, str], functions: Mapping[str, ConstantFunction]) -> None:
        self._definitions = definitions
        self._functions = functions
        self._values: dict[str, int | None] = {}
        self._steps = MAX_STEPS

    def value(self, expression: str) -> int | None:
        try:
            return self._parsed(expression, {}, 0)
        except (_UnknownError, RecursionError, ValueError, ZeroDivisionError):
            return None

    def _parsed(self, expression: str, bound: Mapping[str, int], depth: int) -> int:
        """Return the value of a text in which the names ``bound`` are parameters with values."""
        if len(expression) > MAX_EXPRESSION_LENGTH or depth > _DEEPEST:
            raise _UnknownError
        root = syntax_tree(f"int value = ({expression});".encode())
        declarator = root.named_children[0].child_by_field_name("declarator") if root.named_child_count == 1 else None
        node = declarator.child_by_field_name("value") if declarator is not None else None
        if root.has_error or node is None:
            raise _UnknownError
        return self._value(node, bound, depth)

    def _value(self, node: Node, bound: Mapping[str, int], depth: int) -> int:
        self._steps -= 1
        value = self._evaluated(node, bound, depth) if self._steps >= 0 else None
        if value is None or abs(value) > MAX_VALUE:
            raise _UnknownError
        return int(value)

    def _evaluated(self, node: Node, bound: Mapping[str, int], depth: int) -> int | None:
        match node.type:
            case "number_literal":
                return _number(text_of(node))
            case "true" | "false":
                return int(node.type == "true")
            case "identifier":
                return self._named(text_of(node), bound, depth)
            case "parenthesized_expression":
                return self._value(node.named_children[0], bound, depth)
            case "conditional_expression":
                condition = self._part(node, "condition", bound, depth)
                return self._part(node, "consequence" if condition else "alternative", bound, depth)
            case "unary_expression":
                evaluate = _UNARY.get(_operator(node))
                return evaluate(self._part(node, "argument", bound, depth)) if evaluate is not None else None
            case "binary_expression":
                return self._binary(node, bound, depth)
            case "cast_expression":
                return _cast(text_of(node.child_by_field_name("type")), self._part(node, "value", bound, depth))
            case "call_expression":
                return self._call(node, bound, depth)
        return None

    def _part(self, node: Node, name: str, bound: Mapping[str, int], depth: int) -> int:
        part = node.child_by_field_name(name)
        if part is None:
            raise _UnknownError
        return self._value(part, bound, depth)

    def _binary(self, node: Node, bound: Mapping[str, int], depth: int) -> int | None:
        symbol, left = _operator(node), self._part(node, "left", bound, depth)
        if symbol in _DECIDED_BY_LEFT:
            decided = bool(left) == bool(_DECIDED_BY_LEFT[symbol])
            return int(bool(left) if decided else bool(self._part(node, "right", bound, depth)))
        evaluate = _BINARY.get(symbol)
        return evaluate(left, self._part(node, "right", bound, depth)) if evaluate is not None else None

    def _call(self, node: Node, bound: Mapping[str, int], depth: int) -> int | None:
        called = text_of(node.child_by_field_name("function"))
        values = [self._value(argument, bound, depth) for argument in arguments(node)]
        cast = re.fullmatch(r"(?:static_cast\s*<(.*)>|(\w+))", called)
        function = self._functions.get(called)
        if function is not None and len(values) == len(function.parameters):
            return self._parsed(function.value, dict(zip(function.parameters, values, strict=True)), depth + 1)
        return _cast(cast[1] or cast[2], values[0]) if cast is not None and len(values) == 1 else None

    def _named(self, name: str, bound: Mapping[str, int], depth: int) -> int | None:
        if name in bound:
            return bound[name]
        if name not in self._values and name in self._definitions:
            self._values[name] = None  # ends a cycle, if the definition refers to the name itself
            self._values[name] = self._parsed(self._definitions[name], {}, depth + 1)
        return self._values.get(name)


def _operator(node: Node) -> str:
    return text_of(node.child_by_field_name("operator"))


def _number(text: str) -> int | None:
    """Return the value of an integer literal, or None for any other literal."""
    found = _NUMBER.fullmatch(text.replace("'", ""))
    if found is None:
        return None
    sign, digits = found.groups()
    octal = digits.isdigit() and digits.startswith("0")
    return int(sign + digits, 8 if octal else 0)


def _cast(type_name: str, value: int) -> int | None:
    """Return a value after a cast, or None if the type might not hold it."""
    return value if _WIDE_ENOUGH.fullmatch(type_name.strip()) and value in _CAST_RANGE else None
