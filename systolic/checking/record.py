"""What a check has found of a design, kept beside its manifest for whoever tells a rate later."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from boards.errors import SystolicError
from host.contract.codec import read_json
from host.whole_file import write_whole
from systolic.report.clock import RateClock

CHECKED = "checked.json"
LARGEST = 1 << 16  # bytes


def keep(folder: Path, clock: RateClock) -> None:
    """Write it into the folder, where that can be written, which hinders nothing else."""
    record = {"sources": _digest(folder), "holds": clock.holds, "held_mhz": clock.held_mhz}
    with suppress(OSError):
        write_whole(folder / CHECKED, (json.dumps({"target_mhz": clock.target_mhz, **record}) + "\n").encode())


def kept(folder: Path, target_mhz: float) -> RateClock:
    """What a check of these sources at this clock has found; the target where there was none, or none of these."""
    with suppress(SystolicError, OSError, ValueError, TypeError, KeyError, OverflowError):
        record = read_json(folder / CHECKED, LARGEST)
        if record["sources"] == _digest(folder) and record["target_mhz"] == target_mhz and record["holds"] is False:
            held = record["held_mhz"]
            return RateClock(target_mhz, holds=False, held_mhz=None if held is None else _positive(held))
    return RateClock(target_mhz)


def _positive(mhz: float) -> float:
    """The number; TypeError for anything else than one, ValueError for one that is no clock."""
    if not 0 < mhz < float("inf"):
        raise ValueError(mhz)
    return float(mhz)


def _digest(folder: Path) -> str:
    """Of the sources."""
    digest = hashlib.sha256()
    for path in sorted((folder / "src").iterdir()):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()
