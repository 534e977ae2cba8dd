"""Test networks of the exported form from their two files to boxes, in both styles, with the layers that UltraNet
lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import systolic
from boards.errors import UnsupportedError
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology_file import parse_topology
from cnn.stored.npz import write_arrays
from tests.support.errors import raises_among
from tests.support.exported import convolution, described

STYLES: dict[str, dict[str, Any]] = {"systolic": {"array": "4x8x8"}, "streaming": {"fps": 20_000, "search": "greedy"}}
ANCHORS = {"anchors": [[10, 12], [20, 16]], "classes": 2}


def layers(head: str, **first: Any) -> list[dict[str, Any]]:
    """Return layers with two sums and a head.

    One sum adds a padded pool to a layer with its own shift. The other sum is not clipped.
    """
    return [
        convolution(8, padding=1, name="a", **first),
        {"type": "max_pool", "size": 3, "stride": 1, "padding": 1, "name": "pooled"},
        convolution(8, padding=1, name="b", extra_bits=4),
        {"type": "add", "from": ["pooled", "b"], "output_bits": 4, "name": "sum"},
        {"type": "add", "from": ["sum", "b", "pooled"]},
        convolution(12, 1),
        {"type": "convolution", "filters": 14, "kernel": 1, "weight_bits": 4},
        {"type": head, **ANCHORS},
    ]


def write(folder: Path, values: dict[str, Any]) -> Path:
    """Write net.json and net.npz, and return the path of net.json."""
    path = folder / "net.json"
    path.write_text(json.dumps(values))
    arrays = seeded_arrays(parse_topology(path.read_text(), path.name), 1)
    (folder / "net.npz").write_bytes(write_arrays(arrays))
    return path


def check(path: Path, style: str, channels: int, folder: Path) -> None:
    """Check that a random frame, read from a file, simulates without mismatches and gives boxes."""
    frame = np.random.default_rng(4).integers(0, 256, (20, 30, channels), np.uint8)
    np.save(folder / "frame.npy", frame)
    design = systolic.design(systolic.load(path), "zcu104", style, calibrate=[folder / "frame.npy"], **STYLES[style])
    assert design.simulate(folder / "frame.npy").right
    seen = design.run(folder / "frame.npy", threshold=0.0)
    assert seen.mismatches == 0
    assert seen.detections


@pytest.mark.engine
@pytest.mark.parametrize(("style", "head", "channels"), [("systolic", "region", 4), ("streaming", "yolo", 6)])
def test_exported_sums_shifts_and_pools_simulate_and_give_boxes(
    style: str, head: str, channels: int, tmp_path: Path
) -> None:
    picture = {"channels": channels, "height": 12, "width": 20, "mean": 0.4, "std": 0.5}
    check(write(tmp_path, described(*layers(head), input=picture)), style, channels, tmp_path)


@pytest.mark.engine
@pytest.mark.parametrize("style", ["systolic", "streaming"])
def test_exported_softmax_per_position_gives_a_segmentation(style: str, tmp_path: Path) -> None:
    sums = {"type": "convolution", "filters": 5, "kernel": 1, "weight_bits": 4, "name": "sums"}
    path = write(tmp_path, described(convolution(8, padding=1, name="a"), sums, {"type": "softmax"}))
    design = systolic.design(systolic.load(path), "zcu104", style, **STYLES[style])
    picture = np.random.default_rng(5).integers(0, 256, (12, 20, 3), np.uint8)
    seen = design.run(picture)
    assert seen.mismatches == 0
    assert seen.result.segmentation is not None
    sums_of_classes = design.simulate(picture).outputs[-1]
    np.testing.assert_array_equal(seen.result.segmentation.classes, sums_of_classes.argmax(axis=0))


@pytest.mark.engine
def test_exported_thresholds_need_the_streaming_style(tmp_path: Path) -> None:
    path = write(tmp_path, described(*layers("yolo", requantise="given_thresholds")))
    check(path, "streaming", 3, tmp_path)
    with raises_among(UnsupportedError, subject="convolution 'a'") as caught:
        systolic.design(systolic.load(path), "zcu104", "systolic", **STYLES["systolic"])
    assert "Thresholds" in caught.value.errors[0].message()
    assert "streaming" in caught.value.remedy


def test_exported_ternary_values_need_the_streaming_style(tmp_path: Path) -> None:
    few = convolution(8, padding=1, name="a", activation="symmetric", output_bits=2)
    path = write(tmp_path, described(few, convolution(4, 1)))
    with raises_among(UnsupportedError, subject="convolution 'a'") as caught:
        systolic.design(systolic.load(path), "zcu104", "systolic", **STYLES["systolic"])
    assert "TERNARY" in caught.value.errors[0].message()
