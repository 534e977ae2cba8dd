"""Cases of sliding windows and max pools."""

from __future__ import annotations

import numpy as np

from scheduler.streaming.model.depths import SCAN_DEPTH, max_pool_depth
from tests.support.blocks.compute import Case, Ints, Values
from tests.support.blocks.moving import (
    BIPOLAR,
    FRAMES,
    INT4,
    INT8,
    INT16,
    UINT4,
    UINT8,
    Padding,
    Side,
    case,
    draw,
    stream,
)

WALK_DEPTH, WALK_LANDING = 8, 3  # walk.h


SAME, NONE = Padding(1, 1, 1, 1), Padding()


def windows(maps: Ints, kernel: tuple[int, int], stride: int, dilation: int) -> Ints:
    """Return the windows of padded maps [F, C, H, W] as [F, C, taps, OH, OW]."""
    reach = [(k - 1) * dilation + 1 for k in kernel]
    views = np.lib.stride_tricks.sliding_window_view(maps, reach, axis=(2, 3))
    taps = views[:, :, ::stride, ::stride, ::dilation, ::dilation]
    frames, channels, high, wide = taps.shape[:4]
    seen: Ints = taps.reshape(frames, channels, high, wide, -1).transpose(0, 1, 4, 2, 3)
    return seen


def arguments(size: tuple[int, int, int], kernel: tuple[int, int], stride: int, padding: Padding) -> str:
    p = padding
    return f"{', '.join(map(str, (*size, *kernel, stride, p.top, p.left, p.bottom, p.right)))}"


def bound_by_input(
    size: tuple[int, int],
    out: tuple[int, int],
    reach: list[int],
    stride: int,
    padding: Padding,
    taps: int,
    groups: int,
) -> int:
    """Return the iterations of a default window that waits for its input, with a word read per cycle.

    A position is written after its last pixel has arrived and the previous position has been written.
    """
    (height, width), end = size, 0
    for frame in range(FRAMES):
        for y in range(out[0]):
            for x in range(out[1]):
                row = min(y * stride - padding.top + reach[0], height) - 1
                column = min(x * stride - padding.left + reach[1], width)
                landed = ((frame * height + row) * width + column) * groups + WALK_LANDING - 1
                end = max(end, landed) + taps * groups
    return max(end, FRAMES * height * width * groups)


def default(
    seed: int,
    size: tuple[int, int, int],
    simd: int,
    kernel: tuple[int, int] = (3, 3),
    stride: int = 1,
    padding: Padding = SAME,
    dilation: int = 1,
    depthwise: bool = False,
    value: Values = INT8,
    ram: str = "RAM_AUTO",
) -> Case:
    """Return a case of a default window over ``size`` channels, rows and columns."""
    channels, height, width = size
    maps = draw(seed, value, *size)
    seen = windows(padding.around(maps), kernel, stride, dilation)
    groups = channels // simd
    # [F, G, S, taps, OH, OW] → position, then (tap, group) or (group, tap)
    parts = seen.reshape(FRAMES, groups, simd, *seen.shape[2:])
    order = (0, 4, 5, 1, 3, 2) if depthwise else (0, 4, 5, 3, 1, 2)
    taps = kernel[0] * kernel[1]
    positions = seen.shape[3] * seen.shape[4]
    reach = [(k - 1) * dilation + 1 for k in kernel]
    first = (min(reach[0] - padding.top, height) - 1) * width + min(reach[1] - padding.left, width)
    numbers = f"{arguments(size, kernel, stride, padding)}, {dilation}, {str(depthwise).lower()}"
    block = f"window_default<{simd}, {numbers}, {ram}>"
    iterations = first * groups + WALK_LANDING - 1 + FRAMES * positions * taps * groups
    if positions * taps <= height * width:
        iterations = bound_by_input(size[1:], (seen.shape[3], seen.shape[4]), reach, stride, padding, taps, groups)
    return case(
        block,
        value,
        [Side(stream(maps, simd), simd)],
        [Side(parts.transpose(order).ravel(), simd)],
        iterations,
        WALK_DEPTH,
        "window.h",
    )


