"""What an iteration waits for in the iterations before it, and in which order it touches a memory.

Two accesses whose addresses differ by whole steps meet that many iterations later; where nothing is known they may meet
in the next one, as a careful tool assumes too. Arrays that are registers are followed byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

from hls_schedule.ports import Ports
from hls_schedule.reading.addresses import Linear
from hls_schedule.reading.ir import Access, Loop, Operation

LONGEST = 4096
"""Bytes of an access to registers that are followed one by one."""


@dataclass(frozen=True)
class Dependence:
    """``sink`` of the iteration ``distance`` later needs what ``source`` did; 0: of the same one. wait: whether it
    starts a cycle later, as a load does after a store to a memory."""

    source: int
    sink: int
    distance: int
    wait: bool = False


@dataclass(frozen=True)
class Dependences:
    """Of one loop. independent: memories whose iterations the code declares independent (DEPENDENCE … false)."""

    loop: Loop
    ports: Ports
    independent: frozenset[str] = frozenset()

    @cached_property
    def carried(self) -> tuple[Dependence, ...]:
        """From one iteration to a later one."""
        values = {Dependence(source, sink, 1) for source, sink in self.loop.carried}
        return tuple(
            sorted(values | {dependence for dependence in self._through_memories if dependence.distance}, key=_order)
        )

    @cached_property
    def within(self) -> tuple[Dependence, ...]:
        """Of one iteration."""
        return tuple(
            sorted({dependence for dependence in self._through_memories if not dependence.distance}, key=_order)
        )

    @cached_property
    def inputs(self) -> tuple[tuple[Dependence, ...], ...]:
        """Of every operation, what it needs of its own iteration."""
        needs = [
            [Dependence(dependence, number, 0) for dependence in o.inputs]
            for number, o in enumerate(self.loop.operations)
        ]
        for dependence in self.within:
            needs[dependence.sink].append(dependence)
        return tuple(map(tuple, needs))

    @cached_property
    def readers(self) -> tuple[tuple[Dependence, ...], ...]:
        """Of every operation, what needs it in its own iteration."""
        needing: list[list[Dependence]] = [[] for _ in self.loop.operations]
        for inputs in self.inputs:
            for dependence in inputs:
                needing[dependence.source].append(dependence)
        return tuple(map(tuple, needing))

    @cached_property
    def _through_memories(self) -> tuple[Dependence, ...]:
        touching: dict[tuple[str, bool], list[tuple[int, Access]]] = {}
        streams: dict[str, list[int]] = {}
        for operation in self.loop.operations:
            for access in operation.accesses:
                if access.stream:
                    streams.setdefault(access.memory, []).append(operation.index)
                else:
                    touching.setdefault((access.memory, access.register), []).append((operation.index, access))
        dependences = [Dependence(a, b, 0) for users in streams.values() for a, b in pairwise(users)]
        for (memory, register), accesses in touching.items():
            pairs = self._of_registers(accesses) if register else self._of_memory(accesses)
            dependences += [
                dependence for dependence in pairs if not (dependence.distance and memory in self.independent)
            ]
        return tuple(dependences)

    def _of_memory(self, accesses: list[tuple[int, Access]]) -> Iterator[Dependence]:
        for (store, written), (index, access) in product(accesses, accesses):
            if not written.store or self.ports.apart(written, access):
                continue
            if not access.store:
                distance = self._distance(written, access, store < index)
                if distance is not None:
                    yield Dependence(store, index, distance, True)
            elif store < index and written.offset.terms != access.offset.terms:
                yield Dependence(store, index, 0, True)  # two stores that nothing keeps apart stay in their order
                yield Dependence(index, store, 1, True)

    def _distance(self, written: Access, read: Access, later: bool) -> int | None:
        """Iterations after which what is written is read; None for never. later: the load follows the store."""
        carried = None if written.memory in self._forwarded else 1
        apart = written.offset.constant - read.offset.constant
        if written.offset.terms != read.offset.terms:
            return 0 if later else carried
        if self._unknown(written.offset):
            return 0 if later and not apart else carried
        step = sum(factor * self.loop.steps.get(name, 0) for name, factor in written.offset.terms)
        steps = _whole_steps(apart, step, later)
        return carried if steps == 1 else steps

    def _unknown(self, offset: Linear) -> bool:
        """Whether it depends on data."""
        return any(name in self._names and name not in self.loop.steps for name, _ in offset.terms)

    @cached_property
    def _forwarded(self) -> frozenset[str]:
        """Memories beside which the vendor's tool has put a register that has what the iteration before wrote."""
        registered = {index for operation in self.loop.operations for index in operation.inputs if _keeps(operation)}
        stores = (operation for operation in self.loop.operations if registered.intersection(operation.inputs))
        return frozenset(
            access.memory for store in stores for access in store.accesses if access.store and not access.register
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(dependence.name for dependence in self.loop.operations if dependence.name)

    def _of_registers(self, accesses: list[tuple[int, Access]]) -> Iterator[Dependence]:
        """A load needs every store before it that may be to its bytes, and of the iteration before those behind it."""
        stores = [(index, access) for index, access in accesses if access.store]
        every, anywhere = {index for index, _ in stores}, {index for index, access in stores if access.offset.terms}
        exact = _by_byte(stores)
        for index, access in accesses:
            met = every if access.offset.terms else anywhere.union(*(exact.get(byte, ()) for byte in _bytes(access)))
            for store in () if access.store else met - {index}:
                yield Dependence(store, index, int(store > index))


def _by_byte(stores: list[tuple[int, Access]]) -> dict[int, list[int]]:
    """Byte → stores to it, of those whose address is known."""
    exact: dict[int, list[int]] = {}
    for index, access in stores:
        for byte in () if access.offset.terms else _bytes(access):
            exact.setdefault(byte, []).append(index)
    return exact


def _whole_steps(apart: int, step: int, later: bool) -> int | None:
    """Iterations until an address that moves on by ``step`` has moved ``apart``; None for never."""
    soonest = 0 if later else 1
    if step == 0:
        return None if apart else soonest
    steps, remainder = divmod(apart, step)
    return None if remainder or steps < soonest else steps


def _keeps(operation: Operation) -> bool:
    return any(access.store and access.memory.startswith("%reuse_reg") for access in operation.accesses)


def _bytes(access: Access) -> range:
    return range(access.offset.constant, access.offset.constant + max(1, min(access.size, LONGEST)))


def _order(dependence: Dependence) -> tuple[int, int, int]:
    return dependence.source, dependence.sink, dependence.distance
