"""The built-in networks: a folder ``models/NAME`` for each.

It holds the network's layers and, if there are any, its trained numbers and labels: NAME.cfg, NAME.weights and
NAME.names are darknet's; NAME.json and NAME.npz are of a network that was quantised by training (cnn.exported).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from boards.errors import ChoiceError, MissingValueError, RangeError, UnsupportedError
from cnn.activations import LEAKY_SLOPE
from cnn.darknet.files import WeightSource, read_darknet
from cnn.darknet.numbers import Weighted, for_all, holds_bias, once, stored_weights, with_stored
from cnn.exported.network import Exported, make_exported, read_exported
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology_file import read_topology
from cnn.maps import FloatArray
from cnn.network import Network, Node
from cnn.ops import BatchNorm, Convolution, Dense

MODELS = Path(__file__).parent / "models"
LABELS_OF = dict.fromkeys(("yolov3-tiny", "yolov4-tiny", "yolo-fastest"), "tiny-yolov2-coco")
"""Networks that name the classes of another one."""
LARGEST_SEED = (1 << 64) - 1
_HALF = 127  # weights are sums of two whole numbers −127…127: a triangle, nearly normal


def names() -> tuple[str, ...]:
    """The built-in networks, sorted."""
    listed = (path for ending in ("cfg", "json") for path in MODELS.glob(f"*/*.{ending}"))
    return tuple(sorted(path.stem for path in listed if path.stem == path.parent.name))


def topology_file(name: str) -> Path:
    """NAME.cfg, or NAME.json of a network that was quantised by training; ChoiceError for an unknown name."""
    place = folder(name)
    return _beside(place, name, "cfg") or place / f"{name}.json"


def folder(name: str) -> Path:
    """The folder with the files of a built-in network; ChoiceError for an unknown name."""
    if name not in names():
        raise ChoiceError("a built-in network", name, names())
    return MODELS / name


def weights_file(name: str) -> Path | None:
    """Return the trained numbers of a built-in network; None if it comes without any."""
    return _beside(folder(name), name, "weights") or _beside(folder(name), name, "npz")


def has_numbers(name: str) -> bool:
    """Whether a built-in network comes with trained numbers."""
    return weights_file(name) is not None


def labels_file(name: str) -> Path | None:
    """The names of a built-in network's classes, where it has a file of them."""
    source = LABELS_OF.get(name, name)
    return _beside(folder(source), source, "names")


def load(name: str, seed: int | None = None) -> Network:
    """A built-in network with its trained numbers, or with random ones from ``seed``, 0…2^64 − 1.

    A network that was quantised by training comes in its float form. ChoiceError for an unknown name,
    MissingValueError if the network has no trained numbers and no seed came.
    """
    place = folder(name)
    if topology_file(name).suffix == ".json":
        return load_exported(name, seed).network
    weights, labels = _beside(place, name, "weights"), labels_file(name)
    if seed is not None:
        return read_darknet(place / f"{name}.cfg", None, labels, weight_source=seeded(seed))
    if weights is None:
        raise MissingValueError(
            f"the weights file of the built-in network {name!r}",
            "it comes without trained numbers",
            remedy="give --weights FILE, or --seed NUMBER for random ones",
        )
    return read_darknet(place / f"{name}.cfg", weights, labels)


def load_exported(name: str, seed: int | None = None) -> Exported:
    """As ``load``, for a network that was quantised by training: its float form and its integers.

    UnsupportedError for another network.
    """
    topology = topology_file(name)
    if topology.suffix != ".json":
        reason = "it was not quantised by training and has no integers of its own"
        raise UnsupportedError(f"the built-in network {name!r}", reason, remedy="quantise it")
    return load_exported_file(topology, _beside(topology.parent, name, "npz"), seed)


def load_exported_file(topology: Path, weights: Path | None, seed: int | None = None) -> Exported:
    """A topology file with the arrays of an .npz, or random ones from ``seed``; MissingValueError if neither came."""
    if seed is not None:
        layers = read_topology(topology)
        return make_exported(layers, seeded_arrays(layers, seed))
    if weights is None:
        raise MissingValueError(
            f"the weights file of {topology.name}",
            "it comes without trained numbers",
            remedy="give --weights FILE.npz, or --seed NUMBER for random ones",
        )
    return read_exported(topology, weights)


def _beside(place: Path, name: str, ending: str) -> Path | None:
    path = place / f"{name}.{ending}"
    return path if path.is_file() else None


def seeded(seed: int) -> WeightSource:
    """Random numbers for a topology, the same for a seed on every machine.

    The signal stays alive through any depth: He scaling for leaky ReLU (K. He et al., "Delving Deep into Rectifiers",
    ICCV 2015), filters without a constant part, and batch norms spread about what such filters produce. Results do not
    depend on the processor: there are only operations that IEEE 754 rounds exactly, no sums in floating point and no
    logarithms. RangeError for a seed that is not 0…2^64 − 1.
    """
    if not 0 <= seed <= LARGEST_SEED:
        raise RangeError("the seed", seed, 0, LARGEST_SEED, integer=True)

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
    bias = for_all(op, _uniform(once(op, op.bias).size, -0.5, 0.3, random)) if holds_bias(op) else op.bias
    return replace(node, op=replace(op, bias=bias, batch_norm=norm))


def _weights(shape: tuple[int, ...], random: np.random.Generator) -> FloatArray:
    """[filters, …] of mean 0 in every filter and variance 2 / (1 + slope²) / values in a filter."""
    fan = math.prod(shape[1:])
    drawn = random.integers(-_HALF, _HALF, (2, shape[0], fan), dtype=np.int16, endpoint=True)
    total = drawn[0] + drawn[1]
    variance = 2 * ((2 * _HALF + 1) ** 2 - 1) / 12  # of ``total``
    scale = math.sqrt(2 / (1 + LEAKY_SLOPE**2) / fan / variance)
    values = total.astype(np.float64)
    if fan > 1:
        # A filter of mean 0 does not respond to the brightness that all its inputs share. Otherwise that would grow
        # from layer to layer until every position looks the same.
        values *= fan  # exact, as is the difference: whole numbers below 2^53
        values -= total.sum(axis=1, keepdims=True, dtype=np.int64)
        scale /= fan
    return np.asarray(values * scale, dtype=np.float32).reshape(shape)


def _batch_norm(op: Weighted, reads_picture: bool, random: np.random.Generator) -> BatchNorm | None:
    if op.batch_norm is None:
        return None
    # A picture's values spread about 1/4, those of a layer about 1.
    spread = 0.25 if reads_picture else 1.0
    filters = once(op, op.bias).size
    scale = _uniform(filters, 0.8, 1.6, random)
    mean = _uniform(filters, -0.3 * spread, 0.3 * spread, random)
    variance = _uniform(filters, 0.5 * spread**2, 2 * spread**2, random)
    return BatchNorm(for_all(op, scale), for_all(op, mean), for_all(op, variance), op.batch_norm.epsilon)


def _uniform(count: int, low: float, high: float, random: np.random.Generator) -> FloatArray:
    return np.asarray(low + (high - low) * random.random(count), dtype=np.float32)
