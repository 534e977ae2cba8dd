"""Fixtures for accelerators that are compiled once and shared by all tests and by all workers of a parallel run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from systolic.execution.build import Variant, build
from tests.support.accelerators import GEOMETRIES, Accelerator, compiled
from tests.support.detectors import write_tiny_design
from tests.support.rtl.engines import FIRST, SMALL, design_of
from tests.support.shared_builds import locked, traced_objects
from tests.support.trace_kernels import KERNELS, compile_library, our_stream
from tests.support.traced import load_into

GiveAccelerator = Callable[..., Accelerator]


@pytest.fixture(scope="session")
def build_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of compiled designs, which all workers of a run share."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if base.name.startswith("popen-") else base) / "designs"
    root.mkdir(exist_ok=True)
    return root


@pytest.fixture(scope="module")
def engines(verilated: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for compiled SystemVerilog engines. Tests of a module load their networks into these engines."""
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="module")
def engine(engines: Path) -> Path:
    """Return a compiled 8-bit SystemVerilog engine with every optional unit."""
    folder = engines / "8"
    load_into(folder, design_of(FIRST, SMALL))
    build(folder)
    return folder


@pytest.fixture(scope="session")
def traced_kernels(build_root: Path) -> Path:
    """Return a shared library of the kernels in tests/support, compiled once with the trace recorder for all
    workers."""
    path = build_root / "traced.so"
    with locked(build_root / "traced.lock"):
        if not path.exists():
            compile_library(
                [KERNELS], path, "-DSYSTOLIC_TRACE", our_stream(), objects=traced_objects(build_root / "traced")
            )
    return path


@pytest.fixture(scope="session")
def accelerator(build_root: Path, tmp_path_factory: pytest.TempPathFactory) -> GiveAccelerator:
    """Return a function that compiles an accelerator and returns this worker's own copy.

    Its arguments are the name of a geometry and the variants to compile.
    """
    own: dict[str, Accelerator] = {}

    def give(geometry: str, *variants: Variant) -> Accelerator:
        wanted = variants or (Variant(),)
        made = compiled(GEOMETRIES[geometry], build_root / geometry.replace(" ", "-"), *wanted)
        key = "+".join([geometry, *(variant.name for variant in wanted)])
        if key not in own:
            own[key] = made.copy(tmp_path_factory.mktemp("accelerator") / "design")
        return own[key]

    return give


@pytest.fixture(scope="session")
def tiny_design(build_root: Path) -> Path:
    """Return a compiled design of a small detection network with random weights. Tests must not write to it."""
    folder = build_root / "tiny"
    with locked(build_root / "tiny.lock"):
        if not folder.exists():
            write_tiny_design(folder, "pynq-z2", array="4x8x8")
            build(folder)
    return folder
