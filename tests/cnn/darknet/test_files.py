"""Tests of the files of weights and of class names."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import (
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
)
from cnn.darknet.files import (
    identifier,
    parameter_count,
    read_darknet,
    read_names,
    read_weights,
    write_darknet_weights,
)
from cnn.network import Network
from cnn.ops import Convolution, Dense
from cnn.zoo import seeded
from tests.support.cases import cases
from tests.support.darknet import CONV, NET, NORMED, POOL, topology
from tests.support.errors import raises


def values(network: Network) -> int:
    return sum(parameter_count(node) for node in network.nodes)


def weights_file(tmp_path: Path, numbers: np.ndarray, version: tuple[int, int] = (0, 2)) -> Path:
    path = tmp_path / "net.weights"
    seen = struct.pack("<Q" if version[0] * 10 + version[1] >= 2 else "<i", 7)
    path.write_bytes(struct.pack("<3i", *version, 0) + seen + numbers.astype("<f4").tobytes())
    return path


@cases("version", [(0, 1), (0, 2), (1, 0)])
def test_weights_of_each_version_are_read_in_darknet_order(tmp_path: Path, version: tuple[int, int]) -> None:
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


def test_truncated_weights_error_names_the_layer(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + CONV + POOL + CONV)
    assert values(network) == 296 + 584
    for count, layer, own in (
        (879, "'conv2' (net.cfg:15)", "296…879"),
        (296, "'conv2' (net.cfg:15)", "296…879"),
        (295, "'conv1' (net.cfg:6)", "0…295"),
    ):
        what = f"the number of weights, which end within {layer} (its numbers are {own}),"
        with raises(MismatchError, what=what, got=count, expected=880, where="net.weights"):
            read_weights(network, weights_file(tmp_path, np.zeros(count)))


def test_weights_that_are_too_long_are_refused(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + CONV)
    what = "the number of weights up to the last layer, 'conv1' (net.cfg:6),"
    with raises(MismatchError, what=what, got=300, expected=296, remedy="check that the file belongs to this cfg"):
        read_weights(network, weights_file(tmp_path, np.zeros(300)))
    path = weights_file(tmp_path, np.zeros(296))
    path.write_bytes(path.read_bytes() + b"x")
    with raises(DamagedFileError, path="net.weights", reason="has 1 bytes after its last number"):
        read_weights(network, path)


def test_file_that_is_not_a_weights_file_is_refused(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + CONV)
    path = tmp_path / "net.weights"
    path.write_bytes(b"short")
    with raises(DamagedFileError, path="net.weights", reason="ends after 5 bytes, within its header of 16 or 20"):
        read_weights(network, path)
    path.write_bytes(b"PK\x03\x04" * 400)
    with raises(InvalidValueError, what="the version in the header", where="net.weights"):
        read_weights(network, path)
    with raises(FileAccessError, path=str(tmp_path), reason="cannot be read: Is a directory", what="weights file"):
        read_weights(network, tmp_path)
    with raises(FileAccessError, path="/dev/zero", reason="is a device or a pipe"):
        read_weights(network, Path("/dev/zero"))


# 16 bytes are a whole header of version 0.1, but the version of this file, 0.2, needs 20.
@cases("size", [16, 17, 19])
def test_weights_file_that_ends_within_its_header_is_refused(tmp_path: Path, size: int) -> None:
    network = topology(tmp_path, NET + CONV)
    path = tmp_path / "net.weights"
    path.write_bytes(write_darknet_weights(network)[:size])
    with raises(DamagedFileError, reason=f"ends after {size} bytes, within its header of 20"):
        read_weights(network, path)


def test_weights_not_finite_or_with_negative_variance_are_refused(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + NORMED)
    where = "net.weights: 'conv1' (net.cfg:6)"
    numbers = np.zeros(values(network))
    numbers[-1] = np.inf
    with raises(InvalidValueError, what="a number of the weights", got=np.inf, where=where):
        read_weights(network, weights_file(tmp_path, numbers))
    numbers[-1] = np.nan
    with raises(InvalidValueError, what="a number of the weights", where=where):
        read_weights(network, weights_file(tmp_path, numbers))
    numbers[-1], numbers[24] = 0, -1
    with raises(RangeError, what="a variance", got=-1.0, low=0, where=where):
        read_weights(network, weights_file(tmp_path, numbers))


@settings(max_examples=25)
@given(
    layers=st.lists(
        st.sampled_from([CONV, NORMED, POOL, "[connected]\noutput=6\nbatch_normalize=1\n"]), min_size=1, max_size=3
    ),
    seed=st.integers(0, 2**64 - 1),
)
def test_weights_survive_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, layers: list[str], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    network = topology(folder, NET + "".join(layers).replace(POOL, "[maxpool]\nsize=3\nstride=1\n"))
    data = write_darknet_weights(seeded(seed)(network))
    assert len(data) == 20 + 4 * values(network)
    (folder / "w").write_bytes(data)
    assert write_darknet_weights(read_weights(network, folder / "w")) == data


def test_read_names_preserves_unusual_characters(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + "[connected]\noutput=3\nactivation=linear\n")
    odd = ("l'été \u2028", ' "quoted" ${HOME}', "*/ // \\n")
    (tmp_path / "n.names").write_bytes("\r\n".join((*odd, "", "")).encode())
    assert read_names(tmp_path / "n.names", network) == odd


def test_number_of_names_must_equal_the_classes(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + "[conv]\nfilters=14\n[region]\nanchors=1,2,3,4\nnum=2\nclasses=2\n")
    (tmp_path / "n.names").write_text("a\nb\nc\n")
    what = "the number of lines, one for each class of 'region1' (net.cfg:8),"
    with raises(MismatchError, what=what, got=3, expected=2, where="n.names"):
        read_names(tmp_path / "n.names", network)


def test_network_without_weights_and_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.cfg").write_text(NET + CONV)
    with raises(MissingValueError, what="the weights file of net.cfg"):
        read_darknet(tmp_path / "net.cfg", None)
    assert read_darknet(tmp_path / "net.cfg", None, weight_source=seeded(1)).nodes[1].name == "conv1"


@cases("text, name", [("tiny yolo-v2", "tiny_yolo_v2"), ("2nd", "net_2nd"), ("网络", "net"), ('a"${b}', "a_b")])
def test_identifier_of_any_text_is_valid(text: str, name: str) -> None:
    assert identifier(text) == name


@pytest.mark.shared
@cases("stem", ["yolo-lite-voc-trial3-noBatch", "yolo-lite-voc-trial3"])
def test_trained_weights_files_are_read_to_their_last_byte(shared: Path, stem: str) -> None:
    folder = shared / "data" / "networks"
    weights = folder / f"{stem}.weights"
    network = read_darknet(folder / f"{stem}.cfg", weights, folder / "voc.names")
    assert write_darknet_weights(network)[20:] == weights.read_bytes()[-4 * values(network) :]
    assert network.labels[11] == "dog"


@cases("version, size", [((0, 0), 16), ((0, 1), 16), ((0, 2), 20), ((1, 0), 20), ((999, 999), 20)])
def test_header_of_every_version_has_its_length(version: tuple[int, int], size: int, tmp_path: Path) -> None:
    """Versions before 0.2 store the number of seen images in 4 bytes; later versions store it in 8 bytes."""
    network = topology(tmp_path, NET + CONV)
    numbers = np.arange(values(network), dtype="<f4")
    path = tmp_path / "net.weights"
    path.write_bytes(struct.pack("<2i", *version) + bytes(size - 8) + numbers.tobytes())
    op = read_weights(network, path).nodes[-1].op
    written = np.concatenate([array.ravel() for array in (op.bias, op.weights)])  # type: ignore[union-attr]
    assert written.tolist() == numbers.tolist()


@cases("version", [(1000, 0), (0, 1000), (-1, 0), (0, -1)])
def test_version_that_darknet_does_not_write_is_refused(version: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "net.weights"
    path.write_bytes(struct.pack("<2i", *version) + bytes(100))
    with raises(InvalidValueError, what="the version in the header", got=f"{version[0]}.{version[1]}"):
        read_weights(topology(tmp_path, NET + CONV), path)


def test_written_weights_file_records_no_seen_images(tmp_path: Path) -> None:
    data = write_darknet_weights(topology(tmp_path, NET + CONV))
    assert data[:20] == struct.pack("<3iQ", 0, 2, 0, 0)


def test_names_file_of_at_most_1_mib_is_read(tmp_path: Path) -> None:
    network, names = topology(tmp_path, NET + "[conv]\nfilters=1\n"), tmp_path / "labels.names"
    names.write_text("x" * (1 << 20))
    assert len(read_names(names, network)[0]) == 1 << 20
    names.write_text("x" * ((1 << 20) + 1))
    with raises(RangeError, what="the size of the names file in bytes", got=(1 << 20) + 1, high=1 << 20):
        read_names(names, network)
