"""Tests of every option of a cfg: its default, its lowest and highest value, and the first values outside."""

from __future__ import annotations

from pathlib import Path

from boards.errors import (
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SystolicError,
    UnsupportedError,
)
from cnn.darknet.files import is_letterboxed, read_names, read_topology
from cnn.limits import MAX_CHANNELS, MAX_KERNEL, MAX_LAYERS, MAX_SIDE, MAX_WINDOW
from cnn.network import Network, Node
from cnn.ops import Activate, Convolution, Detection, Upsample
from tests.support.cases import cases
from tests.support.darknet import CONV, NET, POOL, topology
from tests.support.errors import raises

RANGES = [
    ("[conv]\n", "filters", 1, MAX_CHANNELS),
    ("[conv]\n", "size", 1, MAX_KERNEL),
    ("[conv]\n", "stride", 1, MAX_SIDE),
    ("[conv]\n", "pad", 0, 1),
    ("[conv]\n", "padding", 0, MAX_KERNEL),
    ("[conv]\n", "groups", 1, MAX_CHANNELS),
    ("[conv]\n", "batch_normalize", 0, 1),
    ("[maxpool]\n", "stride", 1, MAX_KERNEL),
    ("[maxpool]\n", "size", 1, MAX_KERNEL),
    ("[maxpool]\n", "padding", 0, 2 * MAX_KERNEL),
    ("[connected]\n", "output", 1, MAX_CHANNELS),
    ("[connected]\n", "batch_normalize", 0, 1),
    ("[conv]\n[route]\nlayers=0\n", "groups", 1, MAX_CHANNELS),
    ("[conv]\n[route]\nlayers=0\ngroups=7\n", "group_id", 0, 6),
    ("[reorg]\n", "stride", 1, MAX_SIDE),
    ("[upsample]\n", "stride", 1, MAX_SIDE),
    ("[softmax]\n", "groups", 1, MAX_CHANNELS),
    ("[conv]\n", "dilation", 1, MAX_WINDOW),
    ("[conv]\n", "xnor", 0, 1),
    ("[region]\nanchors=1,2\n", "num", 1, 1024),
    ("[region]\nanchors=1,2\n", "classes", 1, MAX_CHANNELS),
    ("[region]\nanchors=1,2\n", "softmax", 0, 1),
    ("[region]\nanchors=1,2\n", "coords", 4, 4),
    ("[yolo]\nanchors=1,2\n", "num", 1, 1024),
    ("[yolo]\nanchors=1,2\n", "classes", 1, MAX_CHANNELS),
]


@cases("section, key, low, high", RANGES)
def test_option_outside_its_range_is_refused(section: str, key: str, low: int, high: int, tmp_path: Path) -> None:
    for value in (low - 1, high + 1):
        error = error_of(tmp_path, f"{NET}{section}{key}={value}\n")
        assert isinstance(error, RangeError)
        assert error.what.startswith(f"{key} of [")
        assert (error.got, error.low, error.high) == (value, low, high)
    # A value at the limit may be refused because it does not fit the other options, but not for its range.
    for value in (low, high):
        other = error_of(tmp_path, f"{NET}{section}{key}={value}\n")
        assert not (isinstance(other, RangeError) and other.what.startswith(f"{key} of [") and other.got == value)


def error_of(tmp_path: Path, text: str) -> SystolicError | None:
    """Return the error of reading the text, or None if it is read."""
    try:
        topology(tmp_path, text)
    except SystolicError as error:  # of any class of the project
        return error
    return None


@cases("key, high", [("channels", MAX_CHANNELS), ("height", MAX_SIDE), ("width", MAX_SIDE)])
def test_image_sides_and_channels_have_no_default(key: str, high: int, tmp_path: Path) -> None:
    sizes = {"channels": 1, "height": 1, "width": 1}

    def text(**changed: int) -> str:
        return "[net]\n" + "".join(f"{name}={value}\n" for name, value in {**sizes, **changed}.items()) + "[avg]\n"

    assert getattr(topology(tmp_path, text(**{key: high})).input_shape, key) == high
    for value in (0, high + 1):
        with raises(RangeError, what=f"{key} of [net]", got=value, low=1, high=high):
            topology(tmp_path, text(**{key: value}))
    del sizes[key]
    with raises(MissingValueError, what=f"{key} of [net]", where="net.cfg:1", remedy="add it"):
        topology(tmp_path, text())


