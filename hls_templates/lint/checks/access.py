"""Finds the variables that a statement reads and writes, directly or in the functions that it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from hls_templates.documented.synthesis import COPIES, STREAM_READS, STREAM_WRITES
from hls_templates.syntax.declarations import Variable
from hls_templates.syntax.nodes import text_of, walk
from hls_templates.syntax.program import FunctionDefinition, Program
from hls_templates.syntax.scopes import arguments, callee_name, candidates, expanded, locals_of, members


@dataclass(frozen=True)
class Access:
    """One read or write of a C++ variable by a statement or a function.

    Attributes:
        root: The variable: its name, "this" for the object of a method, or "::name" for a global variable.
        path: Its fields and constant subscripts, such as ".rows[2]".
        mode: "r" or "w".
        stream: Whether the access reads or writes a stream.
    """

    root: str
    path: str
    mode: str
    stream: bool = False

    @property
    def key(self) -> str:
        return self.root + self.path

    def within(self, root: str, path: str) -> Access:
        """Return this access of a called function as the caller's access, of the variable ``root`` + ``path`` that the
        caller passes."""
        return Access(root, path + self.path, self.mode, self.stream)


@dataclass(frozen=True)
class Scope:
    """The variables that names in a C++ function refer to, for finding its reads and writes.

    Other local variables have no meaning outside of the function, and are in neither mapping.

    Attributes:
        function: The function.
        roots: The root (``Access.root``) of each parameter, member and global variable, by name.
        aliases: The (root, path) that a local reference or pointer refers to, by name.
    """

    function: FunctionDefinition
    roots: Mapping[str, str]
    aliases: Mapping[str, tuple[str, str]] = field(default_factory=dict)


class Accesses:
    """The reads and writes of variables by the functions of a program, each computed once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._cache: dict[int, frozenset[Access]] = {}

    def of_function(self, function: FunctionDefinition) -> frozenset[Access]:
        """Return the reads and writes by which a function accesses its parameters, its object's members and global
        variables."""
        key = function.node.id
        if key not in self._cache:
            self._cache[key] = frozenset()
            # A second pass is needed for a function that calls itself, such as one that forwards its parameter pack.
            for _ in range(2):
                self._cache[key] = frozenset(self.of_node(function.body, self._scope(function)))
        return self._cache[key]

    def region_scope(self, function: FunctionDefinition) -> Scope:
        """Return the scope of a DATAFLOW region's function. An access to a local variable is counted there too.

        In other functions, only accesses to parameters, members and global variables are counted.
        """
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
        """Yield the reads and writes of variables in all expressions inside a node."""
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
        """Yield the reads and writes of the variable x by a call ``f(x)``.

        Args:
            call: The call.
            node: The argument x.
            read: An access that reads x.
            scope: The meaning of names in the caller.
        """
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
            yield Access(read.root, read.path, "w" if callee_name(call) in COPIES and index == 0 else "r")

    def _through(self, function: FunctionDefinition, param: Variable, read: Access) -> Iterator[Access]:
        """Yield the reads and writes by which a called function accesses the variable bound to its parameter
        ``param``."""
        if param.kind == "value":
            yield read
            return
        touched = (access for access in self.of_function(function) if access.root == param.name and param.name)
        yield from (access.within(read.root, read.path) for access in touched)

    def _method(self, node: Node, read: Access, scope: Scope) -> Iterator[Access]:
        """Yield the reads and writes of the object x by a method call ``x.f()``.

        Args:
            node: The node ``x.f``.
            read: An access that reads x.
            scope: The meaning of names in the caller.
        """
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
        """Return the reads and writes of a region's process: of its arguments, its object and the global variables that
        it reaches."""
        accesses = set(self.of_node(statement, scope))
        for node in walk(statement):
            if node.type == "call_expression":
                for function in candidates(self.program, node, scope.function):
                    accesses |= {a for a in self.of_function(function) if a.root.startswith("::")}
                    accesses |= self._of_own_method(node, function)
        return frozenset(accesses)

    def _of_own_method(self, call: Node, function: FunctionDefinition) -> set[Access]:
        """Return the reads and writes of the object (``this``) by a method that is called without naming its object."""
        bare = text_of(call.child_by_field_name("function")).isidentifier()
        if not bare or function.owner is None:
            return set()
        return {access for access in self.of_function(function) if access.root == "this"}


def _alias(variable: Variable, scope: Scope) -> tuple[str, str] | None:
    """Return the variable, as (root, path), that a local pointer or reference refers to: rows for ``auto &row =
    rows[i];``."""
    if not variable.refers or variable.value is None:
        return None
    for node in walk(variable.value):
        if node.type == "identifier" and not _names_only(node) and (target := _resolve(text_of(node), scope)):
            return target[0], _largest_lvalue(node, target[1])[1]
    return None


def _only_renamed(parent: Node) -> bool:
    """Return whether the node only initialises a reference or pointer. Uses of such an alias are found by its name."""
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
    """Return whether an identifier only declares a variable or names a function, and does not use a variable."""
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
    """Return the largest lvalue around a name (``a.b[2]`` around ``a``), and ``path`` followed by the lvalue's fields
    and subscripts."""
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
    """Return how the expression around an lvalue uses it: pairs ("r" or "w", whether it is used as a stream)."""
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
    """Return how a shift statement uses one of its operands: ("r" or "w", whether it is used as a stream).

    ``stream << value;`` writes the stream. ``stream >> target;`` reads the stream and writes the target.
    """
    operator = text_of(shift.child_by_field_name("operator"))
    if shift.child_by_field_name("left") == node and operator in ("<<", ">>"):
        return "w" if operator == "<<" else "r", True
    return "w" if shift.child_by_field_name("right") == node and operator == ">>" else "r", False
