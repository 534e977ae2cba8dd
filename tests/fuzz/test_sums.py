"""The reader computes random functions of sums as onnxruntime does, and a planted defect is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnn.onnx.quantised import functions
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.sums import run

MODELS, FEW = 400, 8
"""The number of models of a campaign, and of a run of the default suite."""


@pytest.mark.parametrize("models", [FEW, pytest.param(MODELS, marks=pytest.mark.campaign)])
def test_run_functions_of_sums_match_onnxruntime(
    models: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Campaign(1, models, None, tmp_path)) == 0
    assert " 0 refused" in capsys.readouterr().out


def test_run_with_tables_over_16_bits_finds_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the table of a function cover all 16-bit sums, as without a quantiser. Its pieces were off by 27 steps."""
    monkeypatch.setattr(functions, "_read_by_functions", lambda network, marks: {})
    assert run(Campaign(1, 12, None, tmp_path)) > 0
    assert list(tmp_path.glob("sums-1-*.onnx"))
