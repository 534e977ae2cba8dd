"""Test the wheel for the board: its files, and that it needs only what a board has."""

from __future__ import annotations

import ast
import base64
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from boards.errors import FileAccessError
from host.contract.simulation_library import find_library
from systolic.execution.build import build
from systolic.package import package
from tests.support.bitstreams import write_built
from tests.support.board_image import decoded, seen
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.host.manifests import manifest_fields

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "support" / "board_image.py"
BOARD_IMAGES = (
    ("3.10", "1.21.5", "9.0.1"),  # pynq 3.1 on Ubuntu 22.04
    ("3.12", "1.26.4", "10.2.0"),  # pynq 4 on Ubuntu 24.04
    ("3.10", "", ""),  # the newest numpy and Pillow
)
"""Versions of Python, numpy and Pillow in the images of boards."""

MAY_IMPORT = {"numpy", "PIL", "pynq", "pynqmetadata", "IPython", "host", "contract", "boards", *sys.stdlib_module_names}


@pytest.fixture(scope="module")
def wheel(tiny_design: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of a small design with a bitstream and a compiled simulation library."""
    work = tmp_path_factory.mktemp("wheel")
    folder = shutil.copytree(tiny_design, work / "design")
    write_built(folder)
    build(folder)
    return package(folder, work)


def test_package_clears_outputs_of_notebooks(
    tiny_design: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run a notebook in a checkout, and expect that the packaged notebook has none of its outputs."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / "host", root / "host")
    shutil.copytree(ROOT / "boards", root / "boards")
    shutil.copytree(ROOT / "contract", root / "contract")
    path = root / "host/notebooks/2_looking_inside.ipynb"
    content = json.loads(path.read_text("utf-8"))
    cell = next(cell for cell in content["cells"] if cell["cell_type"] == "code")
    cell["execution_count"], cell["outputs"] = 7, [{"output_type": "stream", "name": "stdout", "text": ["mine"]}]
    path.write_text(json.dumps(content), "utf-8")
    monkeypatch.setattr("systolic.package._ROOT", root)
    wheel = package(tiny_design, tmp_path / "dist", simulation=build(tiny_design))
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".ipynb")]
        notebooks = [json.loads(archive.read(name)) for name in names]
    assert len(names) == len(list((ROOT / "host/notebooks").glob("*.ipynb")))
    cells = [cell for notebook in notebooks for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def interpreter(version: str) -> Path:
    """Return a Python interpreter of this version, from the path or from pyenv. Skip the test if there is none."""
    found = [shutil.which(f"python{version}"), *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    for path in (path for path in found if path is not None):
        ask = [path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip() == version:
            return Path(path)
    pytest.skip(f"neither the path nor pyenv has python{version}")


def environment(python: Path, folder: Path) -> tuple[Path, Path]:
    """Make an empty virtual environment. Return its interpreter and the folder of its packages."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True, env=clean())
    return folder / "bin" / "python", next((folder / "lib").glob("python*")) / "site-packages"


def clean() -> dict[str, str]:
    """Return the environment without Python's own variables."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def pip(python: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Install packages into the environment of another Python."""
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-q", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def lend(site: Path) -> None:
    """Link this environment's numpy and Pillow into ``site``, so that nothing is downloaded."""
    for name in ("numpy", "PIL"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        at = Path(spec.origin).parent
        for path in (at, at.parent / f"{name.lower()}.libs", at.parent / "pillow.libs"):
            if path.is_dir() and not (site / path.name).exists():
                (site / path.name).symlink_to(path)


def check_as_on_a_board(python: Path, design: Path, work: Path) -> list[object]:
    """Run the script with the installed wheel alone. Return its versions of Python, numpy and Pillow."""
    done = subprocess.run(
        [python, "-I", SCRIPT, design], cwd=work, env=clean(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    wanted = decoded(design)
    assert len(wanted) > 10
    assert said["decoded"] == wanted
    assert "pynq is not installed; it is needed to drive an accelerator" in said["said"]
    assert said["rooms"] == [], "the wheel must not hold packages of the generator"
    assert said["seen"] == seen(design)
    assert said["seen"]["drawn"]
    return list(said["versions"])


@pytest.mark.engine
def test_wheel_works_with_numpy_and_pillow_alone(wheel: Path, tmp_path: Path) -> None:
    python, site = environment(Path(sys.executable), tmp_path / "board")
    lend(site)
    done = pip(python, "--no-index", "--no-deps", wheel)
    assert done.returncode == 0, done.stderr
    check_as_on_a_board(python, wheel.parent / "design", tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize(("version", "numpy", "pillow"), BOARD_IMAGES)
def test_wheel_installs_with_python_of_each_board_image(
    wheel: Path, tmp_path: Path, version: str, numpy: str, pillow: str
) -> None:
    python, _ = environment(interpreter(version), tmp_path / "board")
    wanted = [f"numpy=={numpy}" if numpy else "numpy", f"pillow=={pillow}" if pillow else "pillow"]
    done = pip(python, "--only-binary=:all:", *wanted)
    if done.returncode != 0:
        pytest.skip(
            f"{' and '.join(wanted)} for Python {version} cannot be installed here: {done.stderr.strip()[-200:]}"
        )
    # Install without an index, so that pip fails if the wheel requires anything else.
    done = pip(python, "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    found = check_as_on_a_board(python, wheel.parent / "design", tmp_path)
    assert found[0] == [int(part) for part in version.split(".")]
    if numpy:
        assert found[1:] == [numpy, pillow]


def test_wheel_sources_are_python_3_10_with_known_imports(wheel: Path) -> None:
    checked = 0
    for name, source in sources(wheel):
        tree = ast.parse(source, name, feature_version=(3, 10))
        asked = {module.split(".")[0] for node in ast.walk(tree) for module in imported(node)}
        assert asked <= MAY_IMPORT, f"{name} imports {sorted(asked - MAY_IMPORT)}"
        checked += 1
    assert checked > 25


def sources(wheel: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and sources of the wheel's modules and of its notebooks' code cells."""
    archive = zipfile.ZipFile(wheel)
    for name in archive.namelist():
        if name.endswith(".py"):
            yield name, archive.read(name).decode()
        elif name.endswith(".ipynb"):
            cells = json.loads(archive.read(name))["cells"]
            yield from ((name, "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code")


def imported(node: ast.AST) -> list[str]:
    """Return the modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [one.name for one in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []


@pytest.mark.pynq
def test_wheel_is_found_by_pynq(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "-t", target, wheel],
        check=True,
        capture_output=True,
    )
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


@pytest.mark.pynq
def test_pynq_opens_the_overlay_by_name(wheel: Path, tiny_design: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "-t", target, wheel],
        check=True,
        capture_output=True,
    )
    code = (
        "import sys, pynq; from pathlib import Path; from host.designs import installed; "
        "from host.contract.manifest import read_manifest; from host.simulated.device import SimulatedBoard; "
        "board = SimulatedBoard(read_manifest(installed()['tiny']), Path(sys.argv[1])); "
        # The bitstream is not downloaded, because pynq 4.0.0 cannot set the clocks of a Zynq-7000.
        "overlay = pynq.Overlay('tiny.bit', download=False, device=board); "
        "print(overlay.bitfile_name, *(entry['type'] for entry in overlay.ip_dict.values()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, build(tiny_design)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(target / "systolic_tiny/tiny.bit") in done.stdout
    assert "systolic:cnn:systolic_top:1.0" in done.stdout


def test_package_twice_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    again = package(wheel.parent / "design", tmp_path)
    assert again.name == wheel.name == "systolic_tiny-0.1.0-py3-none-any.whl"
    assert again.read_bytes() == wheel.read_bytes()


def test_wheel_record_lists_every_file_with_its_digest(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    info = "systolic_tiny-0.1.0.dist-info"
    lines = archive.read(f"{info}/RECORD").decode().splitlines()
    assert [line.split(",")[0] for line in lines] == archive.namelist()
    assert lines[-1] == f"{info}/RECORD,,"
    for line in lines[:-1]:
        name, digest, size = line.split(",")
        data = archive.read(name)
        assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        assert int(size) == len(data)


def test_wheel_metadata_states_requirements(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = archive.read("systolic_tiny-0.1.0.dist-info/METADATA").decode()
    assert "Requires-Python: >=3.10\nRequires-Dist: numpy>=1.21.5\nRequires-Dist: pillow>=9.0.1\n" in metadata
    assert "Summary: tiny on pynq-z2\n" in metadata
    assert {"host/py.typed", "boards/py.typed", "host/board/overlay.py"} <= set(archive.namelist())


@cases("network, name", [("YOLO v2--Tiny!", "yolo_v2_tiny"), ("…", "design"), ("N" * 100, "n" * 60)])
def test_wheel_name_is_valid_for_any_network(tiny_design: Path, tmp_path: Path, network: str, name: str) -> None:
    folder = shutil.copytree(tiny_design, tmp_path / "design")
    values = manifest_fields(folder)
    (folder / "manifest.json").write_text(json.dumps(values | {"network": network}))
    made = package(folder, tmp_path, simulation=build(folder))
    assert made.name.startswith(f"systolic_{name}-0.1.0-py3-none-linux_")


def test_package_with_bad_folders_is_refused(tiny_design: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with raises(FileAccessError, what="wheel", remedy="choose another folder"):
        package(tiny_design, tmp_path / "file", simulation=build(tiny_design))
    folder = shutil.copytree(tiny_design, tmp_path / "design")
    (folder / "data/maps.bin").unlink()
    with raises(FileAccessError, path=str(folder / "data/maps.bin"), remedy="generate the design again"):
        package(folder, tmp_path, simulation=build(folder))


def test_wheel_holds_no_generator_package(wheel: Path) -> None:
    rooms = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert rooms == {"host", "contract", "boards", "systolic_tiny", "systolic_tiny-0.1.0.dist-info"}


def test_package_without_bitstream_names_the_remedy(tiny_design: Path, tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tiny_design / "*.bit"), reason="must be one file; there is none"):
        package(tiny_design, tmp_path)
    assert package(tiny_design, tmp_path, simulation=build(tiny_design)).is_file()


def test_wheel_without_bitstream_executes_here(tiny_design: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_design, tmp_path / "design")
    made = package(folder, tmp_path, simulation=build(folder))
    python, site = environment(Path(sys.executable), tmp_path / "here")
    lend(site)
    done = pip(python, "--no-index", "--no-deps", made)
    assert done.returncode == 0, done.stderr
    code = (
        "import numpy as np; from host import Options, open_detector; "
        "detector = open_detector('tiny', Options(threshold=0.2)); "
        "print(len(detector.detect(np.random.default_rng(1).integers(0, 256, (90, 120, 3), np.uint8)).detections))"
    )
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=clean(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(list(seen(folder)["boxes"])) > 0  # type: ignore[call-overload]


def test_wheel_with_bitstream_names_the_simulation(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    with raises(FileAccessError, what="folder") as caught:
        find_library(tmp_path / "systolic_tiny", None)
    assert "this one has no sources" in caught.value.remedy
    assert "--without-bitstream" in caught.value.remedy
