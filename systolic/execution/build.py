"""Generated sources → simulation library, by g++. Built once a variant, kept in the design's folder."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from boards.errors import SimulationError
from host.contract.simulation_library import kept_in, sources, sources_key
from host.whole_file import beside, sweep
from systolic.progress import Progress

TIMEOUT_SECONDS = 900


@dataclass(frozen=True)
class Variant:
    """How the sources are compiled.

    ap_int: the vendor's integer types and packed products instead of native ones. trace: record cycles.
    sanitize: address and undefined-behaviour checks (the process must preload libasan).
    """

    ap_int: bool = False
    trace: bool = False
    sanitize: bool = False

    @property
    def name(self) -> str:
        parts = ["ap_int" if self.ap_int else "native", "trace" * self.trace, "sanitize" * self.sanitize]
        return "-".join(part for part in parts if part)


def _silent(_: str) -> None:
    """Tells nobody."""


def build(folder: Path, variant: Variant = Variant(), tell: Progress = _silent) -> Path:
    """The shared library for the sources in ``folder``; compiled only where they changed, unit by unit.

    SimulationError says what is missing: the design, g++, the ap_int headers; or what the compiler said.
    """
    if not (folder / "src" / "top.cpp").is_file():
        raise SimulationError(
            f"{folder} holds no generated design (src/top.cpp is missing); run systolic generate first"
        )
    command = _command(folder, variant)
    # The host knows the first key, not the second: it finds the library of these sources by it.
    library = kept_in(folder) / f"{variant.name}-{sources_key(sources(folder))}-{command_key(command)}.so"
    if not library.is_file():
        tell(f"compiling ({variant.name})")
        compile_to(command, library, folder, tell)
    else:
        sweep(library.absolute())
    return library


def _command(folder: Path, variant: Variant) -> list[str]:
    """To be run in ``folder``: paths are relative, so that a design which moves keeps its libraries."""
    flags = (
        ["-O3", "-march=native"]
        if not variant.sanitize
        else ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    )
    # Two designs may be loaded into one process: their statics must not be merged.
    flags += ["-std=c++17", "-shared", "-fPIC", "-fno-gnu-unique", "-w"]
    includes = [Path("src"), Path("simulation")]
    if variant.ap_int:
        flags.append("-DSYSTOLIC_AP_INT")
        includes.append(ap_int_folder())
    units = [Path("src/top.cpp"), Path("simulation/simulate.cpp")]
    if variant.trace:
        flags.append("-DSYSTOLIC_TRACE")
        traced = sorted(path.name for path in (folder / "simulation").glob("*.cpp") if path.name != "simulate.cpp")
        units += [Path("simulation") / name for name in traced]
    return [compiler(), *flags, *(f"-I{path}" for path in includes), *map(str, units)]


def compiler() -> str:
    """The path of g++, or of what CXX names; SimulationError where that is not on this machine."""
    name = os.environ.get("CXX", "g++")
    path = shutil.which(name)
    if path is None:
        raise SimulationError(
            f"executing the generated code needs a C++17 compiler, and {name!r} is not on this machine: "
            "install it (Debian and Ubuntu: apt install g++), or name another one in CXX"
        )
    return str(Path(path).absolute())


def ap_int_folder() -> Path:
    """Where ap_int.h is: SYSTOLIC_AP_TYPES, XILINX_HLS/include, or the copy in the hls4ml package."""
    candidates = [
        Path(os.environ[name]) / sub
        for name, sub in (("SYSTOLIC_AP_TYPES", "."), ("XILINX_HLS", "include"))
        if name in os.environ
    ]
    spec = importlib.util.find_spec("hls4ml")
    if spec is not None and spec.submodule_search_locations:
        candidates.append(Path(spec.submodule_search_locations[0]) / "templates/vivado/ap_types")
    for candidate in candidates:
        if (candidate / "ap_int.h").is_file():
            return candidate.resolve()
    raise SimulationError(
        "--ap-int needs the vendor's ap_int.h, which was not found: pip install --no-deps hls4ml, "
        "or set SYSTOLIC_AP_TYPES to the folder that holds it"
    )


def command_key(command: list[str]) -> str:
    """Of the flags; which compiler it is makes no difference."""
    return hashlib.sha256("\0".join(command[1:]).encode()).hexdigest()[:8]


def compile_to(command: list[str], library: Path, folder: Path | None = None, tell: Progress = _silent) -> None:
    """Beside its place with the compiler's own files, then renamed: a library is whole or not there.

    command: as for the compiler, all units in one call, objects among them; each unit is compiled by itself, so that
    ``tell`` can count them.
    """
    units = [argument for argument in command if argument.endswith(".cpp")]
    objects = [argument for argument in command if argument.endswith(".o")]
    options = [argument for argument in command if not argument.endswith((".cpp", ".o"))]
    with beside(library.absolute()) as work:
        for number, unit in enumerate(units):
            tell(f"compiling {Path(unit).name}, {number / len(units):.0%}")
            objects.append(str(work / f"{number}.o"))
            _compile([*options, "-c", unit, "-o", objects[-1]], folder, work)
        output = work / library.name
        _compile([*options, *objects, "-o", str(output)], folder, work)
        output.rename(library)


def _compile(command: list[str], folder: Path | None, work: Path) -> None:
    """In ``folder``; the compiler's own files go into ``work``."""
    try:
        compiled = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "TMPDIR": str(work)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SimulationError(
            f"the compiler did not finish in {TIMEOUT_SECONDS} s; is the machine overloaded?"
        ) from error
    if compiled.returncode != 0:
        first = "\n".join(line for line in compiled.stderr.splitlines() if "error" in line)[:2000]
        raise SimulationError(f"the generated code does not compile ({command[0]}):\n{first or compiled.stderr[:2000]}")
