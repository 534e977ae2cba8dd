"""Tests of the text of a cfg file: how it is read, and which errors a wrong one gives."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import (
    MAX_FAULTS,
    ChoiceError,
    ConflictError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SeveralFaultsError,
    ShapeError,
    SystolicError,
    UnknownKeyError,
    UnsupportedError,
)
from cnn.darknet.cfg import READ
from cnn.darknet.files import read_topology
from cnn.darknet.graph import CHOICES
from cnn.limits import MAX_LAYERS
from cnn.ops import Dense
from tests.support.darknet import CONV, NET, NORMED, POOL, refusal, topology
from tests.support.errors import Refusal, check_refusals, raises


def test_cfg_comments_spaces_and_carriage_returns_are_ignored(tmp_path: Path) -> None:
    text = "# a\n; b\n[net]\nwidth = 16 # wide\nheight=12\nchannels=4\n\n[conv]\nfilters = 3\nactivation=relu"
    assert str(topology(tmp_path, text.replace("\n", "\r\n")).nodes[-1].shape) == "3×12×16"


def test_cfg_option_that_only_prints_is_ignored(tmp_path: Path) -> None:
    shown = NET.replace("[net]\n", "[net]\nshow_receptive_field=1\n")
    assert topology(tmp_path, shown + CONV).nodes[-1].shape == topology(tmp_path, NET + CONV).nodes[-1].shape


def line(number: int, what: str, **fields: object) -> dict[str, object]:
    return {"where": f"net.cfg:{number}", "what": what, **fields}


def unsupported(number: int, subject: str, **fields: object) -> dict[str, object]:
    return {"where": f"net.cfg:{number}", "subject": subject, **fields}


STATE = "it keeps a state from one image to the next"
CROPPED = NET + "[crop]\ncrop_width=17\ncrop_height=12\n"
UNLIKE = NET + CONV + POOL + "[convolutional]\npadding=1\n[shortcut]\nfrom=-3\n"
LARGE = "[net]\nwidth=8192\nheight=8192\nchannels=9\n[avg]\n"
REFUSALS: list[Refusal] = [
    ("", InvalidValueError, line(1, "the first section of a cfg", got="nothing", required="[net]")),
    ("width=3\n", InvalidValueError, line(1, "the first entry of a cfg", got="width=3", required="[net]")),
    ("[net\n", InvalidValueError, line(1, "a section header", got="[net", remedy="close the bracket")),
    (NET, RangeError, line(1, "the number of layers", got=0, low=1, high=MAX_LAYERS - 1)),
    (NET + CONV + "filters=9\n", ConflictError, {"where": "net.cfg:12", "remedy": "remove one of the two"}),
    (NET + CONV + NET, ConflictError, {"where": "net.cfg:12", "remedy": "remove one"}),
    (NET + "[convolution]\n", ChoiceError, line(6, "a section", got="convolution", choices=sorted(READ))),
    (
        NET + "[lstm]\n",
        UnsupportedError,
        unsupported(6, "[lstm]", reason=STATE),
    ),
    (NET + "[deconvolutional]\n", UnsupportedError, unsupported(6, "[deconvolutional]")),
    (NET + "[local_avgpool]\n", UnsupportedError, unsupported(6, "[local_avgpool]")),
    (NET + "[local]\n", UnsupportedError, unsupported(6, "[local]")),
    (NET + "[normalization]\n", UnsupportedError, unsupported(6, "[normalization]")),
    (NET + "[contrastive]\n", UnsupportedError, unsupported(6, "[contrastive]")),
    (NET + "inputs=7\n", UnsupportedError, unsupported(6, "inputs of [net]")),
    (NET + CONV + "share_index=-1\n", UnsupportedError, unsupported(12, "share_index of [convolutional]")),
    (NET + "[softmax]\ntree=a.tree\n", UnsupportedError, unsupported(7, "tree of [softmax]")),
    (NET + CONV + "[crop]\n", UnsupportedError, unsupported(12, "[crop] after another layer")),
    (NET + "[reorg]\nreverse=1\n", UnsupportedError, unsupported(7, "reverse=1 of [reorg]")),
    (NET + CONV + "binary=1\n", UnsupportedError, unsupported(12, "binary=1 of [convolutional]")),
    (NET + CONV + "binary=no\n", InvalidValueError, line(12, "binary of [convolutional]", got="no")),
    (CROPPED, RangeError, line(7, "crop_width of [crop]", got=17, low=1, high=16)),
    (
        NET + "[conv]\nactivation=rrelu\n",
        ChoiceError,
        line(7, "activation of [convolutional]", got="rrelu", choices=CHOICES),
    ),
    (NET + "[conv]\nfilters=many\n", InvalidValueError, line(7, "filters of [convolutional]", got="many")),
    (
        NET + "[conv]\nfilters=1,2\n",
        InvalidValueError,
        line(7, "filters of [convolutional]", required="one whole number"),
    ),
    (NET + "[conv]\nfilters=0\n", RangeError, line(7, "filters of [convolutional]", got=0, low=1, high=65536)),
    (NET + "[conv]\nfilters=99999999999\n", InvalidValueError, {"required": "whole numbers of at most 9 digits"}),
    (NET + "[conv]\nsize=13\n", InvalidValueError, line(7, "the window of [convolutional]", got="13×13")),
    (NET + CONV + "groups=3\n", InvalidValueError, line(12, "groups of [convolutional]", got=3)),
    (
        NET + CONV + POOL + "[route]\nlayers=0,1\n",
        ShapeError,
        line(16, "the maps that [route] joins", got="8×12×16, 8×6×8"),
    ),
    (NET + CONV + "[route]\nlayers=1\n", RangeError, line(13, "layers of [route]", got=1, low=-1, high=0)),
    (NET + CONV + "[route]\nlayers=-2\n", RangeError, line(13, "layers of [route]", got=-2)),
    (NET + "[route]\nlayers=0\n", MissingValueError, line(6, "a layer before [route]")),
    (NET + "[shortcut]\nfrom=0\n", MissingValueError, line(6, "a layer before [shortcut]")),
    (NET + CONV + "[route]\n", MissingValueError, line(12, "layers of [route]", remedy="add it")),
    (UNLIKE, ShapeError, line(18, "the map that [shortcut] adds", got="shape 8×12×16")),
    (NET + "[reorg]\nstride=5\n", InvalidValueError, line(7, "stride of [reorg]", got=5)),
    (NET + "[maxpool]\nsize=2\nstride=1\npadding=5\n", RangeError, {"where": "net.cfg:9", "got": 3, "high": 1}),
    (NET + "[region]\nanchors=1,2\nnum=2\n", MismatchError, {"where": "net.cfg:7", "got": 2, "expected": 4}),
    (
        NET + "[region]\nanchors=1,2\nclasses=7\n",
        MismatchError,
        {"where": "net.cfg:8", "got": 4, "expected": 12, "remedy": "set filters=12 of the layer before it"},
    ),
    (NET + "[region]\nanchors=1,nan\n", InvalidValueError, line(7, "anchors of [region]", required="finite numbers")),
    (NET + "[region]\nanchors=1,-2\n", InvalidValueError, line(7, "a side of an anchor", got=-2.0)),
    (NET + "[yolo]\nanchors=1,2\nmask=1\n", RangeError, line(8, "mask of [yolo]", got=1, low=0, high=0)),
    ("[net]\nwidth=90000\nheight=1\nchannels=1\n[avg]\n", RangeError, line(2, "width of [net]", got=90000, high=65536)),
    (LARGE, RangeError, line(1, "the number of values of 9×8192×8192", got=9 << 26, high=1 << 26)),
    (NET + "[upsample]\nstride=8192\n", RangeError, {"where": "net.cfg:6", "high": 1 << 26}),
    (NET + "[connected]\noutput=65536\n" * 2, RangeError, line(8, "the number of weights", high=1 << 28)),
    (NET + "[dropout]\n" * MAX_LAYERS, RangeError, {"what": "the number of layers", "got": MAX_LAYERS}),
    (NET + "[softmax]\ngroups=5\n", InvalidValueError, line(7, "groups of [softmax]", got=5)),
    (NET + "[softmax]\nspatial=1\ngroups=2\n", ConflictError, {"subjects": ("spatial=1", "groups=2")}),
]


def test_cfg_error_names_the_line(tmp_path: Path) -> None:
    check_refusals(lambda text: topology(tmp_path, text), REFUSALS)


def test_cfg_unknown_option_suggests_the_nearest_name(tmp_path: Path) -> None:
    error = refusal(tmp_path, NET + "[convolutional]\nfilter=9\n")
    assert isinstance(error, UnknownKeyError)
    assert (error.keys, error.where) == (["filter"], "net.cfg:7: [convolutional]")
    assert "did you mean 'filters'?" in str(error)
    section = refusal(tmp_path, NET + "[convolution]\n")
    assert isinstance(section, ChoiceError)
    assert section.nearest() == "convolutional"


def test_cfg_unknown_names_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(SeveralFaultsError) as caught:
        topology(tmp_path, NET + "[lstm]\n[conv]\nfliters=3\n[gru]\n" + NET)
    assert caught.value.subject == "net.cfg has 4 faults"
    assert [(type(error), error.where) for error in caught.value.errors] == [
        (UnsupportedError, "net.cfg:6"),
        (UnknownKeyError, "net.cfg:8: [convolutional]"),
        (UnsupportedError, "net.cfg:9"),
        (ConflictError, "net.cfg:10"),
    ]


def test_cfg_error_of_a_huge_text_stays_short(tmp_path: Path) -> None:
    for text in (
        f"[{'x' * 100_000}]\n",
        NET + f"[{'x' * 100_000}]\n",
        NET + "[conv]\n" + "".join(f"option{number}=1\n" for number in range(5000)),
        NET + f"[conv]\nactivation={'x' * 100_000}\n",
        NET + f"[conv]\nfilters={'9' * 100_000}\n",
        NET + f"[conv]\n{'x' * 100_000}=1\n",
    ):
        assert len(str(refusal(tmp_path, text))) < 3000, text[:60]


def test_cfg_error_counts_the_omitted_faults(tmp_path: Path) -> None:
    error = refusal(tmp_path, NET + "[conv]\n" + "".join(f"option{number}=1\n" for number in range(100)))
    assert isinstance(error, SeveralFaultsError)
    assert len(error.errors) == 100
    assert str(error).endswith(f"and {100 - MAX_FAULTS} more")


def test_cfg_file_name_with_control_characters_is_shown_on_one_line(tmp_path: Path) -> None:
    cfg = tmp_path / "a\tb\n\udcffc.cfg"
    cfg.write_text(NET + CONV)
    assert read_topology(cfg).nodes[-1].source == "a?b??c.cfg:6"


EVERYTHING = (
    NET + NORMED + POOL + CONV + "[dropout]\n[route]\nlayers=-2,1\ngroups=2\n[shortcut]\nfrom=1\n[reorg]\nstride=2\n"
    "[upsample]\nstride=2\n[conv]\nfilters=14\nactivation=linear\n[region]\nanchors=1,2,3,4\nnum=2\nclasses=2\n"
)


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_cfg_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    text = EVERYTHING
    for _ in range(data.draw(st.integers(1, 3))):
        first = data.draw(st.integers(0, len(text)))
        last = data.draw(st.integers(first, min(first + 3, len(text))))
        text = text[:first] + data.draw(st.text("0189-,.=[]\n#eax\u0663 \x00", max_size=4)) + text[last:]
    network = None
    with contextlib.suppress(SystolicError):  # of any class of the project
        network = topology(tmp_path_factory.getbasetemp(), text)
    if network is not None:
        assert all(min(n.shape.channels, n.shape.height, n.shape.width) >= 1 for n in network.nodes)
        assert all(i < at for at, n in enumerate(network.nodes) for i in n.inputs)


def test_cfg_with_every_section_is_read(tmp_path: Path) -> None:
    assert len(topology(tmp_path, EVERYTHING).nodes) == 11


def test_topology_without_weights_takes_no_memory(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + "[connected]\noutput=65536\n")
    op = network.nodes[1].op
    assert isinstance(op, Dense)
    assert op.weights.shape == (65536, 768)
    assert op.weights.strides == (0, 0)


def test_file_that_is_not_a_cfg_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "none.cfg"
    with raises(
        FileAccessError, path=str(missing), reason="cannot be read: No such file or directory", what="cfg file"
    ):
        read_topology(missing)
    (tmp_path / "b.cfg").write_bytes(b"[net]\n\xff\xfe")
    with raises(DamagedFileError, path="b.cfg", reason="is not UTF-8 text at byte 6", place="line 2"):
        read_topology(tmp_path / "b.cfg")
    (tmp_path / "c.cfg").write_bytes(b"#" * ((1 << 20) + 9))
    with raises(RangeError, what="the size of the cfg file in bytes", got=(1 << 20) + 9, high=1 << 20):
        read_topology(tmp_path / "c.cfg")
