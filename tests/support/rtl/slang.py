"""Slang's messages about the sources of a design."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from systolic.execution.verilate import TOP, modules

MEANT = ("-Wno-sign-conversion", "-Wno-packed-array-conv", "-Wno-useless-cast")
"""Warnings that are off, because no bit is lost. The program's numbers are signed, and addresses are not. FIFOs and
memories store structures as bits. A cast may keep the width in some geometries."""
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
    """Return slang's messages about a design, or "" for none."""
    command = [sys.executable, "-c", PROGRAM, *WARNINGS, "-Werror", "--top", TOP, *map(str, modules(folder))]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (finished.returncode != 0) == bool(finished.stdout + finished.stderr)
    return finished.stdout + finished.stderr
