"""Read an ONNX file into a Network: one operation after the other, with an error for each that cannot be a layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from boards.errors import (
    DamagedFileError,
    InvalidValueError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
    cut,
    listed,
    shown,
)
from cnn.darknet.cfg import file_label
from cnn.darknet.files import identifier
from cnn.extending.registry import Registry
from cnn.limits import MAX_MAPS, MAX_WEIGHTS
from cnn.named_outputs import MAX_OUTPUTS, NamedOutput, OutputStep
from cnn.network import Network, Node
from cnn.onnx import channels_last, shapes
from cnn.onnx.advice import Check, advice
from cnn.onnx.channels_last import GUESSED
from cnn.onnx.constants import OF_SHAPES, constants_of
from cnn.onnx.file import graph_of, open_model, parsed
from cnn.onnx.graph import Graph, OnnxOperation, RefusedError, named, require
from cnn.onnx.heads import NamedHead, heads_inside, lost_heads, read_heads, recognised, with_heads, with_metadata
from cnn.onnx.in_turn import in_turn
from cnn.onnx.inputs import (
    InputView,
    Preprocessing,
    depends_on_channels,
    grey_last,
    is_grey_last,
    is_open,
    prepend_normalisation,
    revealed_view,
)
from cnn.onnx.layers import (
    EACH_WORKED_OUT,
    MAX_WORKED_OUT,
    NO_PADDING,
    Layers,
    Map,
    Tail,
    Unknown,
    Value,
    first_of,
    map_shape,
)
from cnn.onnx.operators import BUILDERS as FLOATS
from cnn.onnx.operators import Builder, unknown
from cnn.onnx.pads import append_padding
from cnn.onnx.patterns import (
    FUSED_CONV,
    FUSED_GEMM,
    refuse,
    with_channels_last,
    with_gelus,
    with_look_ups,
    with_norms,
    with_parts,
    with_thresholds,
)
from cnn.onnx.quantised.annotated import scales_of, with_datatypes, with_types
from cnn.onnx.quantised.cast import check_reader, with_integers
from cnn.onnx.quantised.clips import with_clips_behind
from cnn.onnx.quantised.integers import integer_network, with_float_forms
from cnn.onnx.quantised.operators import INTEGERS
from cnn.onnx.quantised.patterns import with_channel_scales, with_quants
from cnn.onnx.quantised.qonnx import QONNX
from cnn.onnx.reordering import append_crop, append_reordering, spread
from cnn.onnx.tails import steps_of, with_tail
from cnn.ops import Convolution, Dense, Input, Output
from cnn.quantized import QuantizedNetwork

FUSED: dict[str, Builder] = dict.fromkeys((FUSED_CONV, FUSED_GEMM), refuse)

BUILDERS: Registry[Builder] = Registry("systolic.operators", {**FLOATS, **INTEGERS, **QONNX, **FUSED})
"""The function for each operator, by its kind. A package adds an operator in a domain of its own as DOMAIN.KIND."""

TAKE_PADDING = frozenset({*shapes.PASS_PADDING, "Conv", "ConvInteger", "QLinearConv", *QONNX})
"""Operators that accept postponed padding of their input (cnn.onnx.layers), or pass it on to the next operator.

Before all other operators, a layer that pads is appended."""

NO_EDGES = (TAKE_PADDING - shapes.PASS_PADDING - {"Quant"}) | {"Pad"}
"""Operators that accept postponed zeros but not postponed repeated edges. A layer then repeats the edges."""

MOVES = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that only move or view values."""

HEADS_ENDING = ".json"
"""The suffix by which a cut is the name of a file of heads."""


