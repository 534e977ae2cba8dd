"""The constraints on a folding as a table, with an error for each constraint that a fold violates.

The divisor rows are FINN's table of folding constraints (its documentation, "Folding factors"). The other rows are the
limits of the blocks in hls_templates/streaming and of the width converters between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import gcd

from boards.errors import (
    ChoiceError,
    ConflictError,
    InvalidValueError,
    MismatchError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
    listed,
)
from cnn.ops import MaxPool
from scheduler.hardware.primitives import WIDEST_WORD
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kinds import kind_of
from scheduler.streaming.blocks.packages import added_block
from scheduler.streaming.folded_block import Constraint, FoldedBlock
from scheduler.streaming.lanes import positions

STYLES = ("default", "parallel")
MEMORIES = ("embedded", "decoupled", "external")
RAMS = ("auto", "lutram", "bram", "uram")
MULTIPLIERS = ("dsp", "lut")

MAX_KEPT = 64
"""The maximum values in the registers of a label select. It compares all of them in one cycle."""

MAX_SHARED = 64
"""The maximum values per cycle of a softmax. Each needs a table look-up and a multiplier."""


def _neighbours(value: int, dividend: int) -> tuple[int, ...]:
    """Return the next smaller and the next larger divisor of ``dividend`` around ``value``, if they exist."""
    divisors = [divisor for divisor in range(1, dividend + 1) if dividend % divisor == 0]
    below, above = ([d for d in divisors if d < value][-1:], [d for d in divisors if d > value][:1])
    return (*below, *above)


def _divides(
    name: str, ops: tuple[type, ...], key: str, noun: str, dividend: Callable[[FoldedBlock], int], remedy: str = ""
) -> Constraint:
    """Return the constraint that a field of a block's fold, such as PE, divides a number of the block, such as its
    channels.

    Args:
        name: The name of the constraint.
        ops: The kinds of blocks that it applies to.
        key: The key of the fold.
        noun: The name of the dividend in errors.
        dividend: Returns the dividend of a block.
        remedy: Another way to satisfy the constraint, for errors.
    """

    def holds(s: FoldedBlock) -> bool:
        value = int(getattr(s.fold, key))
        return value >= 1 and dividend(s) % value == 0

    def error(s: FoldedBlock) -> SystolicError:
        value, total = int(getattr(s.fold, key)), dividend(s)
        near = _neighbours(value, total)
        return InvalidValueError(key, value, f"a divisor of {noun} ({total})", near, remedy=remedy)

    return Constraint(name, ops, holds, error)


def _one_of(key: str, values: tuple[str, ...]) -> Constraint:
    """Return the constraint that the field ``key`` of every fold is one of ``values``."""
    return Constraint(
        key,
        (object,),
        lambda s: getattr(s.fold, key) in values,
        lambda s: ChoiceError(key, getattr(s.fold, key), values),
    )


def _required(
    name: str,
    ops: tuple[type, ...],
    key: str,
    required: Callable[[FoldedBlock], str],
    holds: Callable[[FoldedBlock], bool],
) -> Constraint:
    """Return a constraint on the field ``key`` of a fold. In errors, the text of ``required`` follows the words "must
    be"."""
    return Constraint(name, ops, holds, lambda s: InvalidValueError(key, getattr(s.fold, key), required(s)))


_MORE_ROWS, _MORE_COLUMNS = "or add channels with pad_out", "or add channels with pad_in"

