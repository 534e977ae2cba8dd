"""Activations and other functions that are applied to each value separately.

The requantiser of a layer computes each of ``ACTIVATIONS`` (linear, leaky, ReLU, ReLU6) with one multiplication. For
every other function, in ``FUNCTIONS``, the accelerator reads the outputs from a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boards.errors import ChoiceError
from cnn.extending.registry import Registry
from cnn.maps import FloatArray

Floats = npt.NDArray[np.float64]


LEAKY_SLOPE = 0.1
SLOPES: Mapping[str, float] = {"linear": 1.0, "leaky": LEAKY_SLOPE, "relu": 0.0, "relu6": 0.0}
"""The slope below 0 of each activation that a requantiser computes with one multiplication."""

ACTIVATIONS = tuple(SLOPES)
"""The activations of layers. Every other function is an ``Activate``, which the accelerator computes by a table."""

UNIT = "unit"
"""y = x clipped to 0…1. Networks that were quantised by training have it; darknet's cfg files do not."""
SYMMETRIC = "symmetric"
"""y = x clipped to −1…1."""
SIGN = "sign"
"""y = −1 if x < 0, else +1."""


def activate(array: FloatArray, name: str) -> FloatArray:
    """Return the activation ``name`` of every value, float32 in the shape of ``array``. ``array`` may be overwritten.

    Raises:
        ChoiceError: There is no activation of that name.
    """
    if name == "leaky":
        np.maximum(array, array * np.float32(LEAKY_SLOPE), out=array)
    elif name == "relu":
        np.maximum(array, np.float32(0), out=array)
    elif name == "relu6":
        np.clip(array, np.float32(0), np.float32(6), out=array)
    elif name == UNIT:
        np.clip(array, np.float32(0), np.float32(1), out=array)
    elif name == SYMMETRIC:
        np.clip(array, np.float32(-1), np.float32(1), out=array)
    elif name == SIGN:
        array = np.where(array < 0, np.float32(-1), np.float32(1))
    elif name != "linear":
        raise ChoiceError("the activation", name, (*ACTIVATIONS, UNIT, SYMMETRIC, SIGN))
    return array


@dataclass(frozen=True)
class Function:
    """A function of one value, and the default values of its parameters: an entry of ``FUNCTIONS``.

    Attributes:
        values: The function. It takes inputs, float64 of any shape, and the parameters, and returns the outputs.
        defaults: The default values of the parameters.
    """

    values: Callable[..., Any]
    defaults: tuple[float, ...] = ()


MAX_POWER = 88.0
"""The greatest input of ``exp``: the largest integer whose power of e is finite in float32."""


def logistic(x: Floats) -> Floats:
    """Return 1 / (1 + exp(−x)), in a form that cannot overflow."""
    return np.asarray(0.5 * np.tanh(0.5 * x) + 0.5)


def softplus(x: Floats) -> Floats:
    """Return log(1 + exp(x))."""
    return np.asarray(np.logaddexp(0.0, x))


def _error_function(x: Floats) -> Floats:
    """Return erf(x) with an error below 1.2e-7: Numerical Recipes in C, 2nd edition, equation 6.2.8 (erfcc)."""
    t = 1.0 / (1.0 + 0.5 * np.abs(x))
    terms = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587)
    series = np.polynomial.polynomial.polyval(t, (*terms, -0.82215223, 0.17087277))
    return np.asarray(np.copysign(1.0 - t * np.exp(-x * x + series), x))


def _gelu(x: Floats) -> Floats:
    return 0.5 * x * (1.0 + _error_function(x / np.sqrt(2.0)))


def _gelu_by_tanh(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3))))


def _hard_sigmoid(x: Floats, alpha: float, beta: float) -> Floats:
    return np.clip(alpha * x + beta, 0.0, 1.0)


