"""Depths of the pipelines of the engine in C++, from the array to arrange."""

from __future__ import annotations

from scheduler.systolic.engines.hls.fifos import ROW_LAG
from scheduler.systolic.model.arrays import ArrayGrid

ARRAY_STAGES = 15
"""Cycles in a row of PEs from an iteration to the write of its sums."""

POOL_STAGES, REQUANTISE_STAGES = 5, 12
"""Depths of the pipelines of pool and requantise. A test compares them with the code."""

MIN_STAGES = ARRAY_STAGES + POOL_STAGES + REQUANTISE_STAGES
"""The lowest number of cycles from the last row's sum to its result in arrange."""

SLOPE_STAGES = 4
"""Further stages of requantise in engines with piecewise-linear tables."""

FIFO_WORDS = 4
"""Depth, in words, of the FIFOs between processes that run in step."""


def skew_of(rows: int) -> int:
    """Return the cycles by which the last row of PEs runs after the first row of PEs."""
    return ROW_LAG * (rows - 1)


def requantise_stages(arrays: ArrayGrid) -> int:
    """Return the pipeline depth of the requantise process, in cycles."""
    return REQUANTISE_STAGES + SLOPE_STAGES * arrays.table_slopes


def saver_stages(arrays: ArrayGrid) -> int:
    """Return the cycles from the last PE row's sum to its requantised result in arrange, the last process of the output
    stage."""
    return ARRAY_STAGES + POOL_STAGES + requantise_stages(arrays)


def frozen_groups(arrays: ArrayGrid) -> int:
    """Return how many groups of results stay in the pipelines of pool and requantise if no further input pushes them
    out.

    Each pipeline holds one group less than its depth.
    """
    return POOL_STAGES + requantise_stages(arrays) - 2


def full_pipeline_groups(arrays: ArrayGrid) -> int:
    """Return the groups of results that are between pool's input and arrange's input when the FIFOs there are full.

    They are the groups in the pipelines and in two FIFOs, less one that waits for room.
    """
    return frozen_groups(arrays) + 2 * FIFO_WORDS - 1
