"""Topology files: shapes that nobody typed in, and what is said of files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boards.errors import NetworkError
from cnn import zoo
from cnn.exported.topology import Kernel
from cnn.exported.topology_file import FORMAT, parse_topology, read_topology
from cnn.network import Concat, Detection, MaxPool, Padding, Reorg, Shape
from tests.support.exported import convolution, described, parsed


def test_shapes_of_every_layer() -> None:
    topology = parsed(
        convolution(8, padding=1),
        {"type": "max_pool", "size": 2},
        convolution(16, 5, stride=2, padding=2, name="deep"),
        {"type": "upsample", "stride": 2, "name": "up"},
        {"type": "reorg", "stride": 2, "from": "convolution1", "name": "blocks"},
        {"type": "concat", "from": ["up", "blocks"]},
        convolution(18, 1, groups=6),
    )
    assert [str(layer.shape) for layer in topology.layers] == [
        "8×12×20",
        "8×6×10",
        "16×3×5",
        "16×6×10",
        "32×6×10",
        "48×6×10",
        "18×6×10",
    ]
    assert [layer.inputs for layer in topology.layers] == [(0,), (1,), (2,), (3,), (1,), (4, 5), (6,)]
    assert [kernel.weights for _, kernel in topology.kernels] == [(8, 3, 3, 3), (16, 8, 5, 5), (18, 8, 1, 1)]
    assert [layer.op for layer in topology.layers[3:6]][1:] == [Reorg(2, "block"), Concat()]
    assert topology.layers[1].op == MaxPool(2, 2, Padding())
    assert (topology.name, topology.order, topology.extra_bits, topology.fit) == ("small_net", "RGB", 8, "plain")
    assert (topology.epsilon, topology.epsilon_of) == (1e-5, "variance")


def test_the_built_in_networks() -> None:
    """160×320 down to 10×20, 36 channels of a head of six anchors; the skip brings 256 channels more."""
    plain, skip = (read_topology(zoo.topology_file(name)) for name in ("ultranet", "ultranet-skip"))
    for topology in (plain, skip):
        assert topology.input == Shape(3, 160, 320)
        assert topology.layers[-1].shape == Shape(36, 10, 20)
        assert topology.layers[-1].op == Detection("one-object", ((20.0, 20.0),) * 6, 1, False)
        assert {kernel.weight_bits for _, kernel in topology.kernels} == {4}
        assert [kernel.output_bits for _, kernel in topology.kernels] == [4] * 8 + [None]
    widths = [kernel.channels for _, kernel in plain.kernels]
    assert widths == [3, 16, 32, 64, 64, 64, 64, 64, 64]
    assert [kernel.channels for _, kernel in skip.kernels] == [*widths[:7], 320, 64]


HEAD = {"type": "one_object", "anchors": [[20, 20]], "classes": 1}
WRONG: list[tuple[dict[str, Any], str]] = [
    (described(), "small.json must have 1…1000 layers, not 0"),
    (described(convolution(kernels=3)), "layer 1: 'kernels' is no key of it; did you mean 'kernel'?"),
    (described({"type": "convolutional"}), "'type' must be convolution, max_pool, average_pool, reorg,"),
    (described({"type": "convolutional"}), "not 'convolutional'; did you mean 'convolution'?"),
    (described(convolution(filters=0)), "layer 1: 'filters' must be 1…65536, not 0"),
    (described(convolution(filters=True)), "layer 1: 'filters' must be a whole number, not True"),
    (described(convolution(filters=10**30)), "layer 1: 'filters' must be 1…65536, not 10000000000"),
    (described(convolution(activation="symmetric")), "layer 1: 'output_bits' must be 1…2, not 4"),
    (described(convolution(activation="sign")), "layer 1: 'activation' must be unit, symmetric, not 'sign'"),
    (
        described(convolution(), requantise="no"),
        "'requantise' must be multiply_shift, thresholds, given_multiply_shift, given_thresholds, not 'no'",
    ),
    (described(convolution(weight_bits=9)), "layer 1: 'weight_bits' must be 1…8, not 9"),
    (described({"type": "convolution", "filters": 4}), "layer 1: 'kernel' is missing"),
    (described(convolution(kernel=15)), "layer 1: a window of 15×15 is larger than its padded input 3×12×20"),
    (described(convolution(groups=2)), "layer 1: 2 groups must divide 3 channels and 4 filters"),
    (described(convolution(65536, 255, padding=200)), "layer 1: a kernel has at most 67108864 weights"),
    (described(convolution(65536, 1, padding=255)), "layer 1: its output 65536×522×530 has more than 268435456 values"),
    (described(convolution(name="a"), convolution(name="a")), "layer 2: the name 'a' is taken already"),
    (described(convolution() | {"from": "b"}), "layer 1: 'from' must name layers before it, not 'b'; there are input"),
    (described(convolution() | {"from": []}), "'from' must name 1…64 layers, not 0"),
    (described(convolution() | {"from": ["input", "input"]}), "layer 1: a convolution reads one layer, not 2"),
    (described({"type": "reorg", "stride": 5}), "a reorg by 5 needs height % 5, width % 5 and channels % 1 to be 0"),
    (described({"type": "reorg", "stride": 2, "order": "darknet"}), "channels % 4 to be 0, not 3×12×20"),
    (
        described(convolution(), {"type": "concat", "from": ["input", "convolution1"]}),
        "a concat needs inputs of one height and width, not 3×12×20, 4×10×18",
    ),
    (
        described(convolution(), {"type": "concat", "from": ["input"] * 63 + ["convolution1"]}),
        f"not {', '.join(['3×12×20'] * 12)} and 52 more",
    ),
    (described(convolution(5), HEAD), "1 anchors × (5 + 1 classes) read 6 channels, but 5 come"),
    (described(convolution(6), {**HEAD, "anchors": [[20, 0]]}), "an anchor is a width and a height in pixels"),
    (described(convolution(6), HEAD, convolution()), "layer 3: no layer reads a detection head"),
    (described(convolution(6), {"type": "top_k", "k": 7}), "layer 2: 'k' must be 1…6, not 7"),
    (
        described(convolution(6), {"type": "top_k"}, convolution()),
        "layer 3: no layer reads a detection head, a softmax or a top_k",
    ),
    (described(convolution(6), {"type": "softmax", "method": "stable"}, convolution()), "layer 3: no layer reads"),
    (described(convolution(6), {"type": "softmax", "method": "exact"}), "'method' must be"),
    (described(convolution(), input={"height": 4, "width": 9000}), "input: 'width' must be 1…8192, not 9000"),
    (described(convolution(), input=3), "'input' must be an object, not 3"),
    (described(convolution(), batch_norm={"epsilon": 2}), "batch_norm: 'epsilon' must be 0…1, not 2"),
    (described(convolution(), fit="smoth"), "'fit' must be plain, letterbox, smooth, not 'smoth'; did you mean 'smo"),
    (described(convolution(), labels=[3]), "'labels' must be at most 10,000 texts"),
    (described(convolution(), format="2"), f"'format' must be {FORMAT!r}, not '2'"),
    (described(*[convolution(1, 1)] * 1001), "must have 1…1000 layers, not 1001"),
]


@pytest.mark.parametrize(("values", "sentence"), WRONG)
def test_a_wrong_file_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(NetworkError) as error:
        parse_topology(json.dumps(values), "small.json")
    assert str(error.value).startswith("small.json")
    assert sentence in str(error.value)


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, '{"a": NaN', "9" * 10_000])
def test_text_that_is_no_json(text: str) -> None:
    with pytest.raises(NetworkError, match=r"small\.json must be"):
        parse_topology(text, "small.json")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"no\.json cannot be read: No such file"):
        read_topology(tmp_path / "no.json")
    (tmp_path / "large.json").write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(NetworkError, match=r"large\.json"):
        read_topology(tmp_path / "large.json")


def test_kernels_are_numbered_in_the_order_of_the_file() -> None:
    topology = parsed(convolution(4, 1), {"type": "max_pool", "size": 1}, convolution(4, 1), convolution(4, 1))
    assert [kernel.number for _, kernel in topology.kernels] == [0, 1, 2]
    assert all(isinstance(kernel, Kernel) for _, kernel in topology.kernels)


def test_the_example_of_the_documentation() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs/reference/exported.md").read_text("utf-8")
    example = text.split("```json\n")[1].split("```")[0]
    topology = parse_topology(example, "example.json")
    assert topology.layers[-1].shape == Shape(36, 80, 160)
    assert (topology.order, topology.fit, topology.epsilon_of) == ("BGR", "smooth", "root")


def test_output_bits_up_to_the_most() -> None:
    """Eight of values 0…1, two of values on both sides of 0."""
    for activation, most in (("unit", 8), ("symmetric", 2)):
        for bits in (1, most):
            (layer,) = parsed(convolution(output_bits=bits, activation=activation)).layers
            assert isinstance(layer.op, Kernel)
            assert layer.op.output_bits == bits
        for bits in (0, most + 1):
            with pytest.raises(NetworkError, match=rf"output_bits.* 1…{most}"):
                parsed(convolution(output_bits=bits, activation=activation))


def test_of_several_unknown_keys_the_first_is_told() -> None:
    with pytest.raises(NetworkError, match="'alpha' is no key of it"):
        parsed(convolution(zeta=1, alpha=2, omega=3))


def test_the_last_six_names_that_there_are_are_told() -> None:
    layers = [convolution(name=f"c{number}", padding=1) for number in range(8)]
    with pytest.raises(NetworkError) as caught:
        parsed(*layers, {**convolution(name="last"), "from": "none"})
    assert str(caught.value).endswith("not 'none'; there are c2, c3, c4, c5, c6, c7")
