"""Tests of how float arrays become the integers of every layer, against the formulas in Python's own arithmetic."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import (
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    UnknownKeyError,
    UnsupportedError,
)
from cnn import zoo
from cnn.datatype import BIPOLAR, INT8, INT16, INT32, TERNARY, DataType
from cnn.exported.integers import integer_weights
from cnn.exported.network import Exported, array_shapes, make_exported, read_exported
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology import Kernel, Topology
from cnn.exported.topology_file import parse_topology
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.ops import BatchNorm, Convolution, Detection, QConvolution
from cnn.quantisation.fidelity import fidelity
from cnn.quantisation.thresholds import thresholds_of
from cnn.quantized import QuantizedNetwork
from cnn.requantise import MultiplyShift, Requantiser, Requantising, Thresholds
from cnn.stored.quantized_file import from_npz, to_npz
from tests.support.errors import Refusal, check_refusals, raises
from tests.support.exported import convolution, described, parsed
from tests.support.kinds import as_kind
from tests.support.networks import picture as waves

HEAD = {"type": "one_object", "anchors": [[20, 20], [10, 30]], "classes": 1}


SKIP = described(
    convolution(8, padding=1, name="c0"),
    {"type": "max_pool", "size": 2, "name": "p0"},
    convolution(6, padding=1, name="c1", weight_bits=2),
    convolution(6, padding=1, name="c2", weight_bits=1, output_bits=4),
    {"type": "reorg", "stride": 2, "from": "c0", "name": "reorg"},
    {"type": "concat", "from": ["reorg", "c2"], "name": "both"},
    convolution(10, padding=1, name="c3", weight_bits=5, output_bits=3),
    {"type": "convolution", "filters": 12, "kernel": 1, "weight_bits": 4, "name": "sums"},
    HEAD,
    batch_norm={"epsilon": 1e-3, "added_to": "root"},
)


def skip(order: str = "RGB") -> Topology:
    """Return a network with convolutions of 1, 2, 4 and 5 bits, a pool, a head, and a skip through a reorg and a
    concat."""
    return parse_topology(json.dumps({**SKIP, "input": {**SKIP["input"], "order": order}}), "skip.json")


def seeded_network(seed: int = 1, order: str = "RGB") -> Exported:
    topology = skip(order)
    return make_exported(topology, seeded_arrays(topology, seed))


def picture_of(network: Exported, seed: int = 0) -> np.ndarray:
    shape = network.topology.input
    return np.random.default_rng(seed).integers(0, 256, (shape.channels, shape.height, shape.width), np.uint8)


def requantiser_of(network: QuantizedNetwork, index: int) -> Requantising:
    return as_kind(QConvolution, network.nodes[index].op).requantiser


# ---------------------------------------------------------------- formulas


@pytest.mark.parametrize(("bits", "datatype"), [(1, BIPOLAR), (2, TERNARY), (4, DataType(4, True)), (8, INT8)])
def test_weight_of_each_bit_width_is_rounded_by_the_formula(bits: int, datatype: DataType) -> None:
    weights = np.random.default_rng(bits).normal(0, 1, (3, 2, 3, 3)).astype(np.float32)
    integers, found = integer_weights(weights, bits, "here")
    assert found == datatype
    most = max(abs(math.tanh(w)) for w in weights.ravel().tolist())
    n = 2 ** (bits - 1) - 1
    for w, integer in zip(weights.ravel().tolist(), integers.ravel().tolist(), strict=True):
        assert integer == ((1 if w >= 0 else -1) if bits == 1 else round(n * math.tanh(w) / most))


def test_multiplier_bias_and_shift_equal_their_definitions() -> None:
    """Compute the definitions in float64."""
    network = seeded_network()
    for node, layer in zip(network.quantized.nodes[1:], network.topology.layers, strict=True):
        op = node.op
        if not isinstance(op, QConvolution) or not isinstance(op.requantiser, MultiplyShift):
            continue
        kernel = as_kind(Kernel, layer.op)
        in_bits = network.quantized.nodes[node.inputs[0]].type.datatype.bits
        shift = (kernel.weight_bits - 1) + in_bits + 8
        assert op.requantiser.shift.tolist() == [shift] * kernel.filters
        n = max(2 ** (kernel.weight_bits - 1) - 1, 1)
        for c in range(kernel.filters):
            gamma, beta, mean, var = (
                float(network.arrays[f"bn{kernel.number}_{part}"][c]) for part in ("gamma", "beta", "mean", "var")
            )
            a = gamma / (math.sqrt(var) + 1e-3)
            one = (2 ** as_kind(int, kernel.output_bits) - 1) * 2**shift
            inc, bias = a * one / (n * (2**in_bits - 1)), (beta - mean * a) * one
            # float32 has 24 bits of precision, and four float32 operations separate the integers from the arrays.
            assert abs(op.requantiser.multiplier[c] - inc) <= 0.5 + abs(inc) * 2**-22
            assert abs(op.requantiser.bias[c] - bias) <= 0.5 + (abs(beta) + abs(mean * a)) * one * 2**-22


def test_outputs_differ_from_the_trained_network_by_at_most_a_rounding() -> None:
    """Compare each layer with clamp(a · sum + b, 0, 1), computed from the integers of the layer before it.

    The output has steps of 1 / (2^bits − 1). Multiplier and bias are rounded too, which may add 0.02 steps to the half
    step of the output's rounding.
    """
    network = seeded_network(3)
    outputs = run_integer(network.quantized, picture_of(network))
    for node, float_node, layer in zip(
        network.quantized.nodes[1:], network.network.nodes[1:], network.topology.layers, strict=True
    ):
        op = node.op
        if not isinstance(op, QConvolution) or not isinstance(op.requantiser, MultiplyShift):
            continue
        before = network.quantized.nodes[node.inputs[0]]
        convolution, kernel = as_kind(Convolution, float_node.op), as_kind(Kernel, layer.op)
        weights, norm = convolution.weights.astype(float), as_kind(BatchNorm, convolution.batch_norm)
        values = np.asarray(outputs[node.inputs[0]]) * before.type.scale
        pad, k = kernel.padding.top, kernel.size
        padded = np.pad(values, ((0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (1, 2))
        sums = np.einsum("chwij,fcij->fhw", windows, weights)
        gain = (norm.scale / np.sqrt(norm.variance.astype(float)))[:, None, None]
        wanted = np.clip((sums - norm.mean[:, None, None]) * gain + convolution.bias[:, None, None], 0, 1)
        off = np.abs(np.asarray(outputs[network.quantized.nodes.index(node)]) - wanted * node.type.datatype.high)
        assert off.max() <= 0.52
        assert (off > 0.5).mean() < 0.02


def small(requantise: str, *bits: tuple[int, str]) -> Exported:
    """Return convolutions of 3×3 with 3-bit weights, one per (output bits, activation), and a last layer of sums."""
    layers = [
        convolution(6, 3, weight_bits=3, output_bits=out, activation=name, name=f"c{i}")
        for i, (out, name) in enumerate(bits)
    ]
    sums = {"type": "convolution", "filters": 3, "kernel": 1, "weight_bits": 4, "name": "sums"}
    topology = parsed(*layers, sums, requantise=requantise)
    return make_exported(topology, seeded_arrays(topology, 11))


@pytest.mark.parametrize("requantise", ["thresholds", "multiply_shift"])
@pytest.mark.parametrize("bits", [(1, "symmetric"), (2, "symmetric"), (1, "unit"), (3, "unit")])
def test_thresholds_are_at_the_steps_of_the_activation(requantise: str, bits: tuple[int, str]) -> None:
    """Check each threshold and the sum just below it in exact fractions. BIPOLAR outputs always have thresholds."""
    network = small(requantise, bits, (4, "unit"))
    datatype = network.quantized.nodes[1].type.datatype
    rough = requantise == "multiply_shift" and datatype != BIPOLAR
    requantiser = requantiser_of(network.quantized, 1)
    assert isinstance(requantiser, MultiplyShift if rough else Thresholds)
    by = thresholds_of(requantiser, datatype)
    arrays, sums = network.arrays, 3 * 255
    for c in range(6):
        deviation = np.sqrt(arrays["bn0_var"][c] + np.float32(1e-5))
        a = Fraction(float(arrays["bn0_gamma"][c] / deviation))
        offset = arrays["bn0_beta"][c] - arrays["bn0_mean"][c] / deviation * arrays["bn0_gamma"][c]
        b = Fraction(float(offset))
        assert by.flip[c] == (a < 0)
        for i, t in enumerate(by.thresholds[c].tolist()):
            edge = Fraction(0) if datatype == BIPOLAR else (datatype.low + i + 1 - Fraction(1, 2)) / datatype.high
            values = [abs(a) * (t - before) / sums + b for before in (0, 1)]
            off = abs(a) / sums * 2 if rough else Fraction(1, 10**12)
            assert values[0] >= edge - off
            assert values[1] < edge + off


def test_binary_and_ternary_outputs_are_exact_integers() -> None:
    network = small("thresholds", (1, "symmetric"), (2, "symmetric"), (2, "unit"))
    types = [node.type for node in network.quantized.nodes[1:4]]
    assert [one.datatype.name for one in types] == ["BIPOLAR", "TERNARY", "UINT2"]
    assert [one.scale for one in types] == [1.0, 1.0, pytest.approx(1 / 3)]
    outputs = run_integer(network.quantized, picture_of(network))
    floats = run_float(network.network, picture_of(network).astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(outputs[1], floats[1])  # nothing is rounded before the first sign
    rounded = np.rint(floats[2])
    assert (np.asarray(outputs[2]) == rounded).mean() > 0.999
    assert {-1, 0, 1} == set(np.unique(np.asarray(outputs[2])).tolist())


@pytest.mark.parametrize("sides", [(1, 1), (3, 5), (12, 20), (64, 100)])
def test_average_pool_is_rounded_to_the_nearest(sides: tuple[int, int]) -> None:
    high, wide = sides
    topology = parsed(convolution(5, 1), {"type": "average_pool"}, input={"channels": 3, "height": high, "width": wide})
    network = make_exported(topology, seeded_arrays(topology, 1))
    before, mean = map(np.asarray, run_integer(network.quantized, picture_of(network))[1:])
    for c in range(5):
        exact = Fraction(int(before[c].astype(int).sum()), high * wide)
        assert abs(int(mean[c, 0, 0]) - exact) <= Fraction(1, 2) + Fraction(1, 1000)


def test_epsilon_is_added_to_the_variance_or_to_its_root() -> None:
    """Use epsilon 1e-3 and a variance of 0.01, for which the two forms √0.011 and √0.01 + 0.001 differ by 4 %."""
    topology = parsed(convolution(4, 1), batch_norm={"epsilon": 1e-3})
    arrays = seeded_arrays(topology, 1)
    arrays["bn0_var"] = np.full(4, 0.01, np.float32)
    joined, added = (
        as_kind(MultiplyShift, requantiser_of(make_exported(described, arrays).quantized, 1)).multiplier
        for described in (topology, replace(topology, epsilon_of="root"))
    )
    ratio = added / joined
    np.testing.assert_allclose(ratio, math.sqrt(0.011) / 0.101, rtol=1e-3)


# ---------------------------------------------------------------- networks


@pytest.mark.parametrize("seed", range(3))
def test_float_form_stays_near_the_integers(seed: int) -> None:
    network = seeded_network(seed)
    layers = {layer.name: layer for layer in fidelity(network.network, network.quantized, picture_of(network))}
    assert min(layers[name].sqnr_db for name in ("c0", "p0", "reorg")) > 25
    assert min(layer.sqnr_db for layer in layers.values()) > 8


def test_bgr_network_reads_the_channels_in_reverse() -> None:
    """Check that arrays trained on BGR images give the same integers for an image with reversed channels."""
    rgb, bgr = seeded_network(2), seeded_network(2, "BGR")
    picture = picture_of(rgb)
    for one, other in zip(
        run_integer(rgb.quantized, picture)[1:],
        run_integer(bgr.quantized, np.ascontiguousarray(picture[::-1]))[1:],
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    first, second = (as_kind(QConvolution, network.quantized.nodes[1].op).weights for network in (rgb, bgr))
    assert not np.array_equal(first, second)


def test_head_takes_the_bias_of_its_convolution() -> None:
    network = seeded_network()
    sums, head = network.quantized.nodes[-2], network.quantized.nodes[-1]
    assert isinstance(head.op, Detection)
    assert head.op.bias == tuple(network.arrays["conv4_b"].tolist())
    requantiser = as_kind(QConvolution, sums.op).requantiser
    assert not as_kind(Requantiser, requantiser).bias.any()
    assert sums.type.datatype == INT16
    assert sums.type.scale == pytest.approx(1 / (7 * 7))


def test_last_layer_without_a_head_rounds_its_bias_to_the_sums() -> None:
    topology = parsed({"type": "convolution", "filters": 5, "kernel": 1, "weight_bits": 4})
    arrays = seeded_arrays(topology, 1)
    requantiser = requantiser_of(make_exported(topology, arrays).quantized, 1)
    assert as_kind(Requantiser, requantiser).bias.tolist() == [round(b * 7 * 255) for b in arrays["conv0_b"].tolist()]
    large = parsed({"type": "convolution", "filters": 5, "kernel": 9, "weight_bits": 8})
    assert make_exported(large, seeded_arrays(large, 1)).quantized.nodes[1].type.datatype == INT32


@pytest.mark.parametrize("name", ["ultranet", "ultranet-skip", "cnv-w1a1", "mobilenet-w4a4"])
def test_seeded_network_has_few_constant_channels(name: str) -> None:
    """Use an input smaller than the built-in size, to keep the test fast. The layers are the same."""
    values = json.loads(zoo.topology_file(name).read_text())
    values["input"] |= {"height": 64, "width": 96}
    topology = parse_topology(json.dumps(values), name)
    network = make_exported(topology, seeded_arrays(topology, 7))
    picture, falls = waves(topology.input), []
    outputs = run_integer(network.quantized, picture)
    for node, output in zip(network.quantized.nodes, map(np.asarray, outputs), strict=True):
        if not isinstance(node.op, QConvolution) or isinstance(node.op.requantiser, Requantiser):
            continue
        by = node.op.requantiser
        falls += (by.multiplier < 0 if isinstance(by, MultiplyShift) else by.flip).tolist()
        dead = (output.max(axis=(1, 2)) == output.min(axis=(1, 2))).mean()
        assert dead < 0.2, node.name
        middle = (output.mean() - node.type.datatype.low) / (node.type.datatype.high - node.type.datatype.low)
        assert 0.15 < middle < 0.6, node.name
    assert 0.15 < np.mean(falls) < 0.35


def test_seed_determines_the_network() -> None:
    topology = skip()
    one, same, other = (make_exported(topology, seeded_arrays(topology, seed)) for seed in (5, 5, 6))
    assert to_npz(one.quantized) == to_npz(same.quantized) != to_npz(other.quantized)
    assert list(seeded_arrays(topology, 5)) == list(array_shapes(topology))
    with raises(RangeError, what="the seed", got=-1, low=0, high=(1 << 64) - 1):
        seeded_arrays(topology, -1)


def test_zoo_gives_the_float_and_the_integer_form() -> None:
    network = zoo.load_exported("ultranet", 1)
    loaded = as_kind(Convolution, zoo.load("ultranet", 1).nodes[1].op)
    np.testing.assert_array_equal(loaded.weights, as_kind(Convolution, network.network.nodes[1].op).weights)
    with raises(MissingValueError, what="the weights file of ultranet.json"):
        zoo.load("ultranet")
    with raises(UnsupportedError, subject="the built-in network 'shapes'"):
        zoo.load_exported("shapes")


# ---------------------------------------------------------------- refused arrays and layers


def make_with_array(name: str, array: np.ndarray) -> None:
    topology = skip()
    make_exported(topology, {**seeded_arrays(topology, 1), name: array})


def test_arrays_out_of_range_are_refused() -> None:
    arrays, layer = seeded_arrays(skip(), 1), "skip.json: layer 1"
    beta = 1e12 + arrays["bn1_beta"]
    refusals: list[Refusal] = [
        (("conv0_w", np.zeros((8, 3, 3, 3))), InvalidValueError, {"what": "the greatest weight", "where": layer}),
        (("bn0_var", -arrays["bn0_var"]), RangeError, {"what": "a variance", "low": 0, "where": layer}),
        (("bn0_gamma", 1e6 * arrays["bn0_gamma"]), RangeError, {"what": "inc of 'c0'", "high": 65535, "where": layer}),
        (("bn0_gamma", np.full(8, np.inf)), InvalidValueError, {"got": np.inf, "where": layer}),
        (
            ("bn1_beta", beta),
            RangeError,
            {"what": "bias of 'c1'", "high": (1 << 47) - 1},
        ),
    ]
    check_refusals(lambda case: make_with_array(case[0], np.asarray(case[1], np.float32)), refusals)
    topology = parsed(convolution(4, 1), batch_norm={"epsilon": 0})
    with raises(RangeError, got=0.0, low=0, exclusive=True):
        make_exported(topology, {**seeded_arrays(topology, 1), "bn0_var": np.zeros(4, np.float32)})


def test_sum_of_more_than_32_bits_is_refused() -> None:
    sums = {"type": "convolution", "filters": 2, "kernel": 1, "weight_bits": 8}
    topology = parsed(convolution(2, 1), sums)
    with raises(RangeError, high=(1 << 31) - 1, where="small.json: layer 2"):
        make_exported(topology, {**seeded_arrays(topology, 1), "conv1_b": np.full(2, 1e9, np.float32)})


def test_bgr_image_read_by_another_layer_than_a_convolution_is_refused() -> None:
    bgr, layer = {"channels": 3, "height": 12, "width": 20, "order": "BGR"}, "small.json: layer 1"
    topology = parsed({"type": "max_pool", "size": 2}, convolution(4, 1), input=bgr)
    with raises(UnsupportedError, subject="'max_pool1' that reads a picture in BGR order", where=layer):
        make_exported(topology, seeded_arrays(topology, 1))
    topology = parsed(convolution(3, 1, groups=3), input=bgr)
    with raises(UnsupportedError, subject="a picture in BGR order for 3 groups of 1 channels", where=layer):
        make_exported(topology, seeded_arrays(topology, 1))


def test_concat_of_different_bits_is_refused() -> None:
    topology = parsed(
        convolution(4, 1, name="a"),
        convolution(4, 1, name="b", output_bits=2, **{"from": "input"}),
        {"type": "concat", "from": ["a", "b"]},
    )
    with raises(MismatchError, what="the type, since it passes 'b' on,", where="'concat3' (small.json: layer 3)"):
        make_exported(topology, seeded_arrays(topology, 1))


def test_integers_survive_writing_and_reading() -> None:
    network = seeded_network(4)
    data = to_npz(network.quantized)
    again = from_npz(data)
    assert to_npz(again) == data
    picture = picture_of(network)
    for one, other in zip(run_integer(network.quantized, picture), run_integer(again, picture), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.nodes[-1].op == network.quantized.nodes[-1].op
    assert again.nodes[5].op == network.quantized.nodes[5].op


# ---------------------------------------------------------------- files


def saved(tmp_path: Path, epsilon: float = 1e-3) -> tuple[Path, Path]:
    """Save the arrays of ``skip`` in two files: by numbers, as the exporters' np.savez writes them, and by names."""
    arrays = seeded_arrays(skip(), 1)
    numbered: list[np.ndarray] = []
    for name, array in arrays.items():
        numbered += [array, np.array(epsilon)] if name.endswith("_var") else [array]
    np.savez(tmp_path / "numbered.npz", *numbered)
    named: dict[str, Any] = dict(arrays)
    np.savez_compressed(tmp_path / "named.npz", **named)
    values = described(
        {"type": "convolution", "filters": 4, "kernel": 1, "weight_bits": 4}, input={"height": 2, "width": 2}
    )
    (tmp_path / "other.json").write_text(json.dumps(values))
    return tmp_path / "numbered.npz", tmp_path / "named.npz"


