"""The golden model of a quantised network as a standalone C++ program.

The program computes every integer of every layer, as the reference for the accelerator. It includes no header of the
engine and reads none of its data files, so that the same fault cannot occur in both.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import FileAccessError, ShapeError, ToolError
from cnn.datatype import DataType
from cnn.maps import Padding
from cnn.ops import (
    PAD_MODES,
    Accumulating,
    Concat,
    Custom,
    DepthToSpace,
    Detection,
    MaxPool,
    Output,
    Pad,
    QActivate,
    QAdd,
    QAveragePool,
    QConvolution,
    QDense,
    QInput,
    QMultiply,
    QSoftmax,
    Reorg,
    Slice,
    Softmax,
    TopK,
    Upsample,
    assert_never,
)
from cnn.quantized import QNode, QuantizedNetwork, has_integers
from cnn.quantized_check import check_quantized
from cnn.requantise import HALVES, MultiplyShift, Requantiser, Requantising, Thresholds
from cnn.tables import Table, fraction_bits
from hls_templates.golden import (
    MAGIC,
    GoldenLayer,
    GoldenOutput,
    GoldenStep,
    GoldenType,
    GoldenValues,
    golden_source,
)
from host.contract.named_outputs import MAP, OutputTensor, Values
from host.contract.simulation_library import library_folder, sources_key
from systolic.execution.build import command_key
from systolic.execution.compiler import compile_to, compiler
from systolic.network_outputs import layer_per_node, tensors

Integers = npt.NDArray[Any]

SOURCE, PARAMETERS = "golden.cpp", "golden.bin"
FLAGS = ("-std=c++17", "-O3")
TIMEOUT_SECONDS = 600
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / φ, the step of SplitMix64
_CHUNK = 1 << 15  # values per step, so that the temporary arrays stay in the cache

_FORMS: dict[type[Requantising], str] = {
    Requantiser: "requantiser",
    MultiplyShift: "multiply_shift",
    Thresholds: "thresholds",
}
_Tabled = QActivate | QSoftmax
_Parameters = Accumulating | _Tabled


# ---------------------------------------------------------------- generation


def golden_files(network: QuantizedNetwork) -> dict[str, bytes]:
    """Return golden.cpp and golden.bin: file name to content. Equal networks give equal bytes.

    Layers that run on the host are left out, except a top-k, which selects among integers.

    Raises:
        SystolicError: One of the errors of ``check_quantized`` if the network breaks the arithmetic contract, or of
            ``golden_source`` if the name of a layer is not an identifier or occurs twice.
    """
    nodes = [(i, node) for i, node in enumerate(check_quantized(network).nodes) if has_integers(network.nodes, i)]
    parameters = _parameters([node for _, node in nodes])
    types = {node.type.datatype.name: node.type.datatype for _, node in nodes}
    values = GoldenValues(
        title=network.name,
        channels=network.input_shape.channels,
        height=network.input_shape.height,
        width=network.input_shape.width,
        parameter_bytes=len(parameters),
        blocks=sum(isinstance(node.op, _Parameters) for _, node in nodes),
        types=tuple(_type(datatype) for _, datatype in sorted(types.items())),
        layers=tuple(_layer(index, node, network) for index, node in nodes),
        functions={node.op.layer: node.op.definition.golden for _, node in nodes if isinstance(node.op, Custom)},
        outputs=tuple(_output(network, output) for output in _tensors(network)),
    )
    return {SOURCE: golden_source(values).encode(), PARAMETERS: parameters}


def _tensors(network: QuantizedNetwork) -> tuple[OutputTensor, ...]:
    """Return the output tensors that the network's file names, with the nodes and steps that compute each."""
    return tensors(network, layer_per_node(network))


def _output(network: QuantizedNetwork, output: OutputTensor) -> GoldenOutput:
    steps = []
    for step in output.steps:
        made = GoldenStep(step.kind, step.numbers)
        if step.kind == MAP:
            index = output.layers[step.numbers[0]]
            type_ = network.nodes[index].type
            made = GoldenStep(MAP, (index,), type_.scale, type_.zero_point)
        steps.append(made)
    return GoldenOutput(output.name, tuple(steps))


