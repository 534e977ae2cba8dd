"""Pictures for networks with any number of channels: grey pictures, and arrays that no picture format can hold."""

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
from host.vision.picture import FITS, MAX_PICTURE_BYTES, MAX_PICTURE_PIXELS, Pixels, check_file, load_picture
from host.vision.placement import Placement

ARRAY = ".npy"
"""Suffix of an array file that holds uint8 ``(height, width, channels)``."""

_LUMINANCE = np.array([19595, 38470, 7471], np.uint32)  # weights of ITU-R 601 times 2¹⁶, as in Pillow's mode L


def load_frame(path: Path | str) -> Pixels:
    """Read a picture file as uint8 ``(height, width, 3)``, or an array file as the array that it holds.

    Errors are the same as in ``load_picture``. An array of the wrong type or shape raises ShapeError.
    """
    if Path(path).suffix.lower() != ARRAY:
        return load_picture(path)
    check_file(Path(path))
    values = _array_file(Path(path))
    if values.nbytes > MAX_PICTURE_BYTES:
        raise RangeError("the number of bytes of the array", values.nbytes, high=MAX_PICTURE_BYTES, where=str(path))
    try:
        return checked_frame(np.array(values))
    except ShapeError as error:
        raise error.at(str(path)) from error


def _array_file(path: Path) -> Any:
    """Open an array file (.npy) and return its array, mapped to memory, before any value is read."""
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
    """Return a picture as uint8 ``(height, width, channels)``. A grey picture may be given as ``(height, width)``.

    Raises:
        ShapeError: The frame has another type or shape.
        RangeError: It has more than MAX_PICTURE_PIXELS pixels. A view may have that many without using memory.
    """
    if frame.dtype != np.uint8 or frame.ndim not in (2, 3) or not frame.size:
        required = "type uint8, shape [height, width, channels] or [height, width], and at least one pixel"
        raise ShapeError("the picture", f"{frame.dtype} {list(frame.shape)}", required)
    pixels = int(frame.shape[0]) * int(frame.shape[1])
    if pixels > MAX_PICTURE_PIXELS:
        what = f"the number of pixels of the picture {list(frame.shape)}"
        raise RangeError(what, pixels, 1, MAX_PICTURE_PIXELS, remedy="make the picture smaller first")
    return frame[..., None] if frame.ndim == 2 else frame


def network_input(frame: Pixels, shape: tuple[int, int, int], fit: str) -> tuple[Pixels, Placement]:
    """Resize a picture to a network's input; return the input and the picture's position in it.

    Colours become grey for a network with one channel, and grey is copied to three channels for a network with three.

    Args:
        frame: uint8 ``(height, width, channels)``.
        shape: Channels, height and width of the input.
        fit: The way to resize, one of FITS.

    Returns:
        The input, uint8 of ``shape``, and the position of the frame in it.

    Raises:
        MismatchError: The frame's number of channels does not fit the network.
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
    """Return the picture as uint8 ``(height, width, 3)`` for drawing: a colour picture itself, else its first channel
    as grey."""
    return frame if frame.shape[2] == 3 else np.repeat(frame[..., :1], 3, axis=2)
