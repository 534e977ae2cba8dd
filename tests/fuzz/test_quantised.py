"""Random quantised graphs are what onnxruntime and qonnx make of them, and a planted defect is found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cnn.onnx.quantised.fitted import Fit, fitted
from cnn.requantise import Requantiser
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.quantised import Drawn, faults, run
from tests.support.cases import cases

pytest.importorskip("qonnx", reason="qonnx executes its own operators")

GRAPHS, FEW = 500, 4
"""Graphs of a campaign, and of a run of the default suite."""


@pytest.mark.parametrize("graphs", [FEW, pytest.param(GRAPHS, marks=pytest.mark.campaign)])
def test_random_quantised_graphs_are_what_other_runtimes_make_of_them(
    graphs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Campaign(1, graphs, None, tmp_path)) == 0
    said = capsys.readouterr().out
    assert " 0 refused" in said
    assert " 0 off without a word" in said


HARD = {
    "channels that saturate read by one quantiser": 1938,
    "channels whose sums leave a gap": 272,
    "channels that saturate read by a function": 336,
    "a ratio of scales above 127": 1827,
    "a ratio of scales above 127 before a function": 1618,
}
"""Graphs of seed 2811 that asked for more than others."""


@cases("name", HARD)
def test_graphs_seldom_drawn_have_the_integers_of_the_file(name: str) -> None:
    assert faults(Drawn(2811, HARD[name]), Counter()) == []


def test_a_bias_that_is_one_sum_off_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader counts what it chooses, and not what is made of it after that."""

    def off(*arguments: Any, **options: Any) -> Fit:
        fit = fitted(*arguments, **options)
        by = fit.by
        wrong = by.bias + 1 if isinstance(by, Requantiser) else by.bias + by.multiplier
        return replace(fit, by=replace(by, bias=wrong))

    monkeypatch.setattr("cnn.onnx.quantised.integers.fitted", off)
    assert run(Campaign(1, 4, None, tmp_path)) > 0
    assert list(tmp_path.glob("integers-1-*.onnx"))
