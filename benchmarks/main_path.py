"""Measure the steps of the main path on one core against their targets: python -m benchmarks.main_path

The network is full-size tiny-YOLOv2 VOC at 416×416 with seeded weights, on ZCU104. The steps are generation without
compiling, the numpy golden model, native simulation of a frame, traced execution, and solving for another memory.
Times are wall-clock seconds on this machine, the best of three runs.
"""

# ruff: noqa: E402  (one core has to be asked for before numpy is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from boards.board import load
from cnn.integer_model import run_integer
from host.contract.libraries import SystolicLibrary
from systolic.designs import design as design_of
from systolic.execution.build import Variant, build
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.report.tables import Cell, table
from systolic.styles.systolic.measure import trace_design
from systolic.styles.systolic.simulate import arena, open_design, place_picture
from systolic.trace.report import board_memory
from systolic.trace.solver import MemoryTiming


def best(action: Callable[[], object], times: int = 3) -> float:
    """Return the least seconds of several runs."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Print a table of step, seconds and target."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    board = load("zcu104")
    model = load_model("tiny-yolov2-voc", seed=1)
    calibration = Calibration(sample_pictures()[:1])
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as work:
        folder_path = Path(work) / "design"

        def generate() -> None:
            design_of(model, board, calibrate=calibration).write(folder_path, replace=True)

        rows.append(["generation, without compiling", best(generate), 10.0])
        folder = open_design(folder_path)
        shape = folder.network.input_shape
        picture = np.random.default_rng(0).integers(0, 256, (shape.channels, shape.height, shape.width), dtype=np.uint8)
        rows.append(["numpy golden model", best(lambda: run_integer(folder.network, picture)), 0.5])
        library = SystolicLibrary(build(folder.path, Variant()), folder.manifest)
        maps = arena(folder)

        def frame() -> None:
            place_picture(folder, picture, maps)
            library.run(folder.memory(maps), 0, folder.manifest.passes)

        rows.append(["native simulation of a frame", best(frame), 2.0])
        build(folder.path, Variant(trace=True))
        start = time.perf_counter()
        trace = trace_design(folder, picture)
        traced = time.perf_counter() - start
        first = best(lambda: trace.solve(board_memory(folder), 300.0), 1)
        rows.append(["traced execution and solving", traced + first, 60.0])
        again = best(lambda: trace.solve(MemoryTiming(peak_gbps=12.8), 300.0, {"rows": 64}))
        rows.append(["solving for another memory and depth", again, 6.0])
    print(table(("step", "seconds", "target"), rows))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB (target 2)")


if __name__ == "__main__":
    main()
