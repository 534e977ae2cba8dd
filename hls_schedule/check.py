"""The check of a translation unit: its pipelined loops at a clock, its memories and its multipliers.

A loop is compiled several times if its function is called several times. The check reports the slowest copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boards.errors import RefusedLoopError, SeveralFaultsError
from boards.progress import Progress, ProgressStep, silent
from hls_schedule.inferred import inferred_partitions
from hls_schedule.memories import BuiltMemory, built_memories
from hls_schedule.multipliers import BuiltMultiplier, built_multipliers
from hls_schedule.operators import OperatorTable, load_table
from hls_schedule.pragmas import Directives
from hls_schedule.predict import UNCERTAINTY, Prediction, predict
from hls_schedule.reading.frontend import compile_sources
from hls_schedule.reading.ir import Loop, read_loops, read_module
from hls_schedule.reading.layout import Types
from hls_schedule.reading.llvm_text import Module
from hls_schedule.refusals import is_refused, refused_loops, source_of

MAX_OPERATIONS, MAX_PRODUCTS = 10_000, 1_024
"""Limits for one pipeline. Above them, scheduling takes hours, and one enable must stop a whole array of registers.
They
are a judgement: no tool documents such a limit."""


@dataclass(frozen=True)
class Step:
    """Neighbouring operators of a loop-carried path that one source line computes, with the sum of their delays.

    Attributes:
        source: The line as ``file:line``.
        ns: The delay of the line's operators on the path.
        operators: The names of these operators.
    """

    source: str
    ns: float
    operators: tuple[str, ...]


@dataclass(frozen=True)
class CheckedLoop:
    """The check of one pipelined loop: interval and depth as its code declares them, and as the scheduler derives them.

    Attributes:
        process: The function of the dataflow region that contains the loop.
        source: The place of the loop as ``file:line``.
        path_ns: The delay of the slowest loop-carried path, divided by the iterations between its value's computation
            and use.
        budget_ns: The time for that path: the declared interval times the clock period without its uncertainty.
        path: The steps of that path.
        reason: The cause of an interval above the declared one; "" if it is kept.
        period_ns: The longest combinational delay within a stage.
        operations: Number of operators of an iteration, which share one enable.
        products: Number of multiplications among them.
        streams: Number of FIFOs that can stall the iteration.
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
        """Return whether the derived initiation interval is at most the declared one."""
        return self.derived_ii <= max(1, self.declared_ii)

    @property
    def deeper(self) -> bool:
        """Return whether the derived pipeline depth is greater than the declared one, if one is declared."""
        return self.derived_depth > self.declared_depth > 0

    @property
    def broad(self) -> bool:
        """Return whether one pipeline enable drives so many operators that the loop should be split into processes."""
        return self.operations > MAX_OPERATIONS or self.products > MAX_PRODUCTS


@dataclass(frozen=True)
class ToolOptions:
    """Options of the vendor's tool that the sources do not state.

    Attributes:
        top: The top function. Loops of other functions are left out; "" means that each function may be one.
        widen_bits: Bits to which accesses to AXI ports are widened (config_interface -m_axi_max_widen_bitwidth). The
            default is 0 in the Vivado flow and 512 in the Vitis flow.
        axi_latency: Cycles of latency that AXI ports are built for (config_interface -m_axi_latency). The default is 0
            in the Vivado flow and 64 in the Vitis flow.
    """

    top: str = ""
    widen_bits: int = 0
    axi_latency: int = 0


VIVADO_FLOW = ToolOptions()


