"""Suggest where to cut a file that cannot be read as a whole, so that the part before the cut is a network.

A cut is at tensors of the file, keeps at least one layer, and passes the mapping check if one is given. It is tried

1. at the tensors that known detection heads read, if all layers before them can be mapped,
2. at the last tensors that can be mapped,
3. at the outputs of the nearest layers with weights before those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from boards.errors import MAX_VALUE_LENGTH, SystolicError
from cnn.network import Network
from cnn.onnx.file import needed
from cnn.onnx.graph import Graph, OnnxOperation
from cnn.onnx.heads import NamedHead, recognised
from cnn.onnx.layers import NO_PADDING, Layers, Map
from cnn.ops import Activate, Add, AveragePool, Convolution, Dense, MaxPool, Multiply

MAX_ENDS = 12
"""Limit for the tensors of a suggested cut."""

Check = Callable[[Network], None]
"""A function that raises a SystolicError if a network cannot be mapped."""

_COMPUTE = (Activate, Add, AveragePool, Convolution, Dense, MaxPool, Multiply)
_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "QLinearConv", "QLinearMatMul"})


def advice(
    graph: Graph, layers: Layers, tensors: Iterable[str], heads: Sequence[NamedHead], check: Check | None
) -> str:
    """Return a sentence that suggests tensors at which to cut an unreadable network (--cut); "" if there are none.

    Args:
        graph: The graph of the file.
        layers: The layers that were read from it.
        tensors: The names of the tensors of the file.
        heads: The detection heads of the file, if they are known.
        check: Raises a SystolicError if a network cannot be mapped; None if any network can be.
    """
    values = layers.values.items()
    maps = {name for name, value in values if isinstance(value, Map) and _is_whole(value)}
    mapped = [operation for operation in graph.operations if maps.issuperset(filter(None, operation.outputs))]
    given = {name for name in maps.intersection(tensors) if len(name) <= MAX_VALUE_LENGTH and name.isprintable()}
    for candidate in _candidates(graph, mapped, maps, heads):
        names = [name for name in candidate if name in given][:MAX_ENDS]
        names = names if _maps(layers, names, check) else [name for name in names if _maps(layers, [name], check)]
        if _maps(layers, names, check):
            count = len(needed(graph.operations, names))
            told = f"{count} operators that can be mapped" if count > 1 else "the operator that can be mapped"
            return f"cut the network after {told}, and compute the rest on the host: --cut {' '.join(names)}"
    return ""


def _is_whole(value: Map) -> bool:
    """Return whether the tensor is exactly a layer's output, without postponed padding, crop or reordering."""
    return value.node > 0 and value.padding == NO_PADDING and value.moves is None and value.crop is None


def _candidates(
    graph: Graph, mapped: Sequence[OnnxOperation], maps: set[str], heads: Sequence[NamedHead]
) -> Iterable[list[str]]:
    """Yield, for each cut to try, the tensors at which the network would end, the best cut first."""
    kept = [head.tensors for head in heads or recognised(graph) if maps.issuperset(head.tensors)]
    yield [name for names in kept for name in names]
    read = {name for operation in mapped for name in operation.inputs}
    ends = [name for operation in mapped for name in operation.outputs if name in maps - read]
    yield ends
    producers = {name: operation for operation in graph.operations for name in operation.outputs}
    yield list(dict.fromkeys(name for end in ends for name in _weighted_before(end, producers)))


def _weighted_before(name: str, producers: Mapping[str, OnnxOperation]) -> list[str]:
    """Return the output tensors of the nearest layers with weights that the tensor ``name`` depends on."""
    waiting, met, found = [name], {name}, []
    while waiting:
        here = waiting.pop(0)
        operation = producers.get(here)
        if operation is not None and operation.kind in _WEIGHTED:
            found.append(here)
        elif operation is not None:
            more = [each for each in operation.inputs if each and each not in met]
            met.update(more)
            waiting += more
    return found


def _maps(layers: Layers, names: Sequence[str], check: Check | None) -> bool:
    """Return whether the layers that compute these tensors are a network that the accelerator can run."""
    if not names:
        return False
    nodes = layers.pruned(names).nodes
    if not any(isinstance(node.op, _COMPUTE) for node in nodes):
        return False
    try:
        if check is not None:
            check(Network("cut", nodes))
    except SystolicError:
        return False
    return True
