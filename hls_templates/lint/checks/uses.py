"""Finds the uses of a function's variable, also in functions that it is passed to, and the loops around each use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from hls_templates.syntax.constants import counter_of, is_constant
from hls_templates.syntax.nodes import LOOPS, ancestors, body_of, text_of, walk
from hls_templates.syntax.pragmas import pragma_in
from hls_templates.syntax.program import FunctionDefinition, Program
from hls_templates.syntax.scopes import arguments, candidates, expanded

_DEEPEST_CALL = 20


@dataclass(frozen=True)
class Surroundings:
    """The pipeline, loops and calls around a use of a variable.

    Attributes:
        pipeline: The pipelined block around the use, or None.
        repeated: Whether an unrolled loop is between the pipelined block and the use.
        looped: Whether any loop is around the use.
        constants: Names that are constant at the use because of unrolling or of the call's arguments.
        calls: The calls from the first function to the use, outermost first.
    """

    pipeline: Node | None = None
    repeated: bool = False
    looped: bool = False
    constants: frozenset[str] = frozenset()
    calls: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Use:
    """One use of a variable: the syntax node that names it, and the pipeline, loops and calls around it."""

    node: Node
    around: Surroundings

    @property
    def path(self) -> tuple[Node, ...]:
        """The nodes of the calls from the pipelined block to the use, outermost first, and then the use itself."""
        pipeline, nodes = self.around.pipeline, (*self.around.calls, self.node)
        first = next((i for i, node in enumerate(nodes) if pipeline is not None and holds(pipeline, node)), 0)
        return nodes[first:]


def holds(outer: Node, node: Node) -> bool:
    """Return whether the text of ``node`` is inside of the text of ``outer``."""
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def uses(
    program: Program, function: FunctionDefinition, name: str, around: Surroundings | None = None
) -> Iterator[Use]:
    """Yield the uses of the variable, parameter or port ``name`` of ``function``, also in functions that it is passed
    to.

    If a call passes it on, the uses of the callee's parameter follow in its place.

    Args:
        program: The whole program.
        function: The function.
        name: The name in the function.
        around: The surroundings of the call of the function, if it is called with the variable.
    """
    outer = around or Surroundings()
    for node in walk(function.body):
        if node.type == "identifier" and text_of(node) == name and not _declares(node):
            surroundings = _at(node, function, outer)
            parent = node.parent
            call = parent.parent if parent is not None and parent.type == "argument_list" else None
            if call is None or call.type != "call_expression":
                yield Use(node, surroundings)
            elif len(surroundings.calls) < _DEEPEST_CALL:
                yield from _passed(program, function, call, node, surroundings)


def _passed(
    program: Program, caller: FunctionDefinition, call: Node, node: Node, around: Surroundings
) -> Iterator[Use]:
    listed = arguments(call)
    index = [argument.id for argument in listed].index(node.id)
    for callee in candidates(program, call, caller):
        pairs = zip(callee.params, listed, strict=False)
        fixed = frozenset(param.name for param, value in pairs if is_constant(program, value, around.constants))
        callee_around = replace(around, constants=fixed, calls=(*around.calls, call))
        for param in callee.bound(index, len(listed), expanded(call)):
            if param.name:
                yield from uses(program, callee, param.name, callee_around)


def _declares(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type.endswith("declarator") and parent.child_by_field_name("value") != node


def _at(node: Node, function: FunctionDefinition, outer: Surroundings) -> Surroundings:
    """Return the pipeline, loops and calls around a node in a function's body; ``outer`` has those around the
    function's call."""
    within = [around for around in ancestors(node) if holds(function.body, around)]
    blocks = list(filter(_pipelined, within))
    pipeline = outer.pipeline or next(reversed(blocks), None)
    loops = [loop for loop in within if loop.type in LOOPS]
    unrolled = [loop for loop in loops if _unrolled(loop, outer, blocks)]
    return Surroundings(
        pipeline,
        outer.repeated or bool(pipeline and unrolled),
        outer.looped or bool(loops),
        outer.constants.union(filter(None, map(counter_of, unrolled))),
        outer.calls,
    )


def _pipelined(block: Node) -> bool:
    return block.type == "compound_statement" and pragma_in(block, "PIPELINE") is not None


def _unrolled(loop: Node, outer: Surroundings, blocks: list[Node]) -> bool:
    """Return whether a loop is unrolled, so that each iteration becomes its own hardware."""
    if outer.pipeline is not None:
        return True
    body = body_of(loop)
    if any(block != body and block.start_byte <= loop.start_byte < block.end_byte for block in blocks):
        return True
    unroll = pragma_in(body, "UNROLL")
    return unroll is not None and not unroll.has("factor")
