"""Random networks whose scales are powers of two have every integer of their file, and a planted defect is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnn.onnx.quantised import fitted
from cnn.requantise import UP
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.powers import run

MODELS, FEW = 400, 12
"""Models of a campaign, and of a run of the default suite."""


@pytest.mark.parametrize("models", [FEW, pytest.param(MODELS, marks=pytest.mark.campaign)])
def test_random_networks_of_powers_of_two_have_every_integer_of_the_file(
    models: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Campaign(1, models, None, tmp_path)) == 0
    assert " 0 refused" in capsys.readouterr().out


def test_halves_that_are_rounded_up_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitted.FileRequantiser, "halves", UP)
    assert run(Campaign(1, 4, None, tmp_path)) > 0
    assert list(tmp_path.glob("powers-1-*.onnx"))
