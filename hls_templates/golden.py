"""Generates the standalone C++ golden program of a network: generic functions, and one call per layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from boards.errors import ChoiceError, InvalidValueError
from boards.templates import comment, identifier
from hls_templates.render import render

MAGIC = "GOLDEN01"
OPERATIONS = (
    "input",
    "convolution",
    "dense",
    "average_pool",
    "add",
    "multiply",
    "activate",
    "max_pool",
    "concat",
    "slice",
    "reorg",
    "space_to_depth",
    "depth_to_space",
    "repeated",
    "upsample",
    "top_k",
    "softmax",
    "interpolate",
    "custom",
)
"""The operations of layers. The template has a C++ function for each, except for "custom", whose function is given."""
FORMS = ("requantiser", "multiply_shift", "thresholds")
"""The forms of requantisation: the three arithmetic forms of ``cnn.requantise``."""
STEPS = (
    *("map", "reshape", "transpose", "concat", "softmax", "log_softmax", "labels", "greatest", "sigmoid", "whole"),
)
"""The kinds of steps that compute a named output. They are the kinds of ``host.contract.named_outputs``.

Each step takes arrays from a stack and pushes its result. "map" pushes the values of a map. For each position, "labels"
pushes the channels of the k greatest values, and "greatest" pushes these values. "whole" marks values as int64 labels.
"""

NEAR_HALF = 12
"""The number of low bits of a product that are ignored if halves are rounded to even (cnn/quantized.py)."""


@dataclass(frozen=True)
class GoldenType:
    """An integer datatype of feature maps in the golden program.

    Attributes:
        name: The QONNX name.
        carrier: The C integer type that stores a value in a dump of a feature map, which is also the suffix of the
            dump's file.
        bytes: The bytes of a value in a dump of a feature map.
        low: The least value.
        high: The greatest value.
        step: The difference between two neighbouring values.
    """

    name: str
    carrier: str
    bytes: int
    low: int
    high: int
    step: int = 1


@dataclass(frozen=True)
class GoldenLayer:
    """A layer in the golden program: one function call that computes one feature map.

    Attributes:
        index: The index of the map that the call writes.
        name: The name of the layer.
        operation: The function, one of OPERATIONS.
        inputs: The indices of the maps that the call reads.
        type: The name of the GoldenType of the output.
        values: The constants that the template needs for this operation, by name.
        multipliers: The multiplier of each input of an addition.
        form: The form of requantisation, one of FORMS.
        halves: The rounding of halves: 0 up, 1 to even, 2 to odd.
        function: The C++ function of a custom layer.
        parameters: The arguments of that function.
    """

    index: int
    name: str
    operation: str
    inputs: tuple[int, ...]
    type: str
    values: Mapping[str, int] = field(default_factory=dict)
    multipliers: tuple[int, ...] = ()
    form: str = FORMS[0]
    halves: int = 0
    function: str = ""
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True)
class GoldenStep:
    """One operation by which an output that the network's file names is computed from feature maps.

    Attributes:
        kind: One of STEPS.
        numbers: The arguments of the step. For "map": the index of the map.
        scale: For "map": the real value of one unit of its integers.
        zero_point: For "map": the integer that represents 0.
    """

    kind: str
    numbers: tuple[int, ...]
    scale: float = 1.0
    zero_point: int = 0

    @property
    def exact_scale(self) -> str:
        """The scale of the map's integers as a hexadecimal C++ literal, which is exact."""
        return self.scale.hex()


@dataclass(frozen=True)
class GoldenOutput:
    """An output that the network's file names, with the operations that compute it."""

    name: str
    steps: tuple[GoldenStep, ...]


@dataclass(frozen=True)
class GoldenValues:
    """The description of a network from which its golden program, golden.cpp, is rendered.

    Attributes:
        title: The name of the network.
        channels: The channels of the picture.
        height: The rows of the picture.
        width: The columns of the picture.
        parameter_bytes: The size of golden.bin.
        blocks: The number of layers with parameters in golden.bin.
        types: The datatypes of the layers.
        layers: The layers' function calls, in order.
        functions: The C++ bodies of the functions that custom layers call, by name.
        outputs: The outputs that the network's file names.
    """

    title: str
    channels: int
    height: int
    width: int
    parameter_bytes: int
    blocks: int
    types: tuple[GoldenType, ...]
    layers: tuple[GoldenLayer, ...]
    functions: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[GoldenOutput, ...] = ()


def golden_source(values: GoldenValues) -> str:
    """Return the text of golden.cpp, the standalone C++ program that computes a network's exact integers.

    Raises:
        InvalidValueError: The name of a layer is not an identifier, or occurs twice.
        ChoiceError: The program does not know the operation or the form of a layer, or a step of an output.
    """
    layers = [_checked(layer) for layer in values.layers]
    names = [layer.name for layer in layers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidValueError(
            "the name of a layer", twice[0], "a name that no other layer has", remedy="rename one of the two layers"
        )
    types = [replace(t, name=identifier(t.name), carrier=identifier(t.carrier)) for t in values.types]
    fields = {**vars(values), "title": comment(values.title), "layers": layers, "types": types, "magic": MAGIC}
    fields["outputs"] = [_checked_output(output) for output in values.outputs]
    fields["functions"] = {identifier(name): body.strip("\n") for name, body in values.functions.items()}
    fields["to_even"], fields["near_half"] = any(layer.halves for layer in layers), NEAR_HALF
    fields["maps"] = max((layer.index for layer in layers), default=-1) + 1
    return render("golden/golden.cpp.j2", fields)


def _checked_output(output: GoldenOutput) -> GoldenOutput:
    """Return a named output of the network with its name made safe for a C++ comment and a string literal.

    The name comes from the network's file, which is untrusted.
    """
    for step in output.steps:
        if step.kind not in STEPS:
            raise ChoiceError("the step of an output in the golden program", step.kind, STEPS, where=output.name)
    return replace(output, name=comment(output.name))


def _checked(layer: GoldenLayer) -> GoldenLayer:
    if layer.operation not in OPERATIONS:
        raise ChoiceError("the operation in the golden program", layer.operation, OPERATIONS, where=layer.name)
    if layer.form not in FORMS:
        raise ChoiceError("the form in the golden program", layer.form, FORMS, where=layer.name)
    function = identifier(layer.function) if layer.function else ""
    return replace(layer, name=identifier(layer.name), type=identifier(layer.type), function=function)
