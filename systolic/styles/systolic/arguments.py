"""The command-line options of the systolic style."""

from __future__ import annotations

from systolic.choices import ENGINES
from systolic.option import Option, path, whole

PINS = {
    "save_rows": "rows of a position that the output stage requantises per cycle",
    "chunk": "columns that the output stage arranges before they are written",
    "map_ports": "AXI ports for maps",
    "weight_ports": "AXI ports for weights",
    "row_depth": "words per row-buffer bank",
    "weight_depth": "steps in the weight buffer",
    "map_depth": "words per map-buffer bank; 0 keeps no map on chip",
    "added_maps": "where maps are added: 1 output stage, 0 layers of their own",
    "dsp_clock": "DSP clock per array clock: 1, or 2 with --engine rtl",
    "dsp_products": "products per DSP: 6 with --bits 4, or 0 for the format's",
}
"""The parameters of the array that a user may fix before the search, each with its meaning for the help text."""

BATCH = Option("--batch", type=whole, metavar="FRAMES", help="Share each load of the weights by FRAMES (default: 1)")
"""The option for the batch. A layer that a batch would not compute exactly loads its weights once per frame."""

SEARCHED_ENGINE = Option(
    "--engine", choices=ENGINES, help="Search for this engine (default: hls, or rtl with --dsp-clock 2)"
)
"""The option ``--engine`` of the commands that search and generate no files."""

DSP_CLOCK = Option(
    "--dsp-clock",
    type=whole,
    metavar="RATIO",
    help="Clock DSPs at 1 or 2 (rtl) times the array (default: 1)",
)
DSP_PRODUCTS = Option(
    "--dsp-products",
    type=whole,
    metavar="N",
    help="Pack 6 products per DSP at 4 bits; 0 follows --bits (default: 0)",
)
DSP_ARGUMENTS = (DSP_CLOCK, DSP_PRODUCTS)

ARGUMENTS = (
    Option(
        "--engine",
        choices=ENGINES,
        default="hls",
        help="Generate C++ for Vitis HLS, or SystemVerilog (default: %(default)s)",
    ),
    DSP_CLOCK.but(help="Clock DSPs at 1 or 2 (rtl) times the array (default: saved, or 1)"),
    DSP_PRODUCTS.but(help="Pack 6 products per DSP at 4 bits; 0 follows --bits (default: saved, or 0)"),
    Option("--schedule", type=path, metavar="FILE", help="Use this schedule, saved by systolic schedule --save"),
    BATCH.but(help="Share each load of the weights by FRAMES (default: saved, or 1)"),
)
"""The options of ``systolic generate`` that only this style has."""
