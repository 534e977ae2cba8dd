"""Blocks between valid and ready, proved for all inputs by Yosys' induction, and blocks with a fault, refuted.

What holds is said in proofs/*.sv, which are bound into the blocks. It holds for ever: in the first cycles after a
reset, and in any cycle after so many in which it held. Data are narrow and FIFOs shallow, as the parameters below say;
every number of words, every delay and every order of valid and ready is covered. A refutation is a trace from the reset
that ends in what must not be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from rtl_templates.sources import fixed_modules, geometry_package
from systolic.execution import yosys
from tests.rtl_templates.bench import NUMBERS, values

PROOFS = Path(__file__).parent / "proofs"
MOST_CYCLES = 20
"""Of a trace, or of a step of induction."""


@dataclass(frozen=True)
class Block:
    """A module, what it instantiates, its parameters, and the bind of a pipeline."""

    top: str
    parts: tuple[str, ...] = ()
    parameters: str = ""
    pipeline: str = ""

    def files(self, change: tuple[str, str] = ("", "")) -> dict[str, str]:
        """Name → text of all that Yosys reads; what ``change`` names is replaced in the module itself."""
        texts = {f"{name}.sv": fixed_modules()[f"{name}.sv"] for name in (self.top, *self.parts)}
        if change[0]:
            assert texts[f"{self.top}.sv"].count(change[0]) == 1, f"{self.top} has {change[0]} once"
            texts[f"{self.top}.sv"] = texts[f"{self.top}.sv"].replace(*change)
        # The proofs look into memories, which Yosys allows where no primitive is asked for.
        texts = {name: re.sub(r"\(\* ram_style = [^*]*\*\)", "", text) for name, text in texts.items()}
        numbers = {**NUMBERS, "ROWS": 2, "SAVE_ROWS": 1, "MAP_PRODUCTS": 1}
        proofs = {f"{name}_proof.sv": (PROOFS / f"{name}_proof.sv").read_text() for name in self._proved()}
        bound = {"bound.sv": self.pipeline} if self.pipeline else {}
        return {"systolic_geometry.sv": geometry_package(values(numbers)), **texts, **proofs, **bound}

    def _proved(self) -> tuple[str, ...]:
        own = {self.top, *self.parts} & {path.name.removesuffix("_proof.sv") for path in PROOFS.glob("*.sv")}
        return (*sorted(own), *(["pipeline"] if self.pipeline else []))

    @property
    def options(self) -> str:
        """Of a FIFO alone the producer is assumed; in a pipeline it is proved, and only words are counted."""
        return f"-D PRODUCER={'assert -D COUNTS_ALONE' if self.pipeline else 'assume'} {self.parameters}"


PIPELINE = """bind {module} pipeline_proof #(.LATENCY({latency})) proof (
    .clk, .reset, .took({took}), .gave({gave}_valid && {gave}_ready), .valid({inside}valid), .held(8'({fifo}.count)),
    .asked({fifo}.proof.asked), .running({running}), .ready(group_ready));
"""
BLOCKS = {
    "FIFO of one word": Block("fifo", (), "-G WIDTH=3 -G DEPTH=1"),
    "FIFO": Block("fifo", (), "-G WIDTH=3 -G DEPTH=5"),
    "FIFO with slack": Block("fifo", (), "-G WIDTH=3 -G DEPTH=7 -G SLACK=3"),
    "bursts": Block("axi_bursts", (), "-G BYTES=16 -G LENGTH=64"),
    "short bursts": Block("axi_bursts", (), "-G BYTES=4 -G LENGTH=16"),
    "read": Block("axi_read", ("axi_bursts", "fifo"), "-G BYTES=1 -G OUTSTANDING=2 -G DEPTH=3"),
    "write": Block("axi_write", ("axi_bursts", "fifo"), "-G BYTES=2 -G OUTSTANDING=2"),
    "multiply": Block(
        "multiply",
        ("fifo",),
        pipeline=PIPELINE.format(
            **{"module": "multiply", "latency": 3, "took": "group_valid && group_ready", "gave": "product"},
            **{"inside": "some.", "fifo": "some.multiplied", "running": "1'b1"},
        ),
    ),
    "requantise": Block(
        "requantise",
        ("fifo", "sdp_ram"),
        pipeline=PIPELINE.format(
            **{"module": "requantise", "latency": "LATENCY", "took": "taken", "gave": "result"},
            **{"inside": "", "fifo": "results", "running": "state == RUN"},
        ),
    ),
}

FAULTS = [
    ("FIFO", "free == LAST", "free == LAST - 1"),  # a place is left out
    ("FIFO", "count < ROOM", "count <= ROOM"),  # a word too many
    ("FIFO", "out_data = queue[first]", "out_data = queue[free]"),  # another word
    ("FIFO", "queue[free] <= in_data", "queue[free] <= '0"),  # other data
    ("FIFO", "if (given) queue", "if (in_valid) queue"),  # written without room
    ("FIFO with slack", "DEPTH - SLACK)", "DEPTH - SLACK + 1)"),  # room promised that is not there
    ("bursts", "if (page < beats) beats = page;", ""),  # across a page
    ("bursts", "left <= left - beats", "left <= left - beats - 1"),  # a word is left out
    ("bursts", "busy <= left != beats", "busy <= 1'b1"),  # no end
    ("read", "r_ready && r_last", "r_last"),  # an answer that waits is counted twice
    ("read", "ar_valid = burst_valid && room", "ar_valid = burst_valid"),  # more than may be on their way
    ("read", ".burst_ready(requested)", ".burst_ready(ar_ready)"),  # a burst that nobody asked for
    ("write", "w_last = beat == length", "w_last = beat + 1'b1 == length"),  # WLAST a beat early
    ("write", "idle = open == '0 &&", "idle ="),  # does not wait for answers
    ("write", ".burst_ready(requested)", ".burst_ready(aw_ready)"),
    ("multiply", ".SLACK(LATENCY)", ".SLACK(LATENCY - 1)"),  # no room for what is under way
    ("multiply", "group_valid && group_ready}", "group_valid}"),  # taken twice
    ("requantise", ".SLACK(LATENCY)", ".SLACK(LATENCY - 2)"),
    ("requantise", "taken = group_valid && group_ready", "taken = group_valid && state == RUN"),
]


def induction(block: Block, work: Path, change: tuple[str, str] = ("", "")) -> str:
    """What Yosys says of a block."""
    pytest.importorskip("pyosys", reason="induction needs Yosys: pip install 'systolic-cnn[proof]'")
    files = block.files(change)
    for name, text in files.items():
        (work / name).write_text(text)
    return yosys.run(
        [
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
            f"sat -tempinduct -prove-asserts -set-assumes -maxsteps {MOST_CYCLES} t:$assert t:$assume %u %ci*",
        ]
    )


@pytest.mark.parametrize("name", BLOCKS)
def test_no_word_is_lost_doubled_or_overtaken(name: str, tmp_path: Path) -> None:
    said = induction(BLOCKS[name], tmp_path)
    assert "Induction step proven: SUCCESS!" in said
    assert said.count("Import proof for assert") >= 10, "there is something to prove"


@pytest.mark.parametrize(("name", "right", "wrong"), FAULTS)
def test_a_fault_is_refuted(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    said = induction(BLOCKS[name], tmp_path, (right, wrong))
    assert "proof finished - model found for base case: FAIL!" in said
