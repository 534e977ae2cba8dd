"""Every kind of file that is read: what once was a defect, and some mutated cases a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import heads, labels, sources
from tests.fuzz.campaign import Campaign
from tests.fuzz.files import designs, mappings, networks, onnx_models, pictures
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.target import Target

CASES = {
    networks.CFG: 1500,
    networks.WEIGHTS: 2000,
    networks.NAMES: 2000,
    networks.EXPORTED: 1500,
    networks.CONTEST: 600,
    networks.NPZ: 1000,
    networks.QUANTIZED: 1000,
    onnx_models.ONNX: 1500,
    onnx_models.QUANTISED: 1000,
    onnx_models.STORED: 500,
    mappings.BOARD: 300,
    mappings.HWH: 1000,
    mappings.SCHEDULE: 1000,
    mappings.FOLDING: 1000,
    pictures.PICTURE: 1500,
    designs.MANIFESTS: 1500,
    designs.PROGRAM: 100,
    sources.CYCLES: 1000,
    heads.HEADS: 600,
    labels.LABELS: 300,
    sources.LINT: 60,
    designs.SYSTOLIC: 60,
    designs.STREAMING: 60,
}
"""Under a minute of processor time in all."""


@pytest.mark.parametrize("target", CASES, ids=lambda target: target.name)
def test_no_file_does_harm(target: Target, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    defects = hunt(target, Campaign(seed=1, cases=CASES[target], seconds=None, failures=tmp_path))
    told = capfd.readouterr().out
    assert defects == 0, told + "\n".join(path.read_text() for path in sorted(tmp_path.glob("*.txt")))
    assert f"{CASES[target]:,} cases" in told