DIVISORS: tuple[Constraint, ...] = (
    _divides("MVU: MH % PE", (g.MatrixVector,), "pe", "its filters, MH", lambda s: s.rows, _MORE_ROWS),
    _divides("MVU: MW % SIMD", (g.MatrixVector,), "simd", "its columns, MW", lambda s: s.columns, _MORE_COLUMNS),
    _divides("VVU: channels % PE", (g.VectorVector,), "pe", "its channels", lambda s: s.channels, _MORE_COLUMNS),
    _divides("VVU: taps % SIMD", (g.VectorVector,), "simd", "the taps of its kernel", lambda s: s.taps),
    _divides("SWU: channels % SIMD", (g.Window,), "simd", "its channels", lambda s: s.channels, _MORE_COLUMNS),
    _divides("pool: channels % PE", (MaxPool, g.GlobalPool), "pe", "its channels", lambda s: s.channels),
    _divides("thresholding: channels % PE", (g.Activate,), "pe", "its channels", lambda s: s.channels),
    _divides("add: channels % PE", (g.Add,), "pe", "its channels", lambda s: s.channels),
    _divides("multiply: channels % PE", (g.Multiply,), "pe", "its channels", lambda s: s.channels),
    _divides("duplicate: channels % PE", (g.Duplicate,), "pe", "its channels", lambda s: s.channels),
    _divides("softmax: channels % PE", (g.Softmax,), "pe", "its channels", lambda s: s.channels),
    _divides("label select: labels % PE", (g.LabelSelect,), "pe", "its labels", lambda s: s.channels),
    _divides("down-sampler: channels % SIMD", (g.DownSample,), "simd", "its channels", lambda s: s.channels),
    _divides("up-sample: channels % SIMD", (g.Upsample,), "simd", "its channels", lambda s: s.channels),
    _divides("depth to space: channels % SIMD", (g.DepthToSpace,), "simd", "its output channels", lambda s: s.rows),
    _divides("reorg: channels % SIMD", (g.Reorg,), "simd", "its channels", lambda s: s.channels),
    _divides("DMA: channels % SIMD", (g.Source, g.Sink, g.Discard), "simd", "its channels", lambda s: s.channels),
    Constraint(
        "package's block: channels % lanes",
        (g.Custom,),
        lambda s: all(count >= 1 and part % count == 0 for count, part in _custom_lanes(s)),
        lambda s: InvalidValueError(
            "the lanes of its words",
            listed(f"{count} for {part} channels" for count, part in _custom_lanes(s)),
            "divisors of the channels of its maps",
        ),
    ),
    Constraint(
        "concat and split: parts % SIMD",
        (g.Concat, g.Split),
        lambda s: s.fold.simd >= 1 and all(part % s.fold.simd == 0 for part in s.parts),
        lambda s: InvalidValueError(
            "simd",
            s.fold.simd,
            f"a divisor of each of its parts ({listed(s.parts)})",
            _neighbours(s.fold.simd, gcd(*s.parts)),
        ),
    ),
)

