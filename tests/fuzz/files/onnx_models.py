"""Fuzzing of ONNX files: of their bytes, and of the content of their protocol buffers."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx

from boards.errors import SystolicError
from cnn import zoo
from cnn.darknet.files import read_darknet
from cnn.onnx.network import BUILDERS, read_model, read_onnx
from cnn.onnx.quantised.export import DIALECTS, to_onnx
from cnn.onnx.quantised.values import DOMAINS
from cnn.ops import AnchorFree, Region, Segmentation, Ssd, Yolo
from cnn.quantized import QNode, QuantizedNetwork
from cnn.stored.quantized_file import from_npz, to_npz
from tests.fuzz.files import corpus
from tests.fuzz.files.hunt import hunt
from tests.fuzz.files.mutators import BYTES
from tests.fuzz.files.networks import LOWERED, each, member, small_integers
from tests.fuzz.files.structured import archive
from tests.fuzz.files.target import Target
from tests.support.onnx.annotated import GRAPHS as ANNOTATED
from tests.support.onnx.integers import INTEGERS
from tests.support.onnx.networks import GRAPHS, JOINS
from tests.support.onnx.operators import MEANT, REFUSED
from tests.support.onnx.trained import few_bits, of_one_bit, streamlined
from tests.support.onnx.writer import Writer, written

SIDES = (0, 1, 2, 3, 5, 7, 16, 255, 256, 8192, 8193, 1 << 20, 1 << 31, 1 << 62, -1, -2, -(1 << 63))
"""Integers that replace a dimension or an integer attribute."""

ENDS = (*SIDES, 2.0**40, 1e-45, 3e38, float("inf"), float("nan"))
"""Numbers that replace values of a tensor."""


def seeds() -> tuple[bytes, ...]:
    """Return models with every form of every operator and with joins, and the files that once showed a defect."""
    models = [_quantised()]
    for opset, graph in (*MEANT.values(), *(form for form, _ in REFUSED)):
        writer = Writer(opset)
        models.append(writer.model([graph(writer)], (1, 3, 11, 14)))
    for graph in GRAPHS:
        writer = Writer()
        models.append(writer.model([graph(writer)], (1, 3, 14, 18)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "joins.cfg"
        path.write_text(JOINS)
        models.append(written(read_darknet(path, None, weight_source=zoo.seeded(4))))
    return (*(model.SerializeToString() for model in models), *corpus.files("onnx"))


WORDS = (
    *("", "ROUND", "FLOOR", "half_even", "x", "NCHW", "NHWC", "UINT2", "INT8", "UINT40", "BIPOLAR", "TERNARY", "INT-1"),
    *("UINT" + "9" * 5000, "n" * 5000, "\x00"),
)
"""Texts that replace a text attribute."""

DATATYPES = (
    *(
        "INT2",
        "INT4",
        "INT8",
        "INT32",
        "INT64",
        "UINT1",
        "UINT8",
        "UINT16",
        "UINT64",
        "BINARY",
        "FIXED<8,4>",
        "FLOAT32",
    ),
    *("FIXED<8,4>", "FIXED<64,-99>", "FIXED<64,63>", "FIXED<1,-99>", "SCALEDINT<8>", *WORDS),
)
"""Datatypes that replace the datatype of an annotation."""


def quantised_seeds() -> tuple[bytes, ...]:
    """Return quantised models in every form that is read, and the files that once showed a defect.

    The forms are QuantizeLinear, operators on integers, Quant, MultiThreshold, annotations, and both exported dialects.
    """
    models = [_quantised(), few_bits(), of_one_bit(), streamlined(), *(make() for make in INTEGERS.values())]
    models += [make() for make, _, _ in ANNOTATED.values()]
    written_here = [
        to_onnx(small_integers(form), dialect) for form in ("multiply_shift", "thresholds") for dialect in DIALECTS
    ]
    return (*(model.SerializeToString() for model in models), *written_here, *corpus.files("onnx-quantised"))


def _quantised() -> Any:
    """Return a model with a quantised input, quantised weights and a quantised convolution output."""
    writer = Writer()
    source = "picture"
    weights = [writer.constant(np.ones((4, 3, 3, 3)), np.int8), writer.constant(0.01), writer.constant(0, np.int8)]
    for scale, zero in ((1 / 255, -128), (0.1, 3)):
        grid = [writer.constant(scale), writer.constant(zero, np.int8)]
        source = writer.put("DequantizeLinear", [writer.put("QuantizeLinear", [source, *grid]), *grid])
        if zero < 0:
            source = writer.put("Conv", [source, writer.put("DequantizeLinear", weights)])
    return writer.model([source], (1, 3, 11, 14))


def meaning(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Change one part of the model. The file stays a valid protocol buffer."""
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception:
        return data
    if not model.graph.node:
        return data
    try:
        random.choice((_kind, _edge, _attribute, _tensor, _input, _node, _annotation))(model, random)
    except UnicodeDecodeError:  # an earlier mutator spoilt the bytes of a name
        return data
    changed: bytes = model.SerializeToString()
    return changed


