"""Reads the log of C synthesis: the reasons why loops did not reach their target II."""

from __future__ import annotations

import re
from pathlib import Path

from boards.errors import cut
from systolic.vendor.reading.facts import Violation
from systolic.vendor.reading.text import lines_of

MAX_CAUSE_LENGTH = 240
"""The number of characters at which a reason is cut."""

_VIOLATION = re.compile(r"WARNING: \[HLS 200-\d+\] The II Violation in module '([^']+)' \(loop '([^']+)'\): (.*)")
_FOLDER = re.compile(r"(?:/[\w.+-]+)+/(?=[\w.+-]+:\d)")


def read_log(path: Path) -> tuple[Violation, ...]:
    """Return each loop's first II violation in the log. It is the one at the target II; later ones are at a higher II.

    Raises:
        FileAccessError: The log cannot be read.
    """
    causes: dict[tuple[str, str], str] = {}
    for line in lines_of(path):
        match = _VIOLATION.match(line)
        if match:
            causes.setdefault((match[1], match[2]), cut(_FOLDER.sub("", match[3].strip()), MAX_CAUSE_LENGTH))
    return tuple(Violation(module, loop, cause) for (module, loop), cause in causes.items())