def test_named_and_numbered_arrays_give_one_network(tmp_path: Path) -> None:
    numbered, named = saved(tmp_path)
    (tmp_path / "skip.json").write_text(json.dumps(SKIP))
    one, other = (read_exported(tmp_path / "skip.json", path) for path in (numbered, named))
    assert to_npz(one.quantized) == to_npz(other.quantized)
    assert list(one.arrays) == list(other.arrays) == list(array_shapes(skip()))


def test_epsilon_of_arrays_must_equal_the_network(tmp_path: Path) -> None:
    numbered, _ = saved(tmp_path, 1e-5)
    (tmp_path / "skip.json").write_text(json.dumps(SKIP))
    with raises(MismatchError, got=1e-5, expected=1e-3, where="numbered.npz"):
        read_exported(tmp_path / "skip.json", numbered)


def test_arrays_of_another_network_are_refused(tmp_path: Path) -> None:
    numbered, named = saved(tmp_path)
    with raises(MissingValueError, what="the array 'conv0_b' (4,)", where="named.npz"):
        read_exported(tmp_path / "other.json", named)
    with raises(UnknownKeyError, known=("arr_0", "arr_1"), where="numbered.npz") as caught:
        read_exported(tmp_path / "other.json", numbered)
    assert list(caught.value.keys)[:2] == ["arr_2", "arr_3"]


def test_integer_weights_are_read_unchanged_and_fractions_refused() -> None:
    described_whole = described(
        {"type": "convolution", "filters": 2, "kernel": 1, "weight_bits": 4, "integers": True, "scale": 0.5}
    )
    topology = parse_topology(json.dumps(described_whole), "net.json")
    weights = np.array([[-7, 0, 3], [1, 2, 7]], np.float32).reshape(2, 3, 1, 1)
    arrays = {"conv0_w": weights, "conv0_b": np.zeros(2, np.float32)}
    exported = make_exported(topology, arrays)
    op = as_kind(QConvolution, exported.quantized.nodes[1].op)
    assert op.weights.tolist() == weights.tolist()
    assert exported.quantized.nodes[1].type.scale == pytest.approx(0.5 / 7 / 255)
    assert as_kind(Convolution, exported.network.nodes[1].op).weights == pytest.approx(weights / 7 * 0.5)
    for wrong in (8, 0.5):
        with raises(InvalidValueError, what="a number of conv0_w", got=wrong):
            make_exported(topology, {**arrays, "conv0_w": np.full_like(weights, wrong)})
