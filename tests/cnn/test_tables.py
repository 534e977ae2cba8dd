"""Tests of piecewise-linear tables: exact at the ends of each piece, close between them, and equal in C++."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import ConflictError, MissingValueError, RangeError, ShapeError
from cnn.activations import FUNCTIONS
from cnn.datatype import DataType, TensorType
from cnn.integer_model import run_integer
from cnn.maps import Shape
from cnn.network import Network
from cnn.ops import Activate, QActivate
from cnn.passes.transform import merge_tables
from cnn.quantisation.calibration import CalibratedRanges, calibrate
from cnn.quantisation.fidelity import table_errors
from cnn.quantisation.quantise import quantise, quantise_format
from cnn.quantized import QNode, QuantizedNetwork
from cnn.quantized_check import check_quantized
from cnn.stored.quantized_file import from_npz, to_npz
from cnn.tables import SLOPE_LIMIT, Table, all_values, looked_up, table_of_values, worst_step
from systolic.golden import checksums, golden_files, run_golden
from tests.support import networks
from tests.support.errors import check_refusals
from tests.support.kinds import as_kind
from tests.support.pairwise import pairwise

SMOOTH = ("silu", "logistic", "tanh", "mish", "gelu", "softplus", "softsign", "erf")


def exact(name: str, read: DataType, reach: float) -> npt.NDArray[np.int64]:
    """Return the function's values as integers of the same bits. The greatest |y| becomes the greatest integer."""
    x = np.arange(read.low, read.high + 1) * (reach / read.high)
    y = FUNCTIONS[name].values(x, *FUNCTIONS[name].defaults)
    steps = y * (read.high / np.abs(y).max())
    return np.asarray(np.clip(np.floor(steps + 0.5), read.low, read.high), np.int64)


def check_pieces(wanted: npt.NDArray[np.int64], read: DataType, case: str) -> None:
    """Check that pieces are exact at their ends, and increase if the function does."""
    table = table_of_values(wanted, read)
    assert table.slopes is not None
    assert len(table.values) == len(table.slopes) == 256
    assert int(np.abs(table.slopes).max()) <= SLOPE_LIMIT, case
    got, inputs = all_values(table, read), 1 << (read.bits - 8)
    np.testing.assert_array_equal(got[::inputs], wanted[::inputs], case)
    np.testing.assert_array_equal(got[inputs - 1 :: inputs], wanted[inputs - 1 :: inputs], case)
    if np.all(np.diff(wanted) >= 0):
        assert np.all(np.diff(got) >= 0), f"{case}: the pieces of an increasing function must increase"


def test_pieces_are_exact_at_their_ends() -> None:
    """Check every pair of function, width and sign."""
    rows = pairwise(name=list(FUNCTIONS), bits=range(9, 17), signed=(True, False))
    for name, bits, signed in rows:
        read = DataType(bits, signed)
        check_pieces(exact(name, read, 6.0), read, f"{name}, {read.name}")


