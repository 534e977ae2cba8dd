"""Test that the notebook *Comparing tiling schedules* runs completely, and that its traces confirm its model."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

import systolic

pytestmark = pytest.mark.engine

NOTEBOOK = Path(systolic.__file__).parent / "notebooks" / "comparing_tiling_schedules.ipynb"


def test_notebook_runs_and_traces_near_its_model() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    names: dict[str, object] = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for number, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [], "the repository must not keep outputs"
                exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    layers = re.findall(r"traced +([\d,]+)  modelled +([\d,]+)", out.getvalue())
    assert len(layers) > 3
    for traced, modelled in ((int(t.replace(",", "")), int(m.replace(",", ""))) for t, m in layers):
        assert abs(traced - modelled) < max(0.03 * traced, 80)  # the smallest layer takes 700 cycles
    assert re.search(r"the schedule of .* is not legal:\n.*\(row_depth\)", out.getvalue())
