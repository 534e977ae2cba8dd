"""Tests of weights fitted to images: they are nearer to the floats than rounded weights, and keep the same types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageFilter

from cnn.darknet.files import read_darknet
from cnn.network import Network
from cnn.ops import Convolution, QConvolution
from cnn.quantisation import reconstruction
from cnn.quantisation.calibration import calibrate
from cnn.quantisation.fidelity import heads_sqnr_db
from cnn.quantisation.quantise import quantise
from cnn.quantized import QuantizedNetwork
from cnn.zoo import seeded
from tests.support import networks

CFG = """[net]\nwidth=32\nheight=24\nchannels=3
[convolutional]\nfilters=8\nsize=3\npad=1\nstride=1\nactivation=leaky\nbatch_normalize=1
[maxpool]\nsize=2\nstride=2
[convolutional]\nfilters=16\nsize=3\npad=1\nstride=2\nactivation=leaky\nbatch_normalize=1
[convolutional]\nfilters=16\ngroups=4\nsize=3\npad=1\nstride=1\nactivation=relu
[convolutional]\nfilters=12\nsize=1\nactivation=linear
"""
Pictures = list[npt.NDArray[np.uint8]]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    path = tmp_path_factory.mktemp("cfg") / "net.cfg"
    path.write_text(CFG)
    return read_darknet(path, None, weight_source=seeded(4))


def drawn(count: int, seed: int) -> Pictures:
    """Return images of smooth noise, as uint8 arrays of shape (3, 24, 32)."""
    random = np.random.default_rng(seed)
    noise = (Image.fromarray(random.integers(0, 256, (24, 32, 3), np.uint8)) for _ in range(count))
    smooth = (np.asarray(picture.filter(ImageFilter.GaussianBlur(2)), np.float32) for picture in noise)
    return [np.clip((picture - 128) * 4 + 128, 0, 255).astype(np.uint8).transpose(2, 0, 1).copy() for picture in smooth]


def quantised(network: Network, pictures: Pictures, fitted: Pictures, bits: int = 4) -> QuantizedNetwork:
    ranges = calibrate(
        network, [picture.astype(np.float32) / np.float32(255) for picture in pictures], "mse", bits=bits
    )
    return quantise(network, ranges, bits=bits, activation_bits=bits, pictures=fitted)


def head_db(network: Network, integers: QuantizedNetwork, pictures: Pictures) -> float:
    (ratio,) = heads_sqnr_db(network, integers, pictures).values()
    return ratio


@pytest.mark.parametrize("inputs", [reconstruction.MAX_INPUTS, 20])
def test_fitted_weights_are_better_on_other_images(
    network: Network, inputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconstruction, "MAX_INPUTS", inputs)
    pictures, others = drawn(12, 1), drawn(4, 2)
    nearest, fitted = quantised(network, pictures, []), quantised(network, pictures, pictures)
    assert head_db(network, fitted, pictures) > head_db(network, nearest, pictures) + 2
    assert head_db(network, fitted, others) > head_db(network, nearest, others) + 1
    for node in fitted.nodes:
        if isinstance(node.op, QConvolution):
            assert np.abs(node.op.weights).max() <= 7


def test_fitted_network_has_the_types_of_the_rounded_one(network: Network) -> None:
    pictures = drawn(4, 1)
    nearest, fitted = quantised(network, pictures, []), quantised(network, pictures, pictures)
    assert [node.type for node in nearest.nodes] == [node.type for node in fitted.nodes]
    for a, b in zip(nearest.nodes, fitted.nodes, strict=True):
        if isinstance(a.op, QConvolution):
            assert isinstance(b.op, QConvolution)
            assert a.op.weight_type == b.op.weight_type
            assert a.op.weights.shape == b.op.weights.shape


def test_integer_weights_are_not_changed_by_the_fit(network: Network) -> None:
    """Use the first layer, whose inputs are exact, so that there is no error to compensate."""
    op = network.nodes[1].op
    assert isinstance(op, Convolution)
    weights = np.random.default_rng(0).integers(-7, 8, op.weights.shape)
    weights[:, 0, 0, 0] = 7
    whole = replace(op, weights=np.asarray(weights / 8, np.float32), batch_norm=None)
    nodes = (network.nodes[0], replace(network.nodes[1], op=whole), *network.nodes[2:])
    integers = quantised(replace(network, nodes=nodes), drawn(4, 1), drawn(4, 1)).nodes[1].op
    assert isinstance(integers, QConvolution)
    assert np.array_equal(integers.weights, weights)


def test_fit_works_with_layers_of_every_kind(network: Network) -> None:
    branches = networks.branches()
    shape = branches.input_shape
    pictures = [(255 * picture).astype(np.uint8) for picture in networks.pictures(shape, 4)]
    nearest, fitted = quantised(branches, pictures, [], 8), quantised(branches, pictures, pictures, 8)
    for name, ratio in heads_sqnr_db(branches, fitted, pictures).items():
        assert ratio > heads_sqnr_db(branches, nearest, pictures)[name] - 1


def test_fit_is_deterministic(network: Network) -> None:
    pictures = drawn(3, 1)
    first, second = (quantised(network, pictures, pictures) for _ in range(2))
    for a, b in zip(first.nodes, second.nodes, strict=True):
        if isinstance(a.op, QConvolution):
            assert isinstance(b.op, QConvolution)
            assert np.array_equal(a.op.weights, b.op.weights)


# --------------------------------------------------------------------------------------------- a trained network


@pytest.mark.engine
@pytest.mark.shared
def test_fitted_4_bit_yolo_lite_gains_6_db_on_its_calibration_and_2_db_elsewhere(shared: Path) -> None:
    from systolic.loading import load_model
    from systolic.model import Calibration, quantise_model
    from systolic.pictures import network_inputs

    stem = shared / "data/networks/yolo-lite-voc-trial3-noBatch"
    model = load_model(stem.with_suffix(".cfg"), stem.with_suffix(".weights"))
    photographs = tuple(sorted((shared / "data/pictures").iterdir()))
    calibrated, others = photographs[:6], photographs[6:]
    ratios = [
        [head_db(model.network, integers, list(network_inputs(model.network, part, model.fit)))]
        for reconstruct in (False, True)
        for integers in [quantise_model(model, Calibration(calibrated, bits=4, reconstruct=reconstruct))]
        for part in (calibrated, others)
    ]
    (nearest,), (nearest_others,), (fitted,), (fitted_others,) = ratios
    assert fitted > nearest + 6
    assert fitted_others > nearest_others + 2
