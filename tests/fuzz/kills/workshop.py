"""What the commands are run by: the server, its preloaded library, and a compiler that keeps what it has compiled."""

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
"""What is kept has the words of its command, without folders, and the sources of its design in its name."""


@dataclass(frozen=True)
class Fault:
    """What strikes at the call ``at`` that changes files, counted from 1; 0 for nothing.

    signal: that arrives, or 0; late: after the call instead of before it. error: errno of the call, or 0; stays: what
    needs space goes on failing. old_kernel: two folders cannot change places in one step.
    """

    at: int = 0
    signal: int = 0
    late: bool = False
    error: int = 0
    stays: bool = False
    old_kernel: bool = False


@dataclass(frozen=True)
class Outcome:
    """codes: exit status of each process that ran, -N where signal N ended it. errors: what each wrote to stderr.
    calls: that changed files. tree: what the working folder holds then; temporary: what the temporary folder holds."""

    codes: tuple[int, ...]
    errors: tuple[str, ...]
    calls: int
    tree: Tree
    temporary: Tree


class Workshop:
    """A context in which commands run. folder: for everything that is made on the way."""

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
        """``systolic`` with ``arguments`` in ``folder``; where a signal stops it for a while, beside a second one."""
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
