"""The sums that ``pool`` stores for the row tile below: no read comes too soon after the write of the same address."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hls_templates.headers import SIMULATION, fixed_files, include_folders
from hls_templates.systolic.sources import systolic_sources
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.shape import shape_of
from scheduler.systolic.tiling import STORED_SUMS_DISTANCE, Tiling, broken_tiling_rules, column_cuts
from systolic.execution.compiler import compiler
from tests.support.engine_values import values
from tests.support.quantised import Builder

KERNEL = Path(__file__).parent / "kernels" / "stored_sums.cpp"
ARRAY = Array(3, 8, 8, save_rows=2, row_depth=512, weight_depth=256, kept_depth=64, chunk=8, channel_tiles=16)
"""An odd number of rows, so that pools of both strides store sums, and enough saved rows for one step per column."""

DECLARED = "static sums_t stored_sums[KEPT_DEPTH];"


def distances(folder: Path) -> dict[tuple[int, int, int, int], int]:
    """Return the fewest iterations between two uses of an address, by (stride, width, channel tiles, inputs resident).

    The generated ``pool`` runs with a recorder in place of the memory.
    """
    sources = systolic_sources(values(ARRAY))
    assert DECLARED in sources["pool.h"]
    sources["pool.h"] = sources["pool.h"].replace(DECLARED, "auto &stored_sums = recorder;")
    for name, text in sources.items():
        (folder / name).write_text(text)
    command = [
        compiler(),
        "-std=c++17",
        "-w",
        f"-I{folder}",
        f"-I{SIMULATION}",
        str(KERNEL),
        "-o",
        str(folder / "walk"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([str(folder / "walk")], capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in said.splitlines()]
    return {(stride, width, tiles, resident): nearest for stride, width, tiles, resident, nearest in rows}


def is_legal(stride: int, width: int, resident: int) -> bool:
    """Return whether a layer with a fused pool keeps the tiling rules, on a map that is higher than the array."""
    network = Builder(3, 4 * ARRAY.rows - 1, width).conv(8, 1).pool(stride).network()
    (layer,) = lower(network)
    tiling = Tiling(column_cuts(network, layer, ARRAY)[0], "inputs-resident" if resident else "streamed", False)
    return not broken_tiling_rules(shape_of(network, layer, ARRAY), tiling, ARRAY.rows)


def test_legal_tilings_keep_the_declared_distance_of_stored_sums(tmp_path: Path) -> None:
    walked = distances(tmp_path)
    assert len(walked) == 2 * 7 * 3 * 2
    assert walked[2, 1, 1, 0] == 1
    for (stride, width, tiles, resident), nearest in walked.items():
        if is_legal(stride, width, resident):
            assert nearest >= STORED_SUMS_DISTANCE, (stride, width, tiles, resident)
        elif tiles == 1:
            assert nearest < STORED_SUMS_DISTANCE, (stride, width)


def test_dependence_pragma_declares_the_distance_of_the_tiling_rule() -> None:
    pool = fixed_files(*include_folders("systolic"))["pool.h"]
    (pragma,) = re.findall(r"#pragma HLS DEPENDENCE variable = stored_sums (.*)", pool)
    assert pragma == f"type = inter direction = RAW distance = {STORED_SUMS_DISTANCE} true"
