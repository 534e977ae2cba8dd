"""What the scheduler asks of an engine."""

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
"""What the engine carries from tile to tile."""


class Engine(Protocol[S]):
    """An engine: the cycles of a pass, step by step; the least of them; its logic and its memories.

    The loop over the tiles of a pass (scheduler/systolic/model/passes.py) is the same for all engines. It calls
    ``begin``, then of each phase of rows ``rows`` and ``expect``, of each tile ``tile``, after a phase
    ``load_weights`` and ``load_rows``, and after the last tile ``end``.
    """

    @property
    def language(self) -> Language:
        """The language of its modules."""
        ...

    @property
    def fetches_alone(self) -> bool:
        """Whether a pass is fetched by a loop of its own that nothing else runs with."""
        ...

    # --- cycles of a pass

    def begin(self, grid: PassGrid) -> S:
        """Return the state when the first rows of the pass are there, before its first tile."""
        ...

    def rows(self, grid: PassGrid, row_tile: int) -> RowLoad:
        """Return the rows that are loaded while ``row_tile`` is computed: those of the next one."""
        ...

    def expect(self, grid: PassGrid, state: S, phase: RowPhase) -> Expected:
        """Return what moves during the tiles of the phase."""
        ...

    def tile(self, grid: PassGrid, state: S, start: Times, traffic: TileTraffic) -> S:
        """Return the state when the array has taken a tile, whose first step it takes at ``start``."""
        ...

    def load_weights(self, grid: PassGrid, state: S, phase: WeightPhase) -> S:
        """Return the state when the tile of weights is fed, and the words of the next one are there."""
        ...

    def load_rows(self, grid: PassGrid, begun: S, state: S, phase: RowPhase, expected: Expected) -> S:
        """Return the state when the phase is over. begun: the state before its first tile; state: after its last."""
        ...

    def end(self, grid: PassGrid, state: S) -> Times:
        """Return when the pass is over: its last results have left, and the next pass's first weights are there."""
        ...

    def program(self, grid: PassGrid) -> Times:
        """Return the cycles in which the pass is fetched and nothing else happens."""
        ...

    # --- the least that a pass takes, for the search's bounds

    def least_fill(self, shape: LayerShape, rows: int, map_ports: int, row_words: int, ddr: DdrTiming) -> int:
        """Return the least cycles before the array's first step.

        map_ports: at most; row_words: at least, of all column tiles together.
        """
        ...

    def least_drain(self, shape: LayerShape, rows: int, ddr: DdrTiming) -> int:
        """Return the least cycles after the array's last step."""
        ...

    def least_weights(self, cycles: int, ddr: DdrTiming) -> int:
        """Return the least cycles before the array can take the last of the weights that arrive in ``cycles``."""
        ...

    def least_program(self, ddr: DdrTiming) -> int:
        """Return the least cycles of ``program``."""
        ...

    # --- the array

    def fabric(self, array: Array) -> Fabric:
        """Return the logic of ``array``; its numbers may be grids."""
        ...

    @property
    def fifos(self) -> tuple[Buffer, ...]:
        """The FIFOs between its processes."""
        ...

    @property
    def factor_bits(self) -> int:
        """Bits by which a product of the requantisers is counted, where it is in LUTs."""
        ...

    def sum_bits(self, shapes: Sequence[LayerShape]) -> int:
        """Return the bits of the sums of an array for these layers."""
        ...
