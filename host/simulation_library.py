"""What a simulated board needs of a generated folder: its simulation library, and how long its frames take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from boards.errors import HostError
from host.manifest import Manifest

if TYPE_CHECKING:
    from host.simulated import Pace

CYCLES = "cycles.json"
"""Written beside the manifest by whoever traced the design: {"pass_cycles": [cycles of each pass]}."""


def find_library(folder: Path, library: Path | str | None) -> Path:
    """``library``, or the newest native one in the folder's build/."""
    if library is not None:
        if not Path(library).is_file():
            raise HostError(f"{library}: there is no such simulation library; systolic.build.build(folder) makes it")
        return Path(library).absolute()
    found = sorted(folder.glob("build/native*.so"), key=lambda path: path.stat().st_mtime)
    found = [path for path in found if "trace" not in path.name and "sanitize" not in path.name]
    if not found:
        raise HostError(
            f"there is no board here, and {folder}/build holds no simulation library to stand in for it: "
            f"run systolic run {folder} PICTURE once, which builds it"
        )
    return found[-1].absolute()


def pace(folder: Path, manifest: Manifest, time_scale: float | str | None) -> Pace | None:
    """The design's own time, traced where cycles.json is there and modelled else."""
    from host.simulated import Pace

    if time_scale is None:
        return None
    if isinstance(time_scale, str) or not 0 < time_scale < 1e9:
        raise HostError(f"time_scale is 'fit' or a number above 0 and below 10⁹, not {time_scale!r}")
    traced = _traced(folder / CYCLES, manifest)
    if traced is not None:
        return Pace(traced, manifest.clock_mhz, time_scale, "traced")
    passes = [layer.cycles / (layer.last_pass - layer.first_pass + 1)
              for layer in manifest.layers for _ in range(layer.first_pass, layer.last_pass + 1)]  # fmt: skip
    return Pace(tuple(passes), manifest.clock_mhz, time_scale, "modelled")


def _traced(path: Path, manifest: Manifest) -> tuple[float, ...] | None:
    if not path.is_file():
        return None
    try:
        cycles = tuple(float(one) for one in json.loads(path.read_text("utf-8"))["pass_cycles"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise HostError(f"{path} is not usable ({error}); trace the design again") from error
    if len(cycles) != manifest.passes or not all(0 < one < 1e12 for one in cycles):
        raise HostError(f"{path} must hold cycles for {manifest.passes} passes; trace the design again")
    return cycles
