"""Reading LLVM IR as text: functions, blocks and instructions, with their source lines from the debug information.

The text is read in one pass, because unrolled loops commonly have tens of thousands of instructions. Values, blocks and
metadata are identified by their names, and types by their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

_NAME = r'(?:[%@](?:"[^"]*"|[-\w$.]+))'
_VALUE = re.compile(_NAME)
_DEFINE = re.compile(r"define .*?@(\"[^\"]*\"|[-\w$.]+)\((.*)\)(?: .*)?\{")
_LABEL = re.compile(r'("[^"]*"|[-\w$.]+):')
_METADATA = re.compile(r", !(\w+) !(\d+)")
_ATTACHED = re.compile(r"(?:, ![\w.]+ !(?:\d+|\{\}))+$")
_RECORD = re.compile(r"!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$")
_TUPLE = re.compile(r"!(\d+) = (?:distinct )?!\{(.*)\}$")
_FIELD = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*"|!\d+|[^,]+)')
_TYPE = re.compile(rf"({_NAME}) = type (.*)$")
_GLOBAL = re.compile(rf"({_NAME}) = .*?(?:global|constant) (.*)$")
_POINTED = re.compile(rf"#dbg_(?:value|declare|assign)\(.*?ptr ({_NAME}), !(\d+), !DIExpression\(\)")
_ASSIGNED = re.compile(rf"#dbg_assign\(.*?, !(\d+), !DIExpression\(.*?\), !\d+, ptr ({_NAME}), ")


@dataclass(frozen=True)
class Instruction:
    """One instruction of LLVM IR.

    Attributes:
        name: The name of its result; "" if it has none.
        opcode: Its operation.
        text: Its operands, without metadata.
        location: The number of its DILocation; None if it has none.
    """

    name: str
    opcode: str
    text: str
    location: int | None

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The names (``%x``, ``@f``) of values, blocks, functions and types in the instruction's operands, in their
        order."""
        return tuple(_VALUE.findall(self.text))


@dataclass
class Function:
    """A function of LLVM IR: its arguments, and its blocks by their labels, the entry first."""

    name: str
    arguments: tuple[str, ...]
    blocks: dict[str, list[Instruction]] = field(default_factory=dict)

    @cached_property
    def definitions(self) -> dict[str, Instruction]:
        """The instruction that computes each value, by the value's name."""
        return {
            instruction.name: instruction for block in self.blocks.values() for instruction in block if instruction.name
        }

    @cached_property
    def successors(self) -> dict[str, tuple[str, ...]]:
        """For each block, the blocks to which its last instruction can branch."""
        return {
            label: tuple(instruction for instruction in block[-1].values if instruction in self.blocks) if block else ()
            for label, block in self.blocks.items()
        }


