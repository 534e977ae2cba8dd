"""The needs of layers: each row of the table is met at the needed number, and not below."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from boards.errors import RangeError
from scheduler.systolic.array import Array
from scheduler.systolic.needs import NEEDS, SEARCHED, BufferNeed, UnitNeed, fits_depths, least_units, unmet_needs
from scheduler.systolic.shape import LayerShape, shapes_of
from scheduler.systolic.tiling import BufferNeeds
from scheduler.systolic.workload import workload_of
from tests.support.errors import raises
from tests.support.quantised import Builder

BUFFERS = BufferNeeds(8, 9, 10, 11, 12)


def demanding() -> LayerShape:
    """Return a layer that needs something of every unit but of products of maps."""
    workload = workload_of(Builder(3, 6, 5).conv(8, 1).network())
    (shape,) = shapes_of(workload.network, workload.layers, Array(2, 8, 8))
    units: dict[str, Any] = {"upscale": 2, "table_depth": 256, "table_slopes": True, "late_offsets": 1, "sum_bits": 20}
    return replace(shape, **units, separate_taps=9, added=True, stride=3, from_chip=True)


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.name)
def test_need_is_met_at_its_value_and_not_below(need: BufferNeed | UnitNeed) -> None:
    shape = replace(demanding(), multiplied=need.name == "map_products")
    value = need.of(shape, BUFFERS)
    assert value > 0

    def broken(have: int) -> list[str]:
        """Return the needs that an array which has so much of this one does not meet."""
        numbers = dict.fromkeys(Array.__dataclass_fields__, 1 << 20)
        array: Any = SimpleNamespace(**{**numbers, need.name: have})
        return [error.message() for error in unmet_needs(shape, BUFFERS, array)]

    assert broken(value) == []
    (message,) = broken(value - 1)
    assert need.name in message


def test_least_units_equal_the_largest_needs_of_the_layers() -> None:
    plain = replace(demanding(), upscale=1, table_depth=0, separate_taps=1, added=False, from_chip=False)
    units = least_units([plain, demanding()])
    assert units == least_units([demanding()])
    assert least_units([plain])["map_stride"] == 1
    with raises(RangeError, what="map_stride of the array", got=2, low=3):
        raise NEEDS[[need.name for need in NEEDS].index("map_stride")].error(3, Array(2, 8, 8, map_stride=2))


@pytest.mark.parametrize("name", SEARCHED)
def test_fits_depths_is_exact_to_the_last_word(name: str) -> None:
    depths = [getattr(BUFFERS, searched) for searched in SEARCHED]
    assert fits_depths(BUFFERS, depths)
    depths[SEARCHED.index(name)] -= 1
    assert not fits_depths(BUFFERS, depths)