def _kind(model: Any, random: Random) -> None:
    node = random.choice(model.graph.node)
    kind = random.choice([*BUILDERS, "Gather", "Shape", "Constant", "If", "Loop", f"{random.choice(DOMAINS)}.Trunc"])
    domain, _, node.op_type = kind.rpartition(".")
    node.domain = domain


def _edge(model: Any, random: Random) -> None:
    names = [name for node in model.graph.node for name in (*node.input, *node.output)]
    node = random.choice(model.graph.node)
    ends = random.choice((node.input, node.output))
    if ends:
        ends[random.randrange(len(ends))] = random.choice([*names, "", "nobody"])


def _attribute(model: Any, random: Random) -> None:
    attributes = [attribute for node in model.graph.node for attribute in node.attribute]
    if not attributes:
        return
    attribute = random.choice(attributes)
    if attribute.ints:
        attribute.ints[random.randrange(len(attribute.ints))] = random.choice(SIDES)
        if random.random() < 0.2:
            attribute.ints.append(random.choice(SIDES))
    elif random.random() < 0.2:
        attribute.type = random.randrange(15)
    if attribute.s:
        attribute.s = random.choice(WORDS).encode()
    attribute.i = random.choice(SIDES)
    attribute.f = random.choice((0.0, -1.0, float("nan"), float("inf"), 3e38, 1e-45))


def _tensor(model: Any, random: Random) -> None:
    if not model.graph.initializer:
        return
    tensor = random.choice(model.graph.initializer)
    change = random.randrange(7)
    if change == 0 and tensor.dims:
        tensor.dims[random.randrange(len(tensor.dims))] = random.choice(SIDES)
    elif change == 1:
        tensor.dims.append(random.choice(SIDES))
    elif change == 2:
        tensor.data_type = random.randrange(30)
    elif change == 3:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", random.choice(("a", "..", "/etc/passwd", ""))), ("offset", "9" * 30)):
            tensor.external_data.add(key=key, value=value)
    elif change > 4:
        _numbers(tensor, random)
    else:
        tensor.raw_data = bytes(random.randrange(256) for _ in range(len(tensor.raw_data)))


def _numbers(tensor: Any, random: Random) -> None:
    """Replace one or all of a tensor's values by an extreme number."""
    try:
        array = onnx.numpy_helper.to_array(tensor).copy()
    except Exception:  # an earlier mutator spoilt the tensor
        return
    if array.dtype.kind not in "if" or not array.size:
        return
    places = slice(None) if random.random() < 0.5 else random.randrange(array.size)
    with np.errstate(all="ignore"):
        array.reshape(-1)[places] = np.array(random.choice(ENDS), np.float64).astype(array.dtype)
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))


def _input(model: Any, random: Random) -> None:
    dimensions = model.graph.input[0].type.tensor_type.shape.dim if model.graph.input else []
    if dimensions:
        random.choice(dimensions).dim_value = random.choice(SIDES)
    if random.random() < 0.3:
        model.opset_import.add(version=random.choice((1, 7, 9, 11, 13, 18, 21, 99)))