DEFAULTS = [
    ("[conv]\n", "filters=1\nsize=1\nstride=1\npad=0\npadding=0\ngroups=1\nbatch_normalize=0\nactivation=logistic\n"),
    ("[conv]\nsize=3\npad=1\n", "padding=0\n"),
    ("[conv]\nsize=3\npad=1\n", "padding=7\n"),  # padding has no effect unless pad is 0
    ("[maxpool]\n", "stride=1\nsize=1\npadding=0\n"),
    ("[maxpool]\nstride=3\n", "size=3\npadding=2\n"),
    ("[connected]\n", "output=1\nbatch_normalize=0\nactivation=logistic\n"),
    (CONV + "[route]\nlayers=-1\n", "groups=1\n"),
    (CONV + "[route]\nlayers=-1\ngroups=4\n", "group_id=0\n"),
    ("[reorg]\n", "stride=1\n"),
    ("[upsample]\n", "stride=2\nscale=1\n"),
    (CONV + CONV + "[shortcut]\nfrom=-2\n", "activation=linear\n"),
    ("[softmax]\n", "groups=1\n"),
    ("[conv]\nfilters=25\n[region]\nanchors=1,2\n", "num=1\nclasses=20\ncoords=4\nsoftmax=0\n"),
    ("[conv]\nfilters=50\n[yolo]\nnum=2\nanchors=1,2,3,4\n", "classes=20\nmask=0,1\n"),
]


def described(node: Node) -> tuple[object, ...]:
    values = {name: getattr(value, "shape", value) for name, value in vars(node.op).items()}
    return type(node.op), values, node.shape, node.inputs


@cases("section, defaults", DEFAULTS)
def test_option_left_out_has_darknet_default(section: str, defaults: str, tmp_path: Path) -> None:
    short, long = (topology(tmp_path, NET + text).nodes for text in (section, section + defaults))
    assert [described(node) for node in short] == [described(node) for node in long]


@cases(
    "kind, key, neutral",
    [
        *(("convolutional", key, "0") for key in ("antialiasing", "binary", "dontload", "dontloadscales", "flipped")),
        ("maxpool", "antialiasing", "0"),
        ("maxpool", "maxpool_depth", "0"),
        *(("connected", key, "0") for key in ("dontload", "dontloadscales", "flipped")),
        *(("reorg", key, "0") for key in ("reverse", "flatten")),
        ("reorg3d", "reverse", "0"),
        ("region", "background", "0"),
    ],
)
def test_unsupported_option_is_accepted_only_with_its_neutral_value(
    kind: str, key: str, neutral: str, tmp_path: Path
) -> None:
    sections = {
        "net": "",
        "region": "[conv]\nfilters=25\n[region]\nanchors=1,2\n",
    }
    section = sections.get(kind, f"[{kind}]\n")
    text = f"{NET}{key}=%s\n[avg]\n" if kind == "net" else f"{NET}{section}{key}=%s\n"
    topology(tmp_path, text % neutral)
    for other in ("0", "1", "-1", "2", "1.5"):
        if other != neutral:
            with raises(UnsupportedError, subject=f"{key}={other} of [{kind}]"):
                topology(tmp_path, text % other)


@cases("channels, filters, groups, whole", [(4, 6, 2, True), (4, 6, 4, False), (4, 6, 3, False)])
def test_groups_must_divide_channels_and_filters(
    channels: int, filters: int, groups: int, whole: bool, tmp_path: Path
) -> None:
    text = f"{NET}[conv]\nfilters={channels}\n[conv]\nfilters={filters}\ngroups={groups}\n"
    if whole:
        assert str(topology(tmp_path, text).nodes[-1].shape) == "6×12×16"
    else:
        required = f"a divisor of {channels} input channels and of {filters} filters"
        with raises(InvalidValueError, what="groups of [convolutional]", got=groups, required=required):
            topology(tmp_path, text)


@cases(
    "shape, whole",
    [((4, 4, 6), True), ((4, 3, 6), False), ((4, 4, 5), False), ((6, 4, 6), False), ((2, 4, 6), False)],
)
def test_reorg_stride_must_divide_sides_and_its_square_the_channels(
    shape: tuple[int, int, int], whole: bool, tmp_path: Path
) -> None:
    channels, height, width = shape
    text = f"[net]\nchannels={channels}\nheight={height}\nwidth={width}\n[reorg]\nstride=2\n"
    if whole:
        assert str(topology(tmp_path, text).nodes[-1].shape) == "16×2×3"
    else:
        required = f"a divisor of height and width, and its square of the channels, of {channels}×{height}×{width}"
        with raises(InvalidValueError, what="stride of [reorg]", got=2, required=required):
            topology(tmp_path, text)


