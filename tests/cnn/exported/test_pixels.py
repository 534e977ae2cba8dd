"""Tests of images with a mean and a standard deviation in the exported form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boards.errors import ConflictError, InvalidValueError, MissingValueError, RangeError, UnsupportedError
from cnn.exported.network import Exported, make_exported
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology_file import parse_topology
from cnn.exported.topology_writer import topology_text
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.maps import FloatArray
from cnn.quantisation.fidelity import fidelity
from tests.support.errors import Refusal, check_refusals
from tests.support.exported import convolution, described, parsed

PICTURE = np.random.default_rng(5).integers(0, 256, (3, 12, 20), np.uint8)
PIXELS = PICTURE.astype(np.float32) / np.float32(255)
LAYER = "small.json: layer 1"


def read(*layers: dict[str, Any], **picture: Any) -> Exported:
    topology = parsed(*layers, input={"channels": 3, "height": 12, "width": 20, **picture})
    return make_exported(topology, seeded_arrays(topology, 1))


def trained(network: Exported, padding: int = 0) -> FloatArray:
    """Compute the first layer as in training: on the normalised image, padded with zeros."""
    topology, weights = network.topology, network.arrays["conv0_w"].astype(np.float64)
    picture = PIXELS[::-1] if topology.order == "BGR" else PIXELS
    values = (picture - np.array(topology.mean)[:, None, None]) / topology.std
    values = np.pad(values, ((0, 0), (padding, padding), (padding, padding)))
    weights = np.rint(7 * np.tanh(weights) / np.abs(np.tanh(weights)).max()) / 7
    windows = np.lib.stride_tricks.sliding_window_view(values, (3, 3), axis=(1, 2))
    sums = np.einsum("fckl,chwkl->fhw", weights, windows)
    gamma, beta, mean, var = (network.arrays[f"bn0_{part}"][:, None, None] for part in ("gamma", "beta", "mean", "var"))
    return np.asarray(np.clip((sums - mean) / np.sqrt(var + 1e-5) * gamma + beta, 0, 1), np.float32)


@pytest.mark.parametrize(
    ("padding", "picture"),
    [
        (0, {"mean": [0.485, 0.456, 0.406], "std": 0.226}),
        (0, {"mean": [0.1, 0.5, 0.9], "std": 0.25, "order": "BGR"}),
        (1, {"mean": 0.5, "std": 0.5}),
        (1, {"std": 0.5}),
    ],
)
def test_first_layer_with_mean_and_std_equals_training(padding: int, picture: dict[str, Any]) -> None:
    network = read(convolution(8, padding=padding, output_bits=6, extra_bits=6), **picture)
    expected = trained(network, padding)
    integers = run_integer(network.quantized, PICTURE)[1]
    assert integers is not None
    assert np.abs(run_float(network.network, PIXELS)[1] - expected).max() < 1e-5
    # The error is half a step of the output. With padding, the multiplier and the padding's integer pixel add 0.01.
    assert np.abs(integers / 63 - expected).max() < 0.6 / 63 + 0.01 * (padding > 0)
    assert 0.05 < expected.mean() < 0.95
    assert fidelity(network.network, network.quantized, PICTURE)[0].worst < 1e-6


def test_mean_and_std_that_cannot_be_folded_are_refused() -> None:
    sums, pool = {"type": "convolution", "filters": 2, "kernel": 1, "weight_bits": 4}, {"type": "max_pool", "size": 2}
    given = convolution(requantise="given_thresholds")
    no_norm = {"what": "the batch norm of 'convolution1'", "where": LAYER}
    refusals: list[Refusal] = [
        ((convolution(padding=1), {"mean": [0.1, 0.2, 0.3]}), ConflictError, {"where": LAYER}),
        ((convolution(), {"std": [0.2, 0.3, 0.2]}), InvalidValueError, {"what": "'std'", "got": [0.2, 0.3, 0.2]}),
        ((convolution(), {"std": 0.001}), InvalidValueError, {"what": "'std'", "got": [0.001] * 3}),
        ((convolution(), {"mean": [0.1, 0.2]}), InvalidValueError, {"what": "'mean'", "got": [0.1, 0.2]}),
        ((convolution(), {"mean": 2}), RangeError, {"what": "'mean'", "got": 2, "low": 0, "high": 1}),
        (
            (pool, {"mean": 0.5}),
            UnsupportedError,
            {"subject": "'max_pool1' that reads a picture with a mean or a std", "where": LAYER},
        ),
        ((given, {"mean": 0.5}), MissingValueError, no_norm),
        ((sums, {"mean": 0.5}), MissingValueError, no_norm),
    ]
    check_refusals(lambda case: read(case[0], **case[1]), refusals)


def test_mean_and_std_survive_writing_and_reading() -> None:
    values = described(convolution(), input={"channels": 3, "height": 12, "width": 20, "mean": 0.5, "std": 0.25})
    topology = parsed(*values["layers"], input=values["input"])
    again = parse_topology(topology_text(topology), "small.json")
    assert (again.mean, again.std) == (topology.mean, topology.std) == ((0.5, 0.5, 0.5), 0.25)
