"""Random graphs of ONNX operators are what onnxruntime makes of them, and a planted defect is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnn.onnx.layers import Layers
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.run import drawn, run

GRAPHS, FEW = 600, 120
"""Graphs of a campaign, and of a run of the default suite."""


@pytest.mark.parametrize("graphs", [FEW, pytest.param(GRAPHS, marks=pytest.mark.campaign)])
def test_random_graphs_are_what_another_runtime_makes_of_them(
    graphs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Campaign(1, graphs, None, tmp_path)) == 0
    refused = int(capsys.readouterr().out.rpartition("% refused")[0].rpartition(" ")[2])
    assert refused <= 60, "a reader that refuses nearly everything is tried little"


def test_a_layer_that_takes_in_what_others_read_too_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layers, "alone", lambda layers, operation, position=0: True)
    assert run(Campaign(1, 12, None, tmp_path)) > 0
    assert list(tmp_path.glob("graph-1-*.onnx"))


def test_a_graph_follows_from_seed_and_number() -> None:
    first, again, other = drawn(7, 3), drawn(7, 3), drawn(8, 3)
    assert first[0] == again[0]
    assert (first[1] == again[1]).all()
    assert first[0] != other[0]
