"""One case: read a file, and return the defect that this showed."""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boards.errors import SystolicError
from tests.fuzz.files.target import MEGABYTE, Target

LONGEST_SENTENCE = 3000
"""The limit for the length of an error's sentence, in characters."""

MAX_SECONDS = 10.0
"""The limit for the processor time of reading a file, in seconds."""

MAX_BYTES = 512 * MEGABYTE
"""The limit for the memory of reading a file, in addition to the target's ``extra_bytes``."""

ROOT = Path(__file__).resolve().parents[3]
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.mkdir": (0, 2), "os.remove": (0, 1), "os.rmdir": (0, 1), "os.chmod": (0, 2), "os.truncate": (0, 0),
            "os.rename": (1, 3), "os.symlink": (1, 2), "os.link": (1, 3)}  # fmt: skip
"""The audit events of calls that change files.

For each event: the index of the argument with the path, and of the argument with the open folder that the path is
relative to (−1 for none). A path relative to an open folder is not checked: shutil.rmtree removes whole trees this way.
"""


@dataclass(frozen=True)
class Defect:
    """A defect.

    Attributes:
        kind: A short name, which is the same for cases with the same cause.
        text: A description for people, for instance a traceback.
    """

    kind: str
    text: str


HANGS = "hangs"


def death(code: int, late: bool) -> Defect:
    """Return the defect of a process that ended with the exit code ``code``, −9 for SIGKILL, before it reported.

    Args:
        late: Whether the campaign killed the process because it took too long.
    """
    text = f"the process ended with {code}"
    if code >= 0:
        return Defect("exits", text)
    if code != -signal.SIGKILL:
        return Defect(f"dies of {signal.Signals(-code).name}", text)
    if late:
        return Defect(HANGS, f"{text}: it was killed because it took more than {MAX_SECONDS:g} s")
    return Defect("is killed", f"{text}: the campaign did not kill it. The kernel may have, for lack of memory")


class Watch:
    """A record of the files that the process writes and of the programs that it starts while ``on`` is true.

    Args:
        allowed: The folder in which files may be written.
        runs: The names of the programs that may be started.
    """

    def __init__(self, allowed: Path, runs: tuple[str, ...]) -> None:
        self._allowed, self._runs = os.fspath(allowed), runs
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITES:
                self._wrote(path)
        elif event in _CHANGES:
            path, folder = (arguments[index] for index in _CHANGES[event])
            if not isinstance(folder, int) or folder < 0:
                self._wrote(path)
        elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn"):
            program = Path(os.fsdecode(arguments[0])).name
            if program not in self._runs:
                self.seen.append(f"starts {program}")

    def _wrote(self, path: Any) -> None:
        if isinstance(path, int):
            return
        whole = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (no link is followed)
        if not whole.startswith((self._allowed, "/dev/null", "/dev/shm/sem.", "/proc/self")):
            self.seen.append(f"writes {whole}")


def limit_memory(extra_bytes: int) -> None:
    """Limit the memory of this process to its current size, ``MAX_BYTES`` and ``extra_bytes``."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    most = pages * resource.getpagesize() + MAX_BYTES + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def judge(target: Target, data: bytes, folder: Path, watch: Watch) -> Defect | None:
    """Read ``data`` as a file in ``folder``, and return the defect, or None if there is none."""
    path = folder / target.file_name
    path.write_bytes(data)
    watch.seen.clear()
    watch.on = True
    try:
        target.read(path)
        return _noticed(watch)
    except SystolicError as error:
        return _sentence(error) or _noticed(watch)
    except BaseException as error:
        return raised(error)
    finally:
        watch.on = False


def _noticed(watch: Watch) -> Defect | None:
    return Defect(watch.seen[0], "; ".join(watch.seen)) if watch.seen else None


def _sentence(error: SystolicError) -> Defect | None:
    text = str(error)
    if len(text) <= LONGEST_SENTENCE:
        return None
    return Defect(f"long sentence, {_place(error)}", f"{len(text)} characters: {text[:2000]}")


def raised(error: BaseException) -> Defect:
    """Return the defect of an exception that is not one of the project's."""
    return Defect(f"{type(error).__name__}, {_place(error)}", "".join(traceback.format_exception(error))[-6000:])


def _place(error: BaseException) -> str:
    """Return the file and the line of the deepest frame that is in the project and not in its tests."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(str(ROOT)) and "/tests/" not in frame.filename]
    if not own:
        return "in its target"
    return f"{Path(own[-1].filename).relative_to(ROOT)}:{own[-1].lineno}"
