"""Finding a generated design: by path, by the name of an installed one, or the one that is at hand."""

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
"""Entry points of the wheels that ``systolic package`` makes: name → the package that holds the design."""

VARIABLE = "SYSTOLIC_DESIGN"
"""A design's folder, or several as in PATH."""

DEMO = Path("systolic-demo")
NEAR = ("accelerator", f"{DEMO}/accelerator", "tiny-yolov2-voc")
"""Where a notebook looks, in its folder or above it: what ``systolic demo`` made, wherever that is, comes before what
the first notebook made of a user's weights."""

SHARED = stat.S_IWOTH | stat.S_ISVTX
"""Mode bits of a folder in which every user writes and each owns what is theirs."""


def installed() -> dict[str, Path]:
    """The designs of the wheels that are installed here, by name."""
    folders = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        spec = importlib.util.find_spec(point.value)
        for place in spec.submodule_search_locations or () if spec else ():
            if (Path(place) / MANIFEST).is_file():
                folders[point.name] = Path(place)
    return folders


def design_folder(named: Path | str) -> Path:
    """Return the folder of a design, given itself, one of its files or the name of an installed design.

    FileAccessError if there is no such design.
    """
    path = arguments.path("a design's folder, one of its files or its name", named)
    with contextlib.suppress(OSError):  # a name that is longer than any file's
        for folder in (path, path.parent, path.parent.parent):
            if (folder / MANIFEST).is_file():
                return folder
    designs = installed()
    if str(named) in designs:
        return designs[str(named)]
    names = f" (installed here: {listed(designs)})" if designs else ""
    raise FileAccessError(
        str(named),
        f"does not exist or holds no {MANIFEST}, and no installed design has that name{names}",
        "generated design",
        remedy="run systolic generate first, or copy the whole folder to the board",
    )


def find_design(network: str | None = None) -> Path:
    """For a notebook: what SYSTOLIC_DESIGN names, else what is installed, else what was made nearby.

    network: the design's own name for it, "tiny_yolov2_voc" for instance; any where it is None.
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
        f"and those above it hold no {subject}, and none is installed",
        "folder",
        remedy=f"run {how}, or pip install the wheel of systolic package, or set {VARIABLE} to a design's folder",
    )


def any_design() -> Path:
    """For a notebook that does with any: ``find_design()``, and what ``systolic demo`` makes here where there is none.

    FileAccessError if there is none and systolic is not installed, ToolError if its demo ends with an error.
    """
    try:
        return find_design()
    except FileAccessError:
        generator = importlib.util.find_spec("systolic")
        if VARIABLE in os.environ or generator is None:
            raise
    print(f"no design is at hand: systolic demo makes one in {DEMO.absolute()}")
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
    """The current folder and those above it, short of one that users share, /tmp for instance: what lies there may be
    anybody's, and a design's library is executed."""
    yield current
    for above in current.parents:
        if above.stat().st_mode & SHARED == SHARED:
            return
        yield above
