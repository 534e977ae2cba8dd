"""Why nothing fits: the least array that would, and what the board lacks for it."""

from __future__ import annotations

from boards.board import Board
from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div
from scheduler.systolic.area.placement import excess, place
from scheduler.systolic.area.resources import Usage
from scheduler.systolic.array import RULES, Array
from scheduler.systolic.search.space import Geometry, Space, ports_fit
from scheduler.systolic.search.task import Layers
from scheduler.systolic.tiling import tile
from scheduler.systolic.work import following_steps, needs, ways


def nothing_fits(network: QuantizedNetwork, board: Board, space: Space, made: dict[tuple[int, int], Layers]) -> str:
    """The sentence for a board on which no candidate fits. made: the network on every shape of the space."""
    nearest = _nearest(board, space, made)
    if nearest is None:
        return f"{network.name} does not fit {board.title}: {_too_large(network, board, space)}"
    array, used = nearest
    return (
        f"{network.name} does not fit {board.title}: the least array that holds it, {array} with row_depth="
        f"{array.row_depth} and weight_depth={array.weight_depth}, needs {', '.join(lacks(array, used, board))}; "
        f"{_advice(space)}"
    )


def _advice(space: Space) -> str:
    """A pinned array is what a user gives up before the board."""
    if len(space.rows) == len(space.shapes) == 1:
        return "leave out --array, which pins it, or pin a smaller one"
    return "take a larger board, or a smaller input"


def _too_large(network: QuantizedNetwork, board: Board, space: Space) -> str:
    """The layers that the deepest buffers of the space do not hold: which buffer, by how much, what would."""
    columns, lanes = max(space.shapes, key=lambda shape: (shape[1], -shape[0]))
    channels = max(node.shape.channels for node in network.nodes)
    array = Array(
        space.rows[-1],
        columns,
        lanes,
        space.save_rows[0],
        space.map_ports[0],
        space.weight_ports[0],
        space.row_depths[-1],
        space.weight_depths[-1],
        space.kept_depths[-1],
        space.chunks[0],
        ceil_div(channels, columns),
        board.dsp.kind,
        space.bits,
    )
    try:
        tile(network, array)
    except ScheduleError as error:
        return str(error)
    return (
        f"no row buffer of {space.row_depths[-1]} words and weight buffer of {space.weight_depths[-1]} steps "
        "hold every layer; allow deeper ones"
    )


def lacks(array: Array, used: Usage, board: Board) -> list[str]:
    """What ``array`` needs and the board does not have, a phrase each."""
    have = board.resources
    pairs = (
        ("DSP", used.dsp, have.dsp),
        ("BRAM36", used.bram36, have.bram36),
        ("URAM", used.uram, have.uram),
        ("LUT", used.lut, have.lut),
        ("LUT as memory", used.lutram, have.lutram),
    )
    found = [f"{need} {name} of {got} ({need - got} too many)" for name, need, got in pairs if need > got]
    if not ports_fit(array, board):
        found.append(
            f"{array.map_ports + array.weight_ports} AXI ports for maps and weights and one for the program "
            f"of {len(board.ports)}"
        )
    return found


def _nearest(board: Board, space: Space, made: dict[tuple[int, int], Layers]) -> tuple[Array, Usage] | None:
    """Of the least buffers of every geometry those that exceed the board least."""
    found: list[tuple[float, Array, Usage]] = []
    for columns, lanes in space.shapes:
        for rows in space.rows:
            array = _least_array(Geometry(rows, columns, lanes), board, space, made[columns, lanes])
            if array is not None:
                used = place(array, board)[1]
                found.append((excess(used, board), array, used))
    if not found:
        return None
    _, array, used = min(found, key=lambda f: f[0])
    return array, used


def _least_array(geometry: Geometry, board: Board, space: Space, layers: Layers) -> Array | None:
    """The smallest buffers in which every layer has one way at least (each buffer by itself)."""
    least = [0, 0, 0]
    tiles = 1
    for index, (work, choices) in enumerate(zip(layers.works, layers.cuts, strict=True)):
        following = following_steps(layers.works, index)
        every = [needs(work, geometry.rows, geometry.columns, w, following) for w in ways(work, geometry.rows, choices)]
        way = min(every, key=lambda n: (n.row_depth, n.weight_depth))
        least = [max(a, b) for a, b in zip(least, (way.row_depth, way.weight_depth, way.kept_depth), strict=True)]
        tiles = max(tiles, way.channel_tiles)
    depths = [
        next((d for d in steps if d >= n), None)
        for n, steps in zip(least, (space.row_depths, space.weight_depths, space.kept_depths), strict=True)
    ]
    if None in depths:
        return None
    rows, weights, kept = (int(d) for d in depths if d is not None)
    array = Array(
        geometry.rows,
        geometry.columns,
        geometry.lanes,
        space.save_rows[0],
        space.map_ports[0],
        space.weight_ports[0],
        rows,
        weights,
        kept,
        space.chunks[0],
        tiles,
        board.dsp.kind,
        space.bits,
        map_depth=min(space.map_depths or (0,)),
    )
    return array if all(rule.holds(array) for rule in RULES) else None
