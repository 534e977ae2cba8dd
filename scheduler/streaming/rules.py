"""What a folding has to keep, as data: a row a rule, each with the sentence for who breaks it.

The divisor rows are FINN's table of folding constraints (its documentation, "Folding factors"); the others say what
our blocks and the width converters between them can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from boards.errors import ScheduleError, faults, listed
from cnn.network import MaxPool
from scheduler.hardware.primitives import WIDEST_WORD
from scheduler.streaming import graph as g
from scheduler.streaming.blocks.kinds import kind_of
from scheduler.streaming.folded_block import FoldedBlock
from scheduler.streaming.lanes import positions

STYLES = ("default", "parallel")
MEMORIES = ("embedded", "decoupled", "external")
RAMS = ("auto", "lutram", "bram", "uram")
MULTIPLIERS = ("dsp", "lut")

MOST_KEPT = 64
"""Values in the registers of a label select, which are all compared in a cycle."""

MOST_SHARED = 64
"""Values a cycle of a softmax, each with a look-up and a product."""

UNITS = (g.MatrixVector, g.VectorVector)


@dataclass(frozen=True)
class Constraint:
    """``sentence`` follows the block's name; it is asked only where ``holds`` says no."""

    name: str
    ops: tuple[type, ...]
    holds: Callable[[FoldedBlock], bool]
    sentence: Callable[[FoldedBlock], str]


def _neighbours(value: int, dividend: int) -> str:
    """The divisors of ``dividend`` on both sides of ``value``."""
    divisors = [divisor for divisor in range(1, dividend + 1) if dividend % divisor == 0]
    below, above = ([d for d in divisors if d < value][-1:], [d for d in divisors if d > value][:1])
    return " and ".join(str(divisor) for divisor in (*below, *above))


def _divides(
    name: str, ops: tuple[type, ...], key: str, noun: str, dividend: Callable[[FoldedBlock], int], hint: str = ""
) -> Constraint:
    """``key`` of the fold has to divide ``dividend``, which is called ``noun``."""

    def holds(s: FoldedBlock) -> bool:
        value = int(getattr(s.fold, key))
        return value >= 1 and dividend(s) % value == 0

    def sentence(s: FoldedBlock) -> str:
        value, total = getattr(s.fold, key), dividend(s)
        return (
            f"{key} has to divide {noun} ({total}), and {value} does not; nearest are {_neighbours(value, total)}{hint}"
        )

    return Constraint(name, ops, holds, sentence)


def _one_of(key: str, values: tuple[str, ...]) -> Constraint:
    return Constraint(
        key,
        (object,),
        lambda s: getattr(s.fold, key) in values,
        lambda s: f"{key} is one of {', '.join(values)}, not {getattr(s.fold, key)!r}",
    )


_MORE_ROWS, _MORE_COLUMNS = ", or pad_out adds channels", ", or pad_in adds channels"

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
    _divides("depth to space: channels % SIMD", (g.DepthToSpace,), "simd", "channels that leave", lambda s: s.rows),
    _divides("reorg: channels % SIMD", (g.Reorg,), "simd", "its channels", lambda s: s.channels),
    _divides("DMA: channels % SIMD", (g.Source, g.Sink, g.Discard), "simd", "its channels", lambda s: s.channels),
    Constraint(
        "package's block: channels % lanes",
        (g.Custom,),
        lambda s: all(count >= 1 and part % count == 0 for count, part in _custom_lanes(s)),
        lambda s: (
            "the lanes of its words have to divide the channels of its maps: "
            + listed(f"{count} of {part}" for count, part in _custom_lanes(s))
        ),
    ),
    Constraint(
        "concat and split: parts % SIMD",
        (g.Concat, g.Split),
        lambda s: s.fold.simd >= 1 and all(part % s.fold.simd == 0 for part in s.parts),
        lambda s: f"simd has to divide each of its parts ({listed(s.parts)}), and {s.fold.simd} does not",
    ),
)