@dataclass
class Module:
    """A parsed LLVM module: its functions, types, globals and debug records.

    Attributes:
        target: The line of the target triple.
        functions: The functions by their names.
        types: The type of each struct name.
        globals: The type of each global.
        described: The number of each global's debug record.
        records: Kind and text of each debug record.
        notes: The numbers of the pragmas that name a value, by (function, value); the function of a global is "".
        variables: The numbers of a value's DILocalVariables, by (function, value).
    """

    target: str = ""
    functions: dict[str, Function] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)
    described: dict[str, int] = field(default_factory=dict)
    records: dict[int, tuple[str, str]] = field(default_factory=dict)
    notes: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    variables: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def variables_of(self, function: str, value: str) -> set[int]:
        """Return the numbers of the debug records of the source variables that a value of LLVM IR belongs to."""
        numbers = set(self.variables.get((function, value), ()))
        if value in self.described:
            expression = self.record(self.described[value])
            numbers.add(int(expression["var"][1:]) if "var" in expression else self.described[value])
        return numbers

    def records_of(self, kind: str) -> Iterator[Mapping[str, str]]:
        """Return the fields of every debug record of a kind, such as ``DISubprogram``."""
        return (self.record(number) for number, (name, _) in self.records.items() if name == kind)

    def record(self, number: int) -> Mapping[str, str]:
        """Return the fields of the debug record ``!number``, with its ``kind``; empty if there is no such record."""
        if number not in self._fields:
            kind, text = self.records.get(number, ("", ""))
            values = {name: value.strip('"') for name, value in _FIELD.findall(text)}
            self._fields[number] = {"kind": kind, **values} if kind else {}
        return self._fields[number]

    def elements(self, record: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
        """Return the debug records of a type's elements: members of a struct, or dimensions of an array."""
        reference = record.get("elements", "")
        listed = self.records.get(int(reference[1:]), ("", "")) if reference.startswith("!") else ("", "")
        return (self.record(int(number)) for number in re.findall(r"!(\d+)", listed[1]))

    @cached_property
    def _fields(self) -> dict[int, Mapping[str, str]]:
        return {}


def parse(text: str) -> Module:
    """Parse the text of an LLVM module, of any version that has one instruction per line. Unknown lines are skipped."""
    module = Module()
    function: Function | None = None
    label = ""
    for line in _whole_lines(text):
        if function is None:
            function = _outside(line, module)
            label = next(iter(function.blocks)) if function else ""
        elif line == "}":
            function = None
        elif line.startswith("    #dbg"):
            _note_variable(line, function.name, module)
        elif (heading := _LABEL.match(line)) is not None:
            label = "%" + heading[1]
            if len(function.blocks) == 1 and not next(iter(function.blocks.values())):
                function.blocks.clear()
            function.blocks[label] = []
        elif line.startswith("  "):
            instruction = _instruction(line.strip())
            function.blocks[label].append(instruction)
            if instruction.opcode == "call" and "hls_schedule_note" in instruction.text:
                _note_pragma(instruction, function.name, module)
    return module


def _whole_lines(text: str) -> Iterator[str]:
    """Yield the lines of a module's text, with the lines of a ``switch`` instruction joined to one."""
    pending = ""
    for line in text.splitlines():
        if pending:
            pending += " " + line.strip()
            if line.strip().startswith("]"):
                yield pending
                pending = ""
        elif line.startswith("  switch ") and "]" not in line:
            pending = line
        else:
            yield line


def _outside(line: str, module: Module) -> Function | None:
    """Read a line outside of functions into ``module``; return the function that begins in it, else None."""
    if line.startswith("define"):
        heading = _DEFINE.match(line)
        if heading is not None:
            arguments = tuple(re.findall(r"(%(?:\"[^\"]*\"|[-\w$.]+))(?=,|$)", _without_types(heading[2])))
            function = Function("@" + heading[1], arguments, {f"%{len(arguments)}": []})
            module.functions[function.name] = function
            return function
    elif line.startswith("target triple"):
        module.target = line
    elif line.startswith("!"):
        record, listed = _RECORD.match(line), _TUPLE.match(line)
        if record is not None:
            module.records[int(record[1])] = (record[2], record[3])
        elif listed is not None:
            module.records[int(listed[1])] = ("", listed[2])
    elif (kind := _TYPE.match(line)) is not None:
        module.types[kind[1]] = kind[2]
    elif (variable := _GLOBAL.match(line)) is not None:
        module.globals[variable[1]] = type_of(variable[2])
        described = re.search(r", !dbg !(\d+)", line)
        if described is not None:
            module.described[variable[1]] = int(described[1])
    return None


def _without_types(arguments: str) -> str:
    """Return a function's argument list without the parentheses of attributes, which can contain commas."""
    return re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", arguments))


def _note_variable(line: str, function: str, module: Module) -> None:
    pointed, assigned = _POINTED.search(line), _ASSIGNED.search(line)
    if pointed is not None:
        module.variables.setdefault((function, pointed[1]), set()).add(int(pointed[2]))
    if assigned is not None:
        module.variables.setdefault((function, assigned[2]), set()).add(int(assigned[1]))


def _note_pragma(instruction: Instruction, function: str, module: Module) -> None:
    number, pointer = arguments_of(instruction.text)
    root = _VALUE.findall(pointer)[-1]
    key = ("" if root.startswith("@") else function, root)
    module.notes.setdefault(key, set()).add(int(number.split()[-1]))


def _instruction(line: str) -> Instruction:
    place = next((int(number) for kind, number in _METADATA.findall(line) if kind == "dbg"), None)
    bare = _ATTACHED.sub("", line)
    name = ""
    if bare.startswith("%") and " = " in bare:
        name, bare = bare.split(" = ", 1)
    opcode, _, operands = bare.partition(" ")
    if opcode in ("tail", "musttail", "notail"):
        opcode, _, operands = operands.partition(" ")
    return Instruction(name, opcode, operands, place)


@dataclass(frozen=True)
class Location:
    """A location in the sources, with the functions that contain it.

    Attributes:
        file: The source file.
        line: The source line.
        scopes: The function that contains it, and the functions into which it is inlined, up to the outermost.
        functions: The file and the first line of each of these functions.
    """

    file: str
    line: int
    scopes: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]


