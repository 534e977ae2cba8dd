"""Sources → what a vendor's tool would make of every pipelined loop: ``check_sources``.

Loops that are compiled several times over, because their function is called several times, are one loop: the slowest
of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boards.progress import Progress, ProgressStep, silent
from hls_schedule.memories import BuiltMemory, built_memories
from hls_schedule.multipliers import BuiltMultiplier, built_multipliers
from hls_schedule.operators import OperatorTable, load_table
from hls_schedule.pragmas import Directives
from hls_schedule.predict import UNCERTAINTY, Prediction, predict
from hls_schedule.reading.frontend import compile_sources
from hls_schedule.reading.ir import Loop, read_loops, read_module
from hls_schedule.reading.layout import Types
from hls_schedule.reading.llvm_text import Module

MOST_OPERATIONS, MOST_PRODUCTS = 10_000, 1_024
"""Of a pipeline whose schedule takes no hours and whose enable, which stops all of it, reaches no whole array. A
judgement: no tool states such a number."""


@dataclass(frozen=True)
class Step:
    """source: file:line. ns: of the operators on that line that lie on the path, named in ``operators``."""

    source: str
    ns: float
    operators: tuple[str, ...]


@dataclass(frozen=True)
class CheckedLoop:
    """A pipelined loop: what its code declares and what follows from it. process: the function of its region.

    path: of the longest loop-carried value, whose operators take ``path_ns`` behind each other; ``budget_ns``: what the
    cycles of the declared interval leave for them. reason: what bounds the interval, "" where nothing does.
    operations, products, streams: of an iteration, all behind one enable: operators, those of them that multiply, FIFOs
    that can stop it.
    """

    process: str
    source: str
    declared_ii: int
    derived_ii: int
    declared_depth: int
    derived_depth: int
    path_ns: float
    budget_ns: float
    path: tuple[Step, ...]
    reason: str
    period_ns: float
    operations: int
    products: int
    streams: int

    @property
    def holds(self) -> bool:
        """Whether the code reaches what it declares."""
        return self.derived_ii <= max(1, self.declared_ii)

    @property
    def deeper(self) -> bool:
        """Whether an iteration takes more stages than declared."""
        return self.derived_depth > self.declared_depth > 0

    @property
    def broad(self) -> bool:
        """Whether so much stands behind one enable that it should be several processes."""
        return self.operations > MOST_OPERATIONS or self.products > MOST_PRODUCTS


@dataclass(frozen=True)
class Sources:
    """Compiled sources, which can be checked at several clocks."""

    module: Module
    directives: Directives
    loops: tuple[Loop, ...]

    def check(
        self,
        clock_mhz: float,
        uncertainty: float = UNCERTAINTY,
        table: OperatorTable | None = None,
        tell: Progress = silent,
    ) -> tuple[CheckedLoop, ...]:
        """Every pipelined loop at a clock, in the order of the sources. tell: is told before each how far it is."""
        delays, types = table or load_table(), Types(self.module.types)
        slowest: dict[tuple[str, str], CheckedLoop] = {}
        total, done = sum(len(loop.operations) for loop in self.loops), 0
        for number, loop in enumerate(self.loops):
            tell(ProgressStep(f"scheduling the loops, {number} of {len(self.loops)}", done, total))
            done += len(loop.operations)
            knowledge = self.directives.knowledge(loop)
            predicted = predict(loop, types, delays, 1000 / clock_mhz, uncertainty, knowledge)
            checked = _checked(loop, predicted, self.directives)
            key = (checked.process, checked.source)
            if key not in slowest or _slowness(checked) > _slowness(slowest[key]):
                slowest[key] = checked
        return tuple(slowest.values())

    def memories(self) -> tuple[BuiltMemory, ...]:
        """What the arrays that pragmas bind to memories are built of."""
        return built_memories(self.module, self.directives, self.loops)

    def multipliers(self) -> tuple[BuiltMultiplier, ...]:
        """What the products of the sources are built of."""
        return built_multipliers(self.module, self.directives)


def read_sources(source: Path, include: Sequence[Path] = (), defines: Sequence[str] = ()) -> Sources:
    """Compile one translation unit. Raises as ``compile_sources`` and ``read_module`` do."""
    compiled = compile_sources(source, include, defines)
    module = read_module(compiled.text)
    directives = Directives(module, compiled.pragmas)
    return Sources(module, directives, read_loops(module, directives.registers))


def _slowness(loop: CheckedLoop) -> tuple[int, float, int]:
    return loop.derived_ii, loop.path_ns, loop.derived_depth


def _checked(loop: Loop, predicted: Prediction, directives: Directives) -> CheckedLoop:
    location, slowest = loop.location, predicted.path
    return CheckedLoop(
        process=directives.process_of(location),
        source=f"{Path(location.file).name}:{location.line}" if location else loop.header,
        declared_ii=loop.declared_ii,
        derived_ii=predicted.holding,
        declared_depth=loop.declared_depth,
        derived_depth=predicted.depth,
        path_ns=round(slowest.ns / slowest.distance, 3) if slowest else 0.0,
        budget_ns=round(max(1, loop.declared_ii) * predicted.budget_ns, 3),
        path=_steps(loop, slowest.path, predicted.delays) if slowest else (),
        reason=_reason(predicted, directives),
        period_ns=round(predicted.period_ns, 3),
        operations=sum(bool(operation.operator) for operation in loop.operations),
        products=sum(operation.operator == "mul" for operation in loop.operations),
        streams=len({access.memory for o in loop.operations for access in o.accesses if access.stream}),
    )


def _reason(predicted: Prediction, directives: Directives) -> str:
    """What bounds the interval."""
    if predicted.holding <= max(1, predicted.loop.declared_ii):
        return ""
    if predicted.holding > predicted.ports:
        return "carried path"
    memory = max((name for name in predicted.loop.memories if predicted.memory.startswith(name)), key=len, default="")
    name = directives.source_name(predicted.loop.function, memory.partition("+")[0])
    return f"ports of {name}{predicted.memory.removeprefix(memory)}"


def _steps(loop: Loop, path: Sequence[int], delays: Sequence[float]) -> tuple[Step, ...]:
    """Operators of a path, those of a line together."""
    steps: list[Step] = []
    for index in path:
        operation = loop.operations[index]
        location, ns = operation.location, delays[index]
        source = f"{Path(location.file).name}:{location.line}" if location else ""
        if ns:
            name = operation.operator or ("store" if any(access.store for access in operation.accesses) else "load")
            if steps and steps[-1].source == source:
                last = steps.pop()
                steps.append(Step(source, round(last.ns + ns, 3), (*last.operators, name)))
            else:
                steps.append(Step(source, round(ns, 3), (name,)))
    return tuple(steps)
