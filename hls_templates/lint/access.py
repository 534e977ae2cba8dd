"""Who reads and who writes what: the variables that a statement touches, through every call it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from hls_templates.lint.rules import COPIES, STREAM_READS, STREAM_WRITES
from hls_templates.lint.tree import (
    Function,
    Program,
    Variable,
    arguments,
    called,
    candidates,
    locals_of,
    members,
    stream_names,
    text_of,
    walk,
)


@dataclass(frozen=True)
class Access:
    """``root`` is a variable, «this» or «::global»; ``path`` its fields and constant subscripts."""

    root: str
    path: str
    mode: str  # r, w
    stream: bool = False

    @property
    def key(self) -> str:
        return self.root + self.path


@dataclass(frozen=True)
class Scope:
    """What names mean in a function. ``locals`` are dropped or, as aliases, followed."""

    function: Function
    roots: Mapping[str, str]
    aliases: Mapping[str, tuple[str, str]] = field(default_factory=dict)


class Accesses:
    """The accesses of functions, each computed once (a cache beside an immutable program)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.streams = stream_names(program)
        self._known: dict[int, frozenset[Access]] = {}

    def of_function(self, function: Function) -> frozenset[Access]:
        """Accesses whose roots are parameters, members and globals."""
        key = function.node.id
        if key not in self._known:
            self._known[key] = frozenset()  # recursion adds nothing
            self._known[key] = frozenset(self.of_node(function.body, self._scope(function)))
        return self._known[key]

    def region_scope(self, function: Function) -> Scope:
        """As seen from a DATAFLOW region: its locals are roots too."""
        own = locals_of(function.body, self.streams)
        outer = self._scope(function)
        return Scope(function, {**outer.roots, **{name: name for name in own}})

    def _scope(self, function: Function) -> Scope:
        own = locals_of(function.body, self.streams)
        roots = {n: f"::{n}" for n, v in self.program.globals.items() if not v.const}
        roots |= {n: f"this.{n}" for n in members(self.program, function.owner)}
        roots = {n: r for n, r in roots.items() if n not in own}
        roots |= {p.name: p.name for p in function.params if p.name}
        plain = Scope(function, roots)
        return Scope(function, roots, {n: a for n, v in own.items() if (a := _alias(v, plain))})

    def of_node(self, node: Node, scope: Scope) -> Iterator[Access]:
        for inner in walk(node):
            if inner.type == "this" or (inner.type == "identifier" and not _names_only(inner)):
                yield from self._use(inner, scope)

    def _use(self, node: Node, scope: Scope) -> Iterator[Access]:
        start = _resolve(text_of(node), scope) if node.type == "identifier" else ("this", "")
        if start is None:
            return
        whole, path = _whole(node, start[1])
        root, path = _split_this(start[0], path)
        parent = whole.parent
        if parent is not None and parent.type == "argument_list" and parent.parent is not None:
            yield from self._argument(parent.parent, whole, root, path, scope)
        elif parent is not None and _only_renamed(parent):
            return
        elif parent is not None and parent.type == "field_expression":
            yield from self._method(parent, root, path, scope)
        else:
            yield from (Access(root, path, m, s) for m, s in _modes(whole))

    def _argument(self, call: Node, node: Node, root: str, path: str, scope: Scope) -> Iterator[Access]:
        if call.type != "call_expression":  # a constructor or initialiser
            yield Access(root, path, "r")
            return
        index = [a.id for a in arguments(call)].index(node.id)
        several = candidates(self.program, call, scope.function)
        for function in several:
            yield from self._through(function, index, root, path)
        if not several:
            yield Access(root, path, "w" if called(call) in COPIES and index == 0 else "r")

    def _through(self, function: Function, index: int, root: str, path: str) -> Iterator[Access]:
        param = function.params[index]
        if param.kind == "value":
            yield Access(root, path, "r")
            return
        inner = (a for a in self.of_function(function) if a.root == param.name and param.name)
        yield from (Access(root, path + a.path, a.mode, a.stream) for a in inner)

    def _method(self, node: Node, root: str, path: str, scope: Scope) -> Iterator[Access]:
        """``x.read()``; ``node`` is the function part of the call."""
        name, call = text_of(node.child_by_field_name("field")), node.parent
        if name in STREAM_READS | STREAM_WRITES:
            yield Access(root, path, "r" if name in STREAM_READS else "w", stream=True)
        elif call is not None and name not in ("size", "capacity", "set_name"):
            several = candidates(self.program, call, scope.function)
            inner = (a for f in several for a in self.of_function(f) if a.root == "this")
            yield from (Access(root, path + a.path, a.mode, a.stream) for a in inner)
            if not several:
                yield Access(root, path, "r")

    def of_statement(self, statement: Node, scope: Scope) -> frozenset[Access]:
        """The accesses of a process: those of its arguments and object, and the globals that it reaches."""
        found = set(self.of_node(statement, scope))
        for node in walk(statement):
            if node.type == "call_expression":
                for function in candidates(self.program, node, scope.function):
                    found |= {a for a in self.of_function(function) if a.root.startswith("::")}
                    found |= self._of_own_method(node, function)
        return frozenset(found)

    def _of_own_method(self, call: Node, function: Function) -> set[Access]:
        bare = text_of(call.child_by_field_name("function")).isidentifier()
        own = bare and function.owner is not None
        return {a for a in self.of_function(function) if a.root == "this"} if own else set()


def _alias(variable: Variable, scope: Scope) -> tuple[str, str] | None:
    """``auto &row = rows[i];`` → rows: what a local pointer or reference stands for."""
    if not variable.refers or variable.value is None:
        return None
    for node in walk(variable.value):
        if node.type == "identifier" and not _names_only(node) and (found := _resolve(text_of(node), scope)):
            return found[0], _whole(node, found[1])[1]
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


def _whole(node: Node, path: str) -> tuple[Node, str]:
    """Climb from a name to the largest lvalue around it, gathering its path."""
    while (parent := node.parent) is not None:
        if parent.type == "field_expression" and parent.child_by_field_name("argument") == node:
            call = parent.parent
            if call is not None and call.type == "call_expression" and call.child_by_field_name("function") == parent:
                return node, path
            path += f".{text_of(parent.child_by_field_name('field'))}"
        elif parent.type == "subscript_expression" and parent.child_by_field_name("argument") == node:
            path += _subscript(parent)
        elif parent.type not in ("parenthesized_expression", "pointer_expression"):
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
    if parent.type == "binary_expression" and _standing_alone(parent) and parent.child_by_field_name("left") == node:
        operator = text_of(parent.child_by_field_name("operator"))
        if operator in ("<<", ">>"):
            return [("w" if operator == "<<" else "r", True)]
    if parent.type == "binary_expression" and _shifted_in(parent, node):
        return [("w", False)]
    return [("r", False)]


def _standing_alone(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "expression_statement"


def _shifted_in(parent: Node, node: Node) -> bool:
    """``stream >> target;`` writes the target."""
    is_read = text_of(parent.child_by_field_name("operator")) == ">>" and _standing_alone(parent)
    return is_read and parent.child_by_field_name("right") == node
