"""The geometry of the systolic array: each parameter once, with its range, its macro and what it means.

The scheduler chooses it, the engines are compiled for it, and the manifest tells the host of it. The range of a
parameter is what any array may have; what an array must keep in addition, such as divisors, are the rules of
scheduler/systolic/array.py.
"""

from __future__ import annotations

import functools
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Annotated, Any, get_args, get_type_hints

from boards.ranges import OneOf, Range

PIXEL_BYTES = 4
"""Bytes of one input pixel in DDR: 4 channels of 8 bits, a *plane* of the picture, whatever the format of the array."""

RESULT_BITS = 16
"""Bits of a result that is written as it is, for the host: INT16 whatever the format."""

HLS, RTL = "hls", "rtl"
ENGINES = (HLS, RTL)
"""Languages of the engine: C++ for Vitis HLS, SystemVerilog."""

SUM_BITS = 32
"""Bits of a sum with its bias."""

MAX_MAP_STRIDE = 7
"""With which a map on chip is read: the engine has a constant for each."""

SIX_PRODUCTS = 6
"""Products of a DSP48E2 in a cycle of its clock at 4 bits, where they are more than those of the format."""


def _always(macro: str, doc: str) -> dict[str, Any]:
    """Return the metadata of a parameter that every file says."""
    return {"macro": macro, "doc": doc, "later": False, "optional": False}


def _later(macro: str, doc: str) -> dict[str, Any]:
    """Return the metadata of a parameter that schedule files lack if they were saved before it; manifests say it."""
    return {"macro": macro, "doc": doc, "later": True, "optional": False}


def _optional(macro: str, doc: str) -> dict[str, Any]:
    """Return the metadata of a parameter that no file needs: a manifest leaves it out if it has its default."""
    return {"macro": macro, "doc": doc, "later": True, "optional": True}


_Depth = Annotated[int, Range(1, 1 << 24)]
_Flag = Annotated[bool, OneOf((0, 1))]


