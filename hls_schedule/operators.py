"""Delays of operators: what a reports' table says of an operator of a width, interpolated between the widths it has."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from boards.errors import ChoiceError, DamagedFileError, FileAccessError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

TABLE = Path(__file__).with_name("operators.toml")


@dataclass(frozen=True)
class Timing:
    """An operator takes ``stages`` clock cycles, in each of which its logic needs ``ns`` nanoseconds.

    With one stage it is combinational: operators are chained behind each other within a cycle. pipelined: a core with
    registers of its own, whose result is valid in its last stage.
    """

    stages: int
    ns: float
    setup: bool = False
    """Whether it is a register's input, which never waits for the next cycle."""

    @property
    def pipelined(self) -> bool:
        return self.stages > 1


@dataclass(frozen=True)
class OperatorTable:
    """Delays for one family and speed grade. widths: operator → ((bits, stages, ns), …), bits ascending.

    memories: (least words, least bits of a word, ns of an access), the last row that holds is taken.
    """

    part: str
    source: str
    widths: Mapping[str, tuple[tuple[int, int, float], ...]]
    memories: tuple[tuple[int, int, float], ...]
    grades: Mapping[str, float]
    """Speed grade and volts of the core, ``-1 0.85`` → by how much longer delays are, as data sheets say of DSPs."""

    def timing(self, operator: str, bits: int) -> Timing:
        """Return the timing of ``operator`` on values of ``bits``; beyond the table's widths that of the nearest width.

        Raises ChoiceError if the table does not have the operator.
        """
        rows = self.widths.get(operator)
        if rows is None:
            raise ChoiceError("an operator with a known delay", operator, sorted(self.widths), where=TABLE.name)
        position = bisect_left(rows, (bits,))
        if position == len(rows) or rows[position][0] == bits or position == 0:
            _, stages, ns = rows[min(position, len(rows) - 1)]
            return Timing(stages, ns)
        (narrow, _, low), (broad, stages, high) = rows[position - 1], rows[position]
        return Timing(stages, low + (high - low) * (bits - narrow) / (broad - narrow))

    def memory_ns(self, words: int, bits: int) -> float:
        """Nanoseconds of an access to a memory of so many words of so many bits."""
        holding = [ns for words_from, bits_from, ns in self.memories if words >= words_from and bits >= bits_from]
        return holding[-1]


@cache
def load_table(path: Path = TABLE) -> OperatorTable:
    """Read the delays in a TOML file.

    Raises:
        FileAccessError: The file cannot be read.
        DamagedFileError: It does not hold a table of delays.
    """
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        return OperatorTable(
            part=values["part"],
            source=values["source"],
            widths={
                name: tuple((int(b), int(s), float(n)) for b, s, n in rows)
                for name, rows in values["operators"].items()
            },
            memories=tuple((int(w), int(b), float(n)) for w, b, n in values["memories"]),
            grades=_grades(values["speed_grades"]),
        )
    except OSError as error:
        raise FileAccessError(str(path), f"cannot be read: {error.strerror}", "table of delays") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(str(path), f"does not hold a table of delays: {error}") from error


def _grades(clocks: Mapping[str, Any]) -> dict[str, float]:
    """clocks: MHz by grade, and which grade was measured."""
    reference = float(clocks[clocks["measured"]])
    return {grade: reference / float(mhz) for grade, mhz in clocks.items() if grade != "measured"}
