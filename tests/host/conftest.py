"""Fixtures: designs on the simulated board, driven by the real pynq."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boards.board import load
from systolic.designs import design as design_of
from systolic.execution.build import build
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from tests.support.detectors import write_tiny_design
from tests.support.host.hardware import Open, described
from tests.support.host.pipelines import make_by_hand


@pytest.fixture(scope="session")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built-in network on a ZCU104, compiled. Tests must not change it."""
    folder = tmp_path_factory.mktemp("designs") / "shapes"
    made = design_of(load_model("shapes"), load("zcu104"), clock_mhz=300.0, calibrate=Calibration(sample_pictures()))
    made.write(folder)
    build(folder)
    return described(folder)


@pytest.fixture
def accelerator() -> Iterator[Open]:
    """Return a function that opens accelerators. They are closed at the end, and must then have freed everything."""
    from host import Accelerator, Options

    opened: list[Any] = []

    def give(folder: Path, **options: Any) -> Any:
        opened.append(Accelerator(folder, Options(**options)))
        return opened[-1]

    yield give
    devices = [one.device for one in opened]
    for one in opened:
        one.close()
    assert [device.freed_at_work for device in devices] == [[]] * len(devices)
    assert [device.allocations for device in devices] == [0] * len(devices), "a buffer was not freed"


@pytest.fixture(scope="session")
def tiny_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a network of two layers with a detection head, not compiled. Tests must not change it."""
    return _tiny(tmp_path_factory.mktemp("files"), None)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a compiled network of two layers with a detection head. A frame takes about 1 ms; read only."""
    return _built(_tiny(tmp_path_factory.mktemp("tiny"), None))


@pytest.fixture(scope="session")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a compiled pipeline of one layer with external weights. Tests must not change it."""
    return make_by_hand(tmp_path_factory.mktemp("centre") / "design")


@pytest.fixture(scope="session")
def batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the network of ``tiny`` with three frames per start. Tests must not change it."""
    return _built(_tiny(tmp_path_factory.mktemp("batches"), 3))


def _tiny(work: Path, batch: int | None) -> Path:
    labels, array = ("circle", "square", "star"), "7x16x16"  # the array that a search finds
    write_tiny_design(work / "design", "zcu104", (18, 14), labels, batch=batch, array=array)
    return described(work / "design")


def _built(folder: Path) -> Path:
    build(folder)
    return folder
