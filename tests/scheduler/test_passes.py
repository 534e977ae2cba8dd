"""Every field of some passes, computed by hand from the definitions in hls_templates/systolic/pass.h."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contract.program import PASS_FIELDS, fields_of
from scheduler.systolic.array import Array
from scheduler.systolic.program.emit import Program, emit
from scheduler.systolic.program.maps import place_maps
from scheduler.systolic.program.passes import Pass, primary_words
from scheduler.systolic.schedule import SystolicSchedule
from tests.support.arrays.passes import WEIGHTS, batched, narrow, scheduled, strided
from tests.support.quantised import Builder

STRIDED = """
pass 0
in_base=0 in_row_pitch=30 in_block_pitch=30 burst_words=30 bursts=1 row_words=30 block_words=30 in_blocks=1
in_width=60 in_height=26 in_buffer=0 in_lap=0 in_turn=1
pixel_input=1 kernel_height=3 kernel_groups=2 group_pixels=2 stride=1 advance=1 pad_top=1 pad_left=1 depthwise=0
tile_blocks=1 steps=6
out_height=26 out_width=60 row_tiles=6 channel_tiles=2 phases=1 row_strides=32 ahead=2 positions=1
slot_words=30 last_slot=60 first_loads=120 first_moves=60 overlap=1 inputs_resident=0
row_feeds=720 weight_feeds=360 array_steps=4320
weights_base=0 first_step=0 resident=1 tile_beats=24 tile_uses=12 tile_loads=2 load_beats=48
requantiser_base=0 channels=16
pool_size=2 pool_stride=2 upscale=1 save_width=30 out_base=780 out_row_pitch=60 out_block_pitch=30 out_blocks=2
value_words=1 out_buffer=0 out_turn=0 chunks=48 limits=8388480 around=0

pass 1
in_base=780 in_row_pitch=60 in_block_pitch=30 burst_words=18 bursts=2 row_words=36 block_words=18 in_blocks=2
in_width=18 in_height=13 in_buffer=0 in_lap=0 in_turn=2
pixel_input=0 kernel_height=3 kernel_groups=5 group_pixels=1 stride=2 advance=2 pad_top=2 pad_left=1 depthwise=0
tile_blocks=2 steps=30
out_height=7 out_width=8 row_tiles=2 channel_tiles=3 phases=2 row_strides=11 ahead=1 positions=1
slot_words=72 last_slot=144 first_loads=216 first_moves=144 overlap=1 inputs_resident=0
row_feeds=720 weight_feeds=240 array_steps=1440
weights_base=48 first_step=12 resident=1 tile_beats=120 tile_uses=6 tile_loads=3 load_beats=360
requantiser_base=16
channels=24
pool_size=1 pool_stride=1 upscale=1 save_width=8 out_base=0 out_row_pitch=45 out_block_pitch=15 out_blocks=3
value_words=1 out_buffer=0 out_turn=0 chunks=6 limits=8388480 around=0

pass 2
in_base=795 in_row_pitch=60 in_block_pitch=30 burst_words=15 bursts=2 row_words=30 block_words=15 in_blocks=2
in_width=15 in_height=13 in_buffer=0 in_lap=0 in_turn=2
pixel_input=0 kernel_height=3 kernel_groups=5 group_pixels=1 stride=2 advance=2 pad_top=2 pad_left=0 depthwise=0
tile_blocks=2 steps=30
out_height=7 out_width=7 row_tiles=2 channel_tiles=3 phases=2 row_strides=11 ahead=1 positions=1
slot_words=60 last_slot=120 first_loads=180 first_moves=120 overlap=1 inputs_resident=0
row_feeds=630 weight_feeds=210 array_steps=1260
weights_base=48 first_step=102 resident=1 tile_beats=120 tile_uses=6 tile_loads=3 load_beats=360
requantiser_base=16
channels=24
pool_size=1 pool_stride=1 upscale=1 save_width=7 out_base=8 out_row_pitch=45 out_block_pitch=15 out_blocks=3
value_words=1 out_buffer=0 out_turn=0 chunks=6 limits=8388480 around=0

