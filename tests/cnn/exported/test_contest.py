"""Tests of the files of UltraNet's own exporter: config.json with numbered arrays, and param.h with config.h."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boards.errors import (
    ChoiceError,
    ConflictError,
    DamagedFileError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    ShapeError,
    UnknownKeyError,
    UnsupportedError,
)
from cnn.exported.contest.files import is_contest, translated
from cnn.exported.network import Exported, make_exported, read_exported
from cnn.exported.seed import seeded_arrays
from cnn.ops import QConvolution
from cnn.quantized import QuantizedNetwork
from cnn.requantise import MultiplyShift
from tests.support.contest import CHAIN, FORM, check_equal
from tests.support.errors import Refusal, check_refusals, raises
from tests.support.exported import convolution, parsed

CONFIG: dict[str, Any] = {
    "conv_0": {"in_shape": [3, 8, 8], "out_shape": [4, 8, 8], "k": 3, "s": 1, "p": 1},
    "pool_0": {"in_shape": [4, 8, 8], "p": 2, "out_shape": [4, 4, 4]},
    "conv_1": {"in_shape": [4, 4, 4], "out_shape": [6, 2, 2], "k": 3, "s": 2, "p": 1},
    "linear_0": {"in_len": 24, "out_len": 5},
    "linear_1": {"in_len": 5, "out_len": 3},
}


def own_format() -> Exported:
    """Return the network of ``CONFIG`` as read from this project's own format."""
    topology = parsed(*CHAIN, **FORM)
    return make_exported(topology, seeded_arrays(topology, 3))


def numbered(network: Exported, epsilon: float = 1e-5) -> dict[str, np.ndarray]:
    """Return the arrays with the exporter's names: linear layers are matrices, and an epsilon follows each variance."""
    values: list[np.ndarray] = []
    for name, array in network.arrays.items():
        values.append(array.reshape(len(array), -1) if name in ("conv2_w", "conv3_w") else array)
        values += [np.array(epsilon)] if name.endswith("_var") else []
    return {f"arr_{number}": array for number, array in enumerate(values)}


def load(path: Path, weights: Path | None) -> QuantizedNetwork:
    assert is_contest(path)
    with translated(path, weights) as (topology, arrays):
        assert arrays is not None
        return read_exported(topology, arrays).quantized


def write(folder: Path, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[Path, Path]:
    path, weights = folder / "config.json", folder / "net.npz"
    path.write_text(json.dumps(config))
    np.savez(weights, **arrays)  # type: ignore[arg-type]
    return path, weights


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3])
def test_config_json_with_numbered_arrays_gives_the_same_integers_as_our_format(epsilon: float, tmp_path: Path) -> None:
    topology = parsed(*CHAIN, **{**FORM, "batch_norm": {"added_to": "root", "epsilon": epsilon}})
    network = make_exported(topology, seeded_arrays(topology, 3))
    check_equal(load(*write(tmp_path, CONFIG, numbered(network, epsilon))), network.quantized)


def test_config_json_with_named_arrays_gives_the_same_integers_as_our_format(tmp_path: Path) -> None:
    network = own_format()
    check_equal(load(*write(tmp_path, CONFIG, dict(network.arrays))), network.quantized)


def test_config_json_with_bits_and_network_entries_is_read(tmp_path: Path) -> None:
    network = {"name": "mine", "input": {"order": "RGB"}, "fit": "letterbox", "labels": ["a"]}
    head = {"type": "one_object", "anchors": [[8, 8]]}
    config = {
        "conv_0": {**CONFIG["conv_0"], "w_bit": 2, "out_bit": 3, "l_shift": 5},
        "conv_1": {"in_shape": [4, 8, 8], "out_shape": [6, 8, 8], "k": 1, "s": 1, "p": 0, "w_bit": 8},
        "network": {**network, "head": head},
    }
    layers = [
        convolution(4, padding=1, weight_bits=2, output_bits=3, extra_bits=5),
        {"type": "convolution", "filters": 6, "kernel": 1, "weight_bits": 8},
        head,
    ]
    picture = {"channels": 3, "height": 8, "width": 8}
    topology = parsed(*layers, input=picture, batch_norm={"added_to": "root"}, labels=["a"])
    expected = make_exported(topology, seeded_arrays(topology, 3))
    read = load(*write(tmp_path, config, dict(expected.arrays)))
    check_equal(read, expected.quantized)
    assert (read.name, read.labels, read.nodes[-1].op) == ("mine", ("a",), expected.quantized.nodes[-1].op)


