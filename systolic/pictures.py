"""Finds the pictures that a user names as files or folders, and converts them to inputs of a network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boards.errors import FileAccessError, SystolicError
from cnn.maps import FloatArray
from cnn.network import Network
from host.vision.channels import checked_frame, load_frame, network_input
from host.vision.picture import Pixels

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".tif", ".tiff", ".webp")

VIEWS, MAX_VIEWS, VIEW_VALUES = 4, 48, 1 << 26
"""Limits for fitting weights: views per picture, views of all pictures, and layer values that are kept in memory."""


def pictures_in(folder: Path) -> tuple[Path, ...]:
    """Return the pictures of a folder, sorted by name. Raises FileAccessError if there are none."""
    pictures = tuple(sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS))
    if not pictures:
        raise FileAccessError(
            str(folder),
            f"holds no picture ({', '.join(ENDINGS)})",
            "folder",
            remedy="name a folder of pictures or of video frames",
        )
    return pictures


def picture_files(named: Iterable[Path | str]) -> tuple[Path, ...]:
    """Return the named files, with each folder replaced by its pictures; FileAccessError if it has none."""
    paths = map(Path, named)
    return tuple(picture for path in paths for picture in (pictures_in(path) if path.is_dir() else (path,)))


# --- at a network's input size ----------------------------------------------------------------------------------------


def network_inputs(network: Network, pictures: Sequence[Path | Pixels], fit: str) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield each picture resized to the network's input, as uint8 of shape (channels, height, width).

    They are read one after the other, because a folder may hold thousands. Errors name the file.
    """
    return (network_input_of(network, picture, fit) for picture in pictures)


def network_input_of(network: Network, picture: Path | Pixels, fit: str) -> Pixels:
    """Return a picture resized to the network's input, as uint8 of shape (channels, height, width)."""
    shape = network.input_shape
    sides = shape.channels, shape.height, shape.width
    if not isinstance(picture, Path):
        return network_input(picture, sides, fit)[0]
    frame = load_frame(picture)  # its errors name the file
    try:
        return network_input(frame, sides, fit)[0]
    except SystolicError as error:
        raise error.at(str(picture)) from error


def calibration_inputs(network: Network, pictures: Sequence[Path | Pixels], fit: str) -> Iterator[FloatArray]:
    """Yield each picture resized to the network's input: float32 from 0 to 1, (channels, height, width)."""
    return (pixels.astype(np.float32) / np.float32(255) for pixels in network_inputs(network, pictures, fit))


def views_of(network: Network, pictures: Sequence[Path | Pixels], fit: str) -> Iterator[Pixels]:
    """Yield pictures and random parts of them, resized to the network's input: uint8 (channels, height, width).

    Every other part is mirrored. A few whole pictures give deep layers too few values to fit weights to. The number of
    views is limited by the memory that their layers need.
    """
    values = sum(node.shape.values for node in network.nodes)
    count = min(MAX_VIEWS, max(VIEWS, VIEW_VALUES // values))
    random = np.random.default_rng(0)
    for picture in pictures[: max(1, count // VIEWS)]:
        frame = checked_frame(load_frame(picture) if isinstance(picture, Path) else picture)
        yield network_input_of(network, frame, fit)
        for number in range(1, VIEWS):
            height, width = (max(1, int(side * random.uniform(0.5, 1))) for side in frame.shape[:2])
            y, x = (int(random.integers(0, room + 1)) for room in (frame.shape[0] - height, frame.shape[1] - width))
            part = frame[y : y + height, x : x + width, :]
            yield network_input_of(network, np.ascontiguousarray(part[:, ::-1] if number % 2 else part), fit)
