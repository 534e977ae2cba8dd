"""Test the traced cycles of a generated design against the lower bounds of its layers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.board import load
from boards.errors import MissingValueError
from systolic.styles.systolic.measure import cycle_report, trace_design
from systolic.styles.systolic.simulate import SystolicDesign, open_design
from systolic.trace.report import board_memory
from systolic.trace.solver import Trace
from tests.support.errors import raises


@pytest.fixture(scope="module")
def folder(tiny_design: Path) -> SystolicDesign:
    """Return the small compiled design."""
    return open_design(tiny_design)


@pytest.fixture(scope="module")
def trace(folder: SystolicDesign) -> Trace:
    """Return the design's trace on a picture of one colour."""
    return trace_design(folder, np.full((3, 28, 36), 77, np.uint8))


def test_board_memory_has_the_rate_of_the_board(folder: SystolicDesign) -> None:
    memory = board_memory(folder)
    ddr = load("pynq-z2").ddr
    assert (memory.peak_gbps, memory.efficiency) == (ddr.peak_gbps, ddr.measured_share)
    assert board_memory(folder, 0.5, 10.0).peak_gbps == 10.0
    assert board_memory(folder, 0.5).efficiency == 0.5


def test_cycle_report_has_at_least_the_compute_cycles(folder: SystolicDesign, trace: Trace) -> None:
    report = cycle_report(folder, trace, board_memory(folder))
    assert [layer.name for layer in report.layers] == ["conv1", "conv2"]
    for layer, described in zip(report.layers, folder.manifest.layers, strict=True):
        assert layer.cycles > described.compute_cycles
        assert 0 < layer.efficiency < 1
    assert sum(layer.cycles for layer in report.layers) == report.cycles_per_frame
    assert report.frames_per_second == pytest.approx(report.clock_mhz * 1e6 / report.cycles_per_frame)
    macs = 8 * 27 * 28 * 36 + 16 * 8 * 14 * 18
    assert report.dsp_efficiency == pytest.approx(macs / (2 * report.dsp * report.cycles_per_frame))


def test_cycles_do_not_depend_on_the_picture(folder: SystolicDesign, trace: Trace) -> None:
    other = trace_design(folder, np.random.default_rng(0).integers(0, 256, (3, 28, 36), np.uint8))
    memory = board_memory(folder)
    assert cycle_report(folder, other, memory).cycles_per_frame == cycle_report(folder, trace, memory).cycles_per_frame


def test_cycle_report_with_slower_memory_needs_no_new_trace(folder: SystolicDesign, trace: Trace) -> None:
    fast, slow = (cycle_report(folder, trace, board_memory(folder, None, peak)) for peak in (20.0, 0.2))
    assert slow.cycles_per_frame > 1.5 * fast.cycles_per_frame
    assert "DDR" in slow._repr_html_() or "memory" in slow._repr_html_()


def test_cycle_report_with_slower_clock_takes_no_more_cycles(folder: SystolicDesign, trace: Trace) -> None:
    memory = board_memory(folder)
    assert (
        cycle_report(folder, trace, memory, 50).cycles_per_frame
        <= cycle_report(folder, trace, memory, 250).cycles_per_frame
    )
    assert cycle_report(folder, trace, memory, 50).clock_mhz == 50


def test_declared_fifos_cost_few_cycles(folder: SystolicDesign, trace: Trace) -> None:
    memory = board_memory(folder)
    advice = trace.advise(memory, folder.manifest.clock_mhz)
    assert set(advice.declared) >= {"rows", "weights", "sums", "results"}
    assert advice.best_cycles <= cycle_report(folder, trace, memory).cycles_per_frame
    assert advice.declared_cycles is not None
    assert advice.best_cycles <= advice.declared_cycles < 1.005 * advice.best_cycles
    shallow = dict(advice.curve)[2]
    assert shallow is not None
    assert shallow > 2 * advice.declared_cycles


def test_cycle_report_with_untraced_pass_raises_missing_value_error(folder: SystolicDesign, trace: Trace) -> None:
    layers = tuple(replace(layer, last_pass=layer.last_pass + 7) for layer in folder.manifest.layers)
    damaged = replace(folder, manifest=replace(folder.manifest, layers=layers))
    with raises(MissingValueError, what="pass 2 of conv1", where="the trace"):
        cycle_report(damaged, trace, board_memory(folder))
