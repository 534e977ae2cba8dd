"""The environment in which commands run: a server, its preloaded library, and a compiler that caches its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.fuzz.kills.tree import Tree, tree_of

ROOT = Path(__file__).parents[3]
COMPILER = """\
#!/bin/sh
for argument; do
    if [ "$before" = -o ]; then output="$argument"; else text="$text ${{argument##*/}}"; fi
    before="$argument"
done
key=$({{ echo "$text"; cat src/* simulation/* golden/*; }} 2>/dev/null | sha1sum | cut -c1-20)
kept="{kept}/$key-${{output##*/}}"
[ -f "$kept" ] || {{ g++ "$@" && cp "$output" "$kept.$$" && mv "$kept.$$" "$kept"; exit; }}
cp "$kept" "$output"
"""
"""A compiler that keeps its output.

The name of a kept file depends on the words of the command, without folders, and on the sources of the design.
"""


@dataclass(frozen=True)
class Fault:
    """A fault at one of the calls that change files.

    Attributes:
        at: The number of the call, counted from 1; 0 for no fault.
        signal: The signal that arrives, or 0.
        late: Whether the signal arrives after the call, instead of before it.
        error: The errno with which the call fails, or 0.
        stays: Whether all later calls that need disk space fail too.
        old_kernel: Whether the kernel cannot exchange two folders in one step (renameat2).
    """

    at: int = 0
    signal: int = 0
    late: bool = False
    error: int = 0
    stays: bool = False
    old_kernel: bool = False


@dataclass(frozen=True)
class Outcome:
    """The result of a command.

    Attributes:
        codes: The exit status of each process; -N if signal N ended it.
        errors: The standard error of each process.
        calls: The number of calls that changed files.
        tree: The files of the working folder after the command.
        temporary: The files of the temporary folder after the command.
    """

    codes: tuple[int, ...]
    errors: tuple[str, ...]
    calls: int
    tree: Tree
    temporary: Tree


class Workshop:
    """A context in which commands run.

    Args:
        folder: The folder for all files that are made on the way.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Workshop:
        kept = Path(os.environ.get("SYSTOLIC_TEST_BUILDS", self.folder / "kept"))
        for folder in (kept, self.folder / "output"):
            folder.mkdir(parents=True, exist_ok=True)
        library, compiler = self.folder / "faults.so", self.folder / "g++"
        source = Path(__file__).with_name("faults.cpp")
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        compiler.write_text(COMPILER.format(kept=kept))
        compiler.chmod(0o755)
        environment = {"LD_PRELOAD": str(library), "CXX": str(compiler), "PYTHONDONTWRITEBYTECODE": "1"}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.kills.server"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def run(self, folder: Path, arguments: tuple[str, ...], fault: Fault = Fault()) -> Outcome:
        """Run ``systolic`` with ``arguments`` in ``folder``.

        If the fault's signal stops the process for a while, a second process runs the same command meanwhile.
        """
        temporary, output = folder.with_name("temporary"), self.folder / "output"
        temporary.mkdir(exist_ok=True)
        struck = [fault.at, fault.signal, fault.late, fault.error, fault.stays, fault.old_kernel]
        request = {
            "folder": str(folder),
            "temporary": str(temporary),
            "output": str(output),
            "arguments": arguments,
            "fault": [int(value) for value in struck],
        }
        answer = self._ask(request)
        processes = [name for name in ("first", "second") if name in answer]
        errors = tuple((output / f"{name}.error").read_text() for name in processes)
        codes = tuple(answer[name] for name in processes)
        return Outcome(codes, errors, answer["calls"], tree_of(folder), tree_of(temporary))

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._server.stdin
        assert self._server.stdout
        print(json.dumps(request), file=self._server.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return answer