def _type(datatype: DataType) -> GoldenType:
    carrier = np.dtype(datatype.carrier)
    return GoldenType(datatype.name, carrier.name, carrier.itemsize, datatype.low, datatype.high, datatype.step)


def _layer(index: int, node: QNode, network: QuantizedNetwork) -> GoldenLayer:
    """Return the call in the golden C++ program that computes node ``index``: function name, inputs and constants."""
    plain = GoldenLayer(index, node.name, "", node.inputs, node.type.datatype.name)
    read = network.nodes[node.inputs[0]].type.datatype if node.inputs else node.type.datatype
    match node.op:
        case QInput():
            return replace(plain, operation="input")
        case QConvolution() as op:
            height, width = op.weights.shape[2:]
            window = _window((height, width), op.stride, op.dilation, op.padding)
            return _requantised(plain, "convolution", op, {**window, "groups": op.groups, "around": op.around})
        case QDense() as op:
            return _requantised(plain, "dense", op)
        case QAveragePool() as op:
            return _requantised(plain, "average_pool", op)
        case QAdd() as op:
            return replace(_requantised(plain, "add", op), multipliers=op.multipliers)
        case QMultiply() as op:
            return _requantised(plain, "multiply", op)
        case QActivate() as op if op.table.slopes is not None:
            return _tabled(plain, "interpolate", op.table, read, {"fraction": fraction_bits(read)})
        case QActivate() as op:
            return _tabled(plain, "activate", op.table, read)
        case QSoftmax() as op:
            return _tabled(plain, "softmax", op.table, read, {"stable": op.method == "stable"})
        case MaxPool() as op:
            return replace(plain, operation="max_pool", values=_window(op.window, op.stride, (1, 1), op.padding))
        case Concat():
            return replace(plain, operation="concat")
        case Slice() as op:
            return replace(plain, operation="slice", values={"first": op.first, "channels": op.channels})
        case Reorg() as op:
            operation = "space_to_depth" if op.order == "block" else "reorg"
            return replace(plain, operation=operation, values={"stride": op.stride})
        case DepthToSpace() as op:
            return replace(plain, operation="depth_to_space", values={"rows": op.rows, "columns": op.columns})
        case Pad() as op:
            values = {**vars(op.padding), "mode": PAD_MODES.index(op.mode)}
            return replace(plain, operation="repeated", values=values)
        case Upsample() as op:
            return replace(plain, operation="upsample", values={"rows": op.stride, "columns": op.columns})
        case TopK() as op:
            return replace(plain, operation="top_k", values={"k": op.k, "labels": op.labels})
        case Custom() as op:
            return replace(plain, operation="custom", function=op.layer, parameters=op.parameters)
        case Softmax() | Output() | Detection():
            raise AssertionError(f"{node.name!r} has no integers")
        case _:
            assert_never(node.op)


def _window(size: tuple[int, int], stride: int, dilation: tuple[int, int], padding: Padding) -> dict[str, int]:
    steps = {"down": dilation[0], "across": dilation[1]}
    return {"height": size[0], "width": size[1], "stride": stride, **steps, **vars(padding)}


def _requantised(
    layer: GoldenLayer, operation: str, op: Accumulating, values: Mapping[str, int] | None = None
) -> GoldenLayer:
    """Return the golden program's call of an operation that sums products or values and requantises the sums.

    Args:
        layer: The call with the name, the inputs and the type.
        operation: The function in the golden program.
        op: The operation of the network.
        values: Constants of the call, in addition to the numbers of channels, weights and thresholds.
    """
    by = op.requantiser
    halves = 0 if isinstance(by, Thresholds) else HALVES.index(by.halves)
    counts = {**(values or {}), **_counts(op)}
    return replace(layer, operation=operation, values=counts, form=_FORMS[type(by)], halves=halves)


