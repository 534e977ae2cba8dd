"""Group 4, channels: checks that a variable shared by processes of a DATAFLOW region has one writer and one reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from hls_templates.lint.checks.access import Access, Accesses
from hls_templates.lint.findings import Fault, fault
from hls_templates.syntax.declarations import Variable, variables
from hls_templates.syntax.nodes import text_of
from hls_templates.syntax.pragmas import ParsedPragma
from hls_templates.syntax.program import FunctionDefinition, Program
from hls_templates.syntax.scopes import callee_name, members

_INITIALISER = -1
"""The index of the writer if a variable is written by its own declaration."""


@dataclass(frozen=True)
class Region:
    """A DATAFLOW region in the C++ source, for one choice of its compile-time conditions.

    Attributes:
        pragma: The DATAFLOW directive.
        block: The block that it applies to.
        function: The function that contains the block.
        statements: The statements that remain for this choice of conditions.
    """

    pragma: ParsedPragma
    block: Node
    function: FunctionDefinition
    statements: tuple[Node, ...]


@dataclass(frozen=True)
class Process:
    """A process of a DATAFLOW region: a call in it.

    Attributes:
        node: The statement.
        call: The call expression in it.
        accesses: All variables that the process reads and writes.
    """

    node: Node
    call: Node
    accesses: frozenset[Access]

    @property
    def name(self) -> str:
        return callee_name(self.call)


@dataclass(frozen=True)
class Channel:
    """A variable through which the processes of a DATAFLOW region communicate, with its readers and writers.

    Attributes:
        key: The variable, field or element, as in ``Access.key``.
        variable: The declaration of the variable.
        local: Whether it is declared in the region.
        stream: Whether it is used as a stream.
        shared: Whether it is a RAM_1WNR, which several processes may read.
        readers: Indices of the processes that read it, in the order of their calls.
        writers: Indices of the processes that write it; _INITIALISER stands for its declaration.
    """

    key: str
    variable: Variable
    local: bool
    stream: bool
    shared: bool
    readers: tuple[int, ...]
    writers: tuple[int, ...]

    @property
    def processes(self) -> tuple[int, ...]:
        return tuple(sorted({*self.readers, *self.writers}))


def check(region: Region, accesses: Accesses) -> Iterator[Fault]:
    """Yield a fault (rule violation) for each channel of a DATAFLOW region that does not have one writer and one
    reader."""
    scope = accesses.region_scope(region.function)
    calls = [(node, call) for node in region.statements if (call := call_of(node)) is not None]
    processes = tuple(Process(node, call, accesses.of_statement(node, scope)) for node, call in calls)
    judge = _Judge(region.pragma, processes)
    for channel in _channels(region, processes, accesses.program):
        yield from judge.faults(channel)


def call_of(node: Node) -> Node | None:
    """Return the call expression of a statement that consists of a single call; else None."""
    expression = node.named_children[0] if node.type == "expression_statement" and node.named_children else None
    return expression if expression is not None and expression.type == "call_expression" else None


# ---------------------------------------------------------------------------------- finding the channels


@dataclass(frozen=True)
class _Use:
    """A read or write by process number ``process`` of the variable, field or element ``key``."""

    process: int
    key: str
    access: Access


@dataclass(frozen=True)
class _Variables:
    """The variables that the statements of a DATAFLOW region can use.

    Attributes:
        local: The variables that the region declares.
        roots: All variables that a key can start with, by the root of the key.
        fields: The members of the method's object.
    """

    local: Mapping[str, Variable]
    roots: Mapping[str, Variable]
    fields: Mapping[str, Variable]

    def variable(self, key: str) -> Variable | None:
        """Return the declared variable that a key such as ``a.b[2]`` starts with: a root, or a member of the object."""
        root, *path = key.split(".")
        member = path[0].split("[")[0] if path and root == "this" else ""
        return self.roots.get(root.split("[")[0]) or self.fields.get(member)

    def is_local(self, key: str) -> bool:
        return re.split(r"[.\[]", key)[0] in self.local


def _channels(region: Region, processes: Sequence[Process], program: Program) -> Iterator[Channel]:
    scope = _variables(region, program)
    uses = [
        _Use(index, _collapsed(access, scope.roots), access)
        for index, process in enumerate(processes)
        for access in process.accesses
    ]
    for key in _keys(uses, scope):
        variable = scope.variable(key)
        if variable is not None and not (variable.const and scope.is_local(key)):
            touching = [use for use in uses if use.key == key or _part_of(key, use.key)]
            yield _channel(key, variable, touching, scope.is_local(key), _many_may_read(region.block, key))


def _keys(uses: Sequence[_Use], scope: _Variables) -> list[str]:
    """Return the keys of the channels: variables, fields or elements that are used or declared, without a whole whose
    parts are used."""
    keys = {use.key for use in uses} | set(scope.local)
    return sorted(key for key in keys if not any(_part_of(longer, key) for longer in keys))


def _many_may_read(block: Node, key: str) -> bool:
    """Return whether a directive in the region's block makes the variable a RAM_1WNR, which several processes may
    read."""
    return any("ram_1wnr" in text_of(child).lower() for child in block.children if key in text_of(child))


def _channel(key: str, variable: Variable, touching: Sequence[_Use], local: bool, shared: bool) -> Channel:
    readers = {use.process for use in touching if use.access.mode == "r"}
    writers = {use.process for use in touching if use.access.mode == "w"}
    if local and variable.kind == "array" and variable.value is not None:
        writers.add(_INITIALISER)
    used_as_stream = variable.kind != "port" and any(use.access.stream for use in touching)
    stream = variable.kind == "stream" or used_as_stream
    return Channel(key, variable, local, stream, shared, tuple(sorted(readers)), tuple(sorted(writers)))


def _variables(region: Region, program: Program) -> _Variables:
    declarations = [node for node in region.statements if node.type == "declaration"]
    local = {variable.name: variable for node in declarations for variable in variables(node, program.streams)}
    roots = {f"::{name}": variable for name, variable in program.globals.items()}
    roots |= {parameter.name: parameter for parameter in region.function.params}
    return _Variables(local, roots | local, members(program, region.function.owner))


def _collapsed(access: Access, roots: Mapping[str, Variable]) -> str:
    """Return the key (variable, field or element) of the channel that a read or write uses.

    All elements and fields of an array or pointer are one channel. The fields of a struct are separate channels.
    """
    variable = roots.get(access.root)
    if variable is not None and variable.kind in ("array", "pointer", "port") and not access.stream:
        return access.root
    return access.key


def _part_of(key: str, outer: str) -> bool:
    return key != outer and key.startswith((f"{outer}.", f"{outer}["))


# -------------------------------------------------------------------------------- checking the channels


@dataclass(frozen=True)
class _Judge:
    """The checks of a region's channels by the rules for their kinds: streams, arrays, scalars and globals."""

    pragma: ParsedPragma
    processes: tuple[Process, ...]

    def faults(self, channel: Channel) -> Iterator[Fault]:
        kind = channel.variable.kind
        if channel.key.startswith("::"):
            yield from self._shared("shared-global", channel.processes, channel.key[2:])
        elif channel.local and (channel.stream or kind == "array"):
            yield from self._local(channel)
        elif channel.stream:
            if len(channel.processes) > 1:
                yield self._crowded(channel, "used by one", channel.processes)
        elif kind in ("array", "pointer", "port"):
            yield from self._argument(channel)
        else:
            yield from self._shared("shared-variable", channel.writers, channel.key)

    def _shared(self, rule: str, indices: tuple[int, ...], name: str) -> Iterator[Fault]:
        if len(indices) > 1:
            yield fault(self._node(indices[1]), rule, actual=self._names(indices), channel=name)

    def _local(self, channel: Channel) -> Iterator[Fault]:
        both = sorted({*channel.readers} & {*channel.writers})
        if both:
            names = self._names(both)
            yield fault(self._node(both[0]), "channel-same-process", channel=channel.key, actual=names)
            return
        if len(channel.writers) != 1:
            yield self._not_one(channel, "channel-writers", channel.writers)
        if not channel.readers or (len(channel.readers) > 1 and not channel.shared):
            yield self._not_one(channel, "channel-readers", channel.readers)
        if len(channel.writers) == 1 and channel.readers and channel.readers[0] < channel.writers[0]:
            reader, writer = self.processes[channel.readers[0]], self.processes[channel.writers[0]]
            yield fault(reader.node, "channel-feedback", channel=channel.key, reader=reader.name, writer=writer.name)

    def _not_one(self, channel: Channel, rule: str, indices: tuple[int, ...]) -> Fault:
        hint = "duplicate it into one channel each" if indices else "connect it or remove it"
        node = self._node(indices[1]) if indices else self.pragma.node
        return fault(node, rule, channel=channel.key, actual=self._names(indices), hint=hint)

    def _argument(self, channel: Channel) -> Iterator[Fault]:
        # A memory has two ports. If no process writes an array, two processes may therefore read it.
        limit = 2 if channel.variable.kind == "array" and not channel.writers else 1
        if len(channel.readers) > limit:
            yield self._crowded(channel, "read by one", channel.readers)
        if len(channel.writers) > 1:
            yield self._crowded(channel, "written by one", channel.writers)
        if channel.readers and channel.writers and channel.writers[0] < channel.readers[-1]:
            writer, reader = self.processes[channel.writers[0]], self.processes[channel.readers[-1]]
            yield fault(reader.node, "argument-order", channel=channel.key, writer=writer.name, reader=reader.name)

    def _crowded(self, channel: Channel, required: str, indices: tuple[int, ...]) -> Fault:
        names = self._names(indices)
        node = self._node(indices[1])
        return fault(node, "argument-processes", channel=channel.key, required=required, actual=names)

    def _node(self, index: int) -> Node:
        return self.processes[index].node if index != _INITIALISER else self.pragma.node

    def _names(self, indices: Sequence[int]) -> str:
        names = ("its initialiser" if i == _INITIALISER else self.processes[i].name for i in indices)
        return " and ".join(names) or "none"