def test_bias_before_a_batch_norm_is_subtracted_from_the_mean() -> None:
    with_bias = own_format()
    arrays = dict(with_bias.arrays)
    arrays["bn1_mean"] = arrays["bn1_mean"] - arrays.pop("conv1_b")
    plain = [{key: value for key, value in layer.items() if key != "bias"} for layer in CHAIN]
    check_equal(make_exported(parsed(*plain, **FORM), arrays).quantized, with_bias.quantized)
    assert np.abs(with_bias.arrays["conv1_b"]).min() > 0
    node = with_bias.network.nodes[3]
    assert node.op.batch_norm.mean.tolist() == arrays["bn1_mean"].tolist()  # type: ignore[union-attr]


def test_wrong_config_json_is_refused(tmp_path: Path) -> None:
    arrays = numbered(own_format())
    first, second = CONFIG["conv_0"], CONFIG["conv_1"]
    refusals: list[Refusal] = [
        (
            {"conv_0": {**first, "out_shape": [4, 7, 8]}},
            MismatchError,
            {"where": "config.json: conv_0", "what": "the out shape", "got": [4, 7, 8], "expected": [4, 8, 8]},
        ),
        (
            {"linear_0": {"in_len": 23, "out_len": 5}},
            MismatchError,
            {"where": "config.json: linear_0", "what": "the in shape", "got": [23], "expected": [6, 2, 2]},
        ),
        (
            {"conv_1": {**second, "in_shape": [4, 4]}},
            InvalidValueError,
            {"where": "config.json: conv_1", "what": "'in_shape'", "got": [4, 4]},
        ),
        ({"conv_0": {**first, "kernel": 3}}, UnknownKeyError, {"where": "config.json: conv_0", "keys": ["kernel"]}),
        ({"upsample_0": {}}, InvalidValueError, {"where": "config.json", "got": "upsample_0"}),
        ({"linear_2": {"in_len": 3, "out_len": 3}}, MismatchError, {"got": 4, "expected": 5}),
        ({"network": {"layers": []}}, UnknownKeyError, {"where": "config.json: network", "keys": ["layers"]}),
        ({"network": {"inputs": {}}}, UnknownKeyError, {"where": "config.json", "keys": ["inputs"]}),
        ({"network": 3}, InvalidValueError, {"what": "'network'", "got": 3}),
    ]
    check_refusals(lambda changed: load(*write(tmp_path, {**CONFIG, **changed}, arrays)), refusals)


def test_wrong_numbered_arrays_are_refused(tmp_path: Path) -> None:
    arrays = numbered(own_format())
    refusals: list[Refusal] = [
        ({"arr_21": np.zeros(3, np.float32)}, ChoiceError, {"got": 2, "where": "net.npz"}),
        ({"arr_5": np.array(1e-3)}, MismatchError, {"got": 1e-5, "expected": 1e-3, "where": "net.npz"}),
        ({"arr_13": np.zeros((5, 25), np.float32)}, ShapeError, {"got": (5, 25), "required": (5, 6, 2, 2)}),
    ]
    check_refusals(lambda changed: load(*write(tmp_path, CONFIG, {**arrays, **changed})), refusals)


@pytest.mark.parametrize("file", ["net.json", "net.cfg"])
def test_files_of_other_formats_are_not_contest_files(file: str, tmp_path: Path) -> None:
    path = tmp_path / file
    path.write_text('{"format": "systolic exported network 1", "conv_0": {}}')
    assert not is_contest(path)


# --- param.h

