"""Tests of how sections of a cfg become nodes with shapes."""

from __future__ import annotations

import itertools
from pathlib import Path

from boards.errors import InvalidValueError, MismatchError, MissingValueError, RangeError, ShapeError, UnsupportedError
from cnn.maps import Padding, Shape
from cnn.ops import (
    Add,
    AveragePool,
    Cells,
    Concat,
    Convolution,
    Dense,
    GaussianYolo,
    MaxPool,
    Region,
    Reorg,
    ScaledYolo,
    Slice,
    Softmax,
    Upsample,
    Yolo,
)
from tests.support.cases import cases
from tests.support.darknet import CONV, NET, NORMED, POOL, topology
from tests.support.errors import check_refusals, raises


def test_section_becomes_a_node_with_shape_name_and_line(tmp_path: Path) -> None:
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


def test_dropout_adds_no_node_but_counts_for_routes(tmp_path: Path) -> None:
    network = topology(tmp_path, NET + CONV + "[dropout]\nprobability=.5\n" + POOL + "[route]\nlayers=1\n" + CONV)
    assert [node.name for node in network.nodes] == ["input", "conv1", "pool1", "conv2"]
    assert network.nodes[3].inputs == (1,)


def test_route_with_groups_takes_a_slice(tmp_path: Path) -> None:
    text = NET + CONV + CONV + "[route]\nlayers=-1,-2\ngroups=4\ngroup_id=3\n" + "[shortcut]\nfrom=-1\n"
    network = topology(tmp_path, text)
    assert [type(node.op) for node in network.nodes[3:]] == [Concat, Slice, Add]
    assert network.nodes[4].op == Slice(12, 4)
    assert network.nodes[5].inputs == (4, 4)


def test_upsample_and_shortcut_become_nodes(tmp_path: Path) -> None:
    text = NET + CONV + POOL + "[upsample]\nstride=2\nscale=.5\n[shortcut]\nfrom=0\nactivation=relu\n"
    network = topology(tmp_path, text)
    assert network.nodes[3].op == Upsample(2, 0.5)
    assert network.nodes[4].inputs == (3, 1)
    assert network.nodes[4].op == Add("relu")


