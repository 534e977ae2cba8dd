"""The geometry of the systolic array: each parameter once, with its range, its macro and its meaning.

The scheduler chooses the geometry, the engines are compiled for it, and the manifest gives it to the host. A range
holds for any array; scheduler/systolic/array.py has the rules between parameters, such as divisors.
"""

from __future__ import annotations

import functools
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Annotated, Any, get_args, get_type_hints

from boards.ranges import OneOf, Range

PIXEL_BYTES = 4
"""Bytes of one input pixel in DDR: 4 channels of 8 bits, a *plane* of the picture, for every format of the array."""

RESULT_BITS = 16
"""Bits of a result that is written without requantisation, for the host: INT16 for every format."""

HLS, RTL = "hls", "rtl"
ENGINES = (HLS, RTL)
"""Languages of the engine: C++ for Vitis HLS, SystemVerilog."""

SUM_BITS = 32
"""Bits of an accumulator with its bias."""

MAX_MAP_STRIDE = 7
"""Limit for the stride with which a map on chip is read: the engine has a constant for each stride."""

SIX_PRODUCTS = 6
"""Products per DSP48E2 and cycle of its clock if 4-bit products are packed more densely than the format's four."""


def _always(macro: str, doc: str) -> dict[str, Any]:
    """Return the field metadata of an array parameter that every schedule file and manifest has."""
    return {"macro": macro, "doc": doc, "later": False, "optional": False}


def _later(macro: str, doc: str) -> dict[str, Any]:
    """Return the field metadata of an array parameter that older schedule files lack and every manifest has."""
    return {"macro": macro, "doc": doc, "later": True, "optional": False}


def _optional(macro: str, doc: str) -> dict[str, Any]:
    """Return the field metadata of an array parameter that files may lack: manifests omit it at its default."""
    return {"macro": macro, "doc": doc, "later": True, "optional": True}


_Depth = Annotated[int, Range(1, 1 << 24)]
_Flag = Annotated[bool, OneOf((0, 1))]