def _tabled(
    layer: GoldenLayer, operation: str, table: Table | None, read: DataType, values: Mapping[str, int] | None = None
) -> GoldenLayer:
    """Return the golden program's call of an operation that looks each input up in a table of output values.

    Args:
        layer: The call with the name, the inputs and the type.
        operation: The function in the golden program.
        table: The table; None if the operation needs none.
        read: The type of the inputs. Its least value is looked up in the first entry.
        values: Further constants of the call.
    """
    levels = 0 if table is None else table.values.size
    return replace(layer, operation=operation, values={"low": read.low, "levels": levels, **(values or {})})


def _counts(op: Accumulating) -> dict[str, int]:
    weights = _weights(op)
    r = op.requantiser
    return {
        "channels": r.channels,
        "weights": weights.size,
        "weight_bytes": weights.itemsize if weights.size else 0,
        "levels": r.thresholds.shape[1] if isinstance(r, Thresholds) else 0,
    }


def _weights(op: Accumulating) -> Integers:
    if isinstance(op, (QConvolution, QDense)):
        return op.weights
    return np.zeros(0, np.int8)


def _parameters(nodes: Sequence[QNode]) -> bytes:
    """Return the content of golden.bin: weights, requantisers and tables. golden.cpp describes the format."""
    blocks = [_block(node.op) for node in nodes if isinstance(node.op, _Parameters)]
    return MAGIC.encode() + struct.pack("<I", len(blocks)) + b"".join(blocks)


def _block(op: _Parameters) -> bytes:
    if isinstance(op, _Tabled):
        values = np.zeros(0, np.int64) if op.table is None else op.table.values
        slopes = np.zeros(0, np.int64) if op.table is None or op.table.slopes is None else op.table.slopes
        return struct.pack("<I", values.size) + values.astype("<i4").tobytes() + slopes.astype("<i4").tobytes()
    counts, weights = _counts(op), _weights(op)
    head = struct.pack("<IQI", counts["channels"], counts["weights"], counts["weight_bytes"])
    little = weights.astype(weights.dtype.newbyteorder("<"), copy=False)
    return head + little.tobytes() + _form_bytes(op.requantiser)


def _form_bytes(r: Requantising) -> bytes:
    if isinstance(r, Thresholds):
        return r.flip.astype("<i4").tobytes() + r.thresholds.astype("<i8").tobytes()
    if isinstance(r, MultiplyShift):
        narrow = (values.astype("<i4").tobytes() for values in (r.multiplier, r.shift))
        return r.bias.astype("<i8").tobytes().join(narrow)
    return np.stack([r.bias, r.multiplier, r.negative, r.shift]).astype("<i4").tobytes()


# ---------------------------------------------------------------- checksums