pass 3
in_base=0 in_row_pitch=45 in_block_pitch=15 burst_words=45 bursts=1 row_words=45 block_words=15 in_blocks=3
in_width=15 in_height=7 in_buffer=0 in_lap=0 in_turn=1
pixel_input=0 kernel_height=3 kernel_groups=3 group_pixels=1 stride=1 advance=1 pad_top=1 pad_left=1 depthwise=1
tile_blocks=1 steps=9
out_height=7 out_width=15 row_tiles=2 channel_tiles=3 phases=1 row_strides=12 ahead=2 positions=1
slot_words=45 last_slot=90 first_loads=180 first_moves=90 overlap=1 inputs_resident=0
row_feeds=405 weight_feeds=135 array_steps=810
weights_base=408 first_step=192 resident=1 tile_beats=36 tile_uses=6 tile_loads=3 load_beats=108
requantiser_base=40
channels=24
pool_size=1 pool_stride=1 upscale=1 save_width=15 out_base=315 out_row_pitch=45 out_block_pitch=15 out_blocks=3
value_words=1 out_buffer=0 out_turn=0 chunks=12 limits=8388480 around=0

pass 4
in_base=315 in_row_pitch=45 in_block_pitch=15 burst_words=45 bursts=1 row_words=45 block_words=15 in_blocks=3
in_width=15 in_height=7 in_buffer=0 in_lap=0 in_turn=0
pixel_input=0 kernel_height=1 kernel_groups=1 group_pixels=1 stride=1 advance=1 pad_top=0 pad_left=0 depthwise=0
tile_blocks=3 steps=3
out_height=7 out_width=15 row_tiles=2 channel_tiles=2 phases=1 row_strides=10 ahead=0 positions=1
slot_words=45 last_slot=45 first_loads=135 first_moves=45 overlap=1 inputs_resident=0
row_feeds=90 weight_feeds=45 array_steps=180
weights_base=516 first_step=219 resident=1 tile_beats=12 tile_uses=4 tile_loads=2 load_beats=24
requantiser_base=64
channels=16
pool_size=1 pool_stride=1 upscale=1 save_width=15 out_base=630 out_row_pitch=60 out_block_pitch=30 out_blocks=2
value_words=2 out_buffer=0 out_turn=0 chunks=8 limits=2147450880 around=0
"""
"""The passes:

0  There are 6 row tiles of 5 rows and 2 channel tiles of 8 filters. A row of 60 pixels is 30 words, and a kernel row
   takes 2 steps of 2 pixels. Two slots of 5 rows store the 7 rows of a tile, and a third slot stores the next rows.
   360 is 60 columns · 6 steps, and 24 is 6 steps · 8 / 2 ports.
1  15 columns are divided into 8 and 7. The first 8 columns read columns 0…17 of 30, with 2 blocks and 2 rows per row
   stride. The input is at word 26 · 30 = 780, after the image, and the output replaces the image.
2  7 columns read 15…29, without padding on the left.
3  Each channel tile reads its own block. The requantisers begin at 2 · 8 + 3 · 8.
4  Results of 16 bits take 2 words. 420 words have no room below map 3, which is at 315…629."""

NARROW = """
pass 0
in_base=0 in_row_pitch=10 in_block_pitch=10 burst_words=10 bursts=1 row_words=10 block_words=10 in_blocks=1
in_width=10 in_height=14 in_buffer=0 in_lap=0 in_turn=1
pixel_input=1 kernel_height=3 kernel_groups=3 group_pixels=1 stride=1 advance=2 pad_top=1 pad_left=1 depthwise=0
tile_blocks=1 steps=9
out_height=14 out_width=10 row_tiles=3 channel_tiles=2 phases=1 row_strides=20 ahead=2 positions=2
slot_words=10 last_slot=30 first_loads=20 first_moves=20 overlap=1 inputs_resident=1
row_feeds=45 weight_feeds=135 array_steps=270
weights_base=0 first_step=0 resident=0 tile_beats=36 tile_uses=2 tile_loads=2 load_beats=72
requantiser_base=0 channels=32
pool_size=1 pool_stride=1 upscale=1 save_width=10 out_base=0 out_row_pitch=30 out_block_pitch=10 out_blocks=3
value_words=1 out_buffer=1 out_turn=2 chunks=12 limits=524280 around=0

pass 1
in_base=0 in_row_pitch=30 in_block_pitch=10 burst_words=7 bursts=3 row_words=21 block_words=7 in_blocks=3
in_width=7 in_height=14 in_buffer=1 in_lap=1 in_turn=2
pixel_input=0 kernel_height=9 kernel_groups=3 group_pixels=1 stride=1 advance=2 pad_top=8 pad_left=1 depthwise=0
tile_blocks=3 steps=81
out_height=14 out_width=6 row_tiles=3 channel_tiles=1 phases=1 row_strides=26 ahead=8 positions=2
slot_words=21 last_slot=63 first_loads=84 first_moves=63 overlap=1 inputs_resident=0
row_feeds=243 weight_feeds=243 array_steps=729
weights_base=72 first_step=18 resident=0 tile_beats=324 tile_uses=3 tile_loads=3 load_beats=972
requantiser_base=32
channels=16
pool_size=1 pool_stride=1 upscale=1 save_width=6 out_base=560 out_row_pitch=20 out_block_pitch=10 out_blocks=2
value_words=1 out_buffer=0 out_turn=0 chunks=3 limits=524280 around=0

