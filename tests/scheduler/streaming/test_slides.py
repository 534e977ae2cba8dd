"""Steps of windows and pools, compared with the loops of their headers in Python, and the headers' pipeline depths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

import pytest

from cnn.maps import Padding, Shape
from hls_templates.headers import fixed_files, include_folders
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kinds import KINDS, WALK_DEPTH
from scheduler.streaming.lower import lower
from scheduler.streaming.model import converters, cycles, depths
from scheduler.streaming.model.cycles import _Slide, block_cycles, gathered_pixels
from tests.support.cases import cases
from tests.support.low_bit import Layers

HEADERS = "\n".join(fixed_files(*include_folders("streaming")).values())


@dataclass(frozen=True)
class Sliding:
    """A kernel that slides over a map.

    Attributes:
        height: The rows of the map.
        width: The columns of the map.
        kernel: The rows and columns that the kernel covers, dilation included.
        stride: The stride.
        padding: The padding.
        dilation: The distance between taps.
    """

    height: int
    width: int
    kernel: tuple[int, int]
    stride: int
    padding: Padding
    dilation: int = 1

    @property
    def out(self) -> Shape:
        rows = self.height + self.padding.top + self.padding.bottom - self.kernel[0]
        columns = self.width + self.padding.left + self.padding.right - self.kernel[1]
        return Shape(1, rows // self.stride + 1, columns // self.stride + 1)

    @property
    def taps(self) -> int:
        rows, columns = self.kernel
        return len(range(0, rows, self.dilation)) * len(range(0, columns, self.dilation))

    def slide(self) -> _Slide:
        read = Shape(1, self.height, self.width)
        return _Slide(read, self.out, self.kernel, self.taps, self.stride, self.padding)


def scan(of: Sliding, m: int) -> int:
    """Return the steps of stream/scan.h until the frame's last word was read and its last position was written."""
    out, per_word = of.out, max(m // of.stride, 1)
    wide = -(-max(of.width, (out.width - 1) * of.stride + 1) // m)
    high = max(of.height, (out.height - 1) * of.stride + 1)
    period, row_words = max(of.stride // m, 1), out.width // per_word
    wait = (of.kernel[0] - 1 - of.padding.top) * wide - (of.padding.left - of.kernel[1] + 1) // m
    out_y, out_x = divmod(-wait % (high * wide), wide)
    in_y = in_x = taken = left = steps = 0
    while not taken or not left:
        steps += 1
        taken += in_y == of.height - 1 and in_x == of.width // m - 1
        emits = wait == 0 and out_y % of.stride == 0 and out_x % period == 0
        left += emits and out_y == (out.height - 1) * of.stride and out_x == (row_words - 1) * period
        in_x, out_x, wait = in_x + 1, out_x + 1, max(0, wait - 1)
        if in_x == wide:
            in_x, in_y = 0, (in_y + 1) % high
        if out_x == wide:
            out_x, out_y = 0, (out_y + 1) % high
    return steps


def walk(of: Sliding, groups: int) -> int:
    """Return the iterations of stream/walk.h with moving/window.h for a frame, if the output never stalls."""
    out, row = of.out, of.width * groups
    high, wide = (of.kernel[0] - 1) * row, of.kernel[1] * groups
    pace = max(of.height * of.width, of.stride * out.height * max(of.width, out.width))
    share = max(pace, out.height * out.width * of.taps)
    needs = []
    for y, x in product(range(out.height), range(out.width)):
        top, first = (y * of.stride - of.padding.top) * row, (x * of.stride - of.padding.left) * groups
        last = min(top + high, (of.height - 1) * row) + min(first + wide, row)
        needs += [last] * of.taps * groups
    taken = landed = left = credit = steps = 0
    landing = [False] * 3
    while taken < of.height * row or left < len(needs):
        steps += 1
        landed += landing.pop()
        emits = left < len(needs) and landed >= needs[left]
        takes = (not emits or credit + pace >= share) and taken < of.height * row
        if emits:
            credit = credit + pace - share if takes else min(credit + pace, share)
        landing.insert(0, takes)
        left += emits
        taken += takes
    return steps


NONE, ONE, UNEVEN = Padding(), Padding(1, 1, 1, 1), Padding(2, 0, 1, 2)
MAPS = [(4, 4), (5, 8), (9, 12), (7, 3)]
KERNELS = [(1, 1), (2, 2), (3, 3), (3, 2), (1, 3)]


def slidings() -> list[Sliding]:
    """Return kernels on maps. Every window covers at least one pixel of the map."""
    return [
        Sliding(*size, kernel, stride, padding)
        for size, kernel, stride, padding in product(MAPS, KERNELS, (1, 2, 3), (NONE, ONE, UNEVEN))
        if max(padding.top, padding.bottom) < kernel[0]
        and max(padding.left, padding.right) < kernel[1]
        and kernel[1] <= size[1]
    ]


@cases("m", [1, 2, 4, 6])
def test_scan_steps_equal_the_loop_of_the_header(m: int) -> None:
    """The row is a whole number of words, and a word of several pixels is a whole number of strides."""
    tried = 0
    for of in slidings():
        per_word = max(m // of.stride, 1)
        if of.width % m == 0 == of.out.width % per_word and (m == 1 or m % of.stride == 0):
            assert of.slide().scanned(m) == scan(of, m), (of, m)
            tried += 1
    assert tried >= {1: 80, 2: 10, 4: 10, 6: 1}[m]


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_walk_steps_with_more_outputs_than_inputs_equal_the_loop(groups: int) -> None:
    tried = 0
    for of in slidings():
        if of.out.height * of.out.width * of.taps > of.height * of.width:
            assert of.slide().walked(groups) == walk(of, groups), of
            tried += 1
    assert tried > 40


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_walk_steps_with_fewer_outputs_than_inputs_equal_the_loop(groups: int) -> None:
    tried = 0
    for of in slidings():
        if of.out.height * of.out.width * of.taps <= of.height * of.width:
            assert of.slide().walked(groups) == walk(of, groups), of
            tried += 1
    assert tried > 20


def test_pipeline_depths_equal_the_constants_of_the_headers() -> None:
    declared = {name: int(depth) for name, depth in re.findall(r"(\w+_DEPTH) = (\d+)[;,]", HEADERS)}
    names = {
        g.Activate: "ACTIVATE_DEPTH",
        g.GlobalPool: "GLOBAL_POOL_DEPTH",
        g.Add: "ELEMENT_DEPTH",
        g.Multiply: "ELEMENT_DEPTH",
        g.Duplicate: "DUPLICATE_DEPTH",
        g.Concat: "CONCAT_DEPTH",
        g.Split: "SPLIT_DEPTH",
        g.DownSample: "DOWN_SAMPLE_DEPTH",
        g.Reorg: "WALK_DEPTH",
        g.DepthToSpace: "WALK_DEPTH",
        g.Upsample: "WALK_DEPTH",
    }
    of_kinds = {op: kind.depth for op, kind in KINDS.items() if kind.depth}
    assert {kind: declared[name] for kind, name in names.items()}.items() <= of_kinds.items()
    assert set(of_kinds) - set(names) == {g.Source, g.Sink, g.Discard}
    assert (of_kinds[g.Source], of_kinds[g.Sink], of_kinds[g.Discard]) == (3, 3, 1)  # dma.h, discard.h
    constants = ("SCAN_DEPTH", "WALK_DEPTH", "RESIDENT_DEPTH", "LEAST_UNIT_DEPTH")
    assert {name: declared[name] for name in constants}.items() <= vars(depths).items()
    assert declared["WIDTH_DEPTH"] == converters.WIDTH_DEPTH
    assert re.search(r"WALK_LANDING = (\d+);", HEADERS)[1] == str(cycles.WALK_LANDING)  # type: ignore[index]


def test_cycles_of_upsample_and_reorg_include_the_gathered_pixels() -> None:
    """An up-sampler gathers a row of 6 pixels before its first output, and a reorg a row and 2 pixels.

    Each pixel has 2 words. The first output word is written two steps later. Then the up-sampler writes 4 · 24 pixels
    of 2 words, and the reorg 24 pixels of 8 words.
    """
    up = lower(Layers(8, 4, 6).conv(8, 1).upsample(2).network())
    assert block_cycles(up, 2, g.Fold(simd=4)) == 6 * 2 + 2 + 96 * 2 + WALK_DEPTH
    made = Layers(8, 4, 6).conv(8, 1)
    reorg = lower(made.reorg(2, made.last).network())
    assert block_cycles(reorg, 2, g.Fold(simd=4)) == (2 * 6 + 2) * 2 + 2 + 24 * 2 + WALK_DEPTH


@pytest.mark.parametrize(
    ("order", "height", "pixels"), [("block", 6, 5 + 2), ("darknet", 8, 2 * 5 + 2), ("darknet", 6, 6 * 5)]
)
def test_gathered_pixels_of_a_reorg_follow_its_order(order: str, height: int, pixels: int) -> None:
    """The maps are 5 pixels wide. Darknet's order mixes groups of 4 rows if 4 divides the height, and else all rows."""
    assert gathered_pixels(g.Reorg(2, order), Shape(4, height, 5)) == pixels


def test_dilated_window_waits_for_its_reach() -> None:
    """3×3 taps, 2 apart, cover 5×5 pixels. On 9×9 pixels, the first position needs 4 rows and 5 pixels."""
    of = Sliding(9, 9, (5, 5), 1, NONE, dilation=2)
    assert of.slide().scanned(1) == scan(of, 1) == 81
    assert of.slide().walked(1) == walk(of, 1) == (4 * 9 + 5) + 2 + 25 * 9
    graph = lower(Layers(8, 10, 10).conv(4, 3).network())
    block = graph.blocks[1]
    wide = g.Window((3, 3), 1, Padding(2, 2, 2, 2), dilation=2)
    dilated = g.StreamGraph(
        "dilated", (graph.blocks[0], g.Block("w", wide, block.inputs, block.outputs, None, "x"), *graph.blocks[2:])
    )
    # 5×5 pixels less the padding of 2: the first position needs 2 rows and 3 pixels of 4 groups
    assert block_cycles(dilated, 1, g.Fold(simd=2)) == (2 * 10 + 3) * 4 + 2 + 100 * 9 * 4 + WALK_DEPTH
    assert block_cycles(dilated, 1, g.Fold(simd=2, style="parallel")) == (100 + 2 * 10 + 2) * 4 + 5
