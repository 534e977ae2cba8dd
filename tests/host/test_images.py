"""Images of a design: each equals the file that the manifest describes, and is safe for the engine."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boards.errors import FileAccessError, InvalidValueError, MismatchError, RangeError
from contract.program import names_of
from host.contract.manifest import of_style, read_manifest
from host.contract.parts import MAX_BUFFER_BYTES, DataFile, read_data_file
from host.contract.program import MAX_SHIFT
from host.contract.systolic import SystolicManifest
from host.contract.uploads import _whole, read_streaming, read_systolic
from systolic.files import write
from tests.support.accelerators import GEOMETRIES, design_of, networks
from tests.support.errors import raises


@pytest.fixture
def design(tmp_path: Path) -> tuple[Path, SystolicManifest]:
    """Return the folder and the manifest of a design with two weight ports. Nothing is compiled."""
    write(design_of(networks()["one position"], GEOMETRIES["odd rows"]), tmp_path / "design")
    return tmp_path / "design", of_style(SystolicManifest, read_manifest(tmp_path / "design"))


def with_image(folder: Path, manifest: SystolicManifest, image: DataFile, data: bytes) -> SystolicManifest:
    """Write ``data`` as the image, and return the manifest with its checksum."""
    (folder / image.path).write_bytes(data)

    def renewed(other: DataFile) -> DataFile:
        return replace(other, crc32=zlib.crc32(data)) if other.path == image.path else other

    images = manifest.images
    weights = tuple(renewed(each) for each in images.weights)
    return replace(
        manifest,
        images=replace(
            images, weights=weights, requantisers=renewed(images.requantisers), program=renewed(images.program)
        ),
    )


def test_image_is_read_if_its_checksum_is_right(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"abcdef")
    right = zlib.crc32(b"abcdef")
    assert read_data_file(tmp_path, DataFile("a.bin", right)) == b"abcdef"
    with raises(
        MismatchError, what="the checksum", got=f"{right:08x}", expected="00000001", where=str(tmp_path / "a.bin")
    ):
        read_data_file(tmp_path, DataFile("a.bin", 1))
    with raises(FileAccessError, path=str(tmp_path / "b.bin")):
        read_data_file(tmp_path, DataFile("b.bin", 1))
    with (tmp_path / "a.bin").open("wb") as file:
        file.truncate(MAX_BUFFER_BYTES + 1)
    with raises(RangeError, where=str(tmp_path / "a.bin"), got=MAX_BUFFER_BYTES + 1, high=MAX_BUFFER_BYTES):
        read_data_file(tmp_path, DataFile("a.bin", right))


def test_image_path_that_leaves_the_folder_is_refused() -> None:
    for path in ("/a.bin", "../a.bin", "x/../a.bin", "a\\b", "a\nb"):
        with raises(InvalidValueError, what="the path of a data file", got=path):
            DataFile(path, 0)


def test_image_with_a_partial_word_is_refused(tmp_path: Path) -> None:
    for size, word, rows in ((6, 2, 3), (6, 6, 1), (6, 1, 6), (6, 4, 0), (0, 2, 0)):
        data = bytes(range(size))
        (tmp_path / "a.bin").write_bytes(data)
        image = DataFile("a.bin", zlib.crc32(data))
        manifest: Any = SimpleNamespace(images=[SimpleNamespace(path="a.bin", crc32=image.crc32, word_bytes=word)])
        if rows:
            assert _whole(tmp_path, image, word).tolist() == [list(data[i : i + word]) for i in range(0, size, word)]
            assert read_streaming(tmp_path, manifest)[0].shape == (rows, word)
        else:
            with raises(InvalidValueError, where="a.bin", what="the number of bytes", got=size):
                _whole(tmp_path, image, word)


def test_images_equal_the_bytes_of_the_files(design: tuple[Path, SystolicManifest]) -> None:
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


def test_images_of_other_sizes_are_refused(design: tuple[Path, SystolicManifest]) -> None:
    folder, manifest = design
    images = manifest.images
    for image, word in (
        (images.weights[1], manifest.weight_word_bytes),
        (images.requantisers, 16),
        (images.program, 256),
    ):
        data = (folder / image.path).read_bytes()
        for size in (1, word - 1):
            with raises(InvalidValueError, where=image.path, got=len(data) + size):
                read_systolic(folder, with_image(folder, manifest, image, data + bytes(size)))
        (folder / image.path).write_bytes(data)
    second = (folder / images.weights[1].path).read_bytes()
    longer = with_image(folder, manifest, images.weights[1], second + bytes(manifest.weight_word_bytes))
    count = len(second) // manifest.weight_word_bytes
    with raises(MismatchError, where=images.weights[1].path, got=count + 1, expected=count):
        read_systolic(folder, longer)
    (folder / images.weights[1].path).write_bytes(second)
    program = (folder / images.program.path).read_bytes()
    with raises(MismatchError, where=images.program.path, got=manifest.passes + 1, expected=manifest.passes):
        read_systolic(folder, with_image(folder, manifest, images.program, program + program[:256]))


def test_requantiser_shift_outside_1_to_47_is_refused(design: tuple[Path, SystolicManifest]) -> None:
    """Check bits 6 and 7: flags in an array that adds after its multiplication, and part of the shift in others."""
    folder, made = design
    image = made.images.requantisers
    words = np.fromfile(folder / image.path, "<u4").reshape(-1, 4)
    for shift, plain, marked in (
        (1, True, True),
        (MAX_SHIFT, True, True),
        (0, False, False),
        (MAX_SHIFT + 1, False, False),
        (64 + 7, False, True),
        (128 + 47, False, True),
        (192 + 1, False, True),
        (64, False, False),
    ):
        for late, is_read in ((0, plain), (1, marked)):
            manifest = replace(made, array=replace(made.array, late_offsets=late))
            words[1, 2] = shift
            edited = with_image(folder, manifest, image, words.tobytes())
            if is_read:
                assert read_systolic(folder, edited).requantisers[1, 2] == shift
            else:
                got = shift & 63 if late else shift
                with raises(RangeError, where=image.path, got=got, low=1, high=47):
                    read_systolic(folder, edited)


def test_table_after_a_pass_is_named_by_its_first_requantiser(design: tuple[Path, SystolicManifest]) -> None:
    """Set the last word of a requantiser, the number of table values. It must be 0 in an array without tables."""
    folder, manifest = design
    image = manifest.images.requantisers
    words = np.fromfile(folder / image.path, "<u4").reshape(-1, 4)
    assert not words[:, 3].any()
    words[:, 3] = 256
    with raises(InvalidValueError, what="requantiser_base"):
        read_systolic(folder, with_image(folder, manifest, image, words.tobytes()))


def test_first_pass_that_breaks_a_rule_is_named(design: tuple[Path, SystolicManifest]) -> None:
    folder, manifest = design
    image = manifest.images.program
    words = np.fromfile(folder / image.path, "<u4").reshape(manifest.passes, 64)
    place = names_of(manifest.array).index("kernel_height")
    words[-1, place] = 5000
    last = f"{image.path}: pass {manifest.passes - 1}"
    with raises(RangeError, where=last, what="kernel_height", got=5000, low=1, high=4095):
        read_systolic(folder, with_image(folder, manifest, image, words.tobytes()))
    words[0, names_of(manifest.array).index("pad_left")] = (1 << 32) - 65
    with raises(RangeError, where=last, what="kernel_height"):
        read_systolic(folder, with_image(folder, manifest, image, words.tobytes()))
    words[-1, place] = 1
    with raises(RangeError, where=f"{image.path}: pass 0", what="pad_left", got=-65, low=-64, high=4095):
        read_systolic(folder, with_image(folder, manifest, image, words.tobytes()))
