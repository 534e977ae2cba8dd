"""The loop of a campaign over files. Cases run in forked workers, so a crash or a hang is a defect like any other.

A worker writes the number of each case to memory that it shares with its parent, before it tries the case. The parent
checks the case's processor time, and knows the case if the worker dies.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tests.fuzz.campaign import Campaign
from tests.fuzz.files.judge import MAX_SECONDS, Defect, Watch, death, judge, limit_memory
from tests.fuzz.files.shrink import shrunk
from tests.fuzz.files.target import Target

CASES_A_WORKER = 20_000
"""The number of cases per worker. After these, a new process continues, so that memory does not accumulate."""

_STATE = struct.Struct("<qdq")  # the case's number, the worker's processor time at its beginning, cases done
_HEAD = struct.Struct("<qii")  # the case's number, the bytes of the defect's kind and of its text
_MORE, _DONE = 10, 0  # exit statuses of a worker: cases are left, or all are done


@dataclass
class Hunt:
    """The results of a campaign over one target.

    Attributes:
        target: The kind of file.
        campaign: The parameters of the campaign.
        seeds: The files that are mutated.
        cases: The number of cases so far.
        counts: The number of cases that showed each kind of defect.
        defects: For each kind, the number of the first case that showed it, and the defect.
    """

    target: Target
    campaign: Campaign
    seeds: Sequence[bytes]
    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    defects: dict[str, tuple[int, Defect]] = field(default_factory=dict)

    def note(self, number: int, defect: Defect) -> None:
        """Count a defect. The first one of a kind is kept and printed."""
        self.counts[defect.kind] += 1
        if defect.kind not in self.defects:
            self.defects[defect.kind] = (number, defect)
            print(f"{self.target.name}: case {number}: {defect.kind}", flush=True)


def hunt(target: Target, campaign: Campaign) -> int:
    """Run the campaign, print a summary, write two files per defect, and return the number of kinds of defects."""
    found = Hunt(target, campaign, tuple(target.seeds()))
    begin = time.monotonic()
    number: int | None = 0
    while number is not None:
        number = _work(found, number)
    seconds = time.monotonic() - begin
    for index, (number_of_case, defect) in enumerate(found.defects.values()):
        _leave(found, index, number_of_case, defect)
    print(
        f"{target.name}: {found.cases:,} cases in {seconds:.0f} s ({found.cases / max(seconds, 1e-3):,.0f}/s), seed "
        f"{campaign.seed}, {len(found.defects)} defects",
        flush=True,
    )
    return len(found.defects)


def _work(found: Hunt, first: int) -> int | None:
    """Run one worker from the case ``first`` on.

    Return the number of the case with which the next worker continues, or None if all cases are done.
    """
    with mmap.mmap(-1, _STATE.size) as state:
        state[:] = _STATE.pack(first, 0.0, 0)
        read_end, write_end = os.pipe()
        folder = Path(tempfile.mkdtemp(prefix="systolic-fuzz-", dir=_quick_folder()))
        child = os.fork()
        if child == 0:
            os.close(read_end)
            _child(found, first, folder, state, write_end)
        os.close(write_end)
        try:
            status, late = _watch(found, child, state, read_end)
        finally:
            os.close(read_end)
            shutil.rmtree(folder, ignore_errors=True)
        number, _, done = _STATE.unpack(state[:])
    found.cases += done
    code = os.waitstatus_to_exitcode(status)
    if code == _DONE:
        return None
    if code != _MORE:
        found.cases += 1
        found.note(number, death(code, late))
    return int(number) + 1


def _quick_folder() -> str | None:
    # Files in memory are faster to write.
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _watch(found: Hunt, child: int, state: mmap.mmap, read_end: int) -> tuple[int, bool]:
    """Wait for a worker to end. Return its exit status, and whether it was killed because a case took too long."""
    waiting = b""
    ended = late = False
    while True:
        ready, _, _ = select.select([read_end], [], [], 0.2)
        if ready:
            part = os.read(read_end, 1 << 16)
            waiting = _take(found, waiting + part)
            ended = not part
        _, begun, _ = _STATE.unpack(state[:])
        if begun and _cpu_seconds(child) - begun > MAX_SECONDS:
            os.kill(child, signal.SIGKILL)
            late = True
        if ended:
            return os.waitpid(child, 0)[1], late


def _cpu_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _take(found: Hunt, data: bytes) -> bytes:
    """Note the defects in ``data``, which a worker sent, and return the incomplete rest of ``data``."""
    while len(data) >= _HEAD.size:
        number, kind, text = _HEAD.unpack_from(data)
        end = _HEAD.size + kind + text
        if len(data) < end:
            break
        words = data[_HEAD.size : end]
        found.note(number, Defect(words[:kind].decode(), words[kind:].decode()))
        data = data[end:]
    return data


def _child(found: Hunt, first: int, folder: Path, state: mmap.mmap, write_end: int) -> None:
    """Run the worker's cases in the forked process. Never returns."""
    code = 1
    try:
        _quiet(folder)
        limit_memory(found.target.extra_bytes)
        watch = Watch(folder, found.target.runs)
        code = _cases(found, first, folder, state, write_end, watch)
    finally:
        os._exit(code)


def _quiet(folder: Path) -> None:
    """Discard the output of the process, and put temporary files in the worker's folder, which may be written."""
    faulthandler.disable()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115 (until the process ends)
    tempfile.tempdir = str(folder)


def _cases(found: Hunt, first: int, folder: Path, state: mmap.mmap, write_end: int, watch: Watch) -> int:
    done = 0
    for number in islice(found.campaign.numbers(), first, None):
        if done == CASES_A_WORKER:
            state[:] = _STATE.pack(number - 1, 0.0, done)
            return _MORE
        state[:] = _STATE.pack(number, 0.0, done)
        data = found.target.case(found.seeds, found.campaign.seed, number)
        state[:] = _STATE.pack(number, max(time.process_time(), 1e-6), done)
        defect = judge(found.target, data, folder, watch)
        if defect is not None:
            kind, text = defect.kind.encode("utf-8", "replace"), defect.text.encode("utf-8", "replace")
            os.write(write_end, _HEAD.pack(number, len(kind), len(text)) + kind + text)
        done += 1
    state[:] = _STATE.pack(first + done, 0.0, done)
    return _DONE


def _leave(found: Hunt, index: int, number: int, defect: Defect) -> None:
    """Write a small file that shows the defect again, and a text that describes the defect."""
    data = shrunk(found.target, found.target.case(found.seeds, found.campaign.seed, number), defect)
    folder = found.campaign.failures
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{found.target.name}-{found.campaign.seed}-{index}"
    (folder / f"{name}.case").write_bytes(data)
    text = (
        f"python -m tests.fuzz {found.target.name} --seed {found.campaign.seed}: case {number}, and "
        f"{found.counts[defect.kind] - 1} more\n{defect.kind}\n\n{defect.text}\n"
    )
    (folder / f"{name}.txt").write_text(text, "utf-8")
