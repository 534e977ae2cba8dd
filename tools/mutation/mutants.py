"""Lists the places where a module can be mutated by Cosmic Ray's operators, with one mutant per place."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

_WITHOUT_MEANING = ("RemoveDecorator", "VariableInserter", "VariableReplacer", "_Is", "_IsNot")
"""Operators without use: a missing cache is only slow, `is` of small integers equals `==`, and two need arguments."""


@dataclass(frozen=True, order=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: The file.
        line: Line of the change, from 1.
        column: Column of the change.
        operator: Cosmic Ray's operator.
        occurrence: Number of the operator's place in the file, from 0.
    """

    path: str
    line: int
    column: int
    operator: str
    occurrence: int

    def source(self, root: Path) -> str:
        """Return the file's text with the mutation."""
        text: str = mutate_code(original(root, self.path), _operators()[self.operator], self.occurrence)
        return text

    def lines(self, root: Path) -> tuple[str, str]:
        """Return the changed line before and after."""
        texts = original(root, self.path), self.source(root)
        line, mutated = (text.splitlines()[self.line - 1].strip() for text in texts)
        return line, mutated

    def difference(self, root: Path) -> str:
        """Return the place and both lines, for a person."""
        line, mutated = self.lines(root)
        return f"{self.path}:{self.line}\n  - {line}\n  + {mutated}"


def sample(root: Path, paths: list[str], size: int | None, seed: int) -> tuple[list[Mutant], int]:
    """Draw one mutant at each place of these files. Return `size` of them, or all, and the number of places."""
    draw = random.Random(seed)
    population = [draw.choice(choices) for path in sorted(paths) for choices in _places(root, path)]
    drawn = population if size is None or size >= len(population) else draw.sample(population, size)
    return sorted(drawn), len(population)


@cache
def original(root: Path, path: str) -> str:
    """Return the file's text as it was at the start of the run."""
    return (root / path).read_text("utf-8")


@cache
def _operators() -> dict[str, Operator]:
    names = [name for name in operator_names() if not name.endswith(_WITHOUT_MEANING)]
    return {name.removeprefix("core/"): get_operator(name)() for name in names}


def _places(root: Path, path: str) -> Iterator[list[Mutant]]:
    """Yield the mutants of each place and kind of operator, in the order of the file."""
    text = original(root, path)
    meaningless = list(_meaningless(text))
    places: dict[tuple[int, int, str], list[Mutant]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast(text)))
    for name, operator in _operators().items():
        positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (line, column) in enumerate(positions):
            mutant = Mutant(path, line, column, name, occurrence)
            if not any(start <= (line, column) < end for start, end in meaningless) and _can_be_made(mutant, text):
                places[line, column, name.split("_")[0]].append(mutant)
    yield from (mutants for _, mutants in sorted(places.items()))


def _can_be_made(mutant: Mutant, text: str) -> bool:
    """Return False for a dotted name among several exceptions, which Cosmic Ray cannot replace."""
    if mutant.operator != "ExceptionReplacer":
        return True
    try:
        mutate_code(text, _operators()[mutant.operator], mutant.occurrence)
    except AttributeError:
        return False
    return True


def _meaningless(text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the spans of code whose mutation cannot change results.

    These are types, decorators (frozen classes, caches), and `strict` of a zip, which guards against impossible cases.
    """
    for node in ast.walk(ast.parse(text)):
        spans = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        spans += getattr(node, "decorator_list", [])
        if isinstance(node, ast.keyword) and node.arg == "strict":
            spans.append(node.value)
        for span in spans:
            if isinstance(span, ast.expr):
                yield (span.lineno, span.col_offset), (span.end_lineno or 0, span.end_col_offset or 0)