@dataclass(frozen=True)
class Sources:
    """Compiled sources, which can be checked at several clocks.

    Attributes:
        module: The compiled code.
        directives: The pragmas.
        loops: The loops whose schedule can be derived.
        refused: An error for each other loop that the sources pipeline.
        options: Options of the vendor's tool.
    """

    module: Module
    directives: Directives
    loops: tuple[Loop, ...]
    refused: tuple[RefusedLoopError, ...] = ()
    options: ToolOptions = VIVADO_FLOW

    def check(
        self,
        clock_mhz: float,
        uncertainty: float = UNCERTAINTY,
        table: OperatorTable | None = None,
        report: Progress = silent,
        partly: bool = False,
    ) -> tuple[CheckedLoop, ...]:
        """Schedule every pipelined loop for a clock; return the loops in the order of the sources.

        Args:
            clock_mhz: The clock in MHz.
            uncertainty: The share of the period that is reserved for routing.
            table: The delays of operators; the table of this package by default.
            report: Receives the progress.
            partly: Whether to leave out the loops of ``refused`` instead of raising an error.

        Raises:
            RefusedLoopError: The schedule of a loop cannot be derived.
            SeveralFaultsError: The schedules of several loops cannot be derived.
        """
        if self.refused and not partly:
            raise self.refused[0] if len(self.refused) == 1 else SeveralFaultsError(self.refused)
        delays, types = table or load_table(), Types(self.module.types)
        slowest: dict[tuple[str, str], CheckedLoop] = {}
        total, done = sum(len(loop.operations) for loop in self.loops), 0
        alone = _whole_processes(self.loops, self.directives)
        for number, loop in enumerate(self.loops):
            report(ProgressStep(f"scheduling the loops, {number} of {len(self.loops)}", done, total))
            done += len(loop.operations)
            knowledge = replace(
                self.directives.knowledge(loop),
                axi_latency=self.options.axi_latency,
                whole_process=not loop.nested and self.directives.process_of(loop.location) in alone,
            )
            predicted = predict(loop, types, delays, 1000 / clock_mhz, uncertainty, knowledge)
            checked = _checked(loop, predicted, self.directives)
            key = (checked.process, checked.source)
            if key not in slowest or _slowness(checked) > _slowness(slowest[key]):
                slowest[key] = checked
        return tuple(slowest.values())

    def memories(self) -> tuple[BuiltMemory, ...]:
        """Return the memories that Vitis HLS builds for the arrays with a BIND_STORAGE pragma."""
        return built_memories(self.module, self.directives, self.loops)

    def multipliers(self) -> tuple[BuiltMultiplier, ...]:
        """Return the multipliers that Vitis HLS builds for the products in the sources."""
        return built_multipliers(self.module, self.directives)


def read_sources(
    source: Path, include: Sequence[Path] = (), defines: Sequence[str] = (), options: ToolOptions = VIVADO_FLOW
) -> Sources:
    """Compile one translation unit of HLS C++ to LLVM IR, and find its pragmas and its pipelined loops.

    Args:
        source: The C++ file.
        include: Folders with headers.
        defines: Macros, each as ``NAME`` or ``NAME=VALUE``.
        options: Options of the vendor's tool.

    Raises:
        SystolicError: The errors of ``compile_sources`` and ``read_module``.
    """
    compiled = compile_sources(source, include, defines)
    module = read_module(compiled.text)
    directives = Directives(module, compiled.pragmas, options.widen_bits)
    loops = _built(read_loops(module, directives.registers), options.top)
    derived = tuple(loop for loop in loops if not is_refused(loop))
    inferred = inferred_partitions(derived, Types(module.types), directives)
    directives = replace(directives, inferred=inferred)
    return Sources(module, directives, derived, refused_loops(module, compiled.marks, loops, options.top), options)


def _built(loops: Sequence[Loop], top: str) -> tuple[Loop, ...]:
    """Return the loops of the top function; if it is not known, all loops but copies that are inlined elsewhere."""
    if top:
        return tuple(loop for loop in loops if loop.location is None or loop.location.scopes[-1] == top)
    longer = {(source_of(loop), place) for loop in loops if loop.location for place in loop.location.functions[:-1]}
    return tuple(
        loop for loop in loops if not loop.location or (source_of(loop), loop.location.functions[-1]) not in longer
    )


def _whole_processes(loops: Sequence[Loop], directives: Directives) -> frozenset[str]:
    """Return the processes of dataflow regions that consist of one loop with a mark."""
    named = ((directives.dataflow_process(loop.location), source_of(loop)) for loop in loops)
    processes = {(process, source) for process, source in named if process}
    counts = Counter(process for process, _ in processes)
    return frozenset(process for process, count in counts.items() if count == 1)


def _slowness(loop: CheckedLoop) -> tuple[int, float, int]:
    return loop.derived_ii, loop.path_ns, loop.derived_depth


def _checked(loop: Loop, predicted: Prediction, directives: Directives) -> CheckedLoop:
    location, slowest = loop.location, predicted.path
    return CheckedLoop(
        process=directives.process_of(location),
        source=source_of(loop),
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
    """Return why the derived initiation interval is above the declared one, such as ``carried path``; "" if it is not
    above."""
    if predicted.holding <= max(1, predicted.loop.declared_ii):
        return ""
    if predicted.holding > predicted.ports:
        return "carried path"
    memory = max((name for name in predicted.loop.memories if predicted.memory.startswith(name)), key=len, default="")
    name = directives.source_name(predicted.loop.function, memory.partition("+")[0])
    return f"ports of {name}{predicted.memory.removeprefix(memory)}"


def _steps(loop: Loop, path: Sequence[int], delays: Sequence[float]) -> tuple[Step, ...]:
    """Return the operators of a path of operation indices, with neighbours of the same source line as one step."""
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
