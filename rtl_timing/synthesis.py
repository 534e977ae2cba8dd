"""Synthesise modules with Yosys for an UltraScale+ part, and read the primitives of each module."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boards.progress import Progress, silent
from rtl_timing.elaboration import Unit, rtlil
from rtl_timing.yosys import run

BATCH_BYTES = 100_000
"""Bytes of RTLIL synthesised together, because starting the synthesis passes takes seconds."""

Bit = int | str
"""A net of a module: its number, or a constant "0", "1" or "x"."""


@dataclass(frozen=True)
class Cell:
    """A cell of a synthesised module: an FPGA primitive, or an instance of another module.

    Attributes:
        name: The cell's name in its module.
        kind: The name of the primitive or module.
        source: The line of SystemVerilog that the cell comes from, such as ``pool.sv:91``, or "" if Yosys lost it.
        parameters: The parameters of a primitive.
        pins: The nets of each pin, least significant bit first.
        outputs: The names of the pins that drive nets.
    """

    name: str
    kind: str
    source: str
    parameters: Mapping[str, str]
    pins: Mapping[str, tuple[Bit, ...]]
    outputs: frozenset[str]


@dataclass(frozen=True)
class Module:
    """A module that Yosys has mapped to FPGA primitives.

    Attributes:
        name: The module's name.
        cells: Its primitives and instances.
        inputs: The names of its input ports.
        ports: The nets of each port.
        names: A name of the sources for each net that has one, with the line that declares it.
    """

    name: str
    cells: tuple[Cell, ...]
    inputs: frozenset[str]
    ports: Mapping[str, tuple[Bit, ...]]
    names: Mapping[int, tuple[str, str]]


def synthesised(
    all_units: Sequence[Unit], family: str, progress: Progress = silent, asked_for: Sequence[Unit] | None = None
) -> dict[str, Module]:
    """Synthesise modules with Yosys; return each, mapped to FPGA primitives, by its unit's name.

    A unit is synthesised without the modules that it instantiates, so constants do not cross the borders of modules.

    Args:
        all_units: The units of a design.
        family: The name that ``synth_xilinx`` has for the part's family, such as ``xcup``.
        progress: Receives the progress.
        asked_for: The units to synthesise. None means all.

    Raises:
        MissingToolError: Yosys is not installed.
        ToolError: A pass failed.
    """
    wanted = all_units if asked_for is None else asked_for
    bodies = {unit.name: unit.body for unit in all_units}
    batches = list(_batches(wanted))
    found: dict[str, Module] = {}
    threads = ThreadPoolExecutor(os.cpu_count() or 1)  # each thread waits for a process of Yosys
    try:
        for batch, modules in zip(batches, threads.map(lambda one: _mapped(one, bodies, family), batches), strict=True):
            found |= modules
            progress(f"synthesised {len(found)} of {len(wanted)} modules, the last of them {batch[-1].module}")
    finally:
        threads.shutdown(cancel_futures=True)  # a user who stops the command waits for the running batches only
    return found


def _mapped(batch: Sequence[Unit], bodies: Mapping[str, str], family: str) -> dict[str, Module]:
    with tempfile.TemporaryDirectory() as work:
        Path(work, "batch.il").write_text(rtlil(batch, bodies, "batch"), "utf-8")
        passes = [f"synth_xilinx -family {family} -top batch -noiopad -noclkbuf", f"write_json {work}/batch.json"]
        run([f"read_rtlil {work}/batch.il", *passes])
        modules = json.loads(Path(work, "batch.json").read_text("utf-8"))["modules"]
    return {unit.name: module_of(unit.name, modules[unit.name]) for unit in batch}


def _batches(all_units: Sequence[Unit]) -> Iterator[list[Unit]]:
    batch: list[Unit] = []
    for unit in all_units:
        if batch and sum(len(member.body) for member in (*batch, unit)) > BATCH_BYTES:
            yield batch
            batch = []
        batch.append(unit)
    if batch:
        yield batch


def module_of(name: str, stored: Mapping[str, Any]) -> Module:
    """Return a synthesised module, read from the JSON object that Yosys writes for it."""
    cells = tuple(
        Cell(
            cell_name,
            cell["type"],
            _line(cell["attributes"].get("src", "")),
            cell["parameters"],
            {pin: tuple(bits) for pin, bits in cell["connections"].items()},
            frozenset(pin for pin, direction in cell.get("port_directions", {}).items() if direction == "output"),
        )
        for cell_name, cell in stored["cells"].items()
    )
    names: dict[int, tuple[str, str]] = {}
    for net_name, net in stored["netnames"].items():
        if net["hide_name"] == 0:
            for index, bit in enumerate(net["bits"]):
                if isinstance(bit, int):
                    label = net_name if len(net["bits"]) == 1 else f"{net_name}[{index}]"
                    names.setdefault(bit, (label, _line(net["attributes"].get("src", ""))))
    ports = {port: tuple(value["bits"]) for port, value in stored["ports"].items()}
    inputs = frozenset(port for port, value in stored["ports"].items() if value["direction"] == "input")
    return Module(name, cells, inputs, ports, names)


def _line(source: str) -> str:
    """Return file name and line of the first place in a ``src`` attribute, such as ``pool.sv:91``."""
    place = source.partition("|")[0]
    path, _, position = place.rpartition(":")
    return f"{path.rpartition('/')[2]}:{position.partition('.')[0]}" if path and "/share/xilinx/" not in path else ""
