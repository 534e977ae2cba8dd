"""The simulator: all variants under Verilator with cocotb, and the function that runs a bench."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from boards.errors import ToolError
from systolic.execution.compiler import compile_to, compiler
from systolic.execution.verilate import root, verilator
from tests.support.rtl.axi.modules import TOP, files

PREFIX = "Vtop"
"""The prefix of the generated classes that cocotb's main function expects."""
VISIBLE = f'`verilator_config\npublic_flat_rw -module "{TOP}" -var "*"\n'
"""The visible signals are the ports, so that Verilator may optimise all others."""
RUNTIME = ("verilated.cpp", "verilated_dpi.cpp", "verilated_threads.cpp", "verilated_vpi.cpp")
FLAGS = ("-O0", "-std=c++17", "-w")
"""The compiler's flags. Optimisation is off, because compilation takes longer than the run."""


def compiled(folder: Path) -> None:
    """Write and compile everything into ``folder``, unless it is compiled already."""
    program = folder / TOP
    if program.is_file():
        return
    for name, text in {**files(), "visible.vlt": VISIBLE}.items():
        (folder / name).write_text(text, "utf-8")
    read = ["visible.vlt", *sorted(files())]
    command = [
        str(verilator()),
        "--cc",
        "--Mdir",
        "cpp",
        "--prefix",
        PREFIX,
        "--top-module",
        TOP,
        "--vpi",
        "-Wno-fatal",
    ]
    done = subprocess.run(
        [*command, *read],
        cwd=folder,
        env={**os.environ, "VERILATOR_ROOT": str(root(verilator()))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ToolError("Verilator", "does not take the bench", done.stderr[:2000])
    compile_to(_command(folder), program)


def _command(folder: Path) -> list[str]:
    from cocotb_tools import config

    include, libraries = root(verilator()) / "include", Path(config.libs_dir)
    main = Path(config.share_dir) / "lib/verilator/verilator.cpp"
    units = [main, *sorted((folder / "cpp").glob("*.cpp")), *(include / name for name in RUNTIME)]
    folders = (folder / "cpp", include, include / "vltstd")
    linked = ["-Wl,--no-as-needed", f"-Wl,-rpath,{libraries}", f"-L{libraries}", "-lcocotbvpi_verilator", "-lpthread"]
    return [compiler(), *FLAGS, *(f"-I{path}" for path in folders), *map(str, units), *linked, "-latomic"]


def complaints(
    simulator: Path, work: Path, bench: str, variants: Iterable[str], paused: Iterable[str]
) -> dict[str, str]:
    """Return the error message of every test of a bench for each variant and choice of pausing channels, or ""."""
    from cocotb_tools.runner import get_runner

    results, log = work / "results.xml", work / "run.log"
    # Under pytest, the runner would end its process after a failure, which every planted fault must cause.
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)
        get_runner("verilator").test(
            test_module=f"tests.support.rtl.axi.{bench}",
            hdl_toplevel=TOP,
            hdl_toplevel_lang="verilog",
            build_dir=simulator,
            test_dir=work,
            results_xml=str(results),
            seed=1,
            extra_env={
                "AXI_VARIANTS": " ".join(variants),
                "AXI_PAUSED": " ".join(paused),
                "COCOTB_LOG_LEVEL": "WARNING",
                "PYTHONWARNINGS": "ignore",
            },
            log_file=log,
        )
    cases = list(ElementTree.parse(results).iter("testcase"))
    assert cases, log.read_text("utf-8")
    return {case.get("name", ""): _complaint(case) for case in cases}


def _complaint(case: ElementTree.Element) -> str:
    failed = [child for child in case if child.tag in ("failure", "error")]
    return " ".join(f"{child.get('error_msg') or child.get('message')}" for child in failed)
