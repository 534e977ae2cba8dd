"""The built-in networks, each in a folder ``models/NAME``.

The folder contains the network's topology and, if they exist, its trained weights and labels. NAME.cfg, NAME.weights
and NAME.names are in darknet's formats. NAME.json and NAME.npz contain a network that was quantised by training
(cnn.exported).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from boards.errors import ChoiceError, MissingValueError, RangeError, UnsupportedError
from cnn.activations import LEAKY_SLOPE
from cnn.darknet.files import WeightSource, read_darknet
from cnn.darknet.numbers import Weighted, file_numbers, filter_numbers, holds_bias, stored_weights, with_stored
from cnn.exported.network import Exported, make_exported, read_exported
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology_file import read_topology
from cnn.maps import FloatArray
from cnn.network import Network, Node
from cnn.ops import BatchNorm, Convolution, Dense

MODELS = Path(__file__).parent / "models"
LABELS_OF = dict.fromkeys(("yolov3-tiny", "yolov4-tiny", "yolo-fastest"), "tiny-yolov2-coco")
"""Networks without a labels file, and the network whose labels they use."""
MAX_SEED = (1 << 64) - 1
_HALF = 127  # a weight is the sum of two integers in −127…127, whose triangular distribution is almost normal


def names() -> tuple[str, ...]:
    """Return the names of the built-in networks, sorted."""
    listed = (path for ending in ("cfg", "json") for path in MODELS.glob(f"*/*.{ending}"))
    return tuple(sorted(path.stem for path in listed if path.stem == path.parent.name))


def topology_file(name: str) -> Path:
    """Return NAME.cfg, or NAME.json for a network quantised by training; raise ChoiceError for an unknown name."""
    place = folder(name)
    return _file_next_to(place, name, "cfg") or place / f"{name}.json"


def folder(name: str) -> Path:
    """Return the folder with the files of a built-in network; raise ChoiceError for an unknown name."""
    if name not in names():
        raise ChoiceError("a built-in network", name, names())
    return MODELS / name


def weights_file(name: str) -> Path | None:
    """Return the file with the trained weights of a built-in network; None if there is no such file."""
    return _file_next_to(folder(name), name, "weights") or _file_next_to(folder(name), name, "npz")


def has_numbers(name: str) -> bool:
    """Return whether a built-in network has a file of trained weights."""
    return weights_file(name) is not None


def labels_file(name: str) -> Path | None:
    """Return the file with the class names of a built-in network; None if there is no such file."""
    source = LABELS_OF.get(name, name)
    return _file_next_to(folder(source), source, "names")


def load(name: str, seed: int | None = None) -> Network:
    """Return a built-in network with trained or with random weights.

    A network that was quantised by training is returned in its float form.

    Args:
        name: The network's name.
        seed: The seed of random weights, 0…2^64 − 1; None selects the trained weights.

    Raises:
        ChoiceError: The name is unknown.
        MissingValueError: The network has no trained weights, and there is no seed.
    """
    place = folder(name)
    if topology_file(name).suffix == ".json":
        return load_exported(name, seed).network
    weights, labels = _file_next_to(place, name, "weights"), labels_file(name)
    if seed is not None:
        return read_darknet(place / f"{name}.cfg", None, labels, weight_source=seeded(seed))
    if weights is None:
        raise MissingValueError(
            f"the weights file of the built-in network {name!r}",
            "it has no trained weights",
            remedy="give --weights FILE, or --seed NUMBER for random ones",
        )
    return read_darknet(place / f"{name}.cfg", weights, labels)


def load_exported(name: str, seed: int | None = None) -> Exported:
    """Return a built-in network that was quantised by training, as float network and as integer network.

    The arguments are as for ``load``.

    Raises:
        UnsupportedError: The network was not quantised by training.
    """
    topology = topology_file(name)
    if topology.suffix != ".json":
        reason = "it was not quantised by training, so it has no integers"
        raise UnsupportedError(f"the built-in network {name!r}", reason, remedy="quantise it")
    return load_exported_file(topology, _file_next_to(topology.parent, name, "npz"), seed)


def load_exported_file(topology: Path, weights: Path | None, seed: int | None = None) -> Exported:
    """Return the float and integer network of a topology file, with an .npz's arrays or with random ones.

    Raises:
        MissingValueError: There is neither a weights file nor a seed.
    """
    if seed is not None:
        layers = read_topology(topology)
        return make_exported(layers, seeded_arrays(layers, seed))
    if weights is None:
        raise MissingValueError(
            f"the weights file of {topology.name}",
            "it has no trained weights",
            remedy="give --weights FILE.npz, or --seed NUMBER for random ones",
        )
    return read_exported(topology, weights)


def _file_next_to(place: Path, name: str, ending: str) -> Path | None:
    path = place / f"{name}.{ending}"
    return path if path.is_file() else None


def seeded(seed: int) -> WeightSource:
    """Return a function that fills a network with random weights. A seed gives the same weights on every machine.

    The values of maps neither vanish nor grow at any depth, for three reasons. Weights have He scaling for leaky ReLU
    (K. He et al., "Delving Deep into Rectifiers", ICCV 2015). The mean of each filter's weights is 0. Batch norms are
    drawn around the statistics of such filters' outputs. Results do not depend on the processor: only operations that
    IEEE 754 rounds exactly are used, and neither sums in floating point nor logarithms.

    Raises:
        RangeError: The seed is outside 0…2^64 − 1.
    """
    if not 0 <= seed <= MAX_SEED:
        raise RangeError("the seed", seed, 0, MAX_SEED, integer=True)

    def source(network: Network) -> Network:
        random = np.random.Generator(np.random.PCG64(seed))
        return replace(network, nodes=tuple(_seed_node(node, random) for node in network.nodes))

    return source


def _seed_node(node: Node, random: np.random.Generator) -> Node:
    op = node.op
    if not isinstance(op, (Convolution, Dense)):
        return node
    norm = _batch_norm(op, node.inputs == (0,), random)
    stored = stored_weights(op)
    if stored is not None:
        op = with_stored(op, _weights(stored.shape, random))
    bias = (
        filter_numbers(op, _uniform(file_numbers(op, op.bias).size, -0.5, 0.3, random)) if holds_bias(op) else op.bias
    )
    return replace(node, op=replace(op, bias=bias, batch_norm=norm))


def _weights(shape: tuple[int, ...], random: np.random.Generator) -> FloatArray:
    """Return random weights ``(filters, …)``: each filter has mean 0 and a variance that keeps the size of activations.

    Each filter has mean 0, and the variance is 2 / (1 + slope²) / (weights per filter).
    """
    fan = math.prod(shape[1:])
    drawn = random.integers(-_HALF, _HALF, (2, shape[0], fan), dtype=np.int16, endpoint=True)
    total = drawn[0] + drawn[1]
    variance = 2 * ((2 * _HALF + 1) ** 2 - 1) / 12  # the variance of ``total``
    scale = math.sqrt(2 / (1 + LEAKY_SLOPE**2) / fan / variance)
    values = total.astype(np.float64)
    if fan > 1:
        # A filter of mean 0 does not respond to an offset that all its inputs share. Without this, the offset would
        # grow from layer to layer until every position has the same values.
        values *= fan  # exact, like the difference below: both are integers below 2^53
        values -= total.sum(axis=1, keepdims=True, dtype=np.int64)
        scale /= fan
    return np.asarray(values * scale, dtype=np.float32).reshape(shape)


def _batch_norm(op: Weighted, reads_picture: bool, random: np.random.Generator) -> BatchNorm | None:
    if op.batch_norm is None:
        return None
    # The values of a picture have a spread of about 1/4, and the values of a layer a spread of about 1.
    spread = 0.25 if reads_picture else 1.0
    filters = file_numbers(op, op.bias).size
    scale = _uniform(filters, 0.8, 1.6, random)
    mean = _uniform(filters, -0.3 * spread, 0.3 * spread, random)
    variance = _uniform(filters, 0.5 * spread**2, 2 * spread**2, random)
    return BatchNorm(
        filter_numbers(op, scale),
        filter_numbers(op, mean),
        filter_numbers(op, variance),
        op.batch_norm.epsilon,
    )


def _uniform(count: int, low: float, high: float, random: np.random.Generator) -> FloatArray:
    return np.asarray(low + (high - low) * random.random(count), dtype=np.float32)