BLOCKS: tuple[Constraint, ...] = (
    Constraint(
        "width % M",
        (object,),
        lambda s: s.fold.m >= 1 and s.has_whole_rows,
        lambda s: f"m has to divide the width of its maps ({s.widths}), and {s.fold.m} does not",
    ),
    Constraint(
        "width of words",
        (object,),
        lambda s: s.bits <= WIDEST_WORD,
        lambda s: f"a word has at most {WIDEST_WORD} bits, not {s.bits}; take fewer lanes",
    ),
    Constraint(
        "M % stride",
        (g.Window, MaxPool),
        lambda s: s.fold.m <= 1 or s.fold.m % s.stride == 0,
        lambda s: f"m ({s.fold.m}) has to be 1 or a multiple of its stride ({s.stride})",
    ),
    Constraint(
        "M of a window",
        (g.Window,),
        lambda s: s.fold.m <= 1 or s.fold.style == "parallel",
        lambda s: f"a window of style default takes one pixel at a time, m = {s.fold.m} is not; take style parallel",
    ),
    Constraint(
        "M at the DMA",
        (g.Source, g.Sink),
        lambda s: s.fold.m <= 1 or s.fold.simd == s.channels,
        lambda s: (
            f"words of {s.fold.m} pixels to and from DDR hold whole pixels: simd has to be {s.channels}, "
            f"not {s.fold.simd}"
        ),
    ),
    Constraint(
        "M of what moves pixels",
        (object,),
        lambda s: s.fold.m <= 1 or kind_of(s.op).several,
        lambda s: f"it takes one pixel at a time, m = {s.fold.m} is not",
    ),
    Constraint(
        "pixels of a unit",
        (object,),
        lambda s: s.fold.pixels in (1, s.fold.m) if not isinstance(s.op, UNITS) else _gathers(s),
        lambda s: (
            f"pixels is m ({s.fold.m}), or with m = 1 a number that divides the width of its maps ({s.widths}), "
            f"not {s.fold.pixels}"
            if isinstance(s.op, UNITS)
            else f"it has no weights to share between pixels: pixels stays 1, not {s.fold.pixels}"
        ),
    ),
    Constraint(
        "values that a label select keeps",
        (g.LabelSelect,),
        lambda s: s.fold.pe * _chosen(s) <= MOST_KEPT,
        lambda s: (
            f"each PE keeps the {_chosen(s)} greatest of its values, {MOST_KEPT} in all: pe has to be at most "
            f"{MOST_KEPT // _chosen(s)}, not {s.fold.pe}"
        ),
    ),
    Constraint(
        "values a cycle of a softmax",
        (g.Softmax,),
        lambda s: s.fold.pe <= MOST_SHARED,
        lambda s: f"each of its values has a look-up and a product: pe is at most {MOST_SHARED}, not {s.fold.pe}",
    ),
    Constraint(
        "rows of darknet's reorg",
        (g.Reorg,),
        lambda s: not _darknet(s.op) or s.fold.simd == 1 or s.read.height % s.stride**2 == 0,
        lambda s: (
            f"darknet's order takes simd {s.fold.simd} only where stride² ({s.stride**2}) divides the height "
            f"({s.read.height}); take simd 1"
        ),
    ),
    _one_of("style", STYLES),
    _one_of("memory", MEMORIES),
    _one_of("ram", RAMS),
    _one_of("multiplier", MULTIPLIERS),
    Constraint(
        "style of a window",
        (object,),
        lambda s: s.fold.style == "default" or isinstance(s.op, g.Window),
        lambda s: f"only a sliding window has a style, so it stays default, not {s.fold.style}",
    ),
    Constraint(
        "memory of weights",
        (object,),
        lambda s: s.fold.memory == "embedded" or isinstance(s.op, UNITS),
        lambda s: f"it has no weights, so memory stays embedded, not {s.fold.memory}",
    ),
    Constraint(
        "memory of depthwise weights",
        (g.VectorVector,),
        lambda s: s.fold.memory == "embedded",
        lambda s: f"depthwise weights are few and embedded, not {s.fold.memory}",
    ),
    Constraint(
        "URAM of weights",
        (g.MatrixVector,),
        lambda s: s.fold.ram != "uram" or s.fold.memory != "embedded",
        lambda s: f"URAM has no initial contents, so weights in it are decoupled, not {s.fold.memory}",
    ),
    Constraint(
        "padding of channels",
        (object,),
        lambda s: (
            min(s.fold.pad_in, s.fold.pad_out) >= 0 and (kind_of(s.op).pads or s.fold.pad_in == s.fold.pad_out == 0)
        ),
        lambda s: (
            "it takes and gives the network's own channels: pad_in and pad_out stay 0, "
            f"not {s.fold.pad_in} and {s.fold.pad_out}"
        ),
    ),
    Constraint(
        "padding of bipolar weights",
        (g.MatrixVector,),
        lambda s: s.fold.pad_in == 0 or not _bipolar(s.op),
        lambda s: f"its weights are BIPOLAR and cannot be zero: pad_in stays 0, not {s.fold.pad_in}",
    ),
    Constraint(
        "padding that stays",
        (object,),
        lambda s: not kind_of(s.op).keeps or s.fold.pad_in == s.fold.pad_out,
        lambda s: (
            f"as many channels leave as come: pad_in ({s.fold.pad_in}) and pad_out ({s.fold.pad_out}) have to be equal"
        ),
    ),
)

