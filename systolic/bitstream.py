"""Checks the bitstream and the hardware description that Vivado wrote, before they are packaged for a board.

A .bit file has a header and then the configuration data. Each field of the header has a letter and a length. FPGA-FAQ
0026 and the database of file(1) list the fields; UG470 and UG570 describe how the configuration data begins. A .hwh
file is XML that names the version of Vivado.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from boards import board as board_room
from boards.errors import MAX_FAULT_LENGTH, ChoiceError, DamagedFileError, MismatchError, cut

MAGIC = b"\x00\x09\x0f\xf0\x0f\xf0\x0f\xf0\x0f\xf0\x00\x00\x01"
"""The first bytes of every .bit file: a field of nine bytes, and the length of the first field's letter."""

SYNC_WORD = bytes.fromhex("aa995566")
"""The word that follows the padding in the data of every 7 series and UltraScale+ bitstream (UG470, UG570)."""

PADDING = 4096
"""Limit for the bytes before the sync word. Vivado writes less than a hundred."""

REBUILD = "run build_vivado.tcl again, and copy its .bit and .hwh together"


@dataclass(frozen=True)
class BitHeader:
    """The header of a .bit file: the design's name, the part, the date and the length of the configuration data.

    Attributes:
        design: The name of the design, with Vivado's options.
        part: The part without "xc", for example ``7z020clg400``.
        date: The date on which the file was written.
        time: The time at which the file was written.
        length: Bytes of configuration data.
    """

    design: str
    part: str
    date: str
    time: str
    length: int


def read_header(path: Path, data: bytes) -> BitHeader:
    """Return the header of a .bit file.

    Args:
        path: The path of the file, for errors.
        data: The content of the file.

    Raises:
        DamagedFileError: The file is not a .bit file, is truncated, or has no configuration data.
    """
    if not data.startswith(MAGIC):
        reason = "has 0 bytes" if not data else "does not begin with the header of a .bit file"
        raise _damaged(path, reason)
    texts, place = [], len(MAGIC)
    for letter in "abcd":
        text, place = _text(path, data, letter, place)
        texts.append(text)
    length = int.from_bytes(data[place + 1 : place + 5], "big")
    there = len(data) - place - 5
    if data[place : place + 1] != b"e" or there < 0:
        raise _damaged(path, "ends in its header, before the field e with the length of its data")
    if length != there or length == 0:
        raise _damaged(path, f"has {there:,} bytes of data, but its header says {length:,}", "field e")
    if SYNC_WORD not in data[place + 5 : place + 5 + PADDING]:
        raise _damaged(path, f"has no sync word {SYNC_WORD.hex()} at the start of its configuration data")
    design, part, date, time = texts
    return BitHeader(design, part, date, time, length)


def _text(path: Path, data: bytes, letter: str, place: int) -> tuple[str, int]:
    """Return the text of the .bit header's field that starts at byte ``place``, and the position after the field."""
    start = place + 3
    end = start + int.from_bytes(data[place + 1 : start], "big")
    if data[place : place + 1] != letter.encode() or end > len(data):
        raise _damaged(path, f"has no field {letter} at byte {place}", f"field {letter}")
    text = data[start:end].rstrip(b"\0")
    if not text.isascii() or not text.decode("ascii").isprintable():
        raise _damaged(path, "holds bytes that are not text", f"field {letter}")
    return text.decode("ascii"), end


def _damaged(path: Path, reason: str, place: str = "") -> DamagedFileError:
    return DamagedFileError(str(path), f"{reason}, so it is not a bitstream that Vivado wrote", place, remedy=REBUILD)


def check_built(bitstream: tuple[Path, bytes], description: tuple[Path, bytes], board: str) -> None:
    """Raise an error unless Vivado wrote both files for the board's part.

    Args:
        bitstream: The path and the bytes of the .bit file.
        description: The path and the bytes of the .hwh file.
        board: The board's name. If no board has this name any more, only the parts of the two files are compared.

    Raises:
        DamagedFileError: A file is damaged, or the .hwh file is the one that the generator wrote for the simulated
            board.
        MismatchError: The two files are for different parts, or for another part than the board's.
    """
    header, described = read_header(*bitstream), _described_part(*description)
    if part_of(header.part) != part_of(described):
        what = f"the part of {bitstream[0].name}, compared with {description[0].name},"
        raise MismatchError(what, header.part, described, remedy=REBUILD)
    try:
        wanted = board_room.load(board).part
    except ChoiceError:
        return
    if part_of(header.part) != part_of(wanted):
        what = f"the part of {bitstream[0].name}"
        remedy = f"the design is for {board}: build it with the build_vivado.tcl of its folder"
        raise MismatchError(what, header.part, wanted, remedy=remedy)


def part_of(name: str) -> str:
    """Return the device and package of a part: ``zu7evffvc1156`` for ``xczu7ev-ffvc1156-2-e``.

    A bitstream depends on these only, not on the speed grade.
    """
    first, *others = name.lower().removeprefix("xc").split("-")
    package = others[0] if others and others[0][:1].isalpha() else ""
    return first + package


def _described_part(path: Path, data: bytes) -> str:
    """Return the device and package that a .hwh file of Vivado names, such as ``xczu7ev-ffvc1156``."""
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        reason = f"is not a hardware description: it is not XML ({cut(error, MAX_FAULT_LENGTH)})"
        raise DamagedFileError(str(path), reason, remedy=REBUILD) from error
    system = root.find("SYSTEMINFO")
    if "VIVADOVERSION" not in root.attrib:
        reason = "does not name Vivado: it is the description that systolic generate wrote for the simulated board"
        raise DamagedFileError(str(path), reason, remedy=f"{REBUILD}, or package --without-bitstream")
    if system is None or not system.get("DEVICE"):
        raise DamagedFileError(str(path), "does not name a device", "SYSTEMINFO", remedy=REBUILD)
    return "-".join(filter(None, (system.get("DEVICE"), system.get("PACKAGE"))))
