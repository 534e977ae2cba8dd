"""Modules of the engine as Yosys' induction takes them: with small numbers, and with what must hold bound into them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from rtl_templates.render import render
from rtl_templates.sources import Argument, fixed_modules, geometry_package
from rtl_timing import yosys
from tests.support.rtl.bench import NUMBERS, values

PROOFS = Path(__file__).resolve().parents[2] / "rtl_templates" / "proofs"
MAX_CYCLES = 32
"""The most cycles of a trace and of an induction step."""


def numbers_of(bits: int) -> dict[str, str]:
    """Return the replacement that narrows number_t, the type of counters and of a pass's numbers, from 32 bits."""
    return {"[31:0] number_t": f"[{bits - 1}:0] number_t"}


CLOCKED = "always_ff @(posedge clk)"
REGISTERS = {
    "title": "registers",
    "address_bits": 6,
    "pointers": [Argument("maps", "pointer", 0x10)],
    "scalars": [Argument("first", "scalar", 0x1C)],
    "outputs": [Argument("current", "output", 0x24)],
}
"""Registers of control_slave, one of each kind."""
COME_ALONG = ("fifo", "axi_bursts")
"""Modules whose proofs are bound into every instance, because their assumptions are about the instance's producer."""


@cache
def _modules() -> dict[str, str]:
    """Name → text of what a block may have: the fixed modules, and the registers."""
    fixed = {name.removesuffix(".sv"): text for name, text in fixed_modules().items()}
    return {**fixed, "control_slave": render("control_slave.sv.j2", REGISTERS)}


@dataclass(frozen=True)
class Block:
    """A module, what it instantiates, its parameters, the numbers of its geometry, and the bind of a pipeline.

    narrowed: types of the package → the same with fewer bits. late: cycles from a FIFO's in_ready to the word that is
    given for it; empty where the producer knows otherwise that there is a place. proof: the file of what is proved,
    where it is not named like the module. doubled: a step is an edge of dsp_clk, and of clk too where that is 1.
    asserts: how many there are at least."""

    top: str
    parts: tuple[str, ...] = ()
    parameters: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)
    narrowed: Mapping[str, str] = field(default_factory=dict)
    pipeline: str = ""
    late: str = "SLACK"
    proof: str = ""
    doubled: bool = False
    asserts: int = 10

    def files(self, change: tuple[str, str] = ("", "")) -> dict[str, str]:
        """Name → text of all that Yosys reads; what ``change`` names is replaced in the first module that has it."""
        texts = {f"{name}.sv": _modules()[name] for name in (self.top, *self.parts)}
        if change[0]:
            changed = next((name for name, text in texts.items() if change[0] in text), f"{self.top}.sv")
            assert texts[changed].count(change[0]) == 1, f"{changed} has {change[0]} once"
            texts[changed] = texts[changed].replace(*change)
        # The proofs look into memories, which Yosys allows where no primitive is asked for.
        texts = {name: re.sub(r"\(\* ram_style = [^*]*\*\)", "", text) for name, text in texts.items()}
        if self.doubled:  # a proof has no clocks: every register steps, and registers of clk only at its edge
            texts = {name: text.replace(CLOCKED, f"{CLOCKED} if (clk)") for name, text in texts.items()}
        proofs = {f"{name}_proof.sv": (PROOFS / f"{name}_proof.sv").read_text() for name in self._proved()}
        bound = {"bound.sv": self.pipeline} if self.pipeline else {}
        return {"systolic_geometry.sv": self._package(), **texts, **proofs, **bound}

    def _package(self) -> str:
        package = geometry_package(values({**NUMBERS, "ROWS": 2, "SAVE_ROWS": 1, "MAP_PRODUCTS": 1, **self.numbers}))
        for wide, narrow in self.narrowed.items():
            assert package.count(wide) == 1, f"systolic_geometry has {wide} once"
            package = package.replace(wide, narrow)
        return package

    def _proved(self) -> tuple[str, ...]:
        known = {path.name.removesuffix("_proof.sv") for path in PROOFS.glob("*.sv")}
        beside = () if self.proof else (part for part in self.parts if part in COME_ALONG)
        own = {self.proof or self.top, *beside} & known
        return (*sorted(own), *(["pipeline"] if self.pipeline else []))

    @property
    def options(self) -> str:
        """A FIFO's producer is assumed where none is there; where one is, it is proved, and words are only counted."""
        alone = self.top == "fifo" or self.top.startswith("axi_")
        producer = "assume" if alone else "assert -D COUNTS_ALONE"
        late = f"-D LATE={self.late}" if self.late else "-D PLACE_KNOWN"
        return f"-D PRODUCER={producer} {late} {self.parameters}"


def passes(block: Block, work: Path, change: tuple[str, str] = ("", "")) -> list[str]:
    """Return Yosys' passes that prove a block, or search for a counterexample if ``change`` plants a fault."""
    files = block.files(change)
    for name, text in files.items():
        (work / name).write_text(text)
    mode = "-tempinduct-baseonly" if change[0] else "-tempinduct"
    return [
        yosys.read([work / name for name in files], block.top, work, block.options),
        f"hierarchy -top {block.top}",
        "proc -noopt",
        "flatten",
        "setundef -undriven -anyseq",  # what nothing drives is free in every cycle
        f"prep -top {block.top} -flatten",
        "async2sync",
        "chformal -lower",
        "memory_map",
        "opt -full",
        "wreduce",  # narrow operations whose other operand is a 32-bit constant
        "opt -full",
        f"sat {mode} -prove-asserts -set-assumes -maxsteps {MAX_CYCLES} t:$assert t:$assume %u %ci*",
    ]


def induction(block: Block, work: Path, change: tuple[str, str] = ("", "")) -> str:
    """Return Yosys' log of the proof of a block, or of a search for a counterexample if ``change`` plants a fault."""
    pytest.importorskip("pyosys", reason="induction needs Yosys: pip install 'systolic-cnn[proof]'")
    return yosys.run(passes(block, work, change))
