# ruff: noqa: E501 (a cfg and the sentence that refuses it stay on one line)
"""The text of a cfg, and what is said of one that is wrong."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import MOST_FAULTS, NetworkError
from cnn.darknet.files import read_topology
from cnn.limits import MAX_LAYERS
from cnn.network import Dense
from tests.support.darknet import CONV, NET, NORMED, POOL, refusal, topology


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
        (NET + "[lstn]\n", "net.cfg:6: unknown section [lstn]; known are Gaussian_yolo, avgpool, "),
        (NET + "[lstm]\n", "net.cfg:6: [lstm] keeps a state from one picture to the next, and no layer here does"),
        (
            NET + "[deconvolutional]\n",
            "net.cfg:6: [deconvolutional] is a transposed convolution, which an ONNX file may",
        ),
        (NET + "[local_avgpool]\n", "as lie within the map: ONNX' AveragePool is read"),
        (NET + "[local]\n", "net.cfg:6: [local] has weights of its own at each position, and no layer here does"),
        (NET + "inputs=7\n", "net.cfg:6: a network reads a picture of width, height and channels, not inputs=N"),
        (NET + CONV + "share_index=-1\n", "net.cfg:12: share_index in [convolutional] takes its weights from another"),
        (
            NET + "[softmax]\ntree=a.tree\n",
            "net.cfg:7: tree in [softmax] sorts the classes into a tree, by a file of its",
        ),
        (NET + CONV + "[crop]\n", "net.cfg:12: [crop] is taken as the first layer alone"),
        (NET + "[crop]\ncrop_width=17\ncrop_height=12\n", "net.cfg:7: [crop] needs crop_width = 1…16, not '17'"),
        (NET + "[reorg]\nreverse=1\n", "net.cfg:7: reverse=1 in [reorg] is not supported, only reverse=0"),
        (NET + CONV + "binary=1\n", "net.cfg:12: binary=1 in [convolutional] is not supported, only binary=0"),
        (NET + "[conv]\nactivation=rrelu\n", "net.cfg:7: activation of [convolutional] must be one of linear, leaky, "),
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
            "net.cfg:16: a route joins maps of one height and width, not 8×12×16, 8×6×8",
        ),
        (
            NET + CONV + "[route]\nlayers=1\n",
            "net.cfg:13: layers of [route] names layer 1, but only layers 0…0 come before",
        ),
        (NET + CONV + "[route]\nlayers=-2\n", "net.cfg:13: layers of [route] names layer -2"),
        (NET + CONV + "[route]\n", "net.cfg:12: [route] needs the option 'layers'"),
        (
            NET + CONV + POOL + "[convolutional]\npadding=1\n[shortcut]\nfrom=-3\n",
            "net.cfg:18: [shortcut] adds a map to one of its height and width, or of a whole part of them, not 8×12×16 to 1",
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
        (NET + "[region]\nanchors=1,-2\n", "net.cfg:7: the sides of an anchor are above 0 and below 1,000,000, not -2"),
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
        (NET + CONV + NET, "net.cfg:12: a cfg has one [net], remove this one"),
    ],
)
def test_a_refusal_names_the_line(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in refusal(tmp_path, text)


def test_all_unknown_names_come_at_once(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, NET + "[lstm]\n[conv]\nfliters=3\n[gru]\n")
    assert "net.cfg:6: [lstm] keeps a state" in sentence
    assert "net.cfg:8: unknown option 'fliters'" in sentence
    assert "net.cfg:9: [gru] keeps a state" in sentence


@pytest.mark.parametrize(
    "text",
    [
        f"[{'x' * 100_000}]\n",
        NET + f"[{'x' * 100_000}]\n",
        NET + "[conv]\n" + "".join(f"option{number}=1\n" for number in range(5000)),
        NET + f"[conv]\nactivation={'x' * 100_000}\n",
        NET + f"[conv]\nfilters={'9' * 100_000}\n",
    ],
)
def test_a_refusal_stays_a_sentence(tmp_path: Path, text: str) -> None:
    assert len(refusal(tmp_path, text)) < 3000


def test_faults_that_are_not_told_are_counted(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, NET + "[conv]\n" + "".join(f"option{number}=1\n" for number in range(100)))
    assert "net.cfg:7: unknown option 'option0'" in sentence
    assert sentence.endswith(f"; and {100 - MOST_FAULTS} more")


def test_a_file_name_is_told_on_one_line(tmp_path: Path) -> None:
    cfg = tmp_path / "a\tb\n\udcffc.cfg"
    cfg.write_text(NET + CONV)
    assert read_topology(cfg).nodes[-1].source == "a?b??c.cfg:6"


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
