"""Fixtures: the modules of the engine in one library, compiled by Verilator."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from systolic.execution import compiler
from systolic.execution.verilate import command, verilate
from tests.support.rtl.bench import Bench, Builder, files
from tests.support.shared_builds import locked, with_runtime


@pytest.fixture(scope="session")
def built(verilated: None, tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Return a function that compiles the files of a bench into a library, once for all workers.

    Verilator's own sources are compiled once for all libraries. Nothing is optimised, because compiling takes longer
    than running the tests.
    """
    base = tmp_path_factory.getbasetemp()
    beside = (base.parent if base.name.startswith("popen-") else base) / "builds"
    cache = Path(os.environ.get("SYSTOLIC_TEST_BUILDS", beside))

    def build(texts: Mapping[str, str]) -> Path:
        key = hashlib.sha256("".join(f"{name}{text}" for name, text in sorted(texts.items())).encode()).hexdigest()
        folder = cache / f"bench-{key[:16]}"
        cache.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_suffix(".lock")):
            made = folder / "bench.so"
            if not made.is_file():
                for name, text in texts.items():
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_text(text, "utf-8")
                verilate(folder, folder / "verilated", "bench")
                compiled = with_runtime(command(folder / "verilated", folder / "simulation/bench.cpp"), cache)
                compiler.compile_to(["-O0" if part == "-O1" else part for part in compiled], made)
        return made

    return build


@pytest.fixture(scope="session")
def library(built: Builder) -> Path:
    """Return the library of the bench of all modules."""
    return built(files())


@pytest.fixture
def bench(library: Path) -> Bench:
    """Return the bench of all modules, after a reset."""
    return Bench(library)
