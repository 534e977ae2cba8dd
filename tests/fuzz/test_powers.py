"""The reader keeps every integer of random networks with power-of-two scales, and a planted defect is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnn.onnx.quantised import fitted
from cnn.requantise import UP
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.powers import run

MODELS, FEW = 400, 12
"""The number of models of a campaign, and of a run of the default suite."""


@pytest.mark.parametrize("models", [FEW, pytest.param(MODELS, marks=pytest.mark.campaign)])
def test_run_powers_of_two_keeps_every_integer_of_the_file(
    models: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Campaign(1, models, None, tmp_path)) == 0
    assert " 0 refused" in capsys.readouterr().out


def test_run_with_halves_rounded_up_finds_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitted.FileRequantiser, "halves", UP)
    assert run(Campaign(1, 4, None, tmp_path)) > 0
    assert list(tmp_path.glob("powers-1-*.onnx"))
