"""The layer program: each word of a pass once, in the order in which the engines read it.

A pass is one column tile of one layer. If the layer runs frame by frame, it is that tile of one frame of a batch. The
scheduler gives the words without a formula, and ``complete`` computes the others.

hls_templates/systolic/pass.h lists the same fields for the C++ engine; ``python -m tools.program`` renews it. The
package of the SystemVerilog engine is generated from the names. violations.py checks a program that was read from a
file against this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from contract import formulas
from contract.formulas import Numbers, Words, divide_up
from contract.geometry import RESULT_BITS, Geometry

PASS_WORDS = 64
"""32-bit words of a pass without ADDED_FIELDS. The words after its last field are 0."""

MAX_INT32 = (1 << 31) - 1
"""The engine counts and addresses with signed 32-bit integers."""

MAX_PADDING = (1 << 12) - 1
"""Limit for the padding on one side, and for the distance of two kernel columns: the engine's fields have 12 bits."""

Bounds = tuple[int, int]
Formula = Callable[[Words, Geometry], Numbers]

ADDRESS, COUNT, FLAG = (0, MAX_INT32), (1, MAX_INT32), (0, 1)


@dataclass(frozen=True)
class Field:
    """The declaration of one 32-bit word of a pass, which is one column tile of one layer in the layer program.

    Attributes:
        name: Its name in every language.
        bounds: The lowest and the highest allowed number, or a function of the geometry that returns them. None if its
            formula or a rule of violations.py bounds it.
        doc: Its meaning, if the name does not say it. Neighbours with the same text share a line of pass.h.
        formula: The function of the other words that it must equal; None if it is independent.
        given: Whether the scheduler gives it although it has a formula: the formula reads the given number and checks
            it.
        packed: Whether it holds the bits of several numbers or of a longer one, so that it is not a count.
    """

    name: str
    bounds: Bounds | Callable[[Geometry], Bounds] | None = None
    doc: str = ""
    formula: Formula | None = None
    given: bool = False
    packed: bool = False

    @property
    def primary(self) -> bool:
        """Return whether the scheduler supplies the word; the other words are computed by their formulas."""
        return self.formula is None or self.given

    def range(self, geometry: Geometry) -> Bounds | None:
        """Return the lowest and the highest number that an array of ``geometry`` allows; None if the word has no
        bounds."""
        return self.bounds(geometry) if callable(self.bounds) else self.bounds


