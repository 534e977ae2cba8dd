"""All three folders on one network and board, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from boards.board import Board, Clock
from boards.errors import ScheduleError
from scheduler.streaming import graph as g
from scheduler.streaming.cost import converter_count, fifo_bits
from scheduler.streaming.folded import Folded
from systolic.streaming.flow import Asked, fold_network


@dataclass(frozen=True, eq=False)
class Row:
    """found: None where the folder found nothing, for ``reason``."""

    folder: str
    found: Folded | None
    reason: str = ""

    @property
    def converters(self) -> int | None:
        return None if self.found is None else converter_count(self.found.folding)

    @property
    def fifo_bits(self) -> int | None:
        return None if self.found is None else fifo_bits(self.found.folding)


@dataclass(frozen=True, eq=False)
class Comparison:
    network: str
    board: str
    clock_mhz: float
    rows: tuple[Row, ...]

    def values(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "board": self.board,
            "clock_mhz": self.clock_mhz,
            "folders": [self._values(row) for row in self.rows],
        }

    def _values(self, row: Row) -> dict[str, Any]:
        found = row.found
        if found is None:
            return {"folder": row.folder, "reason": row.reason}
        return {
            "folder": row.folder,
            "cycles": found.cycles,
            "fps": round(found.fps(self.clock_mhz), 2),
            **asdict(found.usage),
            "converters": row.converters,
            "fifo_bits": row.fifo_bits,
            "price": found.price / 1e9,
            "fits": found.fits,
            "state": found.state,
            "gap": found.gap,
            "seconds": round(found.seconds, 3),
        }


def compare_folders(
    graph: g.StreamGraph,
    board: Board,
    clock: Clock,
    asked: Asked,
    folders: Sequence[str],
    tell: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """What each of ``folders`` makes of the same wish; one that finds nothing says why and stops no other."""
    rows = []
    for folder in folders:
        tell(f"folding: {folder}")
        try:
            rows.append(Row(folder, fold_network(graph, board, clock, replace(asked, folder=folder))))
        except ScheduleError as error:
            rows.append(Row(folder, None, str(error).splitlines()[0]))
    return Comparison(graph.name, board.name, clock.mhz, tuple(rows))