BLOCKS: tuple[Constraint, ...] = (
    _required(
        "width % M",
        (object,),
        "m",
        lambda s: f"a divisor of the width of its maps ({s.widths})",
        lambda s: s.fold.m >= 1 and s.has_whole_rows,
    ),
    Constraint(
        "width of words",
        (object,),
        lambda s: s.bits <= WIDEST_WORD,
        lambda s: RangeError("the number of bits of a word", s.bits, high=WIDEST_WORD, remedy="use fewer lanes"),
    ),
    _required(
        "M % stride",
        (g.Window, MaxPool),
        "m",
        lambda s: f"1 or a multiple of its stride ({s.stride})",
        lambda s: s.fold.m <= 1 or s.fold.m % s.stride == 0,
    ),
    Constraint(
        "M of a window",
        (g.Window,),
        lambda s: s.fold.m <= 1 or s.fold.style == "parallel",
        lambda s: InvalidValueError(
            "m",
            s.fold.m,
            "1 for a window of style default, which reads one pixel at a time",
            remedy="use style parallel",
        ),
    ),
    _required(
        "M at the DMA",
        (g.Source, g.Sink),
        "simd",
        lambda s: f"{s.channels}, because words of {s.fold.m} pixels to and from DDR contain whole pixels",
        lambda s: s.fold.m <= 1 or s.fold.simd == s.channels,
    ),
    _required(
        "M of blocks for single pixels",
        (object,),
        "m",
        lambda s: "1, because the block reads one pixel at a time",
        lambda s: s.fold.m <= 1 or kind_of(s.op).several_pixels,
    ),
    _required(
        "pixels of a unit",
        (object,),
        "pixels",
        lambda s: (
            f"m ({s.fold.m}), or with m = 1 a divisor of the pixels of its output ({positions(s.block)})"
            if isinstance(s.op, g.MatrixVector)
            else f"m ({s.fold.m}), because depthwise units do not gather pixels"
            if isinstance(s.op, g.VectorVector)
            else "1 or m, because the block has no weights that pixels could share"
        ),
        lambda s: s.fold.pixels in (1, s.fold.m) if not isinstance(s.op, g.Unit) else _gathers(s),
    ),
    Constraint(
        "values that a label select keeps",
        (g.LabelSelect,),
        lambda s: s.fold.pe * _chosen(s) <= MAX_KEPT,
        lambda s: RangeError(
            f"pe, whose lanes keep the {_chosen(s)} greatest values each,", s.fold.pe, high=MAX_KEPT // _chosen(s)
        ),
    ),
    Constraint(
        "values per cycle of a softmax",
        (g.Softmax,),
        lambda s: s.fold.pe <= MAX_SHARED,
        lambda s: RangeError("pe, whose lanes have a look-up table and a multiplier each,", s.fold.pe, high=MAX_SHARED),
    ),
    Constraint(
        "rows of darknet's reorg",
        (g.Reorg,),
        lambda s: not _darknet(s.op) or s.fold.simd == 1 or s.read.height % s.stride**2 == 0,
        lambda s: InvalidValueError(
            "simd",
            s.fold.simd,
            f"1 in darknet's order, because stride² ({s.stride**2}) does not divide the height ({s.read.height})",
        ),
    ),
    _one_of("style", STYLES),
    _one_of("memory", MEMORIES),
    _one_of("ram", RAMS),
    _one_of("multiplier", MULTIPLIERS),
    _required(
        "style of a window",
        (object,),
        "style",
        lambda s: "default, because only a sliding window has a style",
        lambda s: s.fold.style == "default" or isinstance(s.op, g.Window),
    ),
    _required(
        "memory of weights",
        (object,),
        "memory",
        lambda s: "embedded, because the block has no weights",
        lambda s: s.fold.memory == "embedded" or isinstance(s.op, g.Unit),
    ),
    _required(
        "memory of depthwise weights",
        (g.VectorVector,),
        "memory",
        lambda s: "embedded, because depthwise weights are few",
        lambda s: s.fold.memory == "embedded",
    ),
    Constraint(
        "URAM of weights",
        (g.MatrixVector,),
        lambda s: s.fold.ram != "uram" or s.fold.memory != "embedded",
        lambda s: ConflictError(
            ("ram uram", f"memory {s.fold.memory}"),
            "URAM has no initial contents",
            remedy="use memory decoupled",
        ),
    ),
    Constraint(
        "padding of channels",
        (object,),
        lambda s: (
            min(s.fold.pad_in, s.fold.pad_out) >= 0 and (kind_of(s.op).pads or s.fold.pad_in == s.fold.pad_out == 0)
        ),
        lambda s: (
            InvalidValueError(*_first_padding(s), "0, because the block cannot process channels of padding")
            if not kind_of(s.op).pads
            else RangeError(*_first_padding(s), 0)
        ),
    ),
    _required(
        "padding of bipolar weights",
        (g.MatrixVector,),
        "pad_in",
        lambda s: "0, because the block's weights are BIPOLAR and cannot be zero",
        lambda s: s.fold.pad_in == 0 or not _bipolar(s.op),
    ),
    Constraint(
        "padding that stays",
        (object,),
        lambda s: not kind_of(s.op).keeps or s.fold.pad_in == s.fold.pad_out,
        lambda s: MismatchError(
            "pad_out, because the block has the same channels at input and output,", s.fold.pad_out, s.fold.pad_in
        ),
    ),
)

STREAMS: tuple[Constraint, ...] = (
    Constraint(
        "group of a depthwise window",
        (g.VectorVector,),
        lambda s: not isinstance(s.writer.op, g.Window) or s.fold.pe == s.writer_fold.simd,
        lambda s: MismatchError(
            f"pe, the channels of a group, which simd of {s.writer.name} sets,", s.fold.pe, s.writer_fold.simd
        ),
    ),
    Constraint(
        "padding of a window",
        (g.MatrixVector, g.VectorVector),
        lambda s: not isinstance(s.writer.op, g.Window) or s.fold.pad_in == s.writer_fold.pad_out,
        lambda s: MismatchError(
            f"pad_in, the padding at the input, which pad_out of {s.writer.name} sets,",
            s.fold.pad_in,
            s.writer_fold.pad_out,
        ),
    ),
)

