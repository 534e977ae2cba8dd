"""``systolic boards``: the boards with their parts, resources, DDR rates and clocks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from boards import board as board_room
from boards.board import Board
from systolic.cli.output import write_result
from systolic.model import boards
from systolic.report.tables import table


def run(options: argparse.Namespace) -> int:
    """Print a table of all boards, or the facts of the one named. JSON: {boards: [every fact of each board]}."""
    loaded = (board_room.load(options.board),) if options.board else boards()
    values = {"boards": [{**_values(board), "clocks_mhz": [clock.mhz for clock in board.clocks()]} for board in loaded]}
    write_result(options, values, _facts(loaded[0]) if options.board else _overview(loaded))
    return 0


def _values(board: Board) -> dict[str, Any]:
    values = asdict(board)
    del values["declaration"]
    return values


def _overview(loaded: Sequence[Board]) -> str:
    rows = [
        (
            board.name,
            board.title,
            board.part,
            board.resources.dsp,
            board.resources.bram36,
            board.resources.uram,
            board.resources.lut,
            board.ddr.preset_gbps,
            len(board.ports),
            board.design_clock(None).mhz,
            board.clocks()[-1].mhz,
        )
        for board in loaded
    ]
    head = ("board", "title", "part", "DSP", "BRAM36", "URAM", "LUT", "DDR GB/s", "ports", "target MHz", "highest MHz")
    notes = (
        "DDR GB/s: peak rate at the DDR speed of the board's preset.",
        "target MHz: the clock if --clock is not given, which public designs of the kind reach.",
        "highest MHz: the highest PL clock within the limits of the part.",
    )
    return "\n".join((table(head, rows), "", *notes))


def _facts(board: Board) -> str:
    clocks = ", ".join(f"{clock.mhz:g}" for clock in board.clocks()[-12:])
    rows: list[tuple[str, str]] = []
    for section, facts in _values(board).items():
        if isinstance(facts, dict):
            rows += [(f"{section}.{name}", str(value)) for name, value in facts.items()]
        elif isinstance(facts, (list, tuple)):
            rows += [(section, ", ".join(f"{key}={value}" for key, value in entry.items())) for entry in facts]
        else:
            rows.append((section, str(facts)))
    return table(("fact", board.title), [*rows, ("clocks (MHz)", clocks)])
