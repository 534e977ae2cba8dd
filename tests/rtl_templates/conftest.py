"""The modules of the engine in one library, where Verilator is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import SimulationError
from systolic.execution import compiler
from systolic.execution.verilate import command, verilate, verilator
from tests.rtl_templates.bench import Bench, files
from tests.shared_builds import locked


@pytest.fixture(scope="session")
def verilated() -> None:
    """Skips where Verilator is not installed."""
    try:
        verilator()
    except SimulationError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def library(verilated: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bench, compiled once for all workers."""
    import hashlib
    import os

    texts = files()
    key = hashlib.sha256("".join(f"{name}{text}" for name, text in sorted(texts.items())).encode()).hexdigest()[:16]
    base = tmp_path_factory.getbasetemp()
    beside = base.parent if base.name.startswith("popen-") else base
    folder = Path(os.environ.get("SYSTOLIC_TEST_BUILDS", beside)) / f"bench-{key}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock")):
        made = folder / "bench.so"
        if not made.is_file():
            for name, text in texts.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, "utf-8")
            verilate(folder, folder / "verilated", "bench")
            compiler.compile_to(command(folder / "verilated", folder / "simulation/bench.cpp"), made)
    return made


@pytest.fixture
def bench(library: Path) -> Bench:
    """After a reset."""
    return Bench(library)
