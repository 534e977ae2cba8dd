"""What packages of others add to reading a network: front-ends for files of other kinds, and passes by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from boards.errors import ConflictError, DamagedFileError, FileAccessError, InvalidValueError
from cnn.darknet.cfg import MAX_CFG_BYTES, read_text
from cnn.extending.registry import Registry
from cnn.network import Network
from cnn.passes.view import checked

FRONT_ENDS: Registry[Callable[[Path], Network]] = Registry("systolic.front_ends", {})
"""A file of another kind → its network, by the ending without its dot. A design keeps the file."""

ADDED_FILE = "model/network"
"""Of a design, with the ending that the file had."""

PASSES_FILE = "model/passes.json"
"""Names of the passes that a design's network went through."""

LARGEST_FILE = 1 << 30
"""Bytes of a file that a front-end reads."""


def is_added(name: Path | str) -> bool:
    """Whether a front-end of another package reads such a file."""
    return Path(name).suffix[1:] in FRONT_ENDS


def read_added(path: Path, *numbers: object) -> tuple[Network, bytes]:
    """Return the network of a file, and the file.

    numbers: weights, a seed, a size, of which such a file takes none.

    Raises:
        ConflictError: There are numbers.
        FileAccessError: The file cannot be read, or is too large.
        InvalidValueError: The front-end does not return a network.
    """
    given = [
        option for option, value in zip(("--weights", "--seed", "--size"), numbers, strict=False) if value is not None
    ]
    if given:
        reason = "the file holds its own numbers and size"
        raise ConflictError((f"the network {path}", *given), reason, remedy=f"leave out {', '.join(given)}")
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise FileAccessError(
                str(path), f"has {size:,} bytes, and at most {LARGEST_FILE:,} are read", "network file"
            )
        data = path.read_bytes()
    except OSError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror or error}", "network file") from error
    network = FRONT_ENDS[path.suffix[1:]](path)
    if not isinstance(network, Network):
        what = f"the result of the front-end of {path.suffix}"
        raise InvalidValueError(what, network, "a cnn.network.Network", where=str(path))
    return checked(network), data


def passes_of(folder: Path) -> tuple[str, ...]:
    """Names of the passes that the network of a generated folder went through."""
    path = folder / PASSES_FILE
    try:
        names = json.loads(read_text(path, MAX_CFG_BYTES, "list of passes")) if path.is_file() else []
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(str(path), "is not JSON, a list of names of passes") from error
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise DamagedFileError(str(path), "is not a list of names of passes")
    return tuple(names)
