"""One case in a process of its own. Generated code may crash, hang or use up memory without ending the campaign."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import re
import resource
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tests.fuzz.networks.builds import quick_builds
from tests.fuzz.networks.case import Case
from tests.fuzz.networks.checks import CHECKS, DefectError, run_check
from tests.fuzz.networks.prepare import Prepared, RefusedError, prepare

_FORK = multiprocessing.get_context("fork")

CPU_SECONDS, MEMORY = 120, 6 << 30
"""Limits per process of a case: seconds of processor time, and bytes of memory.

Processor time does not depend on how busy the machine is.
"""

WAIT_SECONDS, MIN_SECONDS = 600, 1
"""A case hangs if it uses less than MIN_SECONDS of processor time within WAIT_SECONDS of time.

Such a case waits for something that never happens. A case that works uses more, on a busy machine too.
"""


_SIGNALS = {number.value: number.name for number in signal.Signals}

MAX_TEXT = 4000
"""The limit for the length of an outcome's sentence, in characters."""


@dataclass(frozen=True)
class Outcome:
    """The end of a trial.

    Attributes:
        state: "passed", "refused" or "failed".
        stage: The stage that refused the case, or the check that failed.
        sentence: The reason of a refusal or a failure.
        layers: The number of executed layers, by kind.
        seconds: The processor time, by stage and check.
    """

    state: str
    stage: str = ""
    sentence: str = ""
    layers: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def signature(self) -> str:
        """The stage and the sentence without names and numbers. It is the same for failures with a common cause."""
        line = next(iter(self.sentence.splitlines()), "")
        line = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", line)
        line = re.sub(
            r"\b(?:x|conv|pool|dense|average|add|route|slice|reorg|upsample|input)[0-9_a-z]*\b", "LAYER", line
        )
        line = re.sub(r"\S*/\S*", "PATH", re.sub(r"[0-9][0-9.,×]*", "#", line))
        return f"{self.stage}: {line[:140]}"


class Trial:
    """A running case.

    Args:
        case: The case.
        cache: A folder of compiled code, which trials share.
    """

    def __init__(self, case: Case, cache: Path) -> None:
        self.case = case
        self._folder = tempfile.TemporaryDirectory(prefix="systolic-fuzz-")
        self._seen, self._used, self._waits = time.monotonic(), 0.0, False
        self._receiver, sender = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(target=_child, args=(case, cache, Path(self._folder.name), sender))
        self._process.start()
        sender.close()

    @property
    def sentinel(self) -> int:
        return self._process.sentinel

    @property
    def late(self) -> bool:
        """Return whether the case hangs."""
        now = time.monotonic()
        if not self._waits and now - self._seen > WAIT_SECONDS:
            used = _used_by(self._process.pid or 0)
            self._waits = used - self._used < MIN_SECONDS
            self._seen, self._used = now, used
        return self._waits

    @property
    def ended(self) -> bool:
        return not self._process.is_alive()

    def outcome(self) -> Outcome:
        """Return the outcome of a process that has ended or hangs. A hanging process is killed, with its children."""
        if self._process.is_alive():
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.join()
        outcome = self._received()
        if outcome is None and self.late:
            outcome = Outcome(
                "failed", "time", f"the case hangs: less than {MIN_SECONDS} s of processor time in {WAIT_SECONDS} s"
            )
        if outcome is None:
            outcome = self._ended(self._process.exitcode or 0)
        self._process.close()
        self._receiver.close()
        self._folder.cleanup()
        return outcome

    def _received(self) -> Outcome | None:
        """Return the outcome that the process sent, or None if it ended before it had sent all of it.

        An outcome is smaller than the pipe's buffer, so the process never waits for its outcome to be read.
        """
        try:
            sent: Outcome = self._receiver.recv()
        except (EOFError, OSError):
            return None
        return sent

    def _ended(self, code: int) -> Outcome:
        folder = Path(self._folder.name)
        stage = _text(folder / "stage") or "start"
        said = _text(folder / "said").strip().splitlines()[-3:]
        if -code == signal.SIGXCPU:
            return Outcome("failed", stage, f"not done after {CPU_SECONDS} s of processor time")
        name = f"exit code {code}" if code >= 0 else _SIGNALS.get(-code, f"signal {-code}")
        return Outcome("failed", stage, f"the process ended by {name}: {' | '.join(said)}")


def try_case(case: Case, cache: Path) -> Outcome:
    """Try one case and wait for its end."""
    trial = Trial(case, cache)
    while not (trial.ended or trial.late):
        wait([trial.sentinel], 5.0)
    return trial.outcome()


def _used_by(group: int) -> float:
    """Return the seconds of processor time of a group's processes and of the children that they waited for."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:  # the process has ended since the listing
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def _child(case: Case, cache: Path, folder: Path, sender: Connection) -> None:
    os.setpgrp()
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 10))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sender.send(run_case(case, cache, folder))
    sender.close()


def run_case(case: Case, cache: Path, folder: Path) -> Outcome:
    """Try a case in this process.

    Args:
        cache: A folder of compiled code.
        folder: An empty folder. Its file ``stage`` names the current stage or check.
    """
    seconds: dict[str, float] = {}
    stage, begin = "prepare", _worked()
    try:
        with quick_builds(cache, share=case.mapping["kind"] == "drawn" and case.style == "systolic"):
            (folder / "stage").write_text(stage)
            prepared = prepare(case, folder)
            for check in (name for name in CHECKS if name in case.checks):
                seconds[stage] = _worked() - begin
                stage, begin = check, _worked()
                (folder / "stage").write_text(stage)
                run_check(check, prepared)
            seconds[stage] = _worked() - begin
    except RefusedError as refusal:
        return Outcome("refused", refusal.stage, refusal.sentence[:MAX_TEXT], seconds={stage: _worked() - begin})
    except DefectError as defect:
        return Outcome("failed", stage, str(defect)[:MAX_TEXT], seconds=seconds)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.name}"
        return Outcome("failed", stage, f"{type(error).__name__} in {where}: {error}"[:MAX_TEXT], seconds=seconds)
    return Outcome("passed", layers=_kinds(prepared), seconds=seconds)


def _worked() -> float:
    """Return the seconds of processor time of this process and of the compilers that it waited for."""
    return sum(os.times()[:4])


def _kinds(prepared: Prepared) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for layer in prepared.design.manifest.layers:
        kind = type(prepared.design.network.nodes[layer.node].op).__name__.removeprefix("Q")
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds
