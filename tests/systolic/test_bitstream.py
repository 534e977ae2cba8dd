"""Test the checks of a bitstream: ``systolic package`` accepts only what Vivado wrote for the board's part."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from boards import board
from boards.errors import DamagedFileError, MismatchError
from systolic.bitstream import BitHeader, check_built, part_of, read_header
from tests.support.bitstreams import DATA, MAGIC, bit_file, write_built
from tests.support.cases import cases
from tests.support.command_line import call, refused
from tests.support.detectors import write_tiny_design
from tests.support.errors import raises

PATH = Path("design.bit")
WHOLE = bit_file("7z020clg400")


def test_read_header_reads_each_field() -> None:
    expected = BitHeader("system_wrapper;Version=2022.1", "7z020clg400", "2026/11/29", "10:20:30", len(DATA))
    assert read_header(PATH, WHOLE) == expected


@cases(
    "data, place",
    [
        (b"", ""),
        (b"a bitstream", ""),
        (b"\x13\x37" * 2048, ""),
        (DATA, ""),  # a .bin file, which has no header
        (MAGIC, "field a"),
        (WHOLE[:30], "field a"),
        (WHOLE.replace(b"b\0", b"x\0", 1), "field b"),
        (WHOLE.replace(b"7z020", b"7z\x1b20", 1), "field b"),
        (WHOLE[: WHOLE.index(b"10:20:30") + 12], ""),
        (WHOLE[:-1], "field e"),
        (WHOLE + b"\0", "field e"),
        (bit_file("7z020clg400", b""), "field e"),
        (bit_file("7z020clg400", bytes(4096)), ""),
    ],
)
def test_read_header_of_another_file_raises_damaged_file_error(data: bytes, place: str) -> None:
    with raises(DamagedFileError, path="design.bit", place=place):
        read_header(PATH, data)


@cases(
    "name, device_and_package",
    [
        ("7z020clg400", "7z020clg400"),
        ("xc7z020clg400-1", "7z020clg400"),
        ("7z020-clg400", "7z020clg400"),
        ("xczu7ev-ffvc1156-2-e", "zu7evffvc1156"),
        ("xczu7ev-ffvc1156", "zu7evffvc1156"),
        ("xck26-sfvc784-2LV-c", "k26sfvc784"),
    ],
)
def test_part_of_names_device_and_package(name: str, device_and_package: str) -> None:
    assert part_of(name) == device_and_package


def test_part_of_differs_between_boards_of_different_parts() -> None:
    parts = {name: part_of(board.load(name).part) for name in board.names()}
    same = {frozenset(n for n in parts if parts[n] == part) for part in parts.values()}
    assert {names for names in same if len(names) > 1} == {frozenset(("kv260", "kr260"))}, (
        "the two boards carry the same module, so only they share a part"
    )


HWH = '<EDKSYSTEM VIVADOVERSION="2022.1"><SYSTEMINFO DEVICE="{}" PACKAGE="{}"/></EDKSYSTEM>'


def check(part: str, device: str, package: str, name: str) -> None:
    """Check a bitstream for ``part`` and a description of ``device`` and ``package`` for the board ``name``."""
    check_built((PATH, bit_file(part)), (Path("design.hwh"), HWH.format(device, package).encode()), name)


def test_check_built_requires_the_part_of_board_and_description() -> None:
    check("xczu7ev-ffvc1156-2-e", "xczu7ev", "ffvc1156", "zcu104")
    check("7z020clg400", "7z020", "clg400", "pynq-z2")
    check("7z020clg400", "7z020", "clg400", "a board of one's own, whose file is gone")
    with raises(MismatchError, got="7z020clg400", expected="xczu7ev-ffvc1156-2-e"):
        check("7z020clg400", "7z020", "clg400", "zcu104")
    with raises(MismatchError, got="xczu7ev-ffvc1156-2-e", expected="7z020-clg400"):
        check("xczu7ev-ffvc1156-2-e", "7z020", "clg400", "pynq-z2")


@cases(
    "text, place",
    [
        ("no XML", ""),
        ('<EDKSYSTEM EDWVERSION="1.2"><SYSTEMINFO DEVICE="xczu7ev-ffvc1156-2-e"/></EDKSYSTEM>', ""),
        ('<EDKSYSTEM VIVADOVERSION="2022.1"><SYSTEMINFO/></EDKSYSTEM>', "SYSTEMINFO"),
    ],
)
def test_check_built_with_bad_description_raises_damaged_file_error(text: str, place: str) -> None:
    with raises(DamagedFileError, path="design.hwh", place=place):
        check_built((PATH, bit_file("xczu7ev-ffvc1156-2-e")), (Path("design.hwh"), text.encode()), "zcu104")


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small design for the PYNQ-Z2."""
    folder = tmp_path_factory.mktemp("built") / "design"
    write_tiny_design(folder, "pynq-z2", array="4x8x8")
    return folder


def test_package_accepts_only_files_from_vivado(design: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(design, tmp_path / "design")
    simulated = (folder / "systolic.hwh").read_text("utf-8")
    bit = write_built(folder)
    whole, description = bit.read_bytes(), (folder / "systolic.hwh").read_text("utf-8")
    command = ("package", folder, "-o", tmp_path / "dist")
    assert call(*command).code == 0
    for wrong in (b"", b"\x5a" * 4_000_000, whole[:-7]):
        bit.write_bytes(wrong)
        refused(call(*command), DamagedFileError, path=str(bit))
    bit.write_bytes(whole)
    (folder / "systolic.hwh").write_text(simulated, "utf-8")
    refused(call(*command), DamagedFileError, path=str(folder / "systolic.hwh"))
    write_built(folder, "xczu7ev-ffvc1156-2-e", "xczu7ev-ffvc1156")
    refused(call(*command), MismatchError, got="xczu7ev-ffvc1156-2-e", expected="xc7z020clg400-1")
    (folder / "systolic.hwh").write_text(description, "utf-8")
    refused(call(*command), MismatchError, expected="7z020-clg400")
