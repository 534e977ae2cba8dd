"""An input of floats whose annotation says that they are few: its pixels are these integers, or are brought to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from cnn.onnx.annotation import Annotation
from cnn.onnx.graph import Array, Graph, OnnxOperation

PIXEL_BITS = 8
FLOAT = 1
"""TensorProto.FLOAT, the type that a Cast gives."""

DOMAIN = "qonnx.custom_op.general"


def lowest_of(annotation: Annotation | None) -> int | None:
    """Return the integer that a black pixel is in an input annotated so; None where pixels are 0…1.

    As of inputs that hold integers, that is 0 of more bits than a pixel has.
    """
    if annotation is None or annotation.step != 1:
        return None
    if annotation.is_bipolar:
        return 0  # doubled, less 1
    return annotation.low if annotation.bits <= PIXEL_BITS else 0


def typed(graph: Graph, annotation: Annotation) -> Graph:
    """The graph whose operations read the input's values of that type: a Cast of pixels, and a Quant of few bits."""
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
    """Return the name, or one like it, that no tensor has, and take it."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name
