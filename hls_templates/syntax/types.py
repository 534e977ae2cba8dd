"""Resolves type names: finds whether a struct contains arrays, and the number of bits of a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from hls_templates.syntax.declarations import NAMES, Variable, template_parameters
from hls_templates.syntax.nodes import text_of, walk
from hls_templates.syntax.program import Program
from hls_templates.syntax.values import constant_functions, constant_value

_NATIVE = {"bool": 1, "char": 8, "short": 16, "int": 32, "unsigned": 32, "long": 64}
_WIDTH_FIRST = frozenset({"ap_int", "ap_uint", "ap_axiu", "ap_axis"})  # their first template argument is the bits
_CLASSES = frozenset({"class_specifier", "struct_specifier", "union_specifier"})
_DEEPEST = 20


@dataclass(frozen=True)
class _Member:
    """A field of a class, or the type that an alias is for. ``dims`` are the texts of the array sizes."""

    type: str
    dims: tuple[str, ...]


@dataclass(frozen=True)
class _Definition:
    """The template parameters and the members of a class or type alias. An alias has one member."""

    params: tuple[str, ...]
    members: tuple[_Member, ...]


def dimensions(declarator: Node | None) -> tuple[str, ...]:
    """Return the texts of a declarator's array sizes, in the order of the subscripts: 4 and N for ``x[4][N]``."""
    sizes: list[str] = []
    node = declarator
    while node is not None and node.type not in NAMES:
        if node.type == "array_declarator":
            sizes.insert(0, text_of(node.child_by_field_name("size")))
        node = node.child_by_field_name("declarator")
    return tuple(sizes)


class Types:
    """The classes and type aliases of a program, by bare name. If several have one name, the last counts."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._defined = dict(_definitions(program.root))
        values = ((name, variable.value) for name, variable in program.globals.items() if variable.const)
        self._constants = {
            name: text_of(value) for name, value in values if value is not None and value.type != "initializer_list"
        }
        self._functions = constant_functions(program.all_functions)

    def sizes(self, declaration: Node, variable: Variable) -> tuple[str, ...]:
        """Return the texts of a variable's array sizes, including the sizes of its alias; () if it is not an array."""
        declarators = declaration.children_by_field_name("declarator")
        declarator = next((d for d in declarators if d.start_byte <= variable.start < d.end_byte), None)
        if declarator is not None and declarator.type == "init_declarator":
            declarator = declarator.child_by_field_name("declarator")
        alias = self._alias(variable.type)
        return (*dimensions(declarator), *(alias.dims if alias is not None else ()))

    def _alias(self, text: str) -> _Member | None:
        """Return the type that an alias is for; None if the name is a class or is not defined here."""
        name = _split(text)[0]
        definition = self._defined.get(name) if name not in self._program.fields else None
        return definition.members[0] if definition is not None else None

    def holds_array(self, text: str, depth: int = 0) -> bool:
        """Return whether a struct type has a member that is or contains an array."""
        alias, definition = self._alias(text), self._defined.get(_split(text)[0])
        if definition is None or depth > _DEEPEST:
            return False
        if alias is not None:
            return self.holds_array(alias.type, depth + 1)
        return any(member.dims or self.holds_array(member.type, depth + 1) for member in definition.members)

    def stream_bits(self, text: str, depth: int = 0) -> int | None:
        """Return the bits of one word of an ``hls::stream<…>`` type; None for another type, or if a name in it is not
        known."""
        name, args = _split(text)
        if name == "stream" and args:
            return self.bits(args[0])
        alias = self._alias(text)
        # An alias may seem to stand for itself, because a member alias of another class can have the same name.
        return self.stream_bits(alias.type, depth + 1) if alias is not None and depth < _DEEPEST else None

    def bits(self, text: str, depth: int = 0) -> int | None:
        """Return the bits of a value of a C++ type; None if a name in it is not known."""
        name, args = _split(text)
        definition = self._defined.get(name)
        if definition is None or depth > _DEEPEST:
            return self._vendor_bits(name, args, depth)
        bound = dict(zip(definition.params, args, strict=False))
        widths = [self._member_bits(member, bound, depth) for member in definition.members]
        return None if None in widths else sum(width for width in widths if width is not None)

    def _vendor_bits(self, name: str, args: tuple[str, ...], depth: int) -> int | None:
        """Return the bits of a type that the program does not define: a built-in type or one of the vendor's."""
        if native := re.fullmatch(r"u?int([0-9]{1,9})_t", name):
            return int(native[1])
        if name in _WIDTH_FIRST and args:
            return self.value(args[0])
        if name == "conditional" and len(args) == 3 and depth <= _DEEPEST:
            condition = self.value(args[0])
            return None if condition is None else self.bits(args[1] if condition else args[2], depth + 1)
        return _NATIVE.get(name)

    def _member_bits(self, member: _Member, bound: Mapping[str, str], depth: int) -> int | None:
        width = self.bits(_replaced(member.type, bound), depth + 1)
        for size in member.dims:
            count = self.value(_replaced(size, bound))
            if width is None or count is None:
                return None
            width *= count
        return width

    def value(self, text: str) -> int | None:
        """Return the integer value of an expression of numbers, global constants and constexpr functions; None for any
        other expression."""
        return constant_value(text, self._constants, self._functions)


def _replaced(text: str, bound: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda match: bound.get(match[0], match[0]), text)


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the bare name and the template arguments of a C++ type: word and (T, 4) for ``const ns::word<T, 4>``.

    The name of ``std::conditional<…>::type`` is conditional.
    """
    plain = re.sub(r"\b(const|static|typename|struct|volatile)\b|::\s*type\s*$", " ", text).strip(" &*")
    head, opened, tail = plain.partition("<")
    name = head.rpartition("::")[2].strip()
    return name, tuple(_arguments(tail.rpartition(">")[0])) if opened else ()


def _arguments(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            yield text[start:index].strip()
            start = index + 1
    yield text[start:].strip()


def _definitions(root: Node) -> Iterator[tuple[str, _Definition]]:
    for node in walk(root):
        if node.type in _CLASSES and node.child_by_field_name("body") is not None:
            yield (
                text_of(node.child_by_field_name("name")).split("<")[0],
                _Definition(template_parameters(node), _fields(node)),
            )
        elif node.type in ("type_definition", "alias_declaration"):
            for declarator in node.children_by_field_name("declarator") or node.children_by_field_name("name"):
                name = next((text_of(part) for part in walk(declarator) if part.type in NAMES), "")
                meaning = _Member(_type_of(node), dimensions(declarator))
                yield name, _Definition(template_parameters(node), (meaning,))


def _fields(node: Node) -> tuple[_Member, ...]:
    body = node.child_by_field_name("body")
    fields = [child for child in body.children if child.type == "field_declaration"] if body is not None else []
    return tuple(member for declared in fields for member in _members(declared))


def _members(declared: Node) -> Iterator[_Member]:
    static = any(text_of(child) in ("static", "constexpr") for child in declared.children)
    for declarator in declared.children_by_field_name("declarator") if not static else ():
        if not any(part.type == "function_declarator" for part in walk(declarator)):
            yield _Member(_type_of(declared), dimensions(declarator))


def _type_of(node: Node) -> str:
    return text_of(node.child_by_field_name("type"))
