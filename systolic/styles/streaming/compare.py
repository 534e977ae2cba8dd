"""All three folders on one network and board, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from boards.board import Board
from boards.errors import ScheduleError
from boards.facts import Clock
from scheduler.streaming import graph as g
from systolic.styles.streaming.compared import Comparison, Row
from systolic.styles.streaming.flow import FOLDERS, StreamingOptions, fold_network


class ShownComparison(Comparison):
    """As Jupyter shows it; what draws it stands above the values that it draws."""

    def _repr_html_(self) -> str:
        from systolic.styles.streaming.report import compared_html

        return compared_html(self)


def compare_folders(
    graph: g.StreamGraph,
    board: Board,
    clock: Clock,
    asked: StreamingOptions,
    folders: Sequence[str] = FOLDERS,
    tell: Callable[[str], None] = lambda _: None,
) -> ShownComparison:
    """What each of ``folders`` makes of the same wish; one that finds nothing says why and stops no other.

    A name that is none of FOLDERS is that of the folding that ``asked`` was given.
    """
    rows = []
    for folder in folders:
        tell(f"folding: {folder}")
        wish = replace(asked, folder=folder, given=None) if folder in FOLDERS else asked
        try:
            rows.append(Row(folder, fold_network(graph, board, clock, wish)))
        except ScheduleError as error:
            rows.append(Row(folder, None, str(error).splitlines()[0]))
    return ShownComparison(graph.name, board.name, clock.mhz, tuple(rows), asked.fps)