pass 2
in_base=5 in_row_pitch=30 in_block_pitch=10 burst_words=5 bursts=3 row_words=15 block_words=5 in_blocks=3
in_width=5 in_height=14 in_buffer=1 in_lap=1 in_turn=2
pixel_input=0 kernel_height=9 kernel_groups=3 group_pixels=1 stride=1 advance=2 pad_top=8 pad_left=0 depthwise=0
tile_blocks=3 steps=81
out_height=14 out_width=4 row_tiles=3 channel_tiles=1 phases=1 row_strides=26 ahead=8 positions=2
slot_words=15 last_slot=45 first_loads=60 first_moves=45 overlap=1 inputs_resident=0
row_feeds=162 weight_feeds=162 array_steps=486
weights_base=72 first_step=261 resident=0 tile_beats=324 tile_uses=3 tile_loads=3 load_beats=972
requantiser_base=32
channels=16
pool_size=1 pool_stride=1 upscale=1 save_width=4 out_base=566 out_row_pitch=20 out_block_pitch=10 out_blocks=2
value_words=1 out_buffer=0 out_turn=0 chunks=3 limits=524280 around=0

pass 3
in_base=560 in_row_pitch=20 in_block_pitch=10 burst_words=20 bursts=1 row_words=20 block_words=10 in_blocks=2
in_width=10 in_height=14 in_buffer=0 in_lap=0 in_turn=0
pixel_input=0 kernel_height=1 kernel_groups=1 group_pixels=1 stride=1 advance=2 pad_top=0 pad_left=0 depthwise=0
tile_blocks=2 steps=2
out_height=14 out_width=10 row_tiles=3 channel_tiles=1 phases=1 row_strides=18 ahead=0 positions=2
slot_words=20 last_slot=0 first_loads=40 first_moves=20 overlap=0 inputs_resident=0
row_feeds=10 weight_feeds=10 array_steps=30
weights_base=396 first_step=504 resident=0 tile_beats=8 tile_uses=3 tile_loads=3 load_beats=24
requantiser_base=48
channels=16
pool_size=1 pool_stride=1 upscale=1 save_width=10 out_base=0 out_row_pitch=10 out_block_pitch=10 out_blocks=1
value_words=1 out_buffer=0 out_turn=0 chunks=6 limits=524280 around=0
"""
"""The passes:

0  All 20 rows stay in 4 slots of 6 rows. 45 is 10 / 2 pairs of columns · 9 steps, and 36 is 9 · 16 / (2 ports · 2
   words).
1  The input is in map buffer 1. 8 rows of padding above are a lap of 6 rows and a turn of 2. 81 is 9 · 3 · 3 blocks.
   Each of 4 ports reads 4 of 14 rows. The results follow the 140 words of the image and the 420 words of the map on
   chip.
2  4 columns read 5…9.
3  Without overlap, one slot of 6 rows is enough."""

BATCHED = """
pass 0
in_base=0 in_row_pitch=2 in_block_pitch=2 burst_words=2 bursts=1 row_words=2 block_words=2 in_blocks=1
in_width=4 in_height=6 in_buffer=0 in_lap=0 in_turn=1
pixel_input=1 kernel_height=3 kernel_groups=2 group_pixels=2 stride=1 advance=1 pad_top=1 pad_left=1 depthwise=0
tile_blocks=1 steps=6
out_height=6 out_width=4 row_tiles=2 channel_tiles=1 phases=1 row_strides=10 ahead=2 positions=1
slot_words=2 last_slot=4 first_loads=12 first_moves=4 overlap=1 inputs_resident=1
row_feeds=24 weight_feeds=48 array_steps=48
weights_base=0 first_step=0 resident=0 tile_beats=12 tile_uses=1 tile_loads=1 load_beats=12
requantiser_base=0 channels=8
pool_size=2 pool_stride=2 upscale=1 save_width=2 out_base=36 out_row_pitch=2 out_block_pitch=2 out_blocks=1
value_words=1 out_buffer=0 out_turn=0 chunks=2 limits=8388480 around=0

