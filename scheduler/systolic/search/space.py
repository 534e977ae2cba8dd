"""What is searched: arrays by lists of their numbers, the goal, and pins that narrow the lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from boards.board import Board
from boards.errors import ChoiceError, MissingValueError, RangeError
from contract.geometry import HLS
from scheduler.hardware.arithmetic import NEVER, ceil_div
from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.array import SIX, Array, check, is_legal
from scheduler.systolic.formats import check_blocks, lane_bits
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.tiling import MAX_COLUMN_TILES, ORDERS
from scheduler.systolic.workload import Workload

OBJECTIVES = ("fps", "ddr", "resources")
"""fps: least cycles per frame. ddr: least bytes per frame at a frame rate. resources: least area at a frame rate, the
mean share of the board's DSP, BRAM36, LUT and (if it has any) URAM."""

AT_A_RATE = ("ddr", "resources")
"""Objectives at a frame rate that has to be held."""


@dataclass(frozen=True)
class Space:
    """What is searched. shapes: (columns, lanes). Depths are steps of the primitives, up to what the board holds.
    column_tiles: of a layer at most. bits: the format of the lanes. port_bits: of the board's widest port. map_depths:
    None for every depth that holds one map more than the one before; every map that may and fits stays on chip.
    dsp_clock, dsp_products, dsp_registers, engine: of all arrays. of_two_maps: layers that take whole channel
    blocks."""

    rows: tuple[int, ...]
    shapes: tuple[tuple[int, int], ...]
    save_rows: tuple[int, ...]
    chunks: tuple[int, ...]
    map_ports: tuple[int, ...]
    weight_ports: tuple[int, ...]
    row_depths: tuple[int, ...]
    weight_depths: tuple[int, ...]
    kept_depths: tuple[int, ...]
    column_tiles: int = MAX_COLUMN_TILES
    orders: tuple[str, ...] = ORDERS
    bits: int = 8
    port_bits: int = 128
    map_depths: tuple[int, ...] | None = None
    dsp_clock: int = 1
    dsp_products: int = 0
    dsp_registers: bool = False
    engine: str = HLS
    of_two_maps: tuple[Layer, ...] = ()

    def depths(self, name: str) -> tuple[int, ...]:
        """Return the steps of a buffer's depth, by its name in an Array."""
        steps: tuple[int, ...] = getattr(self, _LISTS[name])
        return steps

    @property
    def of_all(self) -> dict[str, Any]:
        """What all arrays have, by the names of an Array."""
        return {name: getattr(self, name) for name in (*_OF_ALL, "engine")}


TOLERANCE = 0.001
"""What ``systolic schedule`` takes: no board shows a difference of a thousandth, which may cost many LUTs."""


@dataclass(frozen=True)
class Goal:
    """objective: one of OBJECTIVES. frames_per_second: what "ddr" and "resources" have to reach. tolerance: for "fps",
    the share of the fewest cycles that may be added where that takes less of the board."""

    objective: str = "fps"
    frames_per_second: float = 0.0
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ChoiceError("the objective", self.objective, OBJECTIVES)
        if not 0 <= self.frames_per_second < float("inf"):
            raise RangeError("the frame rate", self.frames_per_second, 0)
        if self.objective in AT_A_RATE and self.frames_per_second == 0:
            raise MissingValueError(
                "a frame rate above 0",
                f"the objective {self.objective!r} needs a rate to hold, or the slowest array would win",
                remedy="give --fps RATE",
            )

    def of_batches(self, batch: int) -> Goal:
        """Return the same goal in whole batches of so many frames."""
        return replace(self, frames_per_second=self.frames_per_second / batch)

    def cycle_budget(self, ddr: DdrTiming) -> int:
        """Cycles that a frame may take."""
        if self.frames_per_second == 0:
            return NEVER
        return int(min(NEVER, ddr.clock_mhz * 1e6 / self.frames_per_second))


FASTEST = Goal()
"""The most frames a second, whatever that takes of the board."""


