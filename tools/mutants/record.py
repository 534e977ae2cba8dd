"""Read and write ``kills.json``, which names a test that notices each patch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
RECORD = HERE / "kills.json"
SUITES = ("default", "engine", "proof")

Kills = dict[str, dict[str, str]]
"""For each patch and suite the test that fails, or "" if none of those that may notice it fails."""


@dataclass(frozen=True)
class Score:
    """How many of the mutants that any test kills the first suites kill.

    Attributes:
        mutants: Number of mutants.
        killed: Those that some test kills.
        default: Those that the default suite kills.
        engine: Those that the default suite or ``engine`` kills.
        untried: Those that survive the default suite and were not tried on ``engine``, which may kill some.
    """

    mutants: int
    killed: int
    default: int
    engine: int
    untried: int = 0

    def __str__(self) -> str:
        parts = [f"{self.mutants} mutants, {self.killed} killed by some test"]
        parts += [f"by the default suite {_share(self.default, self.killed)}"]
        parts += [f"with engine {_share(self.engine, self.killed)}"]
        return "; ".join([*parts, f"{self.untried} that survive the default suite were not tried on engine"])


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole if whole else 0:.0f} %)"


def score(kills: Mapping[str, Mapping[str, str]]) -> Score:
    """Count the mutants of a seed."""
    rows = [row for name, row in kills.items() if name.startswith("patches/")]
    return Score(
        len(rows),
        sum(any(row.values()) for row in rows),
        sum(bool(row.get("default")) for row in rows),
        sum(bool(row.get("default") or row.get("engine")) for row in rows),
        sum(not row.get("default") and "engine" not in row for row in rows),
    )


def read(path: Path = RECORD) -> Kills:
    """Read the record; an absent file has none."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def write(kills: Mapping[str, Mapping[str, str]], path: Path = RECORD) -> None:
    """Write the record, so that a run that was stopped goes on there."""
    path.write_text(json.dumps(kills, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
