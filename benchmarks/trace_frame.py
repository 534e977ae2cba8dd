"""Measure the time of tracing and solving a frame of a generated design: python -m benchmarks.trace_frame DIR"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from host.contract.libraries import SystolicLibrary
from systolic.execution.build import Variant, build
from systolic.styles.systolic.simulate import arena, open_design, place_picture
from systolic.trace.solver import MemoryTiming, Trace

T = TypeVar("T")


def timed(name: str, action: Callable[[], T]) -> T:
    """Return the result of the action, and print the seconds it took."""
    start = time.perf_counter()
    result = action()
    print(f"{name:<28}{time.perf_counter() - start:8.3f} s")
    return result


def main(path: Path) -> None:
    """Compile, execute and solve the design in ``path``, and size its FIFOs."""
    folder = open_design(path)
    path = timed("compile (or find)", lambda: build(folder.path, Variant(trace=True)))
    library = SystolicLibrary(path, folder.manifest)
    maps = arena(folder)
    shape = folder.manifest.input.shape
    place_picture(folder, np.zeros(shape, np.uint8), maps)
    trace = Trace(library.handle)
    trace.begin()
    timed("execute and record", lambda: library.run(folder.memory(maps), 0, folder.manifest.passes))
    trace.end()
    timing = timed("solve", trace.solve)
    timed("solve for half the DDR", lambda: trace.solve(MemoryTiming(efficiency=MemoryTiming().efficiency / 2)))
    timed("FIFO advice", trace.advise)
    accesses = sum(region.accesses for region in trace.regions)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{accesses:,} accesses in {trace.bytes / 1e6:.1f} MB of trace; {peak:.0f} MiB of memory at most")
    print(f"{timing.cycles:,} cycles, {1 / timing.seconds:.1f} frames/s at {timing.clock_mhz:g} MHz (target)")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
