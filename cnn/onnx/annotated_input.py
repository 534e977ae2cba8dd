"""Read an input of floats that is annotated with a data type of few values: pixels are those integers or are quantised.

The annotation is replaced by operators of QONNX between the input and the operations that read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from cnn.onnx.annotation import Annotation
from cnn.onnx.graph import Array, Graph, OnnxOperation

PIXEL_BITS = 8
FLOAT = 1
"""TensorProto.FLOAT, the target type of the Cast."""

DOMAIN = "qonnx.custom_op.general"


def lowest_of(annotation: Annotation | None) -> int | None:
    """Return the integer of a black pixel in an annotated network input; None if pixels are floats from 0 to 1.

    It is the lowest value of a data type of up to 8 bits. In wider types black is 0, as in inputs of integers.
    """
    if annotation is None or annotation.step != 1:
        return None
    if annotation.is_bipolar:
        return 0  # ``typed`` maps 0 and 1 to −1 and 1
    return annotation.low if annotation.bits <= PIXEL_BITS else 0


def typed(graph: Graph, annotation: Annotation) -> Graph:
    """Return the graph with operators after its input that convert pixels to the values of the input's ``annotation``.

    They are a Cast for pixels that are integers, and a Quant or BipolarQuant for fewer than 8 bits or fractions.
    """
    taken = {graph.input, *graph.constants, *(name for each in graph.operations for name in each.outputs)}
    name = _free(f"{graph.input}/{annotation.name}", taken)
    constants: dict[str, Array] = {}
    operations: list[OnnxOperation] = []

    def put(kind: str, source: str, numbers: Iterable[float] = (), **attributes: Any) -> str:
        inputs = [source]
        for number in numbers:
            inputs.append(_free(f"{name}/{len(constants)}", taken))
            constants[inputs[-1]] = np.asarray(number, np.float32)
        output = _free(f"{name}/{kind.rpartition('.')[2]}", taken)
        operations.append(OnnxOperation(output, kind, tuple(inputs), (output,), attributes))
        return output

    last = put("Cast", graph.input, to=FLOAT) if annotation.step == 1 else graph.input
    if annotation.is_bipolar:
        last = put("Sub", put("Mul", last, (2,)), (1,))
        last = put(f"{DOMAIN}.BipolarQuant", last, (1,))
    elif annotation.step != 1 or annotation.bits < PIXEL_BITS:
        signed, narrow = annotation.low < 0, -annotation.low == annotation.high
        last = put(
            f"{DOMAIN}.Quant", last, (annotation.step, 0, annotation.bits), signed=int(signed), narrow=int(narrow)
        )
    following = [
        replace(each, inputs=tuple(last if source == graph.input else source for source in each.inputs))
        for each in graph.operations
    ]
    return replace(graph, operations=(*operations, *following), constants={**graph.constants, **constants})


def _free(name: str, taken: set[str]) -> str:
    """Return an unused tensor name: ``name``, with ' appended until it is not in ``taken``, to which it is added."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name