@settings(max_examples=60)
@given(st.integers(9, 16), st.booleans(), st.integers(0, 1 << 30))
def test_pieces_of_any_values_are_exact_at_their_ends(bits: int, signed: bool, seed: int) -> None:
    read = DataType(bits, signed)
    steps = np.random.default_rng(seed).integers(-3, 4, 1 << bits)
    check_pieces(np.clip(np.cumsum(steps) + read.low // 2, read.low, read.high), read, f"{read.name}, {seed}")


def test_pieces_of_a_smooth_function_are_within_the_bound() -> None:
    """Bound the error by h² / 8 · max|f″| in steps of the output, and one step each for rounding ends and product."""
    for bits, reach, name in itertools.product((10, 12, 16), (2.0, 8.0), SMOOTH):
        read = DataType(bits, True)
        x = np.linspace(-reach, reach, 200001)
        y = FUNCTIONS[name].values(x, *FUNCTIONS[name].defaults)
        bend = np.abs(np.diff(y, 2)).max() / (x[1] - x[0]) ** 2
        step = np.abs(y).max() / read.high
        bound = (reach / 128) ** 2 / 8 * bend / step + 2
        wanted = exact(name, read, reach)
        assert worst_step(table_of_values(wanted, read), wanted, read) <= bound, (name, bits, reach)


def test_piece_equals_the_formula_in_exact_fractions() -> None:
    read = DataType(11, True)
    random = np.random.default_rng(5)
    table = Table(random.integers(-900, 900, 256), random.integers(-SLOPE_LIMIT, SLOPE_LIMIT, 256))
    got = all_values(table, read)
    assert table.slopes is not None
    for place, value in enumerate(got):
        piece, inside = divmod(place, 8)
        line = Fraction(int(table.values[piece])) + Fraction(int(table.slopes[piece]) * inside, 8)
        assert value == math.floor(line + Fraction(1, 2)), place
    few = np.array([[3, -1024], [1023, 0]], np.int16)
    np.testing.assert_array_equal(looked_up(table, few, read), got[few.astype(np.int64) + 1024])


def curved(name: str, second: str = "") -> Network:
    random = np.random.default_rng(3)
    six = Shape(8, 6, 6)
    more = [("second", Activate(second, FUNCTIONS[second].defaults), [2], six)] if second else []
    return networks.network(
        Shape(3, 6, 6),
        ("conv1", networks.convolution(random, 3, 8, activation="linear"), [0], six),
        ("curve", Activate(name, FUNCTIONS[name].defaults), [1], six),
        *more,
        ("conv2", networks.convolution(random, 8, 4, activation="linear"), [2 + len(more)], Shape(4, 6, 6)),
    )


def test_piecewise_table_of_any_width_is_near_the_function() -> None:
    network = curved("silu")
    ranges = calibrate(network, networks.pictures(network.input_shape))
    for bits in (9, 12, 15):
        quantised = quantise(network, ranges, activation_bits=bits)
        before, node = quantised.nodes[1:3]
        assert before.type.datatype.bits == bits
        table = as_kind(QActivate, node.op).table
        x = np.arange(before.type.datatype.low, before.type.datatype.high + 1) * before.type.scale
        ideal = FUNCTIONS["silu"].values(x) / node.type.scale
        high = node.type.datatype.high
        # The interpolation error is below a step here. Rounding adds half a step, and the product one step.
        assert np.abs(all_values(table, before.type.datatype) - np.clip(ideal, -high - 1, high)).max() < 2.5, bits


def test_16_bits_are_nearer_to_a_curve_than_8() -> None:
    """Expect an error of less than a fiftieth of a table with 256 values."""
    network = curved("silu")
    pictures = networks.pictures(network.input_shape)
    picture = (pictures[0] * 255).round().astype(np.uint8)
    worst = {}
    for bits in (8, 16):
        quantised = quantise_format(network, calibrate(network, pictures, bits=bits), bits)
        first, second = run_integer(quantised, picture)[1:3]
        assert first is not None
        assert second is not None
        x = first * quantised.nodes[1].type.scale
        y = second * quantised.nodes[2].type.scale
        reach = np.abs(x).max()
        worst[bits] = np.abs(y - FUNCTIONS["silu"].values(x)).max() / reach
    assert worst[16] < worst[8] / 50


@pytest.mark.engine
def test_golden_program_interpolates_equally(tmp_path: Path) -> None:
    network = curved("mish", "tanh")
    pictures = networks.pictures(network.input_shape)
    picture = (pictures[0] * 255).round().astype(np.uint8)
    for bits, type_bits in ((16, 16), (11, 11)):
        ranges = calibrate(network, pictures, bits=16)
        quantised = (
            quantise_format(network, ranges, 16) if bits == 16 else quantise(network, ranges, activation_bits=bits)
        )
        assert quantised.nodes[1].type.datatype.bits == type_bits
        folder = tmp_path / str(bits)
        folder.mkdir()
        for name, data in golden_files(quantised).items():
            (folder / name).write_bytes(data)
        assert run_golden(folder, picture) == checksums(quantised, run_integer(quantised, picture))


def test_piecewise_table_survives_writing_and_reading() -> None:
    network = curved("selu")
    quantised = quantise_format(network, calibrate(network, networks.pictures(network.input_shape), bits=16), 16)
    data = to_npz(quantised)
    read = from_npz(data)
    assert to_npz(read) == data
    table = as_kind(QActivate, read.nodes[2].op).table
    assert table.slopes is not None
    np.testing.assert_array_equal(table.slopes, as_kind(QActivate, quantised.nodes[2].op).table.slopes)


def test_piecewise_table_merges_into_a_table_but_not_into_another_piecewise_table() -> None:
    network = curved("tanh", "mish")
    ranges = calibrate(network, networks.pictures(network.input_shape))
    for bits, merged in (([8, 8, 12, 8, 8], True), ([8, 12, 12, 8, 8], False)):
        quantised = quantise(network, ranges, activation_bits=bits)
        tables = [as_kind(QActivate, node.op).table for node in quantised.nodes[2:4]]
        assert [table.slopes is not None for table in tables] == [not merged, True]
        fewer = merge_tables(quantised)
        assert len(fewer.nodes) == len(quantised.nodes) - merged
        picture = networks.pictures(network.input_shape)[0]
        pixels = (picture * 255).round().astype(np.uint8)
        np.testing.assert_array_equal(run_integer(fewer, pixels)[-1], run_integer(quantised, pixels)[-1])


def broken(table: Table, read: DataType) -> QuantizedNetwork:
    network = curved("silu")
    quantised = quantise(network, calibrate(network, networks.pictures(network.input_shape)), activation_bits=12)
    nodes: list[QNode] = [*quantised.nodes]
    nodes[1] = replace(nodes[1], type=TensorType(read, nodes[1].type.scale))
    nodes[2] = replace(nodes[2], op=QActivate(table))
    return replace(quantised, nodes=tuple(nodes))


def test_table_that_does_not_fit_its_input_is_refused() -> None:
    zeros, wide = np.zeros(256, np.int64), DataType(12, True)
    entries = "type int64 and shape (256,)"
    check_refusals(
        lambda case: check_quantized(broken(*case)),
        [
            ((Table(zeros), DataType(13, True)), MissingValueError, {"what": "the slopes of the table"}),
            ((Table(zeros), wide), ShapeError, {"what": "the table", "required": "type int64 and shape (4096,)"}),
            (
                (Table(zeros, zeros), DataType(8, True)),
                ConflictError,
                {"subjects": ("slopes of a table", "an input of INT8")},
            ),
            ((Table(zeros, zeros[1:]), wide), ShapeError, {"what": "the slopes", "required": entries}),
            ((Table(np.zeros(4096, np.int64), zeros), wide), ShapeError, {"what": "the table", "required": entries}),
            ((Table(zeros, zeros + (1 << 17)), wide), RangeError, {"what": "a slope", "got": 1 << 17, "high": 131_071}),
            ((Table(zeros, zeros - (1 << 17)), wide), RangeError, {"what": "a slope", "got": -1 << 17}),
            (
                (Table(zeros + 2000, zeros + 60), wide),
                RangeError,
                {"what": "a value of the table, INT12,", "got": 2056, "high": 2047},
            ),
            ((Table(zeros, zeros), DataType(17, True)), RangeError, {"got": 17, "high": 16}),
        ],
    )


def test_range_of_sums_read_only_by_a_function_is_limited_to_its_useful_part() -> None:
    """Use SiLU with outputs up to 4 at 8 bits: below about −6 it is within half a step of 0."""
    network = curved("silu")
    ranges = CalibratedRanges("max", (1.0, 100.0, 4.0, 1.0), (1.0, 100.0, 4.0, 1.0))
    before, node = quantise(network, ranges).nodes[1:3]
    reach = before.type.scale * 127
    assert 5.9 < reach < 6.4
    ends = FUNCTIONS["silu"].values(np.array([-reach, reach]))
    assert abs(ends[0]) <= node.type.scale / 2 * 1.01 < 4 < ends[1]
    wide = quantise(network, CalibratedRanges("max", (1.0, 3.0, 4.0, 1.0), (1.0, 3.0, 4.0, 1.0))).nodes[1]
    assert 2.97 / 127 < wide.type.scale <= 3 / 127, "the range must not exceed the observed values"
    both = networks.network(
        Shape(3, 6, 6),
        *((each.name, each.op, list(each.inputs), each.shape) for each in network.nodes[1:]),
        ("other", networks.convolution(np.random.default_rng(1), 8, 2), [1], Shape(2, 6, 6)),
    )
    read = quantise(both, CalibratedRanges("max", (1.0, 100.0, 4.0, 1.0, 1.0), (1.0, 100.0, 4.0, 1.0, 1.0))).nodes[1]
    assert read.type.scale == pytest.approx(100 / 127), "a second reader must keep the whole range"


def test_steps_off_reports_the_error_of_pieces() -> None:
    network = curved("mish")
    quantised = quantise_format(network, calibrate(network, networks.pictures(network.input_shape), bits=16), 16)
    before, node = quantised.nodes[1:3]
    read = before.type.datatype
    x = np.arange(read.low, read.high + 1) * before.type.scale
    steps = np.array([math.floor(x * math.tanh(math.log1p(math.exp(x))) / node.type.scale + 0.5) for x in x.tolist()])
    wanted = np.clip(steps, node.type.datatype.low, node.type.datatype.high)
    off = np.abs(all_values(as_kind(QActivate, node.op).table, read) - wanted).max()
    assert table_errors(network, quantised) == {"curve": off}
    assert off > 0
    exact = quantise(network, calibrate(network, networks.pictures(network.input_shape)))
    assert table_errors(network, exact) == {}
