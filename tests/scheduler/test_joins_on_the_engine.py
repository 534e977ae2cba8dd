"""Joins, upsamples and activation tables on the generated code, compared bit by bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boards.errors import SeveralFaultsError
from cnn.maps import Padding
from cnn.quantized import QuantizedNetwork
from scheduler.systolic.layers import lower
from scheduler.systolic.network.copies import with_copies
from scheduler.systolic.rules import check_schedule
from scheduler.systolic.schedule import schedule_of
from systolic.execution.build import Variant
from tests.support.arrays.joins import (
    ARRAYS,
    NETWORKS,
    SMALL,
    many_channels,
    multiplied,
    neck,
    reorganised,
    spread,
)
from tests.support.arrays.run import Run
from tests.support.quantised import Builder
from tests.support.schedules import first_fit, legal_tilings, staying

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", ARRAYS)
def test_engine_joins_are_bit_exact(name: str, network: str, run: Run) -> None:
    drawn = NETWORKS[network](ARRAYS[name].bits)
    assert run(name, check_schedule(first_fit(drawn, ARRAYS[name])), 1) == 0


def test_engine_joins_of_a_batch_are_bit_exact(run: Run) -> None:
    for network in (neck(), reorganised(), multiplied(), many_channels(), spread()):
        assert run("8 bits", check_schedule(first_fit(network, SMALL, 3)), 2) == 0


def test_engine_joins_with_ap_int_are_bit_exact(run: Run) -> None:
    for name in (
        "neck",
        "curved",
        "in_pieces",
        "pooled",
        "offset",
        "late",
        "reorganised",
        "multiplied",
        "many_channels",
        "spread",
        "moved",
    ):
        network = NETWORKS[name](4)
        assert run("4 bits", check_schedule(first_fit(network, ARRAYS["4 bits"])), 3, Variant(ap_int=True)) == 0


KINDS = (
    "conv",
    "conv",
    "depthwise",
    "pool",
    "window",
    "upsample",
    "reorg",
    "depth",
    "concat",
    "slice",
    "add",
    "product",
    "curve",
)


@st.composite
def joined(draw: st.DrawFn, bits: int) -> QuantizedNetwork:
    """Draw a random network of convolutions, pools, and joins of earlier nodes."""
    picture = draw(st.sampled_from((3, 3, 9))), draw(st.integers(4, 12)), draw(st.integers(4, 12))
    build = Builder(*picture, seed=draw(st.integers(0, 99)), bits=bits)
    channels = st.integers(1, 26)
    build.conv(draw(channels), 3)
    for _ in range(draw(st.integers(2, 7))):
        here = build.shape
        alike = [
            i
            for i, node in enumerate(build.nodes)
            if i and (node.shape.height, node.shape.width) == (here.height, here.width)
        ]
        equal = [i for i in alike if build.nodes[i].shape == here]
        kind = draw(st.sampled_from(KINDS))
        if kind == "reorg" and not (here.channels % 4 or here.height % 2 or here.width % 2):
            build.reorg(order=draw(st.sampled_from(("block", "darknet"))))
            continue
        if kind == "depth" and here.channels % 4 == 0 and max(here.height, here.width) <= 12:
            build.depth(*draw(st.sampled_from(((2, 2), (2, 2), (1, 2), (2, 1), (1, 4)))))
            continue
        if kind == "pool" and min(here.height, here.width) >= 2:
            build.pool(draw(st.sampled_from((1, 2))))
        elif kind == "window":
            size = draw(st.integers(1, min(6, here.height, here.width)))
            top, left, bottom, right = (draw(st.integers(0, size - 1)) for _ in range(4))
            build.window(size, draw(st.integers(1, 4)), Padding(top, left, bottom, right))
        elif kind == "upsample" and max(here.height, here.width) <= 12:
            build.upsample()
        elif kind == "concat" and len(alike) > 1:
            build.concat(*draw(st.lists(st.sampled_from(alike), min_size=2, max_size=3, unique=True)))
        elif kind == "slice" and here.channels > 1:
            first = draw(st.integers(0, here.channels - 1))
            build.part(first, draw(st.integers(1, here.channels - first)))
        elif kind == "add" and len(equal) > 1:
            build.add(*draw(st.lists(st.sampled_from(equal), min_size=2, max_size=3, unique=True)))
        elif kind == "product" and len(equal) > 1:
            build.multiply(*draw(st.lists(st.sampled_from(equal), min_size=2, max_size=2, unique=True)))
        elif kind == "curve":
            build.curve(draw(st.booleans()))
        elif kind == "depthwise":
            build.conv(0, 3, depthwise=True)
        else:
            build.conv(draw(channels), draw(st.sampled_from((1, 3))))
    return build.conv(draw(channels), 1, wide=draw(st.booleans())).network()


@pytest.mark.parametrize("name", ARRAYS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_engine_every_legal_tiling_of_joins_is_bit_exact(name: str, data: st.DataObject, run: Run) -> None:
    array = ARRAYS[name]
    network = with_copies(data.draw(joined(array.bits)))
    try:
        choices = legal_tilings(network, array)
    except SeveralFaultsError:
        return  # a join without a reader
    if not all(choices):
        return
    chosen = [
        replace(data.draw(st.sampled_from(fitting)), on_chip=may and data.draw(st.integers(0, 3)) > 0)
        for fitting, may in zip(choices, staying(network, lower(network), array), strict=True)
    ]
    assert run(name, check_schedule(schedule_of(network, array, chosen)), 1) == 0
