"""What the notebooks are, what they need, and what their executed cells have to show."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted(ROOT.glob("*/notebooks/*.ipynb"))
SHOWN = ("figure", "timeline", "draw", "show", "fromarray")
"""Calls whose value a cell shows as an image where it is the cell's last expression."""


def needs(notebook: Path) -> None:
    """Skips where what the notebook imports is not installed."""
    if notebook.parts[-3] == "host":
        pytest.importorskip("pynq", reason="the host's notebooks run under pynq: .ci/host")
    else:
        pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")


def shows_image(source: str) -> bool:
    """Whether the cell's last expression is a call that gives a picture."""
    last = ast.parse(source, type_comments=False).body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in SHOWN


def images(cell: Any) -> int:
    """How many images and drawings a page has of a cell's outputs: HTML is shown rather than a picture beside it."""
    data = [output.get("data", {}) for output in cell.outputs]
    return sum(
        len(re.findall("<img|<svg", kinds["text/html"]))
        if "text/html" in kinds
        else any(kind.startswith("image/") for kind in kinds)
        for kinds in data
    )


def all_shown(code: list[Any]) -> None:
    """Every figure and picture of the executed code cells is an image, and there is one."""
    assert [cell.source for cell in code if shows_image(cell.source) and not images(cell)] == []
    texts = [
        output.get("data", {}).get("text/plain", "") for cell in code if not images(cell) for output in cell.outputs
    ]
    assert [text for text in texts if text.startswith("<Figure")] == []
    assert any(map(images, code)), "a notebook that shows nothing"
