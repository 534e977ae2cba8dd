"""The choice of the design that a notebook opens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boards.errors import FileAccessError, InvalidValueError, ToolError
from host.contract.manifest import read_manifest
from host.designs import VARIABLE, any_design, design_folder, find_design
from tests.support.errors import raises
from tests.support.host.manifests import GOLDEN, golden_values

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder above the current one, with no design in any folder above."""
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "work" / "notes").mkdir(parents=True)
    # The search stops at a folder that every user may write, so that it does not find a demo in /tmp.
    tmp_path.chmod(0o1777)
    monkeypatch.chdir(tmp_path / "work" / "notes")
    return tmp_path / "work"


def renamed(to: Path, network: str) -> Path:
    """Write a manifest alone, with another network's name."""
    to.mkdir(parents=True)
    (to / "manifest.json").write_text(json.dumps(golden_values() | {"network": network}))
    return to


def test_find_design_finds_the_demo_design_of_a_parent_folder(here: Path) -> None:
    made = renamed(here / "systolic-demo/accelerator", "shapes")
    assert find_design() == made
    full = renamed(here / "tiny-yolov2-voc", "tiny_yolov2_voc")
    assert find_design() == made
    assert find_design("tiny_yolov2_voc") == full


def test_find_design_prefers_the_demo_design_of_a_parent_folder(here: Path) -> None:
    full = renamed(here / "notes/tiny-yolov2-voc", "tiny_yolov2_voc")
    assert find_design() == full
    made = renamed(here / "systolic-demo/accelerator", "shapes")
    assert find_design() == made
    assert find_design("tiny_yolov2_voc") == full


def test_find_design_ignores_a_folder_that_other_users_can_write(here: Path) -> None:
    planted = renamed(here / "accelerator", "planted")
    assert find_design() == planted
    here.chmod(0o1777)
    with raises(FileAccessError, path=str(here / "notes"), what="folder"):
        find_design()


def test_demo_command_is_called_by_any_design_without_a_design(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def demo(command: list[str], **_: object) -> Any:
        assert command[1:] == ["-m", "systolic", "demo", "-o", Path("systolic-demo")]
        renamed(here / "notes/systolic-demo/accelerator", "shapes")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", demo)
    folder = any_design()
    assert folder == here / "notes/systolic-demo/accelerator"
    assert any_design() == folder == find_design()


def test_demo_that_fails_in_any_design_is_quoted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(returncode=3, stderr="x" * 999 + "the end\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with raises(ToolError, tool="systolic demo", reason="ended with status 3") as caught:
        any_design()
    assert caught.value.output.endswith("xthe end")
    assert len(caught.value.output) == 500


@pytest.mark.engine
def test_demo_is_run_by_any_design_without_a_design(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder = any_design()
    assert folder == here / "notes/systolic-demo/accelerator"
    assert read_manifest(folder).network == "shapes"
    assert any_design() == folder == find_design()


def test_variable_with_a_missing_folder_is_refused_by_any_design(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(here / "gone"))
    with raises(FileAccessError, path=str(here / "gone"), what="generated design"):
        any_design()


def test_missing_package_systolic_is_refused_by_any_design(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with raises(FileAccessError, path=str(here / "notes"), what="folder"):
        any_design()


def test_find_design_prefers_the_folders_of_the_variable(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed(here / "accelerator", "nearby")
    first, second = (renamed(tmp_path / name, name) for name in ("first", "second"))
    monkeypatch.setenv(VARIABLE, os.pathsep.join([str(first), str(second)]))
    assert find_design() == first
    assert find_design("second") == second
    assert find_design("nearby") == here / "accelerator"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    with raises(FileAccessError, path=str(tmp_path / "gone"), what="generated design"):
        find_design()


def test_find_design_without_a_design_names_the_command(here: Path) -> None:
    for network, command in ((None, "systolic demo"), ("tiny_yolov2_voc", "systolic generate tiny-yolov2-voc")):
        with raises(FileAccessError, path=str(here / "notes"), what="folder") as caught:
            find_design(network)
        assert caught.value.remedy.startswith(f"run {command}, or pip install the wheel")
        assert (network or "generated design") in caught.value.reason
    for wrong in (5, Path("tiny")):
        with raises(InvalidValueError, what="network", got=wrong):
            find_design(wrong)  # type: ignore[arg-type]


def test_design_folder_accepts_any_file_of_a_design(tmp_path: Path) -> None:
    folder = shutil.copytree(GOLDEN / "systolic" / "design", tmp_path / "design")
    for name in ("manifest.json", "data/program.bin", "design.bit"):
        assert design_folder(folder / name) == folder
