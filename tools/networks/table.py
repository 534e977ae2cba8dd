"""The table of networks, networks.toml, and the counts of a network to compare with it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto

from boards.reader import parse
from boards.table import Table
from cnn import zoo
from cnn.network import Network, macs
from cnn.ops import Convolution, Dense
from systolic.loading import load_model
from tools.networks import classifiers, detectors, segmentation

FILE = Path(__file__).parent / "networks.toml"
TOLERANCE = 0.02
"""The greatest share by which a counted figure differs from a published one, which is rounded."""
HUGE = 1 << 40

WRITERS: Mapping[str, Callable[[], ModelProto]] = {
    "resnet18": classifiers.resnet_18,
    "resnet50": classifiers.resnet_50,
    "efficientnet-b0": classifiers.efficientnet_b0,
    "vgg16": classifiers.vgg_16,
    "yolov3-voc": detectors.yolov3_voc,
    "yolov4": detectors.yolov4,
    "yolov8n": detectors.yolov8n,
    "fpn-resnet18": segmentation.fpn_resnet_18,
    "unet-512": segmentation.unet_512,
    "resnet20": classifiers.resnet_20,
}
"""The networks that this package writes. The other networks of the table are built in."""


@dataclass(frozen=True)
class Published:
    """Figures of a network's size that its authors, or others, published.

    Attributes:
        source: Where the numbers, or at least the layers, are published.
        macs: Multiply-accumulates per frame, or half of the operations; None if nobody published them.
        parameters: Weights, biases, and factors and offsets of batch norms; None if nobody published them.
        tolerance: The greatest share by which a counted figure may differ.
        reason: The reason for another tolerance than ``TOLERANCE``.
    """

    source: str
    macs: float | None = None
    parameters: int | None = None
    tolerance: float = TOLERANCE
    reason: str = ""


@dataclass(frozen=True)
class Rate:
    """A frame rate that AMD published for its DPU DPUCZDX8G on a ZCU104, with all threads, end to end.

    Attributes:
        network: AMD's name of the network, which ends in its operations per frame.
        release: The release of Vitis AI.
        fps: Frames per second.
    """

    network: str
    release: str
    fps: float


@dataclass(frozen=True)
class Counts:
    """The multiply-accumulates of a network per frame, and its parameters."""

    macs: int
    parameters: int


@dataclass(frozen=True)
class Entry:
    """A network of the table.

    Attributes:
        name: Its name in WRITERS, or of the built-in network.
        title: The name that its authors use.
        digest: SHA-256 of the ONNX file, or of the topology file of a built-in network.
        counts: Its MACs and parameters, as counted.
        published: The published figures.
        dpu: AMD's rate for the same network, if AMD published one.
    """

    name: str
    title: str
    digest: str
    counts: Counts
    published: Published
    dpu: Rate | None = None

    @property
    def built_in(self) -> bool:
        """Return whether the project has the network built in."""
        return self.name not in WRITERS


def entries() -> tuple[Entry, ...]:
    """Return the networks of networks.toml, in the order of the file."""
    root = Table(parse(FILE), FILE.name)
    found = tuple(_entry(table) for table in root.tables("network"))
    root.finish()
    return found


def _entry(table: Table) -> Entry:
    counted, published = table.table("counted"), table.table("published")
    macs = published.number("gmac", 0, 1e3) * 1e9 if published.has("gmac") else None
    parameters = published.integer("parameters", 1, HUGE) if published.has("parameters") else None
    entry = Entry(
        name=table.text("name"),
        title=table.text("title"),
        digest=table.text("digest"),
        counts=Counts(counted.integer("macs", 1, HUGE), counted.integer("parameters", 1, HUGE)),
        published=Published(
            source=published.text("source"),
            macs=macs,
            parameters=parameters,
            tolerance=published.number("tolerance", 0, 1, TOLERANCE),
            reason=published.text("reason") if published.has("reason") else "",
        ),
        dpu=_rate(table.table("dpu")) if table.has("dpu") else None,
    )
    for part in (counted, published, table):
        part.finish()
    return entry


def _rate(table: Table) -> Rate:
    rate = Rate(table.text("network"), table.text("release"), table.number("fps", 0, 1e6))
    table.finish()
    return rate


def content(entry: Entry) -> bytes:
    """Return the bytes of the network's file: an ONNX file, or the topology file of a built-in network."""
    if entry.built_in:
        return zoo.topology_file(entry.name).read_bytes()
    return bytes(WRITERS[entry.name]().SerializeToString(deterministic=True))


@contextmanager
def as_argument(entry: Entry) -> Iterator[str]:
    """Yield the network as an argument of ``systolic``: a built-in name, or an ONNX file that is deleted afterwards."""
    if entry.built_in:
        yield entry.name
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{entry.name}.onnx"
        path.write_bytes(content(entry))
        yield str(path)


def load(entry: Entry) -> Network:
    """Return the network as the project's front-end reads it, with random weights."""
    with as_argument(entry) as name:
        return load_model(name, seed=1 if entry.built_in else None).network


def counts_of(network: Network) -> Counts:
    """Return the MACs and parameters of convolutions and dense layers. A bias of zeros does not count."""
    ops = [node.op for node in network.nodes if isinstance(node.op, (Convolution, Dense))]
    return Counts(sum(map(macs, network.nodes)), sum(map(_parameters, ops)))


def _parameters(op: Convolution | Dense) -> int:
    offsets = op.bias.size if op.batch_norm is not None or np.any(op.bias) else 0
    return int(op.weights.size + offsets + (op.bias.size if op.batch_norm is not None else 0))


def differences(entry: Entry) -> Iterator[str]:
    """Yield a sentence for each figure of a network that differs from the table, or from what is published."""
    found = hashlib.sha256(content(entry)).hexdigest()
    if found != entry.digest:
        yield f"{entry.name}: the file's digest is {found}, but the table has {entry.digest}"
    counted = counts_of(load(entry))
    if counted != entry.counts:
        yield f"{entry.name}: {counted} are counted, but the table has {entry.counts}"
    yield from _unlike(entry)


def _unlike(entry: Entry) -> Iterator[str]:
    published = entry.published
    for what, counted, said in (
        ("MACs", entry.counts.macs, published.macs),
        ("parameters", entry.counts.parameters, published.parameters),
    ):
        if said is not None and abs(counted - said) > published.tolerance * said:
            yield f"{entry.name}: {counted:,} {what} are counted, but {published.source} has {said:,.0f}"
