"""The log of C synthesis: why a loop's II was not reached."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from boards.errors import FileAccessError, cut
from systolic.vendor.reading.facts import Violation

MOST_LINES, LONGEST_LINE = 5_000_000, 4_000
LONGEST_CAUSE = 240
"""Characters."""

_VIOLATION = re.compile(r"WARNING: \[HLS 200-\d+\] The II Violation in module '([^']+)' \(loop '([^']+)'\): (.*)")
_FOLDER = re.compile(r"(?:/[\w.+-]+)+/(?=[\w.+-]+:\d)")


def read_log(path: Path) -> tuple[Violation, ...]:
    """Read the first violation of each loop, which is the one at the II that was asked for; FileAccessError if the log
    cannot be read."""
    causes: dict[tuple[str, str], str] = {}
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in islice(file, MOST_LINES):
                match = _VIOLATION.match(line[:LONGEST_LINE])
                if match:
                    causes.setdefault((match[1], match[2]), cut(_FOLDER.sub("", match[3].strip()), LONGEST_CAUSE))
    except OSError as error:
        reason, remedy = f"cannot be read: {error.strerror}", "copy the whole folder of reports"
        raise FileAccessError(str(path), reason, "log", remedy=remedy) from error
    return tuple(Violation(module, loop, cause) for (module, loop), cause in causes.items())