def test_upsample_scale_must_be_one_number(tmp_path: Path) -> None:
    op = topology(tmp_path, NET + "[upsample]\n").nodes[-1].op
    assert op == Upsample(2, 1.0)
    with raises(InvalidValueError, what="scale of [upsample]", got="1,2", required="one number", where="net.cfg:7"):
        topology(tmp_path, NET + "[upsample]\nscale=1,2\n")


def test_yolo_mask_numbers_anchors_from_0(tmp_path: Path) -> None:
    yolo = NET + "[conv]\nfilters=7\n[yolo]\nclasses=2\nnum=4\nanchors=1,2,3,4,5,6,7,8\nmask=%s\n"
    for mask in (0, 3):
        op = topology(tmp_path, yolo % mask).nodes[-1].op
        assert isinstance(op, Detection)
        assert op.anchors == ((2.0 * mask + 1, 2.0 * mask + 2),)
    for mask in (-1, 4):
        with raises(RangeError, what="mask of [yolo]", got=mask, low=0, high=3):
            topology(tmp_path, yolo % mask)


@cases("line", ["=3", "filters", "filters 3", "="])
def test_line_without_section_or_value_is_refused(line: str, tmp_path: Path) -> None:
    with raises(InvalidValueError, what="a line", got=line.replace(" ", ""), where="net.cfg:7"):
        topology(tmp_path, f"{NET}[conv]\n{line}\n")


# ---------------------------------------------------------------- limits of the whole network


def test_layers_above_the_limit_are_refused(tmp_path: Path) -> None:
    """Count the [net] section too. The error names the line of the last section."""
    assert len(topology(tmp_path, NET + CONV + "[dropout]\n" * (MAX_LAYERS - 2)).nodes) == 2
    line = f"net.cfg:{11 + MAX_LAYERS - 1}"
    with raises(RangeError, what="the number of layers", got=MAX_LAYERS, high=MAX_LAYERS - 1, where=line):
        topology(tmp_path, NET + CONV + "[dropout]\n" * (MAX_LAYERS - 1))


def test_sections_above_the_limit_are_refused(tmp_path: Path) -> None:
    """Expect the error before any section is interpreted."""
    with raises(RangeError, what="the number of layers", got=1023):
        topology(tmp_path, NET + "[dropout]\n" * 1023)
    with raises(RangeError, what="the number of sections", got=1025, high=1024, where="net.cfg:1029"):
        topology(tmp_path, NET + "[dropout]\n" * 1024)


def test_cfg_bytes_above_the_limit_are_refused(tmp_path: Path) -> None:
    text = NET + CONV
    topology(tmp_path, text + "#" * ((1 << 20) - len(text)))
    with raises(RangeError, what="the size of the cfg file in bytes", got=(1 << 20) + 1, high=1 << 20):
        topology(tmp_path, text + "#" * ((1 << 20) + 1 - len(text)))


def test_values_of_all_layers_above_the_limit_are_refused(tmp_path: Path) -> None:
    """Reach the limit of 2³¹ values by 32 maps of 2²⁶ values. The input image does not count, and a [dropout] counts
    with the size of its input."""
    text = "[net]\nwidth=8192\nheight=8192\nchannels=1\n"
    largest = "[maxpool]\n"
    assert len(topology(tmp_path, text + 32 * largest).nodes) == 33
    for more, count in ((32 * largest + "[avg]\n", (1 << 31) + 1), (31 * largest + 2 * "[dropout]\n", 33 << 26)):
        with raises(RangeError, what="the number of values of all layers", got=count, high=1 << 31, where="net.cfg:37"):
            topology(tmp_path, text + more)


def test_weights_above_the_limit_are_refused(tmp_path: Path) -> None:
    """Reach the limit of 2²⁸ weights by a dense layer of 65,535 inputs and 4,096 outputs with biases. A [dropout] adds
    no weights."""
    text = "[net]\nwidth=1\nheight=1\nchannels=65535\n[connected]\noutput=4096\nactivation=linear\n"
    assert len(topology(tmp_path, text + "[dropout]\n" * 3).nodes) == 2
    with raises(RangeError, what="the number of weights", high=1 << 28, where="net.cfg:10"):
        topology(tmp_path, text + "[dropout]\n[avg]\n[connected]\noutput=1\n")


def read_numbered_labels(network: Network, tmp_path: Path, count: int) -> tuple[str, ...]:
    names = tmp_path / "labels.names"
    names.write_text("".join(f"class {number}\n" for number in range(count)))
    return read_names(names, network)


