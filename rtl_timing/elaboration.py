"""Elaborate SystemVerilog with Yosys, and cut the hierarchy into distinct modules."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtl_timing.yosys import read, run

PRIMITIVES = ("DSP48E2",)
"""Modules of the sources that stand for a primitive of the part. Their own text is for simulation only."""


@dataclass(frozen=True)
class Unit:
    """A distinct elaborated SystemVerilog module, which may have several instances in the design.

    Attributes:
        name: The unit's name.
        module: The module's name.
        body: Its RTLIL, in which instances have the names of their units.
        paths: The hierarchical paths of its instances.
    """

    name: str
    module: str
    body: str
    paths: tuple[str, ...]


def elaborated(sources: Iterable[Path], top: str) -> str:
    """Return the RTLIL (Yosys's text format) of every module instance below a top module.

    Args:
        sources: The SystemVerilog files, packages first.
        top: The name of the top module.

    Raises:
        MissingToolError: Yosys is not installed.
        ToolError: The sources cannot be read.
    """
    options = " ".join(["--keep-hierarchy", *(f"--blackboxed-module {name}" for name in PRIMITIVES)])
    with tempfile.TemporaryDirectory() as work:
        run([read(sources, top, Path(work), options), f"write_rtlil {work}/all.il"])
        return Path(work, "all.il").read_text("utf-8")


def units(text: str, top: str) -> tuple[Unit, ...]:
    """Return the distinct modules in an RTLIL text, instantiated modules before the modules that contain them.

    Modules that differ only in their place in the sources are one unit. The last unit is the top module.
    """
    bodies = {match[1]: match[2] for match in re.finditer(r"^module \\(\S+)\n(.*?)^end$", text, re.M | re.S)}
    bodies = {name: body for name, body in bodies.items() if name not in PRIMITIVES}
    named: dict[str, str] = {}  # module of an instance → its unit
    by_digest: dict[str, tuple[str, str, list[str]]] = {}  # digest → name, body, paths

    def visit(instance: str) -> str:
        if instance not in named:
            body = re.sub(
                r"^( *cell )\\(\S+) ",
                lambda match: f"{match[1]}\\{visit(match[2])} " if match[2] in bodies else match[0],
                bodies[instance],
                flags=re.M,
            )
            module, _, path = instance.partition("$")
            digest = hashlib.sha256(f"{module} {_without_names(body)}".encode()).hexdigest()
            fresh = f"{module}__{sum(digests[0].startswith(f'{module}__') for digests in by_digest.values())}"
            unit = by_digest.setdefault(digest, (fresh, body, []))
            unit[2].append(path)
            named[instance] = unit[0]
        return named[instance]

    visit(top)
    return tuple(Unit(name, name.rpartition("__")[0], body, tuple(paths)) for name, body, paths in by_digest.values())


def _without_names(body: str) -> str:
    """Return a module's RTLIL without source locations, and with generated numbers from 0, for comparing modules.

    Attributes that select primitives stay.
    """
    plain = re.sub(r"^\s*attribute (?!\\(?:ram_style|use_dsp) ).*\n", "", body, flags=re.M)
    numbers: dict[str, str] = {}
    return re.sub(r"(?<=\$)\d+", lambda match: numbers.setdefault(match[0], str(len(numbers))), plain)


def rtlil(batch: Sequence[Unit], bodies: Mapping[str, str], top: str) -> str:
    """Return one RTLIL text with some units to synthesise together, each kept as a module below a module ``top``.

    Args:
        batch: The units to synthesise.
        bodies: The RTLIL of every unit by its name. Units outside the batch that it instantiates become black boxes.
        top: The name of a module that instantiates each unit of the batch.
    """
    batch_names = {unit.name for unit in batch}
    instantiated = {name for unit in batch for name in re.findall(r"^ *cell \\(\S+) ", unit.body, re.M)}
    outside = sorted((instantiated & bodies.keys()) - batch_names)
    ports = {name: re.findall(r"^  wire .*\b(?:input|output) \d.*\n", bodies[name], re.M) for name in outside}
    return "".join(
        [
            *(f"attribute \\keep_hierarchy 1\nmodule \\{unit.name}\n{unit.body}end\n" for unit in batch),
            *(f"attribute \\blackbox 1\nmodule \\{name}\n{''.join(lines)}end\n" for name, lines in ports.items()),
            f"attribute \\top 1\nmodule \\{top}\n",
            *(f"  attribute \\keep 1\n  cell \\{unit.name} \\{unit.name}_of_batch\n  end\n" for unit in batch),
            "end\n",
        ]
    )
