"""Tests of windows, resized sides and transposed convolutions against the operators' definitions, output by output."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from boards.errors import InvalidValueError, RangeError, ShapeError, SystolicError
from cnn.limits import MAX_DILATED, MAX_KERNEL, MAX_PLACES, MAX_WINDOW
from cnn.maps import Padding, Shape
from cnn.network import Node
from cnn.onnx import transposed
from cnn.onnx.graph import OnnxOperation, RefusedError
from cnn.onnx.layers import Layers, Map
from cnn.onnx.pools import Subsampling
from cnn.onnx.resizing import ResizedSide, _enlarged_side, _ratio_side, _repeats, is_integer_enlargement
from cnn.onnx.sliding import Slide, _border_kernel, add_paddings, dilated, pads_of, planar, share_inside_map, slide_of
from cnn.ops import Input
from tests.support.cases import cases
from tests.support.errors import raises, refused

RANDOM = np.random.default_rng(17)


def operation(kind: str, **attributes: Any) -> OnnxOperation:
    return OnnxOperation("it", kind, ("x", "w"), ("y",), attributes)


def layers(*sides: int) -> Layers:
    """Return layers of an input image alone."""
    node = Node("input", Input(), (), Shape(*sides), "net.onnx")
    return Layers("net.onnx", (node,), {}, {"x": Map(0, (1, *sides))}, {"x": 1, "y": 1}, 17)


# --- positions of windows --------------------------------------------------------------------------------------------


def test_pads_follow_from_the_attributes() -> None:
    """Expect top, left, bottom and right. SAME gives an output per stride, and puts odd padding at the end or the
    start."""
    assert pads_of(operation("Conv", pads=(1, 2, 3, 4)), (9, 9), (3, 3), (1, 1)) == ([1, 2], [3, 4])
    assert pads_of(operation("Conv"), (9, 9), (3, 3), (1, 1)) == ([0, 0], [0, 0])
    assert pads_of(operation("Conv", auto_pad="VALID", pads=(1, 2, 3, 4)), (9, 9), (3, 3), (1, 1)) == ([0, 0], [0, 0])
    for mode, side, window, stride in product(("SAME_UPPER", "SAME_LOWER"), range(1, 9), range(1, 6), (1, 2, 3)):
        outputs = len(range(0, side, stride))
        total = max(0, max(range(outputs)) * stride + window - side)
        shorter = total // 2
        before = shorter if mode == "SAME_UPPER" else total - shorter
        wanted = ([before, 0], [total - before, 0])
        assert pads_of(operation("Conv", auto_pad=mode), (side, 7), (window, 1), (stride, 9)) == wanted


@cases("ceil_mode", [0, 1])
def test_slid_counts_every_window_that_fits(ceil_mode: int) -> None:
    """Expect one more window for a remainder in ceil mode, unless it would start in the padding at the end."""
    for _ in range(150):
        height, width, rows, columns = (int(n) for n in RANDOM.integers(1, 8, 4))
        strides, pads = (
            tuple(int(n) for n in RANDOM.integers(1, 4, 2)),
            tuple(int(n) for n in RANDOM.integers(0, 4, 4)),
        )
        top, left, bottom, right = pads
        asked = operation("MaxPool", strides=strides, pads=pads, ceil_mode=ceil_mode)
        if rows > height + top + bottom or columns > width + left + right:
            with raises(
                ShapeError, what="its padded input", required=f"at least the window's ({rows}, {columns}) places"
            ):
                slide_of(layers(3, height, width), asked, Map(0, (1, 3, height, width)), (rows, columns))
            continue
        counts, ends = [], []
        sides = ((height, rows, top, bottom), (width, columns, left, right))
        for (side, window, before, behind), stride in zip(sides, strides, strict=True):
            begins = [0]
            while begins[-1] + stride + window <= side + before + behind:
                begins.append(begins[-1] + stride)
            if ceil_mode and begins[-1] + window < side + before + behind:  # the remainder is a window too
                begins.append(begins[-1] + stride)
            if ceil_mode and begins[-1] >= side + before:
                begins.pop()
            counts.append(len(begins))
            ends.append(max(0, begins[-1] + window - before - side))
        slide = slide_of(layers(3, height, width), asked, Map(0, (1, 3, height, width)), (rows, columns))
        assert (slide.shape, slide.padding) == (Shape(3, *counts), Padding(top, left, *ends))
        assert slide.strides == strides


def test_nested_paddings_are_added() -> None:
    assert add_paddings(Padding(1, 2, 3, 4), Padding(10, 20, 30, 40)) == Padding(11, 22, 33, 44)
    assert add_paddings(Padding(255, 0, 0, 0), Padding(0, 255, 255, 255)) == Padding(255, 255, 255, 255)
    for sides in ((4096, 0, 0, 0), (0, 4096, 0, 0), (0, 0, 4096, 0), (0, 0, 0, 4096)):
        with raises(InvalidValueError, what="padding", got=sides):
            add_paddings(Padding(), Padding(*sides))


def test_window_of_a_signal_becomes_a_window_of_a_row() -> None:
    """Expect neutral values for the added side. The stride is the same for both sides."""
    asked = operation("MaxPool", kernel_shape=(5,), strides=(2,), dilations=(3,), pads=(1, 4))
    row = planar(asked, Map(0, (1, 3, 9))).attributes
    assert row == {"kernel_shape": (1, 5), "strides": (2, 2), "dilations": (1, 3), "pads": (0, 1, 0, 4)}
    assert planar(asked, Map(0, (1, 3, 9, 9))) is asked


@cases("steps", [(1, 1), (2, 1), (1, 3), (3, 2)])
def test_dilated_window_has_zeros_between_its_weights(steps: tuple[int, int]) -> None:
    weights = RANDOM.normal(size=(2, 3, 3, 2)).astype(np.float32)
    larger = dilated(weights, steps)
    assert larger.shape == (2, 3, 2 * steps[0] + 1, steps[1] + 1)
    for y, x in np.ndindex(larger.shape[2:]):
        inner = y % steps[0] == 0 and x % steps[1] == 0
        wanted = weights[:, :, y // steps[0], x // steps[1]] if inner else np.zeros((2, 3))
        np.testing.assert_array_equal(larger[:, :, y, x], wanted)


def test_dilated_window_above_the_limits_is_refused() -> None:
    last = MAX_WINDOW - 1
    assert dilated(np.ones((1, 1, 2, 1), np.float32), (last, 1)).shape == (1, 1, MAX_WINDOW, 1)
    with raises(RangeError, what="rows or columns of a window", got=MAX_WINDOW + 1, high=MAX_WINDOW):
        dilated(np.ones((1, 1, 1, 2), np.float32), (1, last + 1))
    with raises(RangeError, what="places of a window", got=151 * 151, high=MAX_PLACES):
        dilated(np.ones((1, 1, 2, 2), np.float32), (150, 150))
    what = "weights of a dilated window, with the zeros between,"
    with raises(RangeError, what=what, got=1 << 27, high=MAX_DILATED):
        dilated(np.broadcast_to(np.float32(1), (1 << 13, 1 << 12, 1, 2)), (1, 3))


# --- borders ---------------------------------------------------------------------------------------------------------


def test_share_of_a_window_inside_the_map_equals_a_count() -> None:
    for _ in range(60):
        length, stride, before = int(RANDOM.integers(1, 9)), int(RANDOM.integers(1, 4)), int(RANDOM.integers(0, 3))
        window = RANDOM.integers(1, 4, int(RANDOM.integers(before + 1, before + 4))).astype(np.float32)
        total = int(window.sum())
        outputs = 1 + int(RANDOM.integers(0, (length + before - 1) // stride + 1))
        wanted = [
            sum(int(weight) for place, weight in enumerate(window, p * stride - before) if 0 <= place < length) / total
            for p in range(outputs)
        ]
        np.testing.assert_allclose(share_inside_map(outputs, stride, before, window, length), wanted, rtol=1e-12)
    with raises(RefusedError, reason="one of its windows would be outside the map"):
        share_inside_map(3, 2, 0, np.ones(2, np.float32), 4)
    assert share_inside_map(2, 3, 0, np.ones(2, np.float32), 4).tolist() == [1, 0.5]


@cases("length", range(1, 10))
def test_border_factors_equal_a_window_over_ones(length: int) -> None:
    """Use any factors at both ends and equal ones in the middle. The window covers ones with zeros around them."""
    for front, back in product(range(length // 2 + 1), range((length + 1) // 2)):
        factors = np.ones(length)
        factors[:front] = RANDOM.uniform(1, 3, front)
        factors[length - back :] = RANDOM.uniform(1, 3, back)
        ends = _border_kernel(factors)
        assert (ends.before, ends.after) == (front, back)
        assert len(ends.weights) == front + 1 + back
        padded = np.concatenate([np.zeros(front), np.ones(length), np.zeros(back)])
        over = [float(padded[p : p + len(ends.weights)] @ ends.weights) for p in range(length)]
        np.testing.assert_allclose(over, factors, atol=1e-12)


# --- repeated and interpolated pixels --------------------------------------------------------------------------------


PLACES: dict[str, Callable[[int, int, int], float]] = {
    "half_pixel": lambda x, n, m: (x + 0.5) * n / m - 0.5,
    "half_pixel_symmetric": lambda x, n, m: (x + 0.5) * n / m - 0.5,
    "pytorch_half_pixel": lambda x, n, m: (x + 0.5) * n / m - 0.5 if m > 1 else 0,
    "asymmetric": lambda x, n, m: x * n / m,
    "align_corners": lambda x, n, m: x * (n - 1) / (m - 1) if m > 1 else 0,
}


@cases("mode", PLACES)
def test_interpolated_side_equals_the_definition_of_resize(mode: str) -> None:
    for length, times in product(range(2, 7), range(1, 6)):
        outputs = (length - 1) * times + 1 if mode == "align_corners" else length * times
        side = _enlarged_side(ResizedSide(length, outputs, float(np.float32(outputs / length))), mode)
        assert side.outputs == outputs
        pixels = RANDOM.normal(size=length)
        repeated = np.repeat(pixels, side.times)
        padded = np.concatenate([np.zeros(side.pads[0]), repeated, np.zeros(side.pads[1])])
        means = [padded[p : p + len(side.weights)] @ side.weights / side.weights.sum() for p in range(outputs)]
        wanted = []
        for x in range(outputs):
            place = min(max(PLACES[mode](x, length, outputs), 0), length - 1)
            low = int(np.floor(place))
            high = min(low + 1, length - 1)
            wanted.append(pixels[low] * (1 - place + low) + pixels[high] * (place - low))
        np.testing.assert_allclose(np.array(means) * side.factors, wanted, atol=1e-9)


@cases(
    "mode, length, scale",
    [("asymmetric", 4, float(MAX_KERNEL)), ("align_corners", 2, (MAX_KERNEL + 1) / 2)],
)
def test_interpolation_factor_above_the_limit_is_refused(mode: str, length: int, scale: float) -> None:
    with raises(RangeError, what="the factor of an interpolated side", got=MAX_KERNEL, low=1, high=MAX_KERNEL - 1):
        _enlarged_side(ResizedSide(length, round(length * scale), scale), mode)
    last = ResizedSide(2, 2 * (MAX_KERNEL - 1), float(MAX_KERNEL - 1))
    assert _enlarged_side(last, "half_pixel").times == MAX_KERNEL - 1


@cases("mode", PLACES)
def test_side_grows_by_whole_factors_only_if_outputs_are_multiples(mode: str) -> None:
    for length, outputs in product(range(1, 6), range(1, 12)):
        whole = (outputs - 1) % (length - 1) == 0 < outputs - length if mode == "align_corners" and length > 1 else None
        wanted = length == 1 or outputs == length or (outputs % length == 0 if whole is None else whole)
        assert is_integer_enlargement(ResizedSide(length, outputs, outputs / length), mode) is wanted, (length, outputs)


@cases("mode", PLACES)
def test_interpolated_side_of_any_ratio_equals_the_definition_of_resize(mode: str) -> None:
    """Check every stride that both sides can share, with one convolution per position in a block."""
    for length, outputs in product(range(2, 7), range(1, 10)):
        between = _ratio_side(ResizedSide(length, outputs, float(np.float32(outputs / length))), mode)
        pixels = RANDOM.normal(size=length)
        wanted = []
        for x in range(outputs):
            place = min(max(PLACES[mode](x, length, outputs), 0), length - 1)
            low = int(np.floor(place + 1e-9))
            high = min(low + 1, length - 1)
            wanted.append(pixels[low] * (1 - place + low) + pixels[high] * (place - low))
        for stride in (between.stride, 2 * between.stride, 3 * between.stride):
            windows, count = between.windows(stride), between.block_outputs(stride)
            padded = np.concatenate([np.zeros(windows.pads[0]), pixels, np.zeros(windows.pads[1])])
            starts = range(0, len(padded) - windows.weights.shape[1] + 1, stride)
            assert len(starts) == windows.blocks == -(-outputs // count)
            blocks = [padded[p : p + windows.weights.shape[1]] @ windows.weights.T for p in starts]
            np.testing.assert_allclose(np.ravel(blocks)[:outputs] * between.factors(), wanted, atol=1e-6)
            assert windows.pads[0] == (mode.startswith(("half", "pytorch")) and between.first < 0)
            parts = windows.weights / float(windows.unit)
            np.testing.assert_allclose(parts, np.rint(parts), atol=1e-4)


@cases("step", range(1, 8))
def test_repeats_are_found_for_regular_positions(step: int) -> None:
    """Expect repeats for every regular sequence, and none for an irregular one."""
    for length, outputs, first in product(range(1, 6), range(1, 9), range(3)):
        for times in range(1, 9):
            places = (first + step * np.arange(outputs)) // times
            if first >= times or places[-1] >= length:
                continue
            spaced = _repeats(places, step)
            assert spaced is not None
            assert ((spaced[1] + step * np.arange(outputs)) // spaced[0] == places).all()
    assert _repeats(np.array([0, 0, 0, 1, 2, 3, 4]), step) is None


ROUNDED = {
    "round_prefer_floor": lambda x: int(np.ceil(x - 0.5)),
    "round_prefer_ceil": lambda x: int(np.floor(x + 0.5)),
    "floor": lambda x: int(np.floor(x)),
    "ceil": lambda x: int(np.ceil(x)),
}


@cases("mode", PLACES)
@cases("nearest", ROUNDED)
def test_nearest_pixel_equals_the_definition_of_resize(mode: str, nearest: str) -> None:
    for side, factor in product((1, 2, 3, 5), (1, 2, 4)):
        places = [PLACES[mode](x, side, side * factor) for x in range(side * factor)]
        if mode == "align_corners" and any(abs(place * 2 - round(place * 2)) < 1e-9 for place in places[1:-1]):
            continue  # rounding may take a half either way
        wanted = [min(max(ROUNDED[nearest](place), 0), side - 1) for place in places]
        assert ResizedSide(side, side * factor, float(factor)).nearest(mode, nearest).tolist() == wanted


@cases(
    "before, outputs, strides, stride",
    [
        ((8, 8), (4, 4), (2, 2), 2),
        ((8, 11), (4, 4), (2, 3), 0),
        ((2, 8), (1, 4), (3, 2), 2),  # a single row may have any stride
        ((8, 2), (4, 1), (2, 3), 2),
        ((3, 8), (1, 7), (5, 1), 0),  # a stride of 1 would give two rows
    ],
)
def test_unequal_strides_are_equal_if_a_side_has_one_output(
    before: tuple[int, int], outputs: tuple[int, int], strides: tuple[int, int], stride: int
) -> None:
    assert Slide(Shape(1, *before), (2, 2), Shape(1, *outputs), Padding(), strides).stride == stride


def test_picked_positions_must_be_one_step_apart() -> None:
    assert Subsampling.from_pixels(np.array([1, 3, 5]), 8) == Subsampling(8, 1, 2, 3)
    assert Subsampling.from_pixels(np.array([4]), 8) == Subsampling(8, 4, 1, 1)
    assert Subsampling.from_pixels(np.array([1, 3, 4]), 8) is None
    assert Subsampling.from_pixels(np.array([2, 2]), 8) is None
    assert Subsampling(8, 1, 2, 3).window == 3  # with a window of 4, a fourth position would not fit; with 2, it would


def test_single_output_in_pytorch_half_pixel_mode_is_the_first_pixel() -> None:
    for rounded in ROUNDED:
        assert ResizedSide(4, 1, 0.25).nearest("pytorch_half_pixel", rounded).tolist() == [0]
    assert ResizedSide(4, 1, 0.25).nearest("half_pixel", "floor").tolist() == [1]


# --- transposed convolutions -----------------------------------------------------------------------------------------


def test_transposed_side_equals_the_definition_of_conv_transpose() -> None:
    """Add each input's kernel to the outputs from position stride · i − padding."""
    for _ in range(200):
        length, kernel, stride = (int(n) for n in RANDOM.integers(1, 6, 3))
        front, back = (int(n) for n in RANDOM.integers(0, 3, 2))
        out = (length - 1) * stride + kernel - front - back
        if out < 1:
            continue
        values, weights = RANDOM.normal(size=length), RANDOM.normal(size=kernel)
        wanted = np.zeros(out)
        for i, k in product(range(length), range(kernel)):
            if 0 <= stride * i + k - front < out:
                wanted[stride * i + k - front] += values[i] * weights[k]
        side = transposed._Side(length, kernel, stride, (front, back), out)
        padded = np.concatenate([np.zeros(side.pad_before), values, np.zeros(side.pad_behind)])
        assert len(padded) == side.blocks - 1 + side.window
        blocks = np.zeros((side.blocks, stride))
        for a in range(stride):
            for place, weight in side.weights_at(a):
                blocks[:, a] += padded[place : place + side.blocks] * weights[weight]
        np.testing.assert_allclose(blocks.ravel()[:out], wanted, atol=1e-12)


