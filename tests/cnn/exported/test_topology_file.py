"""Tests of topology files: the shapes that are worked out, and the errors of wrong files."""

from __future__ import annotations

import json
from pathlib import Path

from boards.errors import (
    ChoiceError,
    ConflictError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    UnknownKeyError,
    UnsupportedError,
)
from cnn import zoo
from cnn.exported.layer_kinds import REQUANTISERS
from cnn.exported.topology import Kernel
from cnn.exported.topology_file import parse_topology, read_topology
from cnn.maps import Padding, Shape
from cnn.ops import Concat, MaxPool, OneObject, Reorg
from tests.support.errors import Refusal, check_refusals, raises
from tests.support.exported import convolution, described, parsed


def test_shape_of_every_layer_is_worked_out() -> None:
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


def test_built_in_networks_have_their_published_shapes() -> None:
    """Expect a map of 10×20 from an input of 160×320, with 36 channels for six anchors.

    The skip adds 256 input channels to the second-last convolution.
    """
    plain, skip = (read_topology(zoo.topology_file(name)) for name in ("ultranet", "ultranet-skip"))
    for topology in (plain, skip):
        assert topology.input == Shape(3, 160, 320)
        assert topology.layers[-1].shape == Shape(36, 10, 20)
        assert topology.layers[-1].op == OneObject(((20.0, 20.0),) * 6, 1, False)
        assert {kernel.weight_bits for _, kernel in topology.kernels} == {4}
        assert [kernel.output_bits for _, kernel in topology.kernels] == [4] * 8 + [None]
    widths = [kernel.channels for _, kernel in plain.kernels]
    assert widths == [3, 16, 32, 64, 64, 64, 64, 64, 64]
    assert [kernel.channels for _, kernel in skip.kernels] == [*widths[:7], 320, 64]


HEAD = {"type": "one_object", "anchors": [[20, 20]], "classes": 1}
LAYER = "small.json: layer 1"
AFTER_A_LAST_LAYER = {"where": "small.json: layer 3", "reason": "these layers must be the last of the network"}

WRONG: list[Refusal] = [
    (described(), RangeError, {"where": "small.json", "what": "the number of layers", "got": 0, "high": 1000}),
    (described(*[convolution(1, 1)] * 1001), RangeError, {"what": "the number of layers", "got": 1001}),
    (described(convolution(kernels=3)), UnknownKeyError, {"where": LAYER, "keys": ["kernels"]}),
    (described(convolution(zeta=1, alpha=2)), UnknownKeyError, {"where": LAYER, "keys": ["alpha", "zeta"]}),
    (described({"type": "convolutional"}), ChoiceError, {"where": LAYER, "what": "'type'", "got": "convolutional"}),
    (described(convolution(filters=0)), RangeError, {"where": LAYER, "what": "'filters'", "low": 1, "high": 65536}),
    (described(convolution(filters=True)), InvalidValueError, {"where": LAYER, "what": "'filters'", "got": True}),
    (described(convolution(filters=10**30)), RangeError, {"where": LAYER, "what": "'filters'", "got": 10**30}),
    (described(convolution(activation="symmetric")), RangeError, {"what": "'output_bits'", "got": 4, "high": 2}),
    (described(convolution(activation="sign")), ChoiceError, {"got": "sign", "choices": ("unit", "symmetric")}),
    (described(convolution(), requantise="no"), ChoiceError, {"what": "'requantise'", "choices": REQUANTISERS}),
    (described(convolution(weight_bits=9)), RangeError, {"what": "'weight_bits'", "got": 9, "low": 1, "high": 8}),
    (described({"type": "convolution", "filters": 4}), MissingValueError, {"where": LAYER, "what": "'kernel'"}),
    (described(convolution(kernel=15)), InvalidValueError, {"what": "the window", "got": "15×15"}),
    (described(convolution(groups=2)), InvalidValueError, {"where": LAYER, "what": "'groups'", "got": 2}),
    (described(convolution(65536, 255, padding=200)), RangeError, {"what": "the number of weights", "high": 1 << 26}),
    (described(convolution(65536, 1, padding=255)), RangeError, {"got": 65536 * 522 * 530, "high": 1 << 28}),
    (described(convolution(weight_bits=1, integers=True)), ConflictError, {"where": LAYER}),
    (described(convolution(name="a"), convolution(name="a")), InvalidValueError, {"what": "the name", "got": "a"}),
    (described(convolution() | {"from": "b"}), ChoiceError, {"where": LAYER, "got": "b", "choices": ["input"]}),
    (described(convolution() | {"from": []}), RangeError, {"what": "the number of layers of 'from'", "high": 64}),
    (
        described(convolution() | {"from": ["input", "input"]}),
        RangeError,
        {"where": LAYER, "what": "the number of layers that a convolution reads", "got": 2, "high": 1},
    ),
    (described({"type": "reorg", "stride": 5}), InvalidValueError, {"what": "'stride'", "got": 5}),
    (
        described({"type": "reorg", "stride": 2, "order": "darknet"}),
        InvalidValueError,
        {"what": "'stride'", "required": "a divisor of height and width, and its square of the channels, of 3×12×20"},
    ),
    (
        described(convolution(), {"type": "concat", "from": ["input", "convolution1"]}),
        ShapeError,
        {"what": "the inputs of a concat", "got": "3×12×20, 4×10×18"},
    ),
    (
        described(convolution(), {"type": "concat", "from": ["input"] * 63 + ["convolution1"]}),
        ShapeError,
        {"got": f"{', '.join(['3×12×20'] * 12)} and 52 more"},
    ),
    (described(convolution(5), HEAD), MismatchError, {"where": "small.json: layer 2", "got": 5, "expected": 6}),
    (described(convolution(6), {**HEAD, "anchors": []}), RangeError, {"what": "the number of anchors", "low": 1}),
    (described(convolution(6), {**HEAD, "anchors": [[20, 0]]}), InvalidValueError, {"got": [20, 0]}),
    (described(convolution(6), {"type": "top_k", "k": 7}), RangeError, {"what": "'k'", "got": 7, "high": 6}),
    (described(convolution(6), HEAD, convolution()), UnsupportedError, AFTER_A_LAST_LAYER),
    (described(convolution(6), {"type": "top_k"}, convolution()), UnsupportedError, AFTER_A_LAST_LAYER),
    (described(convolution(6), {"type": "softmax"}, convolution()), UnsupportedError, AFTER_A_LAST_LAYER),
    (described(convolution(6), {"type": "softmax", "method": "exact"}), ChoiceError, {"got": "exact"}),
    (
        described(convolution(), input={"height": 4, "width": 9000}),
        RangeError,
        {"where": "small.json: input", "what": "'width'", "got": 9000, "high": 8192},
    ),
    (described(convolution(), input=3), InvalidValueError, {"what": "'input'", "got": 3}),
    (described(convolution(), batch_norm={"epsilon": 2}), RangeError, {"where": "small.json: batch_norm", "high": 1}),
    (described(convolution(), fit="smoth"), ChoiceError, {"what": "'fit'", "got": "smoth"}),
    (described(convolution(), labels=[3]), InvalidValueError, {"what": "'labels'", "got": [3]}),
    (described(convolution(), format="2"), InvalidValueError, {"what": "'format'", "got": "2"}),
]