def _elu(x: Floats, alpha: float) -> Floats:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _selu(x: Floats, alpha: float, gamma: float) -> Floats:
    return gamma * _elu(x, alpha)


def _celu(x: Floats, alpha: float) -> Floats:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0) / alpha), x)


def _ramp(x: Floats) -> Floats:
    return np.where(x > 0, 1.1 * x, 0.1 * x)


def _hard_tanh_leaking(x: Floats) -> Floats:
    return np.where(x < 0, 0.001 * x, np.where(x > 1, 0.001 * (x - 1) + 1, x))


def _sigmoid_of_pieces(x: Floats) -> Floats:
    outside = np.where(x < -4, 0.01 * (x + 4), 0.01 * (x - 4) + 1)
    return np.where(np.abs(x) > 4, outside, 0.125 * x + 0.5)


def _stair(x: Floats) -> Floats:
    floor = np.floor(x)
    return np.floor(x / 2) + np.where(floor % 2 == 0, 0.0, x - floor)


def _hard_mish(x: Floats) -> Floats:
    return np.where(x > 0, x, np.where(x > -2, x * x / 2 + x, 0.0))


def _interpolated(x: Floats, first: float, distance: float, *values: float) -> Floats:
    """Return values interpolated linearly between equidistant points; inputs beyond the ends give the end's value.

    Args:
        x: The inputs.
        first: The first point.
        distance: The distance from one point to the next.
        values: The value at each point.
    """
    return np.asarray(np.interp((x - first) / distance, np.arange(len(values)), values))


_OWN: Mapping[str, Function] = {
    "abs": Function(np.abs),
    "affine": Function(lambda x, gain, offset: gain * x + offset, (1.0, 0.0)),
    "celu": Function(_celu, (1.0,)),
    "clip": Function(np.clip, (0.0, 1.0)),
    "elu": Function(_elu, (1.0,)),
    "erf": Function(_error_function),
    "exp": Function(lambda x: np.exp(np.minimum(x, MAX_POWER))),
    "gelu": Function(_gelu),
    "gelu_tanh": Function(_gelu_by_tanh),
    "hard_mish": Function(_hard_mish),
    "hard_sigmoid": Function(_hard_sigmoid, (0.2, 0.5)),
    "hard_swish": Function(lambda x, alpha, beta: x * _hard_sigmoid(x, alpha, beta), (1 / 6, 0.5)),
    "hard_tanh_leaking": Function(_hard_tanh_leaking),
    "interpolated": Function(_interpolated, (-1.0, 1.0, -1.0, 0.0, 1.0)),
    "leaky_relu": Function(lambda x, slope: np.where(x < 0, slope * x, x), (0.01,)),
    "logistic": Function(logistic),
    "logistic_about_0": Function(lambda x: 2 * logistic(x) - 1),
    "mish": Function(lambda x: x * np.tanh(softplus(x))),
    "ramp": Function(_ramp),
    "selu": Function(_selu, (1.67326319217681884765625, 1.05070102214813232421875)),
    "sigmoid_of_pieces": Function(_sigmoid_of_pieces),
    "sign": Function(lambda x: np.where(x > 0, 1.0, -1.0)),
    "silu": Function(lambda x: x * logistic(x)),
    "softplus": Function(softplus),
    "sqrt": Function(lambda x: np.sqrt(np.maximum(x, 0.0))),
    "softsign": Function(lambda x: x / (1.0 + np.abs(x))),
    "stair": Function(_stair),
    "tanh": Function(np.tanh),
    "tanh_softplus": Function(lambda x: np.tanh(softplus(x))),
    "thresholded_relu": Function(lambda x, threshold: np.where(x > threshold, x, 0.0), (1.0,)),
}

FUNCTIONS: Registry[Function] = Registry(
    "systolic.functions", _OWN, "a cnn.activations.Function", lambda value: isinstance(value, Function)
)
"""All functions, by their names in ``Activate``. The default parameters are ONNX's defaults."""
