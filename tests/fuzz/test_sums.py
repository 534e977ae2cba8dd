"""Random functions on sums are what onnxruntime makes of them, and a planted defect is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnn.onnx.quantised import functions
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.sums import run

MODELS, FEW = 400, 8
"""Models of a campaign, and of a run of the default suite."""


@pytest.mark.parametrize("models", [FEW, pytest.param(MODELS, marks=pytest.mark.campaign)])
def test_random_functions_of_sums_are_what_another_runtime_makes_of_them(
    models: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Campaign(1, models, None, tmp_path)) == 0
    assert " 0 refused" in capsys.readouterr().out


def test_tables_over_all_of_16_bits_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As sums without a quantiser leave: of their function's output the steps that pieces are off were 27."""
    monkeypatch.setattr(functions, "_read_by_functions", lambda network, marks: {})
    assert run(Campaign(1, 12, None, tmp_path)) > 0
    assert list(tmp_path.glob("sums-1-*.onnx"))
