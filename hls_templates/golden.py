"""The standalone C++ golden program of one network: generic functions, and one call a layer."""

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
FORMS = ("requantiser", "multiply_shift", "thresholds")
STEPS = (
    *("map", "reshape", "transpose", "concat", "softmax", "log_softmax", "labels", "greatest", "sigmoid", "whole"),
)

NEAR_HALF = 12
"""Bits of a product that do not count where halves go to even (cnn/quantized.py)."""


@dataclass(frozen=True)
class GoldenType:
    """A datatype by its QONNX name, the C integer that carries it in a dump, and the step between two values."""

    name: str
    carrier: str
    bytes: int
    low: int
    high: int
    step: int = 1


@dataclass(frozen=True)
class GoldenLayer:
    """One call. ``values``: the constants that the template reads for this operation, by name.

    index: which map it writes; inputs: which it reads. type: the name of one of the program's GoldenTypes. form: of
    FORMS, how sums become values. halves: 0 where these are rounded up, 1 to even, 2 to odd. function, parameters: of a
    custom one.
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
    """One step towards an output of the network's file, as the host runs it, by its kind in STEPS. numbers: of a map
    its index; scale, zero_point: what its integers are worth."""

    kind: str
    numbers: tuple[int, ...]
    scale: float = 1.0
    zero_point: int = 0

    @property
    def exact_scale(self) -> str:
        """The scale as C++ reads it, to the last bit."""
        return self.scale.hex()


@dataclass(frozen=True)
class GoldenOutput:
    """An output of the network's file."""

    name: str
    steps: tuple[GoldenStep, ...]


@dataclass(frozen=True)
class GoldenValues:
    """channels, height, width: of the picture. parameter_bytes, blocks: size and layers of golden.bin. functions: by
    name the C++ bodies of those that custom layers call. outputs: of the network's file."""

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
    """Return golden.cpp.

    Raises InvalidValueError if a layer's name is not an identifier or occurs twice, ChoiceError if the program does not
    know the operation or the form of a layer, or a step of an output.
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
    """A file may give its outputs any name: only what can do no harm in a comment and between quotes stays of it."""
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
