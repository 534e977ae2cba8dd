"""Words of the reports, explained at the foot of each page. They are those of docs/glossary.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape, unescape

WORDS: Mapping[str, tuple[str, str]] = {
    "MAC": (
        "MAC",
        "One multiplication and one addition.",
    ),
    "rows, M": (
        "rows",
        "Rows of the array: output rows of a map computed together.",
    ),
    "columns, N": (
        "columns",
        "Columns of the array: output channels computed together.",
    ),
    "lane, L": (
        "lanes?",
        "One input channel of the word that a PE multiplies in a cycle. In a streaming block, one value of a word.",
    ),
    "array": (
        "array",
        "Rows × columns × lanes, and the buffers around them.",
    ),
    "tiling": (
        "tiling",
        "How one layer is cut: loop order and tile sizes.",
    ),
    "row tile": (
        "row tile",
        "M output rows that the array computes together.",
    ),
    "column tile": (
        "column tile",
        "A range of output columns of a map, computed before the next range, so that its rows fit the row buffer.",
    ),
    "channel tile": (
        "channel tile",
        "N output channels that the array computes together.",
    ),
    "weight-stationary at the buffers": (
        "weights-resident",
        "All of a layer's weights stay in the weight buffer; rows stream past once. weights-resident in files.",
    ),
    "input-stationary at the buffers": (
        "inputs-resident",
        "All rows of a column tile stay in the row buffer; weights stream past once a column tile. "
        "inputs-resident in files.",
    ),
    "streamed": (
        "streamed",
        "Neither stays: weights come once a row tile.",
    ),
    "Saver": (
        "Saver",
        "The output stage behind the array: pool, requantise, arrange, write. An old name for it, kept "
        "because the engine's files and reports use it.",
    ),
    "map buffer": (
        "map buffer",
        "Memory on the chip that holds a whole map between two layers. There are two, used in turn.",
    ),
    "placement": (
        "placement",
        "Which primitive (BRAM36, URAM, LUTRAM) holds which buffer.",
    ),
    "fill": (
        "fill",
        "Cycles at the start of a layer until the array can begin.",
    ),
    "drain": (
        "drain",
        "Cycles at the end of a layer until its last result has left.",
    ),
    "bound by": (
        "bound by",
        "What takes longest of a layer: compute on the PEs, the DDR that moves its bytes (ddr), or one part of the "
        "cycles in which the array does not compute. Of a pipeline: the block that takes the most cycles.",
    ),
    "overhead": (
        "overhead",
        "The largest part of a layer's cycles in which the array does not compute, and its share of them: fill, "
        "drain, waiting for rows, weights, the Saver or the DDR, or fetching the program.",
    ),
    "baseline": (
        "baseline",
        "Somebody else's schedule, modelled for the same network and board, for comparison only.",
    ),
    "modelled": (
        "modelled",
        "Cycles or bytes from closed formulas, without generated code.",
    ),
    "traced": (
        "traced",
        "Clock cycles found by executing the generated C++ with recording streams, and solving for the "
        "clock of each access.",
    ),
    "estimate": (
        "estimate",
        "Resources counted from the structure of a design. No vendor tool has seen it.",
    ),
    "energy": (
        "energy|µJ|mJ",
        "Dynamic energy of a frame: what is counted of the mapping, times published picojoules. An estimate within "
        "bounds.",
    ),
    "target": (
        "target",
        "What is asked for, and what only a vendor tool or a board can confirm: mostly the clock.",
    ),
    "Pareto front": (
        "Pareto front",
        "The candidates that no other one beats in every measure.",
    ),
    "fold, NF, SF": (
        "fold",
        "How often a block's hardware is used for one vector: NF = MH / PE, SF = MW / SIMD.",
    ),
    "folding": (
        "folding",
        "PE, SIMD and the other choices of every block.",
    ),
    "block": (
        "block",
        "One piece of such a pipeline: a unit, a window, a pool, a converter.",
    ),
    "window": (
        "window",
        "The block that turns a stream of pixels into the stream of a kernel's inputs.",
    ),
    "converter": (
        "converter",
        "A block between two streams whose words differ in width, channels or pixels.",
    ),
    "DSP": (
        "DSP",
        "The multiplier primitive: DSP48E1 (25 × 18 bits) or DSP48E2 (27 × 18 bits).",
    ),
    "BRAM36, BRAM18": (
        "BRAM36|BRAM18",
        "Block memory of 36 Kib, or half of it.",
    ),
    "URAM": (
        "URAM",
        "Block memory of 288 Kib, 72 bits wide; it starts empty.",
    ),
    "LUTRAM": (
        "LUTRAM",
        "Memory made of LUTs (SLICEM).",
    ),
    "DDR": (
        "DDR",
        "The memory of the processor, which accelerator and processor share.",
    ),
    "DDR peak": (
        "DDR peak",
        "What the boot image runs the DDR at, in all commands; what its parts are rated for may be more.",
    ),
    "DDR efficiency": (
        "DDR efficiency",
        "The share of the peak that carries data; it stands for refresh, row misses and turn-around.",
    ),
    "candidate": (
        "candidate",
        "One possible array, tiling or fold, as a value.",
    ),
    "initiation interval, II": (
        "II",
        "Cycles between the starts of two iterations of a pipelined loop.",
    ),
    "MH, MW": (
        "MH|MW",
        "Rows and columns of a unit's matrix: output channels; kernel places × input channels.",
    ),
    "PE (of a block)": (
        "PE",
        "Output channels that a streaming block computes a cycle.",
    ),
    "SIMD": (
        "SIMD",
        "Inputs that a streaming block takes a cycle for each PE.",
    ),
    "PE (systolic)": (
        "PEs",
        "Processing element: one place of the array; it multiplies one word of inputs by one word of "
        "weights a cycle and adds to its own sum.",
    ),
    "layer": (
        "layer",
        "What runs on the accelerator as one: a convolution with what is fused into it. It has its convolution's name.",
    ),
    "frames/s": (
        "frames/s",
        "Frames a second in steady state, at the target clock.",
    ),
}
"""Word → the pattern that finds it in a page, and what it means."""


def glossary(text: str) -> str:
    """Of an HTML page's parts: the words that they use, as a list for the foot of the page."""
    plain = unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<(style|defs)\b.*?</\1>", " ", text, flags=re.S)))
    used = [(word, meaning) for word, (pattern, meaning) in WORDS.items() if re.search(rf"\b(?:{pattern})\b", plain)]
    if not used:
        return ""
    entries = "".join(f"<dt>{escape(word)}</dt><dd>{escape(meaning)}</dd>" for word, meaning in used)
    return f"<h2>Words</h2><dl>{entries}</dl>"
