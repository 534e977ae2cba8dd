"""What a user names on the command line → a float network, and the files it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from boards.errors import NetworkError
from cnn import zoo
from cnn.darknet import read_darknet, write_darknet_weights
from cnn.network import FloatArray, Network
from host.picture import letterbox, load_picture, resize

FITS = {"plain": resize, "letterbox": letterbox}
"""How a picture is brought to the network's input size."""


@dataclass(frozen=True, eq=False)
class Model:
    """``files``: the network in darknet's own form, kept in the design so that its float reference can be run."""

    network: Network
    files: Mapping[str, bytes]


def load_model(name: str, weights: Path | None = None, names: Path | None = None, seed: int | None = None) -> Model:
    """A cfg file with its weights, or a built-in network; NetworkError says what is missing."""
    if weights is not None and seed is not None:
        raise NetworkError("--weights and --seed exclude each other: trained numbers, or random ones")
    cfg = Path(name) if name.endswith(".cfg") else zoo.folder(name) / f"{name}.cfg"
    labels = names if names is not None else _labels_beside(cfg) if not name.endswith(".cfg") else None
    if weights is None and seed is None and not name.endswith(".cfg"):
        network = zoo.load(name)
    else:
        source = None if seed is None else zoo.seeded(seed)
        network = read_darknet(cfg, weights, labels, weight_source=source)
    files = {"model/network.cfg": cfg.read_bytes(), "model/network.weights": write_darknet_weights(network)}
    return Model(network, files)


def _labels_beside(cfg: Path) -> Path | None:
    names = cfg.with_suffix(".names")
    return names if names.is_file() else None


def reload(folder: Path) -> Network:
    """The float network of a generated folder."""
    return read_darknet(folder / "model" / "network.cfg", folder / "model" / "network.weights")


def sample_pictures() -> tuple[Path, ...]:
    """Pictures that come with the project: what calibration uses where none are given."""
    folder = zoo.folder("shapes") / "samples"
    return tuple(sorted(path for path in folder.iterdir() if path.suffix in (".png", ".jpg")))


def calibration_inputs(network: Network, pictures: Sequence[Path], fit: str) -> list[FloatArray]:
    """float32 [channels, height, width], 0…1, at the network's input size. PictureError names the file."""
    shape = network.input_shape
    return [
        FITS[fit](load_picture(path), shape.height, shape.width)[0].astype(np.float32) / np.float32(255)
        for path in pictures
    ]
