"""Dependences of a loop: between its iterations, and between the accesses of one iteration to a memory.

If two addresses advance by the same step per iteration and differ by n steps, the accesses meet n iterations later. If
nothing is known of the addresses, they may meet in the next iteration; Vitis HLS assumes the same. Arrays in registers
are tracked byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

from hls_schedule.ports import Ports
from hls_schedule.reading.addresses import Linear
from hls_schedule.reading.ir import Access, Loop, Operation

MAX_TRACKED_BYTES = 4096
"""Limit for the bytes of a register access that are tracked."""


@dataclass(frozen=True)
class Dependence:
    """A pair of operations of a loop of which one, the sink, needs the result of the other, the source.

    Attributes:
        source: The index of the operation that is needed.
        sink: The index of the operation that needs it.
        distance: Iterations between the two; 0 if they are in the same one.
        wait: Whether the sink starts a cycle later, as a load after a store to a memory does.
    """

    source: int
    sink: int
    distance: int
    wait: bool = False


@dataclass(frozen=True)
class Dependences:
    """The data dependences between the operations of one loop.

    Attributes:
        independent: Memories whose iterations a pragma declares independent (DEPENDENCE … false).
    """

    loop: Loop
    ports: Ports
    independent: frozenset[str] = frozenset()

    @cached_property
    def carried(self) -> tuple[Dependence, ...]:
        """The dependences from an operation of one iteration to an operation of a later iteration."""
        values = {Dependence(source, sink, 1) for source, sink in self.loop.carried}
        return tuple(
            sorted(values | {dependence for dependence in self._through_memories if dependence.distance}, key=_order)
        )

    @cached_property
    def within(self) -> tuple[Dependence, ...]:
        """The dependences between accesses to the same memory, register array or stream within one iteration."""
        return tuple(
            sorted({dependence for dependence in self._through_memories if not dependence.distance}, key=_order)
        )

    @cached_property
    def inputs(self) -> tuple[tuple[Dependence, ...], ...]:
        """For each operation, its dependences on operations of the same iteration."""
        needs = [
            [Dependence(dependence, number, 0) for dependence in o.inputs]
            for number, o in enumerate(self.loop.operations)
        ]
        for dependence in self.within:
            needs[dependence.sink].append(dependence)
        return tuple(map(tuple, needs))

    @cached_property
    def readers(self) -> tuple[tuple[Dependence, ...], ...]:
        """For each operation, the dependences of operations of the same iteration on its result."""
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
            if not written.store or self.ports.in_different_partitions(written, access):
                continue
            if not access.store:
                distance = self._distance(written, access, store < index)
                if distance is not None:
                    yield Dependence(store, index, distance, True)
            elif store < index and written.offset.terms != access.offset.terms:
                yield Dependence(store, index, 0, True)  # two stores that may meet keep their order
                yield Dependence(index, store, 1, True)

    def _distance(self, written: Access, read: Access, later: bool) -> int | None:
        """Return the iterations from a store to the load that reads the stored word; None if no load reads it from the
        memory.

        Args:
            written: The store.
            read: The load.
            later: Whether the load follows the store within an iteration.
        """
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
        """Return whether an address offset depends on data, because it contains a value of the loop that is not a
        counter."""
        return any(name in self._names and name not in self.loop.steps for name, _ in offset.terms)

    @cached_property
    def _forwarded(self) -> frozenset[str]:
        """Memories for which Vitis HLS has added a register that holds the word written by the iteration before."""
        registered = {index for operation in self.loop.operations for index in operation.inputs if _keeps(operation)}
        stores = (operation for operation in self.loop.operations if registered.intersection(operation.inputs))
        return frozenset(
            access.memory for store in stores for access in store.accesses if access.store and not access.register
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(dependence.name for dependence in self.loop.operations if dependence.name)

    def _of_registers(self, accesses: list[tuple[int, Access]]) -> Iterator[Dependence]:
        """Yield the dependences of each load of a register array: on earlier stores of its iteration and on later
        stores of the one before."""
        stores = [(index, access) for index, access in accesses if access.store]
        every, anywhere = {index for index, _ in stores}, {index for index, access in stores if access.offset.terms}
        exact = _by_byte(stores)
        for index, access in accesses:
            met = every if access.offset.terms else anywhere.union(*(exact.get(byte, ()) for byte in _bytes(access)))
            for store in () if access.store else met - {index}:
                yield Dependence(store, index, int(store > index))


def _by_byte(stores: list[tuple[int, Access]]) -> dict[int, list[int]]:
    """Return, for each byte of an array, the operations that store to it, of the stores with a constant address."""
    exact: dict[int, list[int]] = {}
    for index, access in stores:
        for byte in () if access.offset.terms else _bytes(access):
            exact.setdefault(byte, []).append(index)
    return exact


def _whole_steps(apart: int, step: int, later: bool) -> int | None:
    """Return the iterations in which an address that advances by ``step`` bytes covers ``apart`` bytes; None if it
    never does."""
    soonest = 0 if later else 1
    if step == 0:
        return None if apart else soonest
    steps, remainder = divmod(apart, step)
    return None if remainder or steps < soonest else steps


def _keeps(operation: Operation) -> bool:
    return any(access.store and access.memory.startswith("%reuse_reg") for access in operation.accesses)


def _bytes(access: Access) -> range:
    return range(access.offset.constant, access.offset.constant + max(1, min(access.size, MAX_TRACKED_BYTES)))


def _order(dependence: Dependence) -> tuple[int, int, int]:
    return dependence.source, dependence.sink, dependence.distance
