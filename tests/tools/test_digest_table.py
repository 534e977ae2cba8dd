"""The rows of designs: every two properties meet, and every header and template is in some design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from boards import board
from cnn.ops import Detection, Op
from host.contract.manifest import manifest_in
from tools.digests.design import HERE, generate, mapping_file, model_of
from tools.digests.onnx_networks import NETWORKS
from tools.digests.table import DESIGNS, Row

ROOT = Path(__file__).resolve().parents[2]

SYSTOLIC = [row for row in DESIGNS if row.style == "systolic"]
STREAMING = [row for row in DESIGNS if row.style == "streaming"]

AXES: dict[str, set[Any]] = {
    "engine": {row.engine for row in SYSTOLIC},
    "bits": {4, 8, 16},
    "dsps": {"plain", "double", "six"},
    "maps": {"chip", "ddr"},
    "batch": {1, 2},
    "board": set(board.names()),
    "network": {row.network for row in SYSTOLIC},
}
LEFT_OUT = {frozenset(("board", "network")), frozenset(("dsps", "network"))}
"""Axes whose values need not meet: a design for each network and board would be too many."""


OWN = {"seven_bits": 8, "zero_points": 8}
"""Bits of the lanes for networks that bring integers of their own."""


def value(row: Row, axis: str) -> object:
    return row.bits or OWN[row.network] if axis == "bits" else getattr(row, axis)


def possible(values: dict[str, Any]) -> bool:
    """Return whether a design can have these values.

    The engine in C++ has one clock, six products need 4 bits and a DSP48E2, and networks with integers of their own
    have a fixed number of bits.
    """
    if values.get("network") in OWN and values.get("bits", OWN[values["network"]]) != OWN[values["network"]]:
        return False
    if values.get("dsps") == "double" and values.get("engine", "rtl") != "rtl":
        return False
    return values.get("dsps") != "six" or (values.get("bits", 4) == 4 and values.get("board") != "pynq-z2")


def test_array_designs_cover_every_pair_of_properties() -> None:
    missing = [
        {left: a, right: b}
        for left, right in combinations(AXES, 2)
        if frozenset((left, right)) not in LEFT_OUT
        for a in sorted(AXES[left], key=str)
        for b in sorted(AXES[right], key=str)
        if possible({left: a, right: b})
        if not any(value(row, left) == a and value(row, right) == b for row in SYSTOLIC)
    ]
    assert not missing


def test_pipelines_have_every_network_board_and_number_of_bits() -> None:
    assert {row.board for row in STREAMING} == set(board.names())
    assert {row.bits for row in STREAMING} == {0, 4, 8, 16}
    files = {path.stem for path in (HERE / "networks").iterdir()}
    assert {row.network for row in STREAMING} == {*files, *NETWORKS} - {"padded"}  # of arrays alone
    calibrated = {(row.network, row.bits) for row in STREAMING if row.bits}
    assert min(Counter(network for network, _ in calibrated).values()) >= 2, "each at two numbers of bits"


def test_design_names_are_unique_and_have_a_mapping_each() -> None:
    assert len({row.name for row in DESIGNS}) == len(DESIGNS) >= 40
    assert {path.stem for path in (HERE / "mappings").iterdir()} == {row.name for row in DESIGNS}
    for row in DESIGNS:
        assert mapping_file(row).is_file(), row.name


@pytest.mark.parametrize("style", ["systolic", "streaming"])
def test_designs_of_each_style_cover_every_operation(style: str) -> None:
    networks = {row.network for row in DESIGNS if row.style == style}
    models = [model_of(network) for network in networks]
    nodes = [node for model in models for graph in (model.network, model.quantized) if graph for node in graph.nodes]
    named = {type(node.op).__name__.removeprefix("Q") for node in nodes}
    named |= {"Detection" for node in nodes if isinstance(node.op, Detection)}
    every = {kind.__name__ for kind in Op.__args__}
    assert every - named == ABSENT[style]


ABSENT = {
    # a softmax in integers and the layers of packages are of pipelines alone
    "systolic": {"Custom", "IntegerSoftmax"},
    # only the array copies values of a map to its padding
    "streaming": {"Pad"},
}


@pytest.mark.engine
def test_schedules_equal_the_values_of_their_rows() -> None:
    for row in SYSTOLIC:
        array = generate(row).mapping.values()["array"]
        dsps = {(1, 0): "plain", (2, 0): "double", (1, 6): "six"}[array["dsp_clock"], array["dsp_products"]]
        maps = "chip" if array["map_depth"] else "ddr"
        found = array["engine"], array["bits"], dsps, maps
        assert found == (row.engine, value(row, "bits"), row.dsps, row.maps), row.name


def test_manifests_of_all_designs_write_every_optional_field() -> None:
    """A generator that forgets an optional field writes a manifest that is valid, and loses what the field says."""
    written: dict[str, set[str]] = {}
    optional: dict[str, set[str]] = {}
    for row in {(row.style, row.network, row.batch, row.maps): row for row in DESIGNS}.values():
        for part in _dataclasses(manifest_in(generate(row).sources)):
            keys = {key for key in fields(part) if "optional" in key.metadata}
            optional.setdefault(type(part).__name__, set()).update(key.name for key in keys)
            set_keys = {key.name for key in keys if getattr(part, key.name) != key.default}
            written.setdefault(type(part).__name__, set()).update(set_keys)
    assert {kind: names - written[kind] for kind, names in optional.items() if names - written[kind]} == NEVER_WRITTEN


NEVER_WRITTEN = {
    # the input image is a map of its own in DDR, and its zero point is 0
    "SystolicInput": {"map_buffer", "pitch", "place", "turn", "zero_point"},
    # every map buffer of these small designs holds one map at a time
    "SystolicRegion": {"place"},
    # a pipeline computes one frame per start (host/contract/streaming.py)
    "StreamingManifest": {"batch", "passes"},
    # the outputs of these networks are symmetric
    "StreamingOutput": {"zero_point"},
}
"""Optional fields of the manifest that no design sets, by class."""


def _dataclasses(value: object) -> Iterator[Any]:
    """Yield a dataclass instance and all that it holds."""
    if is_dataclass(value):
        yield value
        for key in fields(value):
            yield from _dataclasses(getattr(value, key.name))
    elif isinstance(value, (tuple, list)):
        for element in value:
            yield from _dataclasses(element)
