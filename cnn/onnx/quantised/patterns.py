"""Transformations of a graph: they replace operator sequences by which Brevitas writes quantised values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cnn.onnx.file import needed
from cnn.onnx.graph import Array, Graph, OnnxOperation
from cnn.onnx.quantised.values import DOMAINS, ZERO_BEHIND, ends_of

# Some maps are quantised with a scale per channel and are read by depthwise convolutions only (Brevitas:
# `scaling_per_output_channel`). Such a convolution keeps channels apart, so that the scales can be moved to its sums:
#
#     Conv(Quant(x, s), w) + b   →   f · Conv(Quant(x / f, t), w) + b,    s = f · t
#
# with one scale t for all channels. Then x / f is a part of the layer before, and f is a factor of the convolution's
# sums, so that no layer and no integer is added.

QUANTS = frozenset(f"{domain}.{kind}" for domain in DOMAINS for kind in ("Quant", "IntQuant"))

QUANTISE, DEQUANTISE = "QuantizeLinear", "DequantizeLinear"

KEEPS_CHANNELS = frozenset({"AveragePool", "Dropout", "GlobalAveragePool", "Identity", "MaxPool", "Relu"})
"""Operations that commute with a positive factor for each channel."""

MAX_CHAIN = 8
"""The most operators from a constant to the reader of the weights: a quantiser, its inverse, and moves between them."""

BEFORE = frozenset({"LeakyRelu", "Relu"})
"""Activations that commute with a positive factor."""


@dataclass(frozen=True, eq=False)
class _Graph:
    """An ONNX graph with look-ups of the constant, the producer and the readers of a tensor by its name.

    Attributes:
        constants: The file's constants by name.
        producers: The operation whose output a tensor is.
        readers: The operations that read a tensor, in the order of the file.
        outputs: The outputs of the file.
    """

    constants: Mapping[str, Array]
    producers: Mapping[str, OnnxOperation]
    readers: Mapping[str, list[OnnxOperation]]
    outputs: frozenset[str]

    def constant(self, name: str) -> Array | None:
        """Return a tensor's constant array, from the file or from a Constant operator; None if it is not constant."""
        producer = self.producers.get(name)
        value = self.constants.get(name) if producer is None else producer.attributes.get("value")
        return value if isinstance(value, np.ndarray) and (producer is None or producer.kind == "Constant") else None

    def weights(self, name: str) -> Array | None:
        """Return the constant array from which a tensor is computed by a few operators; None if there is none.

        The number of operators is limited because in a damaged file an operator may read its own output.
        """
        for _ in range(MAX_CHAIN):
            if (value := self.constant(name)) is not None:
                return value
            producer = self.producers.get(name)
            if producer is None or not producer.inputs or producer.kind == "Constant":
                return None
            name = producer.inputs[0]
        return None

    def is_alone(self, name: str) -> bool:
        """Return whether exactly one operation reads the tensor, which also is not an output."""
        return len(self.readers.get(name, ())) == 1 and name not in self.outputs