@dataclass(frozen=True)
class Geometry:
    """The PEs of an array: M rows × N columns × L lanes."""

    rows: int
    columns: int
    lanes: int

    def __str__(self) -> str:
        return f"{self.rows}×{self.columns}×{self.lanes}"

    @property
    def width(self) -> tuple[int, int]:
        """Columns and lanes: a layer's numbers depend on no more."""
        return self.columns, self.lanes


def space_for(workload: Workload, board: Board, bits: int | None = None) -> Space:
    """Return all that today's engine builds on this board, for this workload.

    bits: the format of the lanes, the narrowest that holds the network if it is None. Raises as ``lane_bits`` does.
    """
    network, layers = workload.network, workload.layers
    bits = lane_bits(network, layers) if bits is None else bits
    port_bits = max(port.bits for port in board.ports)
    tallest = max([node.shape.height for node in network.nodes] + [layer.out.height for layer in layers])
    return Space(
        rows=tuple(range(2, min(64, max(2, tallest)) + 1)),
        shapes=_widths(bits, port_bits),
        save_rows=(1, 2, 4, 8, 16),
        chunks=_chunks(layer.saved.width for layer in layers),
        map_ports=(1, 2, 4),
        weight_ports=(1, 2, 4),
        row_depths=tuple(range(1024, 16 * 1024 + 1, 1024)),
        weight_depths=_URAM_DEPTHS if board.resources.uram else _BRAM_DEPTHS,
        kept_depths=tuple(range(512, 8 * 512 + 1, 512)),
        bits=bits,
        port_bits=port_bits,
        of_two_maps=tuple(layer for layer in layers if layer.of_two_maps),
    )


_URAM_DEPTHS, _BRAM_DEPTHS = tuple(range(4096, 32 * 1024 + 1, 4096)), tuple(range(512, 8 * 1024 + 1, 512))


def _widths(bits: int, port_bits: int) -> tuple[tuple[int, int], ...]:
    """(columns, lanes) of up to 256 columns, the lanes of a word that a port takes."""
    lanes = [count for count in (4, 8, 16, 32, 64) if bits * count <= port_bits and (bits > 4 or count >= 8)]
    factors = range(1, 65)
    return tuple((k * n, n) for n in lanes for k in factors if k * n <= 256)


def _chunks(widths: Iterable[int]) -> tuple[int, ...]:
    """Chunks that cut the widest map evenly, so that none is a short one that the next waits for, and round ones."""
    widest = max(widths)
    even = {ceil_div(widest, parts) for parts in range(1, 9)}
    return tuple(sorted(chunk for chunk in even | {16, 32, 64} if 8 <= chunk <= 128))


# --- pins ----------------------------------------------------------------------------------------------------------

_LISTS = {
    "chunk": "chunks",
    "row_depth": "row_depths",
    "weight_depth": "weight_depths",
    "kept_depth": "kept_depths",
    "map_depth": "map_depths",
}
_OF_ALL = ("dsp_clock", "dsp_products", "dsp_registers")
_LEAST = Array(2, 4, 4, 1, 1, 1)
_NO_LISTS = ("columns", "lanes", *_OF_ALL)


def pin(space: Space, **numbers: int | str | None) -> Space:
    """Return the part of the space that has the given numbers.

    Raises ChoiceError for an unknown order, SeveralFaultsError with the rules that the pins break, and
    InvalidValueError for columns that cut the channel blocks of layers that join maps. The numbers:
    rows, columns, lanes, save_rows, chunk, map_ports, weight_ports, row_depth, weight_depth, kept_depth, map_depth,
    dsp_clock, dsp_products, dsp_registers, engine, order.
    """
    order, engine = numbers.pop("order", None), numbers.pop("engine", None)
    if order is not None and order not in ORDERS:
        raise ChoiceError("the loop order", order, ORDERS)
    pins = {name: int(value) for name, value in numbers.items() if value is not None}
    _check_pins(pins, space.bits)
    lists = {_LISTS.get(name, name): (value,) for name, value in pins.items() if name not in _NO_LISTS}
    of_all = {name: bool(pins[name]) if name == "dsp_registers" else pins[name] for name in _OF_ALL if name in pins}
    shapes = _pinned_shapes(space, pins)
    narrowed: Space = replace(space, shapes=shapes, **of_all, **lists)  # type: ignore[arg-type]
    narrowed = replace(narrowed, engine=str(engine or space.engine))
    check(replace(_LEAST, engine=narrowed.engine))
    return narrowed if order is None else replace(narrowed, orders=(str(order),))


