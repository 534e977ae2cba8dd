"""The simulation library, compiled from the generated sources once per variant and stored in the design's folder."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from boards.errors import DamagedFileError, FileAccessError, MissingToolError, UnsupportedError
from boards.progress import Progress, silent
from host.contract.simulation_library import library_folder, sources, sources_key
from host.whole_file import staging_folder, sweep
from systolic.execution.compiler import compile_to, compiler
from systolic.execution.verilate import FLAGS as VERILATED
from systolic.execution.verilate import WAVE_FLAGS, is_rtl, verilate
from systolic.execution.verilate import command as verilated_command
from systolic.execution.waves import Recording, without_signals

L = TypeVar("L")


@dataclass(frozen=True)
class Variant:
    """The options with which a design's C++ or SystemVerilog is compiled to a simulation library.

    Attributes:
        ap_int: Use the vendor's integer types and packed products instead of native ones.
        trace: Record the cycle of each FIFO and DDR access.
        sanitize: Check addresses and undefined behaviour; the process must preload libasan.
        waves: The signals of an engine in SystemVerilog that are recorded.
        quick: Optimise less, for a library that executes one image only.
    """

    ap_int: bool = False
    trace: bool = False
    sanitize: bool = False
    waves: Recording | None = None
    quick: bool = False

    @property
    def name(self) -> str:
        """The name of the variant in messages and in the library's file name."""
        parts = ["ap_int" if self.ap_int else "native", "trace" * self.trace, "sanitize" * self.sanitize]
        parts += ["waves"] if self.waves else []
        return "-".join(part for part in parts if part)


def build(folder: Path, variant: Variant = Variant(), progress: Progress = silent) -> Path:
    """Return the path of a design's simulation library. Compile it only if the sources or the options changed.

    Raises:
        FileAccessError: The folder is not a generated design.
        UnsupportedError: The design's engine has no such variant.
        MissingToolError: The compiler or the ap_int headers are not installed.
        ToolError: The compiler failed.
    """
    if is_rtl(folder):
        return _build_rtl(folder, variant, progress)
    if variant.waves is not None:
        raise without_signals(folder)
    if not (folder / "src" / "top.cpp").is_file():
        raise FileAccessError(
            str(folder),
            "does not contain a generated design (src/top.cpp is missing)",
            "folder",
            remedy="run systolic generate first",
        )
    command = _command(folder, variant)
    # The host computes only the first key, by which it finds a library of these sources.
    library = library_folder(folder) / f"{variant.name}-{sources_key(sources(folder))}-{command_key(command)}.so"
    if not library.is_file():
        progress(f"compiling ({variant.name})")
        compile_to(command, library, folder, progress)
    else:
        sweep(library.absolute())
    return library


def built(load: Callable[[Path], L], folder: Path, variant: Variant = Variant(), progress: Progress = silent) -> L:
    """Build the simulation library and return ``load(path)``. If loading fails, build it again, once.

    Raises:
        SystolicError: An error of ``build`` or of ``load``.
    """
    library = build(folder, variant, progress)
    try:
        return load(library)
    except DamagedFileError:
        library.unlink(missing_ok=True)  # another process may have removed it already
        return load(build(folder, variant, progress))


def _build_rtl(folder: Path, variant: Variant, progress: Progress) -> Path:
    """Build the library of an engine in SystemVerilog with Verilator.

    Raises:
        UnsupportedError: The variant exists for engines in C++ only.
        SystolicError: An error of ``verilate`` or of ``compile_to``.
    """
    if variant.trace:
        raise UnsupportedError(
            f"tracing {folder}",
            "its engine is in SystemVerilog, whose cycles are counted and not traced",
            remedy="count them with systolic simulate --cycles, or with Design.counted in Python",
        )
    if replace(variant, waves=None, quick=False) != Variant():
        raise UnsupportedError(
            f"a {variant.name} build of {folder}",
            "its engine is in SystemVerilog, and this build exists for engines in C++ only",
            remedy="remove the option",
        )
    waves = variant.waves is not None
    key = command_key(["", *(WAVE_FLAGS if waves else VERILATED)])
    library = library_folder(folder) / f"{variant.name}-{sources_key(sources(folder))}-{key}.so"
    if library.is_file():
        sweep(library.absolute())
        return library
    with staging_folder(library.with_suffix(".verilated").absolute()) as work:
        progress("verilating" + " with waves" * waves)
        verilate(folder, work / "verilated", waves=waves)
        harness = (folder / "simulation/simulate.cpp").absolute()
        compile_to(verilated_command(work / "verilated", harness, waves), library, None, progress)
    return library


def _command(folder: Path, variant: Variant) -> list[str]:
    """Return the command that compiles a design's C++ to a library; it must run in ``folder``.

    Its paths are relative, so that the library of a folder that was moved has the same key.
    """
    # -O3 takes 1.7 times as long to compile, and its code does not run faster.
    flags = (
        ["-Og" if variant.quick else "-O2", "-march=native"]
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


def ap_int_folder() -> Path:
    """Return the folder with the vendor's ap_int.h: SYSTOLIC_AP_TYPES, XILINX_HLS/include, or hls4ml's copy.

    Raises:
        MissingToolError: None of them has the header.
    """
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
    raise MissingToolError(
        "the vendor's ap_int.h",
        "compile with --ap-int",
        remedy="pip install --no-deps hls4ml, or set SYSTOLIC_AP_TYPES to the header's folder",
    )


def command_key(command: list[str]) -> str:
    """Return a digest of the compiler's arguments for the library's file name; the compiler's name is left out."""
    return hashlib.sha256("\0".join(command[1:]).encode()).hexdigest()[:8]
