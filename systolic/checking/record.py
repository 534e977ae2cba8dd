"""The clock that a check found, stored in checked.json in the design's folder for later reports of the frame rate."""

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


def store_clock(folder: Path, clock: RateClock) -> None:
    """Store the clock that a check found in the design's folder. A folder that cannot be written is not an error."""
    record = {
        "sources": _digest(folder),
        "holds": clock.holds,
        "held_mhz": clock.held_mhz,
        "p50_mhz": clock.p50_mhz,
        "p90_mhz": clock.p90_mhz,
    }
    with suppress(OSError):
        write_whole(folder / CHECKED, (json.dumps({"target_mhz": clock.target_mhz, **record}) + "\n").encode())


def stored_clock(folder: Path, target_mhz: float) -> RateClock:
    """Return the clock that a check of these sources at this target stored, or the target clock if none is stored."""
    with suppress(SystolicError, OSError, ValueError, TypeError, KeyError, OverflowError):
        record = read_json(folder / CHECKED, LARGEST)
        if record["sources"] == _digest(folder) and record["target_mhz"] == target_mhz:
            held, p50, p90 = (_positive_or_none(record.get(key)) for key in ("held_mhz", "p50_mhz", "p90_mhz"))
            if record["holds"] is False:
                return RateClock(target_mhz, holds=False, held_mhz=held)
            return RateClock(target_mhz, p50_mhz=p50, p90_mhz=p90)
    return RateClock(target_mhz)


def _positive_or_none(mhz: float | None) -> float | None:
    """Return a clock in MHz or None; TypeError if it is not a number, ValueError if it is not positive and finite."""
    if mhz is not None and not 0 < mhz < float("inf"):
        raise ValueError(mhz)
    return None if mhz is None else float(mhz)


def _digest(folder: Path) -> str:
    """Return the SHA-256 digest of the design's generated sources."""
    digest = hashlib.sha256()
    for path in sorted((folder / "src").iterdir()):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()
