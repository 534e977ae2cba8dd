"""The operator that computes an instruction in hardware, and the memories that an instruction accesses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hls_schedule.reading.layout import Types, bits_of
from hls_schedule.reading.llvm_text import Instruction, arguments_of, split

_OPERATORS = {
    "add": "add", "sub": "add", "icmp": "compare", "select": "select", "and": "logic", "or": "logic", "xor": "logic",
    "shl": "shift", "lshr": "shift", "ashr": "shift", "mul": "mul", "sdiv": "sdiv", "udiv": "sdiv", "srem": "sdiv",
    "urem": "sdiv", "fadd": "fadd", "fsub": "fadd", "fmul": "fmul", "fdiv": "fdiv", "fcmp": "fcmp",
    "sitofp": "sitofp", "uitofp": "sitofp", "fptosi": "fcmp", "fptoui": "fcmp",
}  # fmt: skip
"""The operator of each instruction in the table of delays. Every other instruction is wiring."""

_CALLS = (
    (r"_ssdm_op_ReadReq|axi_read_request", "axi_request"),
    (r"_ssdm_op_WriteResp|axi_write_response", "axi_response"),
    # A word, or the request of a write burst: both take one cycle.
    (r"_ssdm_op_(?:Read|Write).*m_axi|\d+axi_(?:read|write)|axi_write_request", "axi_word"),
    (r"fifo_(?:read|write|empty|full)|_ssdm_op_(?:Read|Write).*ap_fifo", "fifo"),
    (r"hls_schedule(?:5bound|3cut|_note)", ""),
    (r"_ssdm_op_\w+|llvm\.(?:lifetime|assume|experimental|mem|fabs|dbg|va_)|\"//", ""),
    (r"llvm\.(?:[su](?:max|min)|abs|[su](?:add|sub)\.sat|[su]cmp)", "maximum"),
    (r"llvm\.fsh[lr]|llvm\.bswap|llvm\.bitreverse", ""),
    (r"sqrt", "fsqrt"),
    (r"[mM]ux", "multiplexer"),
)
"""Patterns of called functions, with their operators. Any other function has the operator ``function``."""

_FLAGS = re.compile(
    r"^(?:(?:nuw|nsw|exact|disjoint|nneg|samesign|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|volatile|atomic|"
    r"eq|ne|[us](?:gt|ge|lt|le)|o(?:gt|ge|lt|le|eq|ne|rd)|u(?:eq|ne|no)) )+"
)


_FUNCTION = re.compile(r"@(\"[^\"]*\"|[-\w$.]+)\(")
_LENGTH = re.compile(r"\d+")


@dataclass(frozen=True)
class Operator:
    """The hardware operator of an instruction, and its width.

    Attributes:
        name: Its name in the table of delays; "" for wiring.
        bits: The width that decides its delay.
    """

    name: str
    bits: int


def operator_of(instruction: Instruction) -> Operator:
    """Return the hardware operator that computes an LLVM instruction's result, or wiring."""
    if instruction.opcode == "call":
        return _called(instruction.text)
    text = _FLAGS.sub("", instruction.text)
    pieces = split(text)
    if instruction.opcode == "select":
        return Operator("select", bits_of(pieces[1].split()[0]))
    if instruction.opcode in ("shl", "lshr", "ashr") and not pieces[-1].lstrip().startswith("%"):
        return Operator("", 0)
    name = _OPERATORS.get(instruction.opcode, "")
    if name in ("mul", "sdiv") and _power_of_two(pieces[-1].removeprefix("-")):
        name = "add" if instruction.opcode.startswith("s") else ""
    return Operator(name, bits_of(text.split()[0]) if name else 0)


def _power_of_two(text: str) -> bool:
    return text.isdigit() and int(text) & (int(text) - 1) == 0


def _called(text: str) -> Operator:
    name = next((operator for pattern, operator in _CALLS if re.search(pattern, text)), "function")
    kind = next(iter(re.findall(r"\bi\d+\b|float|double|half", text)), "i32")
    return Operator(name, bits_of(kind))


def memory_accesses(instruction: Instruction, types: Types) -> Iterator[tuple[str, bool, int, bool]]:
    """Yield every memory access of an instruction: pointer operand, whether it is a write, bytes, whether it is a
    stream."""
    if instruction.opcode == "load":
        pieces = split(_FLAGS.sub("", instruction.text))
        yield pieces[1], False, _bytes(pieces[0], types), False
    elif instruction.opcode == "store":
        pieces = split(_FLAGS.sub("", instruction.text))
        yield pieces[1], True, _bytes(pieces[0].partition(" ")[0] if " " in pieces[0] else pieces[0], types), False
    elif instruction.opcode == "call" and "//" not in instruction.text and "llvm.lifetime" not in instruction.text:
        yield from _passed(instruction.text, types)


def _bytes(kind: str, types: Types) -> int:
    """Return the number of bytes that an access to a value of a type reaches: 3 for an i24, although it takes 4 bytes
    in an array."""
    return min(types.size(kind), -(-bits_of(kind) // 8)) if kind.startswith("i") else types.size(kind)


def _passed(text: str, types: Types) -> Iterator[tuple[str, bool, int, bool]]:
    arguments = arguments_of(text)
    if "llvm.memcpy" in text or "llvm.memmove" in text or "llvm.memset" in text:
        size = arguments[2].split()[-1]
        length = int(size) if size.isdigit() else 1
        yield arguments[0], True, length, False
        if "llvm.memset" not in text:
            yield arguments[1], False, length, False
        return
    stream = re.search(r"fifo_(?:read|write)|axi_(?:read|write)\w*", text)
    if stream is None:
        return
    writes = "write" in stream[0]
    for argument in arguments:
        if "sret" in argument or "byval" in argument:
            kind = re.search(r"(?:sret|byval)\((.*?)\)", argument)
            yield argument, "sret" in argument, types.size(kind[1]) if kind else 8, False
        elif argument.startswith("ptr"):
            yield argument, writes, 1, True


def called_name(text: str) -> str:
    """Return the name of the function that a call's text calls, without namespaces and arguments."""
    called = _FUNCTION.search(text)
    mangled = called[1] if called is not None else ""
    names = list(_source_names(mangled)) if mangled.startswith("_Z") else [mangled]
    return names[-1] if names else mangled


def _source_names(mangled: str) -> Iterator[str]:
    """Yield the names at the start of a mangled name: a length and then the name, each."""
    place = 3 if mangled.startswith("_ZN") else 2
    while (length := _LENGTH.match(mangled, place)) is not None:
        place = length.end() + int(length[0])
        yield mangled[length.end() : place]
