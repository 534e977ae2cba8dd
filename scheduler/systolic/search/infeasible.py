"""Why nothing fits: the smallest array that holds the network, and what the board lacks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from boards.board import Board
from boards.errors import DoesNotFitError, SeveralFaultsError
from scheduler.systolic.area.placement import excess, place
from scheduler.systolic.area.resources import Usage
from scheduler.systolic.array import RULES, Array
from scheduler.systolic.engines.table import ENGINE_NAMED
from scheduler.systolic.needs import SEARCHED
from scheduler.systolic.search.problem import Problem
from scheduler.systolic.search.space import Geometry, Space, ports_fit
from scheduler.systolic.search.task import NetworkShapes, ordered_tilings
from scheduler.systolic.shape import LayerShape, steps_after
from scheduler.systolic.tiling import ORDERS, BufferNeeds, Tiling, buffer_needs

_Needed = tuple[LayerShape, tuple[tuple[Tiling, BufferNeeds], ...]]


def nothing_fits(problem: Problem) -> DoesNotFitError | SeveralFaultsError:
    """Return the error for a board on which no candidate fits.

    DoesNotFitError if the board is too small, with all resources that are short. SeveralFaultsError if the buffers of
    the space are too small, with a DoesNotFitError per layer. A rule that leaves out candidates for another reason
    must be known to ``_nearest``, so that the array that is named keeps it.
    """
    board, subject = problem.board, f"{problem.workload.network.name} on {problem.board.title}"
    nearest = _nearest(problem)
    if nearest is None:
        return _too_large(problem, subject)
    array, usage = nearest
    (resource, need, have), *others = shortfalls(array, usage, board)
    return DoesNotFitError(
        f"{subject}, with the smallest array that holds it ({array}, row_depth "
        f"{array.row_depth}, weight_depth {array.weight_depth}),",
        resource,
        need,
        have,
        tuple(others),
        remedy=_advice(problem.space),
    )


def _advice(space: Space) -> str:
    """Return what to do; a user gives up what is pinned before the board."""
    if space.orders != ORDERS:
        return f"leave out --order {', '.join(space.orders)}, which pins how every layer is tiled"
    if len(space.rows) == len(space.shapes) == 1:
        return "leave out --array, which pins it, or pin a smaller one"
    return "take a larger board, or a smaller input"


def shortfalls(array: Array, usage: Usage, board: Board) -> list[tuple[str, int, int]]:
    """Return every resource of which ``array`` needs more than the board has: its name, the need, what there is."""
    resources = board.resources
    rows = (
        ("DSPs", usage.dsp, resources.dsp),
        ("BRAM36", usage.bram36, resources.bram36),
        ("URAM", usage.uram, resources.uram),
        ("LUT", usage.lut, resources.lut),
        ("LUT as memory", usage.lutram, resources.lutram),
    )
    short = [row for row in rows if row[1] > row[2]]
    if not ports_fit(array, board):
        ports = array.map_ports + array.added_maps + array.weight_ports
        short.append(("AXI ports for maps, weights and the program", ports + 1, len(board.ports)))
    return short


def _needs(network: NetworkShapes, geometry: Geometry, space: Space) -> Iterator[_Needed]:
    """Of every layer its tilings in the space, and what each needs."""
    for index, (shape, cuts) in enumerate(zip(network.shapes, network.cuts, strict=True)):
        next_steps = steps_after(network.shapes, index)
        yield (
            shape,
            tuple(
                (tiling, buffer_needs(shape, geometry.rows, geometry.columns, tiling, next_steps))
                for tiling in ordered_tilings(space, shape, geometry.rows, cuts)
            ),
        )


# --- the board is too small ----------------------------------------------------------------------------------------


def _nearest(problem: Problem) -> tuple[Array, Usage] | None:
    """Of the least buffers of every geometry those that exceed the board least."""
    board, space = problem.board, problem.space
    nearest: list[tuple[float, Array, Usage]] = []
    for width in space.shapes:
        for rows in space.rows:
            array = _least_array(Geometry(rows, *width), board, space, problem.networks[width])
            if array is not None:
                usage = place(array, board)[1]
                nearest.append((excess(usage, board), array, usage))
    if not nearest:
        return None
    _, array, usage = min(nearest, key=lambda candidate: candidate[0])
    return array, usage


def _least_array(geometry: Geometry, board: Board, space: Space, network: NetworkShapes) -> Array | None:
    """The smallest buffers in which every layer has one tiling: that of the fewest rows, then of the fewest weights."""
    needs = [
        min((needs for _, needs in tilings), key=lambda needs: (needs.row_depth, needs.weight_depth))
        for _, tilings in _needs(network, geometry, space)
    ]
    depths: dict[str, Any] = {name: _step(space.depths(name), needs, name) for name in SEARCHED}
    if None in depths.values():
        return None
    array = Array(
        geometry.rows,
        geometry.columns,
        geometry.lanes,
        space.save_rows[0],
        space.map_ports[0],
        space.weight_ports[0],
        **depths,
        chunk=space.chunks[0],
        channel_tiles=max(layer.channel_tiles for layer in needs),
        dsp=board.dsp.kind,
        bits=space.bits,
        map_depth=min(space.map_depths or (0,)),
        sum_bits=ENGINE_NAMED[space.engine].sum_bits(network.shapes),
        **space.of_all,
    )
    return array if all(rule.holds(array) for rule in RULES) else None


def _step(depths: tuple[int, ...], layers: list[BufferNeeds], name: str) -> int | None:
    """The first of ``depths`` that every layer's need of this name fits in; None where none is."""
    depth = max(getattr(needs, name) for needs in layers)
    return next((step for step in depths if step >= depth), None)


