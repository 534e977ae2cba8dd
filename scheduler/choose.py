"""A first array for a network and a board, by a simple rule: of the geometries that fit, the one whose layers
take the fewest cycles of compute. A real search replaces this function and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from boards.board import Board
from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.array import Array
from scheduler.lower import lower
from scheduler.resources import usage
from scheduler.tile import SystolicSchedule, ceil_div, tile

SHAPES = ((32, 16), (16, 16), (16, 8), (8, 8), (8, 4), (4, 4))
"""(columns, lanes): lanes up to one 128-bit AXI word."""

DEPTHS = ((2048, 4096), (2048, 2048), (1024, 2048), (1024, 1024), (512, 1024), (512, 512))
"""(row_depth, weight_depth), the largest first: more room never costs a cycle."""


def choose(network: QuantizedNetwork, board: Board) -> SystolicSchedule:
    """ScheduleError with the last reason where no geometry fits both the board and every layer."""
    lower(network)  # what no array can map is said once, not as a lack of room
    best: SystolicSchedule | None = None
    reason = f"no geometry fits {board.title}"
    for array in _candidates(network, board):
        try:
            found = tile(network, array)
        except ScheduleError as error:
            reason = str(error)
            continue
        if best is None or (found.cycles, found.array.dsps) < (best.cycles, best.array.dsps):
            best = found
    if best is None:
        raise ScheduleError(f"{network.name} does not fit {board.title}: {reason}")
    return best


def _candidates(network: QuantizedNetwork, board: Board) -> Iterator[Array]:
    tallest = max(node.shape.height for node in network.nodes)
    for columns, lanes in SHAPES:
        if 8 * lanes > max(port.bits for port in board.ports):
            continue
        for rows in range(2, min(64, tallest) + 1):
            array = _with_depths(_plain(network, board, rows, columns, lanes), board)
            if array is not None:
                yield array


def _plain(network: QuantizedNetwork, board: Board, rows: int, columns: int, lanes: int) -> Array:
    """Ports are shared evenly between maps and weights; kept sums and requantisers as the network needs."""
    ports = 2 if len(board.ports) >= 4 else 1
    widest = max(node.shape.channels * node.shape.width for node in network.nodes[1:])
    channels = max(node.shape.channels for node in network.nodes)
    return Array(
        rows,
        columns,
        lanes,
        save_rows=2,
        map_ports=min(ports, rows),
        weight_ports=ports,
        kept_depth=max(16, ceil_div(widest, columns)),
        chunk=64,
        channel_tiles=ceil_div(channels, columns),
        dsp=board.dsp.kind,
    )


def _with_depths(array: Array, board: Board) -> Array | None:
    fitting = (replace(array, row_depth=rows, weight_depth=weights) for rows, weights in DEPTHS)
    return next((a for a in fitting if usage(a, board).fits(board)), None)
