"""The space of a search: lists of the numbers of an array, pins that narrow the lists, and the goal."""

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
"""fps: the fewest cycles per frame. ddr: the fewest DDR bytes per frame at a required frame rate. resources: the
smallest area at a required frame rate, which is the mean share of the board's DSP, BRAM36, LUT and (if any) URAM.
A deep memory of LUTs counts more (``placed_area`` in scheduler/systolic/area/placement.py)."""

AT_A_RATE = ("ddr", "resources")
"""Objectives that need a required frame rate."""


@dataclass(frozen=True)
class Space:
    """The search space: the values of each array parameter and the tilings that a schedule search considers.

    Attributes:
        rows: Rows of PEs.
        shapes: (columns of PEs, lanes per PE) pairs.
        save_rows: Output rows that the Saver requantises per cycle.
        chunks: Output columns per chunk, the unit that the Saver reorders and writes.
        map_ports: Numbers of ports that read map rows.
        weight_ports: Numbers of ports that read weights.
        row_depths: Words per bank of the row buffer.
        weight_depths: Words per memory of the weight buffer, one per step.
        kept_depths: Sums that a fused pool can store for the row tile below.
        column_tiles: The most column tiles per layer.
        orders: Loop orders of the tilings.
        bits: Bits of a value in a lane.
        port_bits: Bits of the board's widest port.
        map_depths: Words per bank of a map buffer. None tries 0 and the size of each map that may stay on chip.
        dsp_clock: Cycles of the DSPs' clock per cycle of the array, for all arrays.
        dsp_products: Products per DSP multiplication, for all arrays. 0 is the default of the format.
        dsp_registers: Whether all arrays have additional registers around the DSPs.
        engine: The engine of all arrays.
        combining_layers: The layers of the network that read two maps, or whose Saver adds one. They need whole channel
            blocks.
    """

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
    combining_layers: tuple[Layer, ...] = ()

    def depths(self, name: str) -> tuple[int, ...]:
        """Return the depths that are tried for a buffer, given the name of its depth field in an Array."""
        steps: tuple[int, ...] = getattr(self, _LISTS[name])
        return steps

    @property
    def shared(self) -> dict[str, Any]:
        """The parameters that are the same for all arrays of the space, by their names in an Array."""
        return {name: getattr(self, name) for name in (*_SHARED, "engine")}


TOLERANCE = 0.001
"""The tolerance of ``systolic schedule``. A thousandth of the cycles is not visible on a board, but may cost many
LUTs."""


@dataclass(frozen=True)
class Goal:
    """The goal of a schedule search: the objective, a required frame rate and a tolerance.

    Attributes:
        objective: One of OBJECTIVES.
        frames_per_second: The required frame rate, for "ddr" and "resources".
        tolerance: For "fps", the share by which a schedule may exceed the fewest cycles if its area is smaller.
    """

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

    def per_batch(self, batch: int) -> Goal:
        """Return the same goal with its frame rate converted to batches of ``batch`` frames per second."""
        return replace(self, frames_per_second=self.frames_per_second / batch)

    def cycle_budget(self, ddr: DdrTiming) -> int:
        """Return the most cycles per frame that the required rate allows, or per batch after ``per_batch``."""
        if self.frames_per_second == 0:
            return NEVER
        return int(min(NEVER, ddr.clock_mhz * 1e6 / self.frames_per_second))


FASTEST = Goal()
"""The highest frame rate, with any share of the board's resources."""


@dataclass(frozen=True)
class Geometry:
    """The size of an array of PEs: M rows × N columns × L lanes."""

    rows: int
    columns: int
    lanes: int

    def __str__(self) -> str:
        return f"{self.rows}×{self.columns}×{self.lanes}"

    @property
    def width(self) -> tuple[int, int]:
        """(columns, lanes) of the array. The sizes of a layer on the array depend on these, not on the rows."""
        return self.columns, self.lanes


