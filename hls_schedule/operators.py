"""Delays of operators from a table that was read from reports, interpolated between the widths in the table."""

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
    """The timing of one operator: its pipeline stages, and the delay of the logic in each.

    Attributes:
        stages: Clock cycles. An operator of one stage is combinational and can be chained with others in a cycle.
        ns: Nanoseconds of the logic in each stage.
        setup: Whether the operator is the input of a register, which never moves to the next cycle.
    """

    stages: int
    ns: float
    setup: bool = False

    @property
    def pipelined(self) -> bool:
        """Return whether the operator is a core of several registered stages; the last one has the result."""
        return self.stages > 1


@dataclass(frozen=True)
class OperatorTable:
    """The delays of operators and memories for one FPGA family and speed grade.

    Attributes:
        part: The part of the reports.
        source: The origin of the reports.
        widths: Rows (bits, stages, ns) per operator, in ascending order of the bits.
        memories: Rows (minimum words, minimum bits of a word, ns of an access). The last row that applies is taken.
        grades: Factor of the delays per speed grade and core voltage, such as ``-1 0.85``, from the data sheet's DSPs.
    """

    part: str
    source: str
    widths: Mapping[str, tuple[tuple[int, int, float], ...]]
    memories: tuple[tuple[int, int, float], ...]
    grades: Mapping[str, float]

    def timing(self, operator: str, bits: int) -> Timing:
        """Return the stages and the delay of an operator on values of ``bits`` bits.

        Delays between two widths of the table are interpolated; beyond its widths, the nearest width is taken.

        Raises:
            ChoiceError: The table does not have the operator.
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
        """Return the nanoseconds of an access to a memory of ``words`` words of ``bits`` bits."""
        holding = [ns for words_from, bits_from, ns in self.memories if words >= words_from and bits >= bits_from]
        return holding[-1]


@cache
def load_table(path: Path = TABLE) -> OperatorTable:
    """Read the delays of operators and memories from a TOML file.

    Raises:
        FileAccessError: The file cannot be read.
        DamagedFileError: The file is not a table of delays.
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
    """Return, for each speed grade, the factor of its delays: the clock of the measured grade divided by its own
    clock."""
    reference = float(clocks[clocks["measured"]])
    return {grade: reference / float(mhz) for grade, mhz in clocks.items() if grade != "measured"}