PARAM = """// conv_0_w
//PEs = 2, SIMD = 2
//bit = 4
const ap_uint<8> conv_0_w[2][4] = {
{"0x91", "0x7f", "0x1", "0x20"},
{"0x70", "0x0", "0xf9", "0x0"}};
// inc
const ap_int<14> conv_0_inc[2][2] = {
{"0x49a", "-0x3"},
{"0x769", "0x10"}};
const ap_int<26> conv_0_bias[2][2] = {
{"0x69b728", "-0x15423c4"},
{"0x0", "0x7"}};
const ap_uint<16> linear_0_w[1][2] = {
{"0x1234", "0x7ffd"}};
"""
CONFIG_H = "".join(
    f"#define {key} {value} \n"
    for key, value in {
        **{"CONV_0_K": 1, "CONV_0_S": 1, "CONV_0_P": 0, "CONV_0_IFM_CH": 3, "CONV_0_IFM_ROW": 2, "CONV_0_IFM_COL": 3},
        **{"CONV_0_OFM_CH": 4, "CONV_0_OFM_ROW": 2, "CONV_0_OFM_COL": 3, "CONV_0_SIMD": 2, "CONV_0_PE": 2},
        **{"CONV_0_IN_BIT": 8, "CONV_0_OUT_BIT": 4, "CONV_0_W_BIT": 4, "CONV_0_INC_BIT": 14, "CONV_0_L_SHIFT": 8},
        **{"LINEAR_0_IN_LEN": 4, "LINEAR_0_OUT_LEN": 2, "LINEAR_0_SIMD": 4, "LINEAR_0_PE": 1, "LINEAR_0_IN_BIT": 4},
        **{"LINEAR_0_W_BIT": 4},
    }.items()
)


def headers(folder: Path, param: str = PARAM, config: str = CONFIG_H) -> Path:
    (folder / "config.h").write_text(config)
    (folder / "param.h").write_text(param)
    return folder / "param.h"


def test_param_h_words_are_unpacked_into_weights(tmp_path: Path) -> None:
    """Use SIMD 2, which does not divide the three weights of a filter: the last word of each filter is partly unused.

    A pool is inserted between the layers, because their shapes differ.
    """
    np.save(tmp_path / "last_bias.npy", np.array([0.5, -0.25], np.float32))
    network = load(headers(tmp_path), None)
    assert [node.name for node in network.nodes] == ["input", "conv_0", "linear_0_pool", "linear_0"]
    first, last = network.nodes[1].op, network.nodes[3].op
    assert isinstance(first, QConvolution)
    assert isinstance(last, QConvolution)
    bgr = np.array([[1, -7, -1], [0, 7, 0], [1, 0, 0], [-7, -1, 0]])
    np.testing.assert_array_equal(first.weights[:, :, 0, 0], bgr[:, ::-1])
    by = first.requantiser
    assert isinstance(by, MultiplyShift)
    assert by.multiplier.tolist() == [0x49A, 0x769, -3, 0x10]
    assert by.bias.tolist() == [0x69B728, 0, -0x15423C4, 7]
    assert by.shift.tolist() == [3 + 8 + 8] * 4
    np.testing.assert_array_equal(last.weights[:, :, 0, 0], [[4, 3, 2, 1], [-3, -1, -1, 7]])
    scale = network.nodes[3].type.scale
    assert last.requantiser.bias.tolist() == [round(0.5 / scale), round(-0.25 / scale)]  # type: ignore[union-attr]


