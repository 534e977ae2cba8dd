"""Fuzzing of network files: of darknet, of the exported form, of the contest's export, and of quantised networks."""

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
"""The limit for the values of a network whose weights are also drawn, which then takes little time."""


# --- darknet


def cfg_seeds() -> tuple[bytes, ...]:
    """Return the cfg files of the built-in networks, and the cfg files that once showed a defect."""
    return (*(path.read_bytes() for path in sorted(zoo.MODELS.glob("*/*.cfg"))), *corpus.files("cfg"))


def read_cfg(path: Path) -> None:
    """Read a topology. If it is small, also draw its weights, and check that both styles map it."""
    topology = read_topology(path)
    if sum(node.shape.values for node in topology.nodes) < FEW:
        network = read_darknet(path, None, weight_source=zoo.seeded(1))
        each(lambda style: style_named(style).check_layers(network))


def each(work: Callable[[str], object]) -> None:
    """Call ``work`` for both styles. If one or both refuse, raise the last refusal."""
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
    """Return a network with few weights, with a batch norm and with classes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.cfg"
        path.write_bytes(corpus.file("cfg", "small.cfg"))
        return read_darknet(path, None, weight_source=zoo.seeded(1))


def weights_seeds() -> tuple[bytes, ...]:
    """Return the weights of the small network, and the weights files that once showed a defect."""
    return (write_darknet_weights(small()), *corpus.files("weights"))


def names_seeds() -> tuple[bytes, ...]:
    """Return two files with a label for each class of the small network, and the files that once showed a defect."""
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
    """Return the topologies of the built-in networks, and the topologies that once showed a defect."""
    return (*(path.read_bytes() for path in sorted(zoo.MODELS.glob("*/*-*.json"))), *corpus.files("exported"))


def read_exported_file(path: Path) -> None:
    """Read a topology. If it is small, also compute its integers and lower its layers for both styles."""
    topology = parse_topology(path.read_text("utf-8", errors="surrogateescape"), path.name)
    if sum(layer.shape.values for layer in topology.layers) < FEW and _numbers(path) < FEW:
        quantized = zoo.load_exported_file(path, None, 1).quantized
        each(lambda style: LOWERED[style](quantized))


LOWERED: dict[str, Callable[[QuantizedNetwork], object]] = {"systolic": systolic.lower, "streaming": streaming.lower}


def _numbers(path: Path) -> int:
    topology = parse_topology(path.read_text("utf-8", errors="surrogateescape"), path.name)
    return sum(int(np.prod(shape)) for shape in array_shapes(topology).values())


def npz_seeds() -> tuple[bytes, ...]:
    """Return arrays with names, the same arrays with numbers, and the archives that once showed a defect."""
    arrays = seeded_arrays(parse_topology(_small_exported().decode(), "small.json"), 1)
    numbered = dict(zip((f"arr_{i}" for i in range(len(arrays))), arrays.values(), strict=True))
    return (write_arrays(arrays), write_arrays(numbered), *corpus.files("npz"))


def _small_exported() -> bytes:
    return corpus.file("exported", "small.json")


def read_npz(path: Path) -> None:
    """Read an archive of arrays, with the topology of the small network next to it."""
    topology = path.with_name("small.json")
    if not topology.exists():
        topology.write_bytes(_small_exported())
    read_exported(topology, path)


def member(name: str) -> Sequence[Mutate]:
    """Return the mutators of an archive's member."""
    if name.endswith(".json"):
        return JSON
    return (*BYTES, npy_header, npy_header, npy_header, word_of("<f"), word_of("<q"))


def contest_seeds() -> tuple[bytes, ...]:
    """Return a param.h with the lines of a config.h, a config.json, and the files that once showed a defect."""
    return corpus.files("contest")


def read_contest(path: Path) -> None:
    """Read the file as config.json if it begins with a brace, otherwise as both param.h and config.h."""
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
    """Return the small exported network's integers in both forms of requantising, and files that showed a defect."""
    networks = map(small_integers, ("multiply_shift", "thresholds"))
    return (*map(to_npz, networks), *corpus.files("quantized"))


def small_integers(requantise: str) -> QuantizedNetwork:
    """Return the small exported network's integers in one form of requantising."""
    text = json.dumps(json.loads(_small_exported()) | {"requantise": requantise})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.json"
        path.write_text(text, "utf-8")
        return zoo.load_exported_file(path, None, 1).quantized


def read_quantized(path: Path) -> None:
    """Read a quantised network as from the folder of a design."""
    from_npz(path.read_bytes(), path.name)


QUANTIZED = Target(
    "quantized", quantized_seeds, (archive(member), archive(member), *BYTES), read_quantized, "network.npz"
)

cfg, weights, names = partial(hunt, CFG), partial(hunt, WEIGHTS), partial(hunt, NAMES)
exported, npz, quantized = partial(hunt, EXPORTED), partial(hunt, NPZ), partial(hunt, QUANTIZED)
contest = partial(hunt, CONTEST)
