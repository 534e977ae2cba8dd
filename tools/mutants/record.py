"""Reads and writes ``kills.json``, which names a test that notices each patch, and reads ``equivalent.toml``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

HERE = Path(__file__).parent
RECORD = HERE / "kills.json"
EQUIVALENT = HERE / "equivalent.toml"
SUITES = ("default", "engine", "proof")

MIN_SHARES = {"default": 0.85, "engine": 0.95}
"""Least share of the killed mutants that the suites up to this one must kill."""

Kills = dict[str, dict[str, str]]
"""For each patch and suite, the test that fails, or "" if no tried test fails."""


@dataclass(frozen=True)
class Score:
    """Counts of mutants.

    Attributes:
        mutants: Number of recorded mutants.
        killed: Mutants that some test kills.
        default: Mutants that the default suite kills.
        engine: Mutants that the default suite or ``engine`` kills.
        equivalent: Mutants that behave like the original, as ``equivalent.toml`` says.
        untried: Other mutants that survive the default suite and were not tried on ``engine``.
    """

    mutants: int
    killed: int
    default: int
    engine: int
    equivalent: int = 0
    untried: int = 0

    def __str__(self) -> str:
        parts = [f"{self.mutants} mutants, {self.killed} killed by some test, {self.equivalent} equivalent"]
        parts += [f"by the default suite {_share(self.default, self.killed)}"]
        parts += [f"with engine {_share(self.engine, self.killed)}"]
        return "; ".join([*parts, f"{self.untried} that survive the default suite were not tried on engine"])

    def shortfalls(self) -> Iterator[str]:
        """Yield a sentence for each required share that is not reached."""
        for suite, killed in (("default", self.default), ("engine", self.engine)):
            if killed < MIN_SHARES[suite] * self.killed:
                yield f"{suite} kills {_share(killed, self.killed)}, less than {MIN_SHARES[suite]:.0%}"
        if self.untried:
            yield f"{self.untried} that survive the default suite were not tried on engine"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole if whole else 0:.1f} %)"


def score(kills: Mapping[str, Mapping[str, str]], equivalent: Mapping[str, str]) -> Score:
    """Count the mutants in ``patches/``."""
    rows = {name: row for name, row in kills.items() if name.startswith("patches/")}
    return Score(
        len(rows),
        sum(any(row.values()) for row in rows.values()),
        sum(bool(row.get("default")) for row in rows.values()),
        sum(bool(row.get("default") or row.get("engine")) for row in rows.values()),
        len(equivalent),
        sum(not row.get("default") and "engine" not in row for name, row in rows.items() if name not in equivalent),
    )


def read(path: Path = RECORD) -> Kills:
    """Read the record. A missing file is an empty record."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def read_equivalent(path: Path = EQUIVALENT) -> dict[str, str]:
    """Read the mutants that behave like the original, with the reason for each."""
    return dict(tomllib.loads(path.read_text("utf-8")))


def write(kills: Mapping[str, Mapping[str, str]], path: Path = RECORD) -> None:
    """Write the record. Called after every trial, so that a stopped run can continue."""
    path.write_text(json.dumps(kills, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
