"""Designs that share one compiled accelerator, and their cycle traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from boards.board import Board
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.schedule import SystolicSchedule, schedule_of
from systolic.files import DesignFiles, write
from systolic.model import DesignInputs
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.measure import trace_design
from systolic.styles.systolic.simulate import SystolicDesign, open_design
from systolic.trace.solver import Trace
from tests.schedules import staying, with_on_chip

MAP_DEPTH = 8192
"""Words that hold every map of these networks."""


def kept(schedule: SystolicSchedule) -> SystolicSchedule:
    """The same with map buffers in which every map stays that may."""
    array = replace(schedule.array, map_depth=MAP_DEPTH)
    layers = [scheduled.layer for scheduled in schedule.layers]
    return with_on_chip(
        schedule_of(schedule.network, array, schedule.tilings), staying(schedule.network, layers, array)
    )


def load_into(folder: Path, design: DesignFiles) -> SystolicDesign:
    """The folder with this design's program and data. Its sources are compiled once: those of one array are the same
    for every network."""
    if not folder.exists():
        write(design, folder)
    for file, data in design.files.items():
        if not file.startswith(("src/", "simulation/")):
            (folder / file).write_bytes(data)
    return open_design(folder)


def traced(schedule: SystolicSchedule, board: Board, mhz: float, folder: Path) -> tuple[SystolicDesign, Trace]:
    """One frame of zeros, on the accelerator of ``folder``."""
    shape = schedule.network.input_shape
    picture = np.zeros((shape.channels, shape.height, shape.width), np.uint8)
    opened = load_into(folder, generate(price(schedule, board, ddr_timing(board, mhz)), DesignInputs({}, picture)))
    return opened, trace_design(opened, picture)
