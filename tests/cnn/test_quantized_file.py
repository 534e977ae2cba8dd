"""Tests of the file of a quantised network: it is read as written, and wrong files are refused."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    DoesNotFitError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    SystolicError,
    UnknownKeyError,
)
from cnn.integer_model import run_integer
from cnn.limits import MAX_WINDOW
from cnn.maps import Padding
from cnn.network import Network
from cnn.ops import HEADS, PAD_MODES, Pad, QConvolution
from cnn.ops.softmax import METHODS
from cnn.quantisation.calibration import CalibratedRanges
from cnn.quantisation.quantise import quantise
from cnn.quantized import QuantizedNetwork
from cnn.requantise import HALVES, UP, Requantiser, Thresholds
from cnn.stored.quantized_file import from_npz, to_npz
from cnn.stored.quantized_reader import FORMAT, HEADER
from tests.support import networks
from tests.support.binary import binary
from tests.support.errors import Refusal, check_refusals, raises
from tests.support.kinds import as_kind
from tests.support.low_bit import Layers

MAKERS = [networks.tiny_yolo, networks.branches, networks.classifier]


def quantized(network: Network, bits: int = 8) -> QuantizedNetwork:
    ones = (2.0,) * len(network.nodes)
    return quantise(network, CalibratedRanges("max", ones, ones), bits=bits)


def same(one: object, two: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return one.dtype == two.dtype and np.array_equal(one, two)
    if isinstance(one, Requantiser):
        return all(same(getattr(one, f.name), getattr(two, f.name)) for f in fields(one))
    return one == two


@pytest.mark.parametrize("make", MAKERS)
def test_network_survives_writing_and_reading(make: Callable[[], Network]) -> None:
    for bits in (4, 8, 16):
        q = quantized(make(), bits)
        back = from_npz(to_npz(q))
        assert (back.name, back.labels, len(back.nodes)) == (q.name, q.labels, len(q.nodes))
        for one, two in zip(q.nodes, back.nodes, strict=True):
            assert type(one.op) is type(two.op)
            for field in ("name", "inputs", "shape", "type", "source"):
                assert getattr(one, field) == getattr(two, field), (bits, one.name)
            assert all(same(getattr(one.op, f.name), getattr(two.op, f.name)) for f in fields(one.op)), one.name
        picture = networks.picture(q.input_shape)
        for a, b in zip(run_integer(q, picture), run_integer(back, picture), strict=True):
            assert same(a, b)


def test_dilation_survives_writing_and_reading_within_its_limits() -> None:
    network = Layers(3, 9, 8, "INT8", "INT8").spaced(4, 3, 3).network()
    op = as_kind(QConvolution, from_npz(to_npz(network)).nodes[1].op)
    assert (op.weights.shape, op.dilation) == ((4, 3, 3, 3), (3, 3))
    wide = replace(network.nodes[1], op=replace(op, dilation=(0, 3)))
    with raises(RangeError, what="the dilation", got=0, low=1, high=MAX_WINDOW, where="net.npz: 'conv1' (net:2)"):
        from_npz(to_npz(replace(network, nodes=(network.nodes[0], wide, *network.nodes[2:]))), "net.npz")


def test_pad_of_values_survives_writing_and_reading_within_its_limits() -> None:
    network = Layers(3, 5, 8, "INT8", "INT8").conv(4, 1).around("reflect", Padding(4, 0, 1, 7)).network()
    assert from_npz(to_npz(network)).nodes[2].op == network.nodes[2].op
    for op, fault in (
        (Pad(Padding(top=5), "reflect"), RangeError("the padding", 5, 0, 4, where="net.npz: 'pad2' (net:3)")),
        (Pad(Padding(left=9), "wrap"), RangeError("the padding", 9, 0, 8, where="net.npz: 'pad2' (net:3)")),
        (Pad(Padding(1), "mirror"), ChoiceError("the mode of the padding", "mirror", PAD_MODES)),
    ):
        nodes = (*network.nodes[:2], replace(network.nodes[2], op=op))
        with raises(type(fault), got=fault.got):
            from_npz(to_npz(replace(network, nodes=nodes)), "net.npz")


def test_rounding_of_halves_survives_writing_and_reading() -> None:
    """Check also that a file without the option, as older versions wrote it, rounds all halves up."""
    network = quantized(networks.branches())
    op = as_kind(QConvolution, network.nodes[1].op)
    for halves in HALVES:
        by = replace(as_kind(Requantiser, op.requantiser), halves=halves)
        nodes = (network.nodes[0], replace(network.nodes[1], op=replace(op, requantiser=by)), *network.nodes[2:])
        data = to_npz(replace(network, nodes=nodes))
        back = as_kind(QConvolution, from_npz(data).nodes[1].op)
        assert as_kind(Requantiser, back.requantiser).halves == halves
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert (b'"halves"' in archive.read(HEADER)) is (halves != UP)
    wrong = changed(lambda header: header["nodes"][1]["options"].update(halves="down"))
    with raises(ChoiceError, got="down", choices=HALVES):
        from_npz(wrong)


def test_bytes_depend_only_on_the_network() -> None:
    first, again = to_npz(quantized(networks.branches())), to_npz(quantized(networks.branches()))
    assert first == again == to_npz(from_npz(first))
    assert first != to_npz(quantized(networks.branches(seed=2)))
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_arrays_are_read_by_numpy_without_pickle() -> None:
    q = quantized(networks.tiny_yolo())
    with np.load(io.BytesIO(to_npz(q)), allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["1.weights"], as_kind(QConvolution, q.nodes[1].op).weights)


# ---------------------------------------------------------------- damaged and hostile files


def changed(
    change: Callable[[dict[str, Any]], None] | None = None, members: dict[str, bytes | None] | None = None
) -> bytes:
    """Return a good file with a changed header or replaced members. A member of None is left out."""
    data = to_npz(quantized(networks.tiny_yolo()))
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        contents: dict[str, bytes | None] = {name: old.read(name) for name in old.namelist()}
        if change is not None:
            header = json.loads(old.read("network.json"))
            change(header)
            contents["network.json"] = json.dumps(header).encode()
        contents.update(members or {})
        for name, value in contents.items():
            if value is not None:
                new.writestr(name, value)
    return buffer.getvalue()


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def node(index: int, **values: object) -> Callable[[dict[str, Any]], None]:
    return lambda header: header["nodes"][index].update(values)


def option(index: int, **values: object) -> Callable[[dict[str, Any]], None]:
    return lambda header: header["nodes"][index]["options"].update(values)


WEIGHTS = np.zeros((8, 3, 3, 3), np.int8)


def replaced(name: str, array: np.ndarray) -> bytes:
    return changed(members={name: npy(array)})


def test_wrong_header_is_refused() -> None:
    place = "f.npz: node 1"
    conv = "f.npz: 'conv1' (test:2)"
    check_refusals(
        lambda change: from_npz(changed(change), "f.npz"),
        [
            (lambda h: h.update(format="9"), InvalidValueError, {"got": "9", "required": repr(FORMAT)}),
            (lambda h: h.update(nodes={}), InvalidValueError, {"what": "'nodes'", "got": {}, "required": "a list"}),
            (lambda h: h.pop("nodes"), MissingValueError, {"what": "'nodes'", "where": "f.npz"}),
            (lambda h: h.update(nodes=[]), UnknownKeyError, {"where": "f.npz"}),
            (lambda h: h.update(nodes=[1]), InvalidValueError, {"got": 1, "required": "an object"}),
            (lambda h: h.update(nodes=[1] * 4097), RangeError, {"got": 4097, "high": 4096}),
            (lambda h: h.update(name="a\nb"), InvalidValueError, {"what": "a text", "got": "a\nb"}),
            (lambda h: h.update(name="a" * 1001), InvalidValueError, {"what": "a text"}),
            (lambda h: h.update(labels=[1]), InvalidValueError, {"what": "a label", "got": 1}),
            (node(1, op="os.system"), ChoiceError, {"what": "the operation", "got": "os.system", "where": place}),
            (node(1, inputs=[1]), RangeError, {"what": "the index of an input", "got": 1, "where": conv}),
            (node(1, inputs=[-1]), RangeError, {"what": "the index of an input", "got": -1}),
            (node(1, inputs=[]), RangeError, {"what": "the number of inputs of QConvolution", "got": 0}),
            (node(1, shape=[8, 17, 16]), MismatchError, {"got": "8×17×16", "expected": "8×17×15"}),
            (node(1, shape=[8, 17, True]), InvalidValueError, {"what": "a shape", "where": place}),
            (node(1, shape=[8, 17]), InvalidValueError, {"required": "a list of 3 whole numbers"}),
            (node(0, shape=[3, 1 << 20, 1 << 20]), RangeError, {"what": "the number of values", "high": 1 << 28}),
            (node(0, shape=[3, 0, 4]), RangeError, {"got": 0, "low": 1}),
            (node(1, datatype="FLOAT64"), InvalidValueError, {"what": "a datatype", "got": "FLOAT64", "where": place}),
            (node(1, datatype="UINT33"), RangeError, {"got": 33, "high": 32, "where": place}),
            (node(1, scale=-1), InvalidValueError, {"what": "the scale", "got": -1.0}),
            (node(1, scale="1"), InvalidValueError, {"what": "'scale'", "required": "a number", "where": place}),
            (node(2, scale=3), MismatchError, {"where": "f.npz: 'pool1' (test:3)"}),
            (node(6, op="QInput", options={}, inputs=[]), InvalidValueError, {"what": "the input picture"}),
            (option(1, stride=0), RangeError, {"what": "the stride", "got": 0}),
            (option(1, stride=1.5), InvalidValueError, {"what": "'stride'", "got": 1.5}),
            (option(1, groups=3), InvalidValueError, {"what": "the groups", "got": 3}),
            (option(1, padding={"top": 0}), MissingValueError, {"what": "'left'", "where": place}),
            (option(1, requantising="Shift"), ChoiceError, {"what": "the requantising", "got": "Shift"}),
            (option(1, weight_type="UINT8"), InvalidValueError, {"what": "the datatype of the weights"}),
            (option(2, size=0), RangeError, {"what": "the size and the stride of the pool", "got": 0}),
            (option(6, kind="rce"), ChoiceError, {"what": "the kind of a detection", "choices": tuple(HEADS)}),
            (option(6, anchors=[[1]]), InvalidValueError, {"what": "an anchor", "got": [1]}),
            (option(6, bias=[float("inf")]), InvalidValueError, {"what": "a bias"}),
            (option(6, scale_xy=0), RangeError, {"what": "'scale_xy'", "got": 0.0, "high": 10.0, "exclusive": True}),
            (option(6, scale_xy=11), RangeError, {"what": "'scale_xy'", "got": 11.0}),
            (option(6, bins=65), RangeError, {"what": "'bins'", "got": 65, "low": 1, "high": 64}),
            (option(6, softmax=1), InvalidValueError, {"what": "'softmax'", "required": "true or false"}),
            (node(2, op="Reorg", options={"stride": 2, "order": "tile"}), ChoiceError, {"got": "tile"}),
            (node(2, op="QSoftmax", options={"method": "legacy"}), ChoiceError, {"choices": METHODS}),
        ],
    )
    with raises(InvalidValueError, what="the scale"):
        from_npz(changed(node(1, scale=float("nan"))))


def test_wrong_member_is_refused() -> None:
    array, header = "1.weights.npy", "network.json"
    node_1, conv = {"where": "f.npz: node 1"}, {"where": "f.npz: 'conv1' (test:2)"}
    order = "type int8, int16 or int64 in C order"
    cases: list[Refusal] = [
        ({header: None}, MissingValueError, {"what": "the member 'network.json'", "where": "f.npz"}),
        ({header: b" " * ((1 << 24) + 1)}, RangeError, {"got": (1 << 24) + 1, "high": 1 << 24}),
        ({header: b"{"}, DamagedFileError, {"path": header, "where": "f.npz"}),
        ({header: b"[" * 100_000}, DamagedFileError, {"path": header}),
        ({header: b"[]"}, InvalidValueError, {"what": "the format of network.json", "got": []}),
        ({array: None}, MissingValueError, {"what": "the member '1.weights.npy'", **node_1}),
        ({"2.weights.npy": b""}, UnknownKeyError, {"keys": ["2.weights.npy"], "where": "f.npz"}),
        ({array: b"abc"}, DamagedFileError, {"path": array, **node_1}),
        ({array: npy(WEIGHTS).replace(b", }", b", $")}, DamagedFileError, {"path": array}),
        (
            {array: npy(WEIGHTS.astype(np.float32))},
            ShapeError,
            {"got": "type <f4 in C order", "required": order, **node_1},
        ),
        ({array: npy(np.asfortranarray(WEIGHTS))}, ShapeError, {"got": "type |i1 in Fortran order"}),
        ({array: npy(np.array([{}], object))}, ShapeError, {"got": "type |O in C order", "required": order}),
        ({array: npy(WEIGHTS)[:-1]}, ShapeError, {"got": "215 bytes", "required": "216 bytes for shape (8, 3, 3, 3)"}),
        ({array: npy(np.full_like(WEIGHTS, -128))}, RangeError, {"what": "a weight", "got": -128, "low": -127, **conv}),
        ({"1.shift.npy": npy(np.zeros(0, np.int64))}, ShapeError, {"got": (0,), "required": "no empty side"}),
        ({"1.shift.npy": npy(np.full(8, 48))}, RangeError, {"what": "shift", "got": 48, "high": 47, **conv}),
        ({"1.shift.npy": npy(np.full(8, 0))}, RangeError, {"what": "shift", "got": 0, "low": 1}),
        ({"1.multiplier.npy": npy(np.full(8, 65536))}, RangeError, {"what": "multiplier", "high": 65535}),
        ({"1.negative.npy": npy(np.full(8, -1))}, RangeError, {"what": "negative", "low": 0}),
        ({"1.bias.npy": npy(np.zeros(7, np.int64))}, ShapeError, {"what": "bias", **conv}),
        ({"1.bias.npy": npy(np.full(8, (1 << 31) - 1))}, DoesNotFitError, {"need": 33, "have": 32, **conv}),
    ]
    check_refusals(lambda members: from_npz(changed(members=members), "f.npz"), cases)


def test_error_names_the_file_and_the_remedy() -> None:
    for data in (b"not a zip", changed(node(1, inputs=[1])), changed(members={"network.json": b"{"})):
        with pytest.raises(SystolicError) as caught:
            from_npz(data, "f.npz")
        assert str(caught.value).startswith("f.npz")
        assert caught.value.remedy == "write it again"


def test_bytes_that_are_not_an_archive_are_refused() -> None:
    for data in (b"not a zip", GOOD[:-30], b""):
        with raises(DamagedFileError, path="f.npz", remedy="write it again"):
            from_npz(data, "f.npz")


def test_members_longer_than_the_file_are_refused() -> None:
    """Change the archive's directory so that a member is longer than the file."""
    data = bytearray(GOOD)
    with zipfile.ZipFile(io.BytesIO(GOOD)) as archive:
        size = next(entry.file_size for entry in archive.infolist() if entry.filename == HEADER)
    start = data.rindex(size.to_bytes(4, "little") * 2)  # both sizes of its entry in the directory
    data[start : start + 8] = (1 << 30).to_bytes(4, "little") * 2
    with raises(RangeError, what="the size of all members in bytes", high=len(GOOD), where="f.npz"):
        from_npz(bytes(data), "f.npz")


