# ruff: noqa: E501 (a cfg and the sentence that refuses it stay on one line)
from __future__ import annotations

import contextlib
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
    read_topology,
    read_weights,
    write_darknet_weights,
)
from cnn.darknet.layers import MAX_LAYERS
from cnn.network import (
    Add,
    AveragePool,
    Concat,
    Convolution,
    Dense,
    Detection,
    MaxPool,
    Network,
    Padding,
    Reorg,
    Shape,
    Slice,
    Softmax,
    Upsample,
)
from cnn.zoo import seeded

NET = "[net]\nwidth=16\nheight=12\nchannels=4\nbatch=1\n"
CONV = "[convolutional]\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
NORMED = CONV + "batch_normalize=1\n"
POOL = "[maxpool]\nsize=2\nstride=2\n"


def topology(tmp_path: Path, text: str) -> Network:
    cfg = tmp_path / "net.cfg"
    cfg.write_text(text, encoding="utf-8")
    return read_topology(cfg)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(NetworkError) as caught:
        topology(tmp_path, text)
    return str(caught.value)


def values(network: Network) -> int:
    return sum(parameter_count(node) for node in network.nodes)


def weights_file(tmp_path: Path, numbers: np.ndarray, version: tuple[int, int] = (0, 2)) -> Path:
    path = tmp_path / "net.weights"
    seen = struct.pack("<Q" if version[0] * 10 + version[1] >= 2 else "<i", 7)
    path.write_bytes(struct.pack("<3i", *version, 0) + seen + numbers.astype("<f4").tobytes())
    return path


def test_every_layer_has_its_shape_name_and_line(tmp_path: Path) -> None:
    text = NET + NORMED + POOL + CONV + "[route]\nlayers=-1,1\n[reorg]\nstride=2\n[avgpool]\n"
    network = topology(tmp_path, text + "[connected]\noutput=5\nactivation=linear\n[softmax]\n")
    found = [(node.name, type(node.op), str(node.shape), node.source) for node in network.nodes[1:]]
    assert found == [
        ("conv1", Convolution, "8×12×16", "net.cfg:6"),
        ("pool1", MaxPool, "8×6×8", "net.cfg:13"),
        ("conv2", Convolution, "8×6×8", "net.cfg:16"),
        ("route1", Concat, "16×6×8", "net.cfg:22"),
        ("reorg1", Reorg, "64×3×4", "net.cfg:24"),
        ("average1", AveragePool, "64×1×1", "net.cfg:26"),
        ("dense1", Dense, "5×1×1", "net.cfg:27"),
        ("softmax1", Softmax, "5×1×1", "net.cfg:30"),
    ]
    assert network.nodes[4].inputs == (3, 2)
    assert network.input_shape == Shape(4, 12, 16)


def test_dropout_computes_nothing_but_counts_for_routes(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + CONV + "[dropout]\nprobability=.5\n" + POOL + "[route]\nlayers=1\n" + CONV)
    assert [node.name for node in network.nodes] == ["input", "conv1", "pool1", "conv2"]
    assert network.nodes[3].inputs == (1,)


def test_route_groups_take_a_slice(tmp_path: Path) -> None:
    text = NET + CONV + CONV + "[route]\nlayers=-1,-2\ngroups=4\ngroup_id=3\n" + "[shortcut]\nfrom=-1\n"
    network = topology(tmp_path, text)
    assert [type(node.op) for node in network.nodes[3:]] == [Concat, Slice, Add]
    assert network.nodes[4].op == Slice(12, 4)
    assert network.nodes[5].inputs == (4, 4)


def test_upsample_and_shortcut(tmp_path: Path) -> None:
    text = NET + CONV + POOL + "[upsample]\nstride=2\nscale=.5\n[shortcut]\nfrom=0\nactivation=relu\n"
    network = topology(tmp_path, text)
    assert network.nodes[3].op == Upsample(2, 0.5)
    assert network.nodes[4].inputs == (3, 1)
    assert network.nodes[4].op == Add("relu")


@pytest.mark.parametrize(
    ("options", "shape", "padding"),
    [
        ("size=2\nstride=2", "4×6×8", Padding()),
        ("size=2\nstride=1", "4×12×16", Padding(0, 0, 1, 1)),
        ("size=3\nstride=1", "4×12×16", Padding(1, 1, 1, 1)),
        ("size=3\nstride=2", "4×6×8", Padding(1, 1, 0, 0)),
        ("size=3\nstride=2\npadding=0", "4×5×7", Padding()),
        ("size=4\nstride=1", "4×12×16", Padding(1, 1, 2, 2)),
        ("stride=4", "4×3×4", Padding(1, 1, 0, 0)),
    ],
)
def test_max_pool_pads_as_darknet(tmp_path: Path, options: str, shape: str, padding: Padding) -> None:
    node = topology(tmp_path, NET + "[maxpool]\n" + options).nodes[1]
    assert isinstance(node.op, MaxPool)
    assert (str(node.shape), node.op.padding) == (shape, padding)