@dataclass(frozen=True)
class Geometry:
    """M rows × N columns × L lanes, and what surrounds them.

    The order of the fields is that of files, and of the numbers that a simulation library tells of itself. A parameter
    without a macro is none of these numbers: it changes how the engine computes, and nothing that is exchanged with it.
    """

    rows: Annotated[int, Range(1, 1024)] = field(metadata=_always("ROWS", "M: output rows computed together"))
    columns: Annotated[int, Range(1, 1024)] = field(metadata=_always("COLUMNS", "N: output channels computed together"))
    lanes: Annotated[int, Range(1, 256)] = field(
        metadata=_always("LANES", "L: input channels a PE multiplies in a cycle")
    )
    save_rows: Annotated[int, Range(1, 1024)] = field(
        default=2, metadata=_always("SAVE_ROWS", "rows of a position requantised a cycle")
    )
    map_ports: Annotated[int, OneOf((1, 2, 4))] = field(default=2, metadata=_always("MAP_PORTS", "AXI ports for maps"))
    weight_ports: Annotated[int, Range(1, 64)] = field(
        default=2, metadata=_always("WEIGHT_PORTS", "AXI ports for weights")
    )
    row_depth: _Depth = field(default=2048, metadata=_always("ROW_DEPTH", "words of a row-buffer bank"))
    weight_depth: _Depth = field(default=4096, metadata=_always("WEIGHT_DEPTH", "steps of the weight buffer"))
    kept_depth: _Depth = field(default=1024, metadata=_always("KEPT_DEPTH", "sums that may wait for the tile below"))
    chunk: _Depth = field(default=64, metadata=_always("CHUNK", "columns arranged before a row piece is written"))
    channel_tiles: _Depth = field(
        default=128, metadata=_always("CHANNEL_TILES", "channel tiles whose requantisers are kept")
    )
    dsp: str = field(default="DSP48E2", metadata=_always("", "the DSP of the board's family"))
    bits: Annotated[int, OneOf((4, 8, 16))] = field(
        default=8, metadata=_later("VALUE_BITS", "bits of an activation and of a weight")
    )
    weight_words: Annotated[int, Range(1, 64)] = field(
        default=1, metadata=_later("WEIGHT_WORDS", "words of weights that such a port gives a cycle")
    )
    map_depth: Annotated[int, Range(0, 1 << 24)] = field(
        default=0, metadata=_later("MAP_DEPTH", "words of a bank of a map buffer, 0: no map stays on chip")
    )
    upscale: Annotated[int, OneOf((1, 2))] = field(
        default=1, metadata=_optional("UPSCALE", "times that a value is written in a row, and rows of it, at most")
    )
    table_depth: Annotated[int, OneOf((0, 256, 512, 1024, 2048, 4096))] = field(
        default=0, metadata=_optional("TABLE_DEPTH", "values of the table that a function is looked up in, 0: none is")
    )
    table_slopes: _Flag = field(
        default=False,
        metadata=_optional("TABLE_SLOPES", "1: tables may be pieces of lines, 0: each value has its entry"),
    )
    windows: _Flag = field(
        default=False,
        metadata=_optional("WINDOWS", "1: max pools of any window are passes of their own, 0: there is none"),
    )
    late_offsets: Annotated[int, OneOf((0, 1, 2))] = field(
        default=0, metadata=_optional("LATE_OFFSETS", "1: requantisers may add behind their product, 0: none does")
    )
    map_products: _Flag = field(
        default=False, metadata=_optional("MAP_PRODUCTS", "1: maps may be multiplied by maps, 0: none is")
    )
    added_maps: _Flag = field(
        default=False, metadata=_optional("ADDED_MAPS", "1: the Saver may add a map to a layer's, 0: it never does")
    )
    map_stride: Annotated[int, Range(1, MAX_MAP_STRIDE)] = field(
        default=1, metadata=_optional("MAP_STRIDE", "largest stride with which a map on chip is read")
    )
    dsp_clock: Annotated[int, OneOf((1, 2))] = field(
        default=1, metadata=_optional("", "cycles of the DSPs' clock in one of the fabric's")
    )
    dsp_products: Annotated[int, OneOf((0, SIX_PRODUCTS))] = field(
        default=0, metadata=_optional("", "products of a DSP in a cycle of its clock, 0: those of its format")
    )
    dsp_registers: _Flag = field(
        default=False,
        metadata=_optional("", "1: rows of such DSPs hand weights on in registers (SystemVerilog), 0: in FIFOs (C++)"),
    )
    engine: Annotated[str, OneOf(ENGINES)] = field(
        default=HLS, metadata=_optional("", "the language of the engine's modules, whose pipelines differ in cycles")
    )
    sum_bits: Annotated[int, Range(9, SUM_BITS)] = field(
        default=SUM_BITS, metadata=_optional("", "bits of a sum, of any weights that the layers may have")
    )

    @property
    def word_bytes(self) -> int:
        """Bytes of a word in DDR: ``lanes`` values of ``bits``."""
        return self.lanes * self.bits // 8

    @property
    def result_words(self) -> int:
        """Words that hold ``lanes`` results of RESULT_BITS."""
        return RESULT_BITS // self.bits

    @property
    def pixel_lanes(self) -> int:
        """Lanes of an input pixel: one a byte, at 4 bits one a nibble."""
        return PIXEL_BYTES * max(1, 8 // self.bits)

    @property
    def step_pixels(self) -> int:
        """Input pixels that the array takes a cycle."""
        return self.lanes // self.pixel_lanes

    @property
    def word_pixels(self) -> int:
        """Input pixels in a word of DDR: at 16 bits twice those of a step, because a byte fills half a lane."""
        return self.word_bytes // PIXEL_BYTES

    @property
    def tile_blocks(self) -> int:
        """Channel blocks (of ``lanes``) that one channel tile fills, or fills in part."""
        return -(-self.columns // self.lanes)

    @property
    def maps_ports(self) -> int:
        """AXI ports that read and write maps, the one of maps that are added among them."""
        return self.map_ports + self.added_maps


@dataclass(frozen=True)
class Parameter:
    """One parameter of the array.

    Attributes:
        name: Its field of ``Geometry``, and its key in files.
        kind: The type of its values.
        allowed: What it may be; None for any value of its kind.
        macro: Its name in the engine's sources, "" if a simulation library does not tell it.
        doc: What it means, as the engine's sources say it.
        default: What an array has in a file that does not say it; None if it must.
        later: Whether a schedule file that was saved before the parameter lacks it.
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
        """The least number that it may be."""
        if isinstance(self.allowed, Range):
            return int(self.allowed.low)
        return min(value for value in self.allowed.values if isinstance(value, int)) if self.allowed else 0


@functools.cache
def parameters() -> tuple[Parameter, ...]:
    """Return the parameters of an array in their order."""
    hints = get_type_hints(Geometry, include_extras=True)

    def parameter(key: Field[Any]) -> Parameter:
        kind, allowed = get_args(hints[key.name]) or (hints[key.name], None)
        default = None if key.default is MISSING else int(key.default) if kind is bool else key.default
        about = key.metadata
        return Parameter(key.name, kind, allowed, about["macro"], about["doc"], default, about["later"])

    return tuple(parameter(key) for key in fields(Geometry))


def as_stored(geometry: Geometry) -> dict[str, int | str]:
    """Return the parameters of an array as files say them: a flag is 1 or 0."""
    values = {parameter.name: getattr(geometry, parameter.name) for parameter in parameters()}
    return {name: int(value) if isinstance(value, bool) else value for name, value in values.items()}