def test_archive_with_more_members_than_nodes_can_have_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(8 * 4096 + 1):
            archive.writestr(zipfile.ZipInfo(str(number)), b"")
    with raises(RangeError, what="the number of members", got=8 * 4096 + 1, high=8 * 4096):
        from_npz(buffer.getvalue())


def test_compressed_file_is_refused_before_it_is_unpacked() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0.weights.npy", bytes(1 << 24))
    with raises(InvalidValueError, what="the member '0.weights.npy'", got="compressed", where="network.npz"):
        from_npz(buffer.getvalue())


def test_member_stored_twice_is_refused() -> None:
    buffer = io.BytesIO(to_npz(quantized(networks.tiny_yolo())))
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("network.json", b"{}")
    with raises(InvalidValueError, what="the name of a member", got="network.json"):
        from_npz(buffer.getvalue())


GOOD = to_npz(quantized(networks.classifier()))


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_file_is_refused_or_gives_a_legal_network(damage: list[tuple[int, int]]) -> None:
    data = bytearray(GOOD)
    for place, value in damage:
        data[place] = value
    try:
        q = from_npz(bytes(data))
    except SystolicError:  # of any class of the project
        return
    assert to_npz(from_npz(to_npz(q))) == to_npz(q)


def test_file_cut_short_is_refused() -> None:
    for size in range(0, len(GOOD), 97):
        with raises(DamagedFileError, path="network.npz"):
            from_npz(GOOD[:size])


