"""A program that would make the engine access memory outside its buffers is refused."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from boards.errors import (
    DoesNotFitError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    RangeError,
    SystolicError,
    UnsupportedError,
)
from cnn.requantise import SHIFT_LIMIT
from contract.program import PASS_FIELDS, PASS_WORDS
from host.contract.libraries import SystolicLibrary
from host.contract.manifest import of_style, parse_manifest, read_manifest
from host.contract.program import MAX_SHIFT, ImageWords, check_program
from host.contract.systolic import SystolicManifest
from host.contract.uploads import SystolicUploads, read_systolic
from systolic.execution.build import build
from systolic.files import write
from systolic.styles.registry import open_design
from tests.support.accelerators import GEOMETRIES, design_of, networks
from tests.support.errors import raises
from tests.support.host.manifests import manifest_fields

PROGRAM, REQUANTISERS = "data/program.bin", "data/requantisers.bin"
EXTREMES = (0, 1, 2, -1, -2, 1 << 8, 1 << 15, 1 << 20, (1 << 31) - 1, -(1 << 31))


@pytest.fixture
def folder(tiny_files: Path, tmp_path: Path) -> Path:
    """Return a copy of the design that the test may edit."""
    return Path(shutil.copytree(tiny_files, tmp_path / "design"))


def read(folder: Path) -> SystolicUploads:
    return read_systolic(folder, of_style(SystolicManifest, read_manifest(folder)))


def edit(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of the design, and its checksum in the manifest."""
    path, manifest = folder / name, folder / "manifest.json"
    before = zlib.crc32(path.read_bytes())
    path.write_bytes(data)
    manifest.write_text(manifest.read_text().replace(f'"crc32": {before}', f'"crc32": {zlib.crc32(data)}'))


def words(folder: Path) -> npt.NDArray[np.int32]:
    return np.fromfile(folder / PROGRAM, "<i4").reshape(-1, PASS_WORDS)


def set_field(folder: Path, field: str, value: int, number: int = 0) -> None:
    program = words(folder)
    program[number, PASS_FIELDS.index(field)] = value
    edit(folder, PROGRAM, program.tobytes())


def test_largest_shift_of_the_host_equals_the_limit_of_requantisers() -> None:
    assert MAX_SHIFT == SHIFT_LIMIT


def read_all(networks_by_name: Mapping[str, Any], geometry: str, batch: int, folder: Path) -> int:
    """Generate and read designs, and return the number of their passes."""
    passes = 0
    for name, network in networks_by_name.items():
        try:
            files = design_of(network, GEOMETRIES[geometry], batch)
        except (DoesNotFitError, UnsupportedError):  # a batch of it does not fit, or no tiling of a layer does
            continue
        write(files, folder / geometry / name)
        passes += len(read(folder / geometry / name).program)
    return passes


def test_generated_program_of_each_network_is_accepted(tmp_path: Path) -> None:
    """Generate each network once, with the geometries and the batch sizes in turn."""
    made, taken = networks(), 0
    for number, name in enumerate(made):
        geometry = list(GEOMETRIES)[number % len(GEOMETRIES)]
        taken += read_all({name: made[name]}, geometry, (1, 3)[number % 2], tmp_path)
    assert taken > 3 * len(made)


@pytest.mark.engine
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("batch", [1, 3])
def test_generated_program_of_every_network_and_geometry_is_accepted(geometry: str, batch: int, tmp_path: Path) -> None:
    assert read_all(networks(), geometry, batch, tmp_path) > 10 * batch


def test_wrong_word_is_refused_with_its_pass_and_field(folder: Path) -> None:
    before = (folder / PROGRAM).read_bytes()
    rows: list[tuple[str, int, type[SystolicError], dict[str, Any]]] = [
        ("stride", -1, RangeError, {"low": 0, "high": 127}),
        ("stride", 0, InvalidValueError, {}),
        ("row_tiles", -1, MismatchError, {"expected": 2}),
        ("row_words", 77, MismatchError, {}),
        ("last_slot", 1, InvalidValueError, {}),
        ("in_buffer", 1, MismatchError, {"expected": 0}),
        ("in_base", 1, RangeError, {"low": 0}),
        ("out_base", 1 << 20, RangeError, {}),
        ("weights_base", 1 << 20, InvalidValueError, {}),
        ("requantiser_base", 1 << 20, InvalidValueError, {}),
        ("limits", 1, InvalidValueError, {}),
    ]
    for field, value, kind, fields in rows:
        set_field(folder, field, value)
        with raises(kind, where=f"{PROGRAM}: pass 0", what=field, got=value, **fields) as caught:
            read(folder)
        assert caught.value.remedy.startswith("generate the design again")
        edit(folder, PROGRAM, before)
    for field, value in (("burst_words", 1 << 30), ("out_width", (1 << 31) - 1)):
        set_field(folder, field, value)
        with raises(InvalidValueError, where=f"{PROGRAM}: pass 0", what="array_steps"):
            read(folder)
        edit(folder, PROGRAM, before)


