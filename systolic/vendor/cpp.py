"""The generated C++ as text: functions, what they call, loops with their PIPELINE, memories with their BIND_STORAGE.

It reads what this project generates, and nothing of C++ beyond: no macro is expanded but constants, and of conditions
only ``__SYNTHESIS__`` is decided. Lines are those of the file, which is how the vendor's tool names loops.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from boards.errors import FileAccessError, UnsupportedError
from systolic.execution.verilate import is_rtl

LARGEST_SOURCE = 256 << 20
"""Bytes; weights that a design embeds may have some million."""


@dataclass(frozen=True)
class DeclaredLoop:
    """A loop with a PIPELINE directive. file: its name, without folders. line: of its ``for`` or ``while``, which is
    how the tool names it; directive: the line of SYSTOLIC_PIPELINE. ii, depth: None where they are not constants."""

    function: str
    file: str
    line: int
    directive: int
    ii: int | None
    depth: int | None

    @property
    def source(self) -> str:
        """FILE:LINE of the directive."""
        return f"{self.file}:{self.directive}"


@dataclass(frozen=True)
class DeclaredStorage:
    """A memory with a BIND_STORAGE directive. impl: as written there, maybe a macro."""

    function: str
    file: str
    line: int
    variable: str
    impl: str


@dataclass(frozen=True)
class Function:
    """template, parameters: their text, "" where there are none. process: its name in traces, "" of a part of one."""

    name: str
    file: str
    line: int
    template: str
    parameters: str
    body: str = field(repr=False)
    loops: tuple[DeclaredLoop, ...] = ()
    storages: tuple[DeclaredStorage, ...] = ()
    process: str = ""

    @cached_property
    def calls(self) -> frozenset[str]:
        """Names before a bracket, with arguments of a template or without."""
        return frozenset(re.findall(r"\b([A-Za-z_]\w*)\s*(?:<[^;{}()]*>)?\s*\(", self.body))


@dataclass(frozen=True)
class Sources:
    """All functions of a design's sources for synthesis. macros: name → (value, comment behind it). texts: file → its
    code without comments."""

    functions: tuple[Function, ...]
    macros: Mapping[str, tuple[str, str]]
    texts: Mapping[str, str] = field(repr=False)

    def named(self, name: str) -> Function | None:
        """A process of that name, in the code or in traces, else the first function of it."""
        processes = [function for function in self.functions if function.process]
        ranks = (
            (function for function in processes if function.name == name),
            (function for function in processes if function.process == name),
            (function for function in self.functions if function.name == name),
        )
        return next((function for rank in ranks for function in rank), None)

    def reached(self, name: str) -> frozenset[str]:
        """Names of all functions that ``name`` calls, and what those call; itself too."""
        bodies = self._calls
        callees: set[str] = set()
        waiting = [name] if name in bodies else []
        while waiting:
            caller = waiting.pop()
            if caller not in callees:
                callees.add(caller)
                waiting += (bodies[caller] & bodies.keys()) - callees
        return frozenset(callees)

    @cached_property
    def _calls(self) -> dict[str, frozenset[str]]:
        """Name → what the functions of that name call. Reports ask it for thousands of loops."""
        bodies: dict[str, frozenset[str]] = {}
        for function in self.functions:
            bodies[function.name] = bodies.get(function.name, frozenset()) | function.calls
        return bodies


def read_sources(folder: Path) -> Sources:
    """Read ``src/`` in a design's folder; FileAccessError if it cannot be read, UnsupportedError if it is in
    SystemVerilog."""
    texts, macros = {}, {}
    for path in sorted((folder / "src").glob("*")):
        if path.suffix in (".h", ".cpp"):
            text = _read(path)
            macros.update(_macros(text))
            texts[path.name] = synthesised(text)
    if is_rtl(folder):
        raise UnsupportedError(
            f"comparing {folder} with the vendor's reports",
            "its engine is in SystemVerilog, and only reports about C++ are read",
            remedy="read what build_vivado.tcl leaves in vivado/utilization.rpt and vivado/timing.rpt",
        )
    if not texts:
        remedy = "copy the whole generated folder"
        raise FileAccessError(str(folder / "src"), "holds no C++", "folder", remedy=remedy)
    constants = _constants(list(texts.values()), macros)
    functions = tuple(function for name, text in texts.items() for function in _functions(name, text, constants))
    return Sources(functions, macros, texts)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_SOURCE + 1)
    except OSError as error:
        reason, remedy = f"cannot be read: {error.strerror}", "copy the whole generated folder"
        raise FileAccessError(str(path), reason, "source", remedy=remedy) from error
    if len(data) > LARGEST_SOURCE:
        reason = f"has more than {LARGEST_SOURCE:,} bytes, which no generated source has"
        raise FileAccessError(str(path), reason, "source")
    return data.decode("utf-8", "replace")


# --- text ----------------------------------------------------------------------------------------------------------

_NOT_CODE = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def synthesised(text: str) -> str:
    """Code without comments and without what __SYNTHESIS__ leaves out: blanks in their place, so that lines stay. Of
    directives only pragmas stay."""
    code = _NOT_CODE.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"[^\n]", " ", match[0]), text)
    lines: list[str] = []
    conditions: list[tuple[bool, bool]] = []  # of each #if around: whether this part stays, and what follows its #else
    continued = False
    for line in code.split("\n"):
        directive = _DIRECTIVE.match(line)
        word = directive[1] if directive else ""
        _follow(word, line, conditions)
        stays = not continued and word in ("", "pragma") and all(part for part, _ in conditions)
        lines.append(line if stays else "")
        continued = line.endswith("\\") and (continued or bool(word))
    return "\n".join(lines)


_DIRECTIVE = re.compile(r"\s*#\s*(\w+)")


def _follow(directive: str, line: str, conditions: list[tuple[bool, bool]]) -> None:
    """Of conditions that do not ask for __SYNTHESIS__ alone, both parts stay."""
    if directive == "ifndef" and "__SYNTHESIS__" in line:
        conditions.append((False, True))
    elif directive in ("if", "ifdef", "ifndef"):
        conditions.append((True, not re.search(r"(?:ifdef|[ (]defined)[ (]+__SYNTHESIS__", line)))
    elif directive in ("else", "elif") and conditions:
        conditions[-1] = (conditions[-1][1], conditions[-1][1])
    elif directive == "endif" and conditions:
        conditions.pop()


# --- constants -----------------------------------------------------------------------------------------------------

_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)[ \t]+([^\n/]*?)[ \t]*(?://[ \t]*([^\n]*))?$", re.MULTILINE
)
_CONSTANT = re.compile(r"\bconst(?:expr)?\s+(?:unsigned\s+)?(?:int|long|unsigned)\s+([A-Za-z_]\w*)\s*=\s*([^;{}]+);")

LONGEST_EXPRESSION = 200  # characters

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def _macros(text: str) -> dict[str, tuple[str, str]]:
    return {name: (value.strip(), (comment or "").strip()) for name, value, comment in _MACRO.findall(text)}


def _constants(texts: Sequence[str], macros: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Name → expression; a name with several is left out."""
    values: dict[str, set[str]] = {name: {value} for name, (value, _) in macros.items()}
    for text in texts:
        for name, value in _CONSTANT.findall(text):
            values.setdefault(name, set()).add(" ".join(value.split()))
    return {name: next(iter(expressions)) for name, expressions in values.items() if len(expressions) == 1}


