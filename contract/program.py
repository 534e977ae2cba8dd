"""The layer program: each word of a pass once, in the order in which the engines read it.

A pass is one column tile of one layer, in one frame of a batch if the layer is executed frame by frame. The scheduler
gives the words that no formula has, and ``complete`` adds the others; hls_templates/systolic/pass.h lists the same
fields for the engine in C++ (``python -m tools.program`` renews it), and the package of the engine in SystemVerilog is
made of their names. violations.py holds a program that came from a disk to this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from contract import formulas
from contract.formulas import Numbers, Words, divide_up
from contract.geometry import RESULT_BITS, Geometry

PASS_WORDS = 64
"""32-bit words of a pass, those of ADDED_FIELDS not counted; the words after its last field are 0."""

MOST = (1 << 31) - 1
"""The engine counts and addresses with 32 bits and a sign."""

MAX_PADDING = (1 << 12) - 1
"""Columns on one side of a map, and from a column of a kernel to the next: the engine's fields have 12 bits."""

Bounds = tuple[int, int]
Formula = Callable[[Words, Geometry], Numbers]

ADDRESS, COUNT, FLAG = (0, MOST), (1, MOST), (0, 1)


@dataclass(frozen=True)
class Field:
    """One word of a pass.

    Attributes:
        name: Its name in every language.
        bounds: The least and the greatest number that it may be, of a geometry if they depend on it. None if its
            formula, or a rule of violations.py, says all of it.
        doc: What it means, if its name does not say it. Neighbours with the same text share a line of pass.h.
        formula: What it must be, by the other words; None if nothing else decides it.
        given: Whether the scheduler gives it all the same, because its formula leaves a choice and reads it.
        packed: Whether it holds bits of several numbers, or of a longer one, and is no count.
    """

    name: str
    bounds: Bounds | Callable[[Geometry], Bounds] | None = None
    doc: str = ""
    formula: Formula | None = None
    given: bool = False
    packed: bool = False

    @property
    def primary(self) -> bool:
        """Whether the scheduler gives the word."""
        return self.formula is None or self.given

    def range(self, geometry: Geometry) -> Bounds | None:
        """Return the least and the greatest number that the word may be on such an array."""
        return self.bounds(geometry) if callable(self.bounds) else self.bounds


@dataclass(frozen=True)
class Group:
    """Fields that follow each other.

    Attributes:
        title: Their heading in pass.h, "" if they belong to the heading before.
        fields: The words.
    """

    title: str
    fields: tuple[Field, ...]


_INPUT = Group(
    "input map: [row][block][column] of words",
    (
        Field("in_base", ADDRESS),
        Field("in_row_pitch", COUNT),
        Field("in_block_pitch", ADDRESS),
        Field("burst_words", COUNT, "words of one contiguous piece of a row"),
        Field("bursts", COUNT, "pieces of a row"),
        Field(
            "row_words",
            doc="words of a row in the row buffer: burst_words · bursts",
            formula=lambda p, g: p.burst_words * p.bursts,
        ),
        Field(
            "block_words",
            COUNT,
            "words between channel blocks of a row in the row buffer",
            lambda p, g: p.row_words // p.in_blocks,
        ),
        Field("in_blocks", COUNT),
        Field("in_width", COUNT),
        Field("in_height", COUNT),
        Field(
            "in_buffer",
            lambda g: (0, 2 if g.map_depth else 0),
            "0: the map lies in DDR; 1, 2: in that map buffer (map_buffer.h)",
        ),
        Field(
            "in_lap",
            doc="⌊pad_top / ROWS⌋; of a map buffer that of the rows by which its banks are turned",
            formula=lambda p, g: formulas.turned_rows(p, g) // g.rows,
        ),
        Field(
            "in_turn",
            doc="the same mod ROWS: row y lies in bank (y + in_turn) mod ROWS of the buffer",
            formula=lambda p, g: formulas.turned_rows(p, g) % g.rows,
            given=True,
        ),
        Field("pixel_input", FLAG, "1: uint8 pixels, WORD_PIXELS to a word, a window of STEP_PIXELS a cycle"),
    ),
)

