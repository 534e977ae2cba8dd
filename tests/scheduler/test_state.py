"""Tiles that the model extrapolates cost the same as tiles that it steps through one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from boards.board import load
from cnn.quantized import QuantizedNetwork
from scheduler.hardware.ddr import ddr_rate, ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.model import progress as pass_state
from scheduler.systolic.model.cost import cost
from tests.support.quantised import Builder, tiny_yolo
from tests.support.schedules import first_fit

ARRAY = Array(13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=1024, channel_tiles=64)


@pytest.mark.parametrize(
    "network",
    [tiny_yolo(208), Builder(3, 200, 60).conv(16, 3).pool().conv(250, 1).pool(1).conv(200, 3).network()],
    ids=["tiny-yolo", "many tiles"],
)
@pytest.mark.parametrize("share", [0.85, 0.1])
def test_sweep_extrapolation_equals_stepping(
    network: QuantizedNetwork, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule, ddr = (
        first_fit(network, ARRAY),
        ddr_timing(load("zcu104"), 300, ddr_rate(load("zcu104"), efficiency=share)),
    )
    together = [layer.total for layer in cost(schedule, ddr).layers]
    monkeypatch.setattr(pass_state, "SETTLED", 10_000)
    stepped = [layer.total for layer in cost(schedule, ddr).layers]
    assert together == pytest.approx(stepped, rel=0.01)


def test_sweep_half_a_period_at_the_end_equals_stepping(monkeypatch: pytest.MonkeyPatch) -> None:
    # A pool has 8 row tiles of 13 rows, which write seven and six rows in turn. Only whole periods are extrapolated.
    network = Builder(3, 130, 128).conv(16, 1).pool().at(1).conv(8, 1, 2).network()
    schedule, ddr = first_fit(network, ARRAY), ddr_timing(load("zcu104"), 300)
    together = cost(schedule, ddr).layers[1].total
    monkeypatch.setattr(pass_state, "SETTLED", 10_000)
    assert together == pytest.approx(cost(schedule, ddr).layers[1].total, rel=0.002)


def test_sweep_weights_that_get_late_slowly_equal_stepping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four frames of a fully connected layer have 256 weight tiles, each slightly later than the one before."""
    network = Builder(3, 2, 2).conv(64, 1).dense(8192).network()
    array = Array(2, 32, 16, 1, 2, 2, row_depth=64, weight_depth=64, kept_depth=64, chunk=8, channel_tiles=256)
    ddr = replace(ddr_timing(load("zcu104"), 300), milli_bytes=25_837)
    dense = first_fit(network, array, 4).tilings[1]
    assert dense.inputs_resident
    together = cost(first_fit(network, array, 4), ddr).layers[1].total
    monkeypatch.setattr(pass_state, "SETTLED", 10_000)
    assert together == pytest.approx(cost(first_fit(network, array, 4), ddr).layers[1].total, rel=0.001)
