"""Proposes a change with which a network fits a board. Each proposal has been tested with a search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from boards import board as board_room
from boards.board import Board
from boards.errors import listed
from cnn.requantise import Thresholds
from scheduler.streaming import graph as g
from scheduler.streaming.result import FoldingResult, Goal, evaluate
from scheduler.streaming.search import infeasible
from scheduler.streaming.search.candidates import Options
from scheduler.streaming.search.program import program_of
from scheduler.streaming.search.solve import Solution, Stop, solve
from scheduler.streaming.search.space import space_of

SHARES = (infeasible.FREE, infeasible.SAFE, 0.0)
"""The shares of the on-chip memory for weights, in the order in which proposals try them. 0 moves all weights to DDR.
"""


@dataclass(frozen=True, eq=False)
class Refused:
    """A network that does not fit a board, with the goal and the options of the failed search.

    Attributes:
        graph: The network's graph.
        board: The board.
        goal: The goal of the search that failed.
        options: The options of that search.
        seconds: The time limit of each further search, or None for no limit.
    """

    graph: g.StreamGraph
    board: Board
    goal: Goal
    options: Options
    seconds: float | None


@dataclass(frozen=True)
class Proposal:
    """The change to propose to a user whose network does not fit the board, as fields of a DoesNotFitError.

    Attributes:
        nearest: A change with which the network fits, as a noun phrase. It is empty if none was found.
        remedy: A sentence on the systolic style if no change was found.
    """

    nearest: str
    remedy: str = ""


def what_would_fit(refused: Refused) -> Proposal:
    """Return a change with which the network fits. It tries weights in DDR, then larger boards, then names the systolic
    style."""
    for external in _external(refused):
        options = replace(refused.options, external=external)
        result = _priced(refused, refused.board, options)
        if result is not None:
            names = " ".join(external)
            nearest = f"the weights of {listed(external)} from DDR (--external {names}){_rate(refused, result)}"
            return Proposal(nearest)
    for board in _larger_boards(refused.board):
        result = _priced(refused, board, refused.options)
        if result is not None:
            return Proposal(f"{board.title} (--board {board.name}){_rate(refused, result)}")
    nothing = "no tested change fits, neither weights from DDR nor another board"
    return Proposal("", f"{nothing}; {_other_style(refused)}")


def _rate(refused: Refused, result: FoldingResult) -> str:
    """Return the end of a sentence: whether the folding ``result`` reaches the goal's frame rate."""
    if refused.goal.cycles is None:
        return ""
    return ", at this rate" if result.cycles <= refused.goal.cycles else ", at a lower rate"


def _external(refused: Refused) -> Iterator[tuple[str, ...]]:
    """Yield sets of layers to move to weights in DDR, each with more of the largest layers than the one before."""
    memory = infeasible.on_chip_bits(refused.board, refused.options.uram_weights)
    tried = {refused.options.external}
    for share in SHARES:
        names = infeasible.from_ddr(refused.graph, memory, refused.options.external, share)
        if names not in tried:
            tried.add(names)
            yield names


def _larger_boards(board: Board) -> Iterator[Board]:
    """Yield the known boards with more of any resource than ``board``, in ascending order of LUTs."""
    boards = [board_room.load(name) for name in board_room.names() if name != board.name]
    has = board.resources
    for larger in sorted(boards, key=lambda candidate: candidate.resources.lut):
        offered = larger.resources
        if offered.lut > has.lut or offered.bram36 > has.bram36 or offered.uram > has.uram or offered.dsp > has.dsp:
            yield larger


def _priced(refused: Refused, board: Board, options: Options) -> FoldingResult | None:
    """Return a folding of the network that fits ``board``, or None if there is none.

    The search tries the goal's cycles first, and then the most cycles that any folding takes.
    """
    if infeasible.too_many_weights(refused.graph, board, refused.goal.budget, options.external, options.uram_weights):
        return None
    space = space_of(refused.graph, board, options, refused.goal.traced)
    slowest = space.cycle_counts()[-1]
    for cycles in dict.fromkeys((refused.goal.cycles or slowest, slowest)):
        program = program_of(space, refused.goal, cycles)
        stop = Stop(at_first=True, seconds=refused.seconds)
        solution = solve(program, stop, Solution("unknown")) if program else Solution("infeasible")
        if solution.folds:
            result = evaluate(refused.graph, solution.folds, board, refused.goal)
            return result if result.fits else None
    return None


def _other_style(refused: Refused) -> str:
    """Return a sentence on whether to use the systolic style, which keeps weights and maps in DDR."""
    if any(_only_streams(block.op) for block in refused.graph.blocks):
        return "the systolic style, which keeps weights in DDR, does not have all of its layers"
    return "use the systolic style, which keeps weights in DDR: systolic generate NET --style systolic"


def _only_streams(op: g.BlockOp) -> bool:
    """Return whether the systolic style lacks an operation: layers of packages, integer softmaxes and thresholds."""
    return isinstance(op, g.Custom | g.Softmax) or (
        isinstance(op, g.Computing) and isinstance(op.activation, Thresholds)
    )