def space_for(workload: Workload, board: Board, bits: int | None = None) -> Space:
    """Return the search space of all arrays that the engine supports on a board for a network.

    Args:
        workload: The network.
        board: The board.
        bits: Bits of a value in a lane. None takes the narrowest format that holds the network.

    Raises:
        SystolicError: As ``lane_bits``.
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
        combining_layers=tuple(layer for layer in layers if layer.combines_maps),
    )


_URAM_DEPTHS, _BRAM_DEPTHS = tuple(range(4096, 32 * 1024 + 1, 4096)), tuple(range(512, 8 * 1024 + 1, 512))


def _widths(bits: int, port_bits: int) -> tuple[tuple[int, int], ...]:
    """Return the (columns, lanes) pairs to search: at most 256 columns, and words of ``lanes`` values that fit a DDR
    port."""
    lanes = [count for count in (4, 8, 16, 32, 64) if bits * count <= port_bits and (bits > 4 or count >= 8)]
    factors = range(1, 65)
    return tuple((k * n, n) for n in lanes for k in factors if k * n <= 256)


def _chunks(widths: Iterable[int]) -> tuple[int, ...]:
    """Return the chunk lengths to search: how many output columns the output stage reorders at a time.

    Some cut the widest map into equal chunks, because a short last chunk would delay the next one. The others are 16,
    32 and 64.
    """
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
_SHARED = ("dsp_clock", "dsp_products", "dsp_registers")
_LEAST = Array(2, 4, 4, 1, 1, 1)
_NO_LISTS = ("columns", "lanes", *_SHARED)


def pin(space: Space, **numbers: int | str | None) -> Space:
    """Return the search space reduced to arrays with the parameter values that the user has pinned.

    Args:
        space: The space.
        **numbers: rows, columns, lanes, save_rows, chunk, map_ports, weight_ports, row_depth, weight_depth, kept_depth,
            map_depth, dsp_clock, dsp_products, dsp_registers, engine or order. None does not pin a number.

    Raises:
        ChoiceError: The order is unknown.
        SeveralFaultsError: The pins break rules of an array, each of which it names.
        InvalidValueError: The columns would cut the channel blocks of layers that read two maps.
    """
    order, engine = numbers.pop("order", None), numbers.pop("engine", None)
    if order is not None and order not in ORDERS:
        raise ChoiceError("the loop order", order, ORDERS)
    pins = {name: int(value) for name, value in numbers.items() if value is not None}
    _check_pins(pins, space.bits)
    lists = {_LISTS.get(name, name): (value,) for name, value in pins.items() if name not in _NO_LISTS}
    shared = {name: bool(pins[name]) if name == "dsp_registers" else pins[name] for name in _SHARED if name in pins}
    shapes = _pinned_shapes(space, pins)
    narrowed: Space = replace(space, shapes=shapes, **shared, **lists)  # type: ignore[arg-type]
    narrowed = replace(narrowed, engine=str(engine or space.engine))
    check(replace(_LEAST, engine=narrowed.engine))
    return narrowed if order is None else replace(narrowed, orders=(str(order),))


def _pinned_shapes(space: Space, pins: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """Return the (columns, lanes) pairs with the pinned values, which need not be in the space."""
    in_halves = bool(pins.get("dsp_products")) and not space.combining_layers
    every = _with_halves(space.shapes) if in_halves else space.shapes
    if pins.keys().isdisjoint(("columns", "lanes")):
        return every
    columns = _pinned_or(pins, "columns", (n for n, _ in every))
    lanes = _pinned_or(pins, "lanes", (m for _, m in every))
    check_blocks(space.combining_layers, pins.get("columns", 0), pins.get("lanes", 1))
    parts = 2 if in_halves else 1
    return tuple((n, m) for m in lanes for n in columns if n % (m // parts) == 0)


def _pinned_or(pins: Mapping[str, int], name: str, numbers: Iterable[int]) -> list[int]:
    """Return the value that the user pinned for parameter ``name``, or else all ``numbers`` in ascending order."""
    return [pins[name]] if name in pins else sorted(set(numbers))


def _with_halves(shapes: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return the (columns, lanes) pairs and, for six products per DSP, those with 3/2 of their columns.

    With six products per DSP, the columns are a multiple of 3 and of half of the lanes, if no layer reads two maps.
    """
    halves = ((SIX.columns * n // 2, m) for n, m in shapes)
    return tuple(sorted({*shapes, *halves}, key=lambda shape: shape[::-1]))


def _check_pins(pins: Mapping[str, int], bits: int) -> None:
    """Raise an error if the pinned parameter values break a rule of arrays with every value of the other parameters."""
    rows, lanes = pins.get("rows", 64), pins.get("lanes", 8 if bits == 4 else 4)
    columns = pins.get("columns", lanes * (SIX.columns if pins.get("dsp_products") else 1))
    check(replace(Array(rows, columns, lanes, 1, 1, 1, bits=bits), **pins))  # type: ignore[arg-type]


# --- arrays of the space -------------------------------------------------------------------------------------------


def weight_words(geometry: Geometry, space: Space, ports: int) -> int:
    """Return the words that each weight port reads per cycle: the most that fit its width, because fewer are never
    faster.

    The columns must be a multiple of the words of all ports together.
    """
    fitting = [words for words in (4, 2, 1) if words * geometry.lanes * space.bits <= space.port_bits]
    return next((words for words in fitting if geometry.columns % (ports * words) == 0), 1)


def bare_array(geometry: Geometry, board: Board, space: Space) -> Array:
    """Return an array with the PEs of a geometry and the smallest logic around them: one port of each kind, one saved
    row per cycle."""
    bare = Array(*_numbers(geometry), 1, 1, 1, dsp=board.dsp.kind, bits=space.bits)
    return replace(bare, **space.shared)


def _numbers(geometry: Geometry) -> tuple[int, int, int]:
    return geometry.rows, geometry.columns, geometry.lanes


def legal(array: Array, board: Board) -> bool:
    """Return whether the array keeps every rule, and the board has enough DSPs for its PEs and enough AXI ports."""
    return ports_fit(array, board) and _buildable(array, board)


def _buildable(array: Array, board: Board) -> bool:
    return array.mac_dsps <= board.resources.dsp and is_legal(array)


def ports_fit(array: Array, board: Board) -> bool:
    """Return whether the board has enough AXI ports for the array's maps, weights and program.

    One port of the PS is reserved for the program and the requantisers, and one for the map that the Saver adds. If the
    DSPs run at twice the clock, or multiply six times per cycle, the array needs weights faster. The program and the
    requantisers, a few kilobytes per layer, then share a port, so that maps and weights can use all ports.
    """
    shared = int(array.intense)
    return array.map_ports + array.weight_ports + array.added_maps < max(3, len(board.ports) + shared)


def geometries(space: Space, board: Board) -> Iterator[Geometry]:
    """Yield the PE array sizes of the search space for which the board has enough DSPs."""
    for columns, lanes in space.shapes:
        for rows in space.rows:
            geometry = Geometry(rows, columns, lanes)
            if _buildable(bare_array(geometry, board, space), board):
                yield geometry
