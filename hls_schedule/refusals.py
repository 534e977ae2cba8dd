"""The pipelined loops of sources whose schedule is not derived, each with the reason.

Vitis HLS says in its log that it does not pipeline such a loop, or builds it of cores whose latency no table has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from boards.errors import RefusedLoopError
from hls_schedule.reading.frontend import Mark
from hls_schedule.reading.ir import Loop, Operation, unrolled_marks
from hls_schedule.reading.llvm_text import Location, Module

FLOATS = {
    "fadd": "float addition", "fmul": "float multiplication", "fdiv": "float division", "fsqrt": "float square root",
    "fcmp": "float comparison", "sitofp": "conversion to float",
}  # fmt: skip
"""Operators whose stages were read at one clock only. At another clock, Vitis HLS builds them with other latencies."""


def source_of(loop: Loop) -> str:
    """Return the place of a loop's mark as ``file:line``."""
    return _source(loop.location) if loop.location else loop.header


def refused_loops(
    module: Module, marks: Sequence[Mark], loops: Sequence[Loop], top: str = ""
) -> tuple[RefusedLoopError, ...]:
    """Return an error for each loop that is not derived, in the order of the sources.

    A mark in a function that nothing calls is an error only if there is no other loop. Marks outside of a known top
    function are left out.
    """
    operators = {source_of(loop): reason for loop in loops if (reason := _operator(loop))}
    derived = {source_of(loop) for loop in loops} - operators.keys()
    unrolled = [(mark, inner) for mark, inner in unrolled_marks(module) if top in ("", mark.scopes[-1])]
    reasons = {_source(mark): _around(inner) for mark, inner in unrolled} | operators
    reasons |= {mark.source: "it marks a function, and only loops are derived" for mark in marks if not mark.of_loop}
    if not derived and not reasons:
        reasons = {mark.source: "nothing calls its function, or it has no iterations" for mark in marks}
    named = {mark.source: mark for mark in marks}
    return tuple(
        RefusedLoopError(_name(mark), reasons[source])
        for source, mark in named.items()
        if source in reasons.keys() - derived
    )


def is_refused(loop: Loop) -> bool:
    """Return whether a loop has an operator of unknown latency."""
    return bool(_operator(loop))


def _operator(loop: Loop) -> str:
    """Return the reason why a loop's operators prevent a schedule; "" if none does."""
    for operation in loop.operations:
        if operation.operator in FLOATS:
            return f"it has a {FLOATS[operation.operator]}{_at(operation)}, whose latency depends on the clock"
        if operation.operator == "function" and operation.index not in loop.calls:
            return f"it calls {operation.called or 'a function'}{_at(operation)}, whose latency is not known"
    return ""


def _around(inner: Location | None) -> str:
    if inner is None:
        return "it has one iteration, or its function is compiled into straight code"
    return f"the loop at {_source(inner)} in it is not unrolled, because its number of iterations is not known"


def _name(mark: Mark) -> str:
    return f"{mark.label} ({mark.source})" if mark.label else mark.source


def _at(operation: Operation) -> str:
    return f" at {_source(operation.location)}" if operation.location else ""


def _source(location: Location) -> str:
    return f"{PurePath(location.file).name}:{location.line}"
