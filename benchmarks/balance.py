"""Find the bottleneck stage of tiny-YOLOv2 VOC at 416×416 on ZCU104: python -m benchmarks.balance (needs pynq)

The table lists the time of each stage of a stream, for each way to resize pictures and for 1, 2 and 4 workers. The
accelerator takes the design's own time: the cycles traced on the generated code, at the target clock. Resizing, loading
and decoding take their time on this machine's CPU. A simulation would slow the accelerator down, so only the first
frame of each set of buffers is executed. Later frames are the same picture, whose results are in DDR already.
"""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from host import Accelerator, Options
from host.contract.manifest import manifest_text, read_manifest
from host.contract.parts import MANIFEST
from host.vision.frame import STAGES, Measured
from host.vision.picture import FITS
from systolic.designs import design as design_of
from systolic.execution.build import Variant, build
from systolic.execution.compiler import compiler
from systolic.execution.frames import save_cycles
from systolic.loading import load_model
from systolic.model import sample_pictures
from systolic.report.tables import Cell, table
from systolic.styles.systolic.measure import cycle_report, trace_design
from systolic.styles.systolic.simulate import open_design
from systolic.trace.report import board_memory

FRAMES = 60
REPEATS = 4  # the fastest counts, because other processes may use this machine too
WORKERS = (1, 2, 4)
PICTURE = (640, 480)

ONCE = r"""
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <set>
using frame_t = int(int8_t *, size_t, int8_t *const *, size_t, uint32_t *, size_t, uint32_t *, size_t, uint32_t,
                    uint32_t, uint32_t *, int (*)(uint32_t), char *, size_t);
extern "C" int systolic_simulate(int8_t *maps, size_t maps_words, int8_t *const *weights, size_t weights_words,
                                 uint32_t *requantisers, size_t requantisers_words, uint32_t *program,
                                 size_t program_words, uint32_t first, uint32_t count, uint32_t *current,
                                 int (*notify)(uint32_t), char *message, size_t room) {
    static void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    static frame_t *frame = reinterpret_cast<frame_t *>(dlsym(library, "systolic_simulate"));
    static std::set<uint32_t> seen;
    if (!seen.insert(first).second)
        return 0;
    return frame(maps, maps_words, weights, weights_words, requantisers, requantisers_words, program, program_words,
                 first, count, current, notify, message, room);
}
"""


def make(folder: Path) -> None:
    """Generate the design, build its libraries, and trace the cycles of each pass."""
    network = load_model("tiny-yolov2-voc", seed=1)
    design_of(network, "zcu104", calibrate=sample_pictures()[:1]).write(folder)
    opened = open_design(folder)
    shape = opened.network.input_shape
    build(folder, Variant(trace=True))
    trace = trace_design(opened, np.zeros((shape.channels, shape.height, shape.width), np.uint8))
    save_cycles(folder, cycle_report(opened, trace, board_memory(opened)))


def executed_once(folder: Path, name: str) -> Path:
    """Build a simulation library that executes the first frame of each set of buffers and no other."""
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    source.write_text(ONCE)
    real = f'-DLIBRARY="{build(folder).absolute()}"'
    subprocess.run(
        [compiler(), "-O1", "-std=c++17", "-shared", "-fPIC", real, str(source), "-o", str(library)], check=True
    )
    return library


def streamed(folder: Path, fit: str, picture: Path) -> list[tuple[int, Measured]]:
    """Return the measurements of a stream for each number of workers."""
    (folder / MANIFEST).write_text(manifest_text(replace(read_manifest(folder), fit=fit)), "utf-8")
    results = []
    with Accelerator(folder, Options(library=executed_once(folder, fit), time_scale=1.0, threshold=0.9)) as yolo:
        list(yolo.stream([picture] * 20))
        yolo.device.overruns = 0
        for workers in WORKERS:
            runs = [once(yolo, [picture] * FRAMES, workers) for _ in range(REPEATS)]
            results.append((workers, max(runs, key=lambda took: took.throughput)))
    return results


def once(yolo: Accelerator, pictures: list[Path], workers: int) -> Measured:
    """Take a whole stream with this number of workers, and return its measurements."""
    for _ in yolo.stream(pictures, workers=workers):
        pass
    return yolo.measured


def main() -> None:
    """Print a table with the resize method, the number of workers, and the time of each stage."""
    small = Image.open(sample_pictures()[0])
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as work:
        folder, picture = Path(work) / "design", Path(work) / "picture.jpg"
        small.resize(PICTURE, Image.Resampling.BICUBIC).save(picture, quality=90)
        make(folder)
        for fit in FITS:
            for workers, took in streamed(folder, fit, picture):
                times: list[Cell] = [1e3 * took.busy[stage] for stage in STAGES]
                rows.append([fit, workers, *times, took.throughput, 1e3 * took.latency, took.bound_by, took.label])
    print(f"PL: {rows[0][-1]}")
    print(f"PS: {len(os.sched_getaffinity(0))} cores of {processor()}, measured; JPEG of {PICTURE[0]}×{PICTURE[1]}")
    head = ("resize", "workers", *(f"{stage} ms" for stage in STAGES), "frames/s", "latency ms", "bound by")
    print(table(head, [row[:-1] for row in rows]))


def processor() -> str:
    """Return the name of this machine's CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