# --- the space's buffers are too small -----------------------------------------------------------------------------


def _too_large(problem: Problem, subject: str) -> DoesNotFitError | SeveralFaultsError:
    """Return an error with every layer that the deepest buffers of the space do not hold.

    subject: network and board.
    """
    space = problem.space
    width = max(space.shapes, key=lambda shape: (shape[1], -shape[0]))
    geometry = Geometry(space.rows[-1], *width)
    errors = [
        error
        for shape, tilings in _needs(problem.networks[width], geometry, space)
        if (error := _layer_too_large(shape, tilings, geometry, space))
    ]
    if not errors:
        return DoesNotFitError(
            f"{subject}, with a weight buffer of {space.weight_depths[-1]} steps,",
            "words in a bank of the row buffer",
            None,
            space.row_depths[-1],
            remedy="allow deeper buffers",
        )
    pinned = f" in the order {', '.join(space.orders)}" if space.orders != ORDERS else ""
    return SeveralFaultsError(errors, f"{subject}: {len(errors)} layers do not fit the array {geometry}{pinned}")


@dataclass(frozen=True)
class _Sentence:
    """How it is said that no tiling of a layer runs in the deepest buffer.

    Attributes:
        name: The buffer's depth, one of SEARCHED.
        subject: What does not fit, under the tiling that needs least.
        resource: What the depth counts.
        nearest: What would fit.
    """

    name: str
    subject: Callable[[LayerShape, Tiling], str]
    resource: Callable[[Geometry], str]
    nearest: Callable[[int], str]


_SENTENCES = (
    _Sentence(
        "row_depth",
        lambda shape, tiling: f"the narrowest column tile ({tiling.columns.width} columns)",
        lambda geometry: "words in a bank of the row buffer",
        lambda need: f"row_depth {need + need % 2}, or more rows",
    ),
    _Sentence(
        "kept_depth",
        lambda shape, tiling: "the tile of sums that wait for the tile below",
        lambda geometry: "sums in the Saver",
        lambda need: f"kept_depth {need}, or an even number of rows",
    ),
    _Sentence(
        "weight_depth",
        lambda shape, tiling: f"the tile of {shape.steps} steps with the one that follows",
        lambda geometry: f"steps of {geometry.columns}×{geometry.lanes} weights in the weight buffer",
        lambda need: f"weight_depth {need}, or more lanes",
    ),
)


def _layer_too_large(
    shape: LayerShape, tilings: tuple[tuple[Tiling, BufferNeeds], ...], geometry: Geometry, space: Space
) -> DoesNotFitError | None:
    """Return the error for the first buffer that, at its deepest, holds the layer under no tiling.

    None if each buffer holds it under some tiling.
    """
    for sentence in _SENTENCES:
        needed = ((getattr(needs, sentence.name), tiling) for tiling, needs in tilings)
        need, tiling = min(needed, key=lambda pair: (pair[0], pair[1].columns.width))
        have = space.depths(sentence.name)[-1]
        if need > have:
            subject, resource = sentence.subject(shape, tiling), sentence.resource(geometry)
            return DoesNotFitError(subject, resource, need, have, nearest=sentence.nearest(need), where=shape.name)
    return None