@dataclass(frozen=True)
class Group:
    """Consecutive words of a pass that share a heading in the C++ engine's pass.h.

    Attributes:
        title: Their heading in pass.h; "" if they belong to the heading before.
        fields: The fields in the order of the words.
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
            "0: the map is in DDR; 1, 2: it is in that map buffer (map_buffer.h)",
        ),
        Field(
            "in_lap",
            doc="⌊t / ROWS⌋; t: pad_top, or the rows by which the banks of a map buffer are rotated",
            formula=lambda p, g: formulas.turned_rows(p, g) // g.rows,
        ),
        Field(
            "in_turn",
            doc="t mod ROWS: row y is in bank (y + in_turn) mod ROWS of the buffer",
            formula=lambda p, g: formulas.turned_rows(p, g) % g.rows,
            given=True,
        ),
        Field("pixel_input", FLAG, "1: uint8 pixels, WORD_PIXELS per word, a window of STEP_PIXELS per cycle"),
    ),
)

_WINDOW = Group(
    "window",
    (
        Field("kernel_height", (1, 4095)),
        Field("kernel_groups", COUNT),
        Field("group_pixels", (0, MAX_PADDING), formula=formulas.group_pixels, given=True),
        Field("stride", (0, 127), "rows from a window to the next one below"),
        Field("advance", (0, 127), "columns from one group of windows computed together to the next"),
        Field("pad_top", (0, 255)),
        Field("pad_left", (-64, MAX_PADDING)),
        Field("depthwise", FLAG, "1: a channel tile reads only its own channel blocks (depthwise, pools)"),
        Field("tile_blocks", doc="channel blocks that a tile reads", formula=formulas.tile_blocks),
        Field(
            "steps",
            lambda g: (1, g.weight_depth),
            "cycles per position: kernel_height · kernel_groups · tile_blocks, or tile_blocks if places are compared",
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
            doc="row strides that a window reaches beyond its first: ⌊(kernel_height − 1) / stride⌋",
            formula=formulas.ahead,
        ),
        Field(
            "positions",
            doc="columns computed together: POSITIONS, or 1 if the stride is above 1",
            formula=formulas.positions,
        ),
        Field(
            "slot_words",
            doc="words of a slot, which holds the rows of one stride in a bank: phases · row_words",
            formula=lambda p, g: p.phases * p.row_words,
        ),
        Field("last_slot", lambda g: (0, g.row_depth - 1), "first word of the last slot in its bank"),
        Field(
            "first_loads",
            doc="words per port that complete the first tile, if the map is in DDR",
            formula=formulas.first_loads,
        ),
        Field(
            "first_moves",
            doc="words per bank that complete the first tile, padding included, if a map buffer is read",
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
    "weights: [channel tile][step][beat] of words, distributed beat by beat over the ports",
    (
        Field("weights_base", ADDRESS),
        Field("first_step", doc="place of the first tile in the weight buffer", formula=formulas.first_step),
        Field("resident", FLAG, "1: all tiles stay in the weight buffer for all row tiles"),
        Field("tile_beats", doc="words of a tile per port", formula=formulas.tile_beats),
        Field(
            "tile_uses",
            doc="weight tiles that are fed to the array, each counted as often as it is used",
            formula=formulas.tile_uses,
        ),
        Field("tile_loads", doc="weight tiles that are loaded from DDR", formula=formulas.tile_loads),
        Field(
            "load_beats",
            doc="words of these tiles per port",
            formula=lambda p, g: p.tile_loads * p.tile_beats,
        ),
        Field("requantiser_base", ADDRESS, "address and number of the requantisers of all channel tiles"),
        Field(
            "channels",
            doc="address and number of the requantisers of all channel tiles",
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
            "0: the places of a window are separate positions, which are compared; −1: multiplied (pool.h)",
        ),
        Field(
            "upscale",
            lambda g: (1, g.upscale),
            "copies of each value in its row, and of each row: 1 or UPSCALE",
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
            "words of LANES results: 1, or RESULT_WORDS if they are written as int16",
        ),
        Field("out_buffer", lambda g: (0, 2 if g.map_depth else 0), "as in_buffer; never the same buffer"),
        Field(
            "out_turn",
            lambda g: (0, g.rows - 1),
            "in_turn of the passes that read the output map; it also holds for the residual map",
        ),
        Field("chunks", doc="chunks of columns that the Saver collects (save.h)", formula=formulas.chunks),
        Field(
            "limits",
            (0, MAX_INT32),
            "saturation: the highest value in the upper 16 bits, the lowest in the lower 16 bits",
            packed=True,
        ),
        Field(
            "around",
            doc="padding: a value of a map or a pixel; the lowest value if places are compared",
        ),
    ),
)

GROUPS = (_INPUT, _WINDOW, _TILES, _WEIGHTS, _POOL, _OUTPUT)
"""The words that every engine reads, in their order."""

ADDED_GROUP = Group(
    "",
    (
        Field("added_base", doc="the residual map; its blocks have the layout of the output's blocks"),
        Field("added_row_pitch", doc="the residual map; its blocks have the layout of the output's blocks"),
        Field(
            "added_buffer",
            doc="as in_buffer; never the buffer that is read; out_buffer if the output is written to a buffer",
        ),
        Field(
            "added_words",
            doc="words of the results per word of the residual map; 0: nothing is added",
        ),
        Field("added_own", doc="multipliers of the results and of the residual map"),
        Field("added_other", doc="multipliers of the results and of the residual map"),
        Field("added_offset", doc="lower 32 bits of the offset that is added to both products", packed=True),
        Field("added_shift", doc="upper half: the offset's upper 16 bits; lower half: the shift after it", packed=True),
        Field("added_limits", doc="saturation of the sum; ``limits`` saturates the results before it", packed=True),
    ),
)
"""The further words of a pass on an array with residual adds (add.h). They are 0 in passes that add nothing."""

FIELDS = tuple(field for group in GROUPS for field in group.fields)
PASS_FIELDS = tuple(field.name for field in FIELDS)
ADDED_FIELDS = tuple(field.name for field in ADDED_GROUP.fields)


def fields_of(geometry: Geometry) -> tuple[Field, ...]:
    """Return the declarations of the words of a pass in a program for an array, in their order."""
    return FIELDS + ADDED_GROUP.fields if geometry.added_maps else FIELDS


def names_of(geometry: Geometry) -> tuple[str, ...]:
    """Return the names of the words of a pass in a program for an array, in their order."""
    return PASS_FIELDS + ADDED_FIELDS if geometry.added_maps else PASS_FIELDS


def words_of(geometry: Geometry) -> int:
    """Return how many 32-bit words each pass has in a program for an array, unused ones included."""
    return PASS_WORDS + (len(ADDED_FIELDS) if geometry.added_maps else 0)


class _Completed:
    """The words of a program's passes as attributes: a word with a formula is computed when it is first read."""

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
    """Return all words of a program's passes by name: the scheduler's words, and the words computed from them.

    Args:
        primary: The words that the scheduler gives, by name: one array each, with one number per pass. With dtype
            object, numbers of any size are computed exactly.
        geometry: The geometry of the array.
    """
    words = _Completed(primary, geometry)
    return {name: getattr(words, name) for name in names_of(geometry)}
