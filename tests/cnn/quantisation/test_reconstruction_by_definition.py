"""Tests of how weights are fitted to samples, step by step, against slow definitions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cnn.float_model import run_float
from cnn.integer_model import dequantise, run_integer
from cnn.maps import Padding, Shape
from cnn.network import Network
from cnn.ops import Convolution
from cnn.quantisation import reconstruction
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.quantise import quantise
from cnn.quantisation.reconstruction import Reconstruction
from cnn.quantisation.rounding import Filters, WeightGrid
from tests.support import networks
from tests.support.cases import cases

Array = npt.NDArray[Any]


def drawn(filters: int, inputs: int, samples: int, seed: int) -> tuple[Filters, WeightGrid, Array, Array]:
    """Return filters, their grid, and samples of correlated inputs: exact ones, and rounded ones as after
    quantisation."""
    random = np.random.default_rng(seed)
    rows = random.normal(0, 1, (filters, inputs)) * random.uniform(0.2, 3, (filters, 1))
    mixed = random.normal(0, 1, (inputs, inputs)) / np.sqrt(inputs) + np.eye(inputs)
    exact = mixed @ random.normal(0.3, 1, (inputs, samples))
    scale = np.abs(rows).max(axis=1) / 7
    floor = scale * np.where(np.arange(filters) % 3 == 2, 0.9, 0.1)
    return Filters(rows, random.normal(0, 1, filters)), WeightGrid(scale, floor, 7), exact, np.round(exact * 4) / 4


def least_squares(rows: Array, residual: Array, inputs: Array, ridge: float) -> Array:
    """Return the rows that best compensate the residual, with the ridge as additional equations."""
    count, samples = inputs.shape
    weight = np.sqrt(samples * (ridge * np.mean(np.sum(inputs**2, axis=1) / samples) + 1e-12))
    system = np.concatenate([inputs.T, weight * np.eye(count)])
    wanted = np.concatenate([residual.T, np.zeros((count, len(rows)))])
    return np.asarray(rows + np.linalg.lstsq(system, wanted, rcond=None)[0].T)


def surgeon(rows: Array, inputs: Array, scale: Array, grid: WeightGrid) -> Array:
    """Round columns in order by optimal brain quantisation: each error is spread by the inverse of the remaining
    matrix."""
    energy = inputs @ inputs.T / inputs.shape[1]
    energy = energy + np.eye(len(energy)) * (0.01 * np.mean(np.diag(energy)) + 1e-12)
    rows, integers = rows.copy(), np.zeros_like(rows)
    for column in range(rows.shape[1]):
        inverse = np.linalg.inv(energy[column:, column:])
        integers[:, column] = np.clip(np.rint(rows[:, column] / scale), -grid.high, grid.high)
        error = (rows[:, column] - integers[:, column] * scale) / inverse[0, 0]
        rows[:, column:] -= np.outer(error, inverse[0])
    return integers


def best_scales(rows: Array, energy: Array, grid: WeightGrid) -> Array:
    """Return the best scale of each filter by trying every share, the greatest first."""
    best = []
    for row, scale, floor in zip(rows, grid.scale, grid.floor, strict=True):
        tried = {}
        for thousandths in (1000, *range(400, 1000, 25)):
            share = max(thousandths / 1000 * scale, floor)
            integers = np.clip(np.rint(row / share), -grid.high, grid.high)
            tried[share] = float(sum((row - integers * share) ** 2 * energy))
        best.append(min(tried, key=tried.__getitem__))
    return np.array(best)


@cases("seed", range(4))
def test_scale_is_the_best_of_all_shares(seed: int) -> None:
    filters, grid, exact, _ = drawn(9, 12, 40, seed)
    energy = np.mean(exact**2, axis=1)
    wanted = best_scales(filters.rows, energy, grid)
    assert reconstruction._scales(filters.rows, energy, grid) == pytest.approx(wanted, rel=1e-9)
    assert len(set(np.round(wanted / grid.scale, 3))) > 2


def test_scale_stays_if_no_share_reduces_the_error() -> None:
    """Use weights of 0, and inputs of 0."""
    grid = WeightGrid(np.array([0.5, 2.0]), np.zeros(2), 3)
    assert reconstruction._scales(np.zeros((2, 3)), np.ones(3), grid).tolist() == [0.5, 2.0]
    assert reconstruction._scales(np.ones((2, 3)), np.zeros(3), grid).tolist() == [0.5, 2.0]


@cases("inputs, ridge", [(3, 1.0), (20, 1.0), (20, 0.25)])
def test_fit_equals_least_squares_with_a_ridge(inputs: int, ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reconstruction.RIDGE == 1.0
    monkeypatch.setattr(reconstruction, "RIDGE", ridge)
    filters, _, exact, approximate = drawn(5, inputs, 60, 7)
    residual = filters.rows @ (exact - approximate)
    fitted = reconstruction._fit(filters.rows, residual, approximate)
    assert fitted == pytest.approx(least_squares(filters.rows, residual, approximate, ridge), rel=1e-6, abs=1e-9)


@cases("inputs", [1, 5, 63, 64, 65, 130])
def test_rounding_error_is_spread_over_the_following_weights(inputs: int) -> None:
    filters, grid, _, approximate = drawn(6, inputs, 200, inputs)
    integers = reconstruction._rounded(filters.rows, approximate, grid.scale, grid)
    assert np.array_equal(integers, surgeon(filters.rows, approximate, grid.scale, grid))


def test_constant_inputs_give_the_nearest_integers() -> None:
    """Use inputs without energy, for which there is nothing to compensate and a division by zero must be avoided."""
    filters, grid, _, _ = drawn(4, 5, 1, 1)
    nearest = grid.round(filters.rows, grid.scale)
    assert np.array_equal(reconstruction._rounded(filters.rows, np.zeros((5, 8)), grid.scale, grid), nearest)
    fitted = reconstruction._fit(filters.rows, np.zeros((4, 8)), np.zeros((5, 8)))
    assert np.array_equal(fitted, filters.rows)


@cases(
    "inputs, edges",
    [
        (1, [0, 1]),
        (1152, [0, 1152]),
        (1153, [0, 576, 1153]),
        (2304, [0, 1152, 2304]),
        (2305, [0, 768, 1536, 2305]),
        (4608, [0, 1152, 2304, 3456, 4608]),
    ],
)
def test_parts_of_more_than_1152_weights_have_nearly_equal_lengths(inputs: int, edges: list[int]) -> None:
    wanted = [slice(first, last) for first, last in pairwise(edges)]
    assert list(reconstruction._parts(inputs)) == wanted


@cases("most", [1152, 7])
def test_parts_of_a_group_are_fitted_in_sequence(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that each part compensates the error that the earlier parts left, and that the bias takes the mean."""
    monkeypatch.setattr(reconstruction, "MAX_INPUTS", most)
    filters, grid, exact, approximate = drawn(6, 20, 90, 3)
    rounded = reconstruction._round_group(filters, grid, exact, approximate)
    mean = approximate.mean(axis=1)
    centred = approximate - mean[:, None]
    target = filters.rows @ exact + filters.bias[:, None]
    scale = best_scales(filters.rows, np.var(approximate, axis=1), grid)
    rows = filters.rows.copy()
    for part in reconstruction._parts(20):
        left = target - target.mean(axis=1)[:, None] - rows @ centred
        values = least_squares(filters.rows[:, part], left, centred[part], 1.0)
        rows[:, part] = surgeon(values, centred[part], scale, grid) * scale[:, None]
    assert rounded.scale == pytest.approx(scale)
    assert rounded.rows * rounded.scale[:, None] == pytest.approx(rows)
    assert rounded.bias == pytest.approx((target - rows @ approximate).mean(axis=1))
    assert np.array_equal(rounded.rows, np.rint(rounded.rows))