# ---------------------------------------------------------------- networks quantised in training


def test_thresholds_and_multiply_shift_survive_writing_and_reading() -> None:
    for seed in range(3):
        network = binary(seed)
        data = to_npz(network)
        again = from_npz(data)
        assert to_npz(again) == data
        ops = [as_kind(QConvolution, node.op) for node in again.nodes[1:]]
        assert [type(op.requantiser).__name__ for op in ops] == ["Thresholds", "Thresholds", "MultiplyShift"]
        assert as_kind(Thresholds, ops[0].requantiser).flip.dtype == np.bool_
        picture = np.random.default_rng(seed).integers(0, 256, (2, 9, 9), np.uint8)
        for one, other in zip(run_integer(network, picture), run_integer(again, picture), strict=True):
            np.testing.assert_array_equal(one, other)


def changed_binary(replaced: dict[str, bytes], header: tuple[str, str] = ("", "")) -> bytes:
    """Return the file of ``binary`` with replaced members, and with one text replaced in its header."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(to_npz(binary()))) as read, zipfile.ZipFile(buffer, "w") as archive:
        for name in read.namelist():
            data = replaced.get(name, read.read(name))
            archive.writestr(name, data.replace(header[0].encode(), header[1].encode()) if name == HEADER else data)
    return buffer.getvalue()


def test_damaged_file_of_a_trained_network_is_refused() -> None:
    steep = np.tile(np.array([3, 1]), (5, 1))
    check_refusals(
        lambda case: from_npz(changed_binary(*case), "f.npz"),
        [
            (({"1.flip.npy": npy(np.full(4, 2, np.int8))},), InvalidValueError, {"what": "flip", "got": 2}),
            (({"1.flip.npy": npy(np.zeros(5, np.int8))},), ShapeError, {"what": "flip"}),
            (({"2.thresholds.npy": npy(steep)},), InvalidValueError, {"what": "the thresholds of channel 0"}),
            (({}, ('"Thresholds"', '"Threshold"')), ChoiceError, {"what": "the requantising", "got": "Threshold"}),
            (({}, ('"MultiplyShift"', '"Requantiser"')), MissingValueError, {"what": "the member '3.negative.npy'"}),
            (
                ({"1.weights.npy": npy(np.zeros((4, 2, 3, 3), np.int8))},),
                InvalidValueError,
                {"what": "a BIPOLAR weight", "got": 0},
            ),
        ],
    )
