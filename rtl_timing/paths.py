"""Find the slowest paths of a netlist."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from boards.errors import UnsupportedError
from rtl_timing.delays import DelayTable, Pin
from rtl_timing.netlist import Netlist, Primitive


@dataclass(frozen=True)
class Step:
    """A primitive on a timing path, with the wire that leads to it.

    Attributes:
        kind: The primitive's kind.
        name: The name of the net that the primitive drives, or of the register at the path's end.
        source: The line of SystemVerilog, or "" if it is not known.
        wire_ns: The delay of the wire to the primitive.
        cell_ns: The delay of the primitive, or the set-up time of the register at the path's end.
        loads: The number of pins that the wire to the primitive drives.
    """

    kind: str
    name: str
    source: str
    wire_ns: float
    cell_ns: float
    loads: int


@dataclass(frozen=True)
class TimingPath:
    """A timing path from a register to a register.

    Attributes:
        launch_clock: The clock of the first register: the name of an input of the design.
        capture_clock: The clock of the last register.
        ns: The sum of all delays.
        steps: The first register, the primitives in between, and the last register.
        similar: The number of register inputs at the same place, at which paths of this pair of clocks end.
    """

    launch_clock: str
    capture_clock: str
    ns: float
    steps: tuple[Step, ...]
    similar: int

    @property
    def levels(self) -> int:
        """The number of primitives between the registers."""
        return len(self.steps) - 2


@dataclass(frozen=True)
class _Arrival:
    """The latest time after a clock edge at which a net becomes stable, and the primitive that causes it.

    Attributes:
        ns: Nanoseconds after the edge.
        primitive: The number of the primitive that drives the net.
        before: The net before the primitive, or None if the primitive launches the path.
        cell_ns: The primitive's delay.
        wire_ns: The delay of the wire to the primitive.
    """

    ns: float
    primitive: int
    before: int | None
    cell_ns: float
    wire_ns: float


@dataclass(frozen=True)
class _End:
    """The end of a timing path: an input of a register.

    Attributes:
        net: The net at the input.
        primitive: The number of the register's primitive.
        clock: The register's clock.
        wire_ns: The delay of the wire to the input.
        setup_ns: The set-up time of the input.
    """

    net: int
    primitive: int
    clock: str
    wire_ns: float
    setup_ns: float


class TimingGraph:
    """The delays of a netlist's primitives and wires as a graph, in which the slowest register-to-register paths are
    found.

    Attributes:
        loads: The number of pins that each net drives, without clock pins.
        control_sets: The number of different combinations of clock, enable and reset of flip-flops.
    """

    def __init__(self, netlist: Netlist, delays: DelayTable) -> None:
        self.netlist = netlist
        self.delays = delays
        self.loads: Counter[int] = Counter()
        self._drivers: dict[int, str] = {}
        known = {id(primitive.cell): primitive.cell for primitive in netlist.primitives}
        arcs_of = {key: delays.arcs(cell) for key, cell in known.items()}  # instances of a module share their cells
        self._arcs = [arcs_of[id(primitive.cell)] for primitive in netlist.primitives]
        sets = set()
        for primitive, arcs in zip(netlist.primitives, self._arcs, strict=True):
            for pin, nets in primitive.nets.items():
                if pin in primitive.cell.outputs:
                    self._drivers.update({net: primitive.cell.kind for net in nets if net is not None})
                elif pin not in arcs.clocks:
                    self.loads.update(net for net in nets if net is not None)
            if primitive.cell.kind.startswith("FD"):
                sets.add(tuple(primitive.nets.get(pin) for pin in ("C", "CE", "R", "S", "CLR", "PRE")))
        self.control_sets = len(sets)
        self._forward: dict[int, list[tuple[int, float, int, float]]] = defaultdict(list)
        self._pending: Counter[int] = Counter()
        self._launches: dict[str, list[tuple[int, float, int]]] = defaultdict(list)
        self._captures: list[_End] = []
        self._places: dict[int, str] = {}
        for number, primitive in enumerate(netlist.primitives):
            self._add(number, primitive)

    def _add(self, number: int, primitive: Primitive) -> None:
        arcs = self._arcs[number]
        kind = primitive.cell.kind

        def net_of(pin: Pin) -> int | None:
            return primitive.nets[pin[0]][pin[1]]

        def wire(net: int, pin: str) -> float:
            return self.delays.wire_ns(self._drivers.get(net, ""), kind, pin, self.loads[net])

        for source, target, ns in arcs.through:
            before, after = net_of(source), net_of(target)
            if before is not None and after is not None:
                self._forward[before].append((after, ns, number, wire(before, source[0])))
                self._pending[after] += 1
        clocks = {self.clock_of(primitive, pin) for pin in arcs.clocks} - {None}
        for clock in clocks:
            assert clock is not None
            for target, ns in arcs.launches:
                after = net_of(target)
                if after is not None and self.loads[after]:
                    self._launches[clock].append((after, ns, number))
            if arcs.inside:
                inner = -1 - number  # a net that the netlist does not have, from the primitive to itself
                self._launches[clock].append((inner, arcs.inside, number))
                self._add_end(_End(inner, number, clock, 0.0, 0.0), primitive)
            for source, ns in arcs.captures:
                before = net_of(source)
                if before is not None:
                    self._add_end(_End(before, number, clock, wire(before, source[0]), ns), primitive)

    def _add_end(self, end: _End, primitive: Primitive) -> None:
        """Add the end of a path. All ends at a primitive count as one place: its line, or its name without numbers."""
        self._captures.append(end)
        if end.primitive not in self._places:
            self._places[end.primitive] = primitive.cell.source or re.sub(r"\d+", "", self._name(primitive))

    def clock_of(self, primitive: Primitive, pin: str) -> str | None:
        """Return the name of the design's input that drives a clock pin of a primitive, or None if logic drives it."""
        net = primitive.nets[pin][0]
        return None if net is None else self.netlist.inputs.get(net)

    def driver_of(self, net: int) -> str:
        """Return the kind of the primitive that drives a net, such as LUT6, or "an input"."""
        return self._drivers.get(net, "an input")

    @property
    def clocks(self) -> tuple[str, ...]:
        """The names of the clocks whose registers start timing paths."""
        return tuple(sorted(self._launches))

    def arrivals(self, clock: str) -> dict[int, _Arrival]:
        """Return, for each net, the latest time at which it is stable after an edge of ``clock``.

        Raises:
            UnsupportedError: The netlist has a combinational loop, so that paths through it have no end.
        """
        found: dict[int, _Arrival] = {}
        pending = Counter(self._pending)
        for net, ns, number in self._launches[clock]:
            if net not in found or found[net].ns < ns:
                found[net] = _Arrival(ns, number, None, ns, 0.0)
        ready = [net for net in self._forward if pending[net] == 0]
        while ready:
            net = ready.pop()
            arrival = found.get(net)
            for after, ns, number, wire_ns in self._forward.get(net, ()):
                if arrival is not None:
                    total = arrival.ns + wire_ns + ns
                    if after not in found or found[after].ns < total:
                        found[after] = _Arrival(total, number, net, ns, wire_ns)
                pending[after] -= 1
                if pending[after] == 0:
                    ready.append(after)
        loop = min((net for net, count in pending.items() if count > 0), default=None)
        if loop is not None:
            name, source = self.netlist.names.get(loop, (f"net of {self.driver_of(loop)}", "its line is not known"))
            raise UnsupportedError(
                f"timing a combinational loop at or before {name} ({source})", "a path through it has no end"
            )
        return found

    def slowest(self, count: int) -> list[TimingPath]:
        """Return the slowest timing paths of each pair of clocks, slowest first: one for each place where a path ends.

        A place is a line of the sources, or a register without its numbers.

        Args:
            count: How many paths to return for each pair of clocks.
        """
        taken: Counter[tuple[str, str]] = Counter()
        paths: list[TimingPath] = []
        for path in self._worst:
            taken[path.launch_clock, path.capture_clock] += 1
            if taken[path.launch_clock, path.capture_clock] <= count:
                paths.append(path)
        return paths

    def slowest_of_files(self) -> list[TimingPath]:
        """Return the slowest timing path that ends in each source file, slowest first, over all pairs of clocks.

        A path whose last register has no line in the sources counts for no file.
        """
        found: dict[str, TimingPath] = {}
        for path in self._worst:
            file = path.steps[-1].source.rpartition(":")[0]
            if file:
                found.setdefault(file, path)
        return list(found.values())

    @cached_property
    def _worst(self) -> Sequence[TimingPath]:
        """The slowest path for each pair of clocks and place of an end, slowest first."""
        arrivals = {clock: self.arrivals(clock) for clock in self.clocks}
        worst: dict[tuple[str, str, str], tuple[float, _End]] = {}
        similar: Counter[tuple[str, str, str]] = Counter()
        for end in self._captures:
            place = self._places[end.primitive]
            for launch, found in arrivals.items():
                if end.net in found:
                    ns = found[end.net].ns + end.wire_ns + end.setup_ns
                    key = launch, end.clock, place
                    similar[key] += 1
                    if key not in worst or worst[key][0] < ns:
                        worst[key] = ns, end
        return [
            TimingPath(key[0], key[1], ns, tuple(self._trace(arrivals[key[0]], end)), similar[key])
            for key, (ns, end) in sorted(worst.items(), key=lambda item: (-item[1][0], item[0]))
        ]

    def _trace(self, found: Mapping[int, _Arrival], end: _End) -> list[Step]:
        """Return the primitives of the slowest path to a register input, from the first register to the last."""
        last = self.netlist.primitives[end.primitive]
        loads = self.loads[end.net]
        steps = [Step(last.cell.kind, self._name(last), last.cell.source, end.wire_ns, end.setup_ns, loads)]
        at: int | None = end.net
        while at is not None:
            arrival = found[at]
            primitive = self.netlist.primitives[arrival.primitive]
            name, source = self.netlist.names.get(at, ("", ""))
            loads = 0 if arrival.before is None else self.loads[arrival.before]
            steps.append(
                Step(
                    primitive.cell.kind, name, primitive.cell.source or source, arrival.wire_ns, arrival.cell_ns, loads
                )
            )
            at = arrival.before
        return steps[::-1]

    def _name(self, primitive: Primitive) -> str:
        """Return the name of a primitive's first output that has a name in the sources, or its hierarchical path."""
        for pin in sorted(primitive.cell.outputs):
            for net in primitive.nets[pin]:
                if net is not None and net in self.netlist.names:
                    return self.netlist.names[net][0]
        return f"{primitive.path}.{primitive.cell.name}"