@dataclass(frozen=True, eq=False)
class OnnxNetwork:
    """A network read from an ONNX file: float and, for a quantised file, integer, with notes for the user.

    Attributes:
        network: The float network. For a quantised file it is the float form of ``quantized``, with the same indices.
        data: The bytes of an ONNX file without external data that is read as the same network.
        tensors: The index of the node whose output a tensor of the file is, by the tensor's name.
        quantized: The integer network of a quantised file; None if the file holds floats.
        last: The tensors whose channels are last in the file and first in the node.
        notes: Sentences about facts that the file does not state, and about values that were rounded.
    """

    network: Network
    data: bytes
    tensors: Mapping[str, int]
    quantized: QuantizedNetwork | None = None
    last: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def read_onnx(
    path: Path, size: tuple[int, int] | None = None, cuts: tuple[str, ...] = (), check: Check | None = None
) -> OnnxNetwork:
    """Return the float network of an ONNX file and, if the file is quantised, its integer network.

    Args:
        path: The file.
        size: (width, height) of the input; None to keep the file's own.
        cuts: Names of tensors at which the network ends, and .json files of heads that read such tensors. If it is
            empty, the network is cut before detection heads of a known layout. Otherwise the known heads are kept
            whose tensors are all in ``cuts``.
        check: Raises a SystolicError if a network cannot be mapped. Only cuts that pass it are suggested in errors.

    Raises:
        SeveralFaultsError: Operators cannot become layers. It holds an error for each of them, and its remedy is a cut
            before them.
        SystolicError: The file is damaged, too large or not a network (the errors of ``open_model``).
    """
    try:
        heads = tuple(head for name in cuts if name.endswith(HEADS_ENDING) for head in read_heads(Path(name)))
        tensors = [name for name in cuts if not name.endswith(HEADS_ENDING)]
        model = open_model(path, size, (*(name for head in heads for name in head.tensors), *tensors))
        if not cuts:
            model, heads = _own_heads(model, path, size)
        elif not heads:
            known = heads_inside(model, file_label(path)) or recognised(graph_of(model, file_label(path), whole=True))
            heads = tuple(head for head in known if set(cuts).issuperset(head.tensors))
        read = read_model(model, file_label(path), identifier(path.stem), heads, check)
        notes = read.notes if cuts or heads else (*read.notes, *lost_heads(model, file_label(path)))
    except UnicodeDecodeError as error:  # protobuf decodes a name only when it is accessed
        raise DamagedFileError(file_label(path), f"has a name that is not text in UTF-8: {cut(error)}") from error
    return replace(read, data=with_metadata(model, heads), notes=notes)


def preprocessed(data: bytes, name: str, preprocessing: Preprocessing) -> OnnxNetwork:
    """Return a network that was read before, with a layer in front that normalises the input image.

    Args:
        data: The ``data`` of an OnnxNetwork.
        name: The network's name.
        preprocessing: The normalisation.

    Raises:
        UnsupportedError: The network reads a row of values, not an image.
        ConflictError: The network reads integers, or has such a layer already.
    """
    label = f"{name}.onnx"
    model = parsed(data, label)
    heads = heads_inside(model, label)
    prepend_normalisation(model, preprocessing, label, read_model(model, label, name, heads).network.input_shape)
    return replace(read_model(model, label, name, heads), data=with_metadata(model, heads))


def _own_heads(model: Any, path: Path, size: tuple[int, int] | None) -> tuple[Any, tuple[NamedHead, ...]]:
    """Return the ONNX protocol buffer, cut before its detection heads if there are any, and these heads.

    The heads are listed in the file's metadata, or recognised by their layout. In the second case the returned
    protocol buffer is cut at the tensors that the heads read.
    """
    inside = heads_inside(model, file_label(path))
    if inside:
        return model, inside
    heads = recognised(graph_of(model, file_label(path)))
    if not heads:
        return model, ()
    return open_model(path, size, tuple(name for head in heads for name in head.tensors)), heads


def network_of(model: Any, label: str, name: str) -> Network:
    """Return the float network of an ONNX protocol buffer; it raises the errors of ``read_onnx``."""
    return read_model(model, label, name).network


