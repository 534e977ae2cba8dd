"""DDR bandwidth over time: every byte that the trace moved lies in a bin, and no bin is above what the memory gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from systolic.model import sample_pictures
from systolic.trace.bandwidth import bandwidth
from systolic.trace.timing import BundleTiming, Memory, RegionTiming, Timing
from tests.support.command_line import call

PICTURE = sample_pictures()[0]


def region(cycles: int, *bundles: BundleTiming) -> RegionTiming:
    return RegionTiming(0, False, cycles, 0, (), (), bundles)


def test_bytes_fall_into_the_bins_in_which_they_moved() -> None:
    """100 cycles of a read in four bins, then 100 of a write in two; at 1000 MHz a byte a cycle is 1 GB/s."""
    read = BundleTiming(0, False, 320, 0, 1, 32, (160, 0, 160, 0))
    write = BundleTiming(1, True, 100, 0, 1, 64, (64, 36))
    told = bandwidth(Timing(1000, Memory(8.0, 0.5), (region(100, read), region(100, write))), 4)
    assert told.cycles.tolist() == [50, 100, 150, 200]
    assert told.read_gbps.sum() * 50 == pytest.approx(320)
    assert told.read_gbps[:2] == pytest.approx([160 / 50, 160 / 50])
    assert told.written_gbps.tolist() == pytest.approx([0, 0, 1, 1])
    assert told.average_gbps == pytest.approx(420 / 200)
    assert told.sustained_gbps == 4.0


def test_no_bin_has_more_than_the_memory_gives() -> None:
    """250 bytes begin in the first 50 of 200 cycles, of a memory that gives 200 in them: 50 come in the next."""
    read = BundleTiming(0, False, 150, 0, 1, 50, (150, 0, 0, 0))
    write = BundleTiming(1, True, 110, 0, 1, 50, (100, 0, 10, 0))
    told = bandwidth(Timing(1000, Memory(8.0, 0.5), (region(200, read, write),)), 4)
    assert told.busiest_gbps == told.sustained_gbps == 4.0
    assert (told.read_gbps * 50).tolist() == pytest.approx([120, 30, 0, 0])
    assert (told.written_gbps * 50).tolist() == pytest.approx([80, 20, 10, 0])


@pytest.mark.engine
def test_the_command_tells_and_draws_it(tiny_design: Path, tmp_path: Path) -> None:
    shown = tmp_path / "ddr.png"
    asked = ("simulate", tiny_design, "--picture", PICTURE, "--cycles")
    done = call(*asked, "--bandwidth", shown, "--json", "-")
    assert done.code == 0, done.error
    values = done.json
    told = values["bandwidth"]
    ends = np.array([0.0, *told["bin_ends"]])
    moved = (np.array(told["read_gbps"]) + told["written_gbps"]) * np.diff(ends) / values["clock_mhz"] * 1e3
    assert ends[-1] == pytest.approx(values["cycles_per_frame"], abs=1)
    assert moved.sum() == pytest.approx(told["average_gbps"] * ends[-1] / values["clock_mhz"] * 1e3, rel=0.01)
    assert 0 < told["average_gbps"] < told["busiest_gbps"] <= told["sustained_gbps"]
    assert Image.open(shown).size[0] > 1000
    assert "GB/s on average" in call(*asked).out
