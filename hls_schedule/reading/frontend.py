"""Compiling HLS C++ to LLVM IR: preprocessing as for synthesis, reading pragmas, and running clang (package ziglang).

Loops are unrolled as in Vitis HLS: loops inside a pipelined loop are, pipelined loops are not. ``include/`` has the
headers that a check compiles against: integers of any width, streams and bursts.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path

from boards.errors import MissingToolError, ToolError
from hls_schedule.pragmas import Pragma
from hls_schedule.reading.loops import closing, label_of, loop_start, opening, surroundings

NOTED = ("AGGREGATE", "ARRAY_RESHAPE", "BIND_STORAGE")
"""Pragmas whose array is marked in the compiled code. These arrays stay memories. For other pragmas, the name of the
array must suffice, because a mark would keep the array from becoming registers."""

INCLUDE = Path(__file__).with_name("include")
COMMON = (
    "-target", "x86_64-linux-gnu", "-std=c++17", "-w", "-fno-exceptions", "-fno-sanitize=all", "-ffp-contract=off",
    "-fconvergent-functions",
)  # fmt: skip
"""Options of every run of clang. If functions are convergent, no pass copies the marks of a loop of two iterations."""

OPTIMISED = ("-O2", "-S", "-emit-llvm", "-g", "-fno-builtin-memset", "-fno-vectorize", "-fno-slp-vectorize")
TUNING = (
    "unroll-threshold=1000000", "unroll-full-max-count=4096", "inline-threshold=1000000", "unroll-runtime=0",
    "unroll-allow-partial=0", "unroll-allow-peeling=0", "indvars-widen-indvars=0", "enable-load-pre=0",
    "jump-threading-threshold=0", "disable-loop-idiom-all",
)  # fmt: skip
"""Options of LLVM's passes. Everything that can be is inlined and unrolled. Counters keep their width. Copies between
registers do not become memory copies, which would turn many registers into one."""


@dataclass(frozen=True)
class Mark:
    """A mark of a pipelined loop in the sources.

    Attributes:
        file: The source file.
        line: The source line of the mark.
        label: The label of the loop; "" if it has none.
        of_loop: Whether the mark is in a loop; a mark elsewhere pipelines a whole function.
    """

    file: str
    line: int
    label: str
    of_loop: bool

    @property
    def source(self) -> str:
        """The mark's place as ``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Compiled:
    """A compiled translation unit of HLS C++.

    Attributes:
        text: LLVM IR with debug information.
        pragmas: The pragmas of all sources, in their order.
        marks: The marks of pipelined loops, each with its loop's label.
    """

    text: str
    pragmas: tuple[Pragma, ...]
    marks: tuple[Mark, ...]


def compile_sources(source: Path, include: Sequence[Path] = (), defines: Sequence[str] = ()) -> Compiled:
    """Compile one translation unit of HLS C++ to LLVM IR, and read its pragmas.

    Raises:
        MissingToolError: The package ziglang is not installed.
        ToolError: clang refuses the code.
    """
    if find_spec("ziglang") is None:
        raise MissingToolError("the package ziglang", "compile the sources", remedy="pip install -e '.[check]'")
    folders = [f"-I{folder}" for folder in (INCLUDE, *include)]
    macros = [f"-D{name}" for name in ("__SYNTHESIS__", *defines)]
    expanded = _clang(
        [*COMMON, *macros, *folders, "-include", str(INCLUDE / "marks.h"), "-E", source.name], source.parent
    )
    pragmas = tuple(_pragmas(expanded))
    expanded = _TABLE.sub(_without_values, expanded)
    with tempfile.TemporaryDirectory(prefix="hls_schedule_") as scratch:
        unit, result = Path(scratch, "unit.cpp"), Path(scratch, "unit.ll")
        text, marks = _marked(expanded)
        unit.write_text(text, "utf-8")
        tuning = [word for option in TUNING for word in ("-mllvm", f"-{option}")]
        _clang([*COMMON, *OPTIMISED, *tuning, "-x", "c++", str(unit), "-o", str(result)], source.parent)
        return Compiled(result.read_text("utf-8"), pragmas, marks)


def _clang(arguments: Sequence[str], folder: Path) -> str:
    command = [sys.executable, "-m", "ziglang", "c++", *arguments]
    result_of_clang = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result_of_clang.returncode:
        first = next(
            (line for line in result_of_clang.stderr.splitlines() if "error" in line),
            result_of_clang.stderr.strip()[:300],
        )
        raise ToolError("clang", "does not compile the sources for a check", first, where=str(folder))
    return result_of_clang.stdout


_TABLE = re.compile(r"static const ([^;={}]*?((?:\[\d+\])+)) = \{([-\d,\s]*)\};")
_MAX_LITERALS = 1 << 14
"""Limit for the values of a table that the compiler reads. No pass looks into larger tables, but each literal takes
nearly a kilobyte of the compiler's memory, and a network has millions."""


def _without_values(table: re.Match[str]) -> str:
    """Return the text of a constant table; a large one loses its values, but keeps its number of lines.

    It is declared as a table that another unit may define, so that the compiler does not take its values to be 0.
    """
    if prod(map(int, re.findall(r"\d+", table[2]))) <= _MAX_LITERALS:
        return table[0]
    return f"extern __attribute__((weak)) {table[1]} = {{}};" + "\n" * table[3].count("\n")


