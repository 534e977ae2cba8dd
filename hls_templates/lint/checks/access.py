"""Who reads and who writes what: the variables that a statement touches, through every call it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from hls_templates.documented.synthesis import COPIES, STREAM_READS, STREAM_WRITES
from hls_templates.syntax.declarations import Variable
from hls_templates.syntax.nodes import text_of, walk
from hls_templates.syntax.program import FunctionDefinition, Program
from hls_templates.syntax.scopes import arguments, called, candidates, expanded, locals_of, members


@dataclass(frozen=True)
class Access:
    """``root`` is a variable, «this» or «::global»; ``path`` its fields and constant subscripts; ``mode`` r or w."""

    root: str
    path: str
    mode: str
    stream: bool = False

    @property
    def key(self) -> str:
        return self.root + self.path

    def within(self, root: str, path: str) -> Access:
        """The same access where what it touches is ``root`` + ``path`` of a caller."""
        return Access(root, path + self.path, self.mode, self.stream)


@dataclass(frozen=True)
class Scope:
    """What names mean in a function: (root) or, of a local reference or pointer, (root, path) of its target.

    Other locals mean nothing outside the function, so they are not among the roots.
    """

    function: FunctionDefinition
    roots: Mapping[str, str]
    aliases: Mapping[str, tuple[str, str]] = field(default_factory=dict)


class Accesses:
    """The accesses of functions, each computed once (a cache beside an immutable program)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._cache: dict[int, frozenset[Access]] = {}

    def of_function(self, function: FunctionDefinition) -> frozenset[Access]:
        """Accesses whose roots are parameters, members and globals."""
        key = function.node.id
        if key not in self._cache:
            self._cache[key] = frozenset()
            for _ in range(2):  # again for a function that calls itself, which passes its pack on
                self._cache[key] = frozenset(self.of_node(function.body, self._scope(function)))
        return self._cache[key]

    def region_scope(self, function: FunctionDefinition) -> Scope:
        """As seen from a DATAFLOW region: its locals are roots too."""
        roots = {name: name for name in locals_of(function.body, self.program.streams)}
        return Scope(function, {**self._scope(function).roots, **roots})

    def _scope(self, function: FunctionDefinition) -> Scope:
        local = locals_of(function.body, self.program.streams)
        roots = {name: f"::{name}" for name, variable in self.program.globals.items() if not variable.const}
        roots |= {name: f"this.{name}" for name in members(self.program, function.owner)}
        roots = {name: root for name, root in roots.items() if name not in local}
        roots |= {parameter.name: parameter.name for parameter in function.params if parameter.name}
        plain = Scope(function, roots)
        return Scope(function, roots, {name: a for name, variable in local.items() if (a := _alias(variable, plain))})

    def of_node(self, node: Node, scope: Scope) -> Iterator[Access]:
        """Accesses of everything inside a node."""
        for name in walk(node):
            if name.type == "this" or (name.type == "identifier" and not _names_only(name)):
                yield from self._use(name, scope)

    def _use(self, node: Node, scope: Scope) -> Iterator[Access]:
        start = _resolve(text_of(node), scope) if node.type == "identifier" else ("this", "")
        if start is None:
            return
        lvalue, path = _largest_lvalue(node, start[1])
        root, path = _split_this(start[0], path)
        parent = lvalue.parent
        if parent is not None and parent.type == "argument_list" and parent.parent is not None:
            yield from self._argument(parent.parent, lvalue, Access(root, path, "r"), scope)
        elif parent is not None and _only_renamed(parent):
            return
        elif parent is not None and parent.type == "field_expression":
            yield from self._method(parent, Access(root, path, "r"), scope)
        else:
            yield from (Access(root, path, mode, stream) for mode, stream in _modes(lvalue))

    def _argument(self, call: Node, node: Node, read: Access, scope: Scope) -> Iterator[Access]:
        """``f(x)``; ``read``: a plain read of x."""
        if call.type != "call_expression":  # a constructor or initialiser
            yield read
            return
        listed = [argument.id for argument in arguments(call)]
        index, pack = listed.index(node.id), expanded(call)
        definitions = candidates(self.program, call, scope.function)
        for function in definitions:
            for param in function.bound(index, len(listed), pack):
                yield from self._through(function, param, read)
        if not definitions:
            yield Access(read.root, read.path, "w" if called(call) in COPIES and index == 0 else "r")

    def _through(self, function: FunctionDefinition, param: Variable, read: Access) -> Iterator[Access]:
        """What a function does with the variable that is bound to its parameter ``param``."""
        if param.kind == "value":
            yield read
            return
        touched = (access for access in self.of_function(function) if access.root == param.name and param.name)
        yield from (access.within(read.root, read.path) for access in touched)

    def _method(self, node: Node, read: Access, scope: Scope) -> Iterator[Access]:
        """``x.read()``; ``node`` is the function part of the call, ``read`` a plain read of x."""
        name, call = text_of(node.child_by_field_name("field")), node.parent
        if name in STREAM_READS | STREAM_WRITES:
            yield Access(read.root, read.path, "r" if name in STREAM_READS else "w", stream=True)
        elif call is not None and name not in ("size", "capacity", "set_name"):
            definitions = candidates(self.program, call, scope.function)
            touched = (a for function in definitions for a in self.of_function(function) if a.root == "this")
            yield from (access.within(read.root, read.path) for access in touched)
            if not definitions:
                yield read

    def of_statement(self, statement: Node, scope: Scope) -> frozenset[Access]:
        """The accesses of a process: those of its arguments and object, and the globals that it reaches."""
        accesses = set(self.of_node(statement, scope))
        for node in walk(statement):
            if node.type == "call_expression":
                for function in candidates(self.program, node, scope.function):
                    accesses |= {a for a in self.of_function(function) if a.root.startswith("::")}
                    accesses |= self._of_own_method(node, function)
        return frozenset(accesses)

    def _of_own_method(self, call: Node, function: FunctionDefinition) -> set[Access]:
        """Of a method that is called without naming its object."""
        bare = text_of(call.child_by_field_name("function")).isidentifier()
        if not bare or function.owner is None:
            return set()
        return {access for access in self.of_function(function) if access.root == "this"}


