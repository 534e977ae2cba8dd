"""The converters between two blocks whose words differ in width, in channels or in pixels.

difference of the words                   converters
lanes                                     one converter of the width
channels, because of channel padding      one converter that appends zeros or drops the last channels
pixels, with the same lanes per pixel     one converter of the pixels
pixels and lanes                          to words of one pixel, to the other lanes, to words of the other pixels
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from scheduler.hardware.arithmetic import ceil_div
from scheduler.streaming import graph as g
from scheduler.streaming import lanes

WIDTH_DEPTH = 3
"""The pipeline stages of a converter's loop (width.h)."""


@dataclass(frozen=True)
class Converter:
    """A hardware block between two blocks whose stream words differ in width, channels or pixels; it repacks one into
    the other.

    Attributes:
        lanes_in: The values per input word, summed over its pixels.
        lanes_out: The values per output word, summed over its pixels.
        channels_in: The values per pixel of the input.
        channels_out: The values per pixel of the output. Zeros are appended if these are more than ``channels_in``, and
            the last channels are dropped if these are fewer.
        pixels: The pixels per frame.
        m_in: The pixels per input word.
        m_out: The pixels per output word.
    """

    lanes_in: int
    lanes_out: int
    channels_in: int
    channels_out: int
    pixels: int
    m_in: int = 1
    m_out: int = 1

    @property
    def kind(self) -> str:
        """The kind of conversion: "width", "channels" (which may change the width too) or "pixels"."""
        if self.m_in != self.m_out:
            return "pixels"
        return "width" if self.channels_in == self.channels_out else "channels"

    @property
    def words_in(self) -> int:
        return self.pixels * self.channels_in // self.lanes_in

    @property
    def words_out(self) -> int:
        return self.pixels * self.channels_out // self.lanes_out

    @property
    def cycles(self) -> int:
        """The converter's cycles per frame: its iterations, and the cycles until its pipeline is empty before the next
        frame."""
        return self.steps + WIDTH_DEPTH

    @property
    def steps(self) -> int:
        """The iterations of the converter's loop per frame, each with at most one input word and one output word.

        Channels are converted pixel by pixel. While the converter writes words of zeros it reads nothing, and while it
        drops input words it writes nothing (width.h, convert_steps).
        """
        if self.kind != "channels":
            return max(self.words_in, self.words_out)
        words_in, words_out = self.channels_in // self.lanes_in, self.channels_out // self.lanes_out
        if self.lanes_in < self.lanes_out:
            zeros = max(words_out - (words_in - 1) * self.lanes_in // self.lanes_out - 1, 0)
            return self.pixels * (words_in + zeros)
        needed = ceil_div(self.channels_out, self.lanes_in)
        cropped = max(words_in - needed, 0)
        last = (min(words_in, needed) - 1) * self.lanes_in // self.lanes_out + 1 + cropped
        return self.pixels * max(words_out, last)


@dataclass(frozen=True)
class Words:
    """The format of a stream's words at one of its ends: pixels per word, and values per pixel.

    Attributes:
        pixels: The pixels per word.
        lanes: The values of each of these pixels in a word.
        values: The values per pixel of the map, channel padding included.
    """

    pixels: int
    lanes: int
    values: int

    @property
    def size(self) -> int:
        """The values per word."""
        return self.pixels * self.lanes

    @property
    def are_in_order(self) -> bool:
        """Return whether the words carry all values of a pixel before any value of the next pixel."""
        return self.pixels == 1 or self.lanes == self.values


@dataclass(frozen=True, eq=False)
class Edge:
    """The stream from a block to input ``port`` of block ``reader``, with the folds of both blocks."""

    graph: g.StreamGraph
    reader: int
    port: int
    writer_fold: g.Fold
    reader_fold: g.Fold

    @property
    def source(self) -> g.Port:
        """The output port of the block that writes the stream."""
        return self.graph.blocks[self.reader].inputs[self.port]

    @property
    def bits(self) -> int:
        """The bits per value of the stream."""
        return self.graph.type_of(self.source).datatype.bits

    @property
    def written(self) -> Words:
        """The format of the words that the writing block writes."""
        writer = self.graph.blocks[self.source.block]
        pixels = lanes.out_pixels(writer, self.writer_fold)
        size = lanes.out_lanes(writer, self.writer_fold, self.source.output)
        values = lanes.out_values(self.graph, self.source.block, self.writer_fold, self.source.output)
        return Words(pixels, size // pixels, values)

    @property
    def read(self) -> Words:
        """The format of the words that the reading block reads."""
        pixels = self.reader_fold.m
        size = lanes.in_lanes(self.graph.blocks[self.reader], self.reader_fold, self.port)
        return Words(pixels, size // pixels, lanes.in_values(self.graph, self.reader, self.reader_fold, self.port))

    @cached_property
    def converters(self) -> tuple[Converter, ...]:
        """The converters on the stream, in order from the writing block. There are none if both blocks use the same
        words."""
        written, read = self.written, self.read
        if written == read:
            return ()
        shape = self.graph.type_of(self.source).shape
        pixels = shape.height * shape.width
        if written.values == read.values and written.are_in_order and read.are_in_order:
            return (Converter(written.size, read.size, written.values, read.values, pixels),)
        return tuple(_regrouped(pixels, written, read))


def edge_of(graph: g.StreamGraph, folds: Sequence[g.Fold], index: int, port: int = 0) -> Edge:
    """Return the stream to input ``port`` of block ``index``, as an ``Edge`` with the folds of its two blocks."""
    return Edge(graph, index, port, folds[graph.blocks[index].inputs[port].block], folds[index])


def edges(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> Iterator[Edge]:
    """Yield every stream of the graph as an ``Edge``, block by block and input by input."""
    for index, block in enumerate(graph.blocks):
        for port in range(len(block.inputs)):
            yield edge_of(graph, folds, index, port)


def _regrouped(pixels: int, written: Words, read: Words) -> Iterator[Converter]:
    """Yield the converters between written and read words whose numbers of pixels or channels differ.

    Lanes and channels are converted in words of one pixel only.

    Args:
        pixels: The pixels per frame.
        written: The words that the writer writes.
        read: The words that the reader reads.
    """
    channels_in, channels_out = written.values, read.values
    alike = channels_in == channels_out and written.lanes == read.lanes
    fewer, more_pixels = sorted((written.pixels, read.pixels))
    if alike and more_pixels % fewer == 0:
        yield Converter(written.size, read.size, channels_in, channels_out, pixels, written.pixels, read.pixels)
        return
    if written.pixels > 1:
        yield Converter(written.size, written.lanes, channels_in, channels_in, pixels, written.pixels, 1)
    if not alike:
        lanes_out = read.lanes if channels_in == channels_out else gcd(read.lanes, channels_out)
        yield Converter(written.lanes, lanes_out, channels_in, channels_out, pixels)
        if lanes_out != read.lanes:  # a dense layer may read words with the channels of several pixels
            yield Converter(lanes_out, read.lanes, channels_out, channels_out, pixels)
    if read.pixels > 1:
        yield Converter(read.lanes, read.size, channels_out, channels_out, pixels, 1, read.pixels)