def test_a_convolution_keeps_only_padding_that_is_read(tmp_path: Path) -> None:
    node = topology(tmp_path, NET + "[convolutional]\nfilters=2\nsize=3\nstride=2\npad=1\nactivation=relu").nodes[1]
    assert isinstance(node.op, Convolution)
    assert (str(node.shape), node.op.padding) == ("2×6×8", Padding(1, 1, 0, 0))


def test_yolo_keeps_the_anchors_of_its_mask(tmp_path: Path) -> None:
    head = "[conv]\nfilters=14\nactivation=linear\n[yolo]\nmask=2,0\nanchors=1,2, 3,4, 5,6\nnum=3\nclasses=2\n"
    network = topology(tmp_path, NET + head)
    assert network.nodes[-1].op == Detection("yolo", ((5, 6), (1, 2)), 2, False)


def test_region(tmp_path: Path) -> None:
    head = "[conv]\nfilters=14\nactivation=linear\n[region]\nanchors=1,2,3.5,4,\nnum=2\nclasses=2\nsoftmax=1\n"
    network = topology(tmp_path, NET + head)
    assert network.nodes[-1].op == Detection("region", ((1, 2), (3.5, 4)), 2, True)


def test_remarks_spaces_and_carriage_returns_are_no_matter(tmp_path: Path) -> None:
    text = "# a\r\n; b\r\n[net]\r\nwidth = 16 # wide\r\nheight=12\r\nchannels=4\r\n\r\n[conv]\r\nfilters = 3\r\nactivation=relu"
    assert str(topology(tmp_path, text).nodes[-1].shape) == "3×12×16"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "net.cfg:1: a cfg starts with [net], but no section at all came"),
        ("width=3\n", "net.cfg:1: the option 'width' stands before any section, not after [net]"),
        ("[net\n", "net.cfg:1: a section header is [name], not '[net'"),
        (NET, "net.cfg:1: a network needs at least one layer after [net]"),
        (NET + CONV + "filters=9\n", "net.cfg:12: filters is given again after net.cfg:7"),
        (
            NET + "[convolutional]\nfilter=9\n",
            "net.cfg:7: unknown option 'filter' in [convolutional], did you mean filters?",
        ),
        (NET + "[convolution]\n", "net.cfg:6: unknown section [convolution], did you mean convolutional?"),
        (NET + "[lstm]\n", "net.cfg:6: unknown section [lstm]; known are avgpool, "),
        (NET + "[reorg]\nreverse=1\n", "net.cfg:7: reverse=1 in [reorg] is not supported, only reverse=0"),
        (NET + CONV + "xnor=1\n", "net.cfg:12: xnor=1 in [convolutional] is not supported, only xnor=0"),
        (NET + "[conv]\nactivation=mish\n", "net.cfg:7: activation of [convolutional] must be one of linear, leaky, "),
        (NET + "[conv]\nfilters=many\n", "net.cfg:7: filters of [convolutional] must be whole numbers"),
        (NET + "[conv]\nfilters=0\n", "net.cfg:7: [convolutional] needs filters = 1…65536, not '0'"),
        (NET + "[conv]\nfilters=99999999999\n", "whole numbers of at most 9 digits, not '99999999999'"),
        (
            NET + "[conv]\nsize=13\n",
            "net.cfg:7: the 13×13 window of [convolutional] is larger than its padded input of 12×16",
        ),
        (NET + CONV + "groups=3\n", "net.cfg:12: groups=3 must divide the 4 input channels and the 8 filters"),
        (
            NET + CONV + POOL + "[route]\nlayers=0,1\n",
            "net.cfg:16: a route joins maps of one height and width, not 8×12×16 and 8×6×8",
        ),
        (
            NET + CONV + "[route]\nlayers=1\n",
            "net.cfg:13: layers of [route] names layer 1, but only layers 0…0 come before",
        ),
        (NET + CONV + "[route]\nlayers=-2\n", "net.cfg:13: layers of [route] names layer -2"),
        (NET + CONV + "[route]\n", "net.cfg:12: [route] needs the option 'layers'"),
        (
            NET + CONV + POOL + "[shortcut]\nfrom=-2\n",
            "net.cfg:16: [shortcut] adds maps of one shape, not 8×6×8 and 8×12×16",
        ),
        (NET + "[reorg]\nstride=5\n", "net.cfg:7: stride=5 of [reorg] must divide height and width"),
        (
            NET + "[maxpool]\nsize=2\nstride=1\npadding=5\n",
            "net.cfg:9: padding of 3 on one side would put a whole 2×2 window outside",
        ),
        (
            NET + "[region]\nanchors=1,2\nnum=2\n",
            "net.cfg:7: num=2 anchors of [region] are 4 numbers, width and height of each, not 2",
        ),
        (
            NET + "[region]\nanchors=1,2\nclasses=7\n",
            "net.cfg:8: [region] with 1 anchors and 7 classes reads 12 channels, but the layer before it gives 4; set its filters=12",
        ),
        (NET + "[region]\nanchors=1,nan\n", "net.cfg:7: anchors of [region] must be finite numbers"),
        (NET + "[region]\nanchors=1,-2\n", "net.cfg:7: the sides of an anchor are above 0, not -2"),
        (NET + "[yolo]\nanchors=1,2\nmask=1\n", "net.cfg:8: mask of [yolo] picks anchors 0…0, not 1"),
        ("[net]\nwidth=9000\nheight=1\nchannels=1\n[avg]\n", "net.cfg:2: [net] needs width = 1…8192, not '9000'"),
        (
            "[net]\nwidth=8192\nheight=8192\nchannels=9\n[avg]\n",
            "net.cfg:1: a layer has at most 65,536 channels and 67,108,864 values, not 9×8192×8192",
        ),
        (NET + "[upsample]\nstride=8192\n", "net.cfg:6: a layer has at most"),
        (NET + "[connected]\noutput=65536\n" * 2, "net.cfg:8: the network exceeds 268,435,456 weights"),
        (NET + "[dropout]\n" * MAX_LAYERS, f"a network has at most {MAX_LAYERS - 1} layers"),
        (NET + "[softmax]\ngroups=5\n", "net.cfg:7: groups=5 must divide the 768 values"),
    ],
)
def test_a_refusal_names_the_line(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in refusal(tmp_path, text)


def test_all_unknown_names_come_at_once(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, NET + "[lstm]\n[conv]\nfliters=3\n[gru]\n")
    assert "net.cfg:6: unknown section [lstm]" in sentence
    assert "net.cfg:8: unknown option 'fliters'" in sentence
    assert "net.cfg:9: unknown section [gru]" in sentence


EVERYTHING = (
    NET + NORMED + POOL + CONV + "[dropout]\n[route]\nlayers=-2,1\ngroups=2\n[shortcut]\nfrom=1\n[reorg]\nstride=2\n"
    "[upsample]\nstride=2\n[conv]\nfilters=14\nactivation=linear\n[region]\nanchors=1,2,3,4\nnum=2\nclasses=2\n"
)


@settings(max_examples=150)
@given(data=st.data())
def test_a_damaged_cfg_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    text = EVERYTHING
    for _ in range(data.draw(st.integers(1, 3))):
        first = data.draw(st.integers(0, len(text)))
        last = data.draw(st.integers(first, min(first + 3, len(text))))
        text = text[:first] + data.draw(st.text("0189-,.=[]\n#eax\u0663 \x00", max_size=4)) + text[last:]
    network = None
    with contextlib.suppress(NetworkError):
        network = topology(tmp_path_factory.getbasetemp(), text)
    if network is not None:
        assert all(min(n.shape.channels, n.shape.height, n.shape.width) >= 1 for n in network.nodes)
        assert all(i < at for at, n in enumerate(network.nodes) for i in n.inputs)


def test_everything_at_once(tmp_path: Path) -> None:
    assert len(topology(tmp_path, EVERYTHING).nodes) == 11


def test_a_huge_topology_takes_no_memory(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + "[connected]\noutput=65536\n")
    op = network.nodes[1].op
    assert isinstance(op, Dense)
    assert op.weights.shape == (65536, 768)
    assert op.weights.strides == (0, 0)


def test_files_that_are_no_cfg(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"the cfg file .*none\.cfg cannot be read: No such file"):
        read_topology(tmp_path / "none.cfg")
    (tmp_path / "b.cfg").write_bytes(b"[net]\n\xff\xfe")
    with pytest.raises(NetworkError, match=r"b\.cfg:2: the cfg file must be UTF-8 text, but byte 6 is not"):
        read_topology(tmp_path / "b.cfg")
    (tmp_path / "c.cfg").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(NetworkError, match="must have at most 1,048,576 bytes"):
        read_topology(tmp_path / "c.cfg")


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
