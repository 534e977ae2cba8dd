"""What the search looks at: arrays by lists of their numbers, the goal, and pins that narrow both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from boards.board import Board
from boards.errors import ScheduleError
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.arithmetic import ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.area.resources import Usage
from scheduler.systolic.array import RULES, Array, check
from scheduler.systolic.formats import least_bits
from scheduler.systolic.layers import lower
from scheduler.systolic.work import MAX_STRIPS, ORDERS

OBJECTIVES = ("fps", "latency", "ddr", "resources")
"""fps: least cycles a frame. latency: the same here, because the engine takes one frame after the other. ddr: least
bytes a frame at a frame rate. resources: least area at a frame rate, the mean share of the board's DSP,
BRAM36, LUT and (where it has any) URAM."""

HELD = ("ddr", "resources")
"""Objectives at a frame rate that has to be held."""

NEVER = np.int64(1) << 60
"""More cycles, bytes or area than anything takes."""


@dataclass(frozen=True)
class Space:
    """What is searched. shapes: (columns, lanes). Depths are steps of the primitives, up to what the board holds.
    bits: the format of the lanes. port_bits: of the board's widest port. map_depths: None for every depth that holds
    one map more than the one before (scheduler/systolic/search/price.py); every map that may and fits stays on chip."""

    rows: tuple[int, ...]
    shapes: tuple[tuple[int, int], ...]
    save_rows: tuple[int, ...]
    chunks: tuple[int, ...]
    map_ports: tuple[int, ...]
    weight_ports: tuple[int, ...]
    row_depths: tuple[int, ...]
    weight_depths: tuple[int, ...]
    kept_depths: tuple[int, ...]
    strips: int = MAX_STRIPS
    orders: tuple[str, ...] = ORDERS
    bits: int = 8
    port_bits: int = 128
    map_depths: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Goal:
    """objective: one of OBJECTIVES. frames_per_second: what "ddr" and "resources" have to reach."""

    objective: str = "fps"
    frames_per_second: float = 0.0

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ScheduleError(f"an objective is one of {', '.join(OBJECTIVES)}, not {self.objective!r}")
        if not 0 <= self.frames_per_second < float("inf"):
            raise ScheduleError(f"a frame rate is a number of at least 0, not {self.frames_per_second:g}")
        if self.objective in HELD and self.frames_per_second == 0:
            raise ScheduleError(
                f"the objective {self.objective!r} needs a frame rate above 0 to hold, give --fps RATE: without one "
                "the slowest array wins"
            )

    def most_cycles(self, ddr: DdrTiming) -> int:
        """Cycles that a frame may take."""
        if self.frames_per_second == 0:
            return int(NEVER)
        return int(ddr.clock_mhz * 1e6 / self.frames_per_second)


MOST_FRAMES = Goal()


@dataclass(frozen=True)
class Geometry:
    rows: int
    columns: int
    lanes: int

    def __str__(self) -> str:
        return f"{self.rows}×{self.columns}×{self.lanes}"


def space_of(network: QuantizedNetwork, board: Board, bits: int | None = None, batch: int = 1) -> Space:
    """All that today's engine builds on this board, for this network. bits: the format of the lanes, the narrowest that
    holds the network where it is None."""
    bits = least_bits(network) if bits is None else bits
    port = max(p.bits for p in board.ports)
    jobs = lower(network, batch)
    tallest = max([node.shape.height for node in network.nodes] + [job.out.height for job in jobs])
    lanes = [n for n in (4, 8, 16, 32, 64) if bits * n <= port and (bits > 4 or n >= 8)]
    shapes = [(k * n, n) for n in lanes for k in range(1, 65) if k * n % 2 == 0 and k * n <= 256]
    widths = {job.saved.width for job in jobs}
    return Space(
        rows=tuple(range(2, min(64, max(2, tallest)) + 1)),
        shapes=tuple(shapes),
        save_rows=(1, 2, 4, 8, 16),
        chunks=_chunks(widths),
        map_ports=(1, 2, 4),
        weight_ports=(1, 2, 4),
        row_depths=tuple(range(1024, 16 * 1024 + 1, 1024)),
        weight_depths=tuple(range(4096, 32 * 1024 + 1, 4096)) if board.resources.uram else _halves(),
        kept_depths=tuple(range(512, 8 * 512 + 1, 512)),
        bits=bits,
        port_bits=port,
    )


def _halves() -> tuple[int, ...]:
    return tuple(range(512, 8 * 1024 + 1, 512))


def _chunks(widths: Iterable[int]) -> tuple[int, ...]:
    """Chunks that cut the widest map evenly, so that none is a short one that the next waits for, and round ones."""
    widest = max(widths)
    even = {ceil_div(widest, k) for k in range(1, 9)}
    return tuple(sorted(c for c in even | {16, 32, 64} if 8 <= c <= 128)) or (max(1, widest),)


_LISTS = {
    "chunk": "chunks",
    "row_depth": "row_depths",
    "weight_depth": "weight_depths",
    "kept_depth": "kept_depths",
    "map_depth": "map_depths",
}


def pin(space: Space, **numbers: int | str | None) -> Space:
    """The part of the space in which the given numbers stand; ScheduleError names the rule that a pin breaks.

    rows, columns, lanes, save_rows, chunk, map_ports, weight_ports, row_depth, weight_depth, kept_depth, map_depth,
    order.
    """
    given = {name: value for name, value in numbers.items() if value is not None}
    order = given.pop("order", None)
    if order is not None and order not in ORDERS:
        raise ScheduleError(f"a loop order is one of {', '.join(ORDERS)}, not {order!r}")
    ints = {name: int(value) for name, value in given.items()}
    _check_pins(ints, space.bits)
    shapes = space.shapes
    if "columns" in ints or "lanes" in ints:
        lanes = [ints["lanes"]] if "lanes" in ints else sorted({shape[1] for shape in shapes})
        columns = [ints["columns"]] if "columns" in ints else sorted({shape[0] for shape in shapes})
        shapes = tuple((n, m) for m in lanes for n in columns if n % m == 0)
    lists = {_LISTS.get(name, name): (value,) for name, value in ints.items() if name not in ("columns", "lanes")}
    narrowed: Space = replace(space, shapes=shapes, **lists)  # type: ignore[arg-type]
    return narrowed if order is None else replace(narrowed, orders=(str(order),))


def _check_pins(ints: dict[str, int], bits: int) -> None:
    """Rules that the pins break whatever the other numbers are."""
    rows, lanes = ints.get("rows", 64), ints.get("lanes", 8 if bits == 4 else 4)
    columns = ints.get("columns", lanes * 4)
    array = replace(Array(rows, columns, lanes, 1, 1, 1, bits=bits), **ints)  # type: ignore[arg-type]
    check(array)


def weight_words(geometry: Geometry, space: Space, ports: int) -> int:
    """As many words of weights a cycle as a port is wide: fewer are never faster."""
    fitting = [n for n in (4, 2, 1) if n * geometry.lanes * space.bits <= space.port_bits]
    return next((n for n in fitting if geometry.columns % (ports * n) == 0), 1)


def legal(array: Array, board: Board) -> bool:
    return all(rule.holds(array) for rule in RULES) and array.dsps <= board.resources.dsp and ports_fit(array, board)


def ports_fit(array: Array, board: Board) -> bool:
    """One port of the PS stays for the program and the requantisers."""
    return array.map_ports + array.weight_ports < max(3, len(board.ports))


WHOLE = 10**12
"""The area of all that a board has."""


def unit_areas(board: Board) -> Usage:
    """The area of one DSP, BRAM36, URAM and LUT; a LUT that is memory is counted as the LUT that it is."""
    have = board.resources
    kinds = 4 if have.uram else 3
    return Usage(
        WHOLE // (kinds * have.dsp),
        WHOLE // (kinds * have.bram36),
        WHOLE // (kinds * have.uram) if have.uram else 0,
        WHOLE // (kinds * have.lut),
    )


def area(used: Usage, board: Board) -> int:
    """Mean share of the board's DSP, BRAM36, LUT and (where there is any) URAM, in 10⁻¹²: a sum over units, so that the
    least area of a design is that of its parts where the board has room."""
    one = unit_areas(board)
    return used.dsp * one.dsp + used.bram36 * one.bram36 + used.uram * one.uram + used.lut * one.lut


def geometries(space: Space, board: Board) -> Iterator[Geometry]:
    """Geometries whose PEs the board's DSPs can be."""
    for columns, lanes in space.shapes:
        for rows in space.rows:
            array = Array(
                rows, columns, lanes, save_rows=1, map_ports=1, weight_ports=1, dsp=board.dsp.kind, bits=space.bits
            )
            if all(rule.holds(array) for rule in RULES) and array.dsps <= board.resources.dsp:
                yield Geometry(rows, columns, lanes)