HEADERS = str(PurePath(__file__).with_name("include"))
"""The headers of a check. Their code is attributed to the line that uses it."""


class Locations:
    """The source locations of a module's instructions, read from its debug records."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[int, Location] = {}

    def location(self, number: int | None) -> Location | None:
        """Return the source location that the DILocation record ``!number`` describes; no number gives None."""
        if number is None:
            return None
        if number not in self._known:
            self._known[number] = self._read(number)
        return self._known[number]

    def _read(self, number: int) -> Location:
        record = self._module.record(number)
        file, function = self._scope(record.get("scope", ""))
        begins = self._function(record.get("scope", ""))
        outer = self.location(_number(record.get("inlinedAt", "")))
        line = int(record.get("line", "0"))
        if outer is None:
            return Location(file, line, (function,), (begins,))
        if not line or file.startswith(HEADERS):
            file, line = outer.file, outer.line
        return Location(file, line, (function, *outer.scopes), (begins, *outer.functions))

    def _scope(self, reference: str) -> tuple[str, str]:
        """Return the file and the name of the function that contains a debug scope, given as ``!number``."""
        file, number = "", _number(reference)
        while number is not None:
            record = self._module.record(number)
            file = file or self.file(record.get("file", ""))
            if record.get("kind") == "DISubprogram":
                return file, record.get("name", "")
            number = _number(record.get("scope", ""))
        return file, ""

    def function_name(self, reference: str) -> str:
        """Return the name of the function that contains a debug scope, given as ``!number``."""
        return self._scope(reference)[1]

    def file(self, reference: str) -> str:
        """Return the path that a DIFile record names; the record is given as ``!number``."""
        number = _number(reference)
        record = self._module.record(number) if number is not None else {}
        return str(PurePath(record.get("directory", ""), record.get("filename", "")))

    def variable(self, number: int) -> tuple[str, tuple[str, int]]:
        """Return the name of a source variable, with file and line of its function; ``number`` is its debug record."""
        record = self._module.record(number)
        return record.get("name", ""), self._function(record.get("scope", ""))

    def kind(self, number: int) -> str:
        """Return the DWARF tag of a variable's type, with typedefs resolved: DW_TAG_structure_type, DW_TAG_array_type,
        …"""
        record = self._module.record(number)
        reference = _number(record.get("type", ""))
        while reference is not None:
            record = self._module.record(reference)
            reference = _number(record.get("baseType", "")) if record.get("tag", "") in NAME_TAGS else None
        return record.get("tag", "")

    def _function(self, reference: str) -> tuple[str, int]:
        number = _number(reference)
        while number is not None:
            record = self._module.record(number)
            if record.get("kind") == "DISubprogram":
                return PurePath(self.file(record.get("file", ""))).name, int(record.get("line", "0"))
            number = _number(record.get("scope", ""))
        return "", 0


NAME_TAGS = frozenset({"DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type"})
"""DWARF tags of types that only name another type."""


def _number(reference: str) -> int | None:
    return int(reference[1:]) if reference.startswith("!") else None


_CALLED = re.compile(r'(?:@(?:"[^"]*"|[-\w$.]+)|")\(')


def arguments_of(text: str) -> tuple[str, ...]:
    """Return the arguments in the text of a call instruction, each with its type, such as ``i32 1`` and ``ptr %x``."""
    called = _CALLED.search(text)
    return split(text[called.end() :]) if called else ()


def split(text: str) -> tuple[str, ...]:
    """Split a text at the commas outside of brackets; the text ends at a closing bracket that has no opening one."""
    depth, start, pieces = 0, 0, []
    for position, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
            if depth < 0:
                text = text[:position]
                break
        elif character == "," and not depth:
            pieces.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return (*pieces, last) if last else tuple(pieces)


def type_of(text: str) -> str:
    """Return the LLVM type with which a text starts."""
    if text[:1] not in "[{<":
        return text.split(" ")[0].rstrip(",")
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "[{<(") - (character in "]}>)")
        if not depth:
            return text[: position + 1]
    return text


def phi_ways(text: str) -> list[tuple[str, str]]:
    """Return the value that a phi instruction takes from each block, and the block's label.

    Args:
        text: The type, and after it a pair in brackets for each block, such as ``i32 [ %a, %x ], [ 0, %y ]``.
    """
    pairs = (split(pair[1:-1]) for pair in split(text[len(type_of(text)) :]))
    return [(value, label) for value, label in pairs]
