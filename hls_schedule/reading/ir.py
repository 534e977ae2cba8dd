"""Pipelined loops of LLVM IR: their operations, each after the operations that it needs, and their memories.

The output of the vendor's own compiler (``a.o.3.bc``) and of clang can both be read. They differ in a few functions,
which ``operations.py`` lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from boards.errors import InvalidValueError, MissingToolError, ToolError
from hls_schedule.reading.addresses import Address, Addresses, Linear
from hls_schedule.reading.bit_fields import BitFields
from hls_schedule.reading.control import deciding_blocks, forward, innermost_loops, natural_loops, predecessors_of
from hls_schedule.reading.counters import Counters
from hls_schedule.reading.layout import Types, bits_of
from hls_schedule.reading.llvm_text import (
    Function,
    Instruction,
    Location,
    Locations,
    Module,
    arguments_of,
    parse,
    phi_ways,
    split,
    type_of,
)
from hls_schedule.reading.members import Constants, member_memory
from hls_schedule.reading.operations import Operator, called_name, memory_accesses, operator_of
from hls_schedule.reading.products import few_digits, products_of
from hls_schedule.reading.widths import Ranges

_PRODUCT = re.compile(r"(?:(?:nuw|nsw) )*(i\d+) ")

MAX_REGISTERS = 4
"""Limit for the elements of an array that becomes registers without a pragma (config_array_partition
-complete_threshold)."""


@dataclass(frozen=True)
class Access:
    """One access of an operation to a memory, to an array in registers, or to a stream.

    Attributes:
        memory: The name of the memory.
        store: Whether it is a write.
        offset: Bytes from the start of the memory.
        size: Bytes that are accessed.
        register: Whether the memory is a scalar, or an array in registers.
        stream: Whether the memory is a FIFO or an AXI port.
    """

    memory: str
    store: bool
    offset: Linear
    size: int
    register: bool
    stream: bool


@dataclass(frozen=True)
class Memory:
    """An array, variable or stream that a loop accesses.

    Attributes:
        name: Its name in LLVM IR.
        kind: Its LLVM type; "" if it is not known.
        interface: Whether it is an argument of the top function.
    """

    name: str
    kind: str
    interface: bool


@dataclass(frozen=True)
class Operation:
    """One operation of a loop: an LLVM instruction with its operator, its inputs and its accesses to memories.

    Attributes:
        index: Its position in the loop.
        name: The name of its result; "" if it has none.
        operator: Its operator in the table of delays; "" for wiring.
        bits: The width that decides its delay.
        inputs: The operations of the same iteration that it needs.
        guards: The inputs that decide only whether it is executed.
        accesses: Its accesses to memories.
        location: Its place in the sources; None if it is not known.
        block: The label of its block.
        called: The name of the function that it calls, if the function is hardware of its own; else "".
    """

    index: int
    name: str
    operator: str
    bits: int
    inputs: tuple[int, ...]
    guards: frozenset[int]
    accesses: tuple[Access, ...]
    location: Location | None
    block: str
    called: str = ""


@dataclass(frozen=True)
class Loop:
    """A pipelined loop: its operations, dependences and memories, and the interval that its PIPELINE pragma declares.

    Attributes:
        function: The function that contains it.
        header: The label of its first block.
        declared_ii: The initiation interval of its mark; 0 if none is declared.
        declared_depth: The depth of its mark; 0 if none is declared.
        operations: Its operations, each after the operations of the iteration that it needs.
        carried: Pairs of operations (producer, consumer), of which the consumer is in the next iteration.
        steps: The step by which each counter advances per iteration.
        memories: The memories that it accesses.
        location: The place of its mark.
        calls: The functions that its operations call, each as a loop of one iteration.
        may_follow: For each block, the blocks that may follow it in the same iteration.
        multiples: A number that divides a counter at all times, for each counter whose start is known.
        factors: The bits of the wider and of the narrower factor of each product that may be in a DSP.
        cuts: The operations that drop or move bits: truncations, and shifts by a constant.
        nested: Whether the loop is in another loop.
    """

    function: str
    header: str
    declared_ii: int
    declared_depth: int
    operations: tuple[Operation, ...]
    carried: tuple[tuple[int, int], ...]
    steps: Mapping[str, int]
    memories: Mapping[str, Memory]
    location: Location | None
    calls: Mapping[int, Loop] = field(default_factory=dict)
    may_follow: Mapping[str, frozenset[str]] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)
    factors: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    nested: bool = False
    cuts: frozenset[int] = frozenset()


def read_module(data: bytes | str) -> Module:
    """Parse a module from LLVM bitcode (bytes) or LLVM IR (text).

    Raises:
        InvalidValueError: No function is defined in the text.
        MissingToolError: llvmlite, which reads bitcode, is not installed.
        ToolError: llvmlite refuses the bitcode.
    """
    module = parse(_text_of_bitcode(data) if isinstance(data, bytes) else data)
    if not module.functions:
        raise InvalidValueError("the module", data, "LLVM IR that defines at least one function")
    return module


def read_loops(module: Module, registers: frozenset[tuple[str, str]] = frozenset()) -> tuple[Loop, ...]:
    """Return the pipelined loops of a module: the innermost loops that a PIPELINE pragma marks.

    Args:
        module: The module.
        registers: The arrays in registers, as pairs (function, value).
    """
    return tuple(loop for reader in _readers(module, registers) for loop in reader.loops())


def unrolled_marks(module: Module) -> Iterator[tuple[Location, Location | None]]:
    """Yield the place of every mark outside of innermost loops, with the place of a loop inside its loop.

    A mark outside of all loops has no second place.
    """
    locations = Locations(module)
    for function in module.functions.values():
        reader = _Reader(module, function, frozenset())
        loops = natural_loops(function.successors)
        for label in function.blocks:
            for mark in reader.marks(label):
                around = [(header, body) for header, body in loops.items() if label in body]
                header, body = min(around, key=lambda each: len(each[1]), default=("", set()))
                inner = [first for first in loops if first != header and first in body]
                place = locations.location(mark.location)
                if place is not None and (inner or not header):
                    yield place, _first_place(function, locations, loops[inner[0]]) if inner else None


def _first_place(function: Function, locations: Locations, body: set[str]) -> Location | None:
    """Return the first place of the sources in a loop."""
    numbers = (i.location for label in function.blocks if label in body for i in function.blocks[label])
    places = (locations.location(number) for number in numbers)
    return next((place for place in places if place is not None and place.line), None)


def _text_of_bitcode(data: bytes) -> str:
    try:
        llvm: Any = import_module("llvmlite.binding")
    except ImportError as error:
        remedy = "pip install -e '.[check]'"
        raise MissingToolError("the package llvmlite", "read LLVM bitcode", remedy=remedy) from error
    try:
        return str(llvm.parse_bitcode(data))
    except RuntimeError as error:
        first = next(iter(str(error).strip().splitlines()), "no reason is given")
        raise ToolError("llvmlite", "does not read the module as LLVM bitcode", first) from error


def _readers(module: Module, registers: frozenset[tuple[str, str]]) -> list[_Reader]:
    readers = {name: _Reader(module, function, registers) for name, function in module.functions.items()}
    for reader in readers.values():
        reader.others = {name: callee_reader for name, callee_reader in readers.items() if callee_reader is not reader}
        for block in reader.function.blocks.values():
            for instruction in block:
                if instruction.opcode == "call":
                    callee = next((readers[name] for name in instruction.values if name in readers), None)
                    if callee is not None:
                        callee.caller = (reader, instruction)
    return list(readers.values())


class _Reader:
    """A reader of one LLVM function, which finds its pipelined loops and the array that each of its addresses points
    into."""

    def __init__(self, module: Module, function: Function, registers: frozenset[tuple[str, str]]) -> None:
        self.module, self.function, self.registers = module, function, registers
        self.types, self.locations, self.constants = Types(module.types), Locations(module), Constants(module)
        self.caller: tuple[_Reader, Instruction] | None = None
        self.others: dict[str, _Reader] = {}
        self.allocas = {
            instruction.name: split(instruction.text)[0].removeprefix("inalloca ")
            for block in function.blocks.values()
            for instruction in block
            if instruction.opcode == "alloca"
        }
        self.scalars = frozenset(name for name, kind in self.allocas.items() if kind[0] not in "[{%<")
        self.addresses = Addresses(function.definitions, self.types, self.scalars)
        self.fields = BitFields(function.definitions)
        self.ranges = Ranges(function.definitions)
        self.source_index = predecessors_of(function.successors)
        for name, instruction in function.definitions.items():
            if instruction.opcode == "getelementptr":
                self.addresses.pointer(name)

    @cached_property
    def once(self) -> Loop:
        """The whole function, not only a loop of it, as a loop of one iteration."""
        entry = next(iter(self.function.blocks))
        return _Body(self, forward(entry, set(self.function.blocks), self.function.successors)).loop(None)

    def loops(self) -> Iterator[Loop]:
        """Yield the innermost loops with a mark. The first mark is the loop's own; others were unrolled into it."""
        around = natural_loops(self.function.successors)
        for header, body in innermost_loops(self.function.successors).items():
            order = forward(header, body, self.function.successors)
            mark = next((instruction for label in order for instruction in self.marks(label)), None)
            if mark is not None:
                nested = any(header in outer for first, outer in around.items() if first != header)
                yield _Body(self, order).loop(mark, nested)

    def marks(self, label: str) -> Iterator[Instruction]:
        """Yield the marks in a block."""
        for instruction in self.function.blocks[label]:
            if instruction.opcode == "call" and (
                '"//pipeline"' in instruction.text or "_ssdm_op_SpecPipeline" in instruction.text
            ):
                yield instruction

    def memory(self, root: str) -> Memory:
        """Return the array that ``root`` names. If ``root`` is an argument, it is the array that the caller passes."""
        if root in self.function.arguments:
            if self.caller is None:
                return Memory(root, self.addresses.arrays.get(root, ""), True)
            reader, call = self.caller
            handed = arguments_of(call.text)[self.function.arguments.index(root)]
            outer = reader.memory(reader.addresses.pointer(handed).root)
            return Memory(outer.name, outer.kind or self.addresses.arrays.get(root, ""), outer.interface)
        return Memory(root, self._kind(root), False)

    def is_register(self, alloca: str) -> bool:
        """Return whether an alloca is built as registers: a single value, a struct, a few values, or an array by
        pragma."""
        array = self.types.array(self.allocas[alloca])
        return array is None or array[0] <= MAX_REGISTERS or (self.function.name, alloca) in self.registers

    def _kind(self, root: str) -> str:
        if root in self.allocas:
            return self.allocas[root]
        return self.module.globals.get(root, "")


