"""The hardware description (.hwh) beside a bitstream: checked before pynq's own parser, which trusts it, reads it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from boards.errors import MAX_FAULT_LENGTH, DamagedFileError, FileAccessError, cut
from host.contract.codec import read_bounded

LARGEST_DESCRIPTION = 1 << 26
"""Bytes; of a whole Vivado design it has some million."""

_ROLE = "hardware description"


def check_description(path: Path) -> None:
    """Raise FileAccessError, RangeError or DamagedFileError if the file is missing, too large or no description."""
    named, again = str(path), "copy the .hwh of the .bit's own folder again"
    try:
        root = ElementTree.fromstring(read_bounded(path, LARGEST_DESCRIPTION))
    except OSError as error:
        raise FileAccessError(named, f"cannot be read: {error.strerror}", _ROLE, remedy=again) from error
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        reason = f"is not a {_ROLE}: it is not XML ({cut(error, MAX_FAULT_LENGTH)})"
        raise DamagedFileError(named, reason, remedy=again) from error
    if root.tag != "EDKSYSTEM" or root.find("MODULES") is None:
        raise DamagedFileError(named, f"is not a {_ROLE}: it has no modules", remedy=again)
