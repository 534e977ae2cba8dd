"""Graphs whose tensors have types only by annotations, as FINN writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import helper

from cnn.onnx.annotation import DATATYPE
from tests.support.onnx.trained import DOMAIN, Trained

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(7)
SIDES = (1, 4, 7, 8)
"""The input of these files has these sides."""


def annotated(model: Any, datatypes: Mapping[str, str], key: str = DATATYPE) -> Any:
    """Annotate tensors as qonnx's set_tensor_datatype does."""
    for name, datatype in datatypes.items():
        entry = model.graph.quantization_annotation.add(tensor_name=name)
        entry.quant_parameter_tensor_names.add(key=key, value=datatype)
    return model


class Typed(Trained):
    """This writer keeps the datatype that each of its tensors is annotated with."""

    def __init__(self) -> None:
        super().__init__()
        self.types: dict[str, str] = {}

    def typed(self, name: str, datatype: str) -> str:
        """Annotate the tensor and return its name."""
        self.types[name] = datatype
        return name

    def weights(self, values: Any, datatype: str) -> str:
        """Return an annotated constant."""
        return self.typed(self.constant(values), datatype)

    def conv(self, source: str, weights: str, **attributes: Any) -> str:
        """Append a Conv, by default of three rows and columns with a padding of one."""
        return self.put("Conv", [source, weights], **{"kernel_shape": [3, 3], "pads": [1] * 4, **attributes})

    def reached(self, source: str, levels: int, out_dtype: str, spread: int = 40, **attributes: Any) -> str:
        """Append a MultiThreshold of whole numbers, annotated."""
        edges = self.weights(np.sort(RANDOM.integers(-spread, spread, (5, levels)), axis=1), "INT32")
        name = self.put("MultiThreshold", [source, edges], domain=DOMAIN, out_dtype=out_dtype, **attributes)
        return self.typed(name, out_dtype)

    def annotated_file(self, *outputs: str, sides: tuple[int, ...] = SIDES) -> Any:
        """Return the file of one picture of these sides."""
        model = annotated(self.model(outputs, sides), self.types)
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        return model


def whole(low: int, high: int, *shape: int) -> Array:
    """Return random integers between these ends."""
    return RANDOM.integers(low, high, shape, endpoint=True)


def signs(*shape: int) -> Array:
    """Return random values of −1 and 1."""
    return np.where(RANDOM.random(shape) < 0.5, -1, 1)


def sums() -> Any:
    """Return one convolution, its input, weights and sums typed."""
    writer = Typed()
    writer.typed("picture", "UINT4")
    last = writer.conv("picture", writer.weights(whole(-7, 7, 6, 4, 3, 3), "INT4"))
    return writer.annotated_file(writer.typed(last, "INT32"))


def sums_of_weights_alone() -> Any:
    """Return a convolution without an annotated sum, of pixels of all 8 bits."""
    writer = Typed()
    writer.typed("picture", "UINT8")
    return writer.annotated_file(writer.conv("picture", writer.weights(whole(-1, 1, 6, 4, 3, 3), "TERNARY")))


def thresholds() -> Any:
    """Return a network of thresholds after sums, with ternary and bipolar weights.

    A ReLU is between the last two convolutions.
    """
    writer = Typed()
    writer.typed("picture", "UINT8")
    last = writer.typed(writer.conv("picture", writer.weights(whole(-1, 1, 5, 4, 3, 3), "TERNARY")), "INT14")
    last = writer.reached(last, 15, "UINT4", 900)
    last = writer.typed(writer.put("MaxPool", [last], kernel_shape=[2, 2], strides=[2, 2]), "UINT4")
    last = writer.typed(writer.conv(last, writer.weights(signs(5, 5, 3, 3), "BIPOLAR"), pads=[0] * 4), "INT32")
    last = writer.typed(writer.put("Relu", [last]), "UINT31")
    return writer.annotated_file(
        writer.conv(last, writer.weights(whole(-2, 1, 3, 5, 1, 1), "INT2"), kernel_shape=[1, 1], pads=[0] * 4)
    )


def signed_input() -> Any:
    """Return a network with a signed input, and with a factor and an offset after its sums."""
    writer = Typed()
    writer.typed("picture", "INT8")
    last = writer.typed(writer.conv("picture", writer.weights(whole(-3, 3, 5, 4, 3, 3), "INT3")), "INT24")
    last = writer.put("Mul", [last, writer.constant(RANDOM.uniform(0.1, 0.4, (1, 5, 1, 1)))])
    last = writer.put("Add", [last, writer.constant(RANDOM.normal(0, 1, (1, 5, 1, 1)))])
    last = writer.reached(last, 7, "INT3", 90, out_bias=-4.0)
    return writer.annotated_file(
        writer.typed(writer.conv(last, writer.weights(whole(-7, 7, 4, 5, 3, 3), "INT4")), "INT16")
    )


def of_signs() -> Any:
    """Return a network of one-bit values, including its input."""
    writer = Typed()
    writer.typed("picture", "BIPOLAR")
    last = writer.conv("picture", writer.weights(signs(5, 4, 3, 3), "BIPOLAR"), pads=[0] * 4)
    last = writer.reached(writer.typed(last, "INT8"), 1, "BIPOLAR", 9, out_scale=2.0, out_bias=-1.0)
    last = writer.conv(last, writer.weights(signs(3, 5, 3, 3), "BIPOLAR"), pads=[0] * 4)
    return writer.annotated_file(writer.typed(last, "INT7"))


def added() -> Any:
    """Return a sum of two maps without thresholds, which a convolution with fixed-point weights reads."""
    writer = Typed()
    writer.typed("picture", "INT4")
    parts = []
    for _ in range(2):
        last = writer.typed(writer.conv("picture", writer.weights(whole(-7, 7, 5, 4, 3, 3), "INT4")), "INT32")
        parts.append(writer.reached(last, 3, "UINT2"))
    total = writer.typed(writer.put("Add", parts), "UINT3")
    kernel = writer.weights(whole(-8, 7, 4, 5, 3, 3) / 8, "FIXED<4,1>")
    return writer.annotated_file(writer.typed(writer.conv(total, kernel), "FIXED<16,13>"))


def matrices() -> Any:
    """Return a flattened image and two matrices, as FINN writes a fully connected network."""
    writer = Typed()
    flat = writer.typed(writer.put("Flatten", [writer.typed("picture", "UINT8")]), "UINT8")
    last = writer.put("MatMul", [flat, writer.weights(whole(-1, 1, 224, 5), "INT2")])
    last = writer.reached(writer.typed(last, "INT32"), 3, "UINT2", 2000)
    last = writer.put("MatMul", [last, writer.weights(whole(-8, 7, 5, 9), "INT4")])
    return writer.annotated_file(writer.typed(last, "INT9"))


GRAPHS: dict[str, tuple[Callable[[], Any], int, int]] = {
    "sums": (sums, 0, 15),
    "sums of weights alone": (sums_of_weights_alone, 0, 255),
    "thresholds": (thresholds, 0, 255),
    "signed input": (signed_input, -128, 127),
    "signs": (of_signs, -1, 1),
    "added": (added, -8, 7),
    "matrices": (matrices, 0, 255),
}
"""Graphs, and the least and greatest integer of their input."""
