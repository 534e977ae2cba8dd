"""The program of a schedule: everything that DDR holds before a frame starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError
from scheduler.systolic.array import Array
from scheduler.systolic.formats import check_format
from scheduler.systolic.program.images import Bytes, requantiser_image, weight_image
from scheduler.systolic.program.maps import MapRegion, place_maps
from scheduler.systolic.program.passes import PASS_WORDS, Pass, pass_fields, program_fields
from scheduler.systolic.schedule import SystolicSchedule

PACKED = frozenset({"limits", "added_offset", "added_shift", "added_limits"})
"""Words of a pass that are bits of several numbers, or of a longer one."""

GREATEST = (1 << 31) - 1
"""The engine counts and addresses with 32 bits and a sign."""


@dataclass(frozen=True, eq=False)
class Program:
    """words: uint32 [passes, words of a pass]. weights: one image a port, bytes [port words, bytes of a port word].
    requantisers: uint32 [channels, 4] (bias, multiplier | negative << 16, shift, 0). maps_words: of all maps together.
    maps: node index → its region. pass_layer: pass → index of its layer.
    """

    words: npt.NDArray[np.uint32]
    weights: tuple[Bytes, ...]
    requantisers: npt.NDArray[np.uint32]
    maps_words: int
    maps: dict[int, MapRegion]
    pass_layer: tuple[int, ...]

    def last_pass(self, layer: int) -> int:
        """The pass after which the layer's map is whole."""
        return max(index for index, owner in enumerate(self.pass_layer) if owner == layer)


def emit(schedule: SystolicSchedule) -> Program:
    """Return the program of a schedule.

    Raises RangeError if a sum does not fit the array's 32-bit accumulators, or a number of a pass the engine's
    counters; SeveralFaultsError if values do not fit the lanes.
    """
    network, array = schedule.network, schedule.array
    check_format(network, [scheduled.layer for scheduled in schedule.layers], array)
    maps, maps_words = place_maps(schedule)
    names = program_fields(array)
    rows: list[list[int]] = []
    pass_layer: list[int] = []
    weights, requantisers = [], []
    weights_base = requantiser_base = first_step = 0
    for index, scheduled in enumerate(schedule.layers):
        image = weight_image(scheduled.layer, array)
        channels = requantiser_image(scheduled, network)
        source, target = maps[scheduled.layer.input], maps[scheduled.layer.output]
        addition = scheduled.layer.added
        for frame, tile in product(range(scheduled.layer.repeats), scheduled.tiling.columns.tiles):
            read, written = source.from_frame(frame), target.from_frame(frame)
            added = maps[addition.other_node].from_frame(frame) if addition else None
            bases = (weights_base, requantiser_base, first_step)
            fields = pass_fields(Pass(network, scheduled, tile, read, written, added, *bases))
            rows.append(_row(fields, names, scheduled.layer.name))
            # The weight buffer is a ring: each pass goes on behind what the one before has loaded.
            first_step = (first_step + fields["tile_loads"] * fields["steps"]) % array.weight_depth
            pass_layer.append(index)
        weights.append(image)
        requantisers.append(channels)
        weights_base += image.shape[0] // (array.weight_ports * array.weight_words)
        requantiser_base += channels.shape[0]
    words = np.zeros((len(rows), max(PASS_WORDS, len(names))), np.uint32)
    words[:, : len(names)] = np.array(rows, np.int64).astype(np.uint32)
    ports = _deal(np.concatenate(weights), array)
    return Program(words, ports, np.concatenate(requantisers), maps_words, maps, tuple(pass_layer))


def _row(fields: Mapping[str, int], names: Sequence[str], layer: str) -> list[int]:
    """The numbers of a pass in their order."""
    for name in names:
        if name not in PACKED and not -GREATEST <= fields[name] <= GREATEST:
            raise RangeError(
                f"{name} of a pass, which the engine counts with 32 bits,",
                fields[name],
                -GREATEST,
                GREATEST,
                where=layer,
                remedy="take an array of more PEs, or a smaller layer",
            )
    return [fields[name] for name in names]


def _deal(image: Bytes, array: Array) -> tuple[Bytes, ...]:
    """``weight_words`` words to each port in turn, so that the ports together give one step after the other."""
    width = array.weight_words * array.word_bytes
    dealt = image.reshape(-1, array.weight_ports, width)
    return tuple(np.ascontiguousarray(dealt[:, port]) for port in range(array.weight_ports))
