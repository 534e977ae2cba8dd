from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from boards.errors import ChoiceError, MissingValueError, RangeError, UnsupportedError
from cnn import zoo
from cnn.darknet.files import parameter_count, read_topology, write_darknet_weights
from cnn.float_model import run_float
from cnn.maps import FloatArray, Padding
from cnn.network import Network, macs
from cnn.ops import Convolution, MaxPool
from tests.support.errors import raises
from tests.support.kinds import as_kind

OFFICIAL = {
    "tiny-yolov2-voc": ("yolov2-tiny-voc", "voc", 15_867_885, 125),
    "tiny-yolov2-coco": ("yolov2-tiny", "coco", 11_237_145, 425),
}


def drawing(network: Network) -> FloatArray:
    """Return an image of gradients, a chequered plane and a disc, which has structure at every scale."""
    shape = network.input_shape
    y, x = np.mgrid[0 : shape.height, 0 : shape.width].astype(np.float32)
    disc = np.hypot(y - shape.height / 2, x - shape.width / 3) < shape.height / 5
    planes = [(y // 16 + x // 16) % 2 * 0.4 + 0.3, np.where(disc, 0.9, y / shape.height), x / shape.width]
    return np.stack(planes).astype(np.float32)


def test_names_are_sorted() -> None:
    assert set(OFFICIAL) <= set(zoo.names())
    assert list(zoo.names()) == sorted(zoo.names())


def test_official_networks_have_their_numbers_of_weights() -> None:
    for name, (_, _, numbers, channels) in OFFICIAL.items():
        network = read_topology(zoo.folder(name) / f"{name}.cfg")
        assert sum(parameter_count(node) for node in network.nodes) == numbers, name
        assert str(network.nodes[-1].shape) == f"{channels}×13×13"
        pool = next(node for node in network.nodes if node.name == "pool6")
        assert as_kind(MaxPool, pool.op).padding == Padding(0, 0, 1, 1)
        assert network.name == name.replace("-", "_")


def test_multiply_accumulates_of_a_frame_equal_the_published_number() -> None:
    network = read_topology(zoo.folder("tiny-yolov2-voc") / "tiny-yolov2-voc.cfg")
    assert round(sum(macs(node) for node in network.nodes) / 1e9, 3) == 3.486


@pytest.mark.shared
@pytest.mark.parametrize("name", OFFICIAL)
def test_built_in_network_has_the_layers_of_the_official_cfg(shared: Path, name: str) -> None:
    stem, classes, _, _ = OFFICIAL[name]
    folder = shared / "data/networks"
    ours, theirs = read_topology(zoo.folder(name) / f"{name}.cfg"), read_topology(folder / f"{stem}.cfg")
    graphs = [[(n.name, n.shape, n.inputs) for n in network.nodes] for network in (ours, theirs)]
    assert graphs[0] == graphs[1]
    assert ours.nodes[-1].op == theirs.nodes[-1].op
    for mine, official in zip(ours.nodes, theirs.nodes, strict=True):
        if isinstance(mine.op, Convolution):
            op = as_kind(Convolution, official.op)
            assert (mine.op.activation, mine.op.padding) == (op.activation, op.padding)
            assert (mine.op.batch_norm is None) == (op.batch_norm is None)
    labels = (folder / f"{classes}.names").read_text().strip().split("\n")
    named = (zoo.folder(name) / f"{name}.names").read_text().split("\n")[:-1]
    assert [labels.index(label) for label in ("dog", "person", "sheep")] == [
        named.index(label) for label in ("dog", "person", "sheep")
    ]
    assert classes == "coco" or named == labels  # COCO spells "couch"; darknet spells "sofa"


@pytest.fixture(scope="module")
def voc() -> Network:
    return zoo.load("tiny-yolov2-voc", seed=1)


def test_seeded_network_keeps_every_layer_alive(voc: Network) -> None:
    outputs = run_float(voc, drawing(voc))
    for node, output in zip(voc.nodes[1:], outputs[1:], strict=True):
        spread = output.std(axis=(1, 2))
        assert 0.2 < output.std() < 10, node.name
        assert np.median(spread) > 0.1, node.name
        assert (spread > 1e-3).all(), node.name
        # Both sides of the leaky ReLU must be used.
        if isinstance(node.op, Convolution):
            assert 0.1 < (output > 0).mean() < 0.9, node.name


def test_seeded_network_is_the_same_on_every_machine() -> None:
    """Compare with recorded digests, so that a machine or numpy version with other random numbers is noticed."""
    digests = [
        hashlib.sha256(write_darknet_weights(zoo.load("tiny-yolov2-coco", seed=seed))).hexdigest()[:16]
        for seed in (7, 8)
    ]
    assert digests == ["b9a36b62d83d7088", "66197301e072ae8c"]


def test_labels_are_read_with_the_network(voc: Network) -> None:
    assert len(voc.labels) == 20
    assert voc.labels[11] == "dog"


def test_seed_outside_its_range_is_refused() -> None:
    for seed in (-1, 1 << 64):
        for name in ("tiny-yolov2-voc", "ultranet"):
            with raises(RangeError, what="the seed", got=seed, low=0, high=(1 << 64) - 1):
                zoo.load(name, seed)


def test_network_without_weights_and_seed_is_refused() -> None:
    for name, file in (("tiny-yolov2-voc", "the built-in network 'tiny-yolov2-voc'"), ("ultranet", "ultranet.json")):
        with raises(MissingValueError, what=f"the weights file of {file}") as caught:
            zoo.load(name)
        assert "--seed NUMBER" in caught.value.remedy
        assert not zoo.has_numbers(name)


def test_unknown_name_is_refused_with_the_nearest() -> None:
    for name in ("tiny-yolo2-voc", "../models/shapes", "", "tiny-yolov2-voc/"):
        with raises(ChoiceError, what="a built-in network", got=name, choices=zoo.names()):
            zoo.load(name, 1)
    with raises(ChoiceError) as caught:
        zoo.load("tiny-yolo2-voc", 1)
    assert caught.value.nearest() == "tiny-yolov2-voc"


def test_float_network_without_integers_is_refused() -> None:
    with raises(UnsupportedError, subject="the built-in network 'shapes'", remedy="quantise it"):
        zoo.load_exported("shapes")


def test_load_network_with_weights_computes_finite_outputs() -> None:
    trained = [name for name in zoo.names() if (zoo.folder(name) / f"{name}.weights").is_file()]
    for name in trained:
        network = zoo.load(name)
        assert np.isfinite(run_float(network, drawing(network))[-1]).all(), name