def _annotation(model: Any, random: Random) -> None:
    """Change the datatype of a tensor's annotation, or add an annotation."""
    entries = model.graph.quantization_annotation
    names = [name for node in model.graph.node for name in (*node.input, *node.output)]
    pairs = [pair for entry in entries for pair in entry.quant_parameter_tensor_names]
    if pairs and random.random() < 0.5:
        random.choice(pairs).value = random.choice(DATATYPES)
    else:
        pair = entries.add(tensor_name=random.choice(names)).quant_parameter_tensor_names.add()
        pair.key, pair.value = random.choice(("finn_datatype",) * 5 + ("SCALE_TENSOR", "")), random.choice(DATATYPES)


def _node(model: Any, random: Random) -> None:
    nodes = model.graph.node
    if random.random() < 0.5:
        del nodes[random.randrange(len(nodes))]
    else:
        nodes.append(nodes[random.randrange(len(nodes))])


def _read(path: Path) -> None:
    """Read a file. If it is refused and the refusal suggests a --cut, read it again with this cut, as a user would."""
    try:
        read_onnx(path)
    except SystolicError as error:
        offered = re.search(r"--cut ([^\s,;]+)", str(error))
        if offered is None or offered[1] == "TENSOR":
            raise
        read_onnx(path, cuts=(offered[1],))


def later_seeds() -> tuple[bytes, ...]:
    """Return stored quantised networks with tables, sums, zero points and heads of every kind."""
    models = [few_bits(), streamlined(), *(INTEGERS[name]() for name in ("added", "joined", "gated", "average"))]
    networks = [read_model(model, "net.onnx", "net").quantized for model in models]
    return tuple(to_npz(_with_heads(network)) for network in networks if network is not None)


def _with_heads(network: QuantizedNetwork) -> QuantizedNetwork:
    """Return the network with a head of every kind that can read the last map's number of channels."""
    last = len(network.nodes) - 1
    channels = network.nodes[last].shape.channels
    heads = (
        Segmentation((), channels, True),
        AnchorFree((), max(1, channels - 4), True, bins=1, bias=(0.5,) * channels),
        *(kind(((2.0, 3.0),), channels - 5, True, scale_xy=1.1) for kind in (Region, Yolo, Ssd)),
    )
    nodes = list(network.nodes)
    for head in heads:
        if head.channels == channels and head.classes > 0:
            source = network.nodes[last]
            nodes.append(QNode(f"head{len(nodes)}", head, (last,), source.shape, source.type, "by hand"))
    return replace(network, nodes=tuple(nodes))


def read_npz(path: Path) -> None:
    """Read a quantised network as from the folder of a design, and export it in every dialect."""
    network = from_npz(path.read_bytes(), path.name)
    for dialect in DIALECTS:
        to_onnx(network, dialect)


def _read_quantised(path: Path) -> None:
    """Read a quantised file, export it in every dialect, and lower it for both styles."""
    read = read_onnx(path)
    quantized = read.quantized
    if quantized is None:
        return
    for dialect in DIALECTS:
        try:
            to_onnx(quantized, dialect)
        except SystolicError:
            continue
    each(lambda style: LOWERED[style](quantized))


ONNX = Target("onnx", seeds, (*[meaning] * 8 * len(BYTES), *BYTES), _read, "network.onnx")
"""Mutated bytes are rarely a valid protocol buffer. So most cases change the content of the model instead."""
QUANTISED = Target(
    "onnx-quantised", quantised_seeds, (*[meaning] * 8 * len(BYTES), *BYTES), _read_quantised, "network.onnx"
)
STORED = Target("stored", later_seeds, (archive(member), archive(member), *BYTES), read_npz, "network.npz")
onnx_file, onnx_quantised, stored = partial(hunt, ONNX), partial(hunt, QUANTISED), partial(hunt, STORED)
