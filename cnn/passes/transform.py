"""Transformations of networks: each runs to a fixed point, and golden results are compared after every change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from boards.errors import InvalidValueError, MismatchError, RangeError, StateError, shown
from cnn.extending.registry import Registry
from cnn.float_model import run_float
from cnn.integer_model import run_integer
from cnn.network import Network
from cnn.passes.folding import convolve_picture, fold_pointwise, merge_tables
from cnn.passes.view import N, checked, ends
from cnn.quantisation.batch_norm import fold_batch_norms
from cnn.quantized import QuantizedNetwork, on_host

Transformation: TypeAlias = Callable[[Any], Any]
"""Network → network, or quantised network → quantised network. Where nothing is to be done, it returns what it got."""

PASSES: Registry[Transformation] = Registry(
    "systolic.passes",
    {
        "fold_batch_norms": fold_batch_norms,
        "fold_pointwise": fold_pointwise,
        "merge_tables": merge_tables,
        "convolve_picture": convolve_picture,
    },
)
"""By name; a package adds its own by the entry points systolic.passes."""

MOST_ROUNDS = 100
"""A pass that still changes something after so many rounds will not end."""

TOLERANCE = 1e-4
"""Of floats, as a share of an output's greatest value. Integers are equal."""

Pixels = npt.NDArray[np.uint8]


def transformed(network: N, *passes: str | Transformation, picture: Pixels | None = None) -> N:
    """Return the network after each pass in turn, every one repeated until it changes nothing.

    Args:
        network: The network.
        passes: Names of PASSES, or functions.
        picture: uint8 [channels, height, width], for the comparison of golden results; noise if it is None.

    Raises:
        ChoiceError: There is no pass of a name.
        InvalidValueError: A pass returns something else than a network.
        StateError: A pass never ends.
        MismatchError: A pass changes the input or the number of outputs.
        RangeError: A pass changes an output: floats by more than 1e-4 of its greatest value, integers at all.
    """
    for each in passes:
        run = PASSES.named(each, "pass") if isinstance(each, str) else each
        network = _settled(network, run, each if isinstance(each, str) else name_of(run), picture)
    return network


def name_of(run: Transformation) -> str:
    """Return the name of a pass in errors."""
    return str(getattr(run, "__name__", run))


def _settled(network: N, run: Callable[[N], N], name: str, picture: Pixels | None) -> N:
    for _ in range(MOST_ROUNDS):
        changed = run(network)
        if changed is network:
            break
        if type(changed) is not type(network):
            required = f"a {type(network).__name__} of {network.name!r}, or the one that it got"
            raise InvalidValueError("the result", changed, required, where=f"the pass {shown(name)}")
        _compare(network, checked(changed), name, picture)
        network = changed
    else:
        state = f"still changes {network.name!r} after {MOST_ROUNDS} rounds"
        remedy = "return the very network that it got if nothing is left to do"
        raise StateError(f"the pass {shown(name)}", state, remedy=remedy)
    return network


def _compare(source: N, network: N, name: str, picture: Pixels | None) -> None:
    """Raise an error if golden results differ."""
    shape, where = source.input_shape, f"the pass {shown(name)}"
    if network.input_shape != shape:
        raise MismatchError("the shape of the input", str(network.input_shape), str(shape), where=where)
    sides = (shape.channels, shape.height, shape.width)
    frame = np.random.default_rng(0).integers(0, 256, sides, np.uint8) if picture is None else picture
    results, expected = results_of(network, frame), results_of(source, frame)
    if len(results) != len(expected):
        raise MismatchError("the number of outputs", len(results), len(expected), where=where)
    exact = isinstance(source, QuantizedNetwork)
    for number, (result, golden) in enumerate(zip(results, expected, strict=True)):
        fits = result.shape == golden.shape
        error = float(np.abs(result.astype(np.float64) - golden).max(initial=0)) if fits else np.inf
        most = 0 if exact else TOLERANCE * float(np.abs(golden).max(initial=1e-6))
        if not error <= most:
            raise RangeError(f"the change of output {number} of {source.name!r}", error, 0, most, where=where)


def results_of(network: Network | QuantizedNetwork, picture: Pixels) -> list[npt.NDArray[Any]]:
    """What leaves a network for a picture uint8 [channels, height, width], in the order of its nodes: floats, or the
    integers that the host reads."""
    if isinstance(network, Network):
        floats = run_float(network, picture.astype(np.float32) / np.float32(255))
        return [floats[i] for i in ends(network)]
    read = {
        i for node in network.nodes if on_host(node.op) for i in node.inputs if not on_host(network.nodes[i].op)
    } | {i for i in ends(network) if not on_host(network.nodes[i].op)}
    integers = run_integer(network, picture)
    return [cast("npt.NDArray[Any]", integers[i]) for i in sorted(read)]