_WINDOW = Group(
    "window",
    (
        Field("kernel_height", (1, 4095)),
        Field("kernel_groups", COUNT),
        Field("group_pixels", (0, MAX_PADDING), formula=formulas.group_pixels, given=True),
        Field("stride", (0, 127), "rows from a window to the next one below"),
        Field("advance", (0, 127), "columns from a window, or the windows computed together, to the next"),
        Field("pad_top", (0, 255)),
        Field("pad_left", (-64, MAX_PADDING)),
        Field("depthwise", FLAG, "1: a channel tile reads only its own channel blocks (depthwise, pools)"),
        Field("tile_blocks", doc="channel blocks a tile reads", formula=formulas.tile_blocks),
        Field(
            "steps",
            lambda g: (1, g.weight_depth),
            "cycles a position: kernel_height · kernel_groups · tile_blocks, compared: the last",
            formulas.steps,
        ),
    ),
)

_TILES = Group(
    "tiles",
    (
        Field("out_height", COUNT),
        Field("out_width", COUNT),
        Field("row_tiles", formula=lambda p, g: divide_up(p.out_height, g.rows)),
        Field("channel_tiles", lambda g: (1, g.channel_tiles), formula=formulas.channel_tiles, given=True),
        Field("phases", doc="rows of a stride that are read: min(stride, kernel_height)", formula=formulas.phases),
        Field(
            "row_strides",
            doc="row strides that the pass reads: row_tiles · ROWS + ahead",
            formula=lambda p, g: p.row_tiles * g.rows + p.ahead,
        ),
        Field(
            "ahead",
            doc="row strides that the last window reaches further: ⌊(kernel_height − 1) / stride⌋",
            formula=formulas.ahead,
        ),
        Field(
            "positions",
            doc="columns computed together: POSITIONS, or 1 where the stride is above 1",
            formula=formulas.positions,
        ),
        Field(
            "slot_words",
            doc="words of a slot, the rows of one stride in a bank: phases · row_words",
            formula=lambda p, g: p.phases * p.row_words,
        ),
        Field("last_slot", lambda g: (0, g.row_depth - 1), "the last slot's first word in its bank"),
        Field(
            "first_loads",
            doc="words that each port brings before the first tile is complete",
            formula=formulas.first_loads,
        ),
        Field(
            "first_moves",
            doc="the same where a map buffer is read: words of each bank, those of padding too",
            formula=formulas.first_moves,
        ),
        Field("overlap", FLAG, "1: the next tile's rows are loaded while this one is computed"),
        Field("inputs_resident", FLAG, "1: all rows stay in the row buffer, channel tiles are the outer loop"),
        Field("row_feeds", doc="steps of the array between two changes of its row tile", formula=formulas.row_feeds),
        Field("weight_feeds", doc="steps between two changes of its weight tile", formula=formulas.weight_feeds),
        Field("array_steps", doc="steps of the whole pass", formula=formulas.array_steps),
    ),
)

_WEIGHTS = Group(
    "weights: [channel tile][step][beat] of words, dealt beat by beat to the ports",
    (
        Field("weights_base", ADDRESS),
        Field("first_step", doc="where the first tile lies in the weight buffer", formula=formulas.first_step),
        Field("resident", FLAG, "1: all tiles stay in the weight buffer over the row tiles"),
        Field("tile_beats", doc="words of a tile that come from each port", formula=formulas.tile_beats),
        Field(
            "tile_uses",
            doc="weight tiles that are fed in this pass, each as often as it is used",
            formula=formulas.tile_uses,
        ),
        Field("tile_loads", doc="weight tiles that are loaded for this pass", formula=formulas.tile_loads),
        Field(
            "load_beats",
            doc="words of those that come from each port",
            formula=lambda p, g: p.tile_loads * p.tile_beats,
        ),
        Field("requantiser_base", ADDRESS, "requantisers of all channel tiles"),
        Field(
            "channels",
            doc="requantisers of all channel tiles",
            formula=lambda p, g: p.channel_tiles * g.columns,
        ),
    ),
)

_POOL = Group(
    "fused pool and output map: [row][block][column] of words",
    (
        Field("pool_size", (1, 2)),
        Field(
            "pool_stride",
            lambda g: (-1 if g.map_products else 1 - g.windows, 2),
            "0: the places of the kernel's window are positions, and compared; −1: multiplied (pool.h)",
        ),
        Field(
            "upscale",
            lambda g: (1, g.upscale),
            "how often each value is written in a row, and how many rows of it: 1, or UPSCALE",
        ),
        Field("save_width", COUNT, formula=formulas.save_width, given=True),
    ),
)