def test_wrong_param_h_is_refused(tmp_path: Path) -> None:
    words = {"where": "param.h", "what": "a word of conv_0_w"}
    refusals: list[Refusal] = [
        (('"0x91", ', ""), MismatchError, {"where": "param.h", "got": 7, "expected": 8}),
        (('"0x7ffd"}};', '"0x7ffd"'), DamagedFileError, {"path": "param.h", "place": "linear_0_w"}),
        (("linear_0_w[1][2]", "conv_0_w[1][2]"), DamagedFileError, {"path": "param.h", "place": "conv_0_w"}),
        (("conv_0_inc[2][2]", "conv_0_gain[2][2]"), MissingValueError, {"what": "the array conv_0_inc of param.h"}),
        (("conv_0_bias[2][2]", "bias[2][2]"), MissingValueError, {"what": "the array conv_0_bias of param.h"}),
        (('"0x91"', '"0x191"'), InvalidValueError, {**words, "got": 0x191}),
        (('"0x91"', '"-0x1"'), InvalidValueError, {**words, "got": -1}),
        (('"0x91"', '"0x81"'), InvalidValueError, {"what": "a number of conv0_w", "got": -8.0}),
        (('"0x7"}};', '"0x7"}'), DamagedFileError, {"path": "param.h", "place": "conv_0_bias"}),
        (("OFM_ROW 2", "OFM_ROW 999999999"), ShapeError, {"what": "the map that linear_0 reads", "got": (4,)}),
        (("SIMD 2 ", "SIMD 3 "), ShapeError, {"what": "conv_0_w", "got": "[2][4] words of 8 bits"}),
        (("LINEAR_0_IN_BIT 4", "LINEAR_0_IN_BIT 8"), MismatchError, {"where": "config.h", "got": 8, "expected": 4}),
        (("LINEAR_0_IN_LEN 4", "LINEAR_0_IN_LEN 6"), ShapeError, {"what": "the map that linear_0 reads", "got": (6,)}),
        (("#define CONV_0_W_BIT 4", ""), MissingValueError, {"where": "config.h", "what": "CONV_0_W_BIT"}),
        (
            ("CONV_0_OFM_ROW 2", "CONV_0_OFM_ROW 3"),
            MismatchError,
            {"where": "config.h: conv_0", "what": "the out shape", "got": [4, 3, 3], "expected": [4, 2, 3]},
        ),
        (("0x15423c4", "0x20000000000000"), InvalidValueError, {"what": "the greatest |bias|", "got": 1 << 53}),
    ]

    def edited(case: tuple[str, str]) -> QuantizedNetwork:
        before, after = case
        return load(headers(tmp_path, PARAM.replace(before, after, 1), CONFIG_H.replace(before, after, 1)), None)

    check_refusals(edited, refusals)


def test_param_h_needs_its_config_and_no_weights_file(tmp_path: Path) -> None:
    path = headers(tmp_path)
    with raises(ConflictError, subjects=("--weights", "param.h"), remedy="leave out --weights"):
        load(path, tmp_path / "net.npz")
    (tmp_path / "config.h").unlink()
    with raises(FileAccessError, path=str(tmp_path / "config.h"), reason="does not exist"):
        load(path, None)


# --- multipliers and biases that a file gives


def test_given_multipliers_are_integers_with_one_shift() -> None:
    topology = parsed(convolution(2, 1, requantise="given_multiply_shift"))
    arrays: dict[str, np.ndarray] = {"conv0_w": np.ones((2, 3, 1, 1), np.float32), "conv0_inc": np.array([5, -3])}
    bias: Any = np.array([(1 << 40) + 1, -7], np.float64)
    op = make_exported(topology, {**arrays, "conv0_bias": bias}).quantized.nodes[1].op
    assert isinstance(op, QConvolution)
    by = op.requantiser
    assert isinstance(by, MultiplyShift)
    assert (by.multiplier.tolist(), by.bias.tolist(), by.shift.tolist()) == ([5, -3], [(1 << 40) + 1, -7], [19, 19])
    with raises(InvalidValueError, what="a number of conv0_bias", got=bias[0] + 0.5):
        make_exported(topology, {**arrays, "conv0_bias": bias + 0.5})
    with raises(UnsupportedError, subject="a seed for 'given_multiply_shift' of 'convolution1'"):
        seeded_arrays(topology, 1)


def test_given_multipliers_with_bias_or_sign_activation_are_refused() -> None:
    values = np.ones(2, np.float32)
    arrays = {"conv0_w": np.ones((2, 3, 1, 1), np.float32), "conv0_inc": values, "conv0_bias": values}
    refusals: list[Refusal] = [
        ({"bias": True}, ConflictError, {"where": "small.json: layer 1", "remedy": "leave 'bias' out"}),
        ({"activation": "symmetric", "output_bits": 1}, UnsupportedError, {"where": "small.json: layer 1"}),
    ]
    layer = convolution(2, 1, requantise="given_multiply_shift")
    check_refusals(lambda changed: make_exported(parsed({**layer, **changed}), arrays), refusals)
