"""Rule 4: DATAFLOW regions are canonical and each channel has one writer and one reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from hls_templates.lint.access import Access, Accesses, Scope
from hls_templates.lint.pragmas import Fault, Pragma, pragmas
from hls_templates.lint.tree import (
    Function,
    Program,
    Variable,
    arguments,
    block_of,
    called,
    candidates,
    is_assert,
    is_constant,
    members,
    owner_of,
    text_of,
    variables,
    visible,
    walk,
)

_HARMLESS = frozenset(
    {
        "{",
        "}",
        "preproc_call",
        "comment",
        "static_assert_declaration",
        "alias_declaration",
        "using_declaration",
        "type_definition",
        "empty_statement",
    }
)
_WHOLE = frozenset(
    {
        "identifier",
        "field_expression",
        "this",
        "number_literal",
        "true",
        "false",
        "string_literal",
        "nullptr",
        "qualified_identifier",
        "lambda_expression",
    }
)
_NAMED = {
    "if_statement": "a condition",
    "return_statement": "a return",
    "for_statement": "a loop",
    "while_statement": "a loop",
    "do_statement": "a loop",
    "for_range_loop": "a loop",
    "switch_statement": "a condition",
    "goto_statement": "a goto",
    "throw_statement": "a throw",
    "compound_statement": "a block",
}


@dataclass(frozen=True)
class Process:
    node: Node
    call: Node
    accesses: frozenset[Access]

    @property
    def name(self) -> str:
        return called(self.call)


@dataclass(frozen=True)
class Channel:
    """Indices of the processes that read and write one variable; -1 is its initialiser."""

    key: str
    variable: Variable
    local: bool
    stream: bool
    readers: tuple[int, ...]
    writers: tuple[int, ...]

    @property
    def processes(self) -> tuple[int, ...]:
        return tuple(sorted({*self.readers, *self.writers}))


def check(program: Program, accesses: Accesses) -> Iterator[Fault]:
    for pragma in pragmas(program):
        block, function = block_of(pragma.node), program.function_of(pragma.node)
        if pragma.name != "DATAFLOW" or block is None or function is None:
            continue
        yield from _content(program, block, function)
        if owner_of(block)[0] == "loop":
            yield from _loop(program, owner_of(block)[1], function)
        for variant in _variants(block):
            yield from _channels(pragma, variant, block, function, accesses)


# ------------------------------------------------------------------------------------------ statements


def _statements(block: Node) -> Iterator[Node]:
    for node in block.children:
        plain = node.named_children[-1] if node.type == "labeled_statement" else node
        if plain.type not in _HARMLESS and text_of(plain).strip() != ";" and not is_assert(plain):
            yield plain


def _compile_time(node: Node) -> bool:
    return node.type == "if_statement" and any(c.type == "constexpr" for c in node.children)


def _branches(node: Node) -> list[list[Node]]:
    """The statements of both branches of ``if constexpr``: only one of them is ever built."""
    found = []
    for branch in (node.child_by_field_name("consequence"), node.child_by_field_name("alternative")):
        inner = branch.named_children[-1] if branch is not None and branch.type == "else_clause" else branch
        found.append([] if inner is None else [*_statements(inner)] if inner.type == "compound_statement" else [inner])
    return found


def _variants(block: Node) -> list[list[Node]]:
    """The straight-line regions that compile-time conditions can leave, at most 64."""
    return _expand(list(_statements(block)))[:64]


def _expand(statements: list[Node]) -> list[list[Node]]:
    found: list[list[Node]] = [[]]
    for node in statements:
        ways = [w for b in _branches(node) for w in _expand(b)] if _compile_time(node) else [[node]]
        found = [[*before, *way] for before in found for way in ways][:64]
    return found


def _content(program: Program, block: Node, function: Function) -> Iterator[Fault]:
    seen = {node.id: node for variant in _variants(block) for node in variant}
    for node in seen.values():
        if node.type == "declaration":
            yield from _declaration(node)
        elif (call := _call(node)) is not None:
            yield from _process(program, call, function)
        else:
            came = _NAMED.get(node.type, f"«{_short(node)}»")
            yield node, "dataflow-statement", {"came": came}


def _call(node: Node) -> Node | None:
    inner = node.named_children[0] if node.type == "expression_statement" and node.named_children else None
    return inner if inner is not None and inner.type == "call_expression" else None


def _declaration(node: Node) -> Iterator[Fault]:
    words = {text_of(c) for c in node.children}
    constant = words & {"const", "constexpr"} or any(text_of(c) in ("const", "constexpr") for c in node.named_children)
    for variable in variables(node):
        if "static" in words and not constant and variable.kind != "stream":
            yield node, "dataflow-static", {"came": variable.name}
        computed = variable.value is not None and any(n.type == "call_expression" for n in walk(variable.value))
        if computed and not constant:
            yield node, "dataflow-statement", {"came": f"«{_short(node)}»"}


def _process(program: Program, call: Node, function: Function) -> Iterator[Fault]:
    name, several = called(call), candidates(program, call, function)
    for argument in arguments(call):
        if not _is_whole(program, argument):
            yield argument, "dataflow-argument", {"process": name, "came": _short(argument)}
    if not several:
        yield call, "dataflow-unknown", {"process": name, "count": len(arguments(call))}
    for one in several:
        if one.returns not in ("void", ""):
            yield call, "dataflow-return", {"process": name, "came": one.returns}


def _is_whole(program: Program, argument: Node) -> bool:
    if argument.type in _WHOLE or is_constant(program, argument):
        return True
    if argument.type == "subscript_expression":  # one stream of an array of streams
        root = text_of(argument).split("[")[0]
        variable = visible(program, argument).get(root)
        index = argument.child_by_field_name("indices")
        fixed = index is not None and all(is_constant(program, n) for n in index.named_children)
        return fixed and variable is not None and "stream" in variable.type
    return argument.type in ("call_expression", "compound_literal_expression", "initializer_list") and not [
        n for n in walk(argument) if n.type == "identifier" and text_of(n) in visible(program, argument)
    ]


def _short(node: Node) -> str:
    return re.sub(r"\s+", " ", text_of(node))[:60]


# ----------------------------------------------------------------------------------------- dataflow loop


def _loop(program: Program, loop: Node, function: Function) -> Iterator[Fault]:
    others = [n for n in _statements(function.body) if n != loop and n.type != "declaration"]
    others = [n for n in others if not (n.start_byte <= loop.start_byte < n.end_byte)]
    if loop.type != "for_statement":
        yield loop, "dataflow-loop", {"required": "be a for loop", "came": "another kind came"}
        return
    if others:
        came = f"«{_short(others[0])}» stands beside it"
        yield others[0], "dataflow-loop", {"required": "be alone in its function", "came": came}
    yield from (_header(program, loop, function))


def _header(program: Program, loop: Node, function: Function) -> Iterator[Fault]:
    start, condition = loop.child_by_field_name("initializer"), loop.child_by_field_name("condition")
    declared = variables(start) if start is not None and start.type == "declaration" else []
    if not declared or not is_constant(program, declared[0].value):
        required = "declare its counter in the header with a constant start"
        yield loop, "dataflow-loop", {"required": required, "came": f"«{_short(loop)}» came"}
    bound = condition.child_by_field_name("right") if condition is not None else None
    scalar = text_of(bound) in {p.name for p in function.params if p.kind == "value"}
    if not scalar and not is_constant(program, bound):
        required = "end at a constant or a scalar argument"
        yield loop, "dataflow-loop", {"required": required, "came": f"«{text_of(bound)}» came"}


# ------------------------------------------------------------------------------------------- channels


def _channels(
    pragma: Pragma, variant: list[Node], block: Node, function: Function, accesses: Accesses
) -> Iterator[Fault]:
    scope = accesses.region_scope(function)
    calls = [(node, call) for node in variant if (call := _call(node)) is not None]
    processes = [Process(node, call, accesses.of_statement(node, scope)) for node, call in calls]
    own = {v.name: v for node in variant if node.type == "declaration" for v in variables(node, accesses.streams)}
    for channel in _found(processes, own, scope, accesses.program):
        shared = "ram_1wnr" in " ".join(text_of(c).lower() for c in block.children if channel.key in text_of(c))
        yield from _judge(pragma, channel, processes, shared)


def _found(processes: list[Process], own: Mapping[str, Variable], scope: Scope, program: Program) -> Iterator[Channel]:
    known = {
        **{f"::{n}": v for n, v in program.globals.items()},
        **{p.name: p for p in scope.function.params},
        **own,
    }
    fields = members(program, scope.function.owner)
    touched = [(i, a.key, a) for i, p in enumerate(processes) for a in p.accesses]
    keys = {_collapsed(a, known) for _, _, a in touched} | set(own)
    for key in sorted(k for k in keys if not any(_inside(other, k) for other in keys)):
        root = re.split(r"[.\[]", key)[0]
        member = key.split(".")[1].split("[")[0] if root == "this" and "." in key else ""
        variable = known.get(root) or fields.get(member)
        if variable is None or (variable.const and root in own):
            continue
        mine = [(i, a) for i, _, a in touched if _collapsed(a, known) == key or _inside(key, _collapsed(a, known))]
        yield Channel(
            key,
            variable,
            root in own,
            variable.kind == "stream" or (variable.kind != "port" and any(a.stream for _, a in mine)),
            tuple(sorted({i for i, a in mine if a.mode == "r"})),
            tuple(sorted({i for i, a in mine if a.mode == "w"} | _initialised(variable, root in own))),
        )


def _initialised(variable: Variable, local: bool) -> set[int]:
    return {-1} if local and variable.kind == "array" and variable.value is not None else set()


def _collapsed(access: Access, known: Mapping[str, Variable]) -> str:
    """Elements and fields of an array or pointer are one channel; those of a struct are several."""
    variable = known.get(access.root)
    if variable is not None and variable.kind in ("array", "pointer", "port") and not access.stream:
        return access.root
    return access.key


def _inside(key: str, outer: str) -> bool:
    return key != outer and key.startswith((f"{outer}.", f"{outer}["))


def _judge(pragma: Pragma, channel: Channel, processes: list[Process], shared: bool) -> Iterator[Fault]:
    if channel.key.startswith("::"):
        if len(channel.processes) > 1:
            yield (
                _at(channel.processes[1], processes, pragma),
                "shared-global",
                {"came": _list(channel.processes, processes), "channel": channel.key[2:]},
            )
    elif channel.local and (channel.stream or channel.variable.kind == "array"):
        yield from _judge_local(pragma, channel, processes, shared)
    elif channel.stream or channel.variable.kind in ("array", "pointer", "port"):
        yield from _judge_argument(pragma, channel, processes)
    elif len(channel.writers) > 1:
        yield (
            _at(channel.writers[1], processes, pragma),
            "shared-variable",
            {"came": _list(channel.writers, processes), "channel": channel.key},
        )


def _judge_local(pragma: Pragma, channel: Channel, processes: list[Process], shared: bool) -> Iterator[Fault]:
    named: dict[str, object] = {"channel": channel.key}
    both = sorted({*channel.readers} & {*channel.writers})
    if both:
        yield (
            _at(both[0], processes, pragma),
            "channel-same-process",
            {**named, "came": _list(both, processes)},
        )
        return
    for rule, ends, many in (
        ("channel-writers", channel.writers, False),
        ("channel-readers", channel.readers, shared),
    ):
        if len(ends) != 1 and not (many and ends):
            hint = "connect it or remove it" if not ends else "duplicate it into one channel each"
            where = _at(ends[1], processes, pragma) if ends else pragma.node
            yield where, rule, {**named, "came": _list(ends, processes), "hint": hint}
    if len(channel.writers) == 1 and channel.readers and channel.readers[0] < channel.writers[0]:
        reader, writer = processes[channel.readers[0]], processes[channel.writers[0]]
        yield reader.node, "channel-feedback", {**named, "reader": reader.name, "writer": writer.name}


def _judge_argument(pragma: Pragma, channel: Channel, processes: list[Process]) -> Iterator[Fault]:
    named: dict[str, object] = {"channel": channel.key}
    if channel.stream:
        if len(channel.processes) > 1:
            yield (
                _at(channel.processes[1], processes, pragma),
                "argument-processes",
                {**named, "required": "used by one", "came": _list(channel.processes, processes)},
            )
        return
    most = 2 if channel.variable.kind == "array" and not channel.writers else 1
    for required, ends, limit in (
        ("read by one", channel.readers, most),
        ("written by one", channel.writers, 1),
    ):
        if len(ends) > limit:
            yield (
                _at(ends[1], processes, pragma),
                "argument-processes",
                {**named, "required": required, "came": _list(ends, processes)},
            )
    if channel.readers and channel.writers and channel.writers[0] < channel.readers[-1]:
        writer, reader = processes[channel.writers[0]], processes[channel.readers[-1]]
        yield reader.node, "argument-order", {**named, "writer": writer.name, "reader": reader.name}


def _at(index: int, processes: list[Process], pragma: Pragma) -> Node:
    return processes[index].node if index >= 0 else pragma.node


def _list(indices: tuple[int, ...] | list[int], processes: list[Process]) -> str:
    names = ["its initialiser" if i < 0 else processes[i].name for i in indices]
    return " and ".join(names) or "none"
