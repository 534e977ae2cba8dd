"""The reader computes random graphs of ONNX operators as onnxruntime does, and a planted defect is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnn.onnx.layers import Layers
from tests.fuzz.campaign import Campaign
from tests.fuzz.graphs.run import drawn, run

GRAPHS, FEW = 600, 120
"""The number of graphs of a campaign, and of a run of the default suite."""


@pytest.mark.parametrize("graphs", [FEW, pytest.param(GRAPHS, marks=pytest.mark.campaign)])
def test_run_random_graphs_match_onnxruntime(graphs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Campaign(1, graphs, None, tmp_path)) == 0
    refused = int(capsys.readouterr().out.rpartition("% refused")[0].rpartition(" ")[2])
    assert refused <= 60, "too many graphs are refused, so that few are compared"


def test_run_with_fusion_of_shared_operations_finds_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layers, "can_merge", lambda layers, operation, position=0: True)
    assert run(Campaign(1, 12, None, tmp_path)) > 0
    assert list(tmp_path.glob("graph-1-*.onnx"))


def test_drawn_same_seed_and_number_gives_same_graph() -> None:
    first, again, other = drawn(7, 3), drawn(7, 3), drawn(8, 3)
    assert first[0] == again[0]
    assert (first[1] == again[1]).all()
    assert first[0] != other[0]
