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
    """The interface of an engine (C++ or SystemVerilog) to the scheduler: its modelled cycles, bounds of them, its
    logic and its FIFOs.

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
        """Return whether the engine fetches the program words of a pass before it, in a loop that runs alone."""
        ...

    # --- cycles of a pass

    def begin(self, grid: PassGrid) -> S:
        """Return the cycle model's state at the start of a layer's pass, when its first input rows are in the row
        buffer."""
        ...

    def rows(self, grid: PassGrid, row_tile: int) -> RowLoad:
        """Return the work of loading the next row tile's input rows, which is done while ``row_tile`` is computed."""
        ...

    def expect(self, grid: PassGrid, state: S, phase: RowPhase) -> Expected:
        """Return the DDR data that are expected to move while the array computes one row tile (a phase of rows)."""
        ...

    def tile(self, grid: PassGrid, state: S, start: Times, traffic: TileTraffic) -> S:
        """Return the cycle model's state when the array has finished a tile: one channel tile of one row tile.

        Args:
            grid: The pass.
            state: The state before the tile.
            start: Time of the array's first step of the tile.
            traffic: The data that move during the tile.
        """
        ...

    def load_weights(self, grid: PassGrid, state: S, phase: WeightPhase) -> S:
        """Return the cycle model's state when a weight tile has been fed to the array and the next weights are in the
        buffer."""
        ...

    def load_rows(self, grid: PassGrid, begun: S, state: S, phase: RowPhase, expected: Expected) -> S:
        """Return the cycle model's state when a row tile's rows have been fed to the array and the next rows are
        loaded.

        Args:
            grid: The pass.
            begun: The state before the phase's first tile.
            state: The state after the phase's last tile.
            phase: The phase.
            expected: The return value of ``expect`` for this phase.
        """
        ...

    def end(self, grid: PassGrid, state: S) -> Times:
        """Return the cycle at which a pass of a layer ends.

        Its last results are then written, and the first weights of the next pass are in the buffer.
        """
        ...

    def program(self, grid: PassGrid) -> Times:
        """Return the cycles in which the engine only fetches the program words of a layer's pass, and does nothing
        else."""
        ...

    # --- lower bounds of the cycles of a pass, for the search

    def least_fill(self, shape: LayerShape, rows: int, map_ports: int, row_words: int, ddr: DdrTiming) -> int:
        """Return a lower bound of a pass's cycles before the array's first step.

        Args:
            shape: The layer.
            rows: The rows of the array.
            map_ports: The maximum number of map ports.
            row_words: A lower bound of the words of one row in the row buffer, summed over all column tiles.
            ddr: The DDR's timing.
        """
        ...

    def least_drain(self, shape: LayerShape, rows: int, ddr: DdrTiming) -> int:
        """Return a lower bound of a pass's cycles after the array's last step."""
        ...

    def least_weights(self, cycles: int, ddr: DdrTiming) -> int:
        """Return a lower bound of the cycles until the array can use the last of the weights that take ``cycles`` to
        read."""
        ...

    def least_program(self, ddr: DdrTiming) -> int:
        """Return a lower bound of ``program``, the cycles in which the engine only fetches a pass's program words."""
        ...

    # --- the array

    def fabric(self, array: Array) -> Fabric:
        """Return the LUTs and FFs of the engine's logic for ``array``, whose numbers may be numpy grids."""
        ...

    @property
    def fifos(self) -> tuple[Buffer, ...]:
        """The FIFOs between the engine's processes, with their numbers, widths and depths."""
        ...

    @property
    def factor_bits(self) -> int:
        """The bits of the second factor with which a requantiser's multiplier is counted if it is built in LUTs."""
        ...

    def sum_bits(self, shapes: Sequence[LayerShape]) -> int:
        """Return the bits of the array's accumulators for these layers."""
        ...
