"""Pictures for networks of any number of channels: grey ones, and arrays of what no picture file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import (
    MAX_FAULT_LENGTH,
    DamagedFileError,
    FileAccessError,
    MismatchError,
    RangeError,
    ShapeError,
    cut,
)
from host.vision.picture import FITS, LARGEST_MEMORY, LARGEST_PICTURE, Pixels, check_file, load_picture
from host.vision.placement import Placement

ARRAY = ".npy"
"""Ending of a file that holds uint8 [height, width, channels]."""

_LUMINANCE = np.array([19595, 38470, 7471], np.uint32)  # of 2¹⁶: ITU-R 601, as Pillow's mode L has it


def load_frame(path: Path | str) -> Pixels:
    """Return a picture file as uint8 [height, width, 3] (``load_picture``), an array file as what it holds.

    The errors of an array file are those of ``load_picture`` too, and ShapeError.
    """
    if Path(path).suffix.lower() != ARRAY:
        return load_picture(path)
    check_file(Path(path))
    values = _array_file(Path(path))
    if values.nbytes > LARGEST_MEMORY:
        raise RangeError("the number of bytes of the array", values.nbytes, high=LARGEST_MEMORY, where=str(path))
    try:
        return checked_frame(np.array(values))
    except ShapeError as error:
        raise error.at(str(path)) from error


def _array_file(path: Path) -> Any:
    """The array of a file, which is not read yet."""
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or cut(error, MAX_FAULT_LENGTH)}"
        raise FileAccessError(str(path), reason, "array file") from error
    except Exception as error:  # numpy evaluates the header as Python, with all that can go wrong there
        reason = f"cannot be read as an array: {cut(error, MAX_FAULT_LENGTH)}"
        raise DamagedFileError(str(path), reason, remedy="write it with numpy.save") from error
    if not isinstance(values, np.ndarray):
        raise DamagedFileError(str(path), "is an archive of arrays", remedy="write it with numpy.save")
    return values


def checked_frame(frame: Pixels) -> Pixels:
    """Return a frame uint8 [height, width, channels]; grey may be [height, width]. ShapeError for anything else,
    RangeError for more than LARGEST_PICTURE pixels, which a view may have without any memory."""
    if frame.dtype != np.uint8 or frame.ndim not in (2, 3) or not frame.size:
        required = "type uint8, shape [height, width, channels] or [height, width], and at least one pixel"
        raise ShapeError("the picture", f"{frame.dtype} {list(frame.shape)}", required)
    pixels = int(frame.shape[0]) * int(frame.shape[1])
    if pixels > LARGEST_PICTURE:
        what = f"the number of pixels of the picture {list(frame.shape)}"
        raise RangeError(what, pixels, 1, LARGEST_PICTURE, remedy="make the picture smaller first")
    return frame[..., None] if frame.ndim == 2 else frame


def network_input(frame: Pixels, shape: tuple[int, int, int], fit: str) -> tuple[Pixels, Placement]:
    """A frame uint8 [h, w, c] → uint8 of ``shape``, channels, height and width, by one of FITS; and its placement.

    Colours become grey for a network of one channel, grey becomes three equal ones. MismatchError if the frame has
    other channels than the network.
    """
    channels, height, width = shape
    return FITS[fit](_of_channels(checked_frame(frame), channels), height, width)


def _of_channels(frame: Pixels, channels: int) -> Pixels:
    count = frame.shape[2]
    if count == channels:
        return frame
    if (count, channels) == (3, 1):
        return ((frame @ _LUMINANCE + (1 << 15)) >> 16).astype(np.uint8)[..., None]
    if (count, channels) == (1, 3):
        return np.repeat(frame, 3, axis=2)
    raise MismatchError(
        "the number of channels of a picture",
        count,
        channels,
        remedy=f"give uint8 [height, width, {channels}], as an array or as a file of numpy.save ({ARRAY}), for "
        "calibration too",
    )


def to_draw_on(frame: Pixels) -> Pixels:
    """uint8 [h, w, 3]: a frame in colours is itself; of another the first channel, as grey."""
    return frame if frame.shape[2] == 3 else np.repeat(frame[..., :1], 3, axis=2)
