"""The DDR traffic of the AXI DMA, which is added to the timing of a traced pipeline.

The pipeline's code reads and writes packets through streams, not through memory ports. So the trace itself counts no
bytes for the packets.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boards.errors import MissingValueError
from host.contract.streaming import Packet
from systolic.trace.timing import BundleTiming, ProcessTiming, RegionTiming

READER, WRITER = "dma_read", "dma_write"
"""The processes of hls_templates/simulation that write the input packet and read the output packet.

Each transfers one beat in each cycle in which it works.
"""

PORT = "DMA"
"""The name of both bundles in reports."""


def with_dma(region: RegionTiming, packet_in: Packet, packet_out: Packet, frames: int) -> RegionTiming:
    """Return the timing ``region`` with the DMA's DDR traffic added: the input and output packets of all frames.

    Raises:
        MissingValueError: The trace has no process of the DMA.
    """
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
    """Return the bytes that a DMA process moves in each bin of time, ``total`` bytes together.

    ``total`` is divided in proportion to the cycles in which the process works, because each of them moves one beat.
    """
    lane = process.lane
    if lane is None:
        return ()
    waited = np.add(np.add(lane.wait_input, lane.wait_space), lane.wait_memory)
    end = process.busy + process.wait_input + process.wait_space + process.wait_memory
    starts = lane.bin_cycles * np.arange(len(waited))
    worked = np.maximum(np.clip(end - starts, 0, lane.bin_cycles) - waited, 0)
    so_far = np.rint(total * np.cumsum(worked) / max(1, int(worked.sum()))).astype(np.int64)
    return tuple(np.diff(so_far, prepend=0).tolist())
