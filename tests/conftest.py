"""Hooks and fixtures of the whole suite."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import systolic.golden
from boards.errors import MissingToolError
from systolic.execution import build, compiler
from systolic.execution.verilate import verilator
from tests.support.shared_builds import FOLDER
from tests.support.shared_builds import shared as shared_compiler
from tests.support.suite import costs_of, guarded, parts_of, share_of, workers

# A busy machine must not fail a test, so examples have no deadline. With CI set, every run draws the same examples.
settings.register_profile(
    "systolic", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("systolic")

# A job that a shell starts in the background ignores SIGINT, and so would the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Progress depends on the speed of the machine, so commands print none in tests; test_progress.py turns it on.
os.environ["SYSTOLIC_PROGRESS"] = "0"
# test_check.py checks generated designs; the tests of other commands need not repeat that.
os.environ["SYSTOLIC_CHECK"] = "0"

# Programs that tests start must not reach a package registry either.
OFFLINE = {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}

RUN_PYNQ = {"accelerator", "ip"}
"""Fixtures of tests/host that run the real pynq."""

SECONDS = Path(__file__).resolve().parents[1] / ".ci/seconds.tsv"
"""CPU seconds of each test file; ``.ci/nightly`` updates them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected text of tests/golden, to review as a diff"
    )
    parser.addoption("--cpu", metavar="FILE", help="append each test's CPU seconds, with child processes, to FILE")
    parser.addoption(
        "--share", metavar="K/N", help="run the K-th of N parts of the selected tests, K from 0, by whole files"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of workers of ``-n auto``: 0 for single files, for -s and --pdb, and to list tests."""
    if config.getoption("capture") == "no" or config.getoption("collectonly"):
        return 0
    return workers([] if config.args == config.getini("testpaths") else config.args, len(os.sched_getaffinity(0)))


@pytest.fixture(scope="session")
def verilated() -> None:
    """Skip the test if Verilator is not installed."""
    try:
        verilator()
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that run pynq, and refuse a test with two of the markers of cost."""
    for item in items:
        if item.nodeid.startswith("tests/host/") and RUN_PYNQ & set(getattr(item, "fixturenames", ())):
            item.add_marker("pynq")
        if len(costs := costs_of(mark.name for mark in item.iter_markers())) > 1:
            raise pytest.UsageError(f"{item.nodeid} has the markers {' and '.join(costs)}; a test has one at most")


class Share:
    """Deselects the tests of other shares, after the markers have selected."""

    def __init__(self, text: str) -> None:
        self.part, self.parts = share_of(text)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        rows = [line.split("\t") for line in SECONDS.read_text("utf-8").splitlines()] if SECONDS.is_file() else []
        files = sorted({item.nodeid.partition("::")[0] for item in items})
        chosen = parts_of(files, {name: float(seconds) for name, seconds in rows}, self.parts)
        others = [item for item in items if chosen[item.nodeid.partition("::")[0]] != self.part]
        items[:] = [item for item in items if chosen[item.nodeid.partition("::")[0]] == self.part]
        config.hook.pytest_deselected(items=others)


class ProcessorTime:
    """Appends the CPU seconds of each test, with its child processes, to a file."""

    def __init__(self, path: str) -> None:
        self.path = Path(path).absolute()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        begin = sum(os.times()[:4])
        result = yield
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{sum(os.times()[:4]) - begin:.3f}\t{item.nodeid}\n")
        return result


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("--cpu"):
        config.pluginmanager.register(ProcessorTime(path))
    if text := config.getoption("--share"):
        try:
            config.pluginmanager.register(Share(text))
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error


_running: list[pytest.Item] = []


def _may_connect() -> bool:
    return any(item.get_closest_marker("campaign") for item in _running)


@pytest.fixture(scope="session", autouse=True)
def offline() -> Iterator[None]:
    """Let only campaigns connect to other machines."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, guarded(getattr(socket.socket, name), _may_connect), raising=False)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _running.append(item)
    with pytest.MonkeyPatch.context() as patch:
        if not item.get_closest_marker("campaign"):
            for name, value in OFFLINE.items():
                patch.setenv(name, value)
        result = yield
    _running.pop()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("pynq"):
        pytest.importorskip("pynq", reason="this test runs the real pynq: pip install -e .[board], see .ci/host")


@pytest.fixture(scope="session", autouse=True)
def shared_builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile every simulation library and golden program once, into SYSTOLIC_TEST_BUILDS or a temporary folder."""
    base = tmp_path_factory.getbasetemp()
    beside = (base.parent if base.name.startswith("popen-") else base) / "builds"
    folder = Path(os.environ.get(FOLDER, beside))
    folder.mkdir(exist_ok=True)
    compile_once = shared_compiler(compiler.compile_to, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(folder))
        patch.setattr(build, "compile_to", compile_once)
        patch.setattr(systolic.golden, "compile_to", compile_once)
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of real networks, pictures and expected values; skip the test if it is absent."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("SYSTOLIC_SHARED", beside))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}: set SYSTOLIC_SHARED to the folder that holds data/")
    return folder
