"""Search for a generated design: by path, by the name of an installed design, or in the usual folders."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from boards.errors import FileAccessError, InvalidValueError, ToolError, cut, listed
from host import arguments
from host.contract.manifest import read_manifest
from host.contract.parts import MANIFEST

GROUP = "systolic.designs"
"""Entry point group of the wheels that ``systolic package`` builds: design name → package that contains it."""

VARIABLE = "SYSTOLIC_DESIGN"
"""Environment variable with a design's folder, or several folders separated as in PATH."""

DEMO = Path("systolic-demo")
NEAR = ("accelerator", f"{DEMO}/accelerator", "tiny-yolov2-voc")
"""Folders that a notebook searches, in its own folder and the folders above it.

The first two are written by ``systolic demo``, the last by the first notebook from a user's weights. They are in order
of preference.
"""

SHARED = stat.S_IWOTH | stat.S_ISVTX
"""Mode bits of a folder in which every user may write but only the owner of a file may rename or delete it."""


def installed() -> dict[str, Path]:
    """Return the folders of the designs that installed Python wheels contain, by the design's name."""
    folders = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        spec = importlib.util.find_spec(point.value)
        for place in spec.submodule_search_locations or () if spec else ():
            if (Path(place) / MANIFEST).is_file():
                folders[point.name] = Path(place)
    return folders


def design_folder(named: Path | str) -> Path:
    """Return a design's folder, given the folder, one of its files or the name of an installed design.

    FileAccessError if there is no such design.
    """
    path = arguments.path("a design's folder, one of its files or its name", named)
    with contextlib.suppress(OSError):  # the name may be too long for the file system
        for folder in (path, path.parent, path.parent.parent):
            if (folder / MANIFEST).is_file():
                return folder
    designs = installed()
    if str(named) in designs:
        return designs[str(named)]
    names = f" (installed here: {listed(designs)})" if designs else ""
    raise FileAccessError(
        str(named),
        f"does not exist or contains no {MANIFEST}, and no installed design has that name{names}",
        "generated design",
        remedy="run systolic generate first, or copy the whole folder to the board",
    )


def find_design(network: str | None = None) -> Path:
    """Return the folder of a design for a notebook: from SYSTOLIC_DESIGN, else an installed design, else one generated
    nearby.

    Args:
        network: The name of the design's network, such as "tiny_yolov2_voc". None accepts any network.
    """
    if network is not None and not isinstance(network, str):
        raise InvalidValueError("network", network, "the name of a network, or None for any")
    current = Path.cwd()
    for folder in _candidates(current):
        if network is None or read_manifest(folder).network == network:
            return folder
    subject = "generated design" if network is None else f"design of {cut(network)}"
    how = "systolic demo" if network is None else f"systolic generate {cut(network.replace('_', '-'))}"
    raise FileAccessError(
        str(current),
        f"and the folders above it contain no {subject}, and none is installed",
        "folder",
        remedy=f"run {how}, or pip install the wheel of systolic package, or set {VARIABLE} to a design's folder",
    )


def any_design() -> Path:
    """Return the folder that ``find_design`` finds; if there is none, run ``systolic demo`` and return the folder that
    it makes.

    For notebooks that work with any design. FileAccessError if there is no design and systolic is not installed.
    ToolError if the demo fails.
    """
    try:
        return find_design()
    except FileAccessError:
        generator = importlib.util.find_spec("systolic")
        if VARIABLE in os.environ or generator is None:
            raise
    print(f"no design was found: systolic demo makes one in {DEMO.absolute()}")
    done = subprocess.run(
        [sys.executable, "-m", "systolic", "demo", "-o", DEMO], capture_output=True, text=True, errors="replace"
    )
    if done.returncode != 0:
        raise ToolError("systolic demo", f"ended with status {done.returncode}", done.stderr.strip()[-500:])
    return find_design()


def _candidates(current: Path) -> Iterator[Path]:
    if VARIABLE in os.environ:
        yield from (design_folder(named) for named in os.environ[VARIABLE].split(os.pathsep))
    yield from installed().values()
    for name in NEAR:
        yield from (above / name for above in _own_folders(current) if (above / name / MANIFEST).is_file())


def _own_folders(current: Path) -> Iterator[Path]:
    """Yield the current folder and its parents, up to the first folder that all users share, such as /tmp.

    A shared folder may contain another user's files, and opening a design executes its library.
    """
    yield current
    for above in current.parents:
        if above.stat().st_mode & SHARED == SHARED:
            return
        yield above
