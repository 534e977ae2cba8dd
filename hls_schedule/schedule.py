"""Scheduling: operations are placed in stages, within the budget of a cycle and the ports of the memories.

The rules are taken from Vitis HLS's schedule reports. An operator is chained after its last input if both fit into the
budget of a cycle; else it starts in the next stage. A core of several stages delivers its result in the last one. The
next iteration takes the result of such a core in the same cycle. Any other value goes through a register and is
available a cycle later.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hls_schedule.dependences import Dependence, Dependences
from hls_schedule.grouping import dsp_sums, grouped
from hls_schedule.operators import OperatorTable, Timing
from hls_schedule.ports import Ports
from hls_schedule.reading.ir import Access, Loop, Operation

PIPELINED = frozenset({"mul"})
"""Operators that are split into stages if they do not fit into one cycle."""

WHOLE_CYCLE = frozenset({"axi_request", "axi_response", "axi_word"})
"""Operators after which nothing is chained at any clock: their adapter has registers."""


@dataclass(frozen=True)
class Place:
    """The position of one operation in a schedule: its stages, and the time at which its result is ready.

    Attributes:
        first: The stage in which it starts.
        last: The stage in which its result is ready.
        ready: Nanoseconds from the start of the last stage until the result is ready.
    """

    first: int
    last: int
    ready: float


@dataclass(frozen=True)
class Recurrence:
    """The lowest initiation interval that one loop-carried dependence allows, and its longest path.

    Attributes:
        interval: The interval that Vitis HLS reports.
        holding: The interval at which the clock is met, too (see ``_reported``).
        path: The indices of the operations of the longest path, first to last.
        ns: The sum of the delays on that path, without registers.
        distance: Iterations from the value's computation to its use.
    """

    interval: int
    holding: int
    path: tuple[int, ...]
    ns: float
    distance: int


def timings(
    loop: Loop, ports: Ports, table: OperatorTable, budget_ns: float, latencies: Mapping[int, int]
) -> tuple[Timing, ...]:
    """Return the stages and the delay of every operation. Wiring and operators that are merged into their reader take
    no time.

    Args:
        loop: The loop.
        ports: The ports of its memories.
        table: The delays of operators.
        budget_ns: The clock period minus the uncertainty.
        latencies: Stages of each called function, by the index of the call.
    """
    alone = [_timing(operation, ports, table, budget_ns) for operation in loop.operations]
    for index, stages in latencies.items():
        alone[index] = Timing(stages, budget_ns)
    vanished = grouped(loop)
    for source, reader in vanished.items():  # a shift by a variable keeps its delay when it is merged into its reader
        if loop.operations[source].name.startswith("%lshr"):
            alone[reader] = max(alone[reader], alone[source], key=lambda timing: timing.ns)
    return tuple(Timing(1, 0.0) if index in vanished else timing for index, timing in enumerate(alone))


def _timing(operation: Operation, ports: Ports, table: OperatorTable, budget_ns: float) -> Timing:
    for access in operation.accesses:
        if ports.bundle(access):
            return _beat(operation, access, ports, table, budget_ns)
        if not access.register and not access.stream:
            words, bits = ports.shape(access)
            return Timing(1 if access.store else 2, table.memory_ns(words, bits))
        if access.register and access.offset.terms:
            return table.timing("register" if access.store else "multiplexer", 8 * access.size)
    return _core(operation, table, budget_ns) if operation.operator else Timing(1, 0.0)


def in_dsps(loop: Loop, timing: Sequence[Timing], table: OperatorTable) -> tuple[Timing, ...]:
    """Return the timing with each product and its addition in one DSP, which has registers between the two.

    The other operand of the addition enters a register of the DSP, so that a chain advances by one addition per cycle.
    """
    changed = list(timing)
    for addition, product in dsp_sums(loop).items():
        changed[product] = table.timing("dsp_product", 1)
        own = table.timing("dsp_sum", 1)
        changed[addition] = Timing(own.stages, own.ns, setup=True)
    return tuple(changed)


def _beat(operation: Operation, access: Access, ports: Ports, table: OperatorTable, budget_ns: float) -> Timing:
    """Return the timing of an access to an AXI port: the beats, and the request and response that are in the loop."""
    around = table.timing("axi_response" if access.store else "axi_request", 1).stages
    return Timing(1 if ports.in_burst(access) else around + ports.axi_latency + 1, budget_ns)


def _core(operation: Operation, table: OperatorTable, budget_ns: float) -> Timing:
    timing = table.timing(operation.operator, operation.bits)
    if operation.operator == "register" and operation.accesses:
        return Timing(timing.stages, timing.ns, setup=True)
    if operation.operator in WHOLE_CYCLE:
        return Timing(timing.stages, budget_ns)
    if operation.operator in PIPELINED and timing.ns > budget_ns:
        return Timing(timing.stages + math.ceil(timing.ns / budget_ns) - 1, budget_ns)
    return timing


def chain(earliest: tuple[int, float], timing: Timing, budget_ns: float) -> Place:
    """Return the position of an operator in the schedule if its inputs are ready at ``earliest`` = (stage, nanoseconds
    into it)."""
    stage, ns = earliest
    if ns > 0 and ns + timing.ns > budget_ns and not timing.setup:
        stage, ns = stage + 1, 0.0
    if timing.pipelined:
        return Place(stage, stage + timing.stages - 1, timing.ns)
    return Place(stage, stage, ns + timing.ns)


def recurrences(loop: Loop, needs: Dependences, timing: Sequence[Timing], budget_ns: float) -> tuple[Recurrence, ...]:
    """Return the lowest initiation interval that every loop-carried dependence allows, the highest first."""
    by_sink: dict[int, list[Dependence]] = {}
    for dependence in needs.carried:
        by_sink.setdefault(dependence.sink, []).append(dependence)
    bounds = []
    for sink, dependences in by_sink.items():
        walk = _DependentSchedule(loop, needs.readers, timing, budget_ns)
        walk.schedule_from(sink)
        bounds += [bound for edge in dependences if (bound := walk.recurrence(edge)) is not None]
    return tuple(sorted(bounds, key=lambda bound: (-bound.interval, -bound.holding, -bound.ns)))


class _DependentSchedule:
    """The schedule of one operation, the start, placed in stage 0, and of all operations that depend on it.

    Operations that do not depend on it are assumed to be ready in time.

    Attributes:
        places: The place of each operation.
        sums: Nanoseconds of the longest path to each operation, without registers.
    """

    def __init__(
        self, loop: Loop, readers: Sequence[Sequence[Dependence]], timing: Sequence[Timing], budget_ns: float
    ) -> None:
        self.loop, self.readers, self.timing, self.budget = loop, readers, timing, budget_ns
        self.places: dict[int, Place] = {}
        self.sums: dict[int, float] = {}
        self._via: dict[int, int] = {}
        self._longest: dict[int, int] = {}

    def schedule_from(self, start: int) -> None:
        """Place the operation ``start`` in stage 0, and every operation that depends on it as early as possible."""
        earliest: dict[int, tuple[int, float, int]] = {}
        summed: dict[int, tuple[float, int]] = {}
        waiting, reached = [start], {start}
        while waiting:
            index = heapq.heappop(waiting)
            self._put(index, earliest.get(index), summed.get(index))
            for edge in self.readers[index]:
                if edge.sink > index:
                    arrival, total = (*_start_after(self.places[index], edge), index), (self.sums[index], index)
                    earliest[edge.sink] = max(earliest.get(edge.sink, arrival), arrival)
                    summed[edge.sink] = max(summed.get(edge.sink, total), total)
                    if edge.sink not in reached:
                        reached.add(edge.sink)
                        heapq.heappush(waiting, edge.sink)

    def _put(self, index: int, arrival: tuple[int, float, int] | None, total: tuple[float, int] | None) -> None:
        timing = self.timing[index]
        stage, ns = arrival[:2] if arrival else (0, 0.0)
        self.places[index] = chain((stage, ns), timing, self.budget)
        self.sums[index] = (total[0] if total else 0.0) + timing.ns * timing.stages
        if arrival is not None and total is not None:
            self._via[index], self._longest[index] = arrival[2], total[1]

    def recurrence(self, dependence: Dependence) -> Recurrence | None:
        """Return the interval that a loop-carried dependence to the start allows; None if its source does not depend on
        the start."""
        end = dependence.source
        if end not in self.places:
            return None
        cycles = self._cycles_to_reuse(end, self._path(end, self._via))
        reported = self._reported(end) if self.loop.operations[end].guards else cycles
        interval, holding = (max(1, math.ceil(stages / dependence.distance)) for stages in (reported, cycles))
        return Recurrence(interval, holding, self._path(end, self._longest), self.sums[end], dependence.distance)

    def _cycles_to_reuse(self, end: int, path: Sequence[int]) -> int:
        """Return the cycles from the start until the next iteration can use the result of operation ``end``."""
        return self.places[end].last + (0 if self._forwarded(path) else 1)

    def _reported(self, end: int) -> int:
        """Return the cycles that Vitis HLS reports for a loop-carried value whose register is written under a
        condition.

        It counts the condition in the cycle in which it is known, although the value arrives a cycle later.
        """
        store = self.loop.operations[end]
        if any(not access.register for access in store.accesses):
            return self.places[end].last + 1
        return max(
            self.places[i].last if i in store.guards else self._cycles_to_reuse(i, [*self._path(i, self._via), end])
            for i in store.inputs
            if i in self.places
        )

    def _path(self, end: int, via: Mapping[int, int]) -> tuple[int, ...]:
        path = [end]
        while path[-1] in via:
            path.append(via[path[-1]])
        return tuple(reversed(path))

    def _forwarded(self, path: Sequence[int]) -> bool:
        """Return whether the next iteration takes a path's result in the cycle in which it appears, not a cycle later
        from a register.

        A core registers its inputs. So this holds if only wiring is between the value and the first core of its path.
        """
        if any(not access.register for access in self.loop.operations[path[-1]].accesses):
            return False
        for index in path[1:]:
            if self.timing[index].pipelined and not self.loop.operations[index].accesses:
                return self.places[path[-1]].last > 0
            if self.timing[index].ns > 0:
                return False
        return False


def _start_after(source: Place, dependence: Dependence) -> tuple[int, float]:
    """Return the stage, and the nanoseconds into it, at which the sink of a dependence may start.

    A load can read a stored word only in a later cycle.
    """
    return (source.last + 1, 0.0) if dependence.wait else (source.last, source.ready)


def place(
    loop: Loop, needs: Dependences, ports: Ports, timing: Sequence[Timing], budget_ns: float, interval: int
) -> tuple[Place, ...]:
    """Return the position of every operation in the schedule: as early as its inputs and the ports of its memories
    allow.

    An operation that can start earlier is placed first, so that it gets the port.
    """
    missing = [len(inputs) for inputs in needs.inputs]
    places: dict[int, Place] = {}
    occupied: Counter[tuple[str, int]] = Counter()
    waiting = [(0, index) for index, count in enumerate(missing) if not count]
    heapq.heapify(waiting)
    while waiting:
        _, index = heapq.heappop(waiting)
        arrival = max((_start_after(places[edge.source], edge) for edge in needs.inputs[index]), default=(0, 0.0))
        earliest = chain(arrival, timing[index], budget_ns)
        places[index] = _port(ports.needed(loop.operations[index]), earliest, occupied, interval)
        for edge in needs.readers[index]:
            missing[edge.sink] -= 1
            if not missing[edge.sink]:
                stage = max(places[needed.source].last for needed in needs.inputs[edge.sink])
                heapq.heappush(waiting, (stage, edge.sink))
    return tuple(places[index] for index in range(len(needs.inputs)))


def _port(ports: Mapping[str, int], earliest: Place, occupied: Counter[tuple[str, int]], interval: int) -> Place:
    """Return ``earliest``, or the next position at which the operation's memory ports are free. ``ports`` has their
    accesses per cycle."""
    late = 0
    while late < interval and any(occupied[p, (earliest.first + late) % interval] >= n for p, n in ports.items()):
        late += 1
    occupied.update((port, (earliest.first + late) % interval) for port in ports)
    return Place(earliest.first + late, earliest.last + late, earliest.ready)
