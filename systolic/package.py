"""Packages a design and its host code as one wheel, which is copied to the board and installed there."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path

import host
from boards.errors import FileAccessError, listed
from boards.progress import Progress, ProgressStep, silent
from host.contract.manifest import read_manifest
from host.contract.parts import MANIFEST, Manifest
from host.contract.simulation_library import sources
from host.whole_file import write_whole
from systolic.bitstream import check_built
from systolic.version import __version__

NEEDS = ("numpy>=1.21.5", "pillow>=9.0.1")
"""The requirements of the wheel: the versions in the oldest board image, which is Ubuntu 22.04.

pynq is not a requirement, because the board image has it and pip need not know of it.
"""

_DATE = (2020, 1, 1, 0, 0, 0)  # the date of every file in the wheel, so that equal designs give equal wheels
_ROOT = Path(host.__file__).parents[1]


def package(folder: Path, to: Path, *, simulation: Path | None = None, progress: Progress = silent) -> Path:
    """Write the wheel with a design and its host code into the folder ``to``, and return the wheel's path.

    The wheel contains the packages ``host`` and ``contract``, and the errors, ranges and JSON parser of ``boards``. Its
    package ``systolic_NAME`` has the bitstream, the hardware description, the manifest, the data files and the
    notebooks. On the board, ``Overlay("NAME.bit")`` and ``pynq get-notebooks systolic_NAME`` find them.

    Args:
        folder: The folder of the design.
        to: The folder of the wheel.
        simulation: The design's library, which ``systolic.execution.build.build`` compiled. It is packaged with the
            sources instead of a bitstream. The wheel then runs only on machines like this one.
        progress: The function that receives the current step.

    Raises:
        FileAccessError: The bitstream or the description cannot be read, or the wheel cannot be written.
        SystolicError: One of the errors of ``check_built``: Vivado did not write the files for the design's board.
    """
    manifest = read_manifest(folder)
    name = _identifier(manifest.network)
    files = _host_files() | _design_files(folder, manifest, name, simulation)
    info = f"systolic_{name}-{__version__}.dist-info"
    tag = f"py3-none-{re.sub('[-.]', '_', sysconfig.get_platform()) if simulation else 'any'}"
    files |= _metadata(info, name, manifest, tag)
    files[f"{info}/RECORD"] = _record(files, info)
    wheel = to / f"systolic_{name}-{__version__}-{tag}.whl"
    try:
        to.mkdir(parents=True, exist_ok=True)
        write_whole(wheel, _zipped(files, info, progress))
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
        raise FileAccessError(str(wheel), reason, "wheel", remedy="choose another folder") from error
    return wheel


def _zipped(files: Mapping[str, bytes], info: str, progress: Progress) -> bytes:
    """Return a wheel as bytes: the zipped files, the wheel's metadata last."""
    data, packed, total = io.BytesIO(), 0, sum(map(len, files.values()))
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in sorted(files.items(), key=lambda item: item[0].startswith(info)):
            progress(ProgressStep(f"packing {Path(path).name}", packed, total))
            archive.writestr(zipfile.ZipInfo(path, _DATE), content, zipfile.ZIP_DEFLATED)
            packed += len(content)
    return data.getvalue()


def _identifier(name: str) -> str:
    """Return a network's name as a package name: lower-case letters, digits and single underscores."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60] or "design"


def _host_files() -> dict[str, bytes]:
    rooms = [path for room in ("host", "contract") for path in (_ROOT / room).rglob("*.py")]
    sources = [*rooms, *(_ROOT / "boards" / f"{name}.py" for name in ("__init__", "errors", "json_text", "ranges"))]
    markers = [_ROOT / room / "py.typed" for room in ("host", "contract", "boards")]
    return {path.relative_to(_ROOT).as_posix(): path.read_bytes() for path in [*sources, *markers]}


def _design_files(folder: Path, manifest: Manifest, name: str, simulation: Path | None) -> dict[str, bytes]:
    room = f"systolic_{name}"
    paths = [MANIFEST, *(image.path for image in manifest.files)]
    files = {f"{room}/{path}": _read(folder / path) for path in paths}
    description = _only(folder, "*.hwh", "hardware description", "generate the design again")
    files[f"{room}/{name}.hwh"] = description[1]
    if simulation is not None:
        files |= {f"{room}/{path}": data for path, data in _simulation_files(folder, simulation).items()}
    else:
        remedy = "run build_vivado.tcl where Vivado is installed, or package without a bitstream"
        bitstream = _only(folder, "*.bit", "bitstream", remedy)
        check_built(bitstream, description, manifest.board)
        files[f"{room}/{name}.bit"] = bitstream[1]
    files[f"{room}/__init__.py"] = f'"""The design {name}: Accelerator({name!r}) of host opens it."""\n'.encode()
    for path in sorted((_ROOT / "host/notebooks").glob("*.ipynb")):
        files[f"{room}/notebooks/{path.name}"] = _unexecuted(_read(path))
    files[f"{room}/notebooks/__init__.py"] = b'"""Notebooks, for pynq get-notebooks."""\n'
    return files


def _unexecuted(notebook: bytes) -> bytes:
    """Return a notebook without the outputs of its cells, because they are meant to be computed on the board."""
    content = json.loads(notebook)
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _simulation_files(folder: Path, library: Path) -> dict[str, bytes]:
    """Return the compiled simulation library and the C++ or SystemVerilog that it was built from: {path: bytes}."""
    files = {path.relative_to(folder).as_posix(): _read(path) for path in sources(folder)}
    return files | {f"build/{library.name}": _read(library)}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise FileAccessError(str(path), reason, remedy="generate the design again") from error


def _only(folder: Path, pattern: str, what: str, remedy: str) -> tuple[Path, bytes]:
    """Return the path and the bytes of the only file in a folder whose name matches a pattern such as ``*.bit``.

    Raises:
        FileAccessError: There is no such file, or more than one.
    """
    paths = sorted(folder.glob(pattern))
    if len(paths) != 1:
        reason = f"must be one file; there is {listed(path.name for path in paths) or 'none'}"
        raise FileAccessError(str(folder / pattern), reason, what, remedy=remedy)
    return paths[0], _read(paths[0])


def _metadata(info: str, name: str, manifest: Manifest, tag: str) -> dict[str, bytes]:
    needs = "".join(f"Requires-Dist: {name}\n" for name in NEEDS)
    summary = json.dumps(f"{manifest.network} on {manifest.board}", ensure_ascii=True)[1:-1]
    described = (
        f"Metadata-Version: 2.1\nName: systolic_{name}\nVersion: {__version__}\nSummary: {summary}\n"
        f"Requires-Python: >=3.10\n{needs}"
    )
    points = (
        f"[pynq.overlays]\nsystolic_{name} = systolic_{name}\n\n"
        f"[pynq.notebooks]\nsystolic_{name} = systolic_{name}.notebooks\n\n"
        f"[systolic.designs]\n{name} = systolic_{name}\n"
    )
    return {
        f"{info}/METADATA": described.encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: systolic\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
        f"{info}/entry_points.txt": points.encode(),
    }


def _record(files: Mapping[str, bytes], info: str) -> bytes:
    lines = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()]
    return "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
