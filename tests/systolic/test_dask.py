"""Test the schedule search on a Dask cluster of two workers: a killed worker loses nothing, and the command finds
the same."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boards.board import load
from boards.errors import ToolError
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.search.search import search
from scheduler.systolic.search.space import Goal, pin
from scheduler.systolic.search.workers import Workers
from systolic.cli.main import main
from systolic.styles.systolic.workers import workers
from tests.support.errors import raises
from tests.support.quantised import tiny_yolo
from tests.support.searches import problem, space_of

distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")

pytestmark = pytest.mark.engine
ZCU104 = load("zcu104")
LINK = ddr_timing(ZCU104, 300)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start two worker processes, each restarted by its nanny. Dask does not retry a task here, so the search must."""
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as two,
    ):
        yield two


class Killer(threading.Thread):
    """A thread that sends SIGKILL to the first worker that holds a batch."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address, self.killed, self.held = address, 0, 0
        self.ready, self.done = threading.Event(), threading.Event()

    def run(self) -> None:
        with distributed.Client(self.address) as client:
            pids = client.run(os.getpid)
            self.ready.set()
            while not self.done.is_set() and not self.killed:
                held = {worker: keys for worker, keys in client.processing().items() if keys and worker in pids}
                for worker, keys in list(held.items())[:1]:
                    os.kill(pids[worker], signal.SIGKILL)
                    self.killed, self.held = pids[worker], len(keys)
                time.sleep(0.005)


def gone(pid: int) -> bool:
    """Return whether the process ends within a minute. It exists until its nanny has noticed that it died."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_search_with_killed_worker_loses_no_result(cluster: Any) -> None:
    network, goal = tiny_yolo(208), Goal("resources", 300)
    asked = problem(network, ZCU104, pin(space_of(network, ZCU104), lanes=16))
    alone = search(asked, LINK, goal)
    killer = Killer(cluster.scheduler_address)
    killer.start()
    assert killer.ready.wait(60)
    try:
        with workers(dask=cluster.scheduler_address) as executor:
            found = search(asked, LINK, goal, Workers(executor))
    finally:
        killer.done.set()
        killer.join()
    assert killer.killed
    assert killer.held
    assert gone(killer.killed)
    assert found.key == alone.key
    assert found.schedule.array == alone.schedule.array
    assert found.schedule.tilings == alone.schedule.tilings
    assert found.proof.priced >= alone.proof.priced  # each geometry that the bound did not exclude
    assert found.proof.geometries == alone.proof.geometries


def test_schedule_with_dask_finds_the_same_schedule(cluster: Any, tmp_path: Path) -> None:
    asked = ["schedule", "tiny-yolov2-voc", "--size", "96x96", "--array", "13x16x16"]
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    assert main([*asked, "--json", str(one)]) == 0
    assert main([*asked, "--dask", cluster.scheduler_address, "--json", str(two)]) == 0
    assert json.loads(one.read_text()) == json.loads(two.read_text())


def test_workers_without_dask_scheduler_raise_tool_error() -> None:
    with (
        raises(ToolError, tool="the Dask scheduler at tcp://127.0.0.1:1", remedy="start one with: dask scheduler"),
        workers(dask="tcp://127.0.0.1:1", seconds=0.3),
    ):
        pass
