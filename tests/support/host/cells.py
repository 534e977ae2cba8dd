"""The notebooks, their requirements, and the images that their executed cells must show."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted(ROOT.glob("*/notebooks/*.ipynb"))
SHOWN = ("figure", "timeline", "draw", "show", "fromarray")
"""Calls whose value a cell shows as an image if the call is the cell's last expression."""


def needs(notebook: Path) -> None:
    """Skip the test if a package that the notebook imports is not installed."""
    if notebook.parts[-3] == "host":
        pytest.importorskip("pynq", reason="the host's notebooks run under pynq: .ci/host")
    else:
        pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")


def shows_image(source: str) -> bool:
    """Return whether the cell's last expression is a call whose value is shown as an image."""
    last = ast.parse(source, type_comments=False).body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in SHOWN


def images(cell: Any) -> int:
    """Return the number of images and drawings that a page shows for a cell's outputs.

    An output's HTML is shown instead of its image.
    """
    data = [output.get("data", {}) for output in cell.outputs]
    return sum(
        len(re.findall("<img|<svg", kinds["text/html"]))
        if "text/html" in kinds
        else any(kind.startswith("image/") for kind in kinds)
        for kinds in data
    )


def all_shown(code: list[Any]) -> None:
    """Assert that every figure of the executed code cells is an image, and that there is at least one."""
    assert [cell.source for cell in code if shows_image(cell.source) and not images(cell)] == []
    texts = [
        output.get("data", {}).get("text/plain", "") for cell in code if not images(cell) for output in cell.outputs
    ]
    assert [text for text in texts if text.startswith("<Figure")] == []
    assert any(map(images, code)), "the notebook shows no image"
