"""Tests that layers trained in low precision give exactly the golden model's integers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs PyTorch: pip install -e '.[train]'")

from boards.errors import ChoiceError, InvalidValueError, MismatchError, MissingValueError, RangeError, UnsupportedError  # noqa: E402
from cnn import zoo  # noqa: E402
from cnn.exported.network import make_exported, read_exported  # noqa: E402
from cnn.exported.seed import seeded_arrays  # noqa: E402
from cnn.exported.topology import Sum, Topology  # noqa: E402
from cnn.exported.topology_file import parse_topology  # noqa: E402
from cnn.float_model import run_float  # noqa: E402
from cnn.integer_model import run_integer  # noqa: E402
from cnn.maps import Padding, Shape  # noqa: E402
from cnn.network import Network  # noqa: E402
from cnn.ops import (  # noqa: E402
    Add,
    AveragePool,
    Concat,
    MaxPool,
    Reorg,
    Softmax,
    Upsample,
    Yolo,
)
from cnn.quantized import QuantizedNetwork  # noqa: E402
from cnn.training.conversion import initialise, normalised, topology_of  # noqa: E402
from cnn.training.network import QuantisedNetwork  # noqa: E402
from tests.support.errors import raises  # noqa: E402
from tests.support.networks import convolution, dense, network, tiny_yolo  # noqa: E402
from tests.support.pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.engine


def joined() -> Network:
    """Return a network with strides, groups, joins of different scales, both orders of a reorg, and few batch norms."""
    r = np.random.default_rng(5)
    return network(
        Shape(3, 16, 24),
        ("wide", convolution(r, 3, 8, batch_norm=True), [0], Shape(8, 16, 24)),
        ("half", convolution(r, 8, 8, stride=2, activation="relu"), [1], Shape(8, 8, 12)),
        ("apart", convolution(r, 8, 8, groups=4, batch_norm=True, activation="relu6"), [2], Shape(8, 8, 12)),
        ("blocks", Reorg(2, "block"), [1], Shape(32, 8, 12)),
        ("words", Reorg(2), [1], Shape(32, 8, 12)),
        ("small", MaxPool(2, 2, Padding()), [3], Shape(8, 4, 6)),
        ("large", Upsample(2), [6], Shape(8, 8, 12)),
        ("all", Concat(), [4, 5, 7], Shape(72, 8, 12)),
        ("head", convolution(r, 72, 14, kernel=1, activation="linear"), [8], Shape(14, 8, 12)),
        ("yolo", Yolo(((10.0, 13.0), (33.0, 23.0)), 2, False), [9], Shape(14, 8, 12)),
    )


def classified() -> Network:
    """Return a classifier with an average over the map, and a dense layer before the softmax."""
    r = np.random.default_rng(6)
    return network(
        Shape(3, 12, 12),
        ("conv", convolution(r, 3, 8, batch_norm=True), [0], Shape(8, 12, 12)),
        ("pool", MaxPool(2, 2, Padding()), [1], Shape(8, 6, 6)),
        ("dense", dense(r, 288, 16, "relu"), [2], Shape(16, 1, 1)),
        ("mean", AveragePool(), [2], Shape(8, 1, 1)),
        ("both", Concat(), [3, 4], Shape(24, 1, 1)),
        ("classes", dense(r, 24, 5), [5], Shape(5, 1, 1)),
        ("softmax", Softmax(), [6], Shape(5, 1, 1)),
    )


def added(batch_norm: bool = True) -> Network:
    """Return a network with sums of two and three maps, among them sums, pooled maps and layers without activation."""
    r = np.random.default_rng(7)
    return network(
        Shape(3, 16, 16),
        ("stem", convolution(r, 3, 8, batch_norm=batch_norm, activation="relu"), [0], Shape(8, 16, 16)),
        ("first", convolution(r, 8, 8, batch_norm=batch_norm, activation="linear"), [1], Shape(8, 16, 16)),
        ("sum", Add("relu"), [1, 2], Shape(8, 16, 16)),
        ("half", MaxPool(2, 2, Padding()), [3], Shape(8, 8, 8)),
        ("second", convolution(r, 8, 8, batch_norm=batch_norm, activation="relu"), [4], Shape(8, 8, 8)),
        ("apart", convolution(r, 8, 8, batch_norm=batch_norm), [5], Shape(8, 8, 8)),
        ("all", Add("linear"), [4, 5, 6], Shape(8, 8, 8)),
        ("head", convolution(r, 8, 14, kernel=1, activation="linear"), [7], Shape(14, 8, 8)),
        ("yolo", Yolo(((10.0, 13.0), (33.0, 23.0)), 2, False), [8], Shape(14, 8, 8)),
    )


def some_pictures(shape: Shape, count: int) -> np.ndarray:
    """Return images of coarse patches, which give layers structure to respond to."""
    random = np.random.default_rng(3)
    coarse = random.integers(0, 256, (count, shape.channels, -(-shape.height // 4), -(-shape.width // 4)), np.uint8)
    return coarse.repeat(4, 2).repeat(4, 3)[:, :, : shape.height, : shape.width]


def trained(source: Network, method: str, bits: int, steps: int = 3) -> Any:
    """Train a few steps without a useful goal, so that every number moves."""
    topology = topology_of(source, bits, "plain")
    model = QuantisedNetwork(topology, method, normalised(source, topology))
    pictures = torch.from_numpy(some_pictures(source.input_shape, 4)).float() / 255
    initialise(model, source, pictures)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(steps):
        optimiser.zero_grad()
        sum((output**2).mean() for output in model(pictures)).backward()
        optimiser.step()
    return model


def differences(model: Any, integers: QuantizedNetwork, pictures: np.ndarray) -> list[str]:
    """Return the names of layers whose integers differ or are all zero."""
    mine, wrong = model.integers(pictures), []
    for number, picture in enumerate(pictures):
        golden = run_integer(integers, picture)
        for node, expected, values in zip(integers.nodes[1:], golden[1:], mine, strict=True):
            if expected is not None and not (np.array_equal(expected, values[number]) and expected.any()):
                wrong.append(node.name)
    return wrong


def test_activations_equal_the_golden_integers() -> None:
    networks = (tiny_yolo(), joined(), classified(), added())
    for source, method, bits in pairwise(source=networks, method=("lsq", "dorefa"), bits=(2, 4, 8)):
        model = trained(source, method, bits)
        exported = make_exported(*model.exported())
        wrong = differences(model, exported.quantized, some_pictures(source.input_shape, 2))
        assert wrong == [], (source.name, method, bits)


@pytest.mark.parametrize("method", ["lsq", "dorefa"])
def test_training_moves_every_parameter(method: str) -> None:
    source = tiny_yolo()
    before, after = trained(source, method, 4, 0), trained(source, method, 4)
    still = [
        name
        for (name, first), (_, last) in zip(before.named_parameters(), after.named_parameters(), strict=True)
        if torch.equal(first, last)
    ]
    assert still == []


def test_network_in_8_bits_starts_near_the_float_network() -> None:
    source = tiny_yolo(batch_norm=False)
    model = trained(source, "lsq", 8, 0)
    dorefa = trained(source, "dorefa", 8, 0)
    pictures = torch.from_numpy(some_pictures(source.input_shape, 2)).float() / 255
    with torch.no_grad():
        first, second = model.eval()(pictures)[0], dorefa.eval()(pictures)[0]
    assert float((first - second).abs().mean()) < 0.05 * float(first.abs().mean())


@pytest.mark.parametrize("name", ["ultranet", "ultranet-skip", "mobilenet-w4a4"])
def test_built_in_topologies_equal_the_golden_integers(name: str) -> None:
    topology = parse_topology(zoo.topology_file(name).read_text(), name)
    topology = topology_at(topology, 64, 64)
    arrays = seeded_arrays(topology, 1)
    model = QuantisedNetwork(topology, "dorefa")
    model.load(arrays)
    assert {key: value.tolist() for key, value in model.exported()[1].items()} == {
        key: value.tolist() for key, value in arrays.items()
    }
    exported = make_exported(topology, arrays)
    assert differences(model, exported.quantized, some_pictures(topology.input, 1)) == []


def topology_at(topology: Any, height: int, width: int) -> Any:
    """Return the same topology for another image size."""
    values = json.loads(zoo.topology_file(topology.name.replace("_", "-")).read_text())
    values["input"] |= {"height": height, "width": width}
    return parse_topology(json.dumps(values), topology.name)


@pytest.mark.shared
def test_trained_ultranet_equals_the_golden_integers_of_all_nine_layers(shared: Path) -> None:
    weights = shared / "data/ultranet/ultranet_4w4a.npz"
    exported = read_exported(zoo.folder("ultranet") / "ultranet.json", weights)
    model = QuantisedNetwork(exported.topology, "dorefa")
    model.load(exported.arrays)
    with np.load(shared / "data/ultranet/boat6_0_int_golden.npz") as arrays:
        golden = dict(arrays)
    picture = np.ascontiguousarray(golden["input"][..., ::-1].transpose(2, 0, 1))
    names = [layer.name for layer in exported.topology.layers]
    outputs = dict(zip(names, model.integers(picture[None]), strict=True))
    for number in range(8):
        np.testing.assert_array_equal(outputs[f"conv{number}"][0], golden[f"conv{number}_out"], f"conv{number}")
    np.testing.assert_array_equal(outputs["conv8"][0], golden["conv8_acc"])


def test_layers_that_cannot_be_trained_are_refused() -> None:
    r = np.random.default_rng(1)
    last = network(
        Shape(3, 8, 8),
        ("first", convolution(r, 3, 8), [0], Shape(8, 8, 8)),
        ("second", convolution(r, 8, 8), [1], Shape(8, 8, 8)),
        ("sum", Add("linear"), [1, 2], Shape(8, 8, 8)),
    )
    with raises(UnsupportedError, subject="training of Add 'sum' in low precision", where="test:4"):
        topology_of(last, 4, "plain")
    linear = network(
        Shape(3, 8, 8),
        ("first", convolution(r, 3, 8, activation="linear"), [0], Shape(8, 8, 8)),
        ("second", convolution(r, 8, 8, activation="linear"), [1], Shape(8, 8, 8)),
    )
    with raises(ChoiceError, got="linear", choices=("leaky", "relu", "relu6", "unit"), where="test:2"):
        topology_of(linear, 4, "plain")
    dilated = replace(convolution(r, 3, 8), dilation=(2, 2), padding=Padding(2, 2, 2, 2))
    apart = network(Shape(3, 8, 8), ("first", dilated, [0], Shape(8, 8, 8)))
    with raises(InvalidValueError, got=(2, 2), required="1 for rows and for columns", where="test:2"):
        topology_of(apart, 4, "plain")
    with raises(ChoiceError, what="a method of training", got="pact", choices=("lsq", "dorefa")):
        QuantisedNetwork(topology_of(tiny_yolo(), 4, "plain"), "pact")
    binary = parse_topology(zoo.topology_file("cnv-w1a1").read_text(), "cnv.json")
    with raises(RangeError, got=1, low=2, high=8, where="cnv.json: layer 1"):
        QuantisedNetwork(binary, "dorefa")


@pytest.mark.parametrize("method", ["lsq", "dorefa"])
def test_sums_in_8_bits_start_near_the_float_network(method: str) -> None:
    """Check the range of a sum, within which no value may be clipped, and the shared step of its inputs."""
    source = added(batch_norm=False)
    model = trained(source, method, 8, 0)
    pictures = some_pictures(source.input_shape, 4)
    floats = [run_float(source, picture.astype(np.float32) / np.float32(255)) for picture in pictures]
    exact = np.stack([each[1] + np.clip(each[2], 0, None) for each in floats])
    integers = model.integers(pictures)[2].astype(np.float64)
    scale = (integers * exact).sum() / (integers**2).sum()
    assert ((integers * scale - exact) ** 2).mean() < 0.05 * (exact**2).mean()


def test_add_of_other_bits_is_refused() -> None:
    topology = topology_of(added(), 4, "plain")

    def with_bits(bits: int | None) -> Topology:
        layers = (replace(layer, op=Sum(bits)) if isinstance(layer.op, Sum) else layer for layer in topology.layers)
        return replace(topology, layers=tuple(layers))

    with raises(MissingValueError, what="'output_bits' of 'sum'", where="test:4"):
        QuantisedNetwork(with_bits(None), "lsq")
    with raises(MismatchError, got=3, expected=4, where="test:4"):
        QuantisedNetwork(with_bits(3), "lsq")