# --- samples ---------------------------------------------------------------------------------------------------------


def windows(array: Array, op: Convolution) -> Array:
    """Return the filters' inputs at every position, of shape (channels · taps, positions)."""
    (channels, height, width), padding = array.shape, op.padding
    filters_height, filters_width = op.weights.shape[2:]
    columns: list[list[float]] = []
    for top in range(-padding.top, height + padding.bottom - filters_height + 1, op.stride):
        for left in range(-padding.left, width + padding.right - filters_width + 1, op.stride):
            columns.append(
                [
                    array[c, top + y, left + x] if 0 <= top + y < height and 0 <= left + x < width else 0.0
                    for c in range(channels)
                    for y in range(filters_height)
                    for x in range(filters_width)
                ]
            )
    result: Array = np.array(columns).T
    return result


def two_layers() -> Network:
    """Return a convolution of stride 2, and one with two groups and a different padding on each side."""
    random = np.random.default_rng(5)
    first = networks.convolution(random, 3, 4, stride=2)
    weights = random.normal(0, 0.3, (6, 2, 3, 2)).astype(np.float32)
    second = Convolution(weights, np.zeros(6, np.float32), None, 1, Padding(1, 0, 2, 1), 2, "linear")
    return networks.network(
        Shape(3, 9, 8), ("first", first, [0], Shape(4, 5, 4)), ("second", second, [1], Shape(6, 6, 4))
    )