def test_number_of_labels_must_equal_the_classes(tmp_path: Path) -> None:
    classifier = read_topology(_cfg(tmp_path, NET + CONV + POOL + "[conv]\nfilters=5\n[avg]\n[softmax]\n"))
    assert len(read_numbered_labels(classifier, tmp_path, 5)) == 5
    what = "the number of lines, one for each class of 'softmax1' (net.cfg:18),"
    with raises(MismatchError, what=what, got=8, expected=5, where="labels.names"):
        read_numbered_labels(classifier, tmp_path, 8)
    detector = read_topology(_cfg(tmp_path, NET + "[conv]\nfilters=8\n[region]\nanchors=1,2\nclasses=3\n"))
    assert len(read_numbered_labels(detector, tmp_path, 3)) == 3
    what = "the number of lines, one for each class of 'region1' (net.cfg:8),"
    with raises(MismatchError, what=what, got=8, expected=3):
        read_numbered_labels(detector, tmp_path, 8)


def _cfg(tmp_path: Path, text: str) -> Path:
    cfg = tmp_path / "net.cfg"
    cfg.write_text(text)
    return cfg


# ---------------------------------------------------------------- meaning of the options


@cases("size", range(1, 8))
def test_pad_is_half_the_kernel_rounded_down(size: int, tmp_path: Path) -> None:
    """Padding that no window reads is removed."""
    text = f"{NET}[conv]\nfilters=6\ngroups=2\nsize={size}\npad=1\n"
    node = topology(tmp_path, text).nodes[-1]
    op = next(node.op for node in topology(tmp_path, text).nodes if isinstance(node.op, Convolution))
    assert op.weights.shape == (6, 2, size, size)
    assert (op.padding.top, op.padding.left) == (size // 2, size // 2)
    assert (node.shape.height, node.shape.width) == (12 + 2 * (size // 2) - size + 1, 16 + 2 * (size // 2) - size + 1)


@cases("count", [1, 2, 3, 6])
def test_layers_and_groups_are_numbered_from_0(count: int, tmp_path: Path) -> None:
    layers = NET + CONV * (count - 1) + "[conv]\nfilters=24\n"
    with raises(RangeError, what="layers of [route]", got=count, low=-count, high=count - 1):
        topology(tmp_path, f"{layers}[route]\nlayers={count}\n")
    groups = f"{layers}[route]\nlayers=-1\ngroups={count}\ngroup_id=%s\n"
    if count > 1:
        assert str(topology(tmp_path, groups % (count - 1)).nodes[-1].shape).startswith(f"{24 // count}×")
    with raises(RangeError, what="group_id of [route]", got=count, low=0, high=count - 1):
        topology(tmp_path, groups % count)


def test_shortcut_of_two_layers_is_refused(tmp_path: Path) -> None:
    with raises(RangeError, what="the number of layers that [shortcut] adds", got=2, low=1, high=1):
        topology(tmp_path, NET + CONV * 3 + "[shortcut]\nfrom=-2,-3\n")


def test_comment_may_contain_another_comment(tmp_path: Path) -> None:
    text = "[net]\nwidth=16 # a ; b # width=3\nheight=12 ; c # d ; e\nchannels=4\n" + CONV
    assert str(topology(tmp_path, text).input_shape) == "4×12×16"


@cases("first", ["avg", "zoo"])
def test_section_before_net_is_refused(first: str, tmp_path: Path) -> None:
    got = f"[{first if first == 'zoo' else 'avgpool'}]"
    with raises(InvalidValueError, what="the first section of a cfg", got=got, required="[net]", where="net.cfg:1"):
        topology(tmp_path, f"[{first}]\n{NET}[conv]\n")


@cases("value", [0, 1])
def test_letter_box_option_sets_the_resizing_mode(value: int, tmp_path: Path) -> None:
    assert is_letterboxed(_cfg(tmp_path, NET + CONV)) is False
    assert is_letterboxed(_cfg(tmp_path, f"{NET}letter_box={value}\n{CONV}")) == bool(value)


@cases(
    "name, function",
    [
        ("elu", ("elu", (1.0,))),
        ("hardtan", ("clip", (-1.0, 1.0))),
        ("relie", ("leaky_relu", (0.01,))),
        ("selu", ("selu", (1.6732, 1.0507))),
        ("swish", ("silu", ())),
    ],
)
def test_activation_has_darknet_parameters(name: str, function: tuple[str, tuple[float, ...]], tmp_path: Path) -> None:
    """Compare with the parameters in darknet's src/activations.h."""
    node = topology(tmp_path, f"{NET}[conv]\nactivation={name}\n").nodes[-1]
    assert node.op == Activate(*function)