pass 1
in_base=12 in_row_pitch=2 in_block_pitch=2 burst_words=2 bursts=1 row_words=2 block_words=2 in_blocks=1
in_width=4 in_height=6 in_buffer=0 in_lap=0 in_turn=1
pixel_input=1 kernel_height=3 kernel_groups=2 group_pixels=2 stride=1 advance=1 pad_top=1 pad_left=1 depthwise=0
tile_blocks=1 steps=6
out_height=6 out_width=4 row_tiles=2 channel_tiles=1 phases=1 row_strides=10 ahead=2 positions=1
slot_words=2 last_slot=4 first_loads=12 first_moves=4 overlap=1 inputs_resident=1
row_feeds=24 weight_feeds=48 array_steps=48
weights_base=0 first_step=6 resident=0 tile_beats=12 tile_uses=1 tile_loads=1 load_beats=12
requantiser_base=0 channels=8
pool_size=2 pool_stride=2 upscale=1 save_width=2 out_base=42 out_row_pitch=2 out_block_pitch=2 out_blocks=1
value_words=1 out_buffer=0 out_turn=0 chunks=2 limits=8388480 around=0

pass 2
in_base=24 in_row_pitch=2 in_block_pitch=2 burst_words=2 bursts=1 row_words=2 block_words=2 in_blocks=1
in_width=4 in_height=6 in_buffer=0 in_lap=0 in_turn=1
pixel_input=1 kernel_height=3 kernel_groups=2 group_pixels=2 stride=1 advance=1 pad_top=1 pad_left=1 depthwise=0
tile_blocks=1 steps=6
out_height=6 out_width=4 row_tiles=2 channel_tiles=1 phases=1 row_strides=10 ahead=2 positions=1
slot_words=2 last_slot=4 first_loads=12 first_moves=4 overlap=1 inputs_resident=1
row_feeds=24 weight_feeds=48 array_steps=48
weights_base=0 first_step=12 resident=0 tile_beats=12 tile_uses=1 tile_loads=1 load_beats=12
requantiser_base=0 channels=8
pool_size=2 pool_stride=2 upscale=1 save_width=2 out_base=48 out_row_pitch=2 out_block_pitch=2 out_blocks=1
value_words=1 out_buffer=0 out_turn=0 chunks=2 limits=8388480 around=0

pass 3
in_base=36 in_row_pitch=2 in_block_pitch=2 burst_words=2 bursts=1 row_words=2 block_words=2 in_blocks=1
in_width=2 in_height=9 in_buffer=0 in_lap=0 in_turn=0
pixel_input=0 kernel_height=1 kernel_groups=1 group_pixels=1 stride=1 advance=1 pad_top=0 pad_left=0 depthwise=0
tile_blocks=1 steps=1
out_height=9 out_width=2 row_tiles=3 channel_tiles=1 phases=1 row_strides=12 ahead=0 positions=1
slot_words=2 last_slot=0 first_loads=8 first_moves=2 overlap=0 inputs_resident=0
row_feeds=2 weight_feeds=2 array_steps=6
weights_base=12 first_step=18 resident=0 tile_beats=2 tile_uses=3 tile_loads=3 load_beats=6
requantiser_base=8 channels=8
pool_size=1 pool_stride=1 upscale=1 save_width=2 out_base=0 out_row_pitch=2 out_block_pitch=2 out_blocks=1 value_words=1
out_buffer=0 out_turn=0 chunks=3 limits=8388480 around=0

pass 4
in_base=0 in_row_pitch=6 in_block_pitch=2 burst_words=6 bursts=1 row_words=6 block_words=2 in_blocks=3
in_width=2 in_height=3 in_buffer=0 in_lap=0 in_turn=0
pixel_input=0 kernel_height=1 kernel_groups=2 group_pixels=1 stride=1 advance=1 pad_top=0 pad_left=0 depthwise=0
tile_blocks=3 steps=6
out_height=3 out_width=1 row_tiles=1 channel_tiles=1 phases=1 row_strides=4 ahead=0 positions=1
slot_words=6 last_slot=0 first_loads=24 first_moves=6 overlap=0 inputs_resident=0
row_feeds=6 weight_feeds=6 array_steps=6
weights_base=14 first_step=21 resident=0 tile_beats=12 tile_uses=1 tile_loads=1 load_beats=12
requantiser_base=16 channels=8
pool_size=1 pool_stride=1 upscale=1 save_width=1 out_base=18 out_row_pitch=1 out_block_pitch=1 out_blocks=1
value_words=1 out_buffer=0 out_turn=0 chunks=1 limits=8388480 around=0
"""
"""The passes:

