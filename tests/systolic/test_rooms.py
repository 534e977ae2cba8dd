"""Test packages with the names of the project's packages: the error names the package and where Python found it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import systolic
from tests.support.cases import cases
from tests.support.rooms import ROOMS

ROOT = Path(systolic.__file__).parents[1]


@cases("name", [room for room in ROOMS if room != "systolic"])
@cases("kind", ["package", "module"])
def test_import_of_foreign_package_of_same_name_is_reported(name: str, kind: str, tmp_path: Path) -> None:
    place = tmp_path / f"{name}.py" if kind == "module" else tmp_path / name / "__init__.py"
    place.parent.mkdir(exist_ok=True)
    place.touch()
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "systolic", "boards"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.strip().endswith(
        f"ImportError: systolic needs its own package {name!r} from {ROOT}, but Python finds {place}; "
        "install systolic in a separate environment (python3 -m venv)"
    )


def test_plain_folder_of_same_name_does_no_harm(tmp_path: Path) -> None:
    """Make a folder without modules, which is not a regular package, so that Python finds the project's package."""
    (tmp_path / "boards").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "systolic", "boards"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
