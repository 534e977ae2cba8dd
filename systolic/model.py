"""What a user names on the command line → a float network, and the files it came from."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from boards.errors import NetworkError
from cnn import zoo
from cnn.darknet import read_darknet, write_darknet_weights
from cnn.darknet_cfg import MAX_CFG_BYTES, read_text
from cnn.network import FloatArray, Network
from host.picture import letterbox, load_picture, resize

FITS = {"plain": resize, "letterbox": letterbox}
"""How a picture is brought to the network's input size."""

TRAINED_FIT = {"shapes": "letterbox"}
"""The fit that a built-in network was trained with; darknet's YOLOv2 of the time stretched pictures plainly."""


@dataclass(frozen=True, eq=False)
class Model:
    """``files``: the network in darknet's own form, kept in the design so that its float reference can be run.

    fit: how pictures are brought to size where the user does not say.
    """

    network: Network
    fit: str
    files: Mapping[str, bytes]


def load_model(
    name: str,
    weights: Path | None = None,
    names: Path | None = None,
    seed: int | None = None,
    size: tuple[int, int] | None = None,
) -> Model:
    """A cfg file with its weights, or a built-in network; NetworkError says what is missing.

    size: (width, height) of the input instead of the cfg's: a fully convolutional network takes any.
    """
    if weights is not None and seed is not None:
        raise NetworkError("--weights and --seed exclude each other: trained numbers, or random ones")
    given = name.endswith(".cfg")
    cfg = Path(name) if given else zoo.folder(name) / f"{name}.cfg"
    if not given:
        names = names or _beside(cfg, ".names")
        weights = weights or (_beside(cfg, ".weights") if seed is None else None)
    source = None if seed is None else zoo.seeded(seed)
    with _sized(cfg, size) as sized:
        network = read_darknet(sized, weights, names, weight_source=source)
        files = {"model/network.cfg": sized.read_bytes(), "model/network.weights": write_darknet_weights(network)}
    return Model(network, TRAINED_FIT.get(name, "plain"), files)


def _beside(cfg: Path, ending: str) -> Path | None:
    path = cfg.with_suffix(ending)
    return path if path.is_file() else None


@contextmanager
def _sized(cfg: Path, size: tuple[int, int] | None) -> Iterator[Path]:
    """The cfg itself, or a copy under the same name whose [net] asks for ``size``, line for line alike."""
    if size is None:
        yield cfg
        return
    text = read_text(cfg, MAX_CFG_BYTES, "cfg file")
    for key, value in zip(("width", "height"), size, strict=True):
        text = re.sub(rf"(?m)^\s*{key}\s*=.*$", f"{key}={value}", text, count=1)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / cfg.name
        copy.write_text(text, "utf-8")
        yield copy


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