def read_model(
    model: Any, label: str, name: str, heads: Sequence[NamedHead] = (), check: Check | None = None
) -> OnnxNetwork:
    """Return the float and integer network of an ONNX protocol buffer, with detection heads appended.

    Args:
        model: The protocol buffer.
        label: The file's name in errors.
        name: The network's name.
        heads: The detection heads that the host decodes.
        check: As for ``read_onnx``, which also lists the errors.
    """
    graph = with_channels_last(_rewritten(in_turn(graph_of(model, label))))
    layers, refusals = _read_as_a_picture(graph, label)
    if not refusals:
        layers = _in_order(layers, graph.outputs)
        layers, refusals = _surrounded(_cropped(layers, graph.outputs), graph.outputs)
    if refusals:
        order = f" (the channels of the input are last, since {graph.last})" * bool(graph.last)
        subject = f"{len(refusals)} of {len(graph.operations)} operators cannot become layers{order}"
        remedy = advice(graph, layers, {name for node in model.graph.node for name in node.output}, heads, check)
        raise SeveralFaultsError(refusals, subject, where=label, remedy=remedy)
    _check_outputs(graph, label)
    layers, rounded = with_types(layers, graph)
    layers = with_clips_behind(layers.pruned(graph.outputs), graph.outputs)
    _check_bounds(layers.nodes, label)
    layers, outputs = _with_ends(graph, layers)
    network = Network(name, with_heads(layers, heads), named_outputs=outputs)
    integers = integer_network(network, layers.marks) if _quantised(layers) else None
    quantized, differing = (None, ()) if integers is None else (integers.quantized, integers.notes)
    network = network if quantized is None else with_float_forms(network, quantized, layers.marks)
    values = layers.values.items()
    maps = {
        name: value
        for name, value in values
        if isinstance(value, Map) and not (value.inside or value.crop or value.edge or value.moves)
    }
    tensors, last = {name: value.node for name, value in maps.items()}, {name for name in maps if maps[name].last}
    data, notes = model.SerializeToString(deterministic=True), (*_notes(graph, label), *rounded, *differing)
    return OnnxNetwork(network, data, tensors, quantized, frozenset(last), notes)


def _rewritten(graph: Graph) -> Graph:
    """Return the graph with groups of operators, which exporters write for one function, replaced by one operator."""
    quants = (with_quants, with_channel_scales)
    for rewrite in (with_parts, with_norms, with_gelus, with_thresholds, with_look_ups, *quants):
        graph = rewrite(graph)
    return graph


def _notes(graph: Graph, label: str) -> tuple[str, ...]:
    """Return sentences for the user on the network's input, if its meaning is a guess or its batch is above 1."""
    sides, notes, subject = "×".join(map(str, graph.shape[1:])), list[str](), f"{label}: the input {shown(graph.input)}"
    if graph.last == GUESSED:
        notes.append(f"{subject}, {sides}, is read with its channels last, since {GUESSED}")
    if graph.batch > 1:
        notes.append(
            f"{subject} has a batch of {graph.batch}, which is read as 1: a design computes one image at a time"
        )
    return tuple(notes)


Walk: TypeAlias = tuple[Layers, list[SystolicError]]
"""The layers of a graph, and an error for each operation that cannot become a layer."""


def _read_as_a_picture(graph: Graph, label: str) -> Walk:
    """Read all operations of the graph; retry with another input shape if an operation shows that the image has one.

    A file can store an image without a side for the channels, or as a row of values. The walk then starts again with
    the shape that the first operator shows.
    """
    last = bool(graph.last)
    sides = first_of(Map(0, graph.shape, last=last)).shape if last else graph.shape
    plain = InputView(map_shape(sides), last)
    walk = _walked(graph, label, plain)
    if isinstance(walk, InputView):
        plain, walk = walk, _walked(graph, label, walk, settled_input=True)
    assert not isinstance(walk, InputView)
    if walk[1] and is_grey_last(graph.shape) and plain.shape.channels > 1:
        other = _walked(graph, label, grey_last(graph.shape), settled_input=True)
        walk = walk if isinstance(other, InputView) or other[1] else other
    return walk


def _walked(graph: Graph, label: str, picture: InputView, settled_input: bool = False) -> Walk | InputView:
    """Read all operations of the graph in order, with its input viewed as the image ``picture``.

    Args:
        graph: The graph.
        label: The file's name in errors.
        picture: The shape of the input.
        settled_input: Whether the shape is certain. Otherwise an operator can show another view of the input, which is
            returned instead of the walk.
    """
    integers, may_differ = graph.lowest is not None, not settled_input and is_open(graph.shape)
    source = Node("input", Input(), (), picture.shape, f"{label}: input {shown(graph.input)}")
    values = {graph.input: Map(0, graph.shape, last=picture.last, integers=integers)}
    left = EACH_WORKED_OUT * sum(array.nbytes for array in graph.constants.values()) + MAX_WORKED_OUT
    layers = Layers(
        label, (source,), graph.constants, values, graph.readers, graph.opset, left, graph.lowest, graph.batch
    )
    layers = replace(layers, scales=scales_of(graph))
    refusals: list[SystolicError] = []
    for operation in graph.operations:
        try:
            seen = revealed_view(layers, operation, graph.shape) if may_differ else None
            if seen is not None:
                return seen
            with np.errstate(all="ignore"):  # Layers refuses weights that are not finite
                layers = with_datatypes(_taken(layers, operation), operation, graph.annotations)
        except SystolicError as error:  # the walk continues, to report the faults of all operations together
            refusal = named(error, operation)
            with_host = with_tail(layers, operation, refusal)
            if with_host is None:
                before = [value for name in operation.inputs if isinstance(value := layers.value(name), Tail)]
                found = [each for value in before for each in value.refusals] if before else [refusal]
                told = {str(each) for each in refusals}  # another reader of the tail may have reported them
                refusals += {str(each): each for each in found if str(each) not in told}.values()
                with_host = layers.with_values(operation, *(Unknown() for _ in operation.outputs))
            layers = with_host
    return layers, refusals


