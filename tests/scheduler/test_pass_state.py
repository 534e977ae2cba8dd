"""Tiles that are taken together cost what they cost one after the other."""

from __future__ import annotations

import pytest
from quantised import Builder, tiny_yolo

from boards.board import load
from cnn.quantized import QuantizedNetwork
from scheduler import pass_state
from scheduler.array import Array
from scheduler.cost import cost
from scheduler.link import link_of
from scheduler.tile import tile

ARRAY = Array(13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=1024, channel_tiles=64)


@pytest.mark.parametrize(
    "network",
    [tiny_yolo(208), Builder(3, 200, 60).conv(16, 3).pool().conv(250, 1).pool(1).conv(200, 3).network()],
    ids=["tiny-yolo", "many tiles"],
)
@pytest.mark.parametrize("share", [0.85, 0.1])
def test_tiles_by_their_growth(network: QuantizedNetwork, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, link = tile(network, ARRAY), link_of(load("zcu104"), 300, share)
    together = [layer.total for layer in cost(schedule, link).layers]
    monkeypatch.setattr(pass_state, "SETTLED", 10_000)
    stepped = [layer.total for layer in cost(schedule, link).layers]
    assert together == pytest.approx(stepped, rel=0.01)