def checksum(array: Integers) -> int:
    """Return the checksum of a layer's integers: Σ mix(value + (position + 1) · 2^64/φ) modulo 2^64, in C order.

    mix is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). Each value is combined with its position, so
    that exchanged values change the sum. The sum does not depend on the order of its terms, so that numpy can compute
    it for whole arrays. It depends on the values, not on the array's dtype.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    starts = range(0, flat.size, _CHUNK)
    return sum(_chunk_sum(flat[start : start + _CHUNK], start) for start in starts) & ((1 << 64) - 1)


def _chunk_sum(values: Integers, start: int) -> int:
    places = np.arange(start + 1, start + 1 + values.size, dtype=np.uint64)
    z = values.astype(np.int64).view(np.uint64) + places * _GOLDEN_RATIO
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int((z ^ (z >> np.uint64(31))).sum(dtype=np.uint64))


def checksums(network: QuantizedNetwork, outputs: Sequence[Integers | None]) -> dict[str, int]:
    """Return {layer name: checksum} of the integers of each layer in ``outputs``.

    Args:
        network: The network.
        outputs: The integers of each layer, as ``cnn.integer_model.run_integer`` returns them; None for a layer that
            runs on the host.
    """
    pairs = zip(network.nodes, outputs, strict=True)
    return {node.name: checksum(output) for node, output in pairs if output is not None}


def first_difference(expected: Mapping[str, int], program: Mapping[str, int]) -> str | None:
    """Return the name of the first layer whose checksum in ``program`` is missing or differs; None if all agree."""
    return next((name for name, value in expected.items() if program.get(name) != value), None)


# ---------------------------------------------------------------- execution


def build_golden(folder: Path, flags: Sequence[str] = FLAGS) -> Path:
    """Compile ``folder``/golden.cpp to ``folder``/build and return the program's path.

    If the source, the compiler and the flags are the same as before, the existing program is returned.

    Raises:
        FileAccessError: The folder has no golden.cpp.
        MissingToolError: There is no compiler.
        ToolError: The compiler failed.
    """
    source = folder / SOURCE
    if not source.is_file():
        raise FileAccessError(str(source), "does not exist", "golden program", remedy="generate the design first")
    command = [compiler(), *flags]
    program = library_folder(folder) / f"golden-{sources_key([source])}-{command_key(command)}"
    if not program.is_file():
        compile_to([*command, str(source)], program)
    return program


def run_golden(folder: Path, picture: npt.NDArray[np.uint8], dump: Path | None = None) -> dict[str, int]:
    """Run the golden program of a folder and return the checksum of each layer, by layer name.

    Args:
        folder: The folder with golden.cpp and golden.bin.
        picture: The input, uint8 of the network's input shape (channels, height, width).
        dump: An existing folder to which the integers of each layer are written, as NAME.int8 (uint8, int16 …).

    Raises:
        ShapeError: The array is not a picture.
        ToolError: The program refuses its input. The errors of ``build_golden`` are raised too.
    """
    lines = (line.split() for line in _run(folder, picture, [] if dump is None else ["--dump", str(dump)]))
    return {name: int(value, 16) for name, _, value in lines}


def golden_outputs(folder: Path, network: QuantizedNetwork, picture: npt.NDArray[np.uint8]) -> dict[str, Values]:
    """Run the golden program of a folder and return the values of each output that the network's file names.

    The values are float32, or int64 for labels. Raises the errors of ``run_golden``.

    Args:
        folder: The folder with golden.cpp and golden.bin.
        network: The network that the program was generated from. If its file's format does not name outputs, the result
            is {}.
        picture: The input, uint8 of the network's input shape (channels, height, width).
    """
    if not network.named_outputs:
        return {}
    with tempfile.TemporaryDirectory() as work:
        lines = _run(folder, picture, ["--outputs", work])[-len(network.named_outputs) :]
        return {
            output.name: _stored(Path(work), number, line.split()[1])
            for number, (output, line) in enumerate(zip(network.named_outputs, lines, strict=True))
        }


def _stored(folder: Path, number: int, sides: str) -> Values:
    """Return the array of an output that the golden program wrote to a file.

    Args:
        folder: The folder to which the program wrote them.
        number: The index of the output.
        sides: The shape as the program prints it, such as ``1x10``.
    """
    labels = folder / f"{number}.int64"
    path, kind = (labels, "<i8") if labels.is_file() else (folder / f"{number}.float32", "<f4")
    return np.fromfile(path, kind).reshape([int(side) for side in sides.split("x")])


def _run(folder: Path, picture: npt.NDArray[np.uint8], options: Sequence[str]) -> list[str]:
    """Run the golden program of a design on a picture, and return the lines that it prints."""
    if picture.dtype != np.uint8 or picture.ndim != 3:
        sides = "×".join(str(side) for side in picture.shape)
        raise ShapeError("the picture", f"{picture.dtype} {sides}", "uint8 [channels, height, width]")
    program = build_golden(folder)
    with tempfile.TemporaryDirectory() as work:
        raw = Path(work) / "picture"
        raw.write_bytes(picture.tobytes())
        text = _execute([str(program), str(folder / PARAMETERS), str(raw), *options])
    return text.splitlines()


def _execute(command: list[str]) -> str:
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        reason = f"did not finish in {TIMEOUT_SECONDS} s; is the machine overloaded?"
        raise ToolError("the golden program", reason) from error
    if process.returncode != 0:
        status, output = process.returncode, process.stderr.strip()[:1000]
        raise ToolError("the golden program", f"ended with status {status}", output)
    return process.stdout
