"""A program that ends without ``close``: its interrupt loop ends too, and nothing is printed."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import asyncio, contextlib
from host.board import overlay

class Kept:
    pass

kept = Kept()
kept.stack = contextlib.ExitStack()
kept.loop = kept.stack.enter_context(overlay._loop())
"""

ENDINGS = {
    "idle": "",
    "waiting": """
async def wait():
    await asyncio.Event().wait()

kept.future = asyncio.run_coroutine_threadsafe(wait(), kept.loop)
""",
    "in a ring": "kept.stack.kept = kept; del kept",
    "forgotten": "import gc; del kept; gc.collect()",
    "closed": "kept.stack.close(); kept.stack.close()",
    "with an error": "raise SystemExit(0)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_program_that_ends_without_close_prints_nothing(ending: str) -> None:
    program = BEGIN + ENDINGS[ending]
    done = subprocess.run([sys.executable, "-W", "default", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