@cases(
    "attributes, pads, lengths",
    [
        ({}, [(0, 0), (0, 0)], (9, 12)),
        ({"output_padding": (1, 0)}, [(0, 0), (0, 0)], (10, 12)),
        ({"pads": (1, 0, 2, 3)}, [(1, 2), (0, 3)], (6, 9)),
        ({"auto_pad": "SAME_UPPER"}, [(0, 1), (1, 1)], (8, 10)),
        ({"auto_pad": "SAME_LOWER"}, [(1, 0), (1, 1)], (8, 10)),
        ({"output_shape": (7, 11)}, [(1, 1), (1, 0)], (7, 11)),
        ({"output_shape": (7, 11), "auto_pad": "SAME_UPPER"}, [(1, 1), (0, 1)], (7, 11)),
        ({"output_shape": (1, 4, 9, 12)}, [(0, 0), (0, 0)], (9, 12)),
        ({"output_shape": (11, 13)}, [(0, 0), (0, 0)], (11, 13)),
    ],
)
def test_pads_and_lengths_of_conv_transpose_follow_from_its_attributes(
    attributes: dict[str, Any], pads: list[tuple[int, int]], lengths: tuple[int, int]
) -> None:
    """Use 4×5 inputs, a 3×4 kernel and stride 2: (4 − 1) · 2 + 3 = 9 and (5 − 1) · 2 + 4 = 12 outputs."""
    weights = np.zeros((2, 2, 3, 4), np.float32)
    sides = transposed._sides(operation("ConvTranspose", **attributes), Shape(2, 4, 5), weights, (2, 2))
    assert [(side.input, side.kernel, side.stride) for side in sides] == [(4, 3, 2), (5, 4, 2)]
    assert [side.pads for side in sides] == pads
    assert tuple(side.length for side in sides) == lengths


