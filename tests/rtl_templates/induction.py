"""Modules of the engine as Yosys' induction takes them: with small numbers, and with what must hold bound into them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rtl_templates.sources import fixed_modules, geometry_package
from systolic.execution import yosys
from tests.rtl_templates.bench import NUMBERS, values

PROOFS = Path(__file__).parent / "proofs"
MOST_CYCLES = 20
"""Of a trace, or of a step of induction."""


def numbers_of(bits: int) -> dict[str, str]:
    """The package's type of the numbers of a pass and of counters, with fewer bits than 32."""
    return {"[31:0] number_t": f"[{bits - 1}:0] number_t"}


@dataclass(frozen=True)
class Block:
    """A module, what it instantiates, its parameters, the numbers of its geometry, and the bind of a pipeline.

    narrowed: types of the package → the same with fewer bits. late: cycles from a FIFO's in_ready to the word that is
    given for it; empty where the producer knows otherwise that there is a place."""

    top: str
    parts: tuple[str, ...] = ()
    parameters: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)
    narrowed: Mapping[str, str] = field(default_factory=dict)
    pipeline: str = ""
    late: str = "SLACK"

    def files(self, change: tuple[str, str] = ("", "")) -> dict[str, str]:
        """Name → text of all that Yosys reads; what ``change`` names is replaced in the module itself."""
        texts = {f"{name}.sv": fixed_modules()[f"{name}.sv"] for name in (self.top, *self.parts)}
        if change[0]:
            assert texts[f"{self.top}.sv"].count(change[0]) == 1, f"{self.top} has {change[0]} once"
            texts[f"{self.top}.sv"] = texts[f"{self.top}.sv"].replace(*change)
        # The proofs look into memories, which Yosys allows where no primitive is asked for.
        texts = {name: re.sub(r"\(\* ram_style = [^*]*\*\)", "", text) for name, text in texts.items()}
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
        own = {self.top, *self.parts} & {path.name.removesuffix("_proof.sv") for path in PROOFS.glob("*.sv")}
        return (*sorted(own), *(["pipeline"] if self.pipeline else []))

    @property
    def options(self) -> str:
        """A FIFO's producer is assumed where none is there; where one is, it is proved, and words are only counted."""
        alone = self.top == "fifo" or self.top.startswith("axi_")
        producer = "assume" if alone else "assert -D COUNTS_ALONE"
        late = f"-D LATE={self.late}" if self.late else "-D PLACE_KNOWN"
        return f"-D PRODUCER={producer} {late} {self.parameters}"


def passes(block: Block, work: Path, change: tuple[str, str] = ("", "")) -> list[str]:
    """Of Yosys: reads, flattens, and proves, or looks for a trace where there is a change."""
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
        f"sat {mode} -prove-asserts -set-assumes -maxsteps {MOST_CYCLES} t:$assert t:$assume %u %ci*",
    ]


def induction(block: Block, work: Path, change: tuple[str, str] = ("", "")) -> str:
    """What Yosys says of a block."""
    pytest.importorskip("pyosys", reason="induction needs Yosys: pip install 'systolic-cnn[proof]'")
    return yosys.run(passes(block, work, change))
