"""Fuzzing of pictures, in every format that the project reads."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from host.vision.picture import load_picture
from tests.fuzz.files import corpus
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.mutators import BYTES
from tests.fuzz.files.target import MEGABYTE, Target

MODES = {
    "PNG": ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"),
    "JPEG": ("RGB", "L", "CMYK"),
    "BMP": ("RGB", "L", "P", "1"),
    "GIF": ("RGB", "P", "L"),
    "PPM": ("RGB", "L", "1"),
    "TIFF": ("RGB", "RGBA", "L", "I;16", "F", "CMYK", "P"),
    "WEBP": ("RGB", "RGBA"),
}


def picture_seeds() -> tuple[bytes, ...]:
    """Return a small picture in every format and mode, and the files that once showed a defect."""
    pixels = Image.fromarray(np.random.default_rng(1).integers(0, 256, (9, 13, 3), np.uint8))
    return (*(_saved(pixels, kind, mode) for kind, modes in MODES.items() for mode in modes), *corpus.files("picture"))


def _saved(picture: Image.Image, kind: str, mode: str) -> bytes:
    data = io.BytesIO()
    converted = picture.convert("L").convert(mode) if mode in ("F", "I;16") else picture.convert(mode)
    converted.save(data, kind)
    return data.getvalue()


def read_picture(path: Path) -> None:
    """Read a picture as every command does."""
    load_picture(path)


PICTURE = Target("picture", picture_seeds, BYTES, read_picture, "picture", extra_bytes=256 * MEGABYTE)

picture = partial(hunt, PICTURE)
