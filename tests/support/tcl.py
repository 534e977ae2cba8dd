"""Runs of generated Tcl under tclsh, with stubs that record every command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from hls_templates.vendor.files import rtl_vendor_files, vendor_files
from hls_templates.vendor.values import VendorValues

Call = list[str]
STUBS = Path(__file__).with_name("vendor_stubs.tcl")
MET, MISSED, WORSE, HOLD, PLACE = (
    Path(__file__).with_name("vendor") / f"texts/impl_{name}.log"
    for name in ("met", "missed", "worse", "hold", "place")
)
"""Logs of an implementation by Vivado, with the values and messages of public ones."""


@dataclass(frozen=True)
class Ran:
    rc: int
    out: str
    calls: tuple[Call, ...]

    def named(self, name: str) -> list[Call]:
        return [call[1:] for call in self.calls if call[0] == name]

    def one(self, name: str) -> Call:
        (call,) = self.named(name)
        return call


def run_tcl(folder: Path, script: str, text: str, *arguments: str, **settings: str) -> Ran:
    """Run ``script`` with the content ``text`` in ``folder`` with the stubs."""
    tclsh = shutil.which("tclsh")
    if tclsh is None:
        pytest.skip("no tclsh on this machine: apt install tcl")
    folder.mkdir(parents=True, exist_ok=True)
    calls = folder / "calls"
    calls.unlink(missing_ok=True)
    (folder / script).write_text(text, "utf-8")
    done = subprocess.run(
        [tclsh, str(STUBS), str(calls), str(folder / script), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "STUB_LOGS": str(MET), **settings},
    )
    lines = calls.read_text("utf-8").splitlines() if calls.is_file() else []
    return Ran(done.returncode, done.stdout + done.stderr, tuple(line.split("\x1f") for line in lines))


def vivado(folder: Path, of: VendorValues, *arguments: str, **settings: str) -> Ran:
    """Run build_vivado.tcl after run_hls.tcl has written an IP."""
    ip = folder / "hls/solution/impl/ip/component.xml"
    ip.parent.mkdir(parents=True, exist_ok=True)
    ip.write_text("<component/>")
    return run_tcl(folder, "build_vivado.tcl", vendor_files(of)["build_vivado.tcl"], *arguments, **settings)


def packager(folder: Path, of: VendorValues, **settings: str) -> Ran:
    """Run package_ip.tcl with the sources and constraints that it names. Missing files are created."""
    files = rtl_vendor_files(of)
    for name, text in {
        **dict.fromkeys(of.sources, ""),
        **{name: files[name] for name in files if name.endswith(".xdc")},
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / name).exists():
            (folder / name).write_text(text)
    return run_tcl(folder, "package_ip.tcl", files["package_ip.tcl"], **settings)


def rtl_vivado(folder: Path, of: VendorValues, *arguments: str, **settings: str) -> Ran:
    """Run build_vivado.tcl of a SystemVerilog engine after package_ip.tcl has written an IP."""
    (folder / "ip").mkdir(parents=True, exist_ok=True)
    (folder / "ip/component.xml").write_text("<component/>")
    texts = rtl_vendor_files(of)
    if "floorplan.xdc" in texts:
        (folder / "floorplan.xdc").write_text(texts["floorplan.xdc"])
    return run_tcl(folder, "build_vivado.tcl", texts["build_vivado.tcl"], *arguments, **settings)


def hls(folder: Path, of: VendorValues, *arguments: str, **settings: str) -> Ran:
    """Run run_hls.tcl."""
    return run_tcl(folder, "run_hls.tcl", vendor_files(of)["run_hls.tcl"], *arguments, **settings)


def dictionary(words: str) -> dict[str, str]:
    """Return a Tcl dict of simple words."""
    found = re.findall(r"(\S+)\s+(?:\{([^{}]*)\}|(\S+))", words)
    return {key: braced or plain for key, braced, plain in found}


def interfaces(ran: Ran) -> dict[str, str]:
    """Return the interface pin that each pin is connected to, in both directions."""
    wires = [(a, b) for a, b in ran.named("connect_bd_intf_net")]
    return {**dict(wires), **{b: a for a, b in wires}}


def option(call: Call, name: str) -> str:
    return call[call.index(name) + 1]