CONSTRAINTS: tuple[Constraint, ...] = (*DIVISORS, *BLOCKS, *STREAMS)


def constraints_of(op: g.BlockOp) -> Iterator[Constraint]:
    """Yield the constraints on the fold of a streaming block with operation ``op``, including a package's own
    constraints."""
    yield from (row for row in CONSTRAINTS if isinstance(op, row.ops))
    if isinstance(op, g.Custom):
        yield from added_block(op).rules


def _gathers(place: FoldedBlock) -> bool:
    fold = place.fold
    if fold.pixels == fold.m or isinstance(place.op, g.VectorVector):
        return fold.pixels == fold.m
    return fold.m == 1 and fold.pixels >= 1 and positions(place.block) % fold.pixels == 0


def _custom_lanes(place: FoldedBlock) -> list[tuple[int, int]]:
    """Return (values per word, channels) for each input and output of a package's block."""
    assert isinstance(place.op, g.Custom)
    kind, block = place.op.block.kind, place.block
    read = [(getattr(place.fold, kind.reads), i.shape.channels) for i in place.graph.inputs_of(block)]
    return read + [(getattr(place.fold, kind.writes), out.shape.channels) for out in block.outputs]


def _first_padding(place: FoldedBlock) -> tuple[str, int]:
    """Return the name and the value of a fold's padding field to report: pad_in, or pad_out if pad_in is legal."""
    return ("pad_in", place.fold.pad_in) if _breaks(place, place.fold.pad_in) else ("pad_out", place.fold.pad_out)


def _breaks(place: FoldedBlock, padding: int) -> bool:
    return padding < 0 or (padding != 0 and not kind_of(place.op).pads)


def _chosen(place: FoldedBlock) -> int:
    assert isinstance(place.op, g.LabelSelect)
    return place.op.k


def _darknet(op: g.BlockOp) -> bool:
    assert isinstance(op, g.Reorg)
    return op.order == "darknet"


def _bipolar(op: g.BlockOp) -> bool:
    assert isinstance(op, g.MatrixVector)
    return op.weight_type.few == "BIPOLAR"


def violations(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> Iterator[SystolicError]:
    """Yield an error for every constraint that the fold of a block violates. The error's place is the block's name."""
    for index, block in enumerate(graph.blocks):
        place = FoldedBlock(graph, folds, index)
        for row in constraints_of(block.op):
            if not row.holds(place):
                yield row.error(place).at(block.name)


def is_legal(
    graph: g.StreamGraph, folds: Sequence[g.Fold] | Mapping[int, g.Fold], index: int, further: Sequence[Constraint] = ()
) -> bool:
    """Return whether the fold of block ``index`` satisfies the general constraints, ``further`` and the rules of a
    package's block.

    Args:
        graph: The graph.
        folds: The folds of block ``index``, and of the blocks that ``further`` needs.
        index: The block.
        further: Further constraints, for example DIVISORS.
    """
    place = FoldedBlock(graph, folds, index)
    own = added_block(place.op).rules if isinstance(place.op, g.Custom) else ()
    return all(row.holds(place) for row in (*BLOCKS, *own, *further) if isinstance(place.op, row.ops))


def check(folding: g.StreamingFolding) -> g.StreamingFolding:
    """Return ``folding`` unchanged if it satisfies all constraints; else raise an error with every violation.

    Raises:
        SeveralFaultsError: It has an error for every violated constraint.
        MismatchError: The number of folds is not the number of blocks.
    """
    graph, folds = folding.graph, folding.folds
    if len(folds) != len(graph.blocks):
        raise MismatchError(f"the number of folds of {graph.name}", len(folds), len(graph.blocks))
    errors = list(violations(graph, folds))
    if errors:
        raise SeveralFaultsError(errors, f"the folding of {graph.name} is not legal")
    return folding