def _alias(variable: Variable, scope: Scope) -> tuple[str, str] | None:
    """``auto &row = rows[i];`` → rows: what a local pointer or reference stands for."""
    if not variable.refers or variable.value is None:
        return None
    for node in walk(variable.value):
        if node.type == "identifier" and not _names_only(node) and (target := _resolve(text_of(node), scope)):
            return target[0], _largest_lvalue(node, target[1])[1]
    return None


def _only_renamed(parent: Node) -> bool:
    """The initialiser of a reference or pointer: an alias, which is followed where it is used."""
    declarator = parent.child_by_field_name("declarator") if parent.type == "init_declarator" else None
    return declarator is not None and declarator.type in ("reference_declarator", "pointer_declarator")


def _resolve(name: str, scope: Scope) -> tuple[str, str] | None:
    if name in scope.aliases:
        return scope.aliases[name]
    root = scope.roots.get(name)
    return (root, "") if root is not None else None


def _split_this(root: str, path: str) -> tuple[str, str]:
    return ("this", root[4:] + path) if root.startswith("this.") else (root, path)


def _names_only(node: Node) -> bool:
    """Identifiers that declare or name a function rather than use a variable."""
    parent = node.parent
    if parent is None:
        return True
    if parent.type.endswith("declarator"):
        return parent.child_by_field_name("value") != node and parent.child_by_field_name("size") != node
    if parent.type == "call_expression":
        return parent.child_by_field_name("function") == node
    return parent.type in (
        "declaration",
        "parameter_declaration",
        "template_function",
        "qualified_identifier",
    )


def _largest_lvalue(node: Node, path: str) -> tuple[Node, str]:
    """Climb from a name to the largest lvalue around it, gathering its path."""
    while (parent := node.parent) is not None:
        if parent.type == "field_expression" and parent.child_by_field_name("argument") == node:
            call = parent.parent
            if call is not None and call.type == "call_expression" and call.child_by_field_name("function") == parent:
                return node, path
            path += f".{text_of(parent.child_by_field_name('field'))}"
        elif parent.type == "subscript_expression" and parent.child_by_field_name("argument") == node:
            path += _subscript(parent)
        elif parent.type not in ("parenthesized_expression", "pointer_expression", "parameter_pack_expansion"):
            return node, path
        node = parent
    return node, path


def _subscript(node: Node) -> str:
    index = text_of(node.child_by_field_name("indices")).strip("[] ")
    return f"[{index}]" if re.fullmatch(r"\d+", index) else ""


def _modes(node: Node) -> list[tuple[str, bool]]:
    """How the expression around an lvalue uses it: (mode, whether as a stream)."""
    parent = node.parent
    if parent is None:
        return []
    if parent.type == "assignment_expression" and parent.child_by_field_name("left") == node:
        plain = text_of(parent.child_by_field_name("operator")) == "="
        return [("w", False)] if plain else [("r", False), ("w", False)]
    if parent.type == "update_expression":
        return [("r", False), ("w", False)]
    if parent.type == "binary_expression" and _stands_alone(parent):
        return [_shift_mode(parent, node)]
    return [("r", False)]


def _stands_alone(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "expression_statement"


def _shift_mode(shift: Node, node: Node) -> tuple[str, bool]:
    """``stream << value;`` writes the stream; ``stream >> target;`` reads the stream and writes the target."""
    operator = text_of(shift.child_by_field_name("operator"))
    if shift.child_by_field_name("left") == node and operator in ("<<", ">>"):
        return "w" if operator == "<<" else "r", True
    return "w" if shift.child_by_field_name("right") == node and operator == ">>" else "r", False
