"""The partitions and ports of memories, and the accesses of an iteration that each port serves.

An array is partitioned along the dimensions that ARRAY_PARTITION names. A struct element is split into its members, and
an array member adds a dimension, unless AGGREGATE makes the element one word (UG1399, "Structs"). An access whose index
along a partitioned dimension is known only at run time may go to any partition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import gcd

from hls_schedule.reading.addresses import Linear
from hls_schedule.reading.ir import Access, Loop, Operation
from hls_schedule.reading.layout import Types

DUAL_PORT = 2
"""Accesses per cycle to a memory with two ports, each a read or a write."""

COPIED = ("ram_1wnr", "rom_np")
"""Types of BIND_STORAGE with one copy of the memory per read of an iteration."""

COPIES = 16
"""Reads per cycle of an internal memory that a loop only reads: Vitis HLS makes up to this number of copies
(RAM_1WnR)."""


@dataclass(frozen=True)
class Binding:
    """The pragmas that decide how one array is built as memories.

    Attributes:
        partitions: Type and factor of ARRAY_PARTITION per dimension, counted from 1; 0 means every dimension.
        aggregated: Whether AGGREGATE makes an element one word.
        storage: The type of BIND_STORAGE.
        primitive: The impl of BIND_STORAGE.
        reshaped: Dimensions that ARRAY_RESHAPE joins to one word.
        bundle: The AXI port of an argument of the top function; "" if INTERFACE does not name one.
        beat_bytes: Bytes of a beat of that port, for accesses that are next to each other.
        narrow: Whether another argument of the AXI port has wider elements.
    """

    partitions: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    aggregated: bool = False
    storage: str = ""
    primitive: str = ""
    reshaped: frozenset[int] = frozenset()
    bundle: str = ""
    beat_bytes: int = 0
    narrow: bool = False


PLAIN = Binding()


@dataclass(frozen=True)
class Dimension:
    """One dimension of an array, with its partitions (banks).

    Attributes:
        count: Its elements.
        stride: Bytes between two elements.
        banks: The number of partitions along it.
        cyclic: Whether neighbours are in different partitions.
        joined: Whether all elements along it are one word.
    """

    count: int
    stride: int
    banks: int = 1
    cyclic: bool = True
    joined: bool = False

    def choices(self, index: int, moving: Mapping[str, int], multiples: Mapping[str, int]) -> Sequence[int]:
        """Return the numbers of the banks along this dimension that an access may go to.

        Args:
            index: The constant part of the index.
            moving: The values that are added to it, each with its factor.
            multiples: A number that divides a value at all times, for counters whose start is known.
        """
        if not moving:
            return (self.bank(index),)
        if not self.cyclic:
            return range(self.banks)
        apart = gcd(self.banks, *(factor * multiples.get(name, 1) for name, factor in moving.items()))
        return range(index % apart, self.banks, apart)

    def bank(self, index: int) -> int:
        """Return the number of the bank that holds the element at a constant index of this dimension."""
        if self.cyclic:
            return index % self.banks
        return min(self.banks - 1, max(0, index) * self.banks // self.count)


@dataclass(frozen=True)
class Shape:
    """The memories of an array as it is built: its dimensions with their partitions, and its words.

    Attributes:
        dimensions: Its dimensions, the outermost first.
        word_bytes: Bytes of an element's first member, or of the element if it is one word.
        members: The first byte of each member of an element; one entry if the element is one word.
    """

    dimensions: tuple[Dimension, ...]
    word_bytes: int
    members: tuple[int, ...] = (0,)

    @property
    def partitions(self) -> int:
        """The number of memories into which the array is split."""
        return math.prod(dimension.banks for dimension in self.dimensions) * len(self.members)

    @property
    def words(self) -> int:
        """The number of words of the largest partition."""
        return math.prod(
            -(-dimension.count // dimension.banks) for dimension in self.dimensions if not dimension.joined
        )

    @property
    def bits(self) -> int:
        """Bits of a word, rounded up to the bytes that each element takes in the compiled code."""
        return 8 * self.word_bytes * math.prod(dimension.count for dimension in self.dimensions if dimension.joined)


def shape_of(kind: str, types: Types, binding: Binding = PLAIN) -> Shape:
    """Return the dimensions, partitions and words of an array, by its LLVM type and its pragmas."""
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
    """The use of a memory port for one word: the first access of an iteration to this word in this direction.

    Attributes:
        operation: The index of the first operation that accesses the word.
        block: The label of the operation's block.
        port: The memory, with its partition and direction.
        limit: Accesses per cycle that the port serves.
    """

    operation: int
    block: str
    port: str
    limit: int


@dataclass(frozen=True)
class Ports:
    """The accesses of one loop's iteration to the ports of its memories.

    Attributes:
        loop: The loop.
        types: The types of its module.
        bindings: The pragmas of each memory.
        crowded: Memories that some loop writes more than once per iteration: they are not copied.
        axi_latency: Cycles of latency that AXI ports are built for (config_interface -m_axi_latency).
        whole_process: Whether the loop is all of its process. The first iteration then requests a burst of reads.
    """

    loop: Loop
    types: Types
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    crowded: frozenset[str] = frozenset()
    axi_latency: int = 0
    whole_process: bool = False

    def shape(self, access: Access) -> tuple[int, int]:
        """Return the number of words of a partition of the accessed memory, and the bits of a word."""
        shape = self._shapes[access.memory]
        return (shape.words, shape.bits) if shape else (1024, 8 * max(1, min(access.size, 64)))

    def needed(self, operation: Operation) -> dict[str, int]:
        """Return the memory ports that an operation uses, each with the accesses per cycle that the port serves."""
        return {claim.port: claim.limit for claim in self._by_operation.get(operation.index, ())}

    def in_different_partitions(self, first: Access, second: Access) -> bool:
        """Return whether two accesses to the same memory certainly go to different partitions."""
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
        """Return the lowest initiation interval that the memory ports allow, and the port that limits it; "" if none
        does."""
        bounds = [(math.ceil(self._together(claims) / claims[0].limit), port) for port, claims in self._by_port.items()]
        interval, port = max(bounds, default=(1, ""))
        return (interval, port) if interval > 1 else (1, "")

    def copies(self, memory: str) -> int:
        """Return how many copies of each partition of a memory the reads of one iteration need."""
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
        """Return the largest number of accesses to a port in one iteration; blocks that exclude each other are not
        added up."""
        counts: dict[str, int] = {}
        for claim in claims:
            counts[claim.block] = counts.get(claim.block, 0) + 1
        longest: dict[str, int] = {}
        for label in reversed([label for label in self._order if label in counts]):
            later = self.loop.may_follow.get(label, frozenset())
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
        """The uses of memory ports in one iteration: one per word and direction, for the first operation that accesses
        the word."""
        claims: dict[tuple[str, bool, object], Claim] = {}
        for operation in self.loop.operations:
            for access in operation.accesses:
                if access.stream:
                    port = f"{access.memory} ({operation.operator}, {'write' if access.store else 'read'})"
                    claims[port, access.store, operation.index] = Claim(operation.index, operation.block, port, 1)
                elif self.bundle(access):
                    port = f"{self.bundle(access)} ({'write' if access.store else 'read'})"
                    for beat in self._beats(access):
                        claims.setdefault((port, access.store, beat), Claim(operation.index, operation.block, port, 1))
                elif not access.register:
                    for partition, word in self._words(access):
                        port, limit = self._port(access, partition)
                        key = (port, access.store, word)
                        claims.setdefault(key, Claim(operation.index, operation.block, port, limit))
        return tuple(claims.values())

    def bundle(self, access: Access) -> str:
        """Return the AXI port of an access; "" if it is not to an AXI port."""
        return "" if access.stream or access.register else self.bindings.get(access.memory, PLAIN).bundle

    def in_burst(self, access: Access) -> bool:
        """Return whether an access to an AXI port is a beat of a burst that is requested before the loop.

        The addresses of a burst follow each other, and its elements are as wide as the port.
        """
        if self.whole_process and not access.store:
            return False
        counters = all(name in self.loop.steps or not self._computed(name) for name, _ in access.offset.terms)
        moving = any(self.loop.steps.get(name, 0) > 0 or name in self.loop.multiples for name, _ in access.offset.terms)
        return counters and moving and not self.bindings[access.memory].narrow

    def _computed(self, name: str) -> bool:
        return name in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(operation.name for operation in self.loop.operations if operation.name)

    def _beats(self, access: Access) -> Iterator[object]:
        """Yield each beat of an access. Accesses that are next to each other share a beat if its start is aligned."""
        binding, multiples = self.bindings[access.memory], self.loop.multiples
        aligned = all(factor * multiples.get(name, 1) % binding.beat_bytes == 0 for name, factor in access.offset.terms)
        size = binding.beat_bytes if aligned else max(access.size, 1)
        first, last = access.offset.constant, access.offset.constant + max(1, access.size) - 1
        for beat in range(first // size, last // size + 1) if aligned else (first,):
            yield access.memory, access.offset.terms, beat

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
    def multiply_written(self) -> frozenset[str]:
        """The names of the memories that one iteration writes more than once."""
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
        """Yield each word of an access: the partition that may hold it, and its address in that partition."""
        shape = self._shapes[access.memory]
        if shape is None:
            yield "", access.offset
            return
        step = max(1, shape.word_bytes)
        for byte in range(0, max(1, min(access.size, 4096)), step):
            yield from _located(shape, access.offset.plus(Linear((), byte)), self.loop.multiples)


def _located(shape: Shape, offset: Linear, multiples: Mapping[str, int]) -> Iterator[tuple[str, object]]:
    """Yield the partitions that may hold the word at a byte offset of an array, each with the word's address in that
    partition."""
    byte, terms = offset.constant, dict(offset.terms)
    choices: list[Sequence[int]] = []
    address: list[object] = []
    for dimension in shape.dimensions:
        index, byte = divmod(byte, dimension.stride)
        moving = {name: factor // dimension.stride for name, factor in terms.items() if not factor % dimension.stride}
        terms = {name: factor for name, factor in terms.items() if name not in moving}
        choices += [dimension.choices(index, moving, multiples)] * (dimension.banks > 1)
        address += [(index, tuple(sorted(moving.items())))] * (not dimension.joined)
    member = max((start for start in shape.members if start <= byte), default=0)
    suffix = f".{member}" if len(shape.members) > 1 else ""
    for banks in product(*choices):
        yield "".join(f"[{bank}]" for bank in banks) + suffix, (tuple(address), tuple(sorted(terms.items())))
