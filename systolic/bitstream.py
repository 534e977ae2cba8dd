"""A bitstream and its hardware description, as Vivado writes them: checked before they are packaged for a board.

A .bit file has a header of fields, each a letter and a length, and then the configuration data (UG470 and UG570 say how
these begin; FPGA-FAQ 0026 lists the fields, and so does the database of file(1)). A .hwh file names its Vivado.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from boards import board as board_room
from boards.errors import MAX_FAULT_LENGTH, ChoiceError, DamagedFileError, MismatchError, cut

MAGIC = b"\x00\x09\x0f\xf0\x0f\xf0\x0f\xf0\x0f\xf0\x00\x00\x01"
"""What every .bit file begins with: a field of nine bytes, and the length of the first letter."""

SYNC_WORD = bytes.fromhex("aa995566")
"""After padding, the data of every 7 series and UltraScale+ bitstream begin with it."""

PADDING = 4096
"""Bytes before the sync word, at most; Vivado writes less than a hundred."""

REBUILD = "run build_vivado.tcl again, and copy its .bit and .hwh together"


@dataclass(frozen=True)
class BitHeader:
    """What a .bit file says of itself. length: bytes of configuration data."""

    design: str
    part: str
    date: str
    time: str
    length: int


def read_header(path: Path, data: bytes) -> BitHeader:
    """Return the header of a .bit file. DamagedFileError if it is none, is cut, or has no configuration data."""
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
        raise _damaged(path, f"has {there:,} bytes of data where its header says {length:,}", "field e")
    if SYNC_WORD not in data[place + 5 : place + 5 + PADDING]:
        raise _damaged(path, f"has data without the sync word {SYNC_WORD.hex()}, with which a configuration begins")
    design, part, date, time = texts
    return BitHeader(design, part, date, time, length)


def _text(path: Path, data: bytes, letter: str, place: int) -> tuple[str, int]:
    """Return a field of text, and the place after it."""
    start = place + 3
    end = start + int.from_bytes(data[place + 1 : start], "big")
    if data[place : place + 1] != letter.encode() or end > len(data):
        raise _damaged(path, f"has no field {letter} at byte {place}", f"field {letter}")
    text = data[start:end].rstrip(b"\0")
    if not text.isascii() or not text.decode("ascii").isprintable():
        raise _damaged(path, "holds bytes that are no text", f"field {letter}")
    return text.decode("ascii"), end


def _damaged(path: Path, reason: str, place: str = "") -> DamagedFileError:
    return DamagedFileError(str(path), f"{reason}: it is no bitstream that Vivado wrote", place, remedy=REBUILD)


def check_built(bitstream: tuple[Path, bytes], description: tuple[Path, bytes], board: str) -> None:
    """Raise an error unless Vivado wrote both files, for the board's part.

    bitstream, description: the .bit and .hwh files and their bytes. board: its name; one that is not known any more is
    no fault, and then only the two files are compared.

    Raises:
        DamagedFileError: A file is not what it should be; or the .hwh is the one that the generator wrote for the
            simulated board.
        MismatchError: The part is another one than the board's, or differs between the files.
    """
    header, described = read_header(*bitstream), _described_part(*description)
    if part_of(header.part) != part_of(described):
        what = f"the part that {bitstream[0].name} is for, beside {description[0].name},"
        raise MismatchError(what, header.part, described, remedy=REBUILD)
    try:
        wanted = board_room.load(board).part
    except ChoiceError:
        return
    if part_of(header.part) != part_of(wanted):
        what = f"the part that {bitstream[0].name} is for"
        remedy = f"the design is for {board}: build it with the build_vivado.tcl of its folder"
        raise MismatchError(what, header.part, wanted, remedy=remedy)


def part_of(name: str) -> str:
    """Return device and package of a part, which a bitstream is for: ``zu7evffvc1156`` of ``xczu7ev-ffvc1156-2-e``."""
    first, *others = name.lower().removeprefix("xc").split("-")
    package = others[0] if others and others[0][:1].isalpha() else ""
    return first + package


def _described_part(path: Path, data: bytes) -> str:
    """Return device and package of a .hwh file of Vivado's."""
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        reason = f"is not a hardware description: it is not XML ({cut(error, MAX_FAULT_LENGTH)})"
        raise DamagedFileError(str(path), reason, remedy=REBUILD) from error
    system = root.find("SYSTEMINFO")
    if "VIVADOVERSION" not in root.attrib:
        reason = "names no Vivado: it is the description that systolic generate wrote for the simulated board"
        raise DamagedFileError(str(path), reason, remedy=f"{REBUILD}, or package --without-bitstream")
    if system is None or not system.get("DEVICE"):
        raise DamagedFileError(str(path), "names no device", "SYSTEMINFO", remedy=REBUILD)
    return "-".join(filter(None, (system.get("DEVICE"), system.get("PACKAGE"))))
