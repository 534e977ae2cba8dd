"""Cases of blocks that move values and compute nothing."""

from __future__ import annotations

import numpy as np

from cnn.ops import DepthToSpace, Reorg
from tests.support.blocks.compute import Case, Ints, Values
from tests.support.blocks.moving import (
    BIPOLAR,
    FRAMES,
    INT4,
    INT8,
    INT16,
    UINT4,
    UINT8,
    Side,
    case,
    draw,
    stream,
)

WALK_DEPTH, WALK_LANDING = 8, 3  # walk.h


Size = tuple[int, int, int]


def numbers(*values: int) -> str:
    return ", ".join(map(str, values))


def width(seed: int, size: Size, lanes_in: int, lanes_out: int, value: Values = INT8) -> Case:
    values = stream(draw(seed, value, *size), 1)
    words = values.size // FRAMES // lanes_in
    ins, outs = Side(values, lanes_in), Side(values, lanes_out)
    block = f"convert_width<{numbers(lanes_in, lanes_out, words)}>"
    return case(block, value, [ins], [outs], max(ins.words, outs.words), 3, "width.h")


def convert_steps(lanes_in: int, lanes_out: int, before: int, after: int) -> int:
    """Return the cycles per pixel, counted step by step.

    A word is read if there are too few values for an output. One is written if there are enough, or no more input
    follows.
    """
    words_in, words_out = before // lanes_in, after // lanes_out
    needed = min(words_in, -(-after // lanes_in))
    here = came = left = steps = 0
    while came < words_in or left < words_out:
        steps += 1
        if came < words_in and (here < lanes_out or came >= needed):
            here += lanes_in if came < needed else 0
            came += 1
        if left < words_out and (here >= lanes_out or came == words_in):
            here, left = max(here - lanes_out, 0), left + 1
    return steps


def channels(seed: int, size: Size, lanes: tuple[int, int], out: int, value: Values = INT8) -> Case:
    """Return a case with ``out`` output channels: zeros are added, or the last channels are dropped."""
    maps = draw(seed, value, *size)
    kept = np.zeros((FRAMES, out, *size[1:]), np.int64)
    kept[:, : size[0]] = maps[:, :out]
    positions = size[1] * size[2]
    ins, outs = Side(stream(maps, lanes[0]), lanes[0]), Side(stream(kept, lanes[1]), lanes[1])
    block = f"convert_channels<{numbers(*lanes, size[0], out, positions)}>"
    iterations = FRAMES * positions * convert_steps(*lanes, size[0], out)
    return case(block, value, [ins], [outs], iterations, 3, "width.h")


def pixels(seed: int, size: Size, lanes: int, many: tuple[int, int], value: Values = INT8) -> Case:
    maps = draw(seed, value, *size)
    ins, outs = (Side(stream(maps, lanes, m), lanes * m) for m in many)
    block = f"convert_pixels<{numbers(lanes, size[0], *many, size[1] * size[2])}>"
    return case(block, value, [ins], [outs], max(ins.words, outs.words), 3, "width.h")


def duplicate(seed: int, size: Size, lanes: int, copies: int, value: Values = INT8) -> Case:
    side = Side(stream(draw(seed, value, *size), lanes), lanes)
    block = f"duplicate<{lanes}, {side.words // FRAMES}>"
    return case(block, value, [side], [side] * copies, side.words, 2, "duplicate.h")


def discard(seed: int, size: Size, lanes: int) -> Case:
    side = Side(stream(draw(seed, INT8, *size), lanes), lanes)
    return case(f"discard<{lanes}, {side.words // FRAMES}>", INT8, [side], [], side.words, 1, "discard.h")


def parted(seed: int, size: Size, lanes: int, parts: tuple[int, ...], value: Values) -> tuple[Side, list[Side], str]:
    """Return the whole map, its parts along the channels, and the template arguments of concat and split."""
    maps = draw(seed, value, *size)
    cuts = np.split(maps, np.cumsum(parts)[:-1], axis=1)
    whole = Side(stream(maps, lanes), lanes)
    return whole, [Side(stream(cut, lanes), lanes) for cut in cuts], numbers(lanes, size[1] * size[2], *parts)


def concat(seed: int, size: Size, lanes: int, parts: tuple[int, ...], value: Values = INT8) -> Case:
    whole, sides, arguments = parted(seed, size, lanes, parts, value)
    return case(f"concat<{arguments}>", value, sides, [whole], whole.words, 2, "concat.h", out_first=True)


def split(seed: int, size: Size, lanes: int, parts: tuple[int, ...], value: Values = INT8) -> Case:
    whole, sides, arguments = parted(seed, size, lanes, parts, value)
    return case(f"split<{arguments}>", value, [whole], sides, whole.words, 2, "split.h")


def reorg(seed: int, size: Size, lanes: int, stride: int, order: str, value: Values = INT8) -> Case:
    c, h, w = size
    maps = draw(seed, value, *size)
    deep = np.stack([Reorg(stride, order).move([frame]) for frame in maps])
    if order == "block":
        first = (stride - 1) * w + stride
    else:  # the rows of one position are ``stride`` rows apart, or anywhere in the map
        first = (stride - 1) * stride * w + stride if h % (stride * stride) == 0 else h * w
    ins, outs = Side(stream(maps, lanes), lanes), Side(stream(deep, lanes), lanes)
    block = f"reorg_{order}<{numbers(lanes, *size, stride)}>"
    return case(block, value, [ins], [outs], first * c // lanes + WALK_LANDING - 1 + outs.words, WALK_DEPTH, "reorg.h")


def spread(seed: int, size: Size, lanes: int, factors: tuple[int, int], value: Values = INT8) -> Case:
    maps = draw(seed, value, *size)
    larger = np.stack([DepthToSpace(*factors).move([frame]) for frame in maps])
    ins, outs = Side(stream(maps, lanes), lanes), Side(stream(larger, lanes), lanes)
    iterations = size[2] * size[0] // lanes + WALK_LANDING - 1 + outs.words
    block = f"depth_to_space<{numbers(lanes, *size, *factors)}>"
    return case(block, value, [ins], [outs], iterations, WALK_DEPTH, "reorg.h")


def nearest(maps: Ints, high: int, wide: int) -> Ints:
    rows, columns = (np.arange(out) * size // out for out, size in zip((high, wide), maps.shape[2:], strict=True))
    return maps[:, :, rows][:, :, :, columns]


def resize(seed: int, size: Size, lanes: int, out: tuple[int, int], value: Values = INT8) -> Case:
    maps = draw(seed, value, *size)
    ins, outs = Side(stream(maps, lanes), lanes), Side(stream(nearest(maps, *out), lanes), lanes)
    block = f"resize_nearest<{numbers(lanes, *size, *out)}>"
    g = size[0] // lanes
    iterations = size[2] * g + WALK_LANDING - 1 + outs.words
    if out[0] < size[1] or out[1] < size[2]:  # bound by the input: the last output row waits for its whole input row
        rows_left = size[1] - ((out[0] - 1) * size[1] // out[0] + 1)
        iterations = ins.words + max(0, WALK_LANDING - 1 + out[1] * g - rows_left * size[2] * g)
    return case(block, value, [ins], [outs], iterations, WALK_DEPTH, "resize.h")


def upsample(seed: int, size: Size, lanes: int, stride: int, value: Values = INT8) -> Case:
    maps = draw(seed, value, *size)
    larger = maps.repeat(stride, axis=2).repeat(stride, axis=3)
    ins, outs = Side(stream(maps, lanes), lanes), Side(stream(larger, lanes), lanes)
    iterations = size[2] * size[0] // lanes + WALK_LANDING - 1 + outs.words
    block = f"upsample<{numbers(lanes, *size, stride)}>"
    return case(block, value, [ins], [outs], iterations, WALK_DEPTH, "upsample.h")


def down_sample(seed: int, size: Size, lanes: int, stride: int, value: Values = INT8) -> Case:
    maps = draw(seed, value, *size)
    ins, outs = Side(stream(maps, lanes), lanes), Side(stream(maps[:, :, ::stride, ::stride], lanes), lanes)
    return case(f"down_sample<{numbers(lanes, *size, stride)}>", value, [ins], [outs], ins.words, 2, "down_sample.h")


CASES = (
    width(1, (12, 3, 4), 4, 4),
    width(2, (12, 3, 4), 12, 3, UINT4),
    width(3, (12, 3, 4), 1, 12),
    width(4, (12, 3, 4), 4, 6, INT16),
    width(5, (12, 3, 4), 6, 4),
    width(6, (35, 2, 2), 7, 5),
    width(7, (35, 2, 2), 5, 7, BIPOLAR),
    width(8, (6, 2, 2), 3, 2, INT4),
    channels(10, (3, 3, 4), (1, 4), 4),
    channels(11, (3, 3, 4), (3, 8), 8, UINT8),
    channels(12, (8, 3, 4), (4, 3), 3),
    channels(13, (8, 3, 4), (2, 5), 5),
    channels(14, (6, 3, 4), (3, 2), 10, INT16),
    channels(15, (16, 2, 3), (8, 1), 3),
    channels(16, (9, 2, 3), (3, 3), 12),
    channels(17, (12, 2, 3), (4, 4), 4),
    channels(18, (24, 2, 2), (8, 1), 9),
    channels(19, (3, 2, 2), (1, 4), 12),
    channels(9, (5, 2, 2), (5, 3), 3),
    channels(31, (8, 3, 4), (4, 5), 10),
    pixels(20, (4, 3, 8), 4, (1, 2)),
    pixels(21, (4, 3, 8), 4, (4, 1), UINT4),
    pixels(22, (4, 3, 8), 2, (1, 4)),
    pixels(23, (6, 3, 8), 2, (4, 2), INT16),
    pixels(24, (6, 3, 8), 1, (2, 2)),
    duplicate(30, (4, 3, 4), 2, 2),
    duplicate(31, (4, 3, 4), 4, 3, INT16),
    duplicate(32, (4, 3, 4), 1, 4, BIPOLAR),
    discard(33, (4, 3, 4), 2),
    concat(40, (8, 3, 4), 4, (4, 4)),
    concat(41, (12, 3, 4), 2, (2, 10), UINT4),
    concat(42, (12, 3, 4), 2, (6, 2, 4)),
    concat(43, (10, 3, 4), 1, (1, 2, 3, 4), INT16),
    split(50, (8, 3, 4), 4, (4, 4)),
    split(51, (12, 3, 4), 2, (2, 10), UINT4),
    split(52, (12, 3, 4), 2, (6, 2, 4)),
    split(53, (10, 3, 4), 1, (1, 2, 3, 4), INT16),
    reorg(60, (4, 8, 6), 4, 2, "darknet"),
    reorg(61, (8, 4, 6), 2, 2, "darknet", UINT4),
    reorg(62, (9, 9, 6), 3, 3, "darknet"),
    reorg(63, (4, 6, 10), 1, 2, "darknet", INT16),
    reorg(64, (8, 26, 4), 1, 2, "darknet"),
    reorg(65, (9, 6, 3), 1, 3, "darknet"),
    reorg(66, (4, 6, 8), 4, 2, "block"),
    reorg(67, (6, 6, 9), 2, 3, "block", INT4),
    spread(68, (8, 3, 5), 2, (2, 2)),
    spread(69, (12, 2, 4), 1, (2, 3), UINT4),
    spread(70, (6, 3, 1), 1, (3, 1)),
    spread(71, (8, 1, 3), 4, (1, 2), INT16),
    resize(70, (4, 3, 5), 2, (3, 5)),
    resize(71, (4, 3, 5), 4, (7, 8), UINT4),
    resize(72, (2, 5, 3), 1, (6, 3)),
    resize(73, (2, 1, 1), 2, (3, 4)),
    resize(74, (2, 6, 6), 2, (3, 3)),
    resize(75, (2, 5, 7), 1, (2, 3), UINT4),
    resize(76, (2, 6, 4), 2, (2, 6)),
    resize(77, (2, 8, 3), 1, (3, 2)),
    upsample(80, (4, 3, 5), 2, 2),
    upsample(81, (4, 3, 4), 4, 3, INT16),
    upsample(82, (3, 2, 1), 1, 4),
    down_sample(90, (4, 5, 6), 2, 2),
    down_sample(91, (4, 7, 7), 4, 3, UINT8),
    down_sample(92, (2, 1, 5), 1, 2),
)
