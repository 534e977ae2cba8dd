"""The darknet format: a .cfg file with the layers, and a .weights file with the weights."""

from __future__ import annotations

from pathlib import Path

from cnn import zoo
from cnn.darknet.files import is_letterboxed, read_darknet, write_darknet_weights
from cnn.network import Network
from systolic.front_ends.front_end import FrontEnd, LoadOptions
from systolic.front_ends.sized import sized
from systolic.model import Model


def read(path: Path, options: LoadOptions) -> Model:
    """Return the model of a darknet .cfg file, with its weights. Raises the errors of ``read_darknet``."""
    source = None if options.seed is None else zoo.seeded(options.seed)
    with sized(path, options.size, r"(?m)^\s*KEY\s*=.*$", "KEY=VALUE") as cfg:
        network = read_darknet(cfg, options.weights, weight_source=source)
        files = {"model/network.cfg": cfg.read_bytes(), "model/network.weights": write_darknet_weights(network)}
        return Model(network, "letterbox" if is_letterboxed(cfg) else "plain", files)


def reread(path: Path) -> Network:
    """Return the float network of a design's .cfg file, with the weights of the .weights file next to it."""
    return read_darknet(path, path.with_suffix(".weights"))


DARKNET = FrontEnd("a darknet .cfg", read, reread, takes=("weights", "names", "seed", "size"))
