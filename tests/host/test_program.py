"""No word of a program reaches the engine that would let it go beyond what there is."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from boards.errors import HostError, ScheduleError, SimulationError
from cnn.quantized_check import SHIFT_LIMIT
from host.contract import systolic as contract
from host.contract.libraries import SystolicLibrary
from host.contract.manifest import of_style, parse_manifest, read_manifest
from host.contract.program import LARGEST_SHIFT
from host.contract.systolic import SystolicManifest
from host.contract.uploads import SystolicUploads, read_systolic
from scheduler.systolic.array import PIXEL_BYTES
from scheduler.systolic.program.passes import PASS_FIELDS, PASS_WORDS
from systolic.execution.build import build
from systolic.files import write
from systolic.styles.registry import open_design
from tests.support.accelerators import GEOMETRIES, design_of, networks

PROGRAM, REQUANTISERS = "data/program.bin", "data/requantisers.bin"
EXTREMES = (0, 1, 2, -1, -2, 1 << 8, 1 << 15, 1 << 20, (1 << 31) - 1, -(1 << 31))


@pytest.fixture
def folder(tiny: Path, tmp_path: Path) -> Path:
    """A copy without its libraries, to be edited."""
    return Path(shutil.copytree(tiny, tmp_path / "design", ignore=shutil.ignore_patterns("build", "model", "golden")))


def read(folder: Path) -> SystolicUploads:
    return read_systolic(folder, of_style(SystolicManifest, read_manifest(folder)))


def edit(folder: Path, name: str, data: bytes) -> None:
    """The file is another, and the manifest says its checksum."""
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


def test_the_host_has_the_generators_words_of_a_pass() -> None:
    assert contract.PASS_FIELDS == PASS_FIELDS
    assert (contract.PASS_WORDS, contract.PIXEL_BYTES, LARGEST_SHIFT) == (PASS_WORDS, PIXEL_BYTES, SHIFT_LIMIT)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("batch", [1, 3])
def test_what_is_generated_is_taken(geometry: str, batch: int, tmp_path: Path) -> None:
    taken = 0
    for name, network in networks().items():
        try:
            files = design_of(network, GEOMETRIES[geometry], batch)
        except ScheduleError:  # a batch of it does not fit
            continue
        write(files, tmp_path / name)
        taken += len(read(tmp_path / name).program)
    assert taken > 10 * batch


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("stride", -1, "stride of pass 0 is 0…127, not -1"),
        ("stride", 0, "stride of pass 0 is at least 1, or 0 where one place is read for all, not 0"),
        ("row_tiles", -1, "row_tiles of pass 0 is 2, not -1"),
        ("row_words", 77, "row_words of pass 0 is "),
        ("burst_words", 1 << 30, "array_steps of pass 0 is at most 2147483647, of rows within row_depth, not"),
        ("out_width", (1 << 31) - 1, "array_steps of pass 0 is at most 2147483647"),
        ("last_slot", 1, "last_slot of pass 0 is whole slots within row_depth = "),
        ("in_buffer", 1, "in_buffer of pass 0 is 0"),
        ("in_base", 1, "in_base of pass 0 is 0…"),
        ("out_base", 1 << 20, "out_base of pass 0 is "),
        ("weights_base", 1 << 20, "weights_base of pass 0 is of a tile within "),
        ("requantiser_base", 1 << 20, "requantiser_base of pass 0 is of "),
        ("limits", 1, "limits of pass 0 is of a least value of 0 or less, not 1"),
    ],
)
def test_a_word_that_is_wrong_is_named(folder: Path, field: str, value: int, sentence: str) -> None:
    set_field(folder, field, value)
    with pytest.raises(HostError) as caught:
        read(folder)
    assert f"{PROGRAM}: {sentence}" in str(caught.value)
    assert "the folder is damaged or was edited: generate the design again" in str(caught.value)


@pytest.mark.parametrize("field", PASS_FIELDS)
def test_extreme_words_are_refused_in_every_pass(folder: Path, field: str) -> None:
    """But for those that stay inside: they only make another, wrong network."""
    harmless = {"in_base", "in_block_pitch", "in_row_pitch", "in_width", "pad_left", "weights_base", "requantiser_base"}
    harmless |= {"in_height", "depthwise", "out_height", "inputs_resident", "resident", "pool_size", "value_words"}
    harmless |= {"out_base", "out_row_pitch", "out_block_pitch", "last_slot", "limits", "around", "overlap", "out_turn"}
    program, before = words(folder), (folder / PROGRAM).read_bytes()
    refused = 0
    for number in range(len(program)):
        for value in EXTREMES:
            if program[number, PASS_FIELDS.index(field)] != value:
                set_field(folder, field, value, number)
                try:
                    read(folder)
                except HostError:
                    refused += 1
                else:
                    assert field in harmless, f"{field} = {value} in pass {number} is let through"
                edit(folder, PROGRAM, before)
    assert refused >= len(program)


def test_a_program_of_another_length(folder: Path) -> None:
    edit(folder, PROGRAM, (folder / PROGRAM).read_bytes()[: -4 * PASS_WORDS])
    with pytest.raises(HostError, match=r"program\.bin holds \d+ passes, the manifest says \d+; copy it again"):
        read(folder)
    edit(folder, PROGRAM, (folder / PROGRAM).read_bytes()[:-1])
    with pytest.raises(HostError, match=r"program\.bin holds \d+ bytes, and not whole words of 256; copy it again"):
        read(folder)


@pytest.mark.parametrize("shift", [0, 48, 255, (1 << 32) - 1])
def test_a_shift_that_no_requantiser_has(folder: Path, shift: int) -> None:
    channels = np.fromfile(folder / REQUANTISERS, "<u4").reshape(-1, 4)
    channels[-1, 2] = shift
    edit(folder, REQUANTISERS, channels.tobytes())
    with pytest.raises(HostError, match=r"requantisers\.bin: a shift is 1…47, not .*; generate the design again"):
        read(folder)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("row_depth", 1 << 20, "was compiled for ROW_DEPTH = "),
        ("channel_tiles", 1 << 20, "was compiled for CHANNEL_TILES = "),
        ("map_depth", 1 << 20, "was compiled for MAP_DEPTH = "),
    ],
)
def test_a_library_of_another_geometry_is_not_called(tiny: Path, key: str, value: int, sentence: str) -> None:
    described = of_style(SystolicManifest, read_manifest(tiny))
    edited: Any = json.loads((tiny / "manifest.json").read_text())
    edited["array"][key] = value
    SystolicLibrary(build(tiny), described)
    with pytest.raises(
        SimulationError, match=f"{sentence}.*, the manifest says {value}; the folder holds files of two"
    ):
        SystolicLibrary(build(tiny), of_style(SystolicManifest, parse_manifest(edited, "manifest.json")))


def test_a_network_of_another_design(folder: Path, shapes: Path) -> None:
    shutil.copyfile(shapes / "network.npz", folder / "network.npz")
    with pytest.raises(SimulationError, match=r"in the manifest, .* in network\.npz; generate it again"):
        open_design(folder)
    (folder / "network.npz").unlink()
    with pytest.raises(SimulationError, match=r"is not whole: .*network\.npz.*; generate it again"):
        open_design(folder)


@pytest.mark.parametrize("name", ["manifest.json", "network.npz", PROGRAM])
def test_what_is_too_large_is_not_read(folder: Path, name: str) -> None:
    with (folder / name).open("wb") as file:
        file.truncate(5 << 30)  # of which a disk holds nothing
    with pytest.raises(HostError, match=r"has 5368709120 bytes, at most \d+ are read; generate the design again"):
        open_design(folder)


@pytest.mark.parametrize("name", ["manifest.json", "network.npz", PROGRAM])
def test_a_pipe_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(HostError, match="is no file; generate the design again"):
        open_design(folder)
