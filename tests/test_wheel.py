"""The wheel of the project: every module, template, header and table of the rooms is in it, in a folder of its own."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.rooms import ROOMS

ROOT = Path(__file__).resolve().parents[1]
FOR_READERS = {".md"}  # of the repository
CACHES = ("__pycache__", ".*")
FOLDER = "systolic_cnn"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel from a copy of the sources, with the installed setuptools: no registry is asked."""
    setuptools = importlib.metadata.version("setuptools")
    if int(setuptools.partition(".")[0]) < 77:
        pytest.skip(f"the wheel needs setuptools 77 or later, and {setuptools} is installed: pip install -e '.[test]'")
    project = tmp_path_factory.mktemp("project")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    for room in ROOMS:
        shutil.copytree(ROOT / room, project / room, ignore=shutil.ignore_patterns(*CACHES))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    command += ["-w", f"{project}/wheels", f"{project}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next((project / "wheels").glob("*.whl"))


def test_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    paths = (path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file())
    files = {path.as_posix() for path in paths if "__pycache__" not in path.parts and path.suffix not in FOR_READERS}
    kinds = {Path(name).suffix for name in files}
    assert {".py", ".j2", ".h", ".cpp", ".sv", ".toml"} <= kinds
    files.add("systolic/report/glossary.md")
    missing = sorted({f"{FOLDER}/{name}" for name in files} - set(zipfile.ZipFile(wheel).namelist()))
    assert not missing, "an __init__.py is missing, or the room or the kind of file in pyproject.toml"


def test_wheel_has_no_package_at_its_top(wheel: Path) -> None:
    """The packages have common names, and would overwrite packages of other projects."""
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert top == {FOLDER, f"{FOLDER}.pth"}


def test_unpacked_wheel_imports_its_own_packages(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = f"import site; site.addsitedir({str(tmp_path)!r}); "
    code += "import systolic, host; print(systolic.__file__, host.__file__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    expected = [f"{tmp_path}/{FOLDER}/{room}/__init__.py" for room in ("systolic", "host")]
    assert done.stdout.split() == expected, done.stderr
