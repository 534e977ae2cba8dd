from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from boards.errors import ChoiceError, InvalidValueError, MissingValueError, RangeError
from cnn.float_model import run_float
from cnn.maps import Shape
from cnn.quantisation.calibration import BINS, METHODS, calibrate, choose_ranges, observe
from tests.support import networks
from tests.support.cases import cases
from tests.support.errors import raises

IDENTITY = networks.network(Shape(1, 1, 20000), name="identity")


def picture(values: Sequence[float] | np.ndarray) -> np.ndarray:
    array = np.zeros((1, 1, 20000), np.float32)
    array[0, 0, : len(values)] = values
    return array


def test_max_is_the_greatest_magnitude_over_all_images() -> None:
    network = networks.tiny_yolo()
    pictures = networks.pictures(network.input_shape, 3)
    ranges = calibrate(network, iter(pictures))
    outputs = [run_float(network, p) for p in pictures]
    expected = tuple(float(max(np.abs(o[i]).max() for o in outputs)) for i in range(len(network.nodes)))
    assert ranges.values == ranges.greatest == expected
    assert ranges.method == "max"


def test_percentile_ignores_the_tail_and_zeros() -> None:
    values = np.linspace(0.0001, 1, 10000)
    values[-5:] = 100
    ranges = calibrate(IDENTITY, [picture(values)], "percentile", percentile=99.9)
    assert ranges.values[0] == pytest.approx(0.999, abs=2 * 128 / BINS)
    assert ranges.greatest[0] == 100
    # If the 10000 zeros counted, 99.9 % of 20000 values would be about 0.998, within the last ten.
    assert calibrate(IDENTITY, [picture(values)], "percentile", percentile=100).values[0] == 100


def test_mse_clips_a_lone_outlier_but_not_a_uniform_spread() -> None:
    random = np.random.default_rng(0)
    spread = calibrate(IDENTITY, [picture(random.uniform(-1, 1, 20000))], "mse")
    assert spread.values[0] > 0.97
    values = random.normal(0, 1, 20000)
    values[0] = 60
    narrow = calibrate(IDENTITY, [picture(values)], "mse", bits=4)
    assert 2 < narrow.values[0] < 30


@cases("bits, top", [(2, 1), (3, 3), (4, 7), (8, 127)])
def test_mse_is_the_least_error_of_all_candidates(bits: int, top: int) -> None:
    """Compare with errors computed from the values themselves, where the histogram has only bins."""
    values = np.random.default_rng(bits).normal(0, 1, 2000)
    errors = {}
    for percent in range(1, 101):
        step = np.abs(values).max() * percent / 100 / top
        errors[percent] = sum((x - min(round(x / step), top) * step) ** 2 for x in np.abs(values).tolist())
    best = min(errors, key=errors.__getitem__)
    chosen = calibrate(IDENTITY, [picture(values)], "mse", bits=bits).values[0]
    assert chosen == pytest.approx(np.abs(values).max() * best / 100, rel=0.011)


def test_percentile_counts_values_from_the_least() -> None:
    """Use the values 1, 2, …, 100, of which 95 % end at the 95th, up to the width of its bin."""
    ranges = [calibrate(IDENTITY, [picture(range(1, 101))], "percentile", percentile=p).values[0] for p in (50, 95, 99)]
    assert ranges == pytest.approx([50, 95, 99], abs=128 / BINS)
    assert calibrate(IDENTITY, [picture([7.0])], "percentile", percentile=50).values == (7.0,)


def test_order_of_images_does_not_change_the_histogram() -> None:
    random = np.random.default_rng(1)
    pictures = [picture(random.normal(0, 10.0**e, 20000)) for e in (0, -3, 2, 1)]
    pictures.append(picture([1.0, 2.0, 64.0]))  # exact powers of two
    one, two = observe(IDENTITY, pictures), observe(IDENTITY, pictures[::-1])
    np.testing.assert_array_equal(one.histograms[0].counts, two.histograms[0].counts)
    assert one.histograms[0].limit == two.histograms[0].limit
    assert one.histograms[0].counts.sum() + one.histograms[0].zeros == 5 * 20000
    assert len(one.histograms[0].counts) == BINS