def constant(expression: str, constants: Mapping[str, str], levels: int = 8) -> int | None:
    """Of +, −, · and / of constants; None of anything else."""
    if len(expression) > LONGEST_EXPRESSION:
        return None
    try:
        tree = ast.parse(expression.strip().replace("/", "//"), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return _value(tree.body, constants, levels)


def _value(node: ast.expr, constants: Mapping[str, str], levels: int) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name) and node.id in constants and levels:
        return constant(constants[node.id], constants, levels - 1)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        first, second = _value(node.left, constants, levels), _value(node.right, constants, levels)
        if first is None or second is None or (second == 0 and isinstance(node.op, ast.FloorDiv)):
            return None
        return _OPERATORS[type(node.op)](first, second)
    return None


# --- functions -----------------------------------------------------------------------------------------------------

_NO_FUNCTION = frozenset(["if", "for", "while", "switch", "catch", "return", "sizeof"])
_PROCESS = re.compile(r'\bSYSTOLIC_PROCESS\(\s*"([^"]*)"')
_PIPELINE = re.compile(r"\bSYSTOLIC_PIPELINE\(([^(),]*),([^()]*)\)")
_BOUND = re.compile(r"; *\w+ *<([^;<=>]*);[^;]*$")
_STORAGE = re.compile(r"HLS\s+BIND_STORAGE\s+variable\s*=\s*(\w+)[^\n]*?\bimpl\s*=\s*(\w+)")


