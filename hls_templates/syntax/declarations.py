"""Reads the variables that declarations, parameters and fields declare, and the type names of streams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from hls_templates.documented.synthesis import PORT_TYPE, STREAM_TYPE
from hls_templates.syntax.nodes import ancestors, text_of, walk

NAMES = frozenset({"identifier", "field_identifier", "type_identifier", "operator_name", "destructor_name"})
_DECLARED = NAMES | {"qualified_identifier", "structured_binding_declarator"}


@dataclass(frozen=True)
class Variable:
    """A C++ variable, parameter or field, as its declaration states it.

    Attributes:
        name: Its name; "" for a parameter without a name.
        kind: One of stream, port (burst_maxi), array, pointer, reference, value.
        type: The text of its type, without pointers, references and array sizes.
        const: Whether it is const or constexpr.
        start: The offset of its name in the text, in bytes.
        value: Its initialiser or default value.
        refers: Whether it is a pointer or reference.
        pack: Whether it is a parameter pack such as ``STREAMS &...outs``, which takes any number of arguments.
    """

    name: str
    kind: str
    type: str
    const: bool
    start: int
    value: Node | None = None
    refers: bool = False
    pack: bool = False


def variables(node: Node, streams: frozenset[str] = frozenset()) -> list[Variable]:
    """Return the variables that a C++ declaration, parameter or field declares. ``streams`` are type names of
    streams."""
    declarators = node.children_by_field_name("declarator")
    return [variable for part in declarators if (variable := _variable(node, part, streams)) is not None]


def parameter(node: Node, streams: frozenset[str]) -> Variable:
    """Return the function parameter that a node declares. If it has no name, its name is ""."""
    unnamed = Variable("", "value", text_of(node.child_by_field_name("type")), False, node.start_byte)
    return next(iter(variables(node, streams)), unnamed)


def _variable(node: Node, declarator: Node, streams: frozenset[str]) -> Variable | None:
    name, around = _innermost(declarator)
    if name is None or "function_declarator" in around:
        return None
    type_text = text_of(node.child_by_field_name("type"))
    qualifiers = {text_of(c) for c in node.children if c.type in ("type_qualifier", "storage_class_specifier")}
    value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
    if value is None:
        value = node.child_by_field_name("default_value")
    const = bool(qualifiers & {"const", "constexpr"})
    refers = bool({"pointer_declarator", "reference_declarator"} & set(around))
    kind = _kind(around, type_text, streams)
    pack = node.type == "variadic_parameter_declaration"
    return Variable(text_of(name), kind, type_text, const, name.start_byte, value, refers, pack)


def _innermost(declarator: Node) -> tuple[Node | None, list[str]]:
    """Return the node of the name that a declarator declares, and the node types of the declarators around it,
    outermost first."""
    around: list[str] = []
    node: Node | None = declarator
    while node is not None and node.type not in _DECLARED:
        around.append(node.type)
        node = node.child_by_field_name("declarator") or next(
            (child for child in node.named_children if child.type.endswith("declarator") or child.type in NAMES), None
        )
    return node, around


def _kind(around: list[str], type_text: str, streams: frozenset[str]) -> str:
    if STREAM_TYPE.search(type_text) or re.split(r"[<\s]", type_text.strip())[0] in streams:
        return "stream"
    if PORT_TYPE.search(type_text):
        return "port"
    kinds = ("array", "pointer", "reference")
    return next((kind for kind in kinds if f"{kind}_declarator" in around), "value")


def file_scope(root: Node) -> Iterator[Node]:
    """Yield the declarations of a C++ file outside of functions and classes, also in namespaces, ``extern "C"`` and
    templates."""
    for node in root.children:
        if node.type in ("namespace_definition", "linkage_specification"):
            body = node.child_by_field_name("body")
            if body is not None:
                yield from file_scope(body) if body.type == "declaration_list" else [body]
        elif node.type == "template_declaration":
            yield from file_scope(node)
        elif node.type == "declaration":
            yield node


def stream_aliases(root: Node) -> frozenset[str]:
    """Return the names that ``typedef`` or ``using`` gives to ``hls::stream`` types, directly or through other
    aliases."""
    aliases = [_alias(node) for node in walk(root) if node.type in ("alias_declaration", "type_definition")]
    streams: set[str] = set()
    for _ in aliases:
        streams |= {
            name for name, type_ in aliases if STREAM_TYPE.search(type_) or re.split(r"\W", type_)[0] in streams
        }
    return frozenset(streams)


def _alias(node: Node) -> tuple[str, str]:
    """Return the name that a ``typedef`` or ``using`` declares, and the text of the type that it stands for."""
    name = "name" if node.type == "alias_declaration" else "declarator"
    return text_of(node.child_by_field_name(name)), text_of(node.child_by_field_name("type"))


def template_parameters(node: Node) -> tuple[str, ...]:
    """Return the names of the template parameters of a class, alias or function, in order."""
    template = next((a for a in ancestors(node) if a.type == "template_declaration"), None)
    listed = template.child_by_field_name("parameters") if template is not None else None
    children = listed.named_children if listed is not None else []
    return tuple(text_of(child).split("=")[0].split()[-1] for child in children)
