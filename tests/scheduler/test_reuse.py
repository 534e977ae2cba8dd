"""The report of a tiling, tile by tile, compared with the sums of the model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.model.cost import layer_traffic
from scheduler.systolic.reuse import reuse, steps, strip
from scheduler.systolic.schedule import ScheduledLayer
from scheduler.systolic.shape import rows_in, shape_of
from scheduler.systolic.tiling import column_cuts, tilings
from tests.support.quantised import Builder

NETWORKS = {
    "picture": Builder(3, 21, 18).conv(24, 3).network(),
    "map": Builder(3, 20, 20).conv(16, 3).conv(40, 3, stride=2).network(),
    "wide kernel": Builder(3, 20, 20).conv(16, 3).conv(40, 5).network(),
}


def scheduled_layers(name: str) -> Iterator[tuple[ScheduledLayer, int]]:
    """Yield every tiling of the network's last layer on five rows, with the weight tiles that the model counts."""
    network = NETWORKS[name]
    array = Array(5, 16, 8)
    layer = lower(network)[-1]
    shape = shape_of(network, layer, array)
    for tiling in tilings(shape, array.rows, column_cuts(network, layer, array)):
        scheduled = ScheduledLayer(layer, shape, tiling, array)
        traffic = layer_traffic(array.rows, array.columns, array.word_bytes, shape, tiling)
        yield scheduled, traffic.weights // (shape.steps * array.columns * array.word_bytes)


@pytest.mark.parametrize("name", NETWORKS)
def test_steps_read_the_weights_and_rows_that_the_model_counts(name: str) -> None:
    for scheduled, weight_tiles in scheduled_layers(name):
        order = list(steps(scheduled))
        places = {(step.row_tile, step.channel_tile) for step in order}
        assert len(order) == len(places) == scheduled.row_tiles * scheduled.channel_tiles
        read = sum(step.reads_weights for step in order)
        assert read * scheduled.tiling.columns.count == weight_tiles
        reread = reuse(NETWORKS[name], scheduled)
        assert reread.weight_reads * scheduled.channel_tiles == weight_tiles
        assert sorted(step.row_tile for step in order if step.reads_rows) == list(range(scheduled.row_tiles))
        assert (reread.map_reads > 1) == (scheduled.tiling.columns.count > 1)


@pytest.mark.parametrize("name", NETWORKS)
def test_strip_row_tiles_together_read_all_rows_once(name: str) -> None:
    for scheduled, _ in scheduled_layers(name):
        tile = scheduled.tiling.columns.tiles[0]
        strips = [strip(NETWORKS[name], scheduled, number, tile) for number in range(scheduled.row_tiles)]
        assert strips[0].first == strips[0].fresh == 0
        assert all(below.fresh == above.end for above, below in pairwise(strips))
        fresh = sum(each.end - each.fresh for each in strips)
        assert fresh == rows_in(scheduled.shape, scheduled.array.rows, scheduled.row_tiles)
        assert reuse(NETWORKS[name], scheduled).buffered_rows >= max(each.end - each.first for each in strips)
