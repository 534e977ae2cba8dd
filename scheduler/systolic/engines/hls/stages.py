"""Depths of the pipelines of the engine in C++, from the array to arrange."""

from __future__ import annotations

from scheduler.systolic.engines.hls.fifos import ROW_LAG
from scheduler.systolic.model.arrays import ArrayGrid

ARRAY_STAGES = 15
"""A row of PEs: from an iteration to the write of its sums."""

POOL_STAGES, REQUANTISE_STAGES = 5, 12
"""Depths of their pipelines; a test compares them with the code."""

LEAST_STAGES = ARRAY_STAGES + POOL_STAGES + REQUANTISE_STAGES
"""From the last row's sum to its result in arrange, at least."""

SLOPE_STAGES = 4
"""More of requantise where it looks up in pieces of lines."""

FIFO_WORDS = 4
"""Depth of the FIFOs between processes in step."""


def skew_of(rows: int) -> int:
    """Cycles by which the last row of the array is behind the first."""
    return ROW_LAG * (rows - 1)


def requantise_stages(arrays: ArrayGrid) -> int:
    """Depth of its pipeline."""
    return REQUANTISE_STAGES + SLOPE_STAGES * arrays.table_slopes


def saver_stages(arrays: ArrayGrid) -> int:
    """From the last row's sum to its result in arrange."""
    return ARRAY_STAGES + POOL_STAGES + requantise_stages(arrays)


def frozen_groups(arrays: ArrayGrid) -> int:
    """Groups that stand in the pipelines of pool and requantise where nothing follows: one less than their depths."""
    return POOL_STAGES + requantise_stages(arrays) - 2


def held_groups(arrays: ArrayGrid) -> int:
    """Groups between pool's reads and arrange's: those, and two FIFOs, less the one that waits."""
    return frozen_groups(arrays) + 2 * FIFO_WORDS - 1