@dataclass(frozen=True)
class _Head:
    """What stands before a function's brace. preceding: return type and template."""

    preceding: str
    name: str
    parameters: str


def _head(text: str) -> _Head | None:
    """None where a brace behind ``text`` opens no function."""
    code = re.sub(r"^[ \t]*#[^\n]*", "", text, flags=re.MULTILINE).strip()
    code = code.removesuffix("noexcept").rstrip().removesuffix("const").rstrip()
    if not code.endswith(")"):
        return None
    opening = _opening(code)
    preceding = code[:opening].rstrip()
    name = re.search(r"[A-Za-z_]\w*\Z", preceding)
    if name is None or name[0] in _NO_FUNCTION or "=" in preceding.rpartition(">")[2]:
        return None
    return _Head(preceding[: name.start()], name[0], code[opening + 1 : -1])


def _functions(file: str, text: str, constants: Mapping[str, str]) -> Iterator[Function]:
    """Of namespaces and structs too: what stands before a brace says whether it is a function."""
    start = end = 0
    for match in re.finditer(r"[{};]", text):
        position = match.start()
        if position < end:
            continue
        head = _head(text[start:position]) if match[0] == "{" else None
        if head is not None:
            end = _closing(text, position)
            yield _function(file, text, (position, end), head, constants)
        elif match[0] == "{" and text[start:position].rstrip().endswith("="):
            end = _closing(text, position)  # the values of an array
        start = max(end, position) + 1


def _closing(text: str, opening: int) -> int:
    """Where the brace that opens at ``opening`` closes, or the end."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, opening):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(text)


def _function(file: str, text: str, span: tuple[int, int], head: _Head, constants: Mapping[str, str]) -> Function:
    body = text[span[0] : span[1]]
    name, line = head.name, text.count("\n", 0, span[0]) + 1
    template = re.search(r"template\s*<(.*)>", head.preceding, re.DOTALL)
    process = _PROCESS.search(body)
    constants = {**constants, **{own: " ".join(value.split()) for own, value in _CONSTANT.findall(body)}}
    loops = (_loop(name, file, text, span[0] + match.start(), match, constants) for match in _PIPELINE.finditer(body))
    storages = tuple(
        DeclaredStorage(name, file, line + body.count("\n", 0, match.start()), match[1], match[2])
        for match in _STORAGE.finditer(body)
    )
    return Function(
        name,
        file,
        line,
        template[1] if template else "",
        " ".join(head.parameters.split()),
        body,
        tuple(loop for loop in loops if loop is not None),
        storages,
        process[1] if process else "",
    )


def _loop(
    function: str, file: str, text: str, position: int, pipeline: re.Match[str], constants: Mapping[str, str]
) -> DeclaredLoop | None:
    """Of the loop whose body ``position`` is in; its line is that of the keyword. None of a loop of no iterations,
    which a compiler leaves out."""
    depth, directive = 0, text.count("\n", 0, position) + 1
    while position > 0 and depth >= 0:
        position -= 1
        depth += (text[position] == "}") - (text[position] == "{")
    code = text[:position].rstrip()
    if code.endswith(")"):
        bound = _BOUND.search(code, _opening(code))
        if bound and constant(bound[1], constants) == 0:
            return None
        code = code[: _opening(code)].rstrip()
    line = code.count("\n") + 1
    return DeclaredLoop(
        function, file, line, directive, constant(pipeline[1], constants), constant(pipeline[2], constants)
    )


def _opening(text: str) -> int:
    """Where the bracket opens that closes at the end of ``text``."""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += (text[position] == ")") - (text[position] == "(")
        if depth == 0:
            return position
    return 0