def with_channel_scales(graph: Graph) -> Graph:
    """Return the graph with scales per channel, on maps that only depthwise convolutions read, moved into those."""
    quants = [each for each in graph.operations if each.kind in (*QUANTS, QUANTISE) and len(each.inputs) > 2]
    if not quants:
        return graph
    view = _view(graph)
    changed: dict[int, tuple[OnnxOperation, ...]] = {}
    constants = dict(graph.constants)
    for quant in quants:
        scales, zero, same = _scales(view, quant), _zero(view, quant), _same_grid(view, quant)
        depthwise = None if scales is None or same is None else _depthwise(view, _given(quant, same), scales.size)
        if (
            scales is None
            or depthwise is None
            or zero is None
            or same is None
            or any(id(each) in changed for each in depthwise)
        ):
            continue
        one = np.float32(2.0 ** np.floor(np.log2(float(scales.max()))))
        factors, taken = scales / one, f"{quant.outputs[0]}/channels"
        constants[f"{taken}/scale"], constants[f"{taken}/zero"] = np.asarray(one, np.float32), zero
        constants[f"{taken}/divisors"] = factors.reshape(-1, 1, 1)
        changed.update(_divided(view, quant, taken))
        for reader in same:
            changed[id(reader)] = (replace(reader, inputs=(reader.inputs[0], f"{taken}/scale", f"{taken}/zero")),)
        for number, conv in enumerate(depthwise):
            filters = view.weights(conv.inputs[1])
            assert filters is not None
            name = f"{taken}/{number}"
            constants[f"{name}/factors"] = np.repeat(factors, len(filters) // factors.size).reshape(-1, 1, 1)
            constants[f"{name}/sides"] = np.array([-1, 1, 1], np.int64)
            changed[id(conv)] = _multiplied(conv, name)
    if not changed:
        return graph
    operations = [part for each in graph.operations for part in changed.get(id(each), (each,))]
    return replace(graph, operations=needed(operations, graph.outputs), constants=constants)


def _view(graph: Graph) -> _Graph:
    readers: dict[str, list[OnnxOperation]] = {}
    for operation in graph.operations:
        for name in dict.fromkeys(operation.inputs):
            readers.setdefault(name, []).append(operation)
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    return _Graph(graph.constants, producers, readers, frozenset(graph.outputs))


def _scales(view: _Graph, quant: OnnxOperation) -> Array | None:
    """Return the scales per channel of a quantiser of a map, float32 [channels]; None if it has a single scale."""
    scale = view.constant(quant.inputs[1])
    if scale is None or scale.size < 2 or view.weights(quant.inputs[0]) is not None or scale.dtype.kind != "f":
        return None
    if quant.kind == QUANTISE:
        fits = scale.ndim == 1 and quant.attributes.get("axis", 1) == 1
    else:
        fits = 3 <= scale.ndim <= 4 and scale.shape[-3] == scale.size
    values = scale.astype(np.float32).ravel()
    return values if fits and bool((np.isfinite(values) & (values > 0)).all()) else None


def _zero(view: _Graph, quant: OnnxOperation) -> Array | None:
    """Return a quantiser's zero point if all channels have the same; else None."""
    zero = view.constant(quant.inputs[2]) if len(quant.inputs) > 2 else None
    same = zero is not None and zero.size > 0 and bool((zero == zero.flat[0]).all())
    return np.asarray(zero.flat[0], zero.dtype) if zero is not None and same else None


def _same_grid(view: _Graph, quant: OnnxOperation) -> tuple[OnnxOperation, ...] | None:
    """Return the DequantizeLinears that read a QuantizeLinear with its own scale; None if it has other readers.

    Return None if there are other readers.
    """
    if quant.kind != QUANTISE:
        return ()
    readers = view.readers.get(quant.outputs[0], ())
    grid = [view.constant(name) for name in quant.inputs[1:3]]
    for reader in readers:
        theirs = [view.constant(name) for name in reader.inputs[1:3]]
        equal = all(
            a is not None and b is not None and np.array_equal(a, b) for a, b in zip(grid, theirs, strict=False)
        )
        if reader.kind != DEQUANTISE or len(theirs) < 2 or not equal or reader.attributes.get("axis", 1) != 1:
            return None
    return None if quant.outputs[0] in view.outputs else tuple(readers)


def _given(quant: OnnxOperation, same: Sequence[OnnxOperation]) -> tuple[str, ...]:
    """Return the names of the tensors with a quantiser's values as floats."""
    return tuple(reader.outputs[0] for reader in same) if quant.kind == QUANTISE else quant.outputs[:1]


def _depthwise(view: _Graph, names: Sequence[str], channels: int) -> list[OnnxOperation] | None:
    """Return the depthwise convolutions that read these tensors, the only readers; None if other operators read them.

    Return None if other operators read the tensors.
    """
    found: dict[int, OnnxOperation] = {}
    waiting, seen = list(names), set(names)
    while waiting:
        tensor = waiting.pop()
        if tensor in view.outputs:
            return None
        for reader in view.readers.get(tensor, ()):
            if reader.kind in KEEPS_CHANNELS and reader.inputs[0] == tensor and len(reader.outputs) == 1:
                if reader.outputs[0] not in seen:
                    seen.add(reader.outputs[0])
                    waiting.append(reader.outputs[0])
            elif _is_depthwise(view, reader, tensor, channels):
                found[id(reader)] = reader
            else:
                return None
    return list(found.values()) or None


def _is_depthwise(view: _Graph, conv: OnnxOperation, tensor: str, channels: int) -> bool:
    if conv.kind != "Conv" or conv.inputs.count(tensor) != 1 or conv.inputs[0] != tensor or len(conv.inputs) < 2:
        return False
    weights = view.weights(conv.inputs[1])
    fits = weights is not None and weights.ndim == 4 and weights.shape[1] == 1 and len(weights) % channels == 0
    return fits and conv.attributes.get("group", 1) == channels


def _divided(view: _Graph, quant: OnnxOperation, taken: str) -> dict[int, tuple[OnnxOperation, ...]]:
    """Return replacements for a quantiser with scales per channel: a Div by them, then a quantiser with one scale.

    If the quantiser is the only reader of a relu, the division is before the relu, so that it becomes a part of the
    convolution.
    """
    source = quant.inputs[0]
    relu = view.producers.get(source)
    quotient = f"{taken}/quotient"
    inputs = (f"{taken}/divided", f"{taken}/scale", f"{taken}/zero", *quant.inputs[3:])
    one = replace(quant, inputs=inputs)
    if relu is not None and relu.kind in BEFORE and view.is_alone(source):
        divide = OnnxOperation(f"{quant.name}/divide", "Div", (relu.inputs[0], f"{taken}/divisors"), (quotient,), {})
        again = replace(relu, inputs=(quotient, *relu.inputs[1:]), outputs=inputs[:1])
        return {id(relu): (divide, again), id(quant): (one,)}
    divide = OnnxOperation(f"{quant.name}/divide", "Div", (source, f"{taken}/divisors"), inputs[:1], {})
    return {id(quant): (divide, one)}


def _multiplied(conv: OnnxOperation, name: str) -> tuple[OnnxOperation, ...]:
    """Return replacements for a depthwise Conv: a Conv without bias, a Mul by factors per channel, and an Add."""
    sums, product = f"{name}/sums", f"{name}/product"
    biased = len(conv.inputs) > 2 and conv.inputs[2] != ""
    bare = replace(conv, inputs=conv.inputs[:2], outputs=(sums,))
    outputs = (product,) if biased else conv.outputs
    times = OnnxOperation(f"{conv.name}/scale", "Mul", (sums, f"{name}/factors"), outputs, {})
    if not biased:
        return bare, times
    column = OnnxOperation(f"{conv.name}/column", "Reshape", (conv.inputs[2], f"{name}/sides"), (f"{name}/bias",), {})
    return bare, times, column, OnnxOperation(f"{conv.name}/bias", "Add", (product, f"{name}/bias"), conv.outputs, {})


# Brevitas writes values of fewer bits than their integers are stored in as QuantizeLinear, Clip and DequantizeLinear.
# They become one Quant. The Clip's bounds determine the bits, and whether the least integer is excluded.

QUANT = f"{DOMAINS[0]}.Quant"


@dataclass(frozen=True)
class _Three:
    """A QuantizeLinear, the Clip of its integers, and the DequantizeLinears of these: how Brevitas writes few bits."""

    quantise: OnnxOperation
    clip: OnnxOperation
    dequantisers: tuple[OnnxOperation, ...]


def with_quants(graph: Graph) -> Graph:
    """Return the graph with one Quant for each QuantizeLinear, Clip and DequantizeLinear in sequence."""
    changed: dict[int, OnnxOperation] = {}
    constants = dict(graph.constants)
    for three in _threes(graph):
        if _is_one(graph.constants, three):
            quant, numbers = _quant(graph.constants, three)
            constants.update(numbers)
            changed[id(three.dequantisers[0])] = quant
            changed.update({id(reader): _same(reader, quant) for reader in three.dequantisers[1:]})
    if not changed:
        return graph
    operations = [changed.get(id(operation), operation) for operation in graph.operations]
    return replace(graph, operations=needed(operations, graph.outputs), constants=constants)


def _threes(graph: Graph) -> Iterator[_Three]:
    """Yield each sequence of QuantizeLinear, Clip and DequantizeLinears that other operators do not read."""
    producers, readers = _producers(graph, "QuantizeLinear"), _readers(graph)
    counts = graph.readers
    for clip in (operation for operation in graph.operations if operation.kind == "Clip" and operation.inputs):
        quantise = producers.get(clip.inputs[0])
        dequantisers = tuple(reader for name in clip.outputs[:1] for reader in readers.get(name, ()))
        alone = counts[clip.inputs[0]] == 1 and not {*clip.outputs} & {*graph.outputs}
        if quantise is not None and alone and {reader.kind for reader in dequantisers} == {"DequantizeLinear"}:
            yield _Three(quantise, clip, dequantisers)


def _producers(graph: Graph, kind: str) -> dict[str, OnnxOperation]:
    """Return the operations of this kind by the names of their outputs."""
    return {name: each for each in graph.operations if each.kind == kind for name in each.outputs}


def _readers(graph: Graph) -> dict[str, list[OnnxOperation]]:
    """Return the operations that read each tensor, by the tensor's name."""
    readers: dict[str, list[OnnxOperation]] = {}
    for operation in graph.operations:
        for name in {*operation.inputs}:
            readers.setdefault(name, []).append(operation)
    return readers


def _is_one(constants: Mapping[str, Array], three: _Three) -> bool:
    """Return whether a QuantizeLinear, Clip, DequantizeLinear sequence has one scale and clips to a number of bits."""
    first = three.quantise
    if _form(constants, three) is None or _scale(constants, first) is None:
        return False
    return all(
        _axis(reader) == _axis(first)
        and all(_equal(*(_constant(constants, each, i) for each in (first, reader))) for i in (1, 2))
        for reader in three.dequantisers
    )


def _constant(constants: Mapping[str, Array], operation: OnnxOperation, position: int) -> Array | None:
    return constants.get(operation.inputs[position]) if position < len(operation.inputs) else None


def _equal(first: Array | None, second: Array | None) -> bool:
    return first is not None and second is not None and first.dtype == second.dtype and np.array_equal(first, second)


def _axis(operation: OnnxOperation) -> object:
    return operation.attributes.get("axis", 1)


def _form(constants: Mapping[str, Array], three: _Three) -> tuple[int, bool, bool] | None:
    """Return the integer range of a Clip's bounds as (bits, signed, narrow); None if no number of bits has it."""
    zero, ends = _constant(constants, three.quantise, 2), _ends(constants, three.clip)
    if zero is None or zero.dtype.kind not in "iu" or ends is None:
        return None
    signed = zero.dtype.kind == "i"
    forms = ((bits, signed, narrow) for bits in range(1, 8 * zero.dtype.itemsize + 1) for narrow in (False, True))
    return next((form for form in forms if ends_of(*form) == ends), None)


def _ends(constants: Mapping[str, Array], clip: OnnxOperation) -> tuple[int, int] | None:
    low, high = (_constant(constants, clip, position) for position in (1, 2))
    if low is None or high is None or (low.size, high.size) != (1, 1) or {low.dtype.kind, high.dtype.kind} - {"i", "u"}:
        return None
    return int(low.ravel()[0]), int(high.ravel()[0])


def _scale(constants: Mapping[str, Array], quantise: OnnxOperation) -> tuple[Array, Array] | None:
    """Return a QuantizeLinear's scale and zero point reshaped to broadcast to the values; None if that is unknown."""
    scale, zero = (_constant(constants, quantise, position) for position in (1, 2))
    if scale is None or zero is None or zero.size not in (1, scale.size):
        return None
    if scale.size == 1:
        return scale.reshape(()), zero.reshape(())
    values, axis = constants.get(quantise.inputs[0]), _axis(quantise)
    if values is None and axis == 1:  # of the channels of a map
        return scale.reshape(-1, 1, 1), np.broadcast_to(zero.reshape(-1), scale.shape).reshape(-1, 1, 1)
    if values is None or not isinstance(axis, int) or not -values.ndim <= axis < values.ndim:
        return None
    sides = [1] * values.ndim
    sides[axis] = scale.size
    return scale.reshape(sides), np.broadcast_to(zero.reshape(-1), scale.shape).reshape(sides)


def _quant(constants: Mapping[str, Array], three: _Three) -> tuple[OnnxOperation, dict[str, Array]]:
    """Return the Quant that replaces a QuantizeLinear, Clip and DequantizeLinear, and its new constants by name."""
    form, grid = _form(constants, three), _scale(constants, three.quantise)
    assert form is not None
    assert grid is not None
    (bits, signed, narrow), outputs = form, three.dequantisers[0].outputs
    values = np.asarray(grid[0], np.float32), np.asarray(grid[1], np.float32), np.asarray(bits, np.float32)
    numbers = {f"{outputs[0]}/{place}": value for place, value in enumerate(values, 1)}
    attributes = {"signed": int(signed), "narrow": int(narrow), "rounding_mode": "ROUND", ZERO_BEHIND: 1}
    return OnnxOperation(three.quantise.name, QUANT, (three.quantise.inputs[0], *numbers), outputs, attributes), numbers


def _same(operation: OnnxOperation, quant: OnnxOperation) -> OnnxOperation:
    """Return an Identity that gives the Quant's output the name that a further DequantizeLinear's output had."""
    return OnnxOperation(operation.name, "Identity", quant.outputs, operation.outputs, {})
