"""Files as Vivado writes them for a generated design: a bitstream with its header, and a hardware description."""

from __future__ import annotations

from pathlib import Path

MAGIC = bytes.fromhex("0009 0ff0 0ff0 0ff0 0ff0 00 0001")
DATA = b"\xff" * 32 + bytes.fromhex("000000bb 11220044 ffffffff ffffffff aa995566") + bytes(range(64))
"""Padding, the words that detect the port's width, the sync word, and bytes that are not a configuration."""


def bit_file(part: str, data: bytes = DATA, design: str = "system_wrapper;Version=2022.1") -> bytes:
    """Return the bytes of a .bit file for a part, as Vivado names it: ``7z020clg400`` or ``xczu7ev-ffvc1156-2-e``."""
    texts = {b"a": design, b"b": part, b"c": "2026/11/29", b"d": "10:20:30"}
    fields = [key + _sized(text.encode() + b"\0", 2) for key, text in texts.items()]
    return MAGIC + b"".join(fields) + b"e" + _sized(data, 4)


def _sized(data: bytes, width: int) -> bytes:
    return len(data).to_bytes(width, "big") + data


def write_built(folder: Path, part: str = "7z020clg400", described: str = "") -> Path:
    """Write ``systolic.bit`` for the part, and change the folder's .hwh to one of Vivado's.

    By default, both are for the part of a PYNQ-Z2.
    """
    device, _, package = (described or "7z020-clg400").partition("-")
    (place,) = folder.glob("*.hwh")
    text = place.read_text("utf-8")
    start = text.index("<SYSTEMINFO")
    end = text.index("/>", start) + 2
    system = f'<SYSTEMINFO ARCH="zynq" DEVICE="{device}" NAME="system" PACKAGE="{package}" SPEEDGRADE="-1" />'
    text = text[:start] + system + text[end:]
    place.write_text(text.replace("<EDKSYSTEM ", '<EDKSYSTEM VIVADOVERSION="2022.1" ', 1), "utf-8")
    bit = folder / "systolic.bit"
    bit.write_bytes(bit_file(part))
    return bit