HARMLESS = {
    *("in_base", "in_block_pitch", "in_row_pitch", "in_width", "pad_left", "weights_base", "requantiser_base"),
    *("in_height", "depthwise", "out_height", "inputs_resident", "resident", "pool_size", "value_words", "out_base"),
    *("out_row_pitch", "out_block_pitch", "last_slot", "limits", "around", "overlap", "out_turn"),
    "group_pixels",
}
"""Words that may be wrong within the bounds of the buffers: the result is another network."""


def test_extreme_word_is_refused_in_every_pass(folder: Path) -> None:
    manifest, uploads = of_style(SystolicManifest, read_manifest(folder)), read(folder)
    images = ImageWords(len(uploads.weights[0]), len(uploads.requantisers), uploads.requantisers[:, 3])
    program = uploads.program.copy()
    numbers = program.view(np.int32)
    for place, field in enumerate(PASS_FIELDS):
        refused = 0
        for number in range(len(program)):
            before = int(numbers[number, place])
            for value in EXTREMES:
                if before == value:
                    continue
                numbers[number, place] = value
                try:
                    check_program(manifest, program, images, PROGRAM)
                except SystolicError:
                    refused += 1
                else:
                    assert field in HARMLESS, f"{field} = {value} in pass {number} is let through"
            numbers[number, place] = before
        assert refused >= len(program), field


def test_program_or_requantisers_of_another_design_are_refused(folder: Path) -> None:
    before, passes = (folder / PROGRAM).read_bytes(), len(read(folder).program)
    edit(folder, PROGRAM, before[: -4 * PASS_WORDS])
    with raises(MismatchError, where=PROGRAM, what="the number of passes", got=passes - 1, expected=passes):
        read(folder)
    edit(folder, PROGRAM, before[:-1])
    with raises(InvalidValueError, where=PROGRAM, what="the number of bytes", got=len(before) - 1):
        read(folder)
    edit(folder, PROGRAM, before)
    channels = np.fromfile(folder / REQUANTISERS, "<u4").reshape(-1, 4)
    for shift in (0, 48, 255, (1 << 32) - 1):
        channels[-1, 2] = shift
        edit(folder, REQUANTISERS, channels.tobytes())
        with raises(RangeError, where=REQUANTISERS, what="the shift of a requantiser", got=shift, low=1, high=47):
            read(folder)


def test_library_of_another_geometry_is_not_called(tiny: Path) -> None:
    described = of_style(SystolicManifest, read_manifest(tiny))
    SystolicLibrary(build(tiny), described)
    for key in ("row_depth", "channel_tiles", "map_depth"):
        edited: Any = manifest_fields(tiny)
        compiled = edited["array"][key]
        edited["array"][key] = 1 << 20
        with raises(MismatchError, what=key.upper(), got=compiled, expected=1 << 20, where=str(build(tiny))):
            SystolicLibrary(build(tiny), of_style(SystolicManifest, parse_manifest(edited, "manifest.json")))


def test_network_of_another_design_is_refused(folder: Path, tmp_path: Path) -> None:
    write(design_of(networks()["pools"], GEOMETRIES["odd rows"], 1), tmp_path / "other")
    shutil.copyfile(tmp_path / "other" / "network.npz", folder / "network.npz")
    with pytest.raises(SystolicError, match=r"network\.npz"):
        open_design(folder)
    (folder / "network.npz").unlink()
    with pytest.raises(SystolicError, match=r"network\.npz"):
        open_design(folder)


def test_file_that_is_too_large_or_a_pipe_is_not_read(folder: Path) -> None:
    for name in ("manifest.json", "network.npz", PROGRAM):
        path = folder / name
        before = path.read_bytes()
        with path.open("wb") as file:
            file.truncate(5 << 30)  # takes no room on the disk
        with raises(RangeError, where=str(path), got=5 << 30):
            open_design(folder)
        path.unlink()
        os.mkfifo(path)
        with raises(FileAccessError, path=str(path)):
            open_design(folder)
        path.unlink()
        path.write_bytes(before)
