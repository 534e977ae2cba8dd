"""The images of a small generated design, and each with a word more, less or wrong."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.errors import HostError
from host.contract.manifest import of_style, read_manifest
from host.contract.parts import Image
from host.contract.program import LARGEST_SHIFT
from host.contract.systolic import SystolicManifest
from host.contract.uploads import read_systolic
from systolic.files import write
from tests.support.accelerators import GEOMETRIES, design_of, networks


@pytest.fixture
def design(tmp_path: Path) -> tuple[Path, SystolicManifest]:
    """Of two weight ports; nothing is compiled."""
    write(design_of(networks()["one position"], GEOMETRIES["odd rows"]), tmp_path / "design")
    return tmp_path / "design", of_style(SystolicManifest, read_manifest(tmp_path / "design"))


def with_image(folder: Path, manifest: SystolicManifest, image: Image, data: bytes) -> SystolicManifest:
    """The file holds that, and the manifest has its checksum."""
    (folder / image.path).write_bytes(data)

    def renewed(other: Image) -> Image:
        return replace(other, crc32=zlib.crc32(data)) if other.path == image.path else other

    images = manifest.images
    weights = tuple(renewed(each) for each in images.weights)
    return replace(
        manifest,
        images=replace(
            images, weights=weights, requantisers=renewed(images.requantisers), program=renewed(images.program)
        ),
    )


def test_images_are_what_the_files_hold(design: tuple[Path, SystolicManifest]) -> None:
    folder, manifest = design
    uploads, images = read_systolic(folder, manifest), manifest.images
    assert len(uploads.weights) == manifest.array.weight_ports == 2
    for words, image in zip(uploads.weights, images.weights, strict=True):
        assert words.shape[1] == manifest.weight_word_bytes
        assert words.tobytes() == (folder / image.path).read_bytes()
    assert uploads.requantisers.tobytes() == (folder / images.requantisers.path).read_bytes()
    assert uploads.requantisers.shape[1:] == (4,)
    assert uploads.program.shape == (manifest.passes, 64)
    assert uploads.program.tobytes() == (folder / images.program.path).read_bytes()


def test_images_are_whole_and_as_many_words_each(design: tuple[Path, SystolicManifest]) -> None:
    folder, manifest = design
    images = manifest.images
    for image, word in (
        (images.weights[1], manifest.weight_word_bytes),
        (images.requantisers, 16),
        (images.program, 256),
    ):
        data = (folder / image.path).read_bytes()
        for size in (1, word - 1):
            with pytest.raises(HostError, match=f"holds {len(data) + size} bytes, and not whole words of {word}"):
                read_systolic(folder, with_image(folder, manifest, image, data + bytes(size)))
        (folder / image.path).write_bytes(data)
    first, second = ((folder / image.path).read_bytes() for image in images.weights)
    longer = with_image(folder, manifest, images.weights[1], second + bytes(manifest.weight_word_bytes))
    count = len(first) // manifest.weight_word_bytes
    with pytest.raises(
        HostError, match=rf"the images of weights have \[{count}, {count + 1}\] words, and not as many each"
    ):
        read_systolic(folder, longer)
    (folder / images.weights[1].path).write_bytes(second)
    program = (folder / images.program.path).read_bytes()
    with pytest.raises(
        HostError, match=f"holds {manifest.passes + 1} passes, the manifest says {manifest.passes}; copy"
    ):
        read_systolic(folder, with_image(folder, manifest, images.program, program + program[:256]))


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize(
    ("shift", "plain", "marked"),
    [
        (1, True, True),
        (LARGEST_SHIFT, True, True),
        (0, False, False),
        (LARGEST_SHIFT + 1, False, False),
        (64 + 7, False, True),
        (128 + 47, False, True),
        (192 + 1, False, True),
        (64, False, False),
    ],
)
def test_a_shift_is_that_of_the_saver(
    design: tuple[Path, SystolicManifest], late: int, shift: int, plain: bool, marked: bool
) -> None:
    """1…47, and above it marks where the array adds behind its multiplication."""
    folder, manifest = design
    manifest = replace(manifest, array=replace(manifest.array, late_offsets=late))
    image = manifest.images.requantisers
    words = np.fromfile(folder / image.path, "<u4").reshape(-1, 4)
    words[1, 2] = shift
    edited = with_image(folder, manifest, image, words.tobytes())
    if marked if late else plain:
        assert read_systolic(folder, edited).requantisers[1, 2] == shift
    else:
        with pytest.raises(HostError, match=rf"{image.path}: a shift is 1…47, not \d+…\d+; generate the design again"):
            read_systolic(folder, edited)


def test_a_table_behind_a_pass_is_told_by_its_first_requantiser(design: tuple[Path, SystolicManifest]) -> None:
    """By the last word: an array without tables has none, and shifts are no tables."""
    folder, manifest = design
    image = manifest.images.requantisers
    words = np.fromfile(folder / image.path, "<u4").reshape(-1, 4)
    assert not words[:, 3].any()
    words[:, 3] = 256
    with pytest.raises(HostError, match="of requantisers with a table of 0 values behind them, or none"):
        read_systolic(folder, with_image(folder, manifest, image, words.tobytes()))


def test_the_first_pass_that_breaks_a_rule_is_named(design: tuple[Path, SystolicManifest]) -> None:
    folder, manifest = design
    image = manifest.images.program
    words = np.fromfile(folder / image.path, "<u4").reshape(manifest.passes, 64)
    place = manifest.array.pass_fields.index("kernel_height")
    words[-1, place] = 5000
    with pytest.raises(HostError) as refused:
        read_systolic(folder, with_image(folder, manifest, image, words.tobytes()))
    assert f"{image.path}: kernel_height of pass {manifest.passes - 1} is 1…4095, not 5000; the folder is" in str(
        refused.value
    )
    words[0, manifest.array.pass_fields.index("pad_left")] = (1 << 32) - 65
    with pytest.raises(HostError) as refused:
        read_systolic(folder, with_image(folder, manifest, image, words.tobytes()))
    assert f"{image.path}: kernel_height of pass {manifest.passes - 1}" in str(refused.value)
    words[-1, place] = 1
    with pytest.raises(HostError, match=r"pad_left of pass 0 is -64…255, not -65"):
        read_systolic(folder, with_image(folder, manifest, image, words.tobytes()))
