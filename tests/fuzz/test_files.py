"""Every kind of file is read or refused: files that once showed a defect, and some mutated files."""

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
"""The number of cases of a campaign for each kind of file. All together take about a minute of processor time."""

DESIGNS = (designs.MANIFESTS, designs.PROGRAM, designs.SYSTOLIC, designs.STREAMING, sources.CYCLES)
SLOW = (*DESIGNS, mappings.SCHEDULE, sources.LINT)
"""The kinds of files that need a generated design or a search."""

SAMPLE = 30
"""The number of mutated files of each kind in a run of the default suite."""


def check_harmless(target: Target, cases: int, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    defects = hunt(target, Campaign(seed=1, cases=cases, seconds=None, failures=folder))
    told = capfd.readouterr().out
    assert defects == 0, told + "\n".join(path.read_text() for path in sorted(folder.glob("*.txt")))
    assert f"{cases:,} cases" in told


@pytest.mark.parametrize("target", [target for target in CASES if target not in SLOW], ids=lambda target: target.name)
def test_damaged_file_is_refused_or_read(target: Target, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check_harmless(target, len(target.seeds()) + SAMPLE, tmp_path, capfd)


@pytest.mark.campaign
@pytest.mark.parametrize("target", CASES, ids=lambda target: target.name)
def test_damaged_files_of_a_campaign_are_refused_or_read(
    target: Target, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    check_harmless(target, CASES[target], tmp_path, capfd)
