"""Finding a generated design: by path, by the name of an installed one, or the one that is at hand."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from pathlib import Path

from boards.errors import HostError
from host.manifest import MANIFEST

GROUP = "systolic.designs"
"""Entry points of the wheels that ``systolic package`` makes: name → the package that holds the design."""

VARIABLE = "SYSTOLIC_DESIGN"
NEAR = ("accelerator", "systolic-demo/accelerator")
"""Where a notebook looks: what ``systolic demo`` makes, in its folder or above it."""


def installed() -> dict[str, Path]:
    """The designs of the wheels that are installed here, by name."""
    found = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        spec = importlib.util.find_spec(point.value)
        for place in spec.submodule_search_locations or () if spec else ():
            if (Path(place) / MANIFEST).is_file():
                found[point.name] = Path(place)
    return found


def design_folder(named: Path | str) -> Path:
    """The folder of a design, of one of its files, or of an installed one by its name. HostError where it is none."""
    path = Path(named)
    for folder in (path, path.parent, path.parent.parent):
        if (folder / MANIFEST).is_file():
            return folder
    known = installed()
    if str(named) in known:
        return known[str(named)]
    names = f" (installed here: {', '.join(known)})" if known else ""
    raise HostError(
        f"{named} is not a generated design, there is no {MANIFEST}, and no installed design has that name{names}; "
        "run systolic generate first, or copy the whole folder to the board"
    )


def find_design() -> Path:
    """For a notebook: what SYSTOLIC_DESIGN names, else what is installed, else what ``systolic demo`` made nearby."""
    if VARIABLE in os.environ:
        return design_folder(os.environ[VARIABLE])
    for folder in installed().values():
        return folder
    here = Path.cwd()
    for above in (here, *here.parents):
        for near in NEAR:
            if (above / near / MANIFEST).is_file():
                return above / near
    raise HostError(
        f"no generated design was found in or above {here} and none is installed: run systolic demo, or pip install "
        f"the wheel of systolic package, or set {VARIABLE} to a design's folder"
    )
