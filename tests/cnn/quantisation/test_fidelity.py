from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from boards.errors import MismatchError
from cnn.darknet.files import read_darknet
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.maps import Shape
from cnn.network import Network
from cnn.quantisation.calibration import calibrate, choose_ranges, observe
from cnn.quantisation.fidelity import LayerFidelity, fidelity, sqnr_db, table
from cnn.quantisation.quantise import quantise
from tests.support import networks
from tests.support.cases import cases
from tests.support.errors import raises


def measured(network: Network, **options: Any) -> dict[str, LayerFidelity]:
    pictures = networks.pictures(network.input_shape, 8)
    q = quantise(network, calibrate(network, pictures), **options)
    report = fidelity(network, q, networks.picture(network.input_shape, 3))
    return {layer.name: layer for layer in report}


def test_sqnr_equals_its_definition() -> None:
    exact = np.array([3.0, 4.0], np.float32)
    assert sqnr_db(exact, np.array([3.0, 3.5], np.float32)) == pytest.approx(10 * math.log10(25 / 0.25))
    assert sqnr_db(exact, exact) == math.inf
    assert sqnr_db(np.zeros(2, np.float32), exact) == -math.inf


@cases("make, least", [(networks.tiny_yolo, 33), (networks.branches, 26), (networks.classifier, 21)])
def test_8_bits_stay_near_the_floats_in_every_layer(make: Callable[[], Network], least: float) -> None:
    network = make()
    report = measured(network)
    tail = {"region", "softmax"}
    assert list(report) == [node.name for node in network.nodes if node.name not in tail]
    assert {name: layer.sqnr_db for name, layer in report.items() if layer.sqnr_db < least} == {}


def test_input_image_is_exact_except_for_float_rounding() -> None:
    assert measured(networks.tiny_yolo())["input"].sqnr_db > 130


@cases("make", [networks.tiny_yolo, networks.branches, networks.classifier])
def test_sqnr_rises_with_the_number_of_bits(make: Callable[[], Network]) -> None:
    """Expect about 6 dB per bit, from 4 to 8 to 16 bits of weights and activations."""
    head = [list(measured(make(), bits=b, activation_bits=b).values())[-1].sqnr_db for b in (4, 8, 16)]
    assert head[0] + 12 < head[1]
    assert head[1] + 24 < head[2]


def test_values_worst_error_and_saturation_are_counted() -> None:
    network = networks.tiny_yolo()
    ranges = calibrate(network, networks.pictures(network.input_shape))
    picture = networks.picture(network.input_shape, 1)
    whole = fidelity(network, quantise(network, ranges), picture)[1]
    assert whole.values == network.nodes[1].shape.values
    assert whole.saturated < 0.001
    clipped = replace(ranges, values=tuple(r / 4 for r in ranges.values))
    small = fidelity(network, quantise(network, clipped), picture)[1]
    assert small.saturated > 0.01
    assert small.worst > ranges.values[1] / 4 > whole.worst


def test_zero_of_an_unsigned_tensor_is_not_saturated() -> None:
    network = networks.tiny_yolo()
    q = quantise(network, calibrate(network, networks.pictures(network.input_shape)))
    dark = networks.picture(network.input_shape) // 2
    dark[0] = 0
    assert fidelity(network, q, dark)[0].saturated == 0


def test_table_has_one_line_per_layer() -> None:
    text = table([LayerFidelity("conv1", 10, 40.5, 0.25, 0.125), LayerFidelity("input", 3, math.inf, 0, 0)])
    assert text == (
        "layer     values   SQNR dB       worst  saturated\n"
        "conv1         10     40.50        0.25    12.500%\n"
        "input          3       inf           0     0.000%"
    )


def test_fidelity_of_different_networks_is_refused() -> None:
    network = networks.tiny_yolo()
    q = quantise(network, calibrate(network, networks.pictures(network.input_shape)))
    with raises(MismatchError, got="input 3×17×15", expected="input 3×16×12", remedy="quantise this network again"):
        fidelity(networks.branches(), q, networks.picture(network.input_shape))
    shorter = replace(q, nodes=q.nodes[:-1])
    with raises(MismatchError, got="no layer", expected="region 7×8×7"):
        fidelity(network, shorter, networks.picture(network.input_shape))


# ---------------------------------------------------------------- a trained network on photographs


def photograph(path: Path, side: int) -> np.ndarray:
    image = Image.open(path).convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


@pytest.mark.shared
def test_yolo_lite_head_keeps_20_db_on_an_image_outside_the_calibration(shared: Path) -> None:
    folder = shared / "data"
    name = folder / "networks" / "yolo-lite-voc-trial3-noBatch"
    network = read_darknet(name.with_suffix(".cfg"), name.with_suffix(".weights"))
    side = network.input_shape.height
    seen = observe(
        network,
        (
            photograph(folder / "pictures" / p, side).astype(np.float32) / np.float32(255)
            for p in ("chelsea.png", "china.jpg")
        ),
    )
    dog = photograph(folder / "pictures" / "dog.jpg", side)
    head = {}
    for method in ("max", "mse"):
        report = fidelity(network, quantise(network, choose_ranges(seen, method)), dog)
        head[method] = report[-1].sqnr_db
        assert min(layer.sqnr_db for layer in report) > 18
    assert min(head.values()) > 20


def test_fidelity_of_16_pixels_equals_hand_computed_values() -> None:
    """Expect exact pixels, of which half are at the ends of the range 0…255, and the greatest error of the layer."""
    network = networks.network(
        Shape(1, 4, 4),
        ("conv1", networks.convolution(np.random.default_rng(2), 1, 2, kernel=1), (0,), Shape(2, 4, 4)),
    )
    picture = np.array([0, 255, 7, 100] * 4, np.uint8).reshape(1, 4, 4)
    quantised = quantise(network, calibrate(network, [picture / np.float32(255)]))
    pixels, layer = fidelity(network, quantised, picture)
    assert (pixels.values, pixels.saturated, layer.values) == (16, 0.25, 32)
    assert pixels.sqnr_db > 130
    assert pixels.worst < 1e-6
    exact = run_float(network, picture.astype(np.float32) / np.float32(255))[1]
    integers = run_integer(quantised, picture)[1]
    assert integers is not None
    assert layer.worst == pytest.approx(float(np.abs(exact - integers * quantised.nodes[1].type.scale).max()), abs=1e-7)
