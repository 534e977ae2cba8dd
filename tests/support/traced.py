"""Designs that share one compiled accelerator, and their cycle traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.board import Board
from cnn.integer_model import run_integer
from host.contract.libraries import SystolicLibrary
from host.systolic.layout import BufferAddresses, place_program
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.schedule import SystolicSchedule, schedule_of
from systolic.execution.build import build
from systolic.execution.simulation import compare
from systolic.files import DesignFiles, write
from systolic.model import DesignInputs
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.measure import trace_design
from systolic.styles.systolic.simulate import SystolicDesign, fill_batch, open_design, unpack_output
from systolic.trace.solver import Trace
from tests.support.schedules import staying, with_on_chip

MAP_DEPTH = 8192
"""The words of a map buffer that holds every map of these networks."""


def kept(schedule: SystolicSchedule) -> SystolicSchedule:
    """Return the schedule with map buffers in which every possible map stays on chip."""
    array = replace(schedule.array, map_depth=MAP_DEPTH)
    layers = [scheduled.layer for scheduled in schedule.layers]
    return with_on_chip(
        schedule_of(schedule.network, array, schedule.tilings), staying(schedule.network, layers, array)
    )


def load_into(folder: Path, design: DesignFiles) -> SystolicDesign:
    """Return the design in ``folder`` with another design's program and data.

    The sources are written once, because all networks of one array have the same sources.
    """
    if not folder.exists():
        write(design, folder)
    for file, data in design.files.items():
        if not file.startswith(("src/", "simulation/")):
            (folder / file).write_bytes(data)
    return open_design(folder)


def traced(schedule: SystolicSchedule, board: Board, mhz: float, folder: Path) -> tuple[SystolicDesign, Trace]:
    """Return the design and the trace of one frame of zeros, on the accelerator in ``folder``."""
    shape = schedule.network.input_shape
    picture = np.zeros((shape.channels, shape.height, shape.width), np.uint8)
    opened = load_into(folder, generate(price(schedule, board, ddr_timing(board, mhz)), DesignInputs({}, picture)))
    return opened, trace_design(opened, picture)


def wrong_looked_inside(design: SystolicDesign, picture: npt.NDArray[np.uint8]) -> list[str]:
    """Return the layers whose maps differ from the golden model's, in the program that stores every map in DDR.

    A host runs this copy of the program to look at maps between layers.
    """
    manifest = design.manifest
    results = tuple(manifest.layers[index].output.offset for index in manifest.output_layers)
    shown = place_program(manifest, design.program, 0, (BufferAddresses(manifest.input.offset, results),))[
        -manifest.passes :
    ]
    maps, _ = fill_batch(design, (picture,))
    memory = replace(design.memory(maps), program=np.ascontiguousarray(shown))
    golden, ending = run_integer(design.network, picture), {layer.last_pass: layer for layer in manifest.layers}
    wrong = []

    def after_pass(number: int) -> None:
        layer = ending.get(number)
        if layer and compare(layer.name, golden[layer.node], unpack_output(layer, manifest.lanes, maps)).mismatches:
            wrong.append(layer.name)

    SystolicLibrary(build(design.path), manifest).run(memory, 0, manifest.passes, after_pass)
    return wrong
