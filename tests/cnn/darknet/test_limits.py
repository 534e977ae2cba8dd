"""Every option of a cfg: its default, the last number that passes, and the first that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import NetworkError
from cnn.darknet.files import is_letterboxed, read_names, read_topology
from cnn.limits import MAX_CHANNELS, MAX_KERNEL, MAX_LAYERS, MAX_SIDE
from cnn.network import Activate, Convolution, Detection, Network, Node, Upsample
from tests.support.darknet import CONV, NET, POOL, refusal, topology

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
    ("[conv]\n", "dilation", 1, MAX_KERNEL),
    ("[conv]\n", "xnor", 0, 1),
    ("[region]\nanchors=1,2\n", "num", 1, 1024),
    ("[region]\nanchors=1,2\n", "classes", 1, MAX_CHANNELS),
    ("[region]\nanchors=1,2\n", "softmax", 0, 1),
    ("[region]\nanchors=1,2\n", "coords", 4, 4),
    ("[yolo]\nanchors=1,2\n", "num", 1, 1024),
    ("[yolo]\nanchors=1,2\n", "classes", 1, MAX_CHANNELS),
]


@pytest.mark.parametrize(("section", "key", "low", "high"), RANGES)
def test_an_option_lies_within_its_range(section: str, key: str, low: int, high: int, tmp_path: Path) -> None:
    for value in (low - 1, high + 1):
        assert f" needs {key} = {low}…{high}, not '{value}'" in refusal(tmp_path, f"{NET}{section}{key}={value}\n")
    for value in (low, high):  # it may not fit its neighbours, and is then refused for that
        assert f"needs {key} =" not in told(tmp_path, f"{NET}{section}{key}={value}\n")


def told(tmp_path: Path, text: str) -> str:
    """The sentence that refuses it; "" where it is read."""
    try:
        topology(tmp_path, text)
    except NetworkError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("key", "high"), [("channels", MAX_CHANNELS), ("height", MAX_SIDE), ("width", MAX_SIDE)])
def test_a_picture_s_sides_and_channels_have_no_default(key: str, high: int, tmp_path: Path) -> None:
    sizes = {"channels": 1, "height": 1, "width": 1}

    def text(**changed: int) -> str:
        return "[net]\n" + "".join(f"{name}={value}\n" for name, value in {**sizes, **changed}.items()) + "[avg]\n"

    assert getattr(topology(tmp_path, text(**{key: high})).input_shape, key) == high
    for value in (0, high + 1):
        assert f"[net] needs {key} = 1…{high}, not '{value}'" in refusal(tmp_path, text(**{key: value}))
    del sizes[key]
    assert refusal(tmp_path, text()) == f"net.cfg:1: [net] needs the option '{key}'; add it"


DEFAULTS = [
    ("[conv]\n", "filters=1\nsize=1\nstride=1\npad=0\npadding=0\ngroups=1\nbatch_normalize=0\nactivation=logistic\n"),
    ("[conv]\nsize=3\npad=1\n", "padding=0\n"),
    ("[conv]\nsize=3\npad=1\n", "padding=7\n"),  # which counts where pad is 0
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


@pytest.mark.parametrize(("section", "defaults"), DEFAULTS)
def test_what_is_left_out_is_what_darknet_takes(section: str, defaults: str, tmp_path: Path) -> None:
    short, long = (topology(tmp_path, NET + text).nodes for text in (section, section + defaults))
    assert [described(node) for node in short] == [described(node) for node in long]


@pytest.mark.parametrize(
    ("kind", "key", "neutral"),
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
def test_an_option_that_is_not_supported_has_its_neutral_value(
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
            unsupported = f"{key}={other} in [{kind}] is not supported, only {key}={neutral}"
            assert unsupported in refusal(tmp_path, text % other)


@pytest.mark.parametrize(
    ("channels", "filters", "groups", "whole"), [(4, 6, 2, True), (4, 6, 4, False), (4, 6, 3, False)]
)
def test_groups_divide_channels_and_filters(
    channels: int, filters: int, groups: int, whole: bool, tmp_path: Path
) -> None:
    text = f"{NET}[conv]\nfilters={channels}\n[conv]\nfilters={filters}\ngroups={groups}\n"
    if whole:
        assert str(topology(tmp_path, text).nodes[-1].shape) == "6×12×16"
    else:
        sentence = f"groups={groups} must divide the {channels} input channels and the {filters} filters"
        assert sentence in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("shape", "whole"),
    [((4, 4, 6), True), ((4, 3, 6), False), ((4, 4, 5), False), ((6, 4, 6), False), ((2, 4, 6), False)],
)
def test_reorg_divides_both_sides_and_its_square_the_channels(
    shape: tuple[int, int, int], whole: bool, tmp_path: Path
) -> None:
    channels, height, width = shape
    text = f"[net]\nchannels={channels}\nheight={height}\nwidth={width}\n[reorg]\nstride=2\n"
    if whole:
        assert str(topology(tmp_path, text).nodes[-1].shape) == "16×2×3"
    else:
        assert "stride=2 of [reorg] must divide height and width, and its square the channels" in refusal(
            tmp_path, text
        )


def test_scale_is_one_number(tmp_path: Path) -> None:
    op = topology(tmp_path, NET + "[upsample]\n").nodes[-1].op
    assert op == Upsample(2, 1.0)
    sentence = "net.cfg:7: scale of [upsample] is one number, not 2"
    assert sentence in refusal(tmp_path, NET + "[upsample]\nscale=1,2\n")


def test_a_mask_names_anchors_from_0(tmp_path: Path) -> None:
    yolo = NET + "[conv]\nfilters=7\n[yolo]\nclasses=2\nnum=4\nanchors=1,2,3,4,5,6,7,8\nmask=%s\n"
    for mask in (0, 3):
        op = topology(tmp_path, yolo % mask).nodes[-1].op
        assert isinstance(op, Detection)
        assert op.anchors == ((2.0 * mask + 1, 2.0 * mask + 2),)
    for mask in (-1, 4):
        assert f"mask of [yolo] picks anchors 0…3, not {mask}" in refusal(tmp_path, yolo % mask)


@pytest.mark.parametrize("line", ["=3", "filters", "filters 3", "="])
def test_a_line_is_a_section_or_an_option_with_its_value(line: str, tmp_path: Path) -> None:
    sentence = f"net.cfg:7: a line is [section] or option=value, not '{line.replace(' ', '')}'"
    assert refusal(tmp_path, f"{NET}[conv]\n{line}\n") == sentence


# ---------------------------------------------------------------- of the whole network


def test_layers_up_to_the_most(tmp_path: Path) -> None:
    """[net] counts; the line is that of the last section."""
    assert len(topology(tmp_path, NET + CONV + "[dropout]\n" * (MAX_LAYERS - 2)).nodes) == 2
    sentence = refusal(tmp_path, NET + CONV + "[dropout]\n" * (MAX_LAYERS - 1))
    assert sentence == f"net.cfg:{11 + MAX_LAYERS - 1}: a network has at most {MAX_LAYERS - 1} layers"


def test_sections_up_to_the_most(tmp_path: Path) -> None:
    """Counted before anybody knows what they are."""
    assert "a network has at most" in refusal(tmp_path, NET + "[dropout]\n" * 1023)
    sentence = refusal(tmp_path, NET + "[dropout]\n" * 1024)
    assert sentence == "net.cfg:1029: a cfg has at most 1024 sections, this one has more"


def test_bytes_up_to_the_most(tmp_path: Path) -> None:
    text = NET + CONV
    topology(tmp_path, text + "#" * ((1 << 20) - len(text)))
    sentence = refusal(tmp_path, text + "#" * ((1 << 20) + 1 - len(text)))
    assert sentence.endswith("net.cfg must have at most 1,048,576 bytes; this is no cfg file")


def test_values_of_all_layers_up_to_the_most(tmp_path: Path) -> None:
    """2³¹: 32 maps of 2²⁶; the picture is none of them, and a [dropout] counts as what it hands on."""
    text = "[net]\nwidth=8192\nheight=8192\nchannels=1\n"
    largest = "[maxpool]\n"
    sentence = "the outputs of all layers exceed 2,147,483,648 values"
    assert len(topology(tmp_path, text + 32 * largest).nodes) == 33
    assert f"net.cfg:37: {sentence}" in refusal(tmp_path, text + 32 * largest + "[avg]\n")
    assert f"net.cfg:37: {sentence}" in refusal(tmp_path, text + 31 * largest + 2 * "[dropout]\n")


def test_weights_up_to_the_most(tmp_path: Path) -> None:
    """2²⁸: of 65,535 values to 4,096 outputs with a bias each; what computes nothing adds none."""
    text = "[net]\nwidth=1\nheight=1\nchannels=65535\n[connected]\noutput=4096\nactivation=linear\n"
    assert len(topology(tmp_path, text + "[dropout]\n" * 3).nodes) == 2
    sentence = refusal(tmp_path, text + "[dropout]\n[avg]\n[connected]\noutput=1\n")
    assert sentence == "net.cfg:10: the network exceeds 268,435,456 weights"


def labelled(network: Network, tmp_path: Path, count: int) -> tuple[str, ...]:
    names = tmp_path / "labels.names"
    names.write_text("".join(f"class {number}\n" for number in range(count)))
    return read_names(names, network)


def test_labels_are_those_of_the_heads_or_of_the_last_layer(tmp_path: Path) -> None:
    classifier = read_topology(_cfg(tmp_path, NET + CONV + POOL + "[conv]\nfilters=5\n[avg]\n[softmax]\n"))
    assert len(labelled(classifier, tmp_path, 5)) == 5
    with pytest.raises(
        NetworkError, match=r"must name the 5 classes of 'softmax1' \(net\.cfg:18\), one a line, but it has 8"
    ):
        labelled(classifier, tmp_path, 8)
    detector = read_topology(_cfg(tmp_path, NET + "[conv]\nfilters=8\n[region]\nanchors=1,2\nclasses=3\n"))
    assert len(labelled(detector, tmp_path, 3)) == 3
    with pytest.raises(
        NetworkError, match=r"must name the 3 classes of 'region1' \(net\.cfg:8\), one a line, but it has 8"
    ):
        labelled(detector, tmp_path, 8)


def _cfg(tmp_path: Path, text: str) -> Path:
    cfg = tmp_path / "net.cfg"
    cfg.write_text(text)
    return cfg


# ---------------------------------------------------------------- what layers take from options


@pytest.mark.parametrize("size", range(1, 8))
def test_pad_is_half_the_kernel_rounded_down(size: int, tmp_path: Path) -> None:
    """Rows and columns that no window reads are left out again."""
    text = f"{NET}[conv]\nfilters=6\ngroups=2\nsize={size}\npad=1\n"
    node = topology(tmp_path, text).nodes[-1]
    op = next(node.op for node in topology(tmp_path, text).nodes if isinstance(node.op, Convolution))
    assert op.weights.shape == (6, 2, size, size)
    assert (op.padding.top, op.padding.left) == (size // 2, size // 2)
    assert (node.shape.height, node.shape.width) == (12 + 2 * (size // 2) - size + 1, 16 + 2 * (size // 2) - size + 1)


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_layers_and_groups_are_numbered_from_0(count: int, tmp_path: Path) -> None:
    layers = NET + CONV * (count - 1) + "[conv]\nfilters=24\n"
    assert f"only layers 0…{count - 1} come before this one, which is layer {count}" in refusal(
        tmp_path, f"{layers}[route]\nlayers={count}\n"
    )
    groups = f"{layers}[route]\nlayers=-1\ngroups={count}\ngroup_id=%s\n"
    if count > 1:
        assert str(topology(tmp_path, groups % (count - 1)).nodes[-1].shape).startswith(f"{24 // count}×")
    assert f"needs group_id = 0…{count - 1}, not '{count}'" in refusal(tmp_path, groups % count)


def test_a_shortcut_adds_one_layer(tmp_path: Path) -> None:
    assert "[shortcut] adds one layer, not 2" in refusal(tmp_path, NET + CONV * 3 + "[shortcut]\nfrom=-2,-3\n")


def test_a_remark_may_hold_another(tmp_path: Path) -> None:
    text = "[net]\nwidth=16 # a ; b # width=3\nheight=12 ; c # d ; e\nchannels=4\n" + CONV
    assert str(topology(tmp_path, text).input_shape) == "4×12×16"


@pytest.mark.parametrize("first", ["avg", "zoo"])
def test_whatever_comes_before_the_net_section_is_told(first: str, tmp_path: Path) -> None:
    told_of = f"net.cfg:1: a cfg starts with [net], but [{first if first == 'zoo' else 'avgpool'}] came"
    assert refusal(tmp_path, f"[{first}]\n{NET}[conv]\n").startswith(told_of)


@pytest.mark.parametrize("value", [0, 1])
def test_a_net_says_whether_its_pictures_keep_their_sides_ratio(value: int, tmp_path: Path) -> None:
    assert is_letterboxed(_cfg(tmp_path, NET + CONV)) is False
    assert is_letterboxed(_cfg(tmp_path, f"{NET}letter_box={value}\n{CONV}")) == bool(value)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("elu", ("elu", (1.0,))),
        ("hardtan", ("clip", (-1.0, 1.0))),
        ("relie", ("leaky_relu", (0.01,))),
        ("selu", ("selu", (1.6732, 1.0507))),
        ("swish", ("silu", ())),
    ],
)
def test_functions_have_darknet_s_parameters(
    name: str, function: tuple[str, tuple[float, ...]], tmp_path: Path
) -> None:
    """src/activations.h."""
    node = topology(tmp_path, f"{NET}[conv]\nactivation={name}\n").nodes[-1]
    assert node.op == Activate(*function)
