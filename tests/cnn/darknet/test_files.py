# ruff: noqa: E501 (the sentence that refuses a file stays on one line)
"""Weights and names files."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import NetworkError
from cnn.darknet.files import (
    identifier,
    parameter_count,
    read_darknet,
    read_names,
    read_weights,
    write_darknet_weights,
)
from cnn.network import (
    Convolution,
    Dense,
    Network,
)
from cnn.zoo import seeded
from tests.support.darknet import CONV, NET, NORMED, POOL, topology


def values(network: Network) -> int:
    return sum(parameter_count(node) for node in network.nodes)


def weights_file(tmp_path: Path, numbers: np.ndarray, version: tuple[int, int] = (0, 2)) -> Path:
    path = tmp_path / "net.weights"
    seen = struct.pack("<Q" if version[0] * 10 + version[1] >= 2 else "<i", 7)
    path.write_bytes(struct.pack("<3i", *version, 0) + seen + numbers.astype("<f4").tobytes())
    return path


@pytest.mark.parametrize("version", [(0, 1), (0, 2), (1, 0)])
def test_both_headers_and_the_order_of_numbers(tmp_path: Path, version: tuple[int, int]) -> None:
    network = topology(tmp_path, NET + NORMED + "[connected]\noutput=2\nbatch_normalize=1\nactivation=linear\n")
    filled = read_weights(network, weights_file(tmp_path, np.arange(values(network)), version))
    conv, dense = filled.nodes[1].op, filled.nodes[2].op
    assert isinstance(conv, Convolution)
    assert isinstance(dense, Dense)
    assert conv.batch_norm is not None
    assert dense.batch_norm is not None
    starts = [conv.bias, conv.batch_norm.scale, conv.batch_norm.mean, conv.batch_norm.variance, conv.weights]
    assert [array.flat[0] for array in starts] == [0, 8, 16, 24, 32]
    begin = 32 + 8 * 4 * 9
    size = 2 * 8 * 12 * 16
    starts = [dense.bias, dense.weights, dense.batch_norm.scale, dense.batch_norm.mean, dense.batch_norm.variance]
    assert [array.flat[0] - begin for array in starts] == [0, 2, 2 + size, 4 + size, 6 + size]


def test_a_truncated_file_names_the_layer(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + CONV + POOL + CONV)
    assert values(network) == 296 + 584
    sentence = r"net\.weights ends within 'conv2' \(net\.cfg:15\): 880 numbers were wanted, 879 found, and this layer's are 296…879"
    with pytest.raises(NetworkError, match=sentence):
        read_weights(network, weights_file(tmp_path, np.zeros(879)))
    with pytest.raises(NetworkError, match=r"ends within 'conv1' .*295 found"):
        read_weights(network, weights_file(tmp_path, np.zeros(295)))
    with pytest.raises(NetworkError, match=r"ends within 'conv2' .*296 found"):
        read_weights(network, weights_file(tmp_path, np.zeros(296)))


def test_an_oversized_file_says_what_is_left(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + CONV)
    sentence = r"296 numbers were wanted, 300 found, 4 left over after the last layer \(net\.cfg:6\)"
    with pytest.raises(NetworkError, match=sentence):
        read_weights(network, weights_file(tmp_path, np.zeros(300)))
    path = weights_file(tmp_path, np.zeros(296))
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(NetworkError, match="has 1 bytes after its last number"):
        read_weights(network, path)


def test_a_file_that_is_no_weights_file(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + CONV)
    path = tmp_path / "net.weights"
    path.write_bytes(b"short")
    with pytest.raises(NetworkError, match="must start with a header of 16 or 20 bytes, but has 5"):
        read_weights(network, path)
    path.write_bytes(b"PK\x03\x04" * 400)
    with pytest.raises(NetworkError, match="is this a weights file"):
        read_weights(network, path)
    with pytest.raises(NetworkError, match="cannot be read: Is a directory"):
        read_weights(network, tmp_path)


@pytest.mark.parametrize("size", [16, 17, 19])
def test_a_file_that_ends_within_its_header(tmp_path: Path, size: int) -> None:
    network = topology(tmp_path, NET + CONV)
    path = tmp_path / "net.weights"
    path.write_bytes(write_darknet_weights(network)[:size])
    with pytest.raises(NetworkError, match=f"must start with a header of 20 bytes, but ends after {size}; copy the"):
        read_weights(network, path)


def test_a_device_is_no_weights_file(tmp_path: Path) -> None:
    with pytest.raises(
        NetworkError, match="the weights file /dev/zero must be a file, not a folder, a device or a pip"
    ):
        read_weights(topology(tmp_path, NET + CONV), Path("/dev/zero"))


def test_numbers_must_be_finite_and_variances_positive(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + NORMED)
    numbers = np.zeros(values(network))
    numbers[-1] = np.nan
    with pytest.raises(NetworkError, match=r"the weights of 'conv1' \(net\.cfg:6\) must be finite"):
        read_weights(network, weights_file(tmp_path, numbers))
    numbers[-1], numbers[24] = 0, -1
    with pytest.raises(NetworkError, match=r"the variances of 'conv1' .* must not be negative, but one is -1"):
        read_weights(network, weights_file(tmp_path, numbers))


@settings(max_examples=25)
@given(
    layers=st.lists(
        st.sampled_from([CONV, NORMED, POOL, "[connected]\noutput=6\nbatch_normalize=1\n"]), min_size=1, max_size=3
    ),
    seed=st.integers(0, 2**64 - 1),
)
def test_weights_make_the_round_trip(tmp_path_factory: pytest.TempPathFactory, layers: list[str], seed: int) -> None:
    folder = tmp_path_factory.mktemp("trip")
    network = topology(folder, NET + "".join(layers).replace(POOL, "[maxpool]\nsize=3\nstride=1\n"))
    data = write_darknet_weights(seeded(seed)(network))
    assert len(data) == 20 + 4 * values(network)
    (folder / "w").write_bytes(data)
    assert write_darknet_weights(read_weights(network, folder / "w")) == data


def test_names_are_kept_as_they_are(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + "[connected]\noutput=3\nactivation=linear\n")
    odd = ("l'été \u2028", ' "quoted" ${HOME}', "*/ // \\n")
    (tmp_path / "n.names").write_bytes("\r\n".join((*odd, "", "")).encode())
    assert read_names(tmp_path / "n.names", network) == odd


def test_names_are_counted(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + "[conv]\nfilters=14\n[region]\nanchors=1,2,3,4\nnum=2\nclasses=2\n")
    (tmp_path / "n.names").write_text("a\nb\nc\n")
    with pytest.raises(NetworkError, match=r"n\.names must name the 2 classes of 'region1' \(net\.cfg:8\), .* 3 lines"):
        read_names(tmp_path / "n.names", network)


def test_no_weights_and_no_source(tmp_path: Path) -> None:
    (tmp_path / "net.cfg").write_text(NET + CONV)
    with pytest.raises(NetworkError, match="give --weights FILE, or --seed NUMBER"):
        read_darknet(tmp_path / "net.cfg", None)
    assert read_darknet(tmp_path / "net.cfg", None, weight_source=seeded(1)).nodes[1].name == "conv1"


@pytest.mark.parametrize(
    ("text", "name"), [("tiny yolo-v2", "tiny_yolo_v2"), ("2nd", "net_2nd"), ("网络", "net"), ('a"${b}', "a_b")]
)
def test_identifiers(text: str, name: str) -> None:
    assert identifier(text) == name


@pytest.mark.shared
@pytest.mark.parametrize("stem", ["yolo-lite-voc-trial3-noBatch", "yolo-lite-voc-trial3"])
def test_trained_files_are_consumed_exactly(shared: Path, stem: str) -> None:
    folder = shared / "data" / "networks"
    weights = folder / f"{stem}.weights"
    network = read_darknet(folder / f"{stem}.cfg", weights, folder / "voc.names")
    assert write_darknet_weights(network)[20:] == weights.read_bytes()[-4 * values(network) :]
    assert network.labels[11] == "dog"


@pytest.mark.parametrize(
    ("version", "size"), [((0, 0), 16), ((0, 1), 16), ((0, 2), 20), ((1, 0), 20), ((999, 999), 20)]
)
def test_the_header_of_every_version(version: tuple[int, int], size: int, tmp_path: Path) -> None:
    """Two small numbers that say how many pictures were seen, or one large, from 0.2 on."""
    network = topology(tmp_path, NET + CONV)
    numbers = np.arange(values(network), dtype="<f4")
    path = tmp_path / "net.weights"
    path.write_bytes(struct.pack("<2i", *version) + bytes(size - 8) + numbers.tobytes())
    op = read_weights(network, path).nodes[-1].op
    written = np.concatenate([array.ravel() for array in (op.bias, op.weights)])  # type: ignore[union-attr]
    assert written.tolist() == numbers.tolist()


@pytest.mark.parametrize("version", [(1000, 0), (0, 1000), (-1, 0), (0, -1)])
def test_a_version_that_darknet_does_not_write(version: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "net.weights"
    path.write_bytes(struct.pack("<2i", *version) + bytes(100))
    with pytest.raises(
        NetworkError, match=rf"says version {version[0]}\.{version[1]}, darknet writes 0\.0 to 999\.999"
    ):
        read_weights(topology(tmp_path, NET + CONV), path)


def test_a_written_file_has_seen_no_picture(tmp_path: Path) -> None:
    data = write_darknet_weights(topology(tmp_path, NET + CONV))
    assert data[:20] == struct.pack("<3iQ", 0, 2, 0, 0)


def test_names_up_to_the_most_bytes(tmp_path: Path) -> None:
    network, names = topology(tmp_path, NET + "[conv]\nfilters=1\n"), tmp_path / "labels.names"
    names.write_text("x" * (1 << 20))
    assert len(read_names(names, network)[0]) == 1 << 20
    names.write_text("x" * ((1 << 20) + 1))
    with pytest.raises(NetworkError, match="must have at most 1,048,576 bytes; this is no names file"):
        read_names(names, network)
