"""Test commands that cannot write their output, or that a signal stops: they end early, with a sentence."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from systolic.cli.commands import boards
from tests.support.command_line import call, refused


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        ("boards", "--json", "no/b.json"),
        ("schedule", "--save", "no/s.json"),
        ("schedule", "--report", "no/r.html"),
        ("compare", "--report", "no/r.html"),
        ("pareto", "--picture", "no/p.png"),
        ("fold", "--save", "no/s.json"),
        ("generate", "--json", "no/g.json"),
        ("simulate", "--timeline", "no/t.png"),
        ("simulate", "--timeline", "t.doc"),
        ("run", "--output", "no/b.png"),
        ("run", "--output", "b.doc"),
    ],
)
def test_unwritable_output_is_refused_before_the_work(
    command: str, option: str, name: str, tiny_design: Path, tmp_path: Path
) -> None:
    """Give an input that does not exist either, but would be refused only after the output."""
    inputs = {
        "boards": (),
        "generate": ("absent.cfg", "-o", tmp_path / "out"),
        "simulate": (tiny_design, "--picture", "absent.png", "--cycles"),
        "run": (tiny_design, "absent.png"),
    }
    done = call(command, *inputs.get(command, ("absent.cfg",)), option, tmp_path / name)
    refused(done, str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_full_disk_at_standard_output_gives_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "systolic", "boards"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (2, "systolic: standard output: No space left on device\n")


INTERRUPTED_WHILE_LOADING = """
import os, runpy, signal, sys
interrupted = sys.argv.pop()
class Finder:
    def find_spec(self, name, *_):
        if name == interrupted:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
runpy.run_module("systolic", run_name="__main__")
"""


def test_interrupt_during_import_ends_without_traceback() -> None:
    for module in ("systolic.cli.parsing", "systolic.cli.commands.boards"):
        command = [sys.executable, "-c", INTERRUPTED_WHILE_LOADING, "boards", module]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", ""), module


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_a_command_with_a_sentence(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    # Commands keep ignoring SIGHUP under nohup, so the usual handler is set first.
    before = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    monkeypatch.setattr(boards, "_overview", lambda _: signal.raise_signal(number))
    done = call("boards")
    assert (done.code, done.out, done.error) == (128 + number, "", "systolic: stopped\n")
    assert signal.signal(number, before) is (signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


POOL = """
import os, sys, time
from systolic.styles.systolic.workers import workers
with workers(2) as pool:
    pids = {pool.submit(os.getpid).result() for _ in range(2)}
    print(*(process.pid for process in pool._processes.values()), flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), 9)
    tasks = [pool.submit(time.sleep, 0.1) for _ in range(10_000)]
    raise KeyboardInterrupt
"""


@pytest.mark.parametrize("ending", ["killed", "interrupted"])
def test_workers_end_with_their_parent_process(ending: str) -> None:
    """Expect that no worker runs the waiting tasks first. The call below returns only if all workers have ended,
    because they hold the output pipe."""
    done = subprocess.run(
        [sys.executable, "-c", POOL, ending], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == (-signal.SIGKILL if ending == "killed" else -signal.SIGINT)
    assert not any(Path(f"/proc/{pid}/exe").exists() for pid in done.stdout.split())