def _pinned_shapes(space: Space, pins: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """A pinned number of columns or lanes need not be one of the space's."""
    in_halves = bool(pins.get("dsp_products")) and not space.of_two_maps
    every = _with_halves(space.shapes) if in_halves else space.shapes
    if pins.keys().isdisjoint(("columns", "lanes")):
        return every
    columns = _pinned_or(pins, "columns", (n for n, _ in every))
    lanes = _pinned_or(pins, "lanes", (m for _, m in every))
    check_blocks(space.of_two_maps, pins.get("columns", 0), pins.get("lanes", 1))
    parts = 2 if in_halves else 1
    return tuple((n, m) for m in lanes for n in columns if n % (m // parts) == 0)


def _pinned_or(pins: Mapping[str, int], name: str, numbers: Iterable[int]) -> list[int]:
    return [pins[name]] if name in pins else sorted(set(numbers))


def _with_halves(shapes: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """With six products a DSP columns are a multiple of 3 and of half of the lanes, where no maps are joined."""
    halves = ((SIX.columns * n // 2, m) for n, m in shapes)
    return tuple(sorted({*shapes, *halves}, key=lambda shape: shape[::-1]))


def _check_pins(pins: Mapping[str, int], bits: int) -> None:
    """Rules that the pins break whatever the other numbers are."""
    rows, lanes = pins.get("rows", 64), pins.get("lanes", 8 if bits == 4 else 4)
    columns = pins.get("columns", lanes * (SIX.columns if pins.get("dsp_products") else 1))
    check(replace(Array(rows, columns, lanes, 1, 1, 1, bits=bits), **pins))  # type: ignore[arg-type]


# --- arrays of the space -------------------------------------------------------------------------------------------


def weight_words(geometry: Geometry, space: Space, ports: int) -> int:
    """As many words of weights a cycle as a port is wide: fewer are never faster."""
    fitting = [words for words in (4, 2, 1) if words * geometry.lanes * space.bits <= space.port_bits]
    return next((words for words in fitting if geometry.columns % (ports * words) == 0), 1)


def bare_array(geometry: Geometry, board: Board, space: Space) -> Array:
    """The PEs of a geometry with the least around them."""
    bare = Array(*_numbers(geometry), 1, 1, 1, dsp=board.dsp.kind, bits=space.bits)
    return replace(bare, **space.of_all)


def _numbers(geometry: Geometry) -> tuple[int, int, int]:
    return geometry.rows, geometry.columns, geometry.lanes


def legal(array: Array, board: Board) -> bool:
    """Whether the engine can be built so, and the board has the DSPs of the PEs and the ports."""
    return ports_fit(array, board) and _buildable(array, board)


def _buildable(array: Array, board: Board) -> bool:
    return array.mac_dsps <= board.resources.dsp and is_legal(array)


def ports_fit(array: Array, board: Board) -> bool:
    """One port of the PS stays for the program and the requantisers; one reads what the Saver adds. Where the DSPs are
    twice as fast, or multiply six times, weights are short: all ports are for them and maps, and those few kilobytes a
    layer share one."""
    shared = int(array.intense)
    return array.map_ports + array.weight_ports + array.added_maps < max(3, len(board.ports) + shared)


def geometries(space: Space, board: Board) -> Iterator[Geometry]:
    """Geometries whose PEs the board's DSPs can be."""
    for columns, lanes in space.shapes:
        for rows in space.rows:
            geometry = Geometry(rows, columns, lanes)
            if _buildable(bare_array(geometry, board, space), board):
                yield geometry
