"""Test the data in DDR before and after a frame: packed and unpacked maps, in every format."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from cnn.quantized import QuantizedNetwork
from host.contract.systolic import SystolicRegion
from host.systolic.layout import unpack_map
from scheduler.systolic.array import Array
from scheduler.systolic.program.emit import emit
from scheduler.systolic.schedule import SystolicSchedule
from systolic.styles.systolic.generation.generate import manifest_region
from systolic.styles.systolic.generation.vector import make_vector, pack_map, pack_pixels
from tests.support.cases import cases
from tests.support.quantised import Builder
from tests.support.schedules import first_fit


def schedule_of(bits: int) -> SystolicSchedule:
    """Return a schedule with a map of ``bits`` bits and an output of INT16."""
    network = Builder(3, 7, 9, bits=bits).conv(11, 3).conv(13, 1, wide=True).network()
    return first_fit(network, Array(5, 16, 8, row_depth=1024, weight_depth=256, kept_depth=64, bits=bits))


def integers_of(network: QuantizedNetwork, node: int, seed: int) -> npt.NDArray[Any]:
    """Return random integers of the node's datatype, with both ends of its range."""
    shape, datatype = network.nodes[node].shape, network.nodes[node].type.datatype
    size = (shape.channels, shape.height, shape.width)
    drawn = np.random.default_rng(seed).integers(datatype.low, datatype.high + 1, size)
    drawn.flat[:2] = datatype.low, datatype.high
    return drawn.astype(datatype.carrier)


@cases("bits", [4, 8, 16])
@given(seed=st.integers(0, 99))
def test_unpack_map_inverts_pack_map(bits: int, seed: int) -> None:
    schedule = schedule_of(bits)
    program, network = emit(schedule), schedule.network
    for node in (1, 2):
        integers = integers_of(network, node, seed)
        data = pack_map(program.maps[node], schedule.array, integers)
        region = SystolicRegion(**manifest_region(schedule, program, node))
        assert data.size == region.bytes
        found = unpack_map(region, schedule.array.lanes, data)
        assert found.dtype == integers.dtype
        assert np.array_equal(found, integers)


@cases("bits, widths", [(4, (4, 16)), (8, (8, 16)), (16, (16, 16))])
def test_map_words_hold_only_padded_channels(bits: int, widths: tuple[int, int]) -> None:
    """Expect channels padded to whole words and no other padding, so at 4 bits two values per byte."""
    schedule = schedule_of(bits)
    program = emit(schedule)
    for node, wide in zip((1, 2), widths, strict=True):
        region = program.maps[node]
        assert region.words * schedule.array.word_bytes == 7 * 9 * 16 * wide // 8
        assert region.value_bits == wide


@cases("bits", [4, 8, 16])
def test_pixels_are_bytes_in_every_format(bits: int) -> None:
    schedule = schedule_of(bits)
    region = emit(schedule).maps[0]
    picture = np.random.default_rng(1).integers(0, 256, (3, 7, 9), np.uint8)
    data = pack_pixels(region, schedule.array, picture).view(np.uint8).reshape(7, -1)
    assert data.shape[1] == region.row_words * schedule.array.word_bytes >= 9 * 4
    assert np.array_equal(data[:, :36].reshape(7, 9, 4)[:, :, :3].transpose(2, 0, 1), picture)
    assert not data[:, 3:36:4].any()


@cases("bits", [4, 8, 16])
def test_vector_holds_picture_and_results(bits: int) -> None:
    schedule = schedule_of(bits)
    program = emit(schedule)
    picture = np.random.default_rng(2).integers(0, 256, (3, 7, 9), np.uint8)
    vector = make_vector(schedule, program, picture)
    arena, region = np.frombuffer(vector.files["data/maps.bin"], np.int8), program.maps[0]
    assert arena.size == program.maps_words * schedule.array.word_bytes
    word = schedule.array.word_bytes
    held = arena[region.base * word : (region.base + region.words) * word]
    assert np.array_equal(held, pack_pixels(region, schedule.array, picture))
    assert len(vector.files["data/expected.bin"]) == program.maps[2].words * word
