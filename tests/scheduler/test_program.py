"""The data in DDR: regions of maps, weights, requantisers and the words of passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boards.errors import RangeError
from cnn.datatype import DataType
from cnn.maps import Shape
from cnn.ops import Concat, QConvolution
from cnn.quantized import QNode
from cnn.requantise import Requantiser
from contract.geometry import PIXEL_BYTES
from contract.program import PASS_FIELDS, PASS_WORDS
from scheduler.systolic.array import Array
from scheduler.systolic.program.emit import emit
from scheduler.systolic.program.images import requantiser_image, weight_image
from scheduler.systolic.program.maps import place_maps
from tests.support.errors import raises
from tests.support.kinds import as_kind
from tests.support.quantised import Builder, tiny_yolo
from tests.support.schedules import first_fit

ARRAY = Array(5, 8, 8, row_depth=1024, weight_depth=1024, kept_depth=512, chunk=8, channel_tiles=16)


def test_emit_gives_one_pass_per_column_tile() -> None:
    network = Builder(3, 26, 60).conv(64, 3).conv(16, 3).network()
    schedule = first_fit(
        network, Array(5, 8, 8, row_depth=256, weight_depth=1024, kept_depth=512, chunk=8, channel_tiles=16)
    )
    program = emit(schedule)
    counts = [t.tiling.columns.count for t in schedule.layers]
    assert counts[1] > 1
    assert program.pass_layer == tuple(i for i, n in enumerate(counts) for _ in range(n))
    assert program.words.shape == (sum(counts), PASS_WORDS)
    assert program.last_pass(0) == counts[0] - 1


def branching() -> Builder:
    """Return a network that reads conv1 again after conv3, so that the region of conv1 must not be reused before."""
    build = Builder(3, 12, 12).conv(16, 3).conv(16, 3).conv(16, 3)
    build.nodes.append(QNode("back", Concat(), (1,), Shape(16, 12, 12), build.nodes[1].type, "x:1"))
    return build.conv(8, 1)


@pytest.mark.parametrize("network", [tiny_yolo(96), branching().network()], ids=["chain", "branch"])
def test_place_maps_live_maps_do_not_overlap(network: object) -> None:
    schedule = first_fit(network, Array(13, 16, 16, channel_tiles=64))  # type: ignore[arg-type]
    maps, size = place_maps(schedule)
    read_last = {t.layer.input: i for i, t in enumerate(schedule.layers)}
    for index, scheduled in enumerate(schedule.layers):
        out = maps[scheduled.layer.output]
        assert out.base + out.words <= size
        for node, region in maps.items():
            written = next((i for i, t in enumerate(schedule.layers) if t.layer.output == node), -1)
            if written < index <= read_last.get(node, len(schedule.tilings)):
                assert out.base + out.words <= region.base or region.base + region.words <= out.base


def test_place_maps_chain_needs_two_regions() -> None:
    network = tiny_yolo(96)
    maps, size = place_maps(first_fit(network, Array(13, 16, 16, channel_tiles=64)))
    largest = sorted(m.words for m in maps.values())[-2:]
    assert size <= sum(largest)


def test_weight_image_has_order_lane_column() -> None:
    # The order is (tile, ky, kx, block, lane, column). Every weight occurs once, and all other values are 0.
    network = Builder(3, 6, 6).conv(16, 1).conv(20, 3).network()
    schedule = first_fit(network, ARRAY)
    image = weight_image(schedule.layers[1].layer, ARRAY).reshape(3, 3, 3, 2, 8, 8)
    weights = schedule.layers[1].layer.weights
    for tile_number, ky, kx, block, lane, column in np.ndindex(*image.shape):
        filter_number, channel = 8 * tile_number + column, 8 * block + lane
        wanted = weights[filter_number, channel, ky, kx] if filter_number < 20 else 0
        assert image[tile_number, ky, kx, block, lane, column] == wanted


def test_weight_image_pixels_are_unrolled_over_kernel_columns() -> None:
    network = Builder(3, 6, 6).conv(8, 3).network()
    schedule = first_fit(network, ARRAY)
    image = weight_image(schedule.layers[0].layer, ARRAY).reshape(1, 3, 2, 2, PIXEL_BYTES, 8)
    weights = schedule.layers[0].layer.weights
    for ky, group, pixel, channel, column in np.ndindex(3, 2, 2, PIXEL_BYTES, 8):
        kx = 2 * group + pixel
        wanted = weights[column, channel, ky, kx] if kx < 3 and channel < 3 else 0
        assert image[0, ky, group, pixel, channel, column] == wanted


def test_weight_image_depthwise_is_diagonal() -> None:
    network = Builder(3, 6, 6).conv(8, 1).conv(0, 3, depthwise=True).network()
    schedule = first_fit(network, ARRAY)
    image = weight_image(schedule.layers[1].layer, ARRAY).reshape(3, 3, 8, 8)
    for ky, kx, lane, column in np.ndindex(*image.shape):
        wanted = schedule.layers[1].layer.weights[column, 0, ky, kx] if lane == column else 0
        assert image[ky, kx, lane, column] == wanted


def test_emit_weights_alternate_between_the_ports() -> None:
    network = Builder(3, 6, 6).conv(16, 1).conv(20, 3).network()
    schedule = first_fit(network, ARRAY)
    whole = np.concatenate([weight_image(t.layer, ARRAY) for t in schedule.layers])
    dealt = emit(schedule).weights
    assert len(dealt) == 2
    assert np.array_equal(np.stack(dealt, 1).reshape(whole.shape), whole)


def test_requantiser_image_bias_compensates_centred_pixels() -> None:
    network = Builder(3, 6, 6).conv(8, 3).network()
    scheduled = first_fit(network, ARRAY).layers[0]
    image = requantiser_image(scheduled, network)
    bias = scheduled.layer.requantiser.bias + 128 * scheduled.layer.weights.astype(np.int64).sum(axis=(1, 2, 3))
    assert np.array_equal(image[:8, 0].view(np.int32), bias)


def test_emit_sum_beyond_32_bits_is_refused() -> None:
    build = Builder(3, 6, 6).conv(8, 3)
    op = as_kind(QConvolution, build.nodes[1].op)
    old = as_kind(Requantiser, op.requantiser)
    wide = Requantiser(np.full(8, 1 << 31, np.int64), old.multiplier, old.negative, old.shift)
    changed = replace(op, requantiser=wide)
    build.nodes[1] = QNode("conv1", changed, (0,), build.shape, build.nodes[1].type, "x:1")
    with raises(RangeError, where="conv1", got=2147789312, high=(1 << 31) - 1) as caught:
        emit(first_fit(build.network(), ARRAY))
    assert "channel 7" in caught.value.what


def test_emit_word_of_a_pass_beyond_32_bits_is_refused() -> None:
    """64 · 64 steps per row tile and channel tile, 512 row tiles and 1,024 channel tiles give 2^31, one too many."""
    array = Array(4, 4, 4, row_depth=1 << 16, weight_depth=128, channel_tiles=1024)
    rows = {
        height: first_fit(Builder(3, height, 64).conv(256, 1).conv(4096, 1).network(), array) for height in (2044, 2045)
    }
    assert emit(rows[2044]).words[-1, PASS_FIELDS.index("array_steps")] == (1 << 31) - (1 << 22)
    with raises(RangeError, where="conv2", got=1 << 31, high=(1 << 31) - 1) as caught:
        emit(rows[2045])
    assert caught.value.what.startswith("array_steps ")


def test_requantiser_image_gives_bias_multipliers_and_shift() -> None:
    # Each channel has the words bias, multiplier + (negative << 16), shift and 0. 12 filters fill 12 of 16 channels.
    # The other 4 give 0, a product of 0 that is shifted by 1.
    network = Builder(3, 6, 6).conv(16, 1).conv(12, 3).network()
    scheduled = first_fit(network, ARRAY).layers[1]
    by = as_kind(Requantiser, scheduled.layer.requantiser)
    image = requantiser_image(scheduled, network).tolist()
    assert len(image) == 16
    for channel in range(12):
        bias, multiplier, negative, shift = (int(a[channel]) for a in (by.bias, by.multiplier, by.negative, by.shift))
        assert image[channel] == [bias % 2**32, multiplier + 65536 * negative, shift, 0]
    assert image[12:] == [[0, 0, 1, 0]] * 4


@pytest.mark.parametrize(("bits", "offset"), [(4, 136), (8, 128), (16, 0)])
def test_requantiser_image_bias_compensates_the_pixel_offset(bits: int, offset: int) -> None:
    network = Builder(3, 6, 6, bits=bits).conv(8, 3).network()
    scheduled = first_fit(network, replace(ARRAY, bits=bits)).layers[0]
    sums = [sum(weights.ravel().tolist()) for weights in scheduled.layer.weights]
    expected = [int(bias) + offset * total for bias, total in zip(scheduled.layer.requantiser.bias, sums, strict=True)]
    assert requantiser_image(scheduled, network)[:, 0].view(np.int32).tolist() == expected


def test_requantiser_image_largest_sum_of_32_bits_is_accepted() -> None:
    # For a map of INT8, Σ|w| · 128 + |bias| may be 2³¹ − 1, but not one more.
    build = Builder(3, 6, 6).conv(8, 1).conv(8, 3)
    op = as_kind(QConvolution, build.nodes[2].op)
    old = as_kind(Requantiser, op.requantiser)
    left = 2**31 - 1 - 128 * np.abs(op.weights[3].astype(np.int64)).sum()
    for bias, fits in ((left, True), (left + 1, False), (-left, True), (-left - 1, False)):
        changed = old.bias.copy()
        changed[3] = bias
        build.nodes[2] = replace(build.nodes[2], op=replace(op, requantiser=replace(old, bias=changed)))
        schedule = first_fit(build.network(), ARRAY)
        if fits:
            assert requantiser_image(schedule.layers[1], schedule.network)[3, 0] == bias % 2**32
        else:
            with raises(RangeError, where="conv2", got=1 << 31, high=(1 << 31) - 1) as caught:
                emit(schedule)
            assert "channel 3" in caught.value.what


def test_requantiser_image_largest_sum_of_pixels_is_accepted() -> None:
    # On arrays of 16 bits, pixels are 0…255 without an offset.
    build = Builder(3, 6, 6, bits=16).conv(8, 3)
    op = as_kind(QConvolution, build.nodes[1].op)
    old = as_kind(Requantiser, op.requantiser)
    left = 2**31 - 1 - 255 * np.abs(op.weights[2].astype(np.int64)).sum()
    for bias, fits in ((left, True), (left + 1, False)):
        changed = old.bias.copy()
        changed[2] = bias
        build.nodes[1] = replace(build.nodes[1], op=replace(op, requantiser=replace(old, bias=changed)))
        schedule = first_fit(build.network(), replace(ARRAY, bits=16))
        if fits:
            assert requantiser_image(schedule.layers[0], schedule.network)[2, 0] == bias
        else:
            with raises(RangeError, got=1 << 31, high=(1 << 31) - 1) as caught:
                requantiser_image(schedule.layers[0], schedule.network)
            assert "channel 2" in caught.value.what


def test_place_maps_gives_the_words_and_bits_of_values() -> None:
    # A block of 12-bit values is one word on lanes of 16 bits. A block of 16-bit results is two words on lanes of 8
    # bits.
    build = Builder(3, 6, 6, bits=16)
    build.type = replace(build.type, datatype=DataType(12, True))
    maps, _ = place_maps(first_fit(build.conv(8, 3).conv(8, 1).network(), replace(ARRAY, bits=16)))
    assert [(region.pixels, region.value_words, region.value_bits) for region in maps.values()] == [
        (True, 1, 8),
        (False, 1, 16),
        (False, 1, 16),
    ]
    network = Builder(3, 6, 6).conv(8, 3).conv(8, 1, wide=True).network()
    maps, _ = place_maps(first_fit(network, ARRAY))
    assert [(region.pixels, region.value_words, region.value_bits) for region in maps.values()] == [
        (True, 1, 8),
        (False, 1, 8),
        (False, 2, 16),
    ]


@pytest.mark.parametrize("rows", [2, 3])
def test_weight_image_joined_rows_have_order_column_row(rows: int) -> None:
    # A map of ``rows`` rows and 2 columns is read as one row. The order is (kx, row of the map, block, lane, column).
    network = Builder(1, 2 * rows, 4).conv(16, 3).pool().dense(5).network()
    layer = first_fit(network, ARRAY, batch=3).layers[1].layer
    assert (layer.joined, layer.kernel) == (rows, (1, 2))
    image = weight_image(layer, ARRAY).reshape(1, 2, rows, 2, 8, 8)
    for tile, kx, row, block, lane, column in np.ndindex(*image.shape):
        wanted = layer.weights[column, 8 * block + lane, row, kx] if column < 5 else 0
        assert image[tile, kx, row, block, lane, column] == wanted


@pytest.mark.parametrize(("bits", "pixels", "lanes"), [(4, 2, 16), (8, 2, 8), (16, 2, 8)])
def test_weight_image_pixels_of_every_format(bits: int, pixels: int, lanes: int) -> None:
    # A pixel has 4 channels. On arrays of 4 bits, each has two lanes with the same weight, for its two nibbles.
    array = replace(ARRAY, bits=bits, lanes=lanes, columns=16)
    network = Builder(3, 6, 6, bits=bits).conv(16, (2, 3)).network()
    layer = first_fit(network, array).layers[0].layer
    image = weight_image(layer, array)
    twice = 2 if bits == 4 else 1
    values = unpacked(image, bits).reshape(1, 2, 2, pixels, PIXEL_BYTES, twice, 16)
    for _, ky, group, pixel, channel, nibble, column in np.ndindex(*values.shape):
        kx = pixels * group + pixel
        wanted = layer.weights[column, channel, ky, kx] if kx < 3 and channel < 3 else 0
        assert values[0, ky, group, pixel, channel, nibble, column] == wanted


def unpacked(image: np.ndarray, bits: int) -> np.ndarray:
    """Return the values in bytes, the first one in the lowest bits."""
    if bits != 4:
        return image.view(f"int{bits}")
    nibbles = np.stack([image & 15, image >> 4 & 15], axis=-1)
    return np.where(nibbles > 7, nibbles - 16, nibbles).astype(np.int8)
