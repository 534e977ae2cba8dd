"""Prediction of a pipelined loop: its initiation interval, its depth and the clock that it reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hls_schedule.dependences import Dependences
from hls_schedule.grouping import chained_additions
from hls_schedule.operators import OperatorTable, Timing
from hls_schedule.ports import Binding, Ports
from hls_schedule.reading.ir import Loop
from hls_schedule.reading.layout import Types
from hls_schedule.schedule import Recurrence, in_dsps, place, recurrences, timings

UNCERTAINTY = 0.27
"""Share of the clock period reserved for routing (UG1399, ``set_clock_uncertainty``: 27 % by default)."""


@dataclass(frozen=True)
class Knowledge:
    """Facts about a loop's memories that the loop itself does not show: their pragmas, and the writes of other loops.

    Attributes:
        bindings: The pragmas of each memory.
        independent: Memories whose iterations a pragma declares independent.
        crowded: Memories that some loop of the unit writes more than once per iteration.
        axi_latency: Cycles of latency that AXI ports are built for (config_interface -m_axi_latency).
        whole_process: Whether the loop is all of a process of a dataflow region.
    """

    bindings: Mapping[str, Binding] = field(default_factory=dict)
    independent: frozenset[str] = frozenset()
    crowded: frozenset[str] = frozenset()
    axi_latency: int = 0
    whole_process: bool = False


NOTHING = Knowledge()


@dataclass(frozen=True)
class Prediction:
    """The predicted schedule of a pipelined loop, with the figures that Vitis HLS would report.

    Attributes:
        loop: The loop.
        interval: The initiation interval in cycles that Vitis HLS reports.
        holding: The interval at which the clock is met, too.
        depth: Stages of an iteration.
        period_ns: The longest combinational delay within a stage.
        budget_ns: The clock period minus the uncertainty.
        recurrence: The loop-carried value that bounds the interval; None if none does.
        memory: The memory that bounds the interval; "" if none does.
        ports: The lowest interval that the ports of the memories allow.
        path: The slowest loop-carried path; None if there is none.
        delays: Nanoseconds of every operation.
    """

    loop: Loop
    interval: int
    holding: int
    depth: int
    period_ns: float
    budget_ns: float
    recurrence: Recurrence | None
    memory: str
    ports: int
    path: Recurrence | None
    delays: tuple[float, ...]

    @property
    def fits(self) -> bool:
        """Return whether the longest combinational delay fits into the clock period minus the uncertainty."""
        return self.period_ns <= self.budget_ns


def crowded_memories(loops: Sequence[Loop], types: Types) -> frozenset[str]:
    """Return the names of the memories that at least one of the loops writes more than once per iteration."""
    return frozenset().union(*(Ports(loop, types).multiply_written for loop in loops))


def predict(
    loop: Loop,
    types: Types,
    table: OperatorTable,
    period_ns: float,
    uncertainty: float = UNCERTAINTY,
    knowledge: Knowledge = NOTHING,
) -> Prediction:
    """Return the schedule of a loop at a clock period of ``period_ns``: initiation interval, depth and delays.

    Raises:
        ChoiceError: The table has no delay of an operator.
    """
    budget = period_ns * (1 - uncertainty)
    ports = Ports(loop, types, knowledge.bindings, knowledge.crowded, knowledge.axi_latency, knowledge.whole_process)
    needs = Dependences(loop, ports, knowledge.independent)
    latencies = {i: predict(callee, types, table, period_ns, uncertainty).depth for i, callee in loop.calls.items()}
    timing = timings(loop, ports, table, budget, latencies)
    balanced = _balanced(loop, timing)
    carried = recurrences(loop, needs, balanced, budget)
    bound = carried[0] if carried and carried[0].interval > 1 else None
    limit, memory = ports.interval()
    limit = max([limit, *(latency - 1 for latency in latencies.values())])
    interval = max(loop.declared_ii or 1, limit, bound.interval if bound else 1)
    places = place(loop, needs, ports, in_dsps(loop, timing, table), budget, interval)
    depth = 1 + max((placed.last for placed in places), default=0)
    longest = max((placed.ready for placed in places), default=0.0)
    slowest = max(carried, key=lambda path: (path.holding, path.ns / path.distance), default=None)
    delays = tuple(part.ns * part.stages for part in balanced)
    holding = max([interval, *(bound.holding for bound in carried)])
    return Prediction(loop, interval, holding, depth, longest, budget, bound, memory, limit, slowest, delays)


def _balanced(loop: Loop, timing: Sequence[Timing]) -> tuple[Timing, ...]:
    """Return the timing of each operation on loop-carried paths: in a chain of additions, only the last takes time."""
    chained = chained_additions(loop)
    return tuple(Timing(1, 0.0) if index in chained else part for index, part in enumerate(timing))
