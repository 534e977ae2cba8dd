"""A search space small enough to price every candidate."""

from __future__ import annotations

from scheduler.systolic.search.space import (
    Space,
)

SMALL = Space(
    rows=(3, 4),
    shapes=((8, 8), (8, 4)),
    save_rows=(1, 2),
    chunks=(8,),
    map_ports=(1, 2),
    weight_ports=(2,),
    row_depths=(64, 512),
    weight_depths=(128, 512),
    kept_depths=(32,),
    column_tiles=2,
)