@cases(
    "options, shape, padding",
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


def test_convolution_keeps_only_padding_that_is_read(tmp_path: Path) -> None:
    node = topology(tmp_path, NET + "[convolutional]\nfilters=2\nsize=3\nstride=2\npad=1\nactivation=relu").nodes[1]
    assert isinstance(node.op, Convolution)
    assert (str(node.shape), node.op.padding) == ("2×6×8", Padding(1, 1, 0, 0))


def test_yolo_with_new_coords_absorbs_the_logistic_layer_before_it(tmp_path: Path) -> None:
    """Check also that routes still count the absorbed layer. Its logistic function runs on the host, which is more
    exact than a table."""
    head = "[yolo]\nnew_coords=1\nscale_x_y=2.0\nanchors=1,2, 3,4\nnum=2\nclasses=2\n"
    text = "[conv]\nfilters=14\nactivation=logistic\n" + head
    network = topology(tmp_path, NET + text + "[route]\nlayers=0\n[conv]\nfilters=2\nactivation=linear\n")
    assert [(node.name, node.inputs) for node in network.nodes] == [
        ("input", ()),
        ("conv1", (0,)),
        ("yolo1", (1,)),
        ("conv2", (1,)),
    ]
    assert network.nodes[2].op == ScaledYolo(((1, 2), (3, 4)), 2, False, 4, (), 2.0)


def test_yolo_with_wrong_options_is_refused(tmp_path: Path) -> None:
    what = "scale_x_y of [yolo]"
    check_refusals(
        lambda options: topology(
            tmp_path, NET + f"[conv]\nfilters=7\nactivation=linear\n[yolo]\n{options}\nanchors=1,2\nclasses=2\n"
        ),
        [
            ("new_coords=1", MissingValueError, {"what": "activation=logistic of the layer before [yolo]"}),
            ("scale_x_y=0", RangeError, {"what": what, "got": 0.0, "high": 10.0, "exclusive": True}),
            ("scale_x_y=10.5", RangeError, {"what": what, "got": 10.5, "where": "net.cfg:10"}),
            ("scale_x_y=nan", InvalidValueError, {"what": what, "required": "finite numbers"}),
            ("scale_x_y=wide", InvalidValueError, {"what": what, "required": "numbers", "got": "wide"}),
            ("scale_x_y=1,2", InvalidValueError, {"what": what, "required": "one number", "where": "net.cfg:10"}),
        ],
    )


@cases("head, side", itertools.product(("region", "yolo"), (0, -1, 1e6, 1e300)))
def test_anchor_out_of_range_is_refused(head: str, side: float, tmp_path: Path) -> None:
    text = f"[conv]\nfilters=7\nactivation=linear\n[{head}]\nanchors=1,{side:g}\nclasses=2\n"
    with raises(InvalidValueError, what="a side of an anchor", got=side, where="net.cfg:10"):
        topology(tmp_path, NET + text)


def test_batch_norm_has_darknet_epsilon(tmp_path: Path) -> None:
    op = topology(tmp_path, NET + NORMED).nodes[1].op
    assert isinstance(op, Convolution)
    assert op.batch_norm is not None
    assert op.batch_norm.epsilon == 1e-6


def test_yolo_keeps_the_anchors_of_its_mask(tmp_path: Path) -> None:
    head = "[conv]\nfilters=14\nactivation=linear\n[yolo]\nmask=2,0\nanchors=1,2, 3,4, 5,6\nnum=3\nclasses=2\n"
    network = topology(tmp_path, NET + head)
    assert network.nodes[-1].op == Yolo(((5, 6), (1, 2)), 2, False)


def test_region_section_becomes_a_region_head(tmp_path: Path) -> None:
    head = "[conv]\nfilters=14\nactivation=linear\n[region]\nanchors=1,2,3.5,4,\nnum=2\nclasses=2\nsoftmax=1\n"
    network = topology(tmp_path, NET + head)
    assert network.nodes[-1].op == Region(((1, 2), (3.5, 4)), 2, True)


DETECTION = "[connected]\noutput=126\n[detection]\nclasses=4\ncoords=4\nside=3\nnum=2\nsqrt=1\nsoftmax=0\nrescore=1\n"


def test_detection_section_becomes_a_yolov1_head(tmp_path: Path) -> None:
    node = topology(tmp_path, NET + DETECTION).nodes[-1]
    assert node.op == Cells(((1.0, 1.0), (1.0, 1.0)), 4, False, 4, (), 1.0, 3)
    assert (node.name, str(node.shape)) == ("cells1", "126×1×1")


def test_detection_section_with_wrong_options_is_refused(tmp_path: Path) -> None:
    check_refusals(
        lambda change: topology(tmp_path, NET + DETECTION.replace(*change)),
        [
            (
                ("output=126", "output=125"),
                ShapeError,
                {"got": "shape 125×1×1", "required": "shape 126×1×1", "remedy": "set its output=126"},
            ),
            (("sqrt=1\n", ""), RangeError, {"what": "sqrt of [detection]", "got": 0, "low": 1, "high": 1}),
            (("softmax=0", "softmax=1"), UnsupportedError, {"subject": "softmax=1 of [detection]"}),
            (("coords=4\n", ""), RangeError, {"what": "coords of [detection]", "got": 1, "where": "net.cfg:8"}),
        ],
    )


def test_gaussian_yolo_section_becomes_a_head_with_variances(tmp_path: Path) -> None:
    text = NET + "[conv]\nfilters=24\n[Gaussian_yolo]\nanchors=1,2,3,4,5,6\nnum=3\nmask=0,2\nclasses=3\nscale_x_y=1.1\n"
    node = topology(tmp_path, text).nodes[-1]
    assert node.op == GaussianYolo(((1.0, 2.0), (5.0, 6.0)), 3, False, 4, (), 1.1)
    assert node.name == "gaussian1"
    what = "the number of channels that [Gaussian_yolo] reads, with 2 anchors and 3 classes,"
    with raises(MismatchError, what=what, got=16, expected=24):
        topology(tmp_path, text.replace("filters=24", "filters=16"))
