"""What every room's tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import systolic.golden
from boards.errors import SimulationError
from systolic.execution import build, compiler
from systolic.execution.verilate import verilator
from tests.support.shared_builds import shared as shared_compiler

# No example is refused for the seconds it took; where CI is set, every run draws the same ones.
settings.register_profile(
    "systolic", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("systolic")

# A shell that starts something in the background has it ignore Ctrl-C, and whatever that starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What commands write to standard error does not depend on how busy the machine is; test_progress.py sets it.
os.environ["SYSTOLIC_PROGRESS"] = "0"
# Designs that commands generate are checked by test_check.py, and not by each test of a command once more.
os.environ["SYSTOLIC_CHECK"] = "0"

RUN_PYNQ = {"accelerator", "ip"}
"""Fixtures that do."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write what tests/golden compares with anew, to be read as a diff"
    )


@pytest.fixture(scope="session")
def verilated() -> None:
    """Skips where Verilator is not installed."""
    try:
        verilator()
    except SimulationError as error:
        pytest.skip(str(error))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever takes an accelerator runs pynq."""
    for item in items:
        if RUN_PYNQ & set(getattr(item, "fixturenames", ())):
            item.add_marker("pynq")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("pynq"):
        pytest.importorskip("pynq", reason="this test runs the real pynq: pip install -e .[board], see .ci/host")


@pytest.fixture(scope="session", autouse=True)
def shared_builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every simulation library and golden program is compiled once, into SYSTOLIC_TEST_BUILDS or beside the tests."""
    base = tmp_path_factory.getbasetemp()
    beside = (base.parent if base.name.startswith("popen-") else base) / "builds"
    folder = Path(os.environ.get("SYSTOLIC_TEST_BUILDS", beside))
    folder.mkdir(exist_ok=True)
    compile_once = shared_compiler(compiler.compile_to, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "compile_to", compile_once)
        patch.setattr(systolic.golden, "compile_to", compile_once)
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real networks, pictures and expected values; skips where it is absent."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("SYSTOLIC_SHARED", beside))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}: set SYSTOLIC_SHARED to the folder that holds data/")
    return folder
