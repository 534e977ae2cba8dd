"""The AXI modules with independent models: cocotbext-axi's memory and master, driven by cocotb, under Verilator.

One channel pauses at random, or all channels do, or READY follows VALID. rules.py checks every cycle. Some variants of
the modules have a fault. Each fault must be found by the sentence of the rule that it breaks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.support.rtl.axi.modules import MASTERS, REGISTERS, files
from tests.support.rtl.axi.simulator import compiled, complaints
from tests.support.shared_builds import locked

pytestmark = pytest.mark.proof

REASON = "AXI against cocotbext-axi needs cocotb: pip install 'systolic-cnn[proof]'"


@pytest.fixture(scope="session")
def simulator(verilated: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the simulator with all variants, built once for all workers."""
    for package in ("cocotb_tools.runner", "cocotbext.axi"):
        pytest.importorskip(package, reason=REASON)
    if pytest.importorskip("find_libpython", reason=REASON).find_libpython() is None:
        pytest.skip("cocotb needs Python as a shared library, which this Python does not have")
    key = hashlib.sha256("".join(f"{name}{text}" for name, text in sorted(files().items())).encode()).hexdigest()
    base = tmp_path_factory.getbasetemp()
    beside = base.parent if base.name.startswith("popen-") else base
    folder = Path(os.environ.get("SYSTOLIC_TEST_BUILDS", beside)) / f"axi-{key[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock")):
        compiled(folder)
    return folder


CHANNELS = ("none", "aw", "w", "b", "ar", "r", "all")


@pytest.mark.parametrize("variant", ["narrow", "wide"])
def test_masters_with_pauses_keep_protocol_and_words(simulator: Path, tmp_path: Path, variant: str) -> None:
    told = complaints(simulator, tmp_path, "masters_bench", [variant], [*CHANNELS, "asked"])
    assert len(told) == len(CHANNELS) + 1
    assert {name: complaint for name, complaint in told.items() if complaint} == {}


def test_registers_with_pauses_equal_vitis_hls(simulator: Path, tmp_path: Path) -> None:
    told = complaints(simulator, tmp_path, "registers_bench", ["registers"], CHANNELS)
    assert len(told) == 4 * len(CHANNELS)
    assert {name: complaint for name, complaint in told.items() if complaint} == {}


TOLD = {
    **{
        "page": "no burst crosses 4 KB",
        "left": "a burst has at most 64 beats",
        "longer": "a burst has at most 64 beats",
    },
    **{"greedy": "at most 4 reads are on their way", "deaf": "at most 4 reads are on their way"},
    **{"shy": "ARVALID stays until it is taken", "hurried": "ARVALID stays until it is taken"},
    **{"full": "words were read in", "waits": "0 of 988 words were read in"},
    **{"drops": "WVALID stays until it is taken", "late": "W: the payload stays until it is taken"},
    **{"early": "WLAST with the last beat, and no other", "blind": "idle only where every burst is answered"},
    **{"forgets": "the writer comes to its end", "halves": "every word is where it belongs, and only there"},
    **{"mumbles": "BVALID stays until it is taken", "blinks": "RVALID stays until it is taken"},
    **{"overtakes": "R: the payload stays until it is taken", "swallows": "every access is answered"},
    **{"stutters": "a start is one cycle long", "whole": "a register takes the strobed bytes"},
    **{"misses": "an end is reported once", "sets": "a 0 leaves it"},
    **{"rings": "the line rings where both enables are on"},
    **{"stops": "it starts again by itself"},
}
"""The sentence that finds each variant with a fault."""


def untold(told: Mapping[str, str], variants: Iterable[str]) -> dict[str, list[str]]:
    """Return the faults that were not found by their sentence, with the sentences that were reported instead."""
    said = {variant: [text for name, text in told.items() if f"variant={variant}/" in name] for variant in variants}
    return {variant: texts for variant, texts in said.items() if not any(TOLD[variant] in text for text in texts)}


def test_masters_with_faults_are_found(simulator: Path, tmp_path: Path) -> None:
    faults = [name for name, masters in MASTERS.items() if masters.fault.module and name != "waits"]
    assert untold(complaints(simulator, tmp_path, "masters_bench", faults, ["all"]), faults) == {}


def test_master_waiting_for_ready_is_found(simulator: Path, tmp_path: Path) -> None:
    """Check that the master stops only if READY follows VALID."""
    told = complaints(simulator, tmp_path, "masters_bench", ["waits"], ["all", "asked"])
    assert [complaint for name, complaint in told.items() if "paused=all" in name] == [""]
    assert untold(told, ["waits"]) == {}


def test_registers_with_faults_are_found(simulator: Path, tmp_path: Path) -> None:
    faults = [name for name, fault in REGISTERS.items() if fault.module]
    assert untold(complaints(simulator, tmp_path, "registers_bench", faults, ["all"]), faults) == {}
