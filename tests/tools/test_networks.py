"""The networks with which engines are compared have the bytes, MACs and parameters of the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from systolic.loading import load_model
from tools.networks import command
from tools.networks.table import Counts, Entry, counts_of, differences, entries
from tools.networks.writer import Layers, Numbers

LARGE = {"resnet18", "resnet50", "vgg16", "yolov3-voc", "yolov4", "fpn-resnet18"}
"""Networks whose files have more than 40 MB."""


def named(name: str) -> Entry:
    return next(entry for entry in entries() if entry.name == name)


@pytest.mark.parametrize(
    "entry",
    [pytest.param(entry, marks=[pytest.mark.proof] * (entry.name in LARGE), id=entry.name) for entry in entries()],
)
def test_network_has_the_digest_and_counts_of_the_table_and_the_published_size(entry: Entry) -> None:
    assert list(differences(entry)) == []


def test_differences_reports_each_figure_that_differs() -> None:
    entry = named("resnet20")
    wrong = replace(
        entry,
        digest="0" * 64,
        counts=Counts(entry.counts.macs + 1, entry.counts.parameters),
        published=replace(entry.published, macs=1.03 * entry.counts.macs, parameters=10 * entry.counts.parameters),
    )
    digest, counts, macs, parameters = differences(wrong)
    assert digest.startswith(f"resnet20: the file's digest is {entry.digest}, but")
    assert counts.startswith(f"resnet20: {entry.counts} are counted, but")
    assert "MACs are counted" in macs
    assert "parameters are counted" in parameters


def test_layers_of_three_convolutions_have_the_macs_and_parameters_of_a_hand_count(tmp_path: Path) -> None:
    layers = Layers(3, 8, 6)
    x = layers.conv(layers.picture, 4, 3, 2)
    path = tmp_path / "three.onnx"
    path.write_bytes(layers.model(layers.transposed(layers.conv(x, 5, norm=False), 2, bias=False)).SerializeToString())
    assert counts_of(load_model(path).network) == Counts(
        macs=4 * 3 * (4 * 3 * 9) + 4 * 3 * (5 * 4) + 8 * 6 * (2 * 5),
        parameters=4 * 3 * 9 + 2 * 4 + 5 * 4 + 5 + 5 * 2 * 2 * 2,
    )


def test_numbers_are_the_raw_bits_of_the_generator() -> None:
    first = np.random.PCG64(1).random_raw(1)
    assert Numbers(1).integers(2, 4).tobytes() == int(first[0]).to_bytes(8, "little")


def test_write_writes_the_named_network_alone(tmp_path: Path) -> None:
    assert command.main(["write", "-o", str(tmp_path / "nets"), "resnet20"]) == 0
    assert [path.name for path in (tmp_path / "nets").iterdir()] == ["resnet20.onnx"]


def test_check_of_a_wrong_table_returns_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = replace(named("resnet8"), digest="0" * 64)
    monkeypatch.setattr(command, "entries", lambda: (wrong,))
    assert command.main(["check", "resnet8"]) == 1
    assert "resnet8: the file's digest is" in capsys.readouterr().out
    monkeypatch.setattr(command, "entries", lambda: (named("resnet8"),))
    assert command.main(["check"]) == 0


def test_list_prints_every_network(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(entries()) == 16
