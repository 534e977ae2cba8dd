"""The notebook *Folding a network* runs from top to bottom, and its trace confirms its model."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

import systolic

pytest.importorskip("ortools", reason="exact folding needs OR-tools: pip install -e '.[solver]'")

pytestmark = pytest.mark.engine

NOTEBOOK = Path(systolic.__file__).parent / "notebooks" / "folding_a_network.ipynb"


def test_folding_notebook_runs_and_confirms_its_model() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    names: dict[str, object] = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for number, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [], "outputs are not kept in the repository"
                exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    said = out.getvalue()
    assert re.search(r"^exact .* optimal$", said, re.MULTILINE)
    assert "a divisor of its filters, MH (8)" in said
    error = re.search(r"([+-][\d.]+)%\)$", said, re.MULTILINE)
    assert error
    assert abs(float(error[1])) < 2
    assert re.findall(r"(\d+) mismatches", said) == ["0"] * 6
    curve, least = names["curve"], names["least"]
    assert isinstance(curve, dict)
    assert curve[least] == min(cycles for cycles in curve.values() if cycles)
    assert curve[min(curve)] is None, "the shallowest FIFO of the curve stops the pipeline"
