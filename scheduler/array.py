"""The systolic array: its geometry and buffers as one frozen value, legality as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from boards.errors import ScheduleError

PIXEL_LANES = 4
"""Lanes of one input pixel: up to 4 channels, so that a window of pixels fills a word."""

PACK_CHAIN = {"DSP48E2": 8, "DSP48E1": 4}
"""Packed products summed before the two fields are taken apart (bound proven in the tests)."""

PACK_SHIFT = {"DSP48E2": 18, "DSP48E1": 17}
"""Where the second product starts: the widest for which the packed weight fits the DSP's wide port."""


@dataclass(frozen=True)
class Array:
    """M rows × N columns × L lanes, and what surrounds them.

    save_rows: rows of one position that the Saver requantises a cycle (× columns requantisers).
    row_depth: words of ``lanes`` values in each of the ``rows`` row-buffer banks.
    weight_depth: steps (columns × lanes weights each) in the weight buffer.
    kept_depth: rows' sums that wait for their pool partner, [channel tile][column].
    chunk: columns that the Saver arranges before it writes a row piece.
    channel_tiles: requantisers kept for one pass, in tiles of ``columns`` channels.
    """

    rows: int
    columns: int
    lanes: int
    save_rows: int = 2
    map_ports: int = 2
    weight_ports: int = 2
    row_depth: int = 2048
    weight_depth: int = 4096
    kept_depth: int = 1024
    chunk: int = 64
    channel_tiles: int = 128
    dsp: str = "DSP48E2"

    @property
    def macs_per_cycle(self) -> int:
        return self.rows * self.columns * self.lanes

    @property
    def mac_dsps(self) -> int:
        """DSPs that multiply: two output channels share one."""
        return self.macs_per_cycle // 2

    @property
    def requantise_dsps(self) -> int:
        """DSPs of the requantisers: a 32 × 16 bit product takes two (estimate: 27 + 5 bits of the sum)."""
        return 2 * self.save_rows * self.columns

    @property
    def dsps(self) -> int:
        return self.mac_dsps + self.requantise_dsps

    @property
    def pack_chain(self) -> int:
        return min(PACK_CHAIN[self.dsp], self.lanes)

    @property
    def tile_blocks(self) -> int:
        """Channel blocks (of ``lanes``) that one channel tile fills."""
        return self.columns // self.lanes

    def __str__(self) -> str:
        return f"{self.rows}×{self.columns}×{self.lanes}"


@dataclass(frozen=True)
class Rule:
    sentence: str
    holds: Callable[[Array], bool]


def _power_of_two(value: int) -> bool:
    return value & (value - 1) == 0


RULES = (
    Rule(
        "every number of the array is at least 1",
        lambda a: all(getattr(a, f.name) >= 1 for f in fields(a) if f.name != "dsp"),
    ),
    Rule("rows is at least 2, so that a pool finds two rows in a tile", lambda a: a.rows >= 2),
    Rule("columns is even, because two output channels share a DSP", lambda a: a.columns % 2 == 0),
    Rule(
        "columns is a multiple of lanes, so that a channel tile fills whole words of the output map",
        lambda a: a.columns % a.lanes == 0,
    ),
    Rule(
        f"lanes is a power of two of at least {PIXEL_LANES} and at most 64 (an AXI word of 512 bits)",
        lambda a: PIXEL_LANES <= a.lanes <= 64 and _power_of_two(a.lanes),
    ),
    Rule(
        "map_ports is 1, 2 or 4 and not more than rows",
        lambda a: a.map_ports in (1, 2, 4) and a.map_ports <= a.rows,
    ),
    Rule(
        "weight_ports is 1, 2 or 4 and divides columns",
        lambda a: a.weight_ports in (1, 2, 4) and a.columns % a.weight_ports == 0,
    ),
    Rule(
        "save_rows is a power of two and not more than rows",
        lambda a: _power_of_two(a.save_rows) and a.save_rows <= a.rows,
    ),
    Rule("row_depth is even, because a bank is two interleaved halves", lambda a: a.row_depth % 2 == 0),
    Rule("dsp is DSP48E2 or DSP48E1", lambda a: a.dsp in PACK_CHAIN),
)


def check(array: Array) -> Array:
    """The array itself, or ScheduleError with the sentence of every rule it breaks."""
    broken = [rule.sentence for rule in RULES if not rule.holds(array)]
    if broken:
        raise ScheduleError(f"the array {array} is not legal: " + "; ".join(broken))
    return array
