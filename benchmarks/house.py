"""How readable the code is, in numbers that tests/test_house.py holds: ``python -m benchmarks.house [PLACE]``.

Counted over the rooms and the benchmarks, without tests. Complexity is McCabe's, as radon counts it.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from radon.complexity import cc_visit

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "boards",
    "cnn",
    "scheduler",
    "hls_schedule",
    "hls_templates",
    "rtl_templates",
    "host",
    "systolic",
    "benchmarks",
)

MODULE_LINES, FUNCTION_LINES, PARAMETERS, COMPLEXITY, FOLDER_MODULES = 350, 60, 6, 12, 12
"""The most that a module, a function or a folder may have."""

VAGUE_SHARE = 0.02
"""The most of all bindings."""

_COUNTED = (".py", ".h", ".cpp", ".j2")
_SENTENCE_WORDS = 5

_WORDS = """
    after all_ asked at before began came deep did done else_ following found from_ gave given gone have held her here
    his in_ inner inside into its kept known least left made many mine more most moved much near need of off on one ones
    only other others out_ over own per ready rest said same seen some such taken that them then there these they thing
    things this those till to told too under until used wanted what when where which who whole whose wide with_ yet
"""

VAGUE = frozenset(_WORDS.split())
"""Words that say nothing of the thing they name; a name of several words is not vague."""


@dataclass(frozen=True)
class Function:
    """lines: with signature and docstring. parameters: without self and cls."""

    place: str
    name: str
    lines: int
    parameters: int
    public: bool
    documented: bool


@dataclass(frozen=True)
class Measures:
    """What the code is like. vague: the share of bindings (names of variables, parameters, functions, classes)."""

    modules: tuple[tuple[str, int], ...]  # (place, lines)
    functions: tuple[Function, ...]
    complexity: tuple[tuple[str, int], ...]  # (place, McCabe's number)
    named: tuple[tuple[str, str], ...]  # (place, name)
    folders: tuple[tuple[str, int], ...]  # (place, Python modules, headers and templates, without __init__)
    packages: tuple[tuple[str, str], ...]  # (place, docstring)

    @property
    def vague(self) -> float:
        return sum(name in VAGUE for _, name in self.named) / len(self.named)

    @property
    def documented(self) -> float:
        """Of public functions and classes outside classes, the share with a docstring."""
        public = [function for function in self.functions if function.public]
        return sum(function.documented for function in public) / len(public)


def measure(root: Path = ROOT, rooms: tuple[str, ...] = ROOMS) -> Measures:
    """Reads every module of ``rooms``."""
    modules: list[tuple[str, int]] = []
    functions: list[Function] = []
    complexity: list[tuple[str, int]] = []
    named: list[tuple[str, str]] = []
    packages: list[tuple[str, str]] = []
    for path in (path for room in rooms for path in sorted((root / room).rglob("*.py"))):
        text, place = path.read_text("utf-8"), path.relative_to(root).as_posix()
        tree = ast.parse(text)
        modules.append((place, text.count("\n")))
        if path.name == "__init__.py":
            packages.append((place, ast.get_docstring(tree) or ""))
        functions += _functions(tree, place)
        named += [(f"{place}:{line}", name) for line, name in _bindings(tree)]
        blocks = cc_visit(text)
        complexity += [
            (f"{place}:{block.lineno} {block.name}", block.complexity) for block in blocks if _is_code(block)
        ]
    folders = tuple(count for room in rooms for count in _folders(root, room))
    return Measures(tuple(modules), tuple(functions), tuple(complexity), tuple(named), folders, tuple(packages))


def _folders(root: Path, room: str) -> list[tuple[str, int]]:
    """Every folder with modules, and how many lie in it."""
    paths = [path for path in (root / room).rglob("*") if path.suffix in _COUNTED and path.name != "__init__.py"]
    return sorted(Counter(path.parent.relative_to(root).as_posix() for path in paths).items())


def _is_code(block: object) -> bool:
    return type(block).__name__ == "Function"  # a class sums up its methods


def _functions(tree: ast.Module, place: str) -> Iterator[Function]:
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno:
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = sum(argument.arg not in ("self", "cls") for argument in arguments)
            yield Function(
                f"{place}:{node.lineno}",
                node.name,
                node.end_lineno - node.lineno + 1,
                count,
                id(node) in top and not node.name.startswith("_"),
                ast.get_docstring(node) is not None,
            )


def _bindings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of everything that is given a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name


def report(measures: Measures) -> str:
    """A markdown table, as docs/architecture.md has it."""
    lines = sorted(function.lines for function in measures.functions)
    rows = [
        ("modules", f"{len(measures.modules)}"),
        ("longest module, lines", f"{max(count for _, count in measures.modules)}"),
        ("functions", f"{len(lines)}"),
        ("median function, lines", f"{median(lines):g}"),
        ("longest function, lines", f"{lines[-1]}"),
        ("most modules in a folder", f"{max(count for _, count in measures.folders)}"),
        ("most parameters", f"{max(function.parameters for function in measures.functions)}"),
        ("highest complexity", f"{max(number for _, number in measures.complexity)}"),
        ("vague bindings", f"{measures.vague:.1%}"),
        ("public functions with a docstring", f"{measures.documented:.0%}"),
    ]
    return "\n".join(["| measure | value |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)])


def worst(measures: Measures, room: str = "") -> str:
    """What is over the limits, a line each, by place; ``room`` narrows it to a folder and what is in it."""
    rows = [*_over(measures), *(row for function in measures.functions for row in _over_in(function))]
    return "\n".join(row for row in rows if not room or row.startswith((f"{room}:", f"{room}/")))


def _over(measures: Measures) -> Iterator[str]:
    limits = (
        (measures.modules, MODULE_LINES, "{} lines"),
        (measures.folders, FOLDER_MODULES, "{} modules"),
        (measures.complexity, COMPLEXITY, "complexity {}"),
    )
    for counts, limit, text in limits:
        yield from (f"{place}: {text.format(count)}" for place, count in counts if count > limit)
    yield from (f"{place}: no sentence in its docstring" for place, text in measures.packages if not _is_sentence(text))


def _over_in(function: Function) -> Iterator[str]:
    place = f"{function.place} {function.name}"
    if function.parameters > PARAMETERS:
        yield f"{place}: {function.parameters} parameters"
    if function.lines > FUNCTION_LINES:
        yield f"{place}: {function.lines} lines"
    if function.public and not function.documented:
        yield f"{place}: no docstring"


def _is_sentence(text: str) -> bool:
    return len(text.split()) >= _SENTENCE_WORDS and "." in text


def vague_places(measures: Measures, room: str = "") -> str:
    """A line a vague binding."""
    rows = (f"{place} {name}" for place, name in measures.named if name in VAGUE)
    return "\n".join(row for row in rows if row.startswith(room))


if __name__ == "__main__":
    measures = measure()
    print(report(measures))
    for room in sys.argv[1:]:
        print(worst(measures, room), vague_places(measures, room), sep="\n")
