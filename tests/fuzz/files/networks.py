"""Files of networks: darknet's, the exported form's, and that of a quantised network."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

from boards.errors import SystolicError
from cnn import zoo
from cnn.darknet.files import read_darknet, read_names, read_topology, read_weights, write_darknet_weights
from cnn.exported.contest.files import is_contest, translated
from cnn.exported.network import array_shapes, read_exported
from cnn.exported.seed import seeded_arrays
from cnn.exported.topology_file import parse_topology
from cnn.network import Network
from cnn.quantized import QuantizedNetwork
from cnn.stored.npz import write_arrays
from cnn.stored.quantized_file import from_npz, to_npz
from scheduler.streaming import lower as streaming
from scheduler.systolic import layers as systolic
from systolic.styles.registry import style_named
from tests.fuzz.files import corpus
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.mutators import BYTES, TEXT
from tests.fuzz.files.structured import JSON, archive, npy_header, word_of
from tests.fuzz.files.target import Mutate, Target

FEW = 100_000
"""Numbers that are drawn in no time."""


# --- darknet


def cfg_seeds() -> tuple[bytes, ...]:
    """The built-in networks, and what was a defect once."""
    return (*(path.read_bytes() for path in sorted(zoo.MODELS.glob("*/*.cfg"))), *corpus.files("cfg"))


def read_cfg(path: Path) -> None:
    """The topology; of a small one also the whole network, and whether either style maps it."""
    topology = read_topology(path)
    if sum(node.shape.values for node in topology.nodes) < FEW:
        network = read_darknet(path, None, weight_source=zoo.seeded(1))
        each(lambda style: style_named(style).check_layers(network))


def each(work: Callable[[str], object]) -> None:
    """Of both styles; what the last one refuses is raised."""
    refused: SystolicError | None = None
    for style in ("systolic", "streaming"):
        try:
            work(style)
        except SystolicError as error:
            refused = error
    if refused is not None:
        raise refused


@cache
def small() -> Network:
    """A network that has few numbers, a batch norm among them, and classes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.cfg"
        path.write_bytes(corpus.file("cfg", "small.cfg"))
        return read_darknet(path, None, weight_source=zoo.seeded(1))


def weights_seeds() -> tuple[bytes, ...]:
    """Of the small network, and what was a defect once."""
    return (write_darknet_weights(small()), *corpus.files("weights"))


def names_seeds() -> tuple[bytes, ...]:
    """As many labels as the small network has classes, and what was a defect once."""
    return (b"cat\ndog\n", "chat\r\n犬\r\n".encode(), *corpus.files("names"))


CFG = Target("cfg", cfg_seeds, TEXT, read_cfg, "network.cfg")
WEIGHTS = Target("weights", weights_seeds, (*BYTES, word_of("<f"), word_of("<i")), lambda path: _weights(path))
NAMES = Target("names", names_seeds, TEXT, lambda path: _names(path))


def _weights(path: Path) -> None:
    read_weights(small(), path)


def _names(path: Path) -> None:
    read_names(path, small())


# --- exported


def exported_seeds() -> tuple[bytes, ...]:
    """The built-in networks, and what was a defect once."""
    return (*(path.read_bytes() for path in sorted(zoo.MODELS.glob("*/*-*.json"))), *corpus.files("exported"))


def read_exported_file(path: Path) -> None:
    """The topology; of a small one also its integers, and its layers as each style computes them."""
    topology = parse_topology(path.read_text("utf-8", errors="surrogateescape"), path.name)
    if sum(layer.shape.values for layer in topology.layers) < FEW and _numbers(path) < FEW:
        quantized = zoo.load_exported_file(path, None, 1).quantized
        each(lambda style: LOWERED[style](quantized))


LOWERED: dict[str, Callable[[QuantizedNetwork], object]] = {"systolic": systolic.lower, "streaming": streaming.lower}


def _numbers(path: Path) -> int:
    topology = parse_topology(path.read_text("utf-8", errors="surrogateescape"), path.name)
    return sum(int(np.prod(shape)) for shape in array_shapes(topology).values())


def npz_seeds() -> tuple[bytes, ...]:
    """Arrays by their names and by numbers, and what was a defect once."""
    arrays = seeded_arrays(parse_topology(_small_exported().decode(), "small.json"), 1)
    numbered = dict(zip((f"arr_{i}" for i in range(len(arrays))), arrays.values(), strict=True))
    return (write_arrays(arrays), write_arrays(numbered), *corpus.files("npz"))


def _small_exported() -> bytes:
    return corpus.file("exported", "small.json")


def read_npz(path: Path) -> None:
    """With the topology of the small network beside it."""
    topology = path.with_name("small.json")
    if not topology.exists():
        topology.write_bytes(_small_exported())
    read_exported(topology, path)


def member(name: str) -> Sequence[Mutate]:
    if name.endswith(".json"):
        return JSON
    return (*BYTES, npy_header, npy_header, npy_header, word_of("<f"), word_of("<q"))


def contest_seeds() -> tuple[bytes, ...]:
    """param.h with the lines of config.h, config.json, and what was a defect once."""
    return corpus.files("contest")


def read_contest(path: Path) -> None:
    """The file as param.h and as config.h beside it, or as config.json where it is one."""
    data = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        names = ("config.json",) if data.lstrip().startswith(b"{") else ("config.h", "param.h")
        for name in names:
            (Path(folder) / name).write_bytes(data)
        place = Path(folder) / names[-1]
        if not is_contest(place):
            read_exported_file(place)
            return
        with translated(place, None) as (topology, arrays):
            if arrays is None:
                read_exported_file(topology)
            else:
                each(lambda style: LOWERED[style](read_exported(topology, arrays).quantized))


CONTEST = Target("contest", contest_seeds, (*TEXT, *JSON), read_contest, "param.h")
EXPORTED = Target("exported", exported_seeds, JSON, read_exported_file, "network.json")
NPZ = Target("npz", npz_seeds, (archive(member), archive(member), *BYTES), read_npz, "network.npz")


# --- quantised


def quantized_seeds() -> tuple[bytes, ...]:
    """Integers of the small exported network, in both forms of requantising, and what was a defect once."""
    networks = map(small_integers, ("multiply_shift", "thresholds"))
    return (*map(to_npz, networks), *corpus.files("quantized"))


def small_integers(requantise: str) -> QuantizedNetwork:
    """Of the small exported network, in this form of requantising."""
    text = json.dumps(json.loads(_small_exported()) | {"requantise": requantise})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.json"
        path.write_text(text, "utf-8")
        return zoo.load_exported_file(path, None, 1).quantized


def read_quantized(path: Path) -> None:
    """As of a design's folder."""
    from_npz(path.read_bytes(), path.name)


QUANTIZED = Target(
    "quantized", quantized_seeds, (archive(member), archive(member), *BYTES), read_quantized, "network.npz"
)

cfg, weights, names = partial(hunt, CFG), partial(hunt, WEIGHTS), partial(hunt, NAMES)
exported, npz, quantized = partial(hunt, EXPORTED), partial(hunt, NPZ), partial(hunt, QUANTIZED)
contest = partial(hunt, CONTEST)
