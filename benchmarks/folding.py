"""The three folders compared: python benchmarks/folding.py [NETWORK …] [--board NAME] [--deadline S] [--random-seed N]

Networks × boards × three frame rates: the highest that the budget allows, as the exact folder finds it, its half, and
its eighth. For each the greedy folder (FINN's SetFolding as published), the annealing one and the exact one: frames/s,
what it takes as estimated before any vendor tool, and the time to find it, on one core. "over": beyond the budget;
"slow": does not reach the rate. Ends with an error where the exact folder's cost is above another's that fits and is
fast enough.

All of it takes some minutes on one core; one network and one board take one at most.
"""

# ruff: noqa: E402  (one core has to be asked for before numpy is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import sys
import time
from collections.abc import Iterator

from boards.board import Board, load
from boards.errors import ScheduleError
from cnn import zoo
from scheduler.streaming import graph as g
from scheduler.streaming.area.cost import converter_count, fifo_bits, macs
from scheduler.streaming.folded import Folded, Goal
from scheduler.streaming.lower import lower
from scheduler.streaming.search import annealing, exact, greedy
from scheduler.streaming.search import infeasible as lack
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.space import Space, space_of

NETWORKS = ("ultranet", "cnv-w1a1", "mobilenet-w4a4")
CLOCKS = {"zcu104": 200.0, "ultra96-v2": 200.0, "pynq-z2": 100.0}
"""MHz that frames/s are stated at: a target, not what a vendor tool closed at."""

COLUMNS = (
    "network, board",
    "target",
    "folder",
    "frames/s",
    "cycles",
    "cost",
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
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--board", action="append", choices=sorted(CLOCKS))
    parser.add_argument("--deadline", type=float, default=60.0)
    parser.add_argument("--random-seed", type=int, default=0)
    given = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + " --- |" * len(COLUMNS))
    worse = [
        line
        for network in given.networks
        for board in given.board or CLOCKS
        for line in compare(network, load(board), given.deadline, given.random_seed)
    ]
    if worse:
        sys.exit("the exact folder is above another:\n" + "\n".join(worse))


def compare(network: str, board: Board, deadline: float, seed: int) -> Iterator[str]:
    """Prints the rows of a network on a board; yields what should not be."""
    graph = lower(zoo.load_exported(network, 0).quantized)
    start = time.perf_counter()
    clock, options = CLOCKS[board.name], Options()
    space = space_of(graph, board, options)
    counted = time.perf_counter() - start
    try:
        fastest = exact.fold(graph, board, Goal(None, clock), options, deadline, space)
    except ScheduleError as error:
        print(error, flush=True)
        options = Options(external=lack.from_ddr(graph, lack.on_chip_bits(board), (), lack.SAFE))
        space = space_of(graph, board, options)
        fastest = exact.fold(graph, board, Goal(None, clock), options, deadline, space)
    for share in (1, 2, 8):
        goal = Goal(fastest.cycles * share, clock)
        made = list(folders(graph, board, goal, options, deadline, seed, space))
        where = f"{network}, {board.title}"
        for name, found in made:
            seconds = found.seconds + (0 if name.startswith("greedy") else counted)
            print(row(where, name, found, goal, clock, seconds), flush=True)
        best = made[-1][1]
        for name, found in made[:-1]:
            if found.fits and found.cycles <= fastest.cycles * share and found.price < best.price:
                yield f"{where}, {goal.cycles} cycles: {name} {found.price} < {best.price}"
    mac, dsps = macs(graph), board.resources.dsp
    print(
        f"| | | | | | | | | | | | | | {mac / 1e6:.1f} M MAC: {mac / fastest.cycles / dsps:.2f} a cycle and DSP |",
        flush=True,
    )


def folders(
    graph: g.StreamGraph, board: Board, goal: Goal, options: Options, deadline: float, seed: int, space: Space
) -> Iterator[tuple[str, Folded]]:
    yield "greedy", greedy.fold(graph, board, goal, external=options.external)
    yield "greedy (≤)", greedy.fold(graph, board, goal, strict=False, external=options.external)
    yield "annealing", annealing.fold(graph, board, goal, options, seed=seed, space=space)
    yield "exact", exact.fold(graph, board, goal, options, deadline, space)


def row(where: str, name: str, found: Folded, goal: Goal, clock: float, seconds: float) -> str:
    target = clock * 1e6 / (goal.cycles or 1)
    used = found.usage
    said = "slow" if goal.cycles and found.cycles > goal.cycles else "" if found.fits else "over"
    proof = "proven" if found.state == "optimal" else f"gap {found.gap:.2%}" if found.state == "feasible" else said
    cells = (
        where,
        f"{target:,.0f}",
        name,
        f"{found.fps(clock):,.0f}",
        f"{found.cycles:,}",
        f"{found.price / 1e9:.3f}",
        f"{used.dsp}",
        f"{used.lut:,}",
        f"{used.bram18}",
        f"{used.uram}",
        f"{converter_count(found.folding)}",
        f"{fifo_bits(found.folding):,}",
        f"{seconds:.1f}",
        proof,
    )
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
