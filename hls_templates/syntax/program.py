"""Reads a whole program: its functions, classes, global variables and enumerators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from hls_templates.syntax.declarations import Variable, file_scope, parameter, stream_aliases, variables
from hls_templates.syntax.nodes import ancestors, text_of, walk

_CLASSES = frozenset({"class_specifier", "struct_specifier", "union_specifier"})


@dataclass(frozen=True)
class FunctionDefinition:
    """The definition of a C++ function or method.

    Attributes:
        name: Its bare name.
        owner: The class of a method; None for a free function.
        node: The whole definition.
        body: The block of its statements.
        params: Its parameters.
        returns: The text of its return type; "" for a constructor.
        required: The number of parameters without a default value.
    """

    name: str
    owner: str | None
    node: Node
    body: Node
    params: tuple[Variable, ...]
    returns: str
    required: int

    @property
    def parameter_text(self) -> str:
        """The source text between the brackets of the parameter list."""
        declarator = _function_declarator(self.node)
        return text_of(declarator.child_by_field_name("parameters") if declarator is not None else None)[1:-1]

    @cached_property
    def pack(self) -> int | None:
        """The index of the parameter that is a template parameter pack; None if there is none."""
        return next((index for index, parameter in enumerate(self.params) if parameter.pack), None)

    def takes(self, count: int, expands: bool) -> bool:
        """Return whether a call with ``count`` arguments can mean this function, by the number of its parameters.

        Args:
            count: The number of arguments.
            expands: Whether one of the arguments is an expanded pack, which may be any number of arguments.
        """
        limit = count if self.pack is not None else len(self.params)
        return count - 1 <= limit if expands else self.required <= count <= limit

    def bound(self, index: int, count: int, expanded: int | None) -> tuple[Variable, ...]:
        """Return the parameters that the argument ``index`` of a call may be bound to; several if packs are expanded.

        Args:
            index: The index of the argument.
            count: The number of arguments.
            expanded: The index of the argument that is an expanded pack, or None.
        """
        from_end = len(self.params) - (count - index)
        if index == expanded:
            return self.params[index : from_end + 1]
        if expanded is not None and index > expanded:
            return (self.params[max(from_end, 0)],)
        if self.pack is None or index < self.pack:
            return (self.params[index],)
        return (self.params[max(from_end, self.pack)],)


@dataclass(frozen=True)
class Program:
    """The functions, classes and global variables of a preprocessed C++ translation unit.

    Attributes:
        root: The root of the syntax tree.
        functions: The definitions of functions, by bare name.
        fields: The data members of each class, by name.
        bases: The names of each class's base classes.
        globals: The global variables, by name.
        enumerators: The names of all enumerators.
        streams: The type names that stand for streams.
        open: Whether a header of the project is absent, so that unknown upper-case names may be its constants.
    """

    root: Node
    functions: Mapping[str, tuple[FunctionDefinition, ...]]
    fields: Mapping[str, Mapping[str, Variable]]
    bases: Mapping[str, tuple[str, ...]]
    globals: Mapping[str, Variable]
    enumerators: frozenset[str]
    streams: frozenset[str]
    open: bool = False

    @cached_property
    def all_functions(self) -> tuple[FunctionDefinition, ...]:
        return tuple(function for overloads in self.functions.values() for function in overloads)

    def function_of(self, node: Node) -> FunctionDefinition | None:
        """Return the innermost function whose definition contains ``node``; None outside of functions."""
        holding = [f for f in self.all_functions if f.node.start_byte <= node.start_byte < f.node.end_byte]
        return max(holding, key=lambda function: function.node.start_byte, default=None)


def syntax_tree(text: bytes) -> Node:
    """Return the root node of tree-sitter's syntax tree of a C++ text. Text that the grammar cannot read is a node of
    type ERROR."""
    return Parser(Language(tree_sitter_cpp.language())).parse(text).root_node


def parse(text: bytes, open_: bool = False) -> Program:
    """Parse a preprocessed C++ text and return its functions, classes and variables. ``open_`` is ``Program.open``."""
    root = syntax_tree(text)
    streams = stream_aliases(root)
    return Program(
        root,
        _functions(root, streams),
        _fields(root, streams),
        {name: _bases(node) for name, node in _classes(root)},
        {variable.name: variable for node in file_scope(root) for variable in variables(node, streams)},
        frozenset(text_of(node.child_by_field_name("name")) for node in walk(root) if node.type == "enumerator"),
        streams,
        open_,
    )


def _functions(root: Node, streams: frozenset[str]) -> dict[str, tuple[FunctionDefinition, ...]]:
    functions: dict[str, tuple[FunctionDefinition, ...]] = {}
    for node in walk(root):
        function = _function(node, streams) if node.type == "function_definition" else None
        if function is not None:
            functions[function.name] = (*functions.get(function.name, ()), function)
    return functions


def _function(node: Node, streams: frozenset[str]) -> FunctionDefinition | None:
    body, declarator = node.child_by_field_name("body"), _function_declarator(node)
    if body is None or declarator is None or body.type != "compound_statement":
        return None
    name = text_of(declarator.child_by_field_name("declarator"))
    owner = name.rpartition("::")[0].split("<")[0] or _class_of(node)
    nodes = _parameter_nodes(declarator)
    params = tuple(parameter(declared, streams) for declared in nodes)
    required = sum(not declared.type.startswith(("optional", "variadic")) for declared in nodes)
    returns = text_of(node.child_by_field_name("type"))
    return FunctionDefinition(name.rpartition("::")[2], owner, node, body, params, returns, required)


def _function_declarator(node: Node) -> Node | None:
    """Return the declarator ``f(int x)`` of a function definition, also if it is inside of ``*`` or ``&``."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
    return declarator


def _parameter_nodes(declarator: Node) -> list[Node]:
    parameters = declarator.child_by_field_name("parameters")
    children = parameters.named_children if parameters is not None else []
    return [child for child in children if "parameter_declaration" in child.type and text_of(child) != "void"]


def _class_of(node: Node) -> str | None:
    holder = next((outer for outer in ancestors(node) if outer.type in _CLASSES), None)
    return _class_name(holder) if holder is not None else None


def _class_name(node: Node) -> str:
    """Return the name of a class definition without template arguments."""
    return text_of(node.child_by_field_name("name")).split("<")[0]


def _classes(root: Node) -> Iterator[tuple[str, Node]]:
    """Yield the name and the node of every class, struct and union that is defined."""
    for node in walk(root):
        if node.type in _CLASSES and node.child_by_field_name("body") is not None:
            yield _class_name(node), node


def _fields(root: Node, streams: frozenset[str]) -> dict[str, dict[str, Variable]]:
    fields: dict[str, dict[str, Variable]] = {}
    for name, node in _classes(root):
        body = node.child_by_field_name("body")
        declarations = [c for c in body.children if c.type == "field_declaration"] if body is not None else []
        members = (variable for declaration in declarations for variable in variables(declaration, streams))
        fields.setdefault(name, {}).update({member.name: member for member in members})
    return fields


def _bases(node: Node) -> tuple[str, ...]:
    clause = next((child for child in node.children if child.type == "base_class_clause"), None)
    children = clause.named_children if clause is not None else []
    return tuple(text_of(child).split("<")[0] for child in children if child.type != "access_specifier")
