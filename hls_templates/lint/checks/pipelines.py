"""Rules 6.1 and 6.2: a loop inside a pipeline is unrolled, needs constant bounds, and must not be pipelined."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from hls_templates.lint.findings import Fault, fault
from hls_templates.syntax.constants import bounded, counter_of, is_constant
from hls_templates.syntax.nodes import LOOPS, body_of, enclosing_loops, text_of, walk
from hls_templates.syntax.pragmas import pragma_in
from hls_templates.syntax.program import FunctionDefinition, Program
from hls_templates.syntax.scopes import arguments, candidates

_DEEPEST_CALL = 20


def check(program: Program) -> Iterator[Fault]:
    """Yield a fault (rule violation) for each loop inside a pipeline that cannot be unrolled, or that is pipelined
    itself."""
    for node in walk(program.root):
        pragma = pragma_in(node, "PIPELINE") if node.type == "compound_statement" else None
        if pragma is not None and not any(_pipelined(loop) for loop in enclosing_loops(node) if body_of(loop) != node):
            pipelined = _Pipelined(node, program.function_of(node), unrolled_counters(node), pragma.node)
            yield from _inside(program, pipelined, ())


@dataclass(frozen=True)
class _Pipelined:
    """A block inside a pipeline: the pipelined block, or the body of a function that is called in it.

    Attributes:
        block: The block.
        function: The function that contains the block.
        constants: Names that are constant in the block.
        pragma: The PIPELINE directive.
    """

    block: Node
    function: FunctionDefinition | None
    constants: frozenset[str]
    pragma: Node


def _inside(program: Program, pipelined: _Pipelined, callers: tuple[int, ...]) -> Iterator[Fault]:
    """Yield a fault (rule violation) for each loop in a pipelined block, or in a function called there, that breaks a
    rule.

    Args:
        program: The whole program.
        pipelined: The block.
        callers: Node ids of the functions that were called on the way from the pipelined block.
    """
    for node in walk(pipelined.block):
        if node.type in LOOPS:
            yield from _unrollable(program, node, pipelined)
        elif node.type == "call_expression":
            for callee in candidates(program, node, pipelined.function):
                if callee.node.id not in callers and len(callers) < _DEEPEST_CALL:
                    constants = _constant_params(program, node, callee, pipelined.constants)
                    body = _Pipelined(callee.body, callee, constants, pipelined.pragma)
                    yield from _inside(program, body, (*callers, callee.node.id))


def _constant_params(
    program: Program, call: Node, callee: FunctionDefinition, constants: frozenset[str]
) -> frozenset[str]:
    """Return the names of the parameters of ``callee`` that get a constant in this call."""
    pairs = zip(callee.params, arguments(call), strict=False)
    return frozenset(param.name for param, argument in pairs if is_constant(program, argument, constants))


def _unrollable(program: Program, loop: Node, pipelined: _Pipelined) -> Iterator[Fault]:
    outer = [o for o in enclosing_loops(loop) if pipelined.block.start_byte <= o.start_byte]
    counters = {counter for o in outer if (counter := counter_of(o))}
    if not bounded(program, loop, pipelined.constants | counters):
        yield fault(loop, "pipeline-inner-loop", actual=headline(loop), pipeline=pipelined.pragma)
    elif _pipelined(loop):
        yield fault(loop, "pipeline-nested", actual=headline(loop))


def _pipelined(loop: Node) -> bool:
    return pragma_in(body_of(loop), "PIPELINE") is not None


def unrolled_counters(node: Node) -> frozenset[str]:
    """Return the names of the counters of the unrolled loops around ``node``: loops with UNROLL, and loops inside a
    pipeline.

    Unrolling turns these counters into constants.
    """
    counters: set[str] = set()
    loops = list(enclosing_loops(node))
    for index, loop in enumerate(loops):
        unroll, counter = pragma_in(body_of(loop), "UNROLL"), counter_of(loop)
        unrolled = unroll is not None and not unroll.has("factor")
        if counter is not None and (unrolled or any(_pipelined(outer) for outer in loops[index + 1 :])):
            counters.add(counter)
    return frozenset(counters)


def headline(loop: Node) -> str:
    """Return the first line of a loop's source text, in quotes, for a finding."""
    return f"«{re.sub(r' +', ' ', text_of(loop).splitlines()[0])[:60]}»"
