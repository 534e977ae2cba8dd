"""Why nothing fits: the smallest array that holds the network, and what the board lacks for it.

The errors are taken from the tables that the search reads too: the rules of arrays (array.py) and of tilings
(tiling.py), and the buffers that layers need (needs.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from boards.board import Board
from boards.errors import DoesNotFitError, SeveralFaultsError, SystolicError
from scheduler.systolic.area.placement import excess, place
from scheduler.systolic.area.resources import Usage
from scheduler.systolic.array import Array, broken_rules, is_legal
from scheduler.systolic.needs import SEARCHED, SEARCHED_BUFFERS, fits_depths
from scheduler.systolic.search.problem import Problem
from scheduler.systolic.search.space import Geometry, Space, ports_fit
from scheduler.systolic.search.task import NetworkShapes, different_arrays, in_orders, ordered_tilings
from scheduler.systolic.shape import LayerShape, steps_after
from scheduler.systolic.tiling import (
    ORDERS,
    BufferNeeds,
    ColumnTiles,
    Tiling,
    broken_tiling_rules,
    buffer_needs,
    different_tilings,
)

_Tiled = Sequence[tuple[Tiling, BufferNeeds]]
"""The tilings of a layer in the space, each with the buffers that it needs."""


def nothing_fits(problem: Problem) -> DoesNotFitError | SeveralFaultsError:
    """Return the error for a network of which no array and tiling fit the board.

    It is a DoesNotFitError with all resources that are short, if the board is too small. It is a SeveralFaultsError if
    no array of the space holds the network on any board. That one has an error per layer, or per rule that an array
    breaks.
    """
    board, subject = problem.board, f"{problem.workload.network.name} on {problem.board.title}"
    nearest = _nearest(problem)
    if nearest is None:
        return _no_array(problem, subject)
    array, usage = nearest
    short = shortfalls(array, usage, board)
    assert short, f"{subject}: the search left out {array}, which keeps every rule and fits; make its reason a rule"
    (resource, need, have), *others = short
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
    """Return the error's remedy. If the user has pinned a parameter, the remedy is to remove that pin."""
    if space.orders != ORDERS:
        return f"leave out --order {', '.join(space.orders)}, which pins how every layer is tiled"
    if len(space.rows) == len(space.shapes) == 1:
        return "leave out --array, which pins it, or pin a smaller one"
    return "take a larger board, or a smaller input"


def shortfalls(array: Array, usage: Usage, board: Board) -> list[tuple[str, int, int]]:
    """Return the board resources of which ``array`` needs too much, as (name, need, available)."""
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


def _tiled_layers(network: NetworkShapes, geometry: Geometry, space: Space) -> Iterator[tuple[LayerShape, _Tiled]]:
    """Yield every layer with its tilings in the search space, each with the buffers that it needs."""
    for index, (shape, cuts) in enumerate(zip(network.shapes, network.cuts, strict=True)):
        next_steps = steps_after(network.shapes, index)
        yield (
            shape,
            [
                (tiling, buffer_needs(shape, geometry.rows, geometry.columns, tiling, next_steps))
                for tiling in ordered_tilings(space, shape, geometry.rows, cuts)
            ],
        )


# --- the board is too small ----------------------------------------------------------------------------------------


def _nearest(problem: Problem) -> tuple[Array, Usage] | None:
    """Return the array that exceeds the board least, and its resources, among the smallest legal array of every
    geometry."""
    board, space = problem.board, problem.space
    nearest: list[tuple[float, Array, Usage]] = []
    for width in space.shapes:
        for rows in space.rows:
            least = _least_arrays(Geometry(rows, *width), board, space, problem.networks[width])
            array = next(filter(is_legal, least), None)
            if array is not None:
                usage = place(array, board)[1]
                nearest.append((excess(usage, board), array, usage))
    if not nearest:
        return None
    _, array, usage = min(nearest, key=lambda candidate: candidate[0])
    return array, usage


