"""Pictures that a user names: files, and folders of them, and what a network gets of them."""

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

VIEWS, MOST_VIEWS, VIEW_VALUES = 4, 48, 1 << 26
"""Of a picture that weights are fitted to; of all; and values of all layers that are held for them."""


def pictures_in(folder: Path) -> tuple[Path, ...]:
    """Return the pictures of a folder in the order of their names; FileAccessError if there are none."""
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
    """Return each folder's pictures in its place, files as they are; FileAccessError if a folder has none."""
    paths = map(Path, named)
    return tuple(picture for path in paths for picture in (pictures_in(path) if path.is_dir() else (path,)))


# --- at a network's input size ----------------------------------------------------------------------------------------


def network_inputs(network: Network, pictures: Sequence[Path | Pixels], fit: str) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield uint8 [channels, height, width] at the network's input size, one after the other: a folder may hold
    thousands. Errors name the file."""
    return (network_input_of(network, picture, fit) for picture in pictures)


def network_input_of(network: Network, picture: Path | Pixels, fit: str) -> Pixels:
    """Return one picture as ``network_inputs`` does."""
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
    """The same as float32, 0…1."""
    return (pixels.astype(np.float32) / np.float32(255) for pixels in network_inputs(network, pictures, fit))


def views_of(network: Network, pictures: Sequence[Path | Pixels], fit: str) -> Iterator[Pixels]:
    """Pictures at the network's input size, and parts of them, every other one mirrored: uint8 [channels, height,
    width]. A few pictures show deep layers too few values to fit weights to. As many as memory allows."""
    values = sum(node.shape.values for node in network.nodes)
    count = min(MOST_VIEWS, max(VIEWS, VIEW_VALUES // values))
    random = np.random.default_rng(0)
    for picture in pictures[: max(1, count // VIEWS)]:
        frame = checked_frame(load_frame(picture) if isinstance(picture, Path) else picture)
        yield network_input_of(network, frame, fit)
        for number in range(1, VIEWS):
            height, width = (max(1, int(side * random.uniform(0.5, 1))) for side in frame.shape[:2])
            y, x = (int(random.integers(0, room + 1)) for room in (frame.shape[0] - height, frame.shape[1] - width))
            part = frame[y : y + height, x : x + width, :]
            yield network_input_of(network, np.ascontiguousarray(part[:, ::-1] if number % 2 else part), fit)