def test_wrong_file_is_refused() -> None:
    check_refusals(lambda values: parse_topology(json.dumps(values), "small.json"), WRONG)


def test_text_that_is_not_json_is_refused() -> None:
    texts = ("", "[", "[" * 100_000, '{"a": NaN', "9" * 10_000)
    check_refusals(
        lambda text: parse_topology(text, "small.json"),
        [(text, DamagedFileError, {"path": "small.json"}) for text in texts],
    )


def test_missing_or_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "no.json"
    with raises(FileAccessError, path=str(path), reason="cannot be read: No such file or directory"):
        read_topology(path)
    path.write_bytes(b" " * ((1 << 20) + 1))
    with raises(RangeError, where=str(path), got=(1 << 20) + 1, high=1 << 20):
        read_topology(path)


def test_kernels_are_numbered_in_file_order() -> None:
    topology = parsed(convolution(4, 1), {"type": "max_pool", "size": 1}, convolution(4, 1), convolution(4, 1))
    assert [kernel.number for _, kernel in topology.kernels] == [0, 1, 2]
    assert all(isinstance(kernel, Kernel) for _, kernel in topology.kernels)


def test_documented_example_is_read() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs/reference/exported.md").read_text("utf-8")
    example = text.split("```json\n")[1].split("```")[0]
    topology = parse_topology(example, "example.json")
    assert topology.layers[-1].shape == Shape(36, 80, 160)
    assert (topology.order, topology.fit, topology.epsilon_of) == ("BGR", "smooth", "root")


def test_output_bits_outside_the_activation_range_are_refused() -> None:
    """Expect at most 8 bits for the activation "unit" and 2 bits for "symmetric"."""
    for activation, most in (("unit", 8), ("symmetric", 2)):
        for bits in (1, most):
            (layer,) = parsed(convolution(output_bits=bits, activation=activation)).layers
            assert isinstance(layer.op, Kernel)
            assert layer.op.output_bits == bits
        for bits in (0, most + 1):
            with raises(RangeError, what="'output_bits'", got=bits, low=1, high=most):
                parsed(convolution(output_bits=bits, activation=activation))


def test_unknown_layer_error_lists_earlier_names_in_reverse() -> None:
    layers = [convolution(name=f"c{number}", padding=1) for number in range(3)]
    with raises(ChoiceError, got="none", choices=["c2", "c1", "c0", "input"]):
        parsed(*layers, {**convolution(name="last"), "from": "none"})