def _least_arrays(geometry: Geometry, board: Board, space: Space, network: NetworkShapes) -> Iterator[Array]:
    """Yield the arrays of a geometry with the smallest buffer depths in which every layer has one tiling.

    The tiling of each layer is the one with the shallowest row buffer, then with the shallowest weight buffer. Nothing
    is yielded if no tiling of some layer fits the deepest buffers of the space.
    """
    deepest = [space.depths(name)[-1] for name in SEARCHED]
    layers = [
        [needs for _, needs in tilings if fits_depths(needs, deepest)]
        for _, tilings in _tiled_layers(network, geometry, space)
    ]
    if not all(layers):
        return
    least = [min(needs, key=lambda needs: (needs.row_depth, needs.weight_depth)) for needs in layers]
    depths: dict[str, Any] = {name: _step(space.depths(name), least, name) for name in SEARCHED}
    depths["map_depth"] = min(space.map_depths or (0,))
    for array in different_arrays(geometry, network, board, space):
        yield replace(array, **depths)


def _step(depths: tuple[int, ...], layers: list[BufferNeeds], name: str) -> int:
    """Return the smallest of the buffer depths ``depths`` that is enough for all ``layers``. ``name`` is the buffer's
    depth field."""
    depth = max(getattr(needs, name) for needs in layers)
    return next(step for step in depths if step >= depth)


# --- no array of the space is large enough, or legal ---------------------------------------------------------------


def _no_array(problem: Problem, subject: str) -> DoesNotFitError | SeveralFaultsError:
    """Return the error for a search space in which no array can hold the network, on any board.

    It names every layer that does not fit the deepest buffers of the space, or that has no tiling. If there is no such
    layer, no array of the geometry is legal, and the error names the rules that the smallest array breaks.

    Args:
        problem: The problem.
        subject: The network and the board, for the error.
    """
    space = problem.space
    width = max(space.shapes, key=lambda shape: (shape[1], -shape[0]))
    geometry, network = Geometry(space.rows[-1], *width), problem.networks[width]
    errors = [
        error
        for cuts, (shape, tilings) in zip(network.cuts, _tiled_layers(network, geometry, space), strict=True)
        if (error := _too_large(shape, tilings, space) if tilings else _never_legal(shape, cuts, geometry.rows, space))
    ]
    if errors:
        pinned = f" in the order {', '.join(space.orders)}" if space.orders != ORDERS else ""
        layers = "1 layer does" if len(errors) == 1 else f"{len(errors)} layers do"
        return SeveralFaultsError(errors, f"{subject}: {layers} not fit the array {geometry}{pinned}")
    array = next(_least_arrays(geometry, problem.board, space, network), None)
    if array is not None:
        return SeveralFaultsError(broken_rules(array), f"{subject}: no array is legal, as {array} shows")
    return DoesNotFitError(
        f"{subject}, with a weight buffer of {space.weight_depths[-1]} steps,",
        "words in a bank of the row buffer",
        None,
        space.row_depths[-1],
        remedy="allow deeper buffers",
    )


def _too_large(shape: LayerShape, tilings: _Tiled, space: Space) -> SystolicError | None:
    """Return the error for the first buffer that, even at its deepest, is too shallow for all tilings of the layer;
    else None.

    None if there is no such buffer.
    """
    for buffer in SEARCHED_BUFFERS:
        needed = ((buffer.of(shape, needs), tiling) for tiling, needs in tilings)
        need, tiling = min(needed, key=lambda pair: (pair[0], pair[1].columns.width))
        have = space.depths(buffer.name)[-1]
        if need > have:
            return buffer.too_shallow(shape, tiling, need, have)
    return None


def _never_legal(shape: LayerShape, cuts: tuple[ColumnTiles, ...], rows: int, space: Space) -> SystolicError:
    """Return the error for a layer without a legal tiling: the first rule that its first tiling breaks."""
    tiling = in_orders(space, shape, rows, different_tilings(shape, rows, cuts))[0]
    return broken_tiling_rules(shape, tiling, rows)[0].at(shape.name)
