"""Pictures for networks of any number of channels: grey ones, and arrays of what no picture file holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from boards.errors import LONGEST_FAULT, PictureError, cut
from host.vision.picture import FITS, LARGEST_MEMORY, Pixels, check_file, load_picture
from host.vision.placement import Placement

ARRAY = ".npy"
"""Ending of a file that holds uint8 [height, width, channels]."""

_LUMINANCE = np.array([19595, 38470, 7471], np.uint32)  # of 2¹⁶: ITU-R 601, as Pillow's mode L has it


def load_frame(path: Path | str) -> Pixels:
    """A picture file as uint8 [height, width, 3] (``load_picture``), an array file as what it holds.

    PictureError where the file is neither.
    """
    if Path(path).suffix.lower() != ARRAY:
        return load_picture(path)
    try:
        check_file(Path(path))
        values = np.load(path, mmap_mode="r", allow_pickle=False)
        if values.nbytes > LARGEST_MEMORY:
            raise PictureError(f"an array has at most {LARGEST_MEMORY:,} bytes, not {values.nbytes:,}")
        return checked_frame(np.array(values))
    except PictureError as error:
        raise PictureError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        raise PictureError(
            f"{path}: the array cannot be read ({cut(error, LONGEST_FAULT)}); write it with numpy.save"
        ) from error


def checked_frame(frame: Pixels) -> Pixels:
    """uint8 [height, width, channels]; of grey [height, width] too. PictureError for anything else."""
    if frame.dtype != np.uint8 or frame.ndim not in (2, 3) or not frame.size:
        raise PictureError(
            "a picture is uint8 [height, width, channels] or grey [height, width], and not empty, "
            f"not {frame.dtype} {list(frame.shape)}"
        )
    return frame[..., None] if frame.ndim == 2 else frame


def network_input(frame: Pixels, shape: tuple[int, int, int], fit: str) -> tuple[Pixels, Placement]:
    """A frame uint8 [h, w, c] → uint8 of ``shape``, channels, height and width, by one of FITS; and its placement.

    Colours become grey for a network of one channel, grey becomes three equal ones. PictureError where the frame has
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
    raise PictureError(
        f"the network reads {channels} channels, and this picture has {count}: give uint8 [height, width, {channels}], "
        f"as an array or as a file of numpy.save ({ARRAY}), for calibrating too"
    )


def to_draw_on(frame: Pixels) -> Pixels:
    """uint8 [h, w, 3]: a frame in colours is itself; of another the first channel, as grey."""
    return frame if frame.shape[2] == 3 else np.repeat(frame[..., :1], 3, axis=2)
