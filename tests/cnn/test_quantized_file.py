from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import NetworkError
from cnn.integer_model import run_integer
from cnn.network import Network
from cnn.quantisation.calibration import Ranges
from cnn.quantisation.quantise import quantise
from cnn.quantized import QConvolution, QuantizedNetwork, Requantiser, Thresholds
from cnn.stored.quantized_file import from_npz, to_npz
from cnn.stored.quantized_reader import FORMAT, HEADER
from tests.support import networks
from tests.support.binary import binary
from tests.support.kinds import as_kind

MAKERS = [networks.tiny_yolo, networks.branches, networks.classifier]


def quantized(network: Network, bits: int = 8) -> QuantizedNetwork:
    ones = (2.0,) * len(network.nodes)
    return quantise(network, Ranges("max", ones, ones), bits=bits)


def same(one: object, two: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return one.dtype == two.dtype and np.array_equal(one, two)
    if isinstance(one, Requantiser):
        return all(same(getattr(one, f.name), getattr(two, f.name)) for f in fields(one))
    return one == two


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_what_is_written_is_read_again(make: Callable[[], Network], bits: int) -> None:
    q = quantized(make(), bits)
    back = from_npz(to_npz(q))
    assert (back.name, back.labels, len(back.nodes)) == (q.name, q.labels, len(q.nodes))
    for one, two in zip(q.nodes, back.nodes, strict=True):
        assert type(one.op) is type(two.op)
        assert (one.name, one.inputs, one.shape, one.type, one.source) == (
            two.name,
            two.inputs,
            two.shape,
            two.type,
            two.source,
        )
        assert all(same(getattr(one.op, f.name), getattr(two.op, f.name)) for f in fields(one.op))
    picture = networks.picture(q.input_shape)
    for a, b in zip(run_integer(q, picture), run_integer(back, picture), strict=True):
        assert same(a, b)


def test_the_bytes_depend_on_the_network_alone() -> None:
    first, again = to_npz(quantized(networks.branches())), to_npz(quantized(networks.branches()))
    assert first == again == to_npz(from_npz(first))
    assert first != to_npz(quantized(networks.branches(seed=2)))
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_numpy_reads_the_arrays_without_pickle() -> None:
    q = quantized(networks.tiny_yolo())
    with np.load(io.BytesIO(to_npz(q)), allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["1.weights"], as_kind(QConvolution, q.nodes[1].op).weights)


# ---------------------------------------------------------------- files that are not to be trusted


def changed(
    change: Callable[[dict[str, Any]], None] | None = None, members: dict[str, bytes | None] | None = None
) -> bytes:
    """A good file with its header changed or members replaced (None: left out)."""
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


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"not a zip", "f.npz must be an .npz file, but is damaged: File is not a zip file; write it again"),
        (changed(members={"network.json": None}), "a member 'network.json' of at most 16777216 bytes is missing"),
        (changed(members={"network.json": b"{"}), "network.json is not JSON text"),
        (changed(members={"network.json": b"[" * 100000}), "network.json is not JSON text"),
        (changed(lambda h: h.update(format="9")), f"network.json must have the format {FORMAT!r}"),
        (changed(lambda h: h.update(nodes={})), "'nodes' must be of type list, not {}"),
        (changed(lambda h: h.update(nodes=[])), "it has members that no node reads: ['1.bias.npy', "),
        (changed(lambda h: h.update(name="a\nb")), "a text must be printable and at most 1000 long"),
        (changed(lambda h: h.update(labels=[1])), "a label must be a text, not 1"),
        (changed(node(1, op="os.system")), "node 1 is a 'os.system', which is none of QInput, QConvolution"),
        (changed(node(1, inputs=[1])), "'conv1' (test:2): inputs must come before it, not (1,)"),
        (changed(node(1, inputs=[-1])), "inputs must come before it, not (-1,)"),
        (changed(node(1, inputs=[])), "QConvolution has one input(s), not 0"),
        (changed(node(1, shape=[8, 17, 16])), "its inputs give the shape 8×17×15, not 8×17×16"),
        (changed(node(1, shape=[8, 17, True])), "a shape must be a list of whole numbers"),
        (changed(node(0, shape=[3, 1 << 20, 1 << 20])), "a tensor has at most 268435456 values"),
        (changed(node(0, shape=[3, 0, 4])), "a shape is at least 1×1×1, not 3×0×4"),
        (changed(node(1, datatype="FLOAT64")), "UINT1…UINT32, BIPOLAR or TERNARY, not 'FLOAT64'"),
        (changed(node(1, scale=float("nan"))), "a scale is finite and above 0, not nan"),
        (changed(node(1, scale=-1)), "a scale is finite and above 0, not -1.0"),
        (changed(node(2, scale=3)), "it passes 'conv1' on as TensorType"),
        (changed(node(6, op="QInput", options={}, inputs=[])), "only node 0 is the input picture"),
        (changed(option(1, stride=0)), "weights are not empty and the stride is at least 1"),
        (changed(option(1, groups=3)), "do not fit 3×17×15 and 8 filters"),
        (changed(option(1, weight_type="UINT8")), "weights must be a signed UINT8 in its carrier, not int8"),
        (changed(option(2, size=0)), "size and stride of a pool are at least 1"),
        (
            changed(option(6, kind="rce")),
            "a detection is one of cells, region, yolo, gaussian-yolo, scaled-yolo, one-object, anchor-free, ssd, ",
        ),
        (changed(option(6, anchors=[[1]])), "an anchor must be a width and a height, not [1]"),
        (changed(members={"1.weights.npy": None}), "the member '1.weights.npy' is missing"),
        (changed(members={"2.weights.npy": b""}), "it has members that no node reads: ['2.weights.npy']"),
        (changed(members={"1.weights.npy": b"abc"}), "'1.weights.npy' is not an array"),
        (
            changed(members={"1.weights.npy": npy(np.zeros((8, 3, 3, 3), np.int8)).replace(b", }", b", $")}),
            "'1.weights.npy' is not an array",
        ),
        (
            changed(members={"1.weights.npy": npy(np.zeros((8, 3, 3, 3), np.float32))}),
            "'1.weights.npy' must be int8, int16 or int64 in C order, not <f4",
        ),
        (
            changed(members={"1.weights.npy": npy(np.array([{}], object))}),
            "'1.weights.npy' must be int8, int16 or int64 in C order, not |O",
        ),
        (
            changed(members={"1.weights.npy": npy(np.zeros((8, 3, 3, 3), np.int8))[:-1]}),
            "'1.weights.npy' of shape (8, 3, 3, 3) must have 216 bytes, not 215",
        ),
        (
            changed(members={"1.weights.npy": npy(np.full((8, 3, 3, 3), -128, np.int8))}),
            "weights must be narrow, -127…127, not -128…-128",
        ),
        (
            changed(members={"1.shift.npy": npy(np.zeros(0, np.int64))}),
            "'1.shift.npy' must have no empty side, not (0,)",
        ),
        (changed(members={"1.shift.npy": npy(np.full(8, 48))}), "shift must be 1…47, not 48…48"),
        (changed(members={"1.shift.npy": npy(np.full(8, 0))}), "shift must be 1…47, not 0…0"),
        (changed(members={"1.multiplier.npy": npy(np.full(8, 65536))}), "multiplier must be 1…65535"),
        (changed(members={"1.negative.npy": npy(np.full(8, -1))}), "negative must be 0…65535, not -1…-1"),
        (changed(members={"1.bias.npy": npy(np.zeros(7, np.int64))}), "bias must be int64 [8], not int64 (7,)"),
        (
            changed(members={"1.bias.npy": npy(np.full(8, (1 << 31) - 1))}),
            "acc + bias must fit 32 bits, but Σ|w|·max|a| + |bias| =",
        ),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(NetworkError) as error:
        from_npz(data, "f.npz")
    assert sentence in str(error.value)
    assert str(error.value).startswith("f.npz must ")
    assert str(error.value).endswith("; write it again")


