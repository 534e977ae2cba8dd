"""Executes one start of a design, and returns its integers, its cycles and the depths that its FIFOs need."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from host.vision.picture import Pixels
from systolic.execution.build import Variant
from systolic.execution.simulation import Simulation
from systolic.files import write
from systolic.styles.registry import execute, open_design, style_of
from tools.digests.design import Generated, package_of, searched
from tools.digests.quick_compiler import stub

Facts = dict[str, Any]
"""Results of an execution by name: numbers, lists of numbers and digests."""

LENGTH = 16
"""Number of hexadecimal digits of a digest."""


class WrongIntegersError(Exception):
    """The integers of an executed design differ from the golden model's."""


@contextmanager
def quick_builds() -> Iterator[None]:
    """Compile quickly for one execution: without optimisation, and parts that designs share only once."""
    with tempfile.TemporaryDirectory(prefix="digests-") as folder:
        settings = {"CXX": str(stub(Path(folder))), "DIGESTS_OBJECTS": folder}
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def executed(design: Generated, progress: Callable[[str], None] = lambda _: None) -> Facts:
    """Compile a design and execute one start of it.

    Raises:
        WrongIntegersError: A layer differs from the golden model.
    """
    with tempfile.TemporaryDirectory(prefix="digests-") as folder, package_of(design.row.network):
        write(design.files, Path(folder) / "design")
        opened = open_design(Path(folder) / "design")
        facts = _STYLES[design.row.style, design.row.engine](design, opened, progress)
    if design.row.choice != "drawn":
        facts["search"] = digest(searched(design.row).encode())
    return facts


def digest(data: bytes) -> str:
    """Return the first digits of the SHA-256 digest."""
    return hashlib.sha256(data).hexdigest()[:LENGTH]


def _traced(design: Generated, opened: Any, progress: Callable[[str], None]) -> Facts:
    """Execute an array in C++. The traced build computes the integers too."""
    pictures = _pictures(design)
    frames = execute(opened, pictures, Variant(trace=True), progress)
    report = style_of(opened).trace(opened, pictures[0], progress).report()
    return {
        "cycles": report.cycles_per_frame,
        "integers": _integers(design, frames),
        "layers": [layer.cycles for layer in report.layers],
    }


def _counted(design: Generated, opened: Any, progress: Callable[[str], None]) -> Facts:
    """Execute an array in SystemVerilog. The simulation counts the cycles."""
    frames = execute(opened, _pictures(design), Variant(), progress)
    return {
        "cycles": sum(frames[0].cycles),
        "integers": _integers(design, frames),
        "layers": list(frames[0].cycles),
    }


def _streamed(design: Generated, opened: Any, progress: Callable[[str], None]) -> Facts:
    """Execute a pipeline. The traced build gives cycles and FIFO depths, a second build the integers of every layer."""
    frames = execute(opened, [design.picture], Variant(), progress)
    trace = style_of(opened).trace(opened, design.picture, progress)
    report = trace.report().values()
    fifos = trace.fifos().values()
    return {
        "cycles": report["cycles_per_frame"],
        "fifos": digest(json.dumps(fifos, sort_keys=True).encode()),
        "integers": _integers(design, frames),
        "latency": report["latency_cycles"],
        "layers": [layer["cycles"] for layer in report["layers"]],
    }


_STYLES: dict[tuple[str, str], Callable[[Generated, Any, Callable[[str], None]], Facts]] = {
    ("systolic", "hls"): _traced,
    ("systolic", "rtl"): _counted,
    ("streaming", "hls"): _streamed,
}


def _pictures(design: Generated) -> Sequence[Pixels]:
    """Return the pictures of a batch: the test bench's picture, and shifted copies of it."""
    return [np.roll(design.picture, number, axis=2) for number in range(design.row.batch)]


def _integers(design: Generated, frames: Sequence[Simulation]) -> str:
    """Return the digest of every integer of every layer and frame."""
    total = hashlib.sha256()
    for frame in frames:
        wrong = [layer.name for layer in frame.layers if layer.mismatches]
        if wrong:
            raise WrongIntegersError(f"{design.row.name} differs from the golden model in {', '.join(wrong)}")
        for layer, integers in zip(frame.layers, frame.outputs, strict=True):
            total.update(f"{layer.name} {integers.dtype} {integers.shape}\n".encode())
            total.update(np.ascontiguousarray(integers).tobytes())
    return total.hexdigest()[:LENGTH]