0  Passes 0, 1 and 2 compute one frame each. The frames are 12 words of pixels and 6 words of results apart.
3  The layer reads 9 rows of 3 frames. The results replace the images.
4  A frame is one row of 3 blocks of 2 columns, and the kernel is 1×2."""


def tables(text: str) -> list[dict[str, int]]:
    """Return the fields of each pass in a text."""
    pairs = [[word.split("=") for word in entry.split() if "=" in word] for entry in text.split("pass ")[1:]]
    return [{name: int(value) for name, value in entry} for entry in pairs]


@pytest.mark.parametrize(
    ("build", "text", "layers"),
    [(strided, STRIDED, (0, 1, 1, 2, 3)), (narrow, NARROW, (0, 1, 1, 2)), (batched, BATCHED, (0, 0, 0, 1, 2))],
)
def test_emit_fields_equal_those_by_hand(
    build: Callable[[], SystolicSchedule], text: str, layers: tuple[int, ...]
) -> None:
    made, expected = emit(build()), tables(text)
    assert made.pass_layer == layers
    for number, (words, fields) in enumerate(zip(made.words.view("int32").tolist(), expected, strict=True)):
        assert (number, dict(zip(PASS_FIELDS, words, strict=False))) == (number, fields)
        assert words[len(PASS_FIELDS) :] == [0] * (64 - len(PASS_FIELDS))


def test_primary_words_are_the_fields_without_a_formula() -> None:
    for added_maps in (False, True):
        array = Array(5, 8, 8, added_maps=added_maps)
        schedule = scheduled(Builder(3, 6, 10).conv(8, 3).network(), array, [(10, WEIGHTS, True, False)])
        (layer,), (maps, _) = schedule.layers, place_maps(schedule)
        source, target = maps[layer.layer.input], maps[layer.layer.output]
        words = primary_words(Pass(schedule.network, layer, layer.tiling.columns.tiles[0], source, target, None, 0, 0))
        assert set(words) == {field.name for field in fields_of(array) if field.primary}


def test_emit_column_tiles_write_neighbouring_columns() -> None:
    # The output follows an image of 6 · 5 words: columns 0…5 at word 30, and 6…9 at word 36. Pooled, 3 and 4 are at
    # 33.
    array = Array(5, 8, 8, chunk=8)
    for build, first in ((Builder(3, 6, 10).conv(8, 3), 6), (Builder(3, 6, 10).conv(8, 3).pool(), 3)):
        made = emit(scheduled(build.network(), array, [(6, WEIGHTS, True, False)]))
        column = PASS_FIELDS.index("out_base")
        assert made.words[:, column].tolist() == [30, 30 + first]
        # column 6 reads from 5 on, whose word of two pixels begins at 4: two columns before, one of which is padding
        assert made.words[:, PASS_FIELDS.index("pad_left")].view("int32").tolist() == [1, -1]


def test_emit_column_tiles_of_the_image_begin_at_whole_words() -> None:
    # A word has two pixels. Only the first tile has a column of padding on its left.
    array = Array(5, 8, 8, row_depth=256, weight_depth=1024, kept_depth=512, chunk=8, channel_tiles=16)
    program = emit(scheduled(Builder(3, 12, 40).conv(8, 3).network(), array, [(8, WEIGHTS, True, False)]))
    starts = [int(base) for base in program.words[:, PASS_FIELDS.index("in_base")]]
    assert [start - starts[0] for start in starts] == [max(0, 8 * tile - 1) // 2 for tile in range(5)]


def test_emit_regions_of_maps_equal_those_by_hand() -> None:
    # The numbers per node are the base, words per row, words of all frames, value bits, map buffer and turn.

    def regions(of: Program) -> dict[int, tuple[int, ...]]:
        return {
            node: (region.base, region.row_words, region.words, region.value_bits, region.buffer, region.bank_rotation)
            for node, region in of.maps.items()
        }

    made = emit(strided())
    assert regions(made) == {
        0: (0, 30, 780, 8, 0, 0),
        2: (780, 60, 780, 8, 0, 0),
        3: (0, 45, 315, 8, 0, 0),
        4: (315, 45, 315, 8, 0, 0),
        5: (630, 60, 420, 16, 0, 0),
    }
    assert made.maps_words == 1560
    made = emit(narrow())
    assert regions(made) == {
        0: (0, 10, 140, 8, 0, 0),
        1: (140, 30, 420, 4, 1, 2),
        2: (560, 20, 280, 4, 0, 0),
        3: (0, 10, 140, 4, 0, 0),
    }
    assert made.maps_words == 840
    made = emit(batched())
    assert regions(made) == {
        0: (0, 2, 36, 8, 0, 0),
        2: (36, 2, 18, 8, 0, 0),
        3: (0, 2, 18, 8, 0, 0),
        4: (18, 1, 3, 8, 0, 0),
    }
    assert (made.maps_words, made.last_pass(0), made.last_pass(1)) == (54, 2, 3)