class _Body:
    """The blocks of one loop in forward order, from which its operations are read."""

    def __init__(self, reader: _Reader, order: list[str]) -> None:
        self.reader, self.order, self.header = reader, order, order[0]
        self.instructions = [(label, instruction) for label in order for instruction in reader.function.blocks[label]]
        self.index = {
            instruction.name: number for number, (_, instruction) in enumerate(self.instructions) if instruction.name
        }
        self.deciding = deciding_blocks(order, reader.function.successors)
        self.memories: dict[str, Memory] = {}
        self.carried: list[tuple[int, int]] = []
        self.latches: dict[str, str] = {}
        self.starts: dict[str, list[str]] = {}

    def loop(self, mark: Instruction | None, nested: bool = False) -> Loop:
        operations = tuple(self._operation(index) for index in range(len(self.instructions)))
        interval, depth = _declared(mark) if mark else (1, 0)
        counters = self._counters(operations)
        return Loop(
            self.reader.function.name, self.header, interval, depth, operations, tuple(self.carried),
            counters.steps(), self.memories, self.reader.locations.location(mark.location if mark else None),
            self._calls(), self._may_follow(), counters.multiples(), self._factors(), nested, self._cuts(),
        )  # fmt: skip

    def _cuts(self) -> frozenset[int]:
        cutting = ("trunc", "shl", "lshr", "ashr")
        return frozenset(
            index
            for index, (_, each) in enumerate(self.instructions)
            if each.opcode in cutting or "hls_schedule3cut" in each.text
        )

    def _factors(self) -> dict[int, tuple[int, int]]:
        """Return the bits of the factors of each product that Vitis HLS is free to put into a DSP."""
        factors = {}
        definitions = self.reader.function.definitions
        bound = {
            product
            for _, instruction in self.instructions
            if "hls_schedule5bound" in instruction.text
            for product in products_of(definitions, instruction)
        }
        for index, (_, instruction) in enumerate(self.instructions):
            typed = _PRODUCT.match(instruction.text) if instruction.opcode == "mul" else None
            if typed is not None and instruction.name not in bound:
                pair = split(instruction.text[typed.end() :])[:2]
                if not any(few_digits(factor) for factor in pair):
                    narrow, wide = sorted(self.reader.ranges.factor_bits(factor, typed[1]) for factor in pair)
                    factors[index] = (wide, narrow)
        return factors

    def _calls(self) -> dict[int, Loop]:
        called = {}
        for index, (_, instruction) in enumerate(self.instructions):
            if instruction.opcode == "call" and operator_of(instruction).name == "function":
                callee = next((self.reader.others[n] for n in instruction.values if n in self.reader.others), None)
                if callee is not None:
                    called[index] = callee.once
        return called

    def _operator(self, instruction: Instruction) -> Operator:
        if self.reader.fields.disjoint(instruction):
            return Operator("", 0)
        return operator_of(instruction)

    def _operation(self, index: int) -> Operation:
        label, instruction = self.instructions[index]
        operator = self._operator(instruction)
        inputs = {self.index[value] for value in instruction.values if value in self.index}
        if instruction.opcode == "phi":
            operator, inputs = self._phi(index, label, instruction)
        accesses = tuple(self._access(*each) for each in memory_accesses(instruction, self.reader.types))
        guards = self._guards(label) if any(access.store or access.stream for access in accesses) else set()
        if any(access.register and access.store and access.memory in self.reader.scalars for access in accesses):
            operator = Operator("register", 1)
        location = self.reader.locations.location(instruction.location)
        return Operation(
            index,
            instruction.name,
            operator.name,
            operator.bits,
            tuple(sorted((inputs | guards) - {index})),
            frozenset(guards - inputs),
            accesses,
            location,
            label,
            called_name(instruction.text) if operator.name == "function" else "",
        )

    def _phi(self, index: int, label: str, instruction: Instruction) -> tuple[Operator, set[int]]:
        """Return the operator of a phi instruction, and the indices of the operations of the same iteration that it
        needs.

        In the header, it is the register of a loop-carried value. Elsewhere it selects between the ways.
        """
        kind = type_of(instruction.text)
        ways = phi_ways(instruction.text)
        inputs = set()
        for value, source in ways:
            if source in self.deciding and label == self.header:
                self.latches[instruction.name] = value
                if value in self.index:
                    self.carried.append((self.index[value], index))
            elif label == self.header:
                self.starts.setdefault(instruction.name, []).append(value)
            elif value in self.index:
                inputs.add(self.index[value])
        if label == self.header:
            return Operator("register", bits_of(kind)), inputs
        choosing = (
            set().union(*(self.deciding[source] | self._fork(source) for _, source in ways)) - self.deciding[label]
        )
        return Operator("select", bits_of(kind)), inputs | self._conditions(choosing)

    def _fork(self, label: str) -> set[str]:
        return {label} if len(self.reader.function.successors[label]) > 1 else set()

    def _guards(self, label: str) -> set[int]:
        """Return the indices of the operations that compute the conditions for executing a block."""
        return self._conditions(self.deciding[label])

    def _conditions(self, labels: Any) -> set[int]:
        ends = [self.reader.function.blocks[label][-1] for label in labels]
        return {self.index[end.values[0]] for end in ends if end.values and end.values[0] in self.index}

    def _access(self, pointer: str, store: bool, size: int, stream: bool) -> Access:
        address = self.reader.addresses.pointer(pointer)
        memory, offset = self.reader.memory(address.root), address.offset
        register = not stream and self._in_registers(address, memory)
        member = None if stream else self.reader.constants.member(address.root, offset.constant)
        if member is not None:
            memory = Memory(member_memory(memory.name, member.name), member.kind, memory.interface)
            offset = offset.plus(Linear((), -member.start))
        name = f"{memory.name}+{offset.constant}" if stream else memory.name
        if name not in self.memories:
            self.memories[name] = Memory(name, memory.kind, memory.interface)
        return Access(name, store, offset, size, register, stream)

    def _in_registers(self, address: Address, memory: Memory) -> bool:
        if address.root in self.reader.allocas:
            return self.reader.is_register(address.root)
        return bool(memory.kind) and memory.kind[0] not in "[{%<"

    def _counters(self, operations: tuple[Operation, ...]) -> Counters:
        stores = [
            (access.memory, split(self.instructions[operation.index][1].text)[0])
            for operation in operations
            for access in operation.accesses
            if access.store and access.memory in self.reader.scalars
        ]
        body = {instruction.name: instruction for _, instruction in self.instructions if instruction.name}
        return Counters(self.reader.addresses, body, {**self.latches, **dict(stores)}, self.starts)

    def _may_follow(self) -> dict[str, frozenset[str]]:
        """Return, for each block, the blocks that may be executed after it in the same iteration."""
        reach: dict[str, frozenset[str]] = {}
        for label in reversed(self.order):
            ways = [way for way in self.reader.function.successors[label] if way in reach and way != self.header]
            reach[label] = frozenset(ways).union(*(reach[way] for way in ways))
        return reach


def _declared(mark: Instruction) -> tuple[int, int]:
    """Return the initiation interval and the depth that a PIPELINE pragma's mark declares; the depth is 0 if it has
    none."""
    numbers = [int(piece.split()[1]) for piece in arguments_of(mark.text)[:2]]
    if "_ssdm_op_SpecPipeline" in mark.text:
        return max(1, numbers[0]), 0
    return numbers[0], numbers[1]
