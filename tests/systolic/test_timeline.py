"""Test the timeline figure of a trace: lanes of processes, names of regions, marks, and errors."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from boards.errors import ChoiceError, FileAccessError, StateError
from systolic.styles.systolic.measure import SystolicReport
from systolic.trace import timeline
from systolic.trace.solver import MemoryTiming, TraceTiming
from systolic.trace.timing import Lane, ProcessTiming, RegionTiming
from tests.support.errors import raises
from tests.support.trace_kernels import traced


@pytest.fixture(scope="module")
def library(traced_kernels: Path) -> ctypes.CDLL:
    """Return the traced kernels as a loaded library."""
    return ctypes.CDLL(str(traced_kernels))


def solved(library: ctypes.CDLL, name: str, *arguments: object) -> TraceTiming:
    """Run a kernel and return its solved timing with a timeline."""
    return traced(library, name, *arguments).solve(MemoryTiming(), 300.0, timeline=True)


def cycles_in_lane(region: RegionTiming, number: int) -> np.ndarray:
    """Return the cycles of each state in a process's lane: busy, and waiting for input, space and memory."""
    width, parts = timeline.shares(region.processes[number], region.cycles)
    widths = np.minimum(width, region.cycles - np.arange(parts.shape[1]) * width)
    return np.asarray((parts * widths).sum(axis=1).round())


# test_cycles.py derives these cycles: the relay waits 1 + 11 of 26 cycles, the second time from 6 to 16.
def test_timeline_lane_shows_waits(library: ctypes.CDLL) -> None:
    (region,) = solved(library, "run_deep").regions
    width, parts = timeline.shares(region.processes[1], region.cycles)
    assert width == 1
    assert np.flatnonzero(parts[1]).tolist() == [1, *range(6, 17)]
    assert parts[:, 26].tolist() == [0, 0, 0, 0]  # the process has ended


def test_timeline_bins_grow_with_the_region_and_lose_no_cycle(library: ctypes.CDLL) -> None:
    (region,) = solved(library, "run_chain", 5000, 7).regions
    assert region.cycles > 30_000
    for number, process in enumerate(region.processes):
        told = [process.busy, process.wait_input, process.wait_space, process.wait_memory]
        assert cycles_in_lane(region, number).tolist() == told
        assert len(timeline.shares(process, region.cycles)[1][0]) <= 512


def test_timeline_figure_has_the_colours_of_states(library: ctypes.CDLL, tmp_path: Path) -> None:
    timeline.save(timeline.draw(solved(library, "run_chain", 5000, 7)), tmp_path / "chain.png")
    pixels = {pixel for _, pixel in Image.open(tmp_path / "chain.png").convert("RGB").getcolors(1 << 24) or []}
    assert (0x56, 0xB4, 0xE9) in pixels
    assert (0xE6, 0x9F, 0x00) in pixels


def test_timeline_region_is_chosen_by_its_label(library: ctypes.CDLL) -> None:
    timing = solved(library, "run_top")
    whole = timeline.draw(timing, names={1: "conv1"}).axes[0]
    assert [text.get_text() for text in whole.texts] == ["conv1", "conv1"]
    assert [tick.get_text() for tick in whole.get_yticklabels()] == ["source", "sink", "top"]
    assert len(timeline.draw(timing, [1]).axes[0].get_yticklabels()) == 2
    with raises(ChoiceError, what="the label of a region", got=9, choices=[-1, 1, -1, 1]):
        timeline.draw(timing, [1, 9])


def test_timeline_of_a_layer_has_all_its_passes_and_its_own_title() -> None:
    """Draw a layer of two passes, such as two column tiles, after a layer of one pass."""
    lane = Lane(100, (0,), (0,), (0,))
    process = ProcessTiming("load", 100, 0, 0, 0, 0, 100, lane)
    regions = tuple(RegionTiming(label, False, 100, 4, (process,), (), ()) for label in range(3))
    layers: Any = (
        SimpleNamespace(name="conv1", first_pass=0, last_pass=0),
        SimpleNamespace(name="conv2", first_pass=1, last_pass=2),
    )
    report = SystolicReport(
        network="net",
        clock_mhz=200,
        dsp=8,
        macs_per_cycle=16,
        layers=(),
        timing=TraceTiming(200, MemoryTiming(), regions),
        passes=layers,
    )
    (frame,) = report.timeline().axes
    assert [text.get_text() for text in frame.texts] == ["conv1", "conv2, pass 1 of 2", "conv2, pass 2 of 2"]
    (layer,) = report.timeline("conv2").axes
    assert [text.get_text() for text in layer.texts] == ["conv2, pass 1 of 2", "conv2, pass 2 of 2"]
    assert layer.get_title(loc="left") == "net, layer conv2: 208 of 312 cycles traced at 200 MHz (target)"
    assert layer.get_xlim() == (0, 208)


def test_timeline_rotates_or_omits_names_of_narrow_regions(library: ctypes.CDLL) -> None:
    timing = solved(library, "run_top")
    region = next(region for region in timing.regions if not region.top)
    widths = {1: 9_000, 2: 700, 3: 200, 4: 50}
    regions = tuple(replace(region, label=label, cycles=width, overhead=0) for label, width in widths.items())
    names = {1: "wide", 2: "level", 3: "narrow", 4: "thin"}
    axes = timeline.draw(replace(timing, regions=regions), names=names).axes[0]
    turned = {text.get_text(): text.get_rotation() for text in axes.texts}
    assert turned == {"wide": 0, "level": 0, "narrow": 90}


def test_timeline_marks_ends_of_frames(library: ctypes.CDLL, tmp_path: Path) -> None:
    timing = solved(library, "run_chain", 500, 7)
    (axes,) = timeline.draw(timing, marks={20: "frame 1", 35: "frame 2"}).axes
    assert [(text.get_text(), text.get_position()[0]) for text in axes.texts] == [("frame 1 ", 20), ("frame 2 ", 35)]
    dashed = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]  # type: ignore[index]
    assert dashed == [20, 35]
    with raises(FileAccessError, path=str(tmp_path / "no" / "t.png"), remedy="choose another FILE.png"):
        timeline.save(timeline.draw(timing), tmp_path / "no" / "t.png")
    with raises(FileAccessError, path=str(tmp_path / "t.doc")):
        timeline.save(timeline.draw(timing), tmp_path / "t.doc")


def test_timeline_without_lanes_raises_state_error(library: ctypes.CDLL) -> None:
    timing = traced(library, "run_deep").solve()
    with raises(StateError, subject="process 'source'", state="has no lane"):
        timeline.draw(timing)
