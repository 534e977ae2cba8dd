"""Every notebook runs from a folder with nothing beside it, and every figure and picture of it is an image.

A kernel shows what a cell ends with; a figure that it has no picture of would print as ``<Figure size …>``.
"""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(ROOT.glob("*/notebooks/*.ipynb"))
SHOWN = ("figure", "timeline", "draw", "show", "fromarray")
"""Calls whose value a cell shows as an image where it is the cell's last expression."""

nbclient = pytest.importorskip("nbclient", reason="runs notebooks in a kernel: pip install -e '.[notebooks]'")
nbformat = pytest.importorskip("nbformat", reason="runs notebooks in a kernel: pip install -e '.[notebooks]'")
pytest.importorskip("ipykernel", reason="runs notebooks in a kernel: pip install -e '.[notebooks]'")


def needs(notebook: Path) -> None:
    """Skips where what the notebook imports is not installed."""
    if notebook.parts[-3] == "host":
        pytest.importorskip("pynq", reason="the host's notebooks run under pynq: see .ci/host")
    else:
        pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")


def shows_image(source: str) -> bool:
    """Whether the cell's last expression is a call that gives a picture."""
    last = ast.parse(source, type_comments=False).body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in SHOWN


def has_image(cell: Any) -> bool:
    """By itself, or within HTML."""
    data = [output.get("data", {}) for output in cell.outputs]
    return any("image/png" in kinds or 'src="data:image/' in kinds.get("text/html", "") for kinds in data)


def executed(notebook: Path, folder: Path) -> Any:
    """The notebook after its execution in ``folder``, where nothing else is."""
    copy = Path(shutil.copy(notebook, folder))
    read = nbformat.read(copy, as_version=4)
    nbclient.NotebookClient(read, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return read


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_figure_is_an_image(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(notebook)
    monkeypatch.delenv("SYSTOLIC_DESIGN", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    cells = [cell for cell in executed(notebook, tmp_path).cells if cell.cell_type == "code"]
    assert [cell.source for cell in cells if shows_image(cell.source) and not has_image(cell)] == []
    texts = [
        output.get("data", {}).get("text/plain", "") for cell in cells if not has_image(cell) for output in cell.outputs
    ]
    assert [text for text in texts if text.startswith("<Figure")] == []
    assert any(map(has_image, cells)), "a notebook that shows nothing"