def _taken(layers: Layers, operation: OnnxOperation) -> Layers:
    """Return the network with the layers of one operation; RefusedError or another error if it cannot be a layer."""
    inputs = [name for name in operation.inputs if name]
    missing = [name for name in inputs if layers.value(name) is None]
    if missing:
        raise RefusedError(f"no operation before it computes its input {listed(missing)}")
    if any(isinstance(layers.value(name), Unknown) for name in inputs):
        return _behind(layers, operation)
    require(not any(isinstance(layers.value(name), Tail) for name in inputs), "its input is computed on the host")
    if operation.kind not in (*MOVES, "Shape"):
        for name in inputs:
            layers = append_reordering(layers, name)
    holds_integers = check_reader(layers, operation)
    computed = _read(layers, operation, inputs)
    return computed if layers.lowest is None else with_integers(computed, operation, holds_integers)


def _read(layers: Layers, operation: OnnxOperation, inputs: Sequence[str]) -> Layers:
    """Return the network with an operation's layers, preceded by layers for crops and padding that it cannot include.

    Pending crops and padding of its inputs, which the operation cannot include, become layers first.
    """
    last = channels_last.reads_last(layers, operation)
    cropped = layers if operation.kind == "Slice" else _cropped(layers, inputs)
    if depends_on_channels(layers, operation):
        for name in inputs:
            cropped = spread(cropped, name)
    passes = operation.kind in TAKE_PADDING or (last and operation.kind == "Transpose")
    padded = _with_edges(cropped, inputs) if operation.kind in NO_EDGES else cropped
    return _computed(padded if passes else _padded(padded, inputs, operation.kind), operation, last)


def _in_order(layers: Layers, names: Iterable[str]) -> Layers:
    """Append layers that reorder the values of these tensors as postponed Transposes require, if layers can."""
    for name in names:
        with suppress(RefusedError):  # then the host reorders the values
            layers = append_reordering(layers, name)
    return layers


def _surrounded(layers: Layers, names: Iterable[str]) -> Walk:
    """Append layers for the postponed padding of these tensors; return also an error for each that no layer can do."""
    refusals: list[SystolicError] = []
    for name in names:
        try:
            layers = _padded(layers, [name])
        except RefusedError as error:
            refusals.append(named(error, name))
    return layers, refusals


def _cropped(layers: Layers, names: Iterable[str]) -> Layers:
    """Append layers for the postponed crops (Slices of rows and columns) of these tensors."""
    for name in names:
        layers = append_crop(layers, name)
    return layers


def _computed(layers: Layers, operation: OnnxOperation, last: bool) -> Layers:
    """Return the network with an operation's outputs: computed as constants if all inputs are, else by layers.

    last: Whether an input has its channels last.
    """
    if last and operation.kind != "Shape":
        return channels_last.read_last(layers, operation, BUILDERS.get(operation.kind))
    if operation.kind in ("QuantizeLinear", "DequantizeLinear", *QONNX):
        return BUILDERS[operation.kind](layers, operation)
    constants = constants_of(layers, operation)
    if constants is not None:
        new_bytes = sum(array.nbytes for array in constants if array.base is None)
        return _scaled(layers, operation).with_bytes_spent(new_bytes).with_values(operation, *constants)
    return _builder(operation)(layers, operation)


def _padded(layers: Layers, names: Iterable[str], kind: str = "") -> Layers:
    """Append layers for the postponed padding of these tensors, because the operation ``kind`` cannot pad by itself.

    A Pad of the file is postponed until an operation reads its output, because most operations can pad by themselves.

    kind: The operation that reads them. A MaxPool accepts repeated edges, because they do not change its result.
    """
    for name in names:
        value = layers.value(name)
        takes_in = isinstance(value, Map) and value.edge and kind == "MaxPool"
        if isinstance(value, Map) and value.padding != NO_PADDING and not takes_in:
            layers = append_padding(layers, name)
    return layers


