"""The test vector of a design: the DDR's content before one batch, and the output maps expected after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cnn.integer_model import run_integer
from cnn.maps import Integers
from contract.geometry import PIXEL_BYTES
from hls_templates.vendor.ports import Output
from host.contract.tensors import fill_pixels
from scheduler.systolic.array import Array
from scheduler.systolic.formats import pack_values
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.program.emit import Program
from scheduler.systolic.program.maps import MapRegion
from scheduler.systolic.schedule import SystolicSchedule


@dataclass(frozen=True, eq=False)
class Vector:
    """The test vector of a design: input maps, expected output maps, and the golden integers of every layer.

    ``data/maps.bin`` is the map arena with the input pictures. ``data/expected.bin`` has the output maps, one after the
    other. ``data/layers.bin`` has the integers of every layer for the first frame, one layer after the other. They are
    little-endian and of shape (channels, height, width).

    Attributes:
        files: The content of these files, by path.
        outputs: The memory regions of the output maps, in the order of expected.bin.
    """

    files: dict[str, bytes]
    outputs: tuple[Output, ...]


def make_vector(schedule: SystolicSchedule, program: Program, picture: npt.NDArray[np.uint8]) -> Vector:
    """Return the test vector for a batch of a picture, uint8 of shape (channels, height, width).

    Frame f of a batch is the picture shifted by f columns, so that a test finds frames in the wrong place. The outputs
    are the maps that no layer reads.
    """
    array = schedule.array
    pictures = [np.roll(picture, frame, axis=2) for frame in range(schedule.batch)]
    golden = [run_integer(schedule.network, shifted) for shifted in pictures]
    arena = np.zeros(program.maps_words * array.word_bytes, np.int8)
    source = program.maps[0]
    start = source.base * array.word_bytes
    frames = np.concatenate([pack_pixels(source, array, shifted) for shifted in pictures])
    arena[start : start + source.words * array.word_bytes] = frames
    layers = list({scheduled.layer.output: scheduled.layer for scheduled in schedule.layers}.values())
    ends = _ends(layers)
    outputs, expected = [], []
    for layer in ends:
        region = program.maps[layer.output]
        outputs.append(Output(layer.name, region.base, region.words))
        for frame in golden:
            integers = frame[layer.output]
            assert integers is not None  # only nodes that the host computes have no integers
            expected.append(pack_map(region, array, integers))
    files = {
        "data/maps.bin": arena.tobytes(),
        "data/expected.bin": np.concatenate(expected).tobytes(),
        "data/layers.bin": b"".join(_layer_integers(golden[0], layer.output) for layer in layers),
    }
    return Vector(files, tuple(outputs))


def _ends(layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers whose output maps no other layer reads."""
    read = {span.node for layer in layers for span in layer.spans}
    return [layer for layer in layers if layer.output not in read]


def _layer_integers(golden: Sequence[Integers | None], node: int) -> bytes:
    integers = golden[node]
    assert integers is not None
    return np.ascontiguousarray(integers, integers.dtype.newbyteorder("<")).tobytes()


def pack_pixels(region: MapRegion, array: Array, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    """Return the bytes of the input map in DDR: the picture's rows, with PIXEL_BYTES bytes per pixel.

    Args:
        region: The memory region of the input map.
        array: The array.
        picture: The picture, uint8 of shape (channels, height, width).
    """
    rows = np.zeros((picture.shape[1], region.row_words * array.word_bytes), np.uint8)
    fill_pixels(picture, rows, PIXEL_BYTES)
    return rows.reshape(-1).view(np.int8)


def pack_map(region: MapRegion, array: Array, integers: Integers) -> npt.NDArray[np.int8]:
    """Return a map's bytes in DDR, in the order [row][block][column][lane]; lanes without a channel are 0.

    This is the inverse of ``host.systolic.layout.unpack_map``.

    Args:
        region: The memory region of the map.
        array: The array.
        integers: The map, of shape (channels, height, width).
    """
    channels, height, width = integers.shape
    padded: npt.NDArray[Any] = np.zeros((region.blocks * array.lanes, height, width), integers.dtype)
    padded[:channels] = integers
    blocks = padded.reshape(region.blocks, array.lanes, height, width).transpose(2, 0, 3, 1)
    return pack_values(np.ascontiguousarray(blocks).reshape(-1), region.value_bits)