STREAMS: tuple[Constraint, ...] = (
    Constraint(
        "group of a depthwise window",
        (g.VectorVector,),
        lambda s: not isinstance(s.writer.op, g.Window) or s.fold.pe == s.writer_fold.simd,
        lambda s: (
            f"it takes the channels in the groups that {s.writer.name} gives: pe ({s.fold.pe}) has to be that window's "
            f"simd ({s.writer_fold.simd})"
        ),
    ),
    Constraint(
        "padding of a window",
        UNITS,
        lambda s: not isinstance(s.writer.op, g.Window) or s.fold.pad_in == s.writer_fold.pad_out,
        lambda s: (
            f"{s.writer.name} gathers its channels: pad_in ({s.fold.pad_in}) has to be that window's pad_out "
            f"({s.writer_fold.pad_out})"
        ),
    ),
)

CONSTRAINTS: tuple[Constraint, ...] = (*DIVISORS, *BLOCKS, *STREAMS)


def rows_of(op: g.BlockOp) -> Iterator[Constraint]:
    """What the fold of such a block has to keep."""
    yield from (row for row in CONSTRAINTS if isinstance(op, row.ops))
    if isinstance(op, g.Custom):
        yield from op.block.rules


def _gathers(place: FoldedBlock) -> bool:
    fold = place.fold
    if fold.pixels == fold.m or isinstance(place.op, g.VectorVector):
        return fold.pixels == fold.m
    return fold.m == 1 and fold.pixels >= 1 and positions(place.block) % fold.pixels == 0


def _custom_lanes(place: FoldedBlock) -> list[tuple[int, int]]:
    """Of a package's block, for each map: lanes of its words, and its channels."""
    assert isinstance(place.op, g.Custom)
    kind, block = place.op.block.kind, place.block
    read = [(getattr(place.fold, kind.reads), i.shape.channels) for i in place.graph.inputs_of(block)]
    return read + [(getattr(place.fold, kind.writes), out.shape.channels) for out in block.outputs]


def _chosen(place: FoldedBlock) -> int:
    assert isinstance(place.op, g.LabelSelect)
    return place.op.k


def _darknet(op: g.BlockOp) -> bool:
    assert isinstance(op, g.Reorg)
    return op.order == "darknet"


def _bipolar(op: g.BlockOp) -> bool:
    assert isinstance(op, g.MatrixVector)
    return op.weight_type.few == "BIPOLAR"


def broken(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> Iterator[str]:
    """The sentence of every row that does not hold, with the block's name."""
    for index, block in enumerate(graph.blocks):
        place = FoldedBlock(graph, folds, index)
        for row in rows_of(block.op):
            if not row.holds(place):
                yield f"{block.name}: {row.sentence(place)}"


def legal(
    graph: g.StreamGraph, folds: Sequence[g.Fold] | Mapping[int, g.Fold], index: int, beside: Sequence[Constraint] = ()
) -> bool:
    """Whether block ``index`` keeps the rows that look at it alone, those of a package's block too, and ``beside``."""
    place = FoldedBlock(graph, folds, index)
    own = place.op.block.rules if isinstance(place.op, g.Custom) else ()
    return all(row.holds(place) for row in (*BLOCKS, *own, *beside) if isinstance(place.op, row.ops))


def check(folding: g.StreamingFolding) -> g.StreamingFolding:
    """``folding`` itself; ScheduleError with the sentences of all rows that it breaks."""
    graph, folds = folding.graph, folding.folds
    if len(folds) != len(graph.blocks):
        raise ScheduleError(f"{graph.name} has {len(graph.blocks)} blocks, and the folding has {len(folds)} folds")
    sentences = list(broken(graph, folds))
    if sentences:
        raise ScheduleError(f"the folding of {graph.name} is not legal:\n  " + faults(sentences, "\n  "))
    return folding