_MARKER = re.compile(r'# (\d+) "(.*?)"')
_PRAGMA = re.compile(r"\s*#\s*pragma\s+HLS\s+(.*)", re.IGNORECASE)


def _pragmas(expanded: str) -> Iterator[Pragma]:
    for text, (file, line) in zip(expanded.splitlines(), _places(expanded), strict=True):
        pragma = _PRAGMA.match(text)
        if pragma is not None:
            yield Pragma(file, line, pragma[1].strip())


def _places(expanded: str) -> Iterator[tuple[str, int]]:
    """Yield the file and the line of the sources that each line of preprocessed sources comes from."""
    file, line = "", 0
    for text in expanded.splitlines():
        marker = _MARKER.match(text)
        if marker is not None:
            file, line = Path(marker[2]).name, int(marker[1]) - 1
        else:
            line += 1
        yield file, line


def _marked(expanded: str) -> tuple[str, tuple[Mark, ...]]:
    """Return the sources with pragmas replaced by code that survives compilation, and the marks of pipelined loops.

    A mark replaces each PIPELINE pragma. A loop with a mark and the loops around it are not unrolled, but a loop within
    another loop with a mark is. Calls mark the arrays and the results that other pragmas name.
    """
    lines, number = [], 0
    for text in expanded.splitlines():
        pragma = _PRAGMA.match(text)
        lines.append(text if pragma is None else _mark(pragma[1], number))
        number += pragma is not None
    text = "\n".join(lines) + "\n"
    found, kept, ends = _pipelined(text, tuple(_places(expanded)))
    insertions = dict.fromkeys(kept, _ROLLED) | dict.fromkeys(ends, _END)
    for binding in _BOUND.finditer(text):
        insertions[_given(text, binding)] = f"::hls_schedule::bind<{binding[1]}>({binding[2]});"
    for position in sorted(insertions, reverse=True):
        text = text[:position] + insertions[position] + text[position:]
    return text, found


def _pipelined(text: str, places: Sequence[tuple[str, int]]) -> tuple[tuple[Mark, ...], set[int], set[int]]:
    """Return the marks, the starts of the loops that stay loops, and the ends of the bodies of loops with a mark."""
    marks: list[Mark] = []
    bodies: dict[int, int] = {}
    for mark in re.finditer(r'"//pipeline"', text):
        body = opening(text, mark.start(), "{", "}")
        start = loop_start(text, body)
        file, line = places[text.count("\n", 0, mark.start())]
        marks.append(Mark(file, line, label_of(text, start) if start >= 0 else "", start >= 0))
        if start >= 0:
            bodies[start] = closing(text, body)
    nested = {start for start in bodies for first, end in bodies.items() if first < start < end}
    pipelined = {start: end for start, end in bodies.items() if start not in nested}
    return tuple(marks), {*pipelined, *_around(text, pipelined)}, set(pipelined.values())


def _around(text: str, pipelined: Mapping[int, int]) -> Iterator[int]:
    """Yield the starts of the loops around pipelined ones, also of those that call a function with a pipelined loop."""
    waiting, called = list(pipelined), set()
    while waiting:
        around = surroundings(text, waiting.pop())
        yield from around.loops
        if around.function and around.function not in called:
            called.add(around.function)
            calls = (call.start() for call in re.finditer(rf"\b{around.function}\s*(?:<[^;{{}}()]*>)?\(", text))
            waiting += [call for call in calls if not any(start < call < end for start, end in pipelined.items())]


def _mark(words: str, number: int) -> str:
    kind = words.split()[0].upper() if words.split() else ""
    if kind == "PIPELINE" and "off" not in words.lower():
        interval = re.search(r"\bII\s*=\s*(\S+)", words, re.IGNORECASE)
        return f'__asm__ volatile("//pipeline" :: "i"(int({interval[1] if interval else 1})), "i"(0));'
    variable = re.search(r"\bvariable\s*=\s*(\w+)", words)
    if kind == "BIND_OP" and variable:
        return f"/*bound {number} {variable[1]}*/"
    noted = kind in NOTED and variable is not None and variable[1] != "return"
    return f"::hls_schedule::note({number}, {variable[1]});" if noted and variable else ""


_BOUND = re.compile(r"/\*bound (\d+) (\w+)\*/")


def _given(text: str, binding: re.Match[str]) -> int:
    """Return the position in the text at which a BIND_OP's variable has its value: at the pragma, or after the next
    assignment."""
    assignment = re.compile(rf"\b{binding[2]}\s*=(?!=)")
    if assignment.search(text, text.rfind("{", 0, binding.start()) + 1, binding.start()):
        return binding.end()
    following = assignment.search(text, binding.end())
    return text.index(";", following.end()) + 1 if following else binding.end()


_ROLLED = '_Pragma("clang loop unroll(disable)") '
_END = '__asm__ volatile("//end");'
"""Code at the end of an iteration. Without it, the compiler may split a loop whose last branches lead to its start into
two loops."""
