"""The trained UltraNet from a picture file to its box, by the integers of the golden model."""

from __future__ import annotations

from pathlib import Path

import pytest

from cnn.integer_model import dequantise, run_integer
from host.vision.detection import Detection, detect
from host.vision.picture import FITS, load_picture
from systolic.manifest import heads
from systolic.model import load_model


def found(shared: Path, fit: str | None) -> tuple[Detection, ...]:
    model = load_model("ultranet", shared / "data/ultranet/ultranet_4w4a.npz")
    network = model.quantized
    assert network is not None
    shape, last = network.input_shape, len(network.nodes) - 2
    picture = load_picture(shared / "data/ultranet/boat6_0.jpg")
    pixels, placement = FITS[fit or model.fit](picture, shape.height, shape.width)
    output = run_integer(network, pixels)[last]
    assert output is not None
    (described,) = heads(network, {last: 0})
    values = dequantise(output, network.nodes[last].type)
    return detect([values], [described.head], placement, network.labels)


@pytest.mark.shared
def test_the_box_of_the_contest_picture(shared: Path) -> None:
    (one,) = found(shared, None)
    assert one.label == "object"
    assert one.box == pytest.approx((334.0, 81.6, 349.9, 90.6), abs=0.05)
    assert one.probability == pytest.approx(0.704, abs=5e-4)


@pytest.mark.shared
def test_pixels_that_are_skipped_move_the_box_by_little(shared: Path) -> None:
    (one,) = found(shared, "plain")
    assert one.box == pytest.approx((334.0, 81.6, 349.9, 90.6), abs=2)
