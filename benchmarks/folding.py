"""Compare the three folding searches: python -m benchmarks.folding [NETWORK …] [--board NAME] [--deadline S]

The cases are networks × boards × three frame rates: the highest rate within the budget, found by the exact search, and
a half and an eighth of it. The searches are greedy (FINN's SetFolding as published), annealing, and exact. For each the
table has frames/s, the resources estimated before any vendor tool, and the time of the search on one core. "over" means
beyond the budget, and "slow" means that the rate is not reached. The run fails if a folding that fits and is fast
enough has less area than the exact search's folding.

All cases take some minutes on one core. One network on one board takes at most a minute.
"""

# ruff: noqa: E402  (one core has to be asked for before numpy is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import sys
import time
from collections.abc import Iterator

from boards.board import Board, load
from boards.errors import DoesNotFitError, ToolError
from cnn import zoo
from scheduler.streaming.area.total import converter_count, fifo_bits, macs
from scheduler.streaming.lower import lower
from scheduler.streaming.result import FoldingResult, Goal
from scheduler.streaming.search import annealing, exact, greedy, infeasible
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.space import Space, space_of
from tools.parser import Parser

NETWORKS = ("ultranet", "cnv-w1a1", "mobilenet-w4a4")
CLOCKS = {"zcu104": 200.0, "ultra96-v2": 200.0, "pynq-z2": 100.0}
"""Clocks in MHz for frames/s. They are targets; no vendor tool has confirmed them."""

COLUMNS = (
    "network, board",
    "target",
    "search",
    "frames/s",
    "cycles",
    "area",
    "DSP",
    "LUT",
    "BRAM18",
    "URAM",
    "converters",
    "FIFO bits",
    "s",
    "",
)


def main() -> None:
    """Print the table. End with an error if another search beats the exact one."""
    parser = Parser()
    parser.add_argument(
        "networks", nargs="*", metavar="NETWORK", default=NETWORKS, help="built-in networks (default: all three)"
    )
    parser.add_argument(
        "--board", action="append", choices=sorted(CLOCKS), help="fold on this board; repeatable (default: all)"
    )
    parser.add_argument(
        "--deadline", type=float, default=60.0, metavar="SECONDS", help="limit of the exact search (default: 60)"
    )
    parser.add_argument(
        "--random-seed", type=int, default=0, metavar="N", help="random seed of the annealing search (default: 0)"
    )
    options = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + " --- |" * len(COLUMNS))
    worse = [
        line
        for network in options.networks
        for board in options.board or CLOCKS
        for line in compare(network, load(board), options.deadline, options.random_seed)
    ]
    if worse:
        sys.exit("the exact search is above another:\n" + "\n".join(worse))


def compare(network: str, board: Board, deadline: float, seed: int) -> Iterator[str]:
    """Print the rows of a network on a board. Yield a sentence for each search that beats the exact one."""
    graph = lower(zoo.load_exported(network, 0).quantized)
    start = time.perf_counter()
    clock, options = CLOCKS[board.name], Options()
    space = space_of(graph, board, options)
    counted = time.perf_counter() - start
    try:
        fastest = exact.fold(graph, board, Goal(None, clock), options, deadline, space)
    except (DoesNotFitError, ToolError) as error:
        print(error, flush=True)
        memory = infeasible.on_chip_bits(board)
        options = Options(external=infeasible.from_ddr(graph, memory, (), infeasible.SAFE))
        space = space_of(graph, board, options)
        fastest = exact.fold(graph, board, Goal(None, clock), options, deadline, space)
    for share in (1, 2, 8):
        goal = Goal(fastest.cycles * share, clock)
        results = list(foldings(space, goal, options, deadline, seed))
        for search, result in results:
            seconds = result.seconds + (0 if search.startswith("greedy") else counted)
            print(row(f"{network}, {board.title}", search, result, goal, seconds), flush=True)
        best = results[-1][1]
        for search, result in results[:-1]:
            if result.fits and result.cycles <= fastest.cycles * share and result.area < best.area:
                yield f"{network}, {board.title}, {goal.cycles} cycles: {search} {result.area} < {best.area}"
    mac, dsps = macs(graph), board.resources.dsp
    print(
        f"| | | | | | | | | | | | | | {mac / 1e6:.1f} M MAC: {mac / fastest.cycles / dsps:.2f} per cycle and DSP |",
        flush=True,
    )


def foldings(
    space: Space, goal: Goal, options: Options, deadline: float, seed: int
) -> Iterator[tuple[str, FoldingResult]]:
    """Yield each search's name and folding, with the exact search last."""
    graph, board = space.graph, space.board
    yield "greedy", greedy.fold(graph, board, goal, external=options.external)
    yield "greedy (≤)", greedy.fold(graph, board, goal, strict=False, external=options.external)
    yield "annealing", annealing.fold(graph, board, goal, options, annealing.Effort(seed=seed), space)
    yield "exact", exact.fold(graph, board, goal, options, deadline, space)


def row(case: str, search: str, result: FoldingResult, goal: Goal, seconds: float) -> str:
    """Return a table row for COLUMNS."""
    usage = result.usage
    verdict = "slow" if goal.cycles and result.cycles > goal.cycles else "" if result.fits else "over"
    proofs = {"optimal": "proven", "feasible": f"gap {result.gap:.2%}"}
    cells = (
        case,
        f"{goal.clock_mhz * 1e6 / (goal.cycles or 1):,.0f}",
        search,
        f"{result.frames_per_second(goal.clock_mhz):,.0f}",
        f"{result.cycles:,}",
        f"{result.boards:.3f}",
        f"{usage.dsp}",
        f"{usage.lut:,}",
        f"{usage.bram18}",
        f"{usage.uram}",
        f"{converter_count(result.folding)}",
        f"{fifo_bits(result.folding):,}",
        f"{seconds:.1f}",
        proofs.get(result.state, verdict),
    )
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
