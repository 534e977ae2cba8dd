"""Tests of windows with unequal vertical and horizontal strides (``stride_y``, ``stride_x``), by darknet's formula."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from boards.errors import RangeError
from cnn.darknet.files import read_darknet, write_darknet_weights
from cnn.darknet.graph import DARKNET_EPSILON
from cnn.float_model import run_float
from cnn.zoo import seeded
from tests.support.cases import cases
from tests.support.darknet import NET, topology
from tests.support.errors import raises

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(6)


def windows(x: Array, size: int, strides: tuple[int, int], padding: tuple[int, int], around: float) -> Array:
    """Return all windows of a map.

    Args:
        x: the map, of shape (channels, rows, columns).
        size: side of a window.
        strides: vertical and horizontal stride.
        padding: padding above and to the left, and the sum of both sides.
        around: value of the padding.

    Returns:
        An array of shape (channels, rows, columns, size, size).
    """
    (first, both), (down, across) = padding, strides
    padded = np.pad(x, ((0, 0), (first, both - first), (first, both - first)), constant_values=around)
    rows, columns = ((side - size) // step + 1 for side, step in zip(padded.shape[1:], strides, strict=True))
    return np.array(
        [
            [[c[y * down :, x * across :][:size, :size] for x in range(columns)] for y in range(rows)]
            for c in padded.astype(np.float64)
        ]
    )


CONVOLUTIONS = {
    "across": "stride_x=2\nstride_y=1\npad=1\nsize=3\n",
    "down, of stride": "stride=1\nstride_y=2\npad=1\nsize=3\n",
    "of no common multiple": "stride_x=2\nstride_y=3\nsize=3\n",
    "of both": "stride_x=4\nstride_y=2\npad=1\nsize=5\n",
    "of groups": "stride_x=2\nstride_y=1\npad=1\nsize=3\ngroups=2\n",
    "of groups, of a common divisor": "stride_x=4\nstride_y=6\npad=1\nsize=3\ngroups=4\n",
    "of a pixel": "stride_x=1\nstride_y=2\nsize=1\n",
    "of a dilated window": "stride_x=1\nstride_y=2\nsize=3\npad=1\ndilation=2\n",
}


@cases("name", CONVOLUTIONS)
@cases("norm", [False, True])
def test_convolution_with_two_strides_equals_darknet_formula(name: str, norm: bool, tmp_path: Path) -> None:
    options = dict(line.split("=") for line in CONVOLUTIONS[name].split())
    value = {key: int(options.get(key, default)) for key, default in (("stride", 1), ("groups", 1), ("dilation", 1))}
    size, strides = int(options["size"]), tuple(int(options.get(f"stride_{s}", value["stride"])) for s in "yx")
    weights = RANDOM.normal(0, 0.3, (8, 4 // value["groups"], size, size)).astype(np.float32)
    numbers = RANDOM.uniform(0.5, 1.5, (4 if norm else 1, 8)).astype(np.float32)
    data = struct.pack("<3iQ", 0, 2, 0, 0) + numbers.tobytes() + weights.tobytes()
    (tmp_path / "net.weights").write_bytes(data)
    text = f"[conv]\nfilters=8\nactivation=leaky\nbatch_normalize={int(norm)}\n{CONVOLUTIONS[name]}"
    (tmp_path / "net.cfg").write_text(NET + text + "[conv]\nfilters=8\nsize=1\n")
    last = np.eye(8, dtype=np.float32)
    (tmp_path / "net.weights").write_bytes(data + np.zeros(8, np.float32).tobytes() + last.tobytes())
    network = read_darknet(tmp_path / "net.cfg", tmp_path / "net.weights", None)
    assert write_darknet_weights(network) == (tmp_path / "net.weights").read_bytes()
    picture = RANDOM.random((4, 12, 16), np.float32)
    step, side = value["dilation"], value["dilation"] * (size - 1) + 1
    pad = value["dilation"] * (size // 2) if "pad" in options else 0
    read = windows(picture, side, (strides[0], strides[1]), (pad, 2 * pad), 0)[..., ::step, ::step]
    groups = value["groups"]
    parts = [
        np.einsum("cyxij,fcij->fyx", part, kernels)
        for part, kernels in zip(np.split(read, groups), np.split(weights.astype(np.float64), groups), strict=True)
    ]
    sums, (bias, *rest) = np.concatenate(parts), numbers.astype(np.float64)[..., None, None]
    if norm:
        sums = (sums - rest[1]) / np.sqrt(rest[2] + DARKNET_EPSILON) * rest[0]
    sums += bias
    expected = np.where(sums > 0, sums, 0.1 * sums)
    ours = run_float(network, picture)[-2]
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5)


POOLS = {
    "as in strides.cfg": "size=4\nstride=2\nstride_x=4\nstride_y=2\n",
    "across": "size=2\nstride_x=2\nstride_y=1\n",
    "down": "size=3\nstride=1\nstride_y=3\n",
    "of no common multiple": "size=3\nstride_x=2\nstride_y=3\npadding=1\n",
}


@cases("name", POOLS)
def test_max_pool_with_two_strides_equals_darknet_formula(name: str, tmp_path: Path) -> None:
    options = {key: int(value) for key, value in (line.split("=") for line in POOLS[name].split())}
    strides = (options.get("stride_y", options.get("stride", 1)), options.get("stride_x", options.get("stride", 1)))
    both = options.get("padding", options["size"] - 1)
    picture = RANDOM.random((4, 12, 16), np.float32)
    expected = windows(picture, options["size"], strides, (both // 2, both), -np.inf).max(axis=(3, 4))
    (tmp_path / "net.cfg").write_text(f"{NET}[maxpool]\n{POOLS[name]}[route]\nlayers=0\n[conv]\nfilters=2\nsize=1\n")
    network = read_darknet(tmp_path / "net.cfg", None, None, weight_source=seeded(1))
    index = network.nodes[next(i for i, node in enumerate(network.nodes) if node.name == "conv1")].inputs[0]
    np.testing.assert_allclose(run_float(network, picture)[index], expected, rtol=0, atol=1e-6)


def test_seeded_network_with_two_strides_equals_its_file(tmp_path: Path) -> None:
    (tmp_path / "net.cfg").write_text(f"{NET}[conv]\nfilters=8\nbatch_normalize=1\n{CONVOLUTIONS['across']}")
    network = read_darknet(tmp_path / "net.cfg", None, None, weight_source=seeded(1))
    (tmp_path / "net.weights").write_bytes(write_darknet_weights(network))
    again = read_darknet(tmp_path / "net.cfg", tmp_path / "net.weights", None)
    picture = RANDOM.random((4, 12, 16), np.float32)
    assert np.array_equal(run_float(network, picture)[-1], run_float(again, picture)[-1])


def test_window_for_two_strides_above_the_limit_is_refused(tmp_path: Path) -> None:
    what = "a side of the window for strides of 60 rows and 7 columns"
    with raises(RangeError, what=what, got=414, high=64, where="net.cfg:6"):
        topology(tmp_path, f"{NET}[conv]\nfilters=1\nsize=1\nstride_y=60\nstride_x=7\n")
