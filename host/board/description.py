"""The hardware description (.hwh) beside a bitstream: checked before pynq's own parser, which trusts it, reads it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from boards.errors import LONGEST_FAULT, HostError, cut
from host.contract.codec import read_bounded

LARGEST_DESCRIPTION = 1 << 26
"""Bytes; of a whole Vivado design it has some million."""


def check_description(path: Path) -> None:
    """HostError where the file is too large, no XML, or describes no modules."""
    again = "copy the .hwh of the .bit's own folder again"
    try:
        root = ElementTree.fromstring(read_bounded(path, LARGEST_DESCRIPTION))
    except OSError as error:
        raise HostError(f"{path} cannot be read ({error.strerror}); {again}") from error
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise HostError(
            f"{path} is no hardware description, it is no XML ({cut(error, LONGEST_FAULT)}); {again}"
        ) from error
    if root.tag != "EDKSYSTEM" or root.find("MODULES") is None:
        raise HostError(f"{path} is no hardware description, it has no modules; {again}")