def test_power_of_two_sets_the_same_limit_in_any_order() -> None:
    pictures = [picture([1.0]), picture([0.9])]
    limits = [observe(IDENTITY, order).histograms[0].limit for order in (pictures, pictures[::-1])]
    assert limits == [2.0, 2.0]
    assert observe(IDENTITY, [picture([0.3])]).histograms[0].limit == 0.5


@pytest.mark.parametrize("factor", [2.0**-140, 2.0**-126, 2.0**120])
def test_histogram_has_the_shape_of_its_values_at_any_scale(factor: float) -> None:
    values = np.array([1, 5, 77, 128, 250]) / 256
    usual, scaled = (observe(IDENTITY, [picture(list(values * by))]).histograms[0] for by in (1.0, factor))
    np.testing.assert_array_equal(scaled.counts, usual.counts)
    assert (scaled.limit, scaled.greatest) == (usual.limit * factor, usual.greatest * factor)


def test_ranges_from_statistics_equal_direct_calibration() -> None:
    network = networks.tiny_yolo()
    pictures = networks.pictures(network.input_shape)
    seen = observe(network, pictures)
    assert seen.pictures == 4
    for method in METHODS:
        assert choose_ranges(seen, method) == calibrate(network, pictures, method)


def test_progress_is_reported_after_each_image() -> None:
    told: list[int] = []
    calibrate(IDENTITY, [picture([1])] * 3, progress=told.append)
    assert told == [1, 2, 3]


def test_zeros_have_a_range_of_zero() -> None:
    for method in METHODS:
        assert calibrate(IDENTITY, [picture([])], method).values == (0.0,)


@cases("bits", [4, 8])
def test_entropy_is_the_least_divergence_of_its_definition(bits: int) -> None:
    """Compute the definition bin by bin, with few far values, for which the range must stay small."""
    values = np.concatenate([np.random.default_rng(1).laplace(0, 1, 19_998), [30.0, -32.0]])
    seen = observe(IDENTITY, [picture(values)])
    histogram, top = seen.histograms[0], 2 ** (bits - 1) - 1
    width = histogram.limit / BINS
    divergences = {}
    for percent in range(1, 101):
        reach = histogram.greatest * percent / 100
        bins = range(math.ceil(reach / width))
        inside = {bin: int(histogram.counts[bin]) for bin in bins}
        reference = {**inside, bins[-1]: inside[bins[-1]] + int(histogram.counts[len(bins) :].sum())}
        levels: dict[int, list[int]] = {}
        for bin in (bin for bin in bins if reference[bin]):
            levels.setdefault(min(round((bin + 0.5) * width / reach * top), top), []).append(bin)
        quantised = {
            bin: max(sum(inside[other] for other in level) / len(level), 1e-4)
            for level in levels.values()
            for bin in level
        }
        whole, kept = sum(reference.values()), sum(quantised.values())
        divergences[reach] = sum(
            reference[bin] / whole * math.log(reference[bin] / whole / (q / kept)) for bin, q in quantised.items()
        )
    chosen = choose_ranges(seen, "entropy", bits=bits).values[0]
    assert chosen == min(divergences, key=divergences.__getitem__)
    assert chosen < 0.8 * histogram.greatest


def test_calibration_without_images_is_refused() -> None:
    with raises(MissingValueError, what="a picture", remedy="name some pictures"):
        calibrate(IDENTITY, [])


def test_unknown_method_is_refused() -> None:
    with raises(ChoiceError, what="the method of calibration", got="median", choices=METHODS):
        calibrate(IDENTITY, [picture([1])], "median")


@cases("percentile", [3, 49.5, 100.5])
def test_percentile_outside_50_to_100_is_refused(percentile: float) -> None:
    with raises(RangeError, what="the percentile", got=percentile, low=50, high=100):
        calibrate(IDENTITY, [picture([1])], "percentile", percentile=percentile)


def test_values_that_are_not_finite_are_refused() -> None:
    with raises(InvalidValueError, what="the values of a layer", where="'input' (test:1)"):
        calibrate(IDENTITY, [picture([np.nan])])
    with raises(InvalidValueError, got=float("inf"), where="'input' (test:1)"):
        calibrate(IDENTITY, [picture([-np.inf])])
