"""Test the trained UltraNet from a picture file to its box, with the golden model and on the array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cnn.integer_model import dequantise, run_integer
from host.vision.detection import Detection, detect
from host.vision.picture import FITS, load_picture
from scheduler.systolic.array import Array
from scheduler.systolic.schedule_file import to_json
from systolic.designs import design
from systolic.execution.run import run
from systolic.loading import load_model
from systolic.network_outputs import heads
from systolic.styles.systolic.simulate import open_design, simulate
from tests.support.schedules import first_fit

ARRAY = Array(
    10,
    16,
    16,
    row_depth=2048,
    weight_depth=1024,
    kept_depth=512,
    chunk=8,
    channel_tiles=16,
    late_offsets=1,
)


def found(shared: Path, fit: str | None) -> tuple[Detection, ...]:
    """Return the detections of the trained UltraNet on the contest picture, computed by the golden model."""
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
def test_ultranet_finds_the_box_of_the_contest_picture(shared: Path) -> None:
    (one,) = found(shared, None)
    assert one.label == "object"
    assert one.box == pytest.approx((334.0, 81.6, 349.9, 90.6), abs=0.05)
    assert one.probability == pytest.approx(0.704, abs=5e-4)


@pytest.mark.shared
def test_ultranet_with_skipped_pixels_moves_the_box_little(shared: Path) -> None:
    (one,) = found(shared, "plain")
    assert one.box == pytest.approx((334.0, 81.6, 349.9, 90.6), abs=2)


@pytest.mark.engine
@pytest.mark.shared
def test_ultranet_on_array_gives_the_contest_integers(shared: Path, tmp_path: Path) -> None:
    model = load_model("ultranet", shared / "data/ultranet/ultranet_4w4a.npz")
    assert model.quantized is not None
    folder = tmp_path / "design"
    design(model, schedule=to_json(first_fit(model.quantized, ARRAY))).write(folder)
    opened = open_design(folder)
    with np.load(shared / "data/ultranet/boat6_0_int_golden.npz") as golden:
        picture = np.ascontiguousarray(golden["input"][:, :, ::-1].transpose(2, 0, 1))
        result = simulate(opened, picture)
        assert result.mismatches == 0
        assert len(result.outputs) == len(opened.manifest.layers)
        assert np.array_equal(result.outputs[-1], golden["conv8_acc"])
    (one,) = run(opened, shared / "data/ultranet/boat6_0.jpg", threshold=0.0).detections
    assert one.box == pytest.approx((334.0, 81.6, 349.9, 90.6), abs=0.05)
    assert one.probability == pytest.approx(0.704, abs=5e-4)