def scan(
    size: tuple[int, int, int],
    out: tuple[int, int],
    reach: tuple[int, int],
    stride: int,
    padding: Padding,
    pixels: int,
) -> int:
    """Return the steps of parallel windows and of pools for all frames.

    Every frame is a scan. The last one ends when all words are read and all positions are written.
    """
    _, height, width = size
    leaving = max(1, pixels // stride)
    high = max(height, stride * (out[0] - 1) + 1)
    wide = -(-max(width, stride * (out[1] - 1) + 1) // pixels)
    lag = (reach[0] - 1 - padding.top) * wide + -(-(reach[1] - 1 - padding.left) // pixels)
    last = (out[0] - 1) * stride * wide + (out[1] // leaving - 1) * max(1, stride // pixels)
    return (FRAMES - 1) * high * wide + max((height - 1) * wide + width // pixels, last + lag + 1)


def parallel(
    seed: int,
    size: tuple[int, int, int],
    simd: int,
    kernel: tuple[int, int] = (3, 3),
    stride: int = 1,
    padding: Padding = SAME,
    dilation: int = 1,
    pixels: int = 1,
    value: Values = INT8,
    ram: str = "RAM_AUTO",
) -> Case:
    maps = draw(seed, value, *size)
    seen = windows(padding.around(maps), kernel, stride, dilation)
    leaving, groups, taps = max(1, pixels // stride), size[0] // simd, kernel[0] * kernel[1]
    out = seen.shape[3:]
    # [F, G, S, taps, P / M, M] → F, P / M, G, M, taps, S
    parts = seen.reshape(FRAMES, groups, simd, taps, out[0] * out[1] // leaving, leaving)
    reach = (kernel[0] - 1) * dilation + 1, (kernel[1] - 1) * dilation + 1
    steps = scan(size, out, reach, stride, padding, pixels)
    return case(
        f"window_parallel<{pixels}, {simd}, {arguments(size, kernel, stride, padding)}, {dilation}, {ram}>",
        value,
        [Side(stream(maps, simd, pixels), simd * pixels)],
        [Side(parts.transpose(0, 4, 1, 5, 3, 2).ravel(), leaving * taps * simd)],
        steps * groups,
        SCAN_DEPTH,
        "window.h",
    )


def pool(
    seed: int,
    size: tuple[int, int, int],
    lanes: int,
    kernel: int | tuple[int, int] = 2,
    stride: int = 2,
    padding: Padding = NONE,
    pixels: int = 1,
    value: Values = INT8,
    ram: str = "RAM_AUTO",
) -> Case:
    window = (kernel, kernel) if isinstance(kernel, int) else kernel
    maps = draw(seed, value, *size)
    largest = windows(padding.around(maps, -(1 << 40)), window, stride, 1).max(axis=2)
    leaving, out = max(1, pixels // stride), largest.shape[2:]
    steps = scan(size, out, window, stride, padding, pixels)
    numbers = (*size, *window, stride, padding.top, padding.left, padding.bottom, padding.right)
    return case(
        f"max_pool<{pixels}, {lanes}, {', '.join(map(str, numbers))}, {ram}>",
        value,
        [Side(stream(maps, lanes, pixels), lanes * pixels)],
        [Side(stream(largest, lanes, leaving), lanes * leaving)],
        steps * (size[0] // lanes),
        max_pool_depth(max(window)),
        "max_pool.h",
    )


CASES = (
    default(1, (4, 5, 6), 2),
    default(2, (4, 5, 6), 4, value=UINT4, ram="RAM_LUTRAM"),
    default(3, (4, 5, 6), 1, depthwise=True, ram="RAM_BRAM"),
    default(4, (6, 5, 7), 3, depthwise=True, padding=NONE),
    default(5, (4, 6, 7), 2, padding=NONE),
    default(6, (4, 8, 8), 4, stride=2),
    default(7, (2, 7, 9), 1, stride=2, padding=Padding(0, 0, 1, 1)),
    default(8, (2, 9, 6), 2, (5, 3), padding=Padding(2, 1, 2, 1)),
    default(9, (2, 6, 6), 2, (3, 3), dilation=2, padding=Padding(2, 2, 2, 2), value=INT16),
    default(10, (2, 4, 4), 2, (2, 2), padding=Padding(1, 1, 1, 1)),
    default(11, (3, 1, 1), 3),
    default(12, (2, 2, 2), 1),
    default(13, (2, 1, 9), 2, (1, 3), padding=Padding(0, 1, 0, 1)),
    default(14, (4, 6, 6), 4, (2, 2), 2, NONE, value=BIPOLAR),
    default(15, (2, 9, 9), 2, (4, 4), 3, Padding(1, 1, 2, 2), ram="RAM_URAM"),
    default(16, (2, 11, 5), 2, (3, 3), dilation=3, padding=Padding(3, 2, 3, 2)),
    default(60, (4, 6, 6), 2, (1, 1), 2, NONE),
    default(61, (4, 7, 7), 4, (2, 2), 2, NONE),
    default(62, (2, 8, 8), 1, (2, 2), 3, NONE),
    default(63, (2, 9, 9), 2, (3, 3), 4, SAME),
    # a stride does not use the last rows, so that words of the next frame arrive early, until the buffer is full
    default(17, (1, 3, 40), 1, stride=2),
    default(18, (2, 3, 9), 2, stride=2),
    default(19, (1, 4, 4), 1, (4, 4), 3, Padding(3, 3, 3, 3)),
    parallel(20, (4, 5, 6), 4),
    parallel(21, (4, 5, 6), 1, value=UINT8, ram="RAM_BRAM"),
    parallel(22, (6, 5, 6), 2, padding=NONE),
    parallel(23, (4, 8, 8), 2, stride=2),
    parallel(24, (2, 7, 9), 1, stride=2, padding=Padding(0, 0, 1, 1)),
    parallel(25, (2, 9, 6), 2, (5, 3), padding=Padding(2, 1, 2, 1)),
    parallel(26, (2, 6, 6), 2, dilation=2, padding=Padding(2, 2, 2, 2), value=INT16),
    parallel(27, (2, 4, 4), 2, (2, 2), padding=Padding(1, 1, 1, 1)),
    parallel(28, (3, 1, 1), 3),
    parallel(29, (10, 3, 3), 1, ram="RAM_LUTRAM"),
    parallel(30, (2, 1, 9), 2, (1, 3), padding=Padding(0, 1, 0, 1)),
    parallel(31, (4, 7, 7), 2, (3, 3), 3, NONE),
    parallel(32, (4, 5, 8), 4, pixels=2),
    parallel(33, (4, 5, 8), 2, pixels=4, value=INT4),
    parallel(34, (2, 6, 8), 2, stride=2, pixels=2, padding=Padding(1, 1, 0, 0)),
    parallel(35, (2, 6, 16), 1, stride=2, pixels=4, padding=Padding(0, 0, 1, 1)),
    parallel(36, (2, 5, 8), 2, (3, 3), pixels=2, padding=NONE),
    parallel(37, (2, 7, 12), 2, (5, 5), pixels=4, padding=Padding(2, 2, 2, 2)),
    parallel(38, (2, 6, 6), 2, dilation=2, pixels=3, padding=Padding(2, 2, 2, 2)),
    parallel(39, (3, 4, 6), 3, pixels=6),
    pool(50, (4, 6, 8), 4),
    pool(51, (4, 6, 8), 1, value=UINT4),
    pool(52, (4, 7, 9), 2),
    pool(53, (4, 5, 5), 2, padding=Padding(0, 0, 1, 1)),
    pool(54, (4, 5, 6), 2, 2, 1, Padding(0, 0, 1, 1), ram="RAM_BRAM"),
    pool(55, (4, 7, 7), 4, 3, 2, SAME),
    pool(56, (6, 5, 7), 3, 3, 1, SAME, value=INT16),
    pool(57, (2, 6, 6), 2, 3, 3),
    pool(58, (2, 9, 7), 1, 5, 1, Padding(2, 2, 2, 2), ram="RAM_URAM"),
    pool(66, (2, 11, 10), 2, 13, 1, Padding(6, 6, 6, 6)),
    pool(67, (4, 6, 7), 2, (2, 1), 1),
    pool(68, (2, 7, 9), 2, (1, 3), 2, Padding(0, 1, 0, 2)),
    pool(69, (3, 8, 8), 1, (4, 2), 2, Padding(3, 0, 2, 1), pixels=2, ram="RAM_BRAM"),
    pool(59, (4, 6, 8), 4, pixels=2),
    pool(60, (4, 6, 8), 2, pixels=4, value=UINT4),
    pool(61, (4, 5, 8), 2, 3, 1, SAME, pixels=2),
    pool(62, (2, 3, 4), 2, 2, 1, Padding(0, 0, 1, 1), pixels=4),
    pool(63, (8, 4, 4), 8, value=BIPOLAR),
    pool(64, (12, 2, 2), 1),
)


# 4×4 windows with stride 2 write 4 × 4 · 16 words for 8 × 8 pixels: a pixel is read every 4 cycles.
EVEN = default(81, (2, 8, 8), 2, (4, 4), 2)