def test_a_compressed_file_is_refused_before_it_is_unpacked() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0.weights.npy", bytes(1 << 24))
    with pytest.raises(NetworkError, match=r"members are stored, but '0\.weights\.npy' is compressed"):
        from_npz(buffer.getvalue())


def test_a_member_that_is_there_twice_is_refused() -> None:
    buffer = io.BytesIO(to_npz(quantized(networks.tiny_yolo())))
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("network.json", b"{}")
    with pytest.raises(NetworkError, match="a member is there twice"):
        from_npz(buffer.getvalue())


GOOD = to_npz(quantized(networks.classifier()))


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_any_damage_is_a_network_error_or_a_legal_network(damage: list[tuple[int, int]]) -> None:
    data = bytearray(GOOD)
    for place, value in damage:
        data[place] = value
    try:
        q = from_npz(bytes(data))
    except NetworkError:
        return
    assert to_npz(from_npz(to_npz(q))) == to_npz(q)


@settings(max_examples=50)
@given(st.integers(0, len(GOOD) - 1))
def test_a_file_cut_short_is_a_network_error(size: int) -> None:
    with pytest.raises(NetworkError):
        from_npz(GOOD[:size])


# ---------------------------------------------------------------- quantised by training


@pytest.mark.parametrize("seed", range(3))
def test_thresholds_and_multiply_shift_survive(seed: int) -> None:
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
    """The file of ``binary`` with other members, and one text for another in its header."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(to_npz(binary()))) as read, zipfile.ZipFile(buffer, "w") as archive:
        for name in read.namelist():
            data = replaced.get(name, read.read(name))
            archive.writestr(name, data.replace(header[0].encode(), header[1].encode()) if name == HEADER else data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (changed_binary({"1.flip.npy": npy(np.full(4, 2, np.int8))}), "flip must be 0 or 1 in every channel"),
        (changed_binary({"1.flip.npy": npy(np.zeros(5, np.int8))}), "flip must be bool [4], not bool [5]"),
        (
            changed_binary({"2.thresholds.npy": npy(np.tile(np.array([3, 1]), (5, 1)))}),
            "thresholds must ascend in every channel",
        ),
        (
            changed_binary({}, ('"Thresholds"', '"Threshold"')),
            "a requantising is one of Requantiser, MultiplyShift, Thresholds, not 'Threshold'",
        ),
        (changed_binary({}, ('"MultiplyShift"', '"Requantiser"')), "the member '3.negative.npy' is missing"),
        (changed_binary({"1.weights.npy": npy(np.zeros((4, 2, 3, 3), np.int8))}), "BIPOLAR weights are −1 or +1"),
    ],
)
def test_a_damaged_file_of_a_trained_network_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(NetworkError) as error:
        from_npz(data, "f.npz")
    assert sentence in str(error.value)
