"""Test the DDR bandwidth over time: the bins hold every traced byte, and no bin exceeds the rate of the memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.errors import MissingValueError
from host.contract.manifest import read_manifest
from host.contract.streaming import Packet, StreamingManifest
from systolic.model import sample_pictures
from systolic.styles.streaming.dma import with_dma
from systolic.styles.streaming.measure import FRAMES
from systolic.trace.bandwidth import bandwidth
from systolic.trace.timing import BundleTiming, Lane, MemoryTiming, ProcessTiming, RegionTiming, TraceTiming
from tests.support.command_line import call
from tests.support.errors import raises
from tests.support.golden_designs import streaming_design

PICTURE = sample_pictures()[0]


def region(cycles: int, *bundles: BundleTiming) -> RegionTiming:
    """Return the timing of a region with the given length in cycles and the given DDR ports."""
    return RegionTiming(0, False, cycles, 0, (), (), bundles)


def test_bandwidth_bins_hold_the_bytes_moved_in_them() -> None:
    """Use a read of 100 cycles, traced in four bins, and then a write of 100 cycles, traced in two bins.

    One byte per cycle at 1,000 MHz is 1 GB/s.
    """
    read = BundleTiming(0, False, 320, 0, 1, 32, (160, 0, 160, 0))
    write = BundleTiming(1, True, 100, 0, 1, 64, (64, 36))
    told = bandwidth(TraceTiming(1000, MemoryTiming(8.0, 0.5), (region(100, read), region(100, write))), 4)
    assert told.cycles.tolist() == [50, 100, 150, 200]
    assert told.read_gbps.sum() * 50 == pytest.approx(320)
    assert told.read_gbps[:2] == pytest.approx([160 / 50, 160 / 50])
    assert told.written_gbps.tolist() == pytest.approx([0, 0, 1, 1])
    assert told.average_gbps == pytest.approx(420 / 200)
    assert told.sustained_gbps == 4.0


def test_bandwidth_bin_never_exceeds_the_memory_rate() -> None:
    """Start 250 bytes in the first 50 of 200 cycles, of which the memory moves only 200. The next bin takes 50."""
    read = BundleTiming(0, False, 150, 0, 1, 50, (150, 0, 0, 0))
    write = BundleTiming(1, True, 110, 0, 1, 50, (100, 0, 10, 0))
    told = bandwidth(TraceTiming(1000, MemoryTiming(8.0, 0.5), (region(200, read, write),)), 4)
    assert told.busiest_gbps == told.sustained_gbps == 4.0
    assert (told.read_gbps * 50).tolist() == pytest.approx([120, 30, 0, 0])
    assert (told.written_gbps * 50).tolist() == pytest.approx([80, 20, 10, 0])


def test_bandwidth_says_that_the_memory_is_slower_than_the_dma() -> None:
    """Move 1 byte per cycle at 1,000 MHz, which is 1 GB/s, over a memory that sustains 2 or 0.5 GB/s."""
    moved = BundleTiming(0, False, 100, 100, 1, 100, (100,), "DMA")
    enough, slow = (
        bandwidth(TraceTiming(1000, MemoryTiming(peak, 0.5), (region(100, moved),))).text() for peak in (4.0, 1.0)
    )
    assert "expect at most" not in enough
    assert slow.endswith("which is slower here: expect at most 50% of these frames/s")


def test_bandwidth_lists_bytes_per_port() -> None:
    read = BundleTiming(0, False, 320, 0, 1, 32, (160, 0, 160, 0))
    write = BundleTiming(1, True, 100, 0, 1, 64, (64, 36), "DMA")
    told = bandwidth(TraceTiming(1000, MemoryTiming(8.0, 0.5), (region(100, read), region(100, read, write))), 4)
    assert told.values()["ports"] == [
        {"port": "port 0", "direction": "read", "bytes": 640, "gbps": 3.2},
        {"port": "DMA", "direction": "write", "bytes": 100, "gbps": 0.5},
    ]
    assert told.average_gbps == pytest.approx(3.7)
    assert "DMA       write" in told.text()


def test_with_dma_moves_packets_while_the_dma_works() -> None:
    """Read 2 packets of 10 bytes, each in 3 beats of 4 bytes, so 24 bytes, and write 16 bytes. The read DMA works in 6
    of the first 8 cycles, and the write DMA works in 2 of the last 4 cycles."""
    beats = ProcessTiming("dma_read", 6, 0, 2, 0, 12, 6, Lane(4, (0,) * 5, (1, 1, 0, 0, 0), (0,) * 5))
    out = ProcessTiming("dma_write", 2, 18, 0, 0, 0, 2, Lane(4, (4, 4, 4, 4, 2), (0,) * 5, (0,) * 5))
    bare = RegionTiming(0, False, 20, 0, (beats, out), (), ())
    whole = with_dma(bare, Packet(bytes=10, beat=4), Packet(bytes=8, beat=8), 2)
    read, write = whole.bundles
    assert (read.bytes, read.busy, read.moved) == (24, 6, (12, 12, 0, 0, 0))
    assert (write.bytes, write.busy, write.write, write.moved) == (16, 2, True, (0, 0, 0, 0, 16))
    told = bandwidth(TraceTiming(1000, MemoryTiming(80.0, 0.5), (whole,)), 5)
    assert told.read_gbps.tolist() == pytest.approx([3, 3, 0, 0, 0])
    assert told.written_gbps.tolist() == pytest.approx([0, 0, 0, 0, 4])
    with raises(MissingValueError, what="the process dma_write"):
        with_dma(replace(bare, processes=(beats,)), Packet(bytes=10, beat=4), Packet(bytes=8, beat=8), 2)


@pytest.mark.engine
def test_simulate_bandwidth_of_pipeline_counts_frame_bytes(tmp_path: Path) -> None:
    folder, shown = tmp_path / "design", tmp_path / "ddr.png"
    made = call("generate", *streaming_design(tmp_path), "-o", folder)
    assert made.code == 0, made.error
    done = call("simulate", folder, "--picture", PICTURE, "--cycles", "--bandwidth", shown, "--json", "-")
    assert done.code == 0, done.error
    told, manifest = done.json["bandwidth"], read_manifest(folder)
    assert isinstance(manifest, StreamingManifest)
    packets = {"read": manifest.packet_in.beat_bytes, "write": manifest.packet_out.beat_bytes}
    assert [(port["port"], port["direction"]) for port in told["ports"]] == [("DMA", "read"), ("DMA", "write")]
    (frames,) = {port["bytes"] / packets[port["direction"]] for port in told["ports"]}
    assert frames in FRAMES
    widths = np.diff([0.0, *told["bin_ends"]]) / done.json["clock_mhz"] * 1e3
    for direction, rates in (("read", "read_gbps"), ("write", "written_gbps")):
        moved = (np.array(told[rates]) * widths).sum()
        assert moved == pytest.approx(frames * packets[direction], rel=0.01)
    assert told["average_gbps"] == pytest.approx(sum(port["gbps"] for port in told["ports"]), abs=2e-4)
    assert told["average_gbps"] > 0
    assert Image.open(shown).size[0] > 1000


@pytest.mark.engine
def test_simulate_bandwidth_reports_and_draws(tiny_design: Path, tmp_path: Path) -> None:
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