@dataclass(frozen=True)
class Geometry:
    """The parameters of a systolic array of M rows × N columns × L lanes, and of the buffers and units around it.

    Files list the parameters in this order, and a simulation library reports its macros in this order. A parameter
    without a macro changes how the engine computes and nothing that is exchanged with it; libraries do not report it.
    """

    rows: Annotated[int, Range(1, 1024)] = field(metadata=_always("ROWS", "M: output rows computed together"))
    columns: Annotated[int, Range(1, 1024)] = field(metadata=_always("COLUMNS", "N: output channels computed together"))
    lanes: Annotated[int, Range(1, 256)] = field(
        metadata=_always("LANES", "L: input channels that a PE multiplies per cycle")
    )
    save_rows: Annotated[int, Range(1, 1024)] = field(
        default=2, metadata=_always("SAVE_ROWS", "rows of a position that are requantised per cycle")
    )
    map_ports: Annotated[int, OneOf((1, 2, 4))] = field(default=2, metadata=_always("MAP_PORTS", "AXI ports for maps"))
    weight_ports: Annotated[int, Range(1, 64)] = field(
        default=2, metadata=_always("WEIGHT_PORTS", "AXI ports for weights")
    )
    row_depth: _Depth = field(default=2048, metadata=_always("ROW_DEPTH", "words of a row-buffer bank"))
    weight_depth: _Depth = field(default=4096, metadata=_always("WEIGHT_DEPTH", "steps of the weight buffer"))
    kept_depth: _Depth = field(
        default=1024, metadata=_always("KEPT_DEPTH", "sums that a fused pool can store for the row tile below")
    )
    chunk: _Depth = field(default=64, metadata=_always("CHUNK", "columns collected before they are written as bursts"))
    channel_tiles: _Depth = field(
        default=128, metadata=_always("CHANNEL_TILES", "channel tiles whose requantisers are stored")
    )
    dsp: str = field(default="DSP48E2", metadata=_always("", "the DSP of the board's family"))
    bits: Annotated[int, OneOf((4, 8, 16))] = field(
        default=8, metadata=_later("VALUE_BITS", "bits of an activation and of a weight")
    )
    weight_words: Annotated[int, Range(1, 64)] = field(
        default=1, metadata=_later("WEIGHT_WORDS", "words of weights per cycle and weight port")
    )
    map_depth: Annotated[int, Range(0, 1 << 24)] = field(
        default=0, metadata=_later("MAP_DEPTH", "words of a map-buffer bank; 0: no map stays on chip")
    )
    upscale: Annotated[int, OneOf((1, 2))] = field(
        default=1, metadata=_optional("UPSCALE", "largest factor by which an output map is upsampled")
    )
    table_depth: Annotated[int, OneOf((0, 256, 512, 1024, 2048, 4096))] = field(
        default=0, metadata=_optional("TABLE_DEPTH", "entries of an activation's lookup table; 0: no table")
    )
    table_slopes: _Flag = field(
        default=False,
        metadata=_optional("TABLE_SLOPES", "1: tables may be piecewise linear; 0: each value has an entry"),
    )
    windows: _Flag = field(
        default=False,
        metadata=_optional("WINDOWS", "1: a max pool of any window can be a pass of its own; 0: it cannot"),
    )
    late_offsets: Annotated[int, OneOf((0, 1, 2))] = field(
        default=0,
        metadata=_optional(
            "LATE_OFFSETS",
            "1: requantisers may add after products; 2: and round halves to even; 0: neither",
        ),
    )
    map_products: _Flag = field(
        default=False, metadata=_optional("MAP_PRODUCTS", "1: maps can be multiplied by maps; 0: they cannot")
    )
    added_maps: _Flag = field(
        default=False, metadata=_optional("ADDED_MAPS", "1: the Saver can add a residual map; 0: it cannot")
    )
    map_stride: Annotated[int, Range(1, MAX_MAP_STRIDE)] = field(
        default=1, metadata=_optional("MAP_STRIDE", "largest stride with which a map on chip is read")
    )
    dsp_clock: Annotated[int, OneOf((1, 2))] = field(
        default=1, metadata=_optional("", "cycles of the DSPs' clock per cycle of the fabric's clock")
    )
    dsp_products: Annotated[int, OneOf((0, SIX_PRODUCTS))] = field(
        default=0, metadata=_optional("", "products per DSP and cycle of its clock; 0: the number of its format")
    )
    dsp_registers: _Flag = field(
        default=False,
        metadata=_optional("", "1: rows of these DSPs pass weights on in registers (RTL); 0: in FIFOs (HLS)"),
    )
    engine: Annotated[str, OneOf(ENGINES)] = field(
        default=HLS, metadata=_optional("", "the language of the engine; the pipelines of the two differ in depth")
    )
    sum_bits: Annotated[int, Range(9, SUM_BITS)] = field(
        default=SUM_BITS, metadata=_optional("", "bits of an accumulator that suffice for the weights of every layer")
    )

    @property
    def word_bytes(self) -> int:
        """Bytes of a word of a feature map in DDR: ``lanes`` values of ``bits`` bits each."""
        return self.lanes * self.bits // 8

    @property
    def result_words(self) -> int:
        """DDR words that hold ``lanes`` results of RESULT_BITS bits, which are written without requantisation."""
        return RESULT_BITS // self.bits

    @property
    def pixel_lanes(self) -> int:
        """Lanes of a PE that one pixel of the input image fills: one per byte, at 4 bits one per nibble."""
        return PIXEL_BYTES * max(1, 8 // self.bits)

    @property
    def step_pixels(self) -> int:
        """Pixels of the input image that the lanes of a PE take per cycle."""
        return self.lanes // self.pixel_lanes

    @property
    def word_pixels(self) -> int:
        """Pixels of the input image per DDR word. At 16 bits these suffice for two cycles, because a byte fills half a
        lane."""
        return self.word_bytes // PIXEL_BYTES

    @property
    def tile_blocks(self) -> int:
        """Blocks of ``lanes`` channels that a tile of ``columns`` output channels fills, the last perhaps in part."""
        return -(-self.columns // self.lanes)

    @property
    def maps_ports(self) -> int:
        """AXI ports for feature maps: ``map_ports``, and one for residual maps if the Saver can add them."""
        return self.map_ports + self.added_maps


@dataclass(frozen=True)
class Parameter:
    """The declaration of one array parameter: its name, type, allowed values, C++ macro, meaning and default.

    Attributes:
        name: Its field of ``Geometry``, and its key in files.
        kind: The type of its values.
        allowed: Its range or choices; None for any value of its type.
        macro: Its name in the engine's sources; "" if a simulation library does not report it.
        doc: Its meaning, which becomes a comment of the engine's sources.
        default: Its value if a file does not have it; None if every file must.
        later: Whether older schedule files lack it.
    """

    name: str
    kind: type
    allowed: Range | OneOf | None
    macro: str
    doc: str
    default: int | str | None
    later: bool

    @property
    def least(self) -> int:
        """The lowest number that the parameter may have."""
        if isinstance(self.allowed, Range):
            return int(self.allowed.low)
        return min(value for value in self.allowed.values if isinstance(value, int)) if self.allowed else 0


@functools.cache
def parameters() -> tuple[Parameter, ...]:
    """Return the declarations of all array parameters, in the order of the fields of ``Geometry``."""
    hints = get_type_hints(Geometry, include_extras=True)

    def parameter(key: Field[Any]) -> Parameter:
        kind, allowed = get_args(hints[key.name]) or (hints[key.name], None)
        default = None if key.default is MISSING else int(key.default) if kind is bool else key.default
        about = key.metadata
        return Parameter(key.name, kind, allowed, about["macro"], about["doc"], default, about["later"])

    return tuple(parameter(key) for key in fields(Geometry))


def as_stored(geometry: Geometry) -> dict[str, int | str]:
    """Return the values of an array's parameters by name, as files store them: a flag is 1 or 0."""
    values = {parameter.name: getattr(geometry, parameter.name) for parameter in parameters()}
    return {name: int(value) if isinstance(value, bool) else value for name, value in values.items()}
