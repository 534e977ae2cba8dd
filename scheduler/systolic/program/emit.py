"""The program of a schedule, which are all data that DDR holds before a frame starts, except for the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from boards.errors import RangeError
from contract.program import MAX_INT32, complete, fields_of, names_of, words_of
from scheduler.systolic.array import Array
from scheduler.systolic.formats import check_format
from scheduler.systolic.program.images import Bytes, requantiser_image, weight_image
from scheduler.systolic.program.maps import MapRegion, place_maps
from scheduler.systolic.program.passes import Pass, primary_words
from scheduler.systolic.schedule import SystolicSchedule


@dataclass(frozen=True, eq=False)
class Program:
    """All data that a schedule needs in DDR before a frame starts, except for the image: engine words, weights,
    requantisers.

    Attributes:
        words: The control words of all passes, uint32 (passes, words per pass).
        weights: The weights per weight port, bytes (port words, bytes per port word).
        requantisers: uint32 (channels, 4): bias, multiplier | negative << 16, shift, 0. images.py describes the words
            of late offsets, and the last word of a layer's first channel.
        maps_words: Words of DDR that all feature maps together take.
        maps: The place of each node's feature map.
        pass_layer: The index of the layer per pass.
    """

    words: npt.NDArray[np.uint32]
    weights: tuple[Bytes, ...]
    requantisers: npt.NDArray[np.uint32]
    maps_words: int
    maps: dict[int, MapRegion]
    pass_layer: tuple[int, ...]

    def last_pass(self, layer: int) -> int:
        """Return the index of a layer's last pass (run of the engine), after which its output map is complete."""
        return max(index for index, owner in enumerate(self.pass_layer) if owner == layer)


def emit(schedule: SystolicSchedule) -> Program:
    """Return the data that DDR holds for a schedule before a frame starts: the engine's words, weights and
    requantisers.

    Raises:
        RangeError: A sum does not fit the array's 32-bit accumulators, or a word of a pass does not fit the engine's
            counters.
        SeveralFaultsError: Values do not fit the lanes.
    """
    network, array = schedule.network, schedule.array
    check_format(network, [scheduled.layer for scheduled in schedule.layers], array)
    maps, maps_words = place_maps(schedule)
    passes: list[dict[str, int]] = []
    pass_layer: list[int] = []
    weights, requantisers = [], []
    weights_base = requantiser_base = 0
    for index, scheduled in enumerate(schedule.layers):
        image = weight_image(scheduled.layer, array)
        channels = requantiser_image(scheduled, network)
        source, target = maps[scheduled.layer.input], maps[scheduled.layer.output]
        addition = scheduled.layer.added
        for frame, tile in product(range(scheduled.layer.repeats), scheduled.tiling.columns.tiles):
            read, written = source.from_frame(frame), target.from_frame(frame)
            added = maps[addition.other_node].from_frame(frame) if addition else None
            bases = (weights_base, requantiser_base)
            passes.append(primary_words(Pass(network, scheduled, tile, read, written, added, *bases)))
            pass_layer.append(index)
        weights.append(image)
        requantisers.append(channels)
        weights_base += image.shape[0] // (array.weight_ports * array.weight_words)
        requantiser_base += channels.shape[0]
    words = _words(passes, array, [schedule.layers[index].layer.name for index in pass_layer])
    ports = _distribute_weights(np.concatenate(weights), array)
    return Program(words, ports, np.concatenate(requantisers), maps_words, maps, tuple(pass_layer))


def _words(passes: Sequence[Mapping[str, int]], array: Array, layers: Sequence[str]) -> npt.NDArray[np.uint32]:
    """Return the control words of all passes (runs of the engine over a column tile), uint32 (passes, words per pass).

    Args:
        passes: The words of each pass that the schedule decides.
        array: The array, whose numbers the other words depend on.
        layers: The name of the layer of each pass, for the error.

    Raises:
        RangeError: A word does not fit the engine's counters.
    """
    primary = {name: np.array([words[name] for words in passes], object) for name in passes[0]}
    completed = complete(primary, array)
    numbers = np.array([np.asarray(completed[field.name], object) for field in fields_of(array)], object).T
    counted = np.array([not field.packed for field in fields_of(array)])
    beyond = np.argwhere((np.abs(numbers) > MAX_INT32) & counted)
    if len(beyond):
        number, place = beyond[0]
        raise RangeError(
            f"{names_of(array)[place]} of a pass, which the engine counts with 32 bits,",
            numbers[number, place],
            -MAX_INT32,
            MAX_INT32,
            where=layers[number],
            remedy="take an array of more PEs, or a smaller layer",
        )
    words = np.zeros((len(passes), words_of(array)), np.uint32)
    words[:, : numbers.shape[1]] = numbers.astype(np.int64).astype(np.uint32)
    return words


def _distribute_weights(image: Bytes, array: Array) -> tuple[Bytes, ...]:
    """Return the weights of each weight port. The words are dealt to the ports in turn, ``weight_words`` at a time.

    The ports together then read one step after the other.
    """
    width = array.weight_words * array.word_bytes
    distributed = image.reshape(-1, array.weight_ports, width)
    return tuple(np.ascontiguousarray(distributed[:, port]) for port in range(array.weight_ports))