def _with_edges(layers: Layers, names: Iterable[str]) -> Layers:
    """Append layers for the postponed padding with repeated edges of these tensors; zero padding stays postponed."""
    for name in names:
        value = layers.value(name)
        if isinstance(value, Map) and value.edge:
            layers = append_padding(layers, name)
    return layers


def _quantised(layers: Layers) -> bool:
    return any(mark.type for mark in layers.marks.values())


def _scaled(layers: Layers, operation: OnnxOperation) -> Layers:
    """Return the network with a constant's weight scale copied to the result of an operation that only reshapes it."""
    scale = layers.scales.get(operation.inputs[0]) if operation.inputs else None
    if scale is None or operation.kind not in MOVES:
        return layers
    return replace(layers, scales={**layers.scales, operation.outputs[0]: scale})


def _behind(layers: Layers, operation: OnnxOperation) -> Layers:
    """Return the network with an operation's outputs marked ``Unknown``, because an input of it could not be computed.

    RefusedError is raised if no operation of its kind can become a layer, so that this fault is reported too.
    """
    if operation.kind not in OF_SHAPES:
        _builder(operation)
    return layers.with_values(operation, *(Unknown() for _ in operation.outputs))


def _builder(operation: OnnxOperation) -> Builder:
    if operation.kind not in BUILDERS:
        raise unknown(operation.kind)
    return BUILDERS[operation.kind]


def _check_bounds(nodes: tuple[Node, ...], label: str) -> None:
    """Raise RangeError if the network has no layer, or more values or weights than the limits."""
    values = sum(node.shape.values for node in nodes)
    weights = sum(int(node.op.weights.size) for node in nodes if isinstance(node.op, (Convolution, Dense)))
    for count, limit, subject in ((values, MAX_MAPS, "values of all maps"), (weights, MAX_WEIGHTS, "weights")):
        if count > limit:
            raise RangeError(f"the number of {subject}", count, high=limit, where=label)
    if len(nodes) < 2:
        raise RangeError("the number of layers after the input", len(nodes) - 1, low=1, where=label)


def _check_outputs(graph: Graph, label: str) -> None:
    """Raise DamagedFileError if no operation computes one of the graph's outputs."""
    given = {graph.input, *graph.constants, *(name for operation in graph.operations for name in operation.outputs)}
    missing = [name for name in graph.outputs if name not in given]
    if missing:
        raise DamagedFileError(label, f"has outputs that no operator computes: {listed(missing)}")


def _with_ends(graph: Graph, layers: Layers) -> tuple[Layers, tuple[NamedOutput, ...]]:
    """Append an Output node for each graph output that a layer reads too; return also the file's named outputs.

    Raises:
        RangeError: The file has too many outputs.
        InvalidValueError: No layer computes an output.
    """
    if len(set(graph.outputs)) > MAX_OUTPUTS:
        raise RangeError("the number of outputs", len(graph.outputs), 1, MAX_OUTPUTS, where=layers.label)
    read = {i for node in layers.nodes for i in node.inputs}
    ends: dict[int, int] = {}
    outputs = []
    for name in dict.fromkeys(graph.outputs):
        value = layers.value(name)
        maps, steps = _made_of(value)
        if not maps or 0 in maps:
            remedy = "cut the network with --cut TENSOR"
            raise InvalidValueError("an output", name, "the output of a layer", where=layers.label, remedy=remedy)
        for node in maps:
            if node in read and node not in ends:  # a tensor with several names is one output of the accelerator
                leaves = OnnxOperation(name, "output", (name,), (), {})
                layers = layers.with_node(leaves, "output", Output(), layers.nodes[node].shape, node)
                ends[node] = len(layers.nodes) - 1
        outputs.append(NamedOutput(name, tuple(layers.nodes[ends.get(node, node)].name for node in maps), steps))
    return layers, tuple(outputs)


def _made_of(value: Value | None) -> tuple[tuple[int, ...], tuple[OutputStep, ...]]:
    """Return the nodes and the host's steps from which a graph output is computed; empty if no layer computes it."""
    if isinstance(value, Tail):
        return value.maps, value.steps
    if not isinstance(value, Map) or value.padding != NO_PADDING:
        return (), ()
    return (value.node,), steps_of(value)
