"""What manifests of every style hold: images and heads, how they are read, and what must hold of them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from boards.errors import HostError
from host.vision.detection import Head
from host.vision.picture import FITS

MANIFEST = "manifest.json"
LARGEST_BUFFER = 1 << 31  # bytes; more than any of the boards gives to contiguous memory
MOST_LAYERS = 4096


@dataclass(frozen=True)
class Design:
    """What the host knows of a design of any style."""

    network: str
    labels: tuple[str, ...]
    board: str
    clock_mhz: float
    top: str
    style: str
    fit: str

    @property
    def vlnv(self) -> str:
        """The IP that Vitis HLS exports for this design."""
        return f"systolic:cnn:{self.top}:1.0"


def design_of(values: Mapping[str, Any]) -> tuple[str, tuple[str, ...], str, float, str, str, str]:
    """The fields of a ``Design``, in their order."""
    return (
        str(values["network"]),
        tuple(str(label) for label in values["labels"]),
        str(values["board"]),
        float(values["clock_mhz"]),
        str(values["top"]),
        str(values["style"]),
        str(values["fit"]),
    )


@dataclass(frozen=True)
class NetworkHead:
    """A detection head reads the output of the layer with index ``layer``."""

    layer: int
    head: Head


@dataclass(frozen=True)
class Image:
    """A file that is uploaded once, and the CRC-32 that it has."""

    path: str
    crc32: int


def read_image(folder: Path, image: Image) -> bytes:
    """The bytes of an image; HostError where the file is not what the manifest says."""
    path = folder / image.path
    try:
        if path.stat().st_size > LARGEST_BUFFER:
            raise HostError(f"{path}: an image has at most {LARGEST_BUFFER} bytes; copy the design again")
        data = path.read_bytes()
    except OSError as error:
        raise HostError(f"{path} cannot be read ({error.strerror}); copy the whole folder to the board") from error
    found = zlib.crc32(data)
    if found != image.crc32:
        raise HostError(
            f"{path} has checksum {found:08x}, {MANIFEST} says {image.crc32:08x}: the folder holds files of two "
            "designs or was cut off; copy it again"
        )
    return data


def inside(name: object) -> str:
    """The path of an image; HostError where it leaves the folder."""
    path = PurePosixPath(str(name))
    if path.is_absolute() or ".." in path.parts or "\\" in str(name):
        raise HostError(f"an image stays inside the folder, {str(name)!r} does not")
    return str(name)


def image_of(name: object, crc32: Any) -> Image:
    """HostError where the path leaves the folder or the checksum is none."""
    require(0 <= int(crc32) < 1 << 32, f"{name}: crc32 is 32 bits", crc32)
    return Image(inside(name), int(crc32))


def check_common(fit: str, clock_mhz: float) -> None:
    """What holds for designs of every style."""
    require(fit in FITS, f"fit is one of {', '.join(FITS)}", fit)
    require(0 < clock_mhz < 2000, "clock_mhz is 0…2000", clock_mhz)


def require(holds: bool, what: str, came: object) -> None:
    """HostError else; it says both."""
    if not holds:
        raise HostError(f"{what}, not {came!r}")
