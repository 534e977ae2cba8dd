"""The protocol of an engine: the functions that the scheduler calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from scheduler.hardware.ddr import DdrTiming
from scheduler.systolic.area.logic import Fabric
from scheduler.systolic.area.memories import Buffer
from scheduler.systolic.array import Array
from scheduler.systolic.engines.language import Language
from scheduler.systolic.model.grid import PassGrid, RowLoad, Times
from scheduler.systolic.model.phases import Expected, RowPhase, TileTraffic, WeightPhase
from scheduler.systolic.model.progress import Progress
from scheduler.systolic.shape import LayerShape

S = TypeVar("S", bound=Progress)
"""The state that the engine's cycle model carries from tile to tile."""


class Engine(Protocol[S]):
    """An engine: the cycles of a pass step by step, lower bounds of these cycles, its logic and its FIFOs.

    The loop over the tiles of a pass (scheduler/systolic/model/passes.py) is the same for all engines. It calls these
    functions in this order:

    - ``begin`` once, at the start of the pass;
    - ``rows`` and ``expect`` at the start of each phase of rows;
    - ``tile`` for each tile;
    - ``load_weights`` and ``load_rows`` at the end of a phase of weights or rows;
    - ``end`` once, after the last tile.

    model/phases.py explains phases.
    """

    @property
    def language(self) -> Language:
        """The language of the engine's code."""
        ...

    @property
    def fetches_alone(self) -> bool:
        """Whether the engine fetches the words of a pass in a separate loop before the pass, and does nothing else."""
        ...

    # --- cycles of a pass

    def begin(self, grid: PassGrid) -> S:
        """Return the state before the first tile, when the first rows of the pass are in the row buffer."""
        ...

    def rows(self, grid: PassGrid, row_tile: int) -> RowLoad:
        """Return the rows of the next row tile, which are loaded while ``row_tile`` is computed."""
        ...

    def expect(self, grid: PassGrid, state: S, phase: RowPhase) -> Expected:
        """Return the data that are expected to move during the tiles of the phase."""
        ...

    def tile(self, grid: PassGrid, state: S, start: Times, traffic: TileTraffic) -> S:
        """Return the state when the array has finished a tile.

        Args:
            grid: The pass.
            state: The state before the tile.
            start: Time of the array's first step of the tile.
            traffic: The data that move during the tile.
        """
        ...

    def load_weights(self, grid: PassGrid, state: S, phase: WeightPhase) -> S:
        """Return the state at the end of a phase: its weights are fed, and the next weights are in the buffer."""
        ...

    def load_rows(self, grid: PassGrid, begun: S, state: S, phase: RowPhase, expected: Expected) -> S:
        """Return the state at the end of a phase of rows.

        Args:
            grid: The pass.
            begun: The state before the phase's first tile.
            state: The state after the phase's last tile.
            phase: The phase.
            expected: The return value of ``expect`` for this phase.
        """
        ...

    def end(self, grid: PassGrid, state: S) -> Times:
        """Return the time at which the pass ends.

        Its last results are then written, and the first weights of the next pass are in the buffer.
        """
        ...

    def program(self, grid: PassGrid) -> Times:
        """Return the cycles in which the engine fetches the pass's words of the layer program and does nothing else."""
        ...

    # --- lower bounds of the cycles of a pass, for the search

    def least_fill(self, shape: LayerShape, rows: int, map_ports: int, row_words: int, ddr: DdrTiming) -> int:
        """Return a lower bound of the cycles before the array's first step.

        Args:
            shape: The layer.
            rows: The rows of the array.
            map_ports: The maximum number of map ports.
            row_words: A lower bound of the words of one row in the row buffer, summed over all column tiles.
            ddr: The DDR's timing.
        """
        ...

    def least_drain(self, shape: LayerShape, rows: int, ddr: DdrTiming) -> int:
        """Return a lower bound of the cycles after the array's last step."""
        ...

    def least_weights(self, cycles: int, ddr: DdrTiming) -> int:
        """Return a lower bound of the cycles before the array can use the last weights of a transfer of ``cycles``."""
        ...

    def least_program(self, ddr: DdrTiming) -> int:
        """Return a lower bound of ``program``."""
        ...

    # --- the array

    def fabric(self, array: Array) -> Fabric:
        """Return the logic of ``array``, whose numbers may be numpy grids."""
        ...

    @property
    def fifos(self) -> tuple[Buffer, ...]:
        """The FIFOs between the engine's processes."""
        ...

    @property
    def factor_bits(self) -> int:
        """The factor's bits in the LUT count of a requantiser's multiplier, if it is built in LUTs."""
        ...

    def sum_bits(self, shapes: Sequence[LayerShape]) -> int:
        """Return the bits that the accumulators of an array have for these layers."""
        ...