_OUTPUT = Group(
    "",
    (
        Field("out_base", ADDRESS),
        Field("out_row_pitch", COUNT),
        Field("out_block_pitch", COUNT),
        Field("out_blocks", COUNT),
        Field(
            "value_words",
            lambda g: (1, RESULT_BITS // g.bits),
            "words of LANES results: 1, or RESULT_WORDS where they leave as int16",
        ),
        Field("out_buffer", lambda g: (0, 2 if g.map_depth else 0), "as in_buffer; never the same one"),
        Field(
            "out_turn",
            lambda g: (0, g.rows - 1),
            "in_turn of the passes that read the output map, or the one that is added",
        ),
        Field("chunks", doc="chunks of columns that the Saver arranges in this pass (save.h)", formula=formulas.chunks),
        Field(
            "limits",
            (0, MOST),
            "saturation: the greatest value in the upper 16 bits, the least in the lower ones",
            packed=True,
        ),
        Field(
            "around",
            doc="what padding holds: a value of a map, a pixel; where places are compared, the least value",
        ),
    ),
)

GROUPS = (_INPUT, _WINDOW, _TILES, _WEIGHTS, _POOL, _OUTPUT)
"""The words that every engine reads, in their order."""

ADDED_GROUP = Group(
    "",
    (
        Field("added_base", doc="the other map; its blocks lie as those of the output"),
        Field("added_row_pitch", doc="the other map; its blocks lie as those of the output"),
        Field(
            "added_buffer",
            doc="as in_buffer; not the one that is read, and the one that is written where any is",
        ),
        Field(
            "added_words",
            doc="words of the results to which one of the other map is added; 0: nothing is added",
        ),
        Field("added_own", doc="what values of the results, and of the other map, are multiplied with"),
        Field("added_other", doc="what values of the results, and of the other map, are multiplied with"),
        Field("added_offset", doc="the lower 32 bits of what is added to both products", packed=True),
        Field("added_shift", doc="its upper 16 bits, in the upper half, and the shift behind it", packed=True),
        Field("added_limits", doc="limits of the sum; ``limits`` are those of the results before", packed=True),
    ),
)
"""The words that follow in a program for an array that adds maps: what the Saver adds to its results (add.h). They are
0 in passes that add nothing."""

FIELDS = tuple(field for group in GROUPS for field in group.fields)
PASS_FIELDS = tuple(field.name for field in FIELDS)
ADDED_FIELDS = tuple(field.name for field in ADDED_GROUP.fields)


def fields_of(geometry: Geometry) -> tuple[Field, ...]:
    """Return the fields of a pass on such an array, one for each word."""
    return FIELDS + ADDED_GROUP.fields if geometry.added_maps else FIELDS


def names_of(geometry: Geometry) -> tuple[str, ...]:
    """Return the names of the words of a pass on such an array, by number."""
    return PASS_FIELDS + ADDED_FIELDS if geometry.added_maps else PASS_FIELDS


def words_of(geometry: Geometry) -> int:
    """Return the number of words of a pass in a program for such an array."""
    return PASS_WORDS + (len(ADDED_FIELDS) if geometry.added_maps else 0)


class _Completed:
    """Words of passes, of which those that a formula has are computed when they are first read."""

    def __init__(self, given: Mapping[str, Numbers], geometry: Geometry) -> None:
        self.__dict__.update(given)
        self._geometry = geometry

    def __getattr__(self, name: str) -> Numbers:
        formula = _FORMULAS.get(name)
        if formula is None:
            raise AttributeError(f"the word {name} of a pass is not given")
        numbers = formula(self, self._geometry)
        self.__dict__[name] = numbers
        return numbers


_FORMULAS = {field.name: field.formula for field in FIELDS if field.formula is not None}


def complete(primary: Mapping[str, Numbers], geometry: Geometry) -> dict[str, Numbers]:
    """Return every word of the passes of a program.

    Args:
        primary: The words that the scheduler gives, by name: an array with a number for each pass of the program, in
            their order. Numbers of Python (dtype object) are computed with exactly, however large they are.
        geometry: The array's.
    """
    words = _Completed(primary, geometry)
    return {name: getattr(words, name) for name in names_of(geometry)}
