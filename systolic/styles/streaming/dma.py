"""What the AXI DMA moves between the DDR and a pipeline's ends, in a traced region.

The pipeline's code has streams at its ends and no memory port, so that the trace itself counts no bytes for them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import MissingValueError
from host.contract.streaming import Packet
from systolic.trace.timing import BundleTiming, ProcessTiming, RegionTiming

READER, WRITER = "dma_read", "dma_write"
"""Processes of hls_templates/simulation that feed and empty a pipeline: a beat in each cycle in which they work."""

PORT = "DMA"


def with_dma(region: RegionTiming, packet_in: Packet, packet_out: Packet, frames: int) -> RegionTiming:
    """Return the region with the packets of ``frames`` frames among its bundles; MissingValueError if the trace has no
    process of the DMA."""
    number = max((bundle.bundle for bundle in region.bundles), default=-1) + 1
    packets = ((READER, packet_in), (WRITER, packet_out))
    ends = (_bundle(number, region, name, packet, frames) for name, packet in packets)
    return replace(region, bundles=(*ends, *region.bundles))


def _bundle(number: int, region: RegionTiming, name: str, packet: Packet, frames: int) -> BundleTiming:
    process = next((process for process in region.processes if process.name == name), None)
    if process is None:
        raise MissingValueError(f"the process {name}", where="the trace", remedy="generate the design again")
    total = packet.beat_bytes * frames
    return BundleTiming(
        bundle=number,
        write=name == WRITER,
        bytes=total,
        busy=total // packet.beat,
        bursts=frames,
        bin_cycles=process.lane.bin_cycles if process.lane else 1,
        moved=_moved(process, total),
        name=PORT,
    )


def _moved(process: ProcessTiming, total: int) -> tuple[int, ...]:
    """Return the bytes that move in each bin of the lane: ``total``, by the cycles in which the process works."""
    lane = process.lane
    if lane is None:
        return ()
    waited = np.add(np.add(lane.wait_input, lane.wait_space), lane.wait_memory)
    end = process.busy + process.wait_input + process.wait_space + process.wait_memory
    starts = lane.bin_cycles * np.arange(len(waited))
    worked = np.maximum(np.clip(end - starts, 0, lane.bin_cycles) - waited, 0)
    so_far = np.rint(total * np.cumsum(worked) / max(1, int(worked.sum()))).astype(np.int64)
    return tuple(np.diff(so_far, prepend=0).tolist())
