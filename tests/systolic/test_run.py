"""Test ``run`` from a picture to boxes, on unusual pictures and on real ones with known boxes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.errors import DamagedFileError, FileAccessError, RangeError
from host.vision.picture import load_picture
from scheduler.systolic.array import Array
from systolic.designs import design
from systolic.execution.build import Variant, build
from systolic.execution.run import Run, fit_picture, run
from systolic.files import write
from systolic.loading import load_model
from systolic.model import Calibration, sample_pictures
from systolic.styles.systolic.simulate import SystolicDesign, open_design, simulate
from tests.support.accelerators import design_of, start
from tests.support.cases import cases
from tests.support.detectors import LABELS
from tests.support.errors import raises
from tests.support.shared_builds import locked

AP_INT = Variant(ap_int=True)


@pytest.fixture
def tiny(tiny_design: Path) -> SystolicDesign:
    """Return the small compiled design."""
    return open_design(tiny_design)


@pytest.fixture
def photograph(tmp_path: Path) -> Path:
    """Return a sample picture of 90 × 60 pixels."""
    path = tmp_path / "photograph.png"
    Image.open(sample_pictures()[0]).convert("RGB").resize((90, 60)).save(path)
    return path


def boxes(found: Run) -> list[tuple[str, float, tuple[float, ...]]]:
    """Return label, probability and box of each detection."""
    return [(one.label, one.probability, tuple(one.box)) for one in found.detections]


def run_on(tiny: SystolicDesign, image: Image.Image, path: Path, exif: Image.Exif | None = None) -> Run:
    """Save an image at the path and run the design on it."""
    image.save(path, exif=exif or Image.Exif())
    return run(tiny, path)


def test_run_boxes_are_inside_the_picture(tiny: SystolicDesign, photograph: Path) -> None:
    found = run(tiny, photograph)
    assert found.simulation.mismatches == 0
    assert found.picture.shape == (60, 90, 3)
    assert len(found.detections) > 3
    for one in found.detections:
        x0, y0, x1, y1 = one.box
        assert 0 <= x0 <= x1 <= 90
        assert 0 <= y0 <= y1 <= 60
        assert one.label in LABELS


@pytest.mark.engine
def test_run_with_ap_int_gives_the_same_boxes(tiny: SystolicDesign, photograph: Path) -> None:
    assert boxes(run(tiny, photograph, variant=AP_INT)) == boxes(run(tiny, photograph))


def test_run_with_higher_threshold_gives_fewer_boxes(tiny: SystolicDesign, photograph: Path) -> None:
    every, some = run(tiny, photograph, threshold=0.01), run(tiny, photograph, threshold=0.5)
    assert 0 < len(some.detections) < len(every.detections)
    assert min(one.probability for one in some.detections) >= 0.5


# ------------------------------------------------------------------------------------ unusual pictures


def test_run_of_grey_picture_equals_three_equal_channels(
    tiny: SystolicDesign, photograph: Path, tmp_path: Path
) -> None:
    grey = Image.open(photograph).convert("L")
    assert boxes(run_on(tiny, grey, tmp_path / "l.png")) == boxes(run_on(tiny, grey.convert("RGB"), tmp_path / "r.png"))


def test_run_lays_transparent_pictures_over_white(tiny: SystolicDesign, photograph: Path, tmp_path: Path) -> None:
    opaque = Image.open(photograph)
    with_alpha = opaque.convert("RGBA")
    assert boxes(run_on(tiny, with_alpha, tmp_path / "a.png")) == boxes(run(tiny, photograph))
    with_alpha.putalpha(0)
    white = Image.new("RGB", opaque.size, "white")
    assert boxes(run_on(tiny, with_alpha, tmp_path / "a.png")) == boxes(run_on(tiny, white, tmp_path / "w.png"))


def test_run_applies_an_exif_rotation(tiny: SystolicDesign, photograph: Path, tmp_path: Path) -> None:
    """Store a picture rotated, with an EXIF orientation. The boxes are the same as for the upright picture, in its
    pixels."""
    upright = Image.open(photograph)
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90° clockwise for display
    lying = upright.transpose(Image.Transpose.ROTATE_90)
    found = run_on(tiny, lying, tmp_path / "lying.png", exif=exif)
    assert found.picture.shape == (60, 90, 3)
    assert boxes(found) == boxes(run(tiny, photograph))


@cases("size", [(1, 1), (1, 300), (3000, 2)])
def test_run_of_very_narrow_pictures_succeeds(size: tuple[int, int], tiny: SystolicDesign, tmp_path: Path) -> None:
    found = run_on(tiny, Image.new("RGB", size, "orange"), tmp_path / "odd.png")
    assert found.simulation.mismatches == 0


def test_run_of_huge_picture_is_refused_by_its_header(tiny: SystolicDesign, tmp_path: Path) -> None:
    Image.new("1", (8_001, 8_000)).save(tmp_path / "huge.png")
    with raises(RangeError, where=str(tmp_path / "huge.png"), got=8001 * 8000, high=64_000_000):
        run(tiny, tmp_path / "huge.png")


def test_run_of_damaged_or_missing_picture_is_refused(tiny: SystolicDesign, photograph: Path, tmp_path: Path) -> None:
    (tmp_path / "no.png").write_text("not a picture")
    with raises(DamagedFileError, path=str(tmp_path / "no.png")):
        run(tiny, tmp_path / "no.png")
    (tmp_path / "cut.png").write_bytes(photograph.read_bytes()[:2000])
    with raises(DamagedFileError, path=str(tmp_path / "cut.png")):
        run(tiny, tmp_path / "cut.png")
    with raises(FileAccessError, path=str(tmp_path / "absent.png"), reason="does not exist"):
        run(tiny, tmp_path / "absent.png")


# ------------------------------------------------------------------------------------------- outputs


def test_run_without_head_gives_tensors(tmp_path: Path, photograph: Path) -> None:
    network = start(3, 8, 8).convolution(8).network("headless")
    write(design_of(network, Array(4, 8, 8)), tmp_path / "design")
    found = run(open_design(tmp_path / "design"), photograph)
    (integers,) = found.result.outputs
    assert list(found.result.tensors) == ["conv1"]
    scale = network.nodes[1].type.scale
    np.testing.assert_allclose(found.result.tensors["conv1"], integers * np.float32(scale), rtol=1e-6)
    assert "no head to decode: these are the outputs of the last layers" in found.text()
    assert repr(found.result).endswith("conv1 8×8×8)")
    assert found.values()["tensors"][0] == {
        "name": "conv1",
        "sides": "8×8×8",
        "least": round(float(found.result.tensors["conv1"].min()), 4),
        "greatest": round(float(found.result.tensors["conv1"].max()), 4),
    }
    found.save(tmp_path / "maps.npz")
    with np.load(tmp_path / "maps.npz") as maps:
        np.testing.assert_array_equal(maps["conv1"], found.result.tensors["conv1"])


def test_run_with_head_gives_tensors_too(tiny: SystolicDesign, photograph: Path, tmp_path: Path) -> None:
    found = run(tiny, photograph)
    (name,) = found.result.tensors
    assert not found.result.headless
    assert [entry["name"] for entry in found.values()["tensors"]] == [name]
    found.save(tmp_path / "maps.npz")
    with np.load(tmp_path / "maps.npz") as maps:
        assert maps[name].shape == found.result.outputs[0].shape
        np.testing.assert_array_equal(maps[name], found.result.tensors[name])


def test_run_saves_a_picture_with_boxes(tiny: SystolicDesign, photograph: Path, tmp_path: Path) -> None:
    found = run(tiny, photograph)
    found.save(tmp_path / "boxes.png")
    drawn = np.asarray(Image.open(tmp_path / "boxes.png"))
    assert drawn.shape == found.picture.shape
    assert not np.array_equal(drawn, found.picture)


@cases("name", ["absent/boxes.png", "boxes.nonsense", "boxes"])
def test_run_with_unwritable_picture_raises_file_access_error(
    name: str, tiny: SystolicDesign, photograph: Path, tmp_path: Path
) -> None:
    with raises(FileAccessError, path=str(tmp_path / name), remedy="choose another FILE.png"):
        run(tiny, photograph).save(tmp_path / name)


# ------------------------------------------------------------------------------------ real networks


def real_design(shared: Path, build_root: Path, name: str, size: tuple[int, int] | None) -> SystolicDesign:
    """Return a ZCU104 design of a trained network from the shared data, calibrated on photographs.

    It is compiled once per run.
    """
    networks, pictures = shared / "data" / "networks", shared / "data" / "pictures"
    folder = build_root / f"{name}-{size}"
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            cfg, weights = networks / f"{name}.cfg", networks / f"{name}.weights"
            model = load_model(str(cfg), weights, networks / "voc.names", None, size)
            calibration = Calibration(tuple(pictures / one for one in ("dog.jpg", "person.jpg")))
            design(model, "zcu104", calibrate=calibration).write(folder)
            build(folder)
    return open_design(folder)


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the intersection over union of two boxes."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    common = max(width, 0) * max(height, 0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return common / (areas - common)


def surest(shared: Path, name: str) -> dict[str, tuple[float, ...]]:
    """Return the box of each label's most probable detection in the expected file."""
    found = json.loads((shared / "data" / "expected" / name).read_text())
    return {one["label"]: tuple(one["box_xyxy"]) for one in sorted(found, key=lambda one: float(one["prob"]))}


