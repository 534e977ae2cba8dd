"""Memories as they are built: partitions, ports, and how many accesses of an iteration each serves.

An array is taken apart along the dimensions that ARRAY_PARTITION names. An element that is a struct is taken apart into
its members, an array of a member becoming a further dimension, unless AGGREGATE makes it one word (UG1399, "Structs").
An access whose index along a partitioned dimension is only known at run time may be to each of the partitions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from hls_schedule.reading.addresses import Linear
from hls_schedule.reading.ir import Access, Loop, Operation
from hls_schedule.reading.layout import Types

DUAL_PORT = 2
"""Accesses a cycle of a memory with two ports, for whatever they are."""

COPIED = ("ram_1wnr", "rom_np")
"""Types of BIND_STORAGE that have a copy of the memory for every read of an iteration."""

COPIES = 16
"""Reads a cycle of a memory inside the design that a loop only reads: the tool copies it as often (RAM_1WnR)."""


@dataclass(frozen=True)
class Binding:
    """What pragmas say of an array. partitions: dimension, from 1 → (type, factor); 0 stands for all dimensions.

    storage, primitive: type and impl of BIND_STORAGE. reshaped: dimensions that ARRAY_RESHAPE joins to a word.
    """

    partitions: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    aggregated: bool = False
    storage: str = ""
    primitive: str = ""
    reshaped: frozenset[int] = frozenset()


PLAIN = Binding()


@dataclass(frozen=True)
class Dimension:
    """count elements, stride bytes apart. banks: partitions along it. cyclic: whether neighbours lie in different
    ones."""

    count: int
    stride: int
    banks: int = 1
    cyclic: bool = True
    joined: bool = False
    """Whether all elements along it are one word."""

    def choices(self, index: int, moving: Mapping[str, int]) -> Sequence[int]:
        """Banks in which an element may lie: ``index`` and what moves, each with its factor."""
        steady = self.cyclic and all(factor % self.banks == 0 for factor in moving.values())
        return (self.bank(index),) if not moving or steady else range(self.banks)

    def bank(self, index: int) -> int:
        """Of an element."""
        if self.cyclic:
            return index % self.banks
        return min(self.banks - 1, max(0, index) * self.banks // self.count)


@dataclass(frozen=True)
class Shape:
    """An array's dimensions, the outermost first; words of a partition, and bytes of a word."""

    dimensions: tuple[Dimension, ...]
    word_bytes: int
    members: tuple[int, ...] = (0,)
    """Bytes at which the members of an element begin; one for a word."""

    @property
    def partitions(self) -> int:
        """Memories that it is built of."""
        return math.prod(dimension.banks for dimension in self.dimensions) * len(self.members)

    @property
    def words(self) -> int:
        """Of the largest partition."""
        return math.prod(
            -(-dimension.count // dimension.banks) for dimension in self.dimensions if not dimension.joined
        )

    @property
    def bits(self) -> int:
        """Of a word, as it lies in the memory of a computer."""
        return 8 * self.word_bytes * math.prod(dimension.count for dimension in self.dimensions if dimension.joined)


def shape_of(kind: str, types: Types, binding: Binding = PLAIN) -> Shape:
    """kind: an array's LLVM type."""
    dimensions: list[Dimension] = []
    while (array := types.array(kind)) is not None:
        count, kind = array
        dimensions.append(_partitioned(len(dimensions) + 1, count, types.size(kind), binding))
    members = types.members(kind)
    if binding.aggregated or len(members) == 0:
        return Shape(tuple(dimensions), types.size(kind))
    while len(members) == 1:  # a member's array is a dimension of its own
        kind = members[0]
        while (array := types.array(kind)) is not None:
            count, kind = array
            dimensions.append(_partitioned(len(dimensions) + 1, count, types.size(kind), binding))
        members = types.members(kind)
    starts = tuple(types.element(kind, number)[1] for number in range(len(members))) or (0,)
    return Shape(tuple(dimensions), types.size(members[0] if members else kind), starts)


def _partitioned(number: int, count: int, stride: int, binding: Binding) -> Dimension:
    if number in binding.reshaped or 0 in binding.reshaped:
        return Dimension(count, stride, joined=True)
    kind, factor = binding.partitions.get(number, binding.partitions.get(0, ("", 1)))
    if kind == "complete":
        return Dimension(count, stride, count)
    return Dimension(count, stride, min(factor, count), kind != "block") if kind else Dimension(count, stride)


@dataclass(frozen=True)
class Claim:
    """A word of a partition that an iteration accesses. port: the memory, its partition and direction."""

    operation: int
    block: str
    port: str
    limit: int


@dataclass(frozen=True)
class Ports:
    """Of one loop's memories. bindings: memory → what pragmas say of it."""

    loop: Loop
    types: Types
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    crowded: frozenset[str] = frozenset()
    """Memories that some loop writes more than once in an iteration: they are not copied."""

    def shape(self, access: Access) -> tuple[int, int]:
        """Words of a partition and bits of a word."""
        shape = self._shapes[access.memory]
        return (shape.words, shape.bits) if shape else (1024, 8 * max(1, min(access.size, 64)))

    def needed(self, operation: Operation) -> dict[str, int]:
        """Port → accesses a cycle that it serves, of the ports that an operation takes."""
        return {claim.port: claim.limit for claim in self._by_operation.get(operation.index, ())}

    def apart(self, first: Access, second: Access) -> bool:
        """Whether two accesses to a memory are to different partitions of it."""
        shape = self._shapes[first.memory]
        if shape is None or shape.partitions == 1:
            return False
        return self._partitions(first).isdisjoint(self._partitions(second))

    def _partitions(self, access: Access) -> frozenset[str]:
        if access not in self._known_partitions:
            self._known_partitions[access] = frozenset(partition for partition, _ in self._words(access))
        return self._known_partitions[access]

    @cached_property
    def _known_partitions(self) -> dict[Access, frozenset[str]]:
        return {}

    def interval(self) -> tuple[int, str]:
        """The least interval that ports allow, and the memory that bounds it ("" for none)."""
        bounds = [(math.ceil(self._together(claims) / claims[0].limit), port) for port, claims in self._by_port.items()]
        interval, port = max(bounds, default=(1, ""))
        return (interval, port) if interval > 1 else (1, "")

    def copies(self, memory: str) -> int:
        """Of each partition of a memory, for its readers in one iteration."""
        if self.bindings.get(memory, PLAIN).storage not in COPIED:
            return 1
        reads = (access for operation in self.loop.operations for access in operation.accesses)
        ports = {
            self._port(access, partition)[0]
            for access in reads
            if access.memory == memory and not access.store
            for partition, _ in self._words(access)
        }
        return max((self._together(self._by_port[port]) for port in ports), default=1)

    def _together(self, claims: list[Claim]) -> int:
        """Most accesses to a port in one iteration: those of blocks that exclude each other do not add up."""
        counts: dict[str, int] = {}
        for claim in claims:
            counts[claim.block] = counts.get(claim.block, 0) + 1
        longest: dict[str, int] = {}
        for label in reversed([label for label in self._order if label in counts]):
            later = self.loop.exclusive.get(label, frozenset())
            longest[label] = counts[label] + max(
                (longest[dimension] for dimension in longest if dimension in later), default=0
            )
        return max(longest.values(), default=0)

    @cached_property
    def _order(self) -> list[str]:
        return list(dict.fromkeys(operation.block for operation in self.loop.operations))

    @cached_property
    def _shapes(self) -> dict[str, Shape | None]:
        return {
            name: shape_of(memory.kind, self.types, self.bindings.get(name, PLAIN)) if memory.kind else None
            for name, memory in self.loop.memories.items()
        }

    @cached_property
    def _by_operation(self) -> dict[int, list[Claim]]:
        claims: dict[int, list[Claim]] = {}
        for claim in self._claims:
            claims.setdefault(claim.operation, []).append(claim)
        return claims

    @cached_property
    def _by_port(self) -> dict[str, list[Claim]]:
        claims: dict[str, list[Claim]] = {}
        for claim in self._claims:
            claims.setdefault(claim.port, []).append(claim)
        return claims

    @cached_property
    def _claims(self) -> tuple[Claim, ...]:
        """Of every word once in each direction, for the first operation that touches it."""
        claims: dict[tuple[str, bool, object], Claim] = {}
        for operation in self.loop.operations:
            for access in operation.accesses:
                if access.stream:
                    port = f"{access.memory} ({operation.operator}, {'write' if access.store else 'read'})"
                    claims[port, access.store, operation.index] = Claim(operation.index, operation.block, port, 1)
                elif not access.register:
                    for partition, word in self._words(access):
                        port, limit = self._port(access, partition)
                        key = (port, access.store, word)
                        claims.setdefault(key, Claim(operation.index, operation.block, port, limit))
        return tuple(claims.values())

    def _port(self, access: Access, partition: str) -> tuple[str, int]:
        name = access.memory + partition
        storage = self.bindings.get(access.memory, PLAIN).storage
        if storage in ("ram_s2p", "ram_1wnr", "rom_1p", "rom_np"):
            if storage in COPIED and not access.store:
                return f"{name} (read)", COPIES
            return f"{name} ({'write' if access.store else 'read'})", 1
        if storage == "ram_1p":
            return name, 1
        memory = self.loop.memories[access.memory]
        single = access.memory in self._written or access.memory in self.crowded or memory.interface or storage
        return name, DUAL_PORT if single else COPIES

    @cached_property
    def written_often(self) -> frozenset[str]:
        """Memories of which an iteration writes more than one word."""
        stores = Counter(
            access.memory for operation in self.loop.operations for access in operation.accesses if access.store
        )
        return frozenset(name for name, count in stores.items() if count > 1)

    @cached_property
    def _written(self) -> frozenset[str]:
        return frozenset(
            access.memory for operation in self.loop.operations for access in operation.accesses if access.store
        )

    def _words(self, access: Access) -> Iterator[tuple[str, object]]:
        """(partition, address of the word in it) of all words that an access touches."""
        shape = self._shapes[access.memory]
        if shape is None:
            yield "", access.offset
            return
        step = max(1, shape.word_bytes)
        for byte in range(0, max(1, min(access.size, 4096)), step):
            yield from _located(shape, access.offset.plus(Linear((), byte)))


def _located(shape: Shape, offset: Linear) -> Iterator[tuple[str, object]]:
    """Partitions in which a word may lie, with its address there."""
    byte, terms = offset.constant, dict(offset.terms)
    choices: list[Sequence[int]] = []
    address: list[object] = []
    for dimension in shape.dimensions:
        index, byte = divmod(byte, dimension.stride)
        moving = {name: factor // dimension.stride for name, factor in terms.items() if not factor % dimension.stride}
        terms = {name: factor for name, factor in terms.items() if name not in moving}
        choices += [dimension.choices(index, moving)] * (dimension.banks > 1)
        address += [(index, tuple(sorted(moving.items())))] * (not dimension.joined)
    member = max((start for start in shape.members if start <= byte), default=0)
    suffix = f".{member}" if len(shape.members) > 1 else ""
    for banks in product(*choices):
        yield "".join(f"[{bank}]" for bank in banks) + suffix, (tuple(address), tuple(sorted(terms.items())))
