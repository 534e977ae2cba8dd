"""The reader computes random quantised graphs as onnxruntime and qonnx do, and a planted defect is found."""

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
"""The number of graphs of a campaign, and of a run of the default suite."""


@pytest.mark.parametrize("graphs", [FEW, pytest.param(GRAPHS, marks=pytest.mark.campaign)])
def test_run_random_quantised_graphs_match_other_runtimes(
    graphs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Campaign(1, graphs, None, tmp_path)) == 0
    said = capsys.readouterr().out
    assert " 0 refused" in said
    assert " 0 off without a note" in said


HARD = {
    "channels that saturate read by one quantiser": 1938,
    "channels with a gap in their sums": 272,
    "channels that saturate read by a function": 336,
    "a ratio of scales above 127": 1827,
    "a ratio of scales above 127 before a function": 1618,
}
"""The numbers of graphs of seed 2811 with properties that are rarely drawn."""


@cases("name", HARD)
def test_faults_of_rarely_drawn_graph_are_empty(name: str) -> None:
    assert faults(Drawn(2811, HARD[name]), Counter()) == []


def test_run_with_bias_wrong_by_one_finds_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the bias after the reader has fitted it, so that the reader's own count of errors misses the fault."""

    def off(*arguments: Any, **options: Any) -> Fit:
        fit = fitted(*arguments, **options)
        by = fit.by
        wrong = by.bias + 1 if isinstance(by, Requantiser) else by.bias + by.multiplier
        return replace(fit, by=replace(by, bias=wrong))

    monkeypatch.setattr("cnn.onnx.quantised.integers.fitted", off)
    assert run(Campaign(1, 4, None, tmp_path)) > 0
    assert list(tmp_path.glob("integers-1-*.onnx"))