@pytest.fixture(scope="module")
def samples() -> tuple[Network, Any, list[Array], Reconstruction]:
    """Return a network, its integers, images, and the reconstruction after all layers."""
    network = two_layers()
    pictures = [(255 * picture).astype(np.uint8) for picture in networks.pictures(network.input_shape, 3)]
    ranges = calibrate(network, [picture.astype(np.float32) / np.float32(255) for picture in pictures], "max")
    integers = quantise(network, ranges)
    reconstructed = Reconstruction(network, pictures)
    for node in integers.nodes:
        reconstructed.append(node)
    return network, integers, pictures, reconstructed


@cases("index", [1, 2])
def test_samples_are_the_filter_inputs_in_floats_and_integers(index: int, samples: Any) -> None:
    network, integers, pictures, reconstructed = samples
    op, source = network.nodes[index].op, network.nodes[index].inputs[0]
    exact, approximate = reconstructed._samples(index, op)
    floats, whole = [], []
    for picture in pictures:
        floats.append(windows(run_float(network, picture.astype(np.float32) / np.float32(255))[source], op))
        type_ = integers.nodes[source].type
        whole.append(windows(dequantise(run_integer(integers, picture)[source], type_), op))
    for ours, theirs in ((exact, floats), (approximate, whole)):
        assert ours.dtype == np.float64
        assert ours == pytest.approx(np.concatenate(theirs, axis=1).reshape(op.groups, -1, ours.shape[2]))


def test_sampled_positions_are_distinct_and_evenly_spread_over_images(
    samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expect the same positions for both networks, the same number per image, in ascending order."""
    network, _, _, reconstructed = samples
    op = network.nodes[2].op
    everything = np.concatenate(reconstructed._samples(2, op))
    monkeypatch.setattr(reconstruction, "MAX_SAMPLES", 31)
    some = np.concatenate(reconstructed._samples(2, op))
    assert some.shape == (*everything.shape[:2], 33)  # eleven per image
    places = [
        [place for place in range(72) if np.array_equal(everything[:, :, place], some[:, :, index])]
        for index in range(33)
    ]
    chosen = [max(place) for place in places]
    assert all(24 * (index // 11) <= place < 24 * (index // 11 + 1) for index, place in enumerate(chosen))
    assert [min(place) for place in places] == sorted(min(place) for place in places)
    again = np.concatenate(reconstructed._samples(2, op))
    assert np.array_equal(some, again)


def test_large_map_is_sampled_at_6144_positions() -> None:
    random = np.random.default_rng(1)
    network = networks.network(
        Shape(1, 80, 80), ("conv", networks.convolution(random, 1, 1, kernel=1), [0], Shape(1, 80, 80))
    )
    picture = random.integers(0, 256, (1, 80, 80), dtype=np.uint8)
    reconstructed = Reconstruction(network, [picture])
    ranges = calibrate(network, [picture.astype(np.float32) / np.float32(255)], "max")
    reconstructed.append(quantise(network, ranges).nodes[0])
    op = network.nodes[1].op
    assert isinstance(op, Convolution)
    assert reconstructed._samples(1, op)[0].shape == (1, 1, 6144)


def test_groups_are_rounded_separately(samples: Any) -> None:
    network, _, _, reconstructed = samples
    op = network.nodes[2].op
    filters, grid, _, _ = drawn(6, 12, 1, 2)
    rounded = reconstructed.round(2, filters, grid)
    exact, approximate = reconstructed._samples(2, op)
    for group in range(2):
        ours = slice(3 * group, 3 * group + 3)
        part = reconstruction._round_group(
            Filters(filters.rows[ours], filters.bias[ours]),
            WeightGrid(grid.scale[ours], grid.floor[ours], grid.high),
            exact[group],
            approximate[group],
        )
        assert np.array_equal(rounded.rows[ours], part.rows)
        assert np.array_equal(rounded.scale[ours], part.scale)
        assert np.array_equal(rounded.bias[ours], part.bias)
