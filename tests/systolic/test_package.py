"""The wheel for the board: what it holds, and that it needs nothing that a board has not."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from boards.errors import GenerateError
from systolic.package import package

CODE = """
import sys
import host, host.check, host.detection, host.drawing, host.frame
import host.layout, host.manifest, host.picture, host.pipeline
from host.designs import installed, find_design
from host.manifest import read_manifest, read_image
from boards.errors import HostError
manifest = read_manifest(installed()["tiny"])
for image in (*manifest.weights, manifest.program, manifest.check_layers):
    read_image(find_design(), image)
try:
    host.Accelerator("tiny")
except HostError as error:
    assert "needs pynq" in str(error), error
else:
    raise SystemExit("there is a pynq here")
ours = {name for name in sys.modules if name.split(".")[0] in ("cnn", "scheduler", "systolic", "hls_templates")}
assert not ours, ours
print("imported")
"""


@pytest.fixture(scope="module")
def wheel(tiny_design: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("wheel")
    folder = shutil.copytree(tiny_design, work / "design")
    (folder / "systolic.bit").write_bytes(b"a bitstream")
    return package(folder, work)


def bare_environment(folder: Path) -> Path:
    """A virtual environment with numpy and Pillow, as a board's image has them, and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    for name in ("numpy", "PIL"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        at = Path(spec.origin).parent
        for path in (at, at.parent / f"{name.lower()}.libs", at.parent / "pillow.libs"):
            if path.is_dir() and not (site / path.name).exists():
                (site / path.name).symlink_to(path)
    return folder / "bin" / "python"


def test_imports_where_only_numpy_and_pillow_are(wheel: Path, tmp_path: Path) -> None:
    python = bare_environment(tmp_path / "board")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([python, "-c", CODE], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "imported", done.stderr


def test_the_wheel_is_found_by_pynq(wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("pynq", reason="needs the real pynq: see .ci/host")
    target = tmp_path / "installed"
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "-t", target, wheel],
                   check=True, capture_output=True)  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(target)}
    code = (
        "import os; from pynqutils.setup_utils import ExtensionsManager; "
        "print(*ExtensionsManager('pynq.notebooks').printable); "
        "print(*[os.listdir(path) for path in ExtensionsManager('pynq.overlays').paths])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert "systolic_tiny (source: systolic_tiny)" in done.stdout
    assert "tiny.bit" in done.stdout
    command = ["pynq", "get-notebooks", "systolic_tiny", "-d", "ZCU104", "-p", str(tmp_path / "jupyter")]
    script = Path(sys.executable).parent / "pynq-get-notebooks"
    if not script.exists():
        script = Path(sys.executable).parent / "pynq"
    arguments = command[2:] if script.name == "pynq-get-notebooks" else command[1:]
    subprocess.run([sys.executable, script, *arguments], cwd=tmp_path, env=env, check=True, capture_output=True)
    delivered = {path.name for path in (tmp_path / "jupyter").rglob("*.ipynb")}
    assert {"1_tiny_yolov2_on_zcu104.ipynb", "2_looking_inside.ipynb", "3_throughput.ipynb"} <= delivered


def test_the_same_design_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    again = package(wheel.parent / "design", tmp_path)
    assert again.name == wheel.name == "systolic_tiny-0.1.0-py3-none-any.whl"
    assert again.read_bytes() == wheel.read_bytes()


def test_holds_nothing_of_the_generators_rooms(wheel: Path) -> None:
    rooms = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert rooms == {"host", "boards", "systolic_tiny", "systolic_tiny-0.1.0.dist-info"}


def test_without_a_bitstream_it_says_how_to_get_one(tiny_design: Path, tmp_path: Path) -> None:
    with pytest.raises(GenerateError, match=r"must hold one \*.bit, there is none: it is what build_vivado.tcl makes"):
        package(tiny_design, tmp_path)
    assert package(tiny_design, tmp_path, without_bitstream=True).is_file()
