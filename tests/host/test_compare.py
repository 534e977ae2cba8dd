"""The sentences about layers that equal the golden model, and about layers that do not."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from boards.errors import AcceleratorError, MismatchError, StateError, SystolicError
from host.check import check_picture, compare, golden_maps
from host.contract.manifest import of_style, read_manifest
from host.contract.parts import ManifestLayer
from host.contract.systolic import SystolicManifest
from tests.support.errors import raises
from tests.support.host.manifests import manifest_fields


@pytest.fixture(scope="module")
def manifest(tiny_files: Path) -> SystolicManifest:
    return of_style(SystolicManifest, read_manifest(tiny_files))


@pytest.fixture(scope="module")
def golden(tiny_files: Path, manifest: SystolicManifest) -> list[np.ndarray]:
    return list(golden_maps(manifest, tiny_files))


def test_compare_of_equal_layers_passes(manifest: SystolicManifest, golden: list[np.ndarray]) -> None:
    report = compare("tiny", zip(manifest.layers, golden, strict=True), iter(golden))
    assert report.passed
    assert report.first_wrong is None
    # 8 channels of 7 × 9 and 16 of 7 × 9.
    assert str(report) == "tiny: 2 layers, 1,512 integers: every bit equal to the golden model's"


def test_compare_stops_at_the_first_layer_that_differs(manifest: SystolicManifest, golden: list[np.ndarray]) -> None:
    spoiled = golden[0].copy()
    spoiled[2, 3, 4] += 1
    spoiled[7, 0, 0] -= 1
    asked = []

    def layers() -> Iterator[tuple[ManifestLayer, np.ndarray]]:
        for layer, integers in zip(manifest.layers, (spoiled, golden[1]), strict=True):
            asked.append(layer.name)
            yield layer, integers

    report = compare("tiny", layers(), iter(golden))
    assert not report.passed
    assert asked == ["conv1"]
    assert str(report) == (
        "tiny: the first layer that differs from the golden model is conv1 (tiny.cfg:6): 2 of 504 integers, first at "
        f"channel 2, row 3, column 4: {golden[0][2, 3, 4] + 1}, not {golden[0][2, 3, 4]}; "
        "0 layers before it are right in every bit"
    )
    assert "<td>conv1</td><td>tiny.cfg:6</td><td>504</td><td>2</td>" in report._repr_html_()


def test_compare_of_a_batch_includes_every_frame(manifest: SystolicManifest, golden: list[np.ndarray]) -> None:
    batch = [np.stack([integers] * 3) for integers in golden]
    assert "1,512 integers" not in str(compare("tiny", zip(manifest.layers, batch, strict=True), iter(golden)))
    batch[1][2, 5, 6, 7] += 1
    report = compare("tiny", zip(manifest.layers, batch, strict=True), iter(golden))
    assert "1 of 3,024 integers, first in frame 2 of the batch at channel 5, row 6, column 7: " in str(report)


def test_compare_reports_the_error_that_ended_it(manifest: SystolicManifest, golden: list[np.ndarray]) -> None:
    def layers(error: SystolicError) -> Iterator[tuple[ManifestLayer, np.ndarray]]:
        yield manifest.layers[0], golden[0]
        raise error

    for error in (AcceleratorError("it hangs"), StateError("the accelerator", "is closed")):
        report = compare("tiny", layers(error), iter(golden))
        assert not report.passed
        assert report.error == str(error)
        assert str(report) == f"tiny: 1 layers are right in every bit, then: {error}"


def test_check_images_of_another_size_are_refused(tiny_files: Path, tmp_path: Path) -> None:
    for image, size in (("maps", 4144), ("layers", 2520)):
        folder = shutil.copytree(tiny_files, tmp_path / image)
        values = manifest_fields(folder)
        (folder / values["check"][image]["path"]).write_bytes(b"8 bytes.")
        values["check"][image]["crc32"] = zlib.crc32(b"8 bytes.")
        (folder / "manifest.json").write_text(json.dumps(values))
        manifest = of_style(SystolicManifest, read_manifest(folder))
        with raises(MismatchError, where=f"data/{image}.bin", what="the number of bytes", got=8, expected=size):
            (check_picture if image == "maps" else golden_maps)(manifest, folder)