REAL = [
    ("yolo-lite-voc-trial3-noBatch", None, "yolo-lite-voc-trial3-noBatch_dog_224.json"),
    ("yolo-lite-voc-trial3", (416, 416), "yolo-lite-voc-trial3_dog_416.json"),
]


@pytest.mark.engine
@pytest.mark.shared
@pytest.mark.parametrize(("name", "size", "wanted"), REAL)
def test_real_networks_detect_dog_bicycle_and_car(
    name: str, size: tuple[int, int] | None, wanted: str, shared: Path, build_root: Path
) -> None:
    folder = real_design(shared, build_root, name, size)
    found = run(folder, shared / "data" / "pictures" / "dog.jpg")
    assert [layer.name for layer in found.simulation.layers if layer.mismatches] == []
    truth = surest(shared, wanted)
    for label in ("bicycle", "dog", "car"):
        best = max(overlap(truth[label], one.box) for one in found.detections if one.label == label)
        assert best >= 0.85, f"{label}: {best:.3f}"


@pytest.mark.engine
@pytest.mark.shared
def test_real_network_with_ap_int_matches_golden_model(shared: Path, build_root: Path) -> None:
    folder = real_design(shared, build_root, *REAL[0][:2])
    pixels, _ = fit_picture(folder, load_picture(shared / "data" / "pictures" / "dog.jpg"))
    found = simulate(folder, pixels, AP_INT)
    assert found.mismatches == 0
    assert sum(layer.values for layer in found.layers) > 100_000
