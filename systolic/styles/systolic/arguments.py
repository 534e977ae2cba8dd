"""The command-line options of the systolic style."""

from __future__ import annotations

from systolic.choices import ENGINES
from systolic.option import Option, path, whole_number

PINS = {
    "save_rows": "the number of PE rows that are requantised per cycle",
    "chunk": "the number of output columns collected before a write burst",
    "map_ports": "the number of AXI ports for feature maps: 1, 2 or 4",
    "weight_ports": "the number of AXI ports for weights: 1, 2 or 4",
    "row_depth": "the depth of a row-buffer bank in words",
    "weight_depth": "the depth of the weight buffer in words per column",
    "map_depth": "the depth of a map-buffer bank in words; 0 keeps no map on the chip",
    "added_maps": "where residual adds run: 1 in the output stage, 0 as layers",
    "dsp_clock": "the DSP clock to 1 or 2 (needs rtl) times the array's clock",
    "dsp_products": "the products per DSP: 6 (4 bits), or 0: 4, 2, 1 at 4, 8, 16 bits",
}
"""The parameters of the array that a user may fix before the search, each with its meaning for the help text."""

BATCH = Option(
    "--batch", type=whole_number, metavar="FRAMES", help="Compute FRAMES frames per load of the weights (default: 1)"
)
"""The option for the batch. A layer that a batch would not compute exactly loads its weights once per frame."""

SEARCHED_ENGINE = Option(
    "--engine",
    choices=ENGINES,
    help="Search for the engine in C++ (hls) or SystemVerilog (rtl) (default: hls; rtl with --dsp-clock 2)",
)
"""The option ``--engine`` of the commands that search and generate no files."""

DSP_CLOCK = Option(
    "--dsp-clock",
    type=whole_number,
    metavar="RATIO",
    help="Run DSPs at 1 or 2 (rtl) times the array's clock (default: 1)",
)
DSP_PRODUCTS = Option(
    "--dsp-products",
    type=whole_number,
    metavar="N",
    help="Pack 6 products per DSP (4 bits), or 0: 4, 2, 1 at 4, 8, 16 bits (default: 0)",
)
DSP_ARGUMENTS = (DSP_CLOCK, DSP_PRODUCTS)

ARGUMENTS = (
    Option(
        "--engine",
        choices=ENGINES,
        default="hls",
        help="Generate C++ for Vitis HLS (hls) or SystemVerilog (rtl) (default: %(default)s)",
    ),
    DSP_CLOCK.with_settings(help="Run DSPs at 1 or 2 (rtl) times the array's clock (default: saved, or 1)"),
    DSP_PRODUCTS.with_settings(
        help="Pack 6 products per DSP (4 bits), or 0: 4, 2, 1 at 4, 8, 16 bits (default: saved, or 0)"
    ),
    Option("--schedule", type=path, metavar="FILE", help="Use this schedule, saved by systolic schedule --save"),
    BATCH.with_settings(help="Compute FRAMES frames per load of the weights (default: saved, or 1)"),
)
"""The options of ``systolic generate`` that only this style has."""
