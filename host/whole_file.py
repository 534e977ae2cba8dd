"""Files that are whole or not there: written beside their place, then renamed."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Until the last byte is written ``path`` is what it was, whatever stops the writing. OSError where it cannot be.

    A pipe or a device is written as it is: nothing can be renamed over it.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = path.resolve()
    beside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