@cases(
    "attributes, strides, fault",
    [
        ({}, (0, 1), InvalidValueError("strides", (0, 1), "two numbers of 1 to 64")),
        ({}, (1, 65), InvalidValueError("strides", (1, 65), "two numbers of 1 to 64")),
        ({}, (1,), InvalidValueError("strides", (1,), "two numbers of 1 to 64")),
        ({"output_padding": (0, 64)}, (2, 2), InvalidValueError("output_padding", (0, 64), "two numbers of 0 to 63")),
        ({"output_padding": (-1, 0)}, (2, 2), InvalidValueError("output_padding", (-1, 0), "two numbers of 0 to 63")),
        ({"pads": (0, 0, 0)}, (2, 2), InvalidValueError("pads", (0, 0, 0), "four numbers of 0 to 63")),
        ({"pads": (0, -1, 0, 0)}, (2, 2), InvalidValueError("pads", (0, -1, 0, 0), "four numbers of 0 to 63")),
        ({"pads": (0, 0, 64, 0)}, (2, 2), InvalidValueError("pads", (0, 0, 64, 0), "four numbers of 0 to 63")),
        ({"pads": (4, 0, 5, 0)}, (2, 2), RangeError("a side of its output", 0, 1, 65536)),
    ],
)
def test_conv_transpose_attributes_out_of_range_are_refused(
    attributes: dict[str, Any], strides: tuple[int, ...], fault: SystolicError
) -> None:
    weights = np.zeros((2, 2, 3, 4), np.float32)
    with refused(fault):
        transposed._sides(operation("ConvTranspose", **attributes), Shape(2, 4, 5), weights, strides)
    last = {"output_padding": (63, 0), "pads": (8, 0, 63, 0)}
    assert transposed._sides(operation("ConvTranspose", **last), Shape(2, 4, 5), weights, (64, 2))[0].length == 187
