"""Complaints of slang about the sources of a design."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from systolic.execution.verilate import TOP, modules

MEANT = ("-Wno-sign-conversion", "-Wno-packed-array-conv", "-Wno-useless-cast")
"""Numbers of the program are signed, addresses are not; FIFOs and memories take structures as bits; a cast may be to
the same width in some geometry. No bit is lost in any of them."""
WARNINGS = ("-Wextra", "-Wconversion", *MEANT)


PROGRAM = """
import sys
from pyslang.driver import Driver
driver = Driver()
driver.addStandardArgs()
read = driver.parseCommandLine(" ".join(sys.argv)) and driver.processOptions() and driver.parseAllSources()
if not read:
    sys.exit(2)
driver.reportCompilation(driver.createCompilation(), True)
sys.exit(not driver.reportDiagnostics(True))
"""


def complaints(folder: Path) -> str:
    """Of a design, "" for none."""
    command = [sys.executable, "-c", PROGRAM, *WARNINGS, "-Werror", "--top", TOP, *map(str, modules(folder))]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (finished.returncode != 0) == bool(finished.stdout + finished.stderr)
    return finished.stdout + finished.stderr
