"""Draws the mutants that are kept, with a seed, from every package that computes integers, cycles or files."""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.comments import Kind, pieces
from tools.mutation.mutants import sample

SHARES: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "cnn": (18, ("cnn",)),
    "scheduler": (22, ("scheduler",)),
    "systolic": (14, ("systolic/styles", "systolic/trace", "systolic/execution", "systolic/evaluation")),
    "host": (14, ("contract", "host/contract", "host/systolic", "host/streaming", "host/vision")),
    "hls_schedule": (6, ("hls_schedule",)),
    "hls_templates": (14, ("hls_templates/common", "hls_templates/systolic", "hls_templates/streaming")),
    "rtl_templates": (12, ("rtl_templates/array", "rtl_templates/common", "rtl_templates/control",
                           "rtl_templates/loader", "rtl_templates/saver")),
}  # fmt: skip
"""Number of mutants per package, and the folders from which they are drawn."""

FOR_THE_EYE = ("cnn/training", "figures.py", "report.py", "timeline.py", "drawing.py")
"""Parts of paths to leave out: they draw, print or train, and compute no integers, cycles or files of a design."""

SWAPS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "+": ("-",), "-": ("+",), "*": ("+",), "/": ("*",), "%": ("/",), "&&": ("||",), "||": ("&&",), "<<": (">>",),
    ">>": ("<<",), "&": ("|",), "|": ("&",), "+=": ("-=",), "-=": ("+=",), "true": ("false",), "false": ("true",),
    "0": ("1",), "1": ("0", "2"), "1'b0": ("1'b1",), "1'b1": ("1'b0",), "'0": ("'1",),
}  # fmt: skip
"""Each C++ or SystemVerilog token that a mutant may replace, with its replacements."""

_TOKEN = re.compile(
    r"(?<= )(?:<=|>=|==|!=|&&|\|\||<<|>>|\+=|-=|[<>+\-*/%&|])(?= )|(?<![\w'.])(?:1'b[01]|'0|[01]|true|false)(?![\w'.])"
)
_ASSIGNS = re.compile(r"\s*[\w.\[\]]+\s*(?=<=)")
"""The beginning of a SystemVerilog line that assigns with ``<=``, which is not a comparison there."""

_WITHOUT_MEANING = re.compile(r"\s*#|.*(?:static_assert|SYSTOLIC_|template <|`|parameter|timescale)")
"""Lines that compute nothing at run time: directives, marks for the vendor's tool, defaults of parameters."""


@dataclass(frozen=True)
class Mutated:
    """A file with one small fault, and its text before."""

    path: str
    before: str
    after: str

    def patch(self) -> str:
        """Return the patch as a unified diff."""
        lines = difflib.unified_diff(
            self.before.splitlines(True), self.after.splitlines(True), f"a/{self.path}", f"b/{self.path}", n=2
        )
        return "".join(lines)


def drawn(root: Path, seed: int) -> Iterator[tuple[str, Mutated]]:
    """Yield pairs of package and mutant, as many as ``SHARES`` says. The same seed and files give the same mutants."""
    for room, (number, folders) in SHARES.items():
        if room.endswith("_templates"):
            yield from ((room, mutant) for mutant in _tokens(root, folders, number, seed))
            continue
        found = [str(path.relative_to(root)) for folder in folders for path in sorted((root / folder).rglob("*.py"))]
        paths = [path for path in found if not any(place in path for place in FOR_THE_EYE)]
        for mutant in sample(root, paths, number, seed)[0]:
            yield room, Mutated(mutant.path, (root / mutant.path).read_text("utf-8"), mutant.source(root))


def _tokens(root: Path, folders: tuple[str, ...], number: int, seed: int) -> list[Mutated]:
    """Return mutants of C++ and SystemVerilog, at most one per line."""
    draw = random.Random(seed)
    places = [
        (path, start, end)
        for folder in folders
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in {".h", ".sv"}
        for start, end in tokens(path.read_text("utf-8"), path.name)
    ]
    chosen = []
    for path, start, end in sorted(draw.sample(places, number)):
        text = path.read_text("utf-8")
        other = draw.choice(SWAPS[text[start:end]])
        chosen.append(Mutated(str(path.relative_to(root)), text, text[:start] + other + text[end:]))
    return chosen


def tokens(text: str, path: str) -> list[tuple[int, int]]:
    """Return [start, end) of each token that a mutant may replace, outside of comments and strings."""
    found = []
    hidden = "".join(piece if kind is Kind.CODE else re.sub(r"\S", "?", piece) for kind, piece in pieces(text, path))
    begin = 0
    for line in hidden.splitlines(True):
        if not _WITHOUT_MEANING.match(line):
            assigns = _ASSIGNS.match(line) if path.endswith(".sv") else None
            first = assigns.end() + len("<=") if assigns else 0
            found += [(begin + token.start(), begin + token.end()) for token in _TOKEN.finditer(line, first)]
        begin += len(line)
    return found
