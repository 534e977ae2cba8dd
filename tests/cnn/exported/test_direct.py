"""Tests of sums of maps, given thresholds and shifts per layer in the exported form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boards.errors import ChoiceError, InvalidValueError, RangeError, ShapeError, UnsupportedError
from cnn.datatype import INT16, DataType
from cnn.exported.layer_kinds import REQUANTISERS
from cnn.exported.network import Exported, make_exported
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology_file import parse_topology
from cnn.exported.topology_writer import topology_text
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.maps import FloatArray, Integers
from cnn.ops import QConvolution
from cnn.requantise import MultiplyShift, Thresholds
from tests.support.errors import Refusal, check_refusals, raises
from tests.support.exported import convolution, parsed
from tests.support.kinds import as_kind

SAME: dict[str, Any] = {"name": "a", "padding": 1}
PICTURE = np.random.default_rng(3).integers(0, 256, (3, 12, 20), np.uint8)
PIXELS = PICTURE.astype(np.float32) / np.float32(255)


def exported(*layers: dict[str, Any], arrays: dict[str, FloatArray] | None = None, **others: Any) -> Exported:
    topology = parsed(*layers, **{"extra_bits": 4, **others})
    return make_exported(topology, seeded_arrays(topology, 1) | (arrays or {}))


def outputs(network: Exported) -> list[Integers]:
    return [np.asarray(values).astype(np.int64) for values in run_integer(network.quantized, PICTURE)]


def test_add_output_has_the_narrowest_sufficient_datatype() -> None:
    network = exported(convolution(**SAME), convolution(padding=1, name="b"), {"type": "add", "from": ["a", "b"]})
    _, a, b, total = outputs(network)
    assert network.quantized.nodes[-1].type.datatype == DataType(5, False)
    np.testing.assert_array_equal(total, a + b)
    assert network.quantized.nodes[-1].type.scale == 1 / 15


def test_add_output_beyond_8_bits_has_16_bits() -> None:
    network = exported(convolution(output_bits=8, **SAME), {"type": "add", "from": ["a", "a", "a"]})
    _, a, total = outputs(network)
    assert network.quantized.nodes[-1].type.datatype == INT16
    np.testing.assert_array_equal(total, 3 * a)


@pytest.mark.parametrize(("bits", "out"), [(4, 4), (4, 8), (8, 3), (2, 5)])
def test_add_output_with_given_bits_is_clipped_at_one(bits: int, out: int) -> None:
    layers = (convolution(output_bits=bits, **SAME), convolution(output_bits=bits, padding=1, name="b"))
    network = exported(*layers, {"type": "add", "from": ["a", "b"], "output_bits": out})
    _, a, b, total = outputs(network)
    exact = (a + b) * ((1 << out) - 1) / ((1 << bits) - 1)
    np.testing.assert_array_equal(total, np.minimum(np.floor(exact + 0.5), (1 << out) - 1))
    assert total.max() == (1 << out) - 1  # the test is only useful if some values are clipped


def test_convolution_after_an_add_reads_its_scale() -> None:
    network = exported(convolution(**SAME), {"type": "add", "from": ["a", "a"]}, convolution(output_bits=8))
    exact = run_float(network.network, PIXELS)[-1]
    rounded = outputs(network)[1] / 15  # the float network does not round activations
    assert np.abs(outputs(network)[-1] / 255 - exact).max() < 0.2
    assert rounded.max() <= 1


def test_given_thresholds_may_ascend_or_descend() -> None:
    first = {"type": "convolution", "filters": 2, "kernel": 1, "weight_bits": 4, "integers": True, "output_bits": 2}
    arrays: dict[str, FloatArray] = {
        "conv0_w": np.array([[1, 0, 0], [0, 1, 0]], np.float32).reshape(2, 3, 1, 1),
        "conv0_t": np.array([[50, 99.5, 200], [200, 100, 20.5]], np.float32),
    }
    network = exported({**first, "requantise": "given_thresholds"}, arrays=arrays)
    by = as_kind(QConvolution, network.quantized.nodes[1].op).requantiser
    assert isinstance(by, Thresholds)
    values = outputs(network)[1]
    red, green = (PICTURE[channel].astype(np.int64) for channel in (0, 1))
    np.testing.assert_array_equal(values[0], (red >= 50) * 1 + (red >= 100) + (red >= 200))
    np.testing.assert_array_equal(values[1], (green <= 200) * 1 + (green <= 100) + (green <= 20))
    floats = run_float(network.network, PIXELS)[1]
    assert np.corrcoef(floats.ravel(), values.ravel())[0, 1] > 0.9


@pytest.mark.parametrize(
    ("bits", "activation"), [(1, "symmetric"), (2, "symmetric"), (1, "unit"), (4, "unit"), (8, "unit")]
)
def test_seeded_thresholds_give_most_values(bits: int, activation: str) -> None:
    layer = convolution(8, output_bits=bits, activation=activation)
    network = exported(layer, requantise="given_thresholds")
    values = outputs(network)[1]
    datatype = network.quantized.nodes[1].type.datatype
    assert len(np.unique(values)) > 0.75 * (datatype.levels + 1)


def test_given_thresholds_that_rise_and_fall_are_refused() -> None:
    rows = np.array([[0, 1, 2], [0, 2, 1]], np.float32)
    what = "the thresholds of filter 1 of 'convolution1'"
    with raises(InvalidValueError, what=what, got=[0, 2, 1], where="small.json: layer 1"):
        exported(convolution(2, output_bits=2, requantise="given_thresholds"), arrays={"conv0_t": rows})


def test_layer_may_have_its_own_extra_bits() -> None:
    network = exported(convolution(name="a"), convolution(extra_bits=3), extra_bits=6)
    shifts = [as_kind(QConvolution, node.op).requantiser for node in network.quantized.nodes[1:]]
    assert [int(as_kind(MultiplyShift, by).shift[0]) for by in shifts] == [3 + 8 + 6, 3 + 4 + 3]


def test_wrong_layer_is_refused() -> None:
    pool = {"type": "max_pool", "size": 2}
    refusals: list[Refusal] = [
        ([{"type": "add", "from": ["input"]}], RangeError, {"what": "the number of inputs of an add", "got": 1}),
        (
            [convolution(**SAME), pool, {"type": "add", "from": ["a", "max_pool2"]}],
            ShapeError,
            {"what": "the inputs of an add", "got": "4×12×20, 4×6×10", "where": "small.json: layer 3"},
        ),
        ([convolution(requantise="given")], ChoiceError, {"what": "'requantise'", "choices": REQUANTISERS}),
        ([convolution(extra_bits=17)], RangeError, {"what": "'extra_bits'", "got": 17, "high": 16}),
    ]
    check_refusals(lambda layers: parsed(*layers), refusals)


def test_add_of_maps_with_different_datatypes_is_refused() -> None:
    layers = (convolution(**SAME), convolution(padding=1, name="b", output_bits=3))
    with raises(ShapeError, what="the inputs of an add", got="UINT4 of 0.0666667, UINT3 of 0.142857"):
        exported(*layers, {"type": "add", "from": ["a", "b"]})


def test_add_of_the_image_is_refused() -> None:
    with raises(UnsupportedError, subject="an add that reads the picture", where="small.json: layer 1"):
        exported({"type": "add", "from": ["input", "input"]})


def test_add_and_requantise_keys_survive_writing_and_reading() -> None:
    layers = (
        convolution(requantise="given_thresholds", **SAME),
        convolution(padding=1, name="b", extra_bits=3, requantise="multiply_shift"),
        {"type": "add", "from": ["a", "b"], "name": "c", "output_bits": 5},
        {"type": "add", "from": ["c", "c"]},
    )
    topology = parsed(*layers)
    again = parse_topology(topology_text(topology), "small.json")
    assert [layer.op for layer in again.layers] == [layer.op for layer in topology.layers]
