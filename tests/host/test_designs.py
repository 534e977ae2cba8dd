"""Which design a notebook opens."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from boards.errors import HostError
from host.contract.manifest import read_manifest
from host.designs import VARIABLE, any_design, design_folder, find_design

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with nothing in or above it."""
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "work" / "notes").mkdir(parents=True)
    tmp_path.chmod(
        0o1777
    )  # whatever lies in the folders above, a demo that somebody ran in /tmp, is none of the test's
    monkeypatch.chdir(tmp_path / "work" / "notes")
    return tmp_path / "work"


def renamed(tiny: Path, to: Path, network: str) -> Path:
    """The manifest alone, with another network's name."""
    to.mkdir(parents=True)
    values = json.loads((tiny / "manifest.json").read_text("utf-8"))
    (to / "manifest.json").write_text(json.dumps(values | {"network": network}))
    return to


def test_finds_what_the_demo_made_above(tiny: Path, here: Path) -> None:
    made = renamed(tiny, here / "systolic-demo/accelerator", "shapes")
    assert find_design() == made
    full = renamed(tiny, here / "tiny-yolov2-voc", "tiny_yolov2_voc")
    assert find_design() == made
    assert find_design("tiny_yolov2_voc") == full


def test_what_the_demo_made_above_comes_before_what_a_notebook_made_beside_itself(tiny: Path, here: Path) -> None:
    full = renamed(tiny, here / "notes/tiny-yolov2-voc", "tiny_yolov2_voc")
    assert find_design() == full
    made = renamed(tiny, here / "systolic-demo/accelerator", "shapes")
    assert find_design() == made
    assert find_design("tiny_yolov2_voc") == full


def test_what_lies_in_a_folder_that_users_share_is_not_taken(tiny: Path, here: Path) -> None:
    planted = renamed(tiny, here / "accelerator", "planted")
    assert find_design() == planted
    here.chmod(0o1777)
    with pytest.raises(HostError, match="no generated design was found in or above"):
        find_design()


def test_where_there_is_none_the_demo_makes_one(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder = any_design()
    assert folder == here / "notes/systolic-demo/accelerator"
    assert read_manifest(folder).network == "shapes"
    assert any_design() == folder == find_design()


def test_a_design_that_was_named_and_is_gone_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(here / "gone"))
    with pytest.raises(HostError, match=r"gone is not a generated design"):
        any_design()


def test_without_systolic_nothing_is_made(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HostError, match=r"no generated design was found .* and none is installed"):
        any_design()


def test_the_variable_comes_first_and_may_name_several(
    tiny: Path, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed(tiny, here / "accelerator", "nearby")
    first, second = (renamed(tiny, tmp_path / name, name) for name in ("first", "second"))
    monkeypatch.setenv(VARIABLE, os.pathsep.join([str(first), str(second)]))
    assert find_design() == first
    assert find_design("second") == second
    assert find_design("nearby") == here / "accelerator"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(HostError, match=r"gone is not a generated design, there is no manifest.json"):
        find_design()


def test_says_what_to_run_where_there_is_none(here: Path) -> None:
    with pytest.raises(HostError) as caught:
        find_design()
    assert str(caught.value) == (
        f"no generated design was found in or above {here / 'notes'} and none is installed: run systolic demo, or pip "
        "install the wheel of systolic package, or set SYSTOLIC_DESIGN to a design's folder"
    )
    with pytest.raises(HostError, match=r"no design of tiny_yolov2_voc was .*: run systolic generate tiny-yolov2-voc"):
        find_design("tiny_yolov2_voc")


def test_a_design_is_named_by_any_of_its_files(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "design")
    for name in ("manifest.json", "data/program.bin", "design.bit"):
        assert design_folder(folder / name) == folder
