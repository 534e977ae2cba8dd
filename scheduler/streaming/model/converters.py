"""What stands between two blocks whose words differ: converters of their width, of their channels, of their pixels.

before                                      after
words of other widths                       one converter of the width
channels beyond the network's               a converter that adds zeros or crops
words of other pixels, lanes of a pixel     one converter of the pixels
alike
words of other pixels and other lanes       to words of one pixel, to the other lanes, to words of other pixels
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
"""Stages of a converter's loop (width.h)."""


@dataclass(frozen=True)
class Converter:
    """A block between two others whose words differ: in their width, in their channels, or in their pixels.

    lanes_in, lanes_out: values of a word, of all its pixels. channels_in, channels_out: values of a pixel before and
    after; more after means zeros, fewer that the last are dropped. pixels: of a frame. m_in, m_out: pixels of a word.
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
        """ "width", "channels" (which changes the width too) or "pixels" (lanes of a pixel stay)."""
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
        """A frame's: its steps, and those in which the pipeline runs empty before the next frame."""
        return self.steps + WIDTH_DEPTH

    @property
    def steps(self) -> int:
        """At most one word in and one word out each.

        Channels are changed pixel by pixel, and while words of zeros leave, or words are cropped, nothing else goes on
        (width.h, convert_steps).
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
    """How a map travels. pixels: of a word; lanes: values of each of them; values: of a pixel, padding included."""

    pixels: int
    lanes: int
    values: int

    @property
    def size(self) -> int:
        """Values of a word."""
        return self.pixels * self.lanes

    @property
    def are_in_order(self) -> bool:
        """Whether the values of the stream come pixel after pixel."""
        return self.pixels == 1 or self.lanes == self.values


@dataclass(frozen=True, eq=False)
class Edge:
    """The stream into input ``port`` of block ``reader`` of a graph, with the folds at both ends."""

    graph: g.StreamGraph
    reader: int
    port: int
    writer_fold: g.Fold
    reader_fold: g.Fold

    @property
    def source(self) -> g.Port:
        return self.graph.blocks[self.reader].inputs[self.port]

    @property
    def bits(self) -> int:
        """Of a value."""
        return self.graph.type_of(self.source).datatype.bits

    @property
    def written(self) -> Words:
        writer = self.graph.blocks[self.source.block]
        pixels = lanes.out_pixels(writer, self.writer_fold)
        size = lanes.out_lanes(writer, self.writer_fold, self.source.output)
        values = lanes.out_values(self.graph, self.source.block, self.writer_fold, self.source.output)
        return Words(pixels, size // pixels, values)

    @property
    def read(self) -> Words:
        pixels = self.reader_fold.m
        size = lanes.in_lanes(self.graph.blocks[self.reader], self.reader_fold, self.port)
        return Words(pixels, size // pixels, lanes.in_values(self.graph, self.reader, self.reader_fold, self.port))

    @cached_property
    def converters(self) -> tuple[Converter, ...]:
        """What stands before the input, one behind the other, where its words are not those of its writer."""
        written, read = self.written, self.read
        if written == read:
            return ()
        shape = self.graph.type_of(self.source).shape
        pixels = shape.height * shape.width
        if written.values == read.values and written.are_in_order and read.are_in_order:
            return (Converter(written.size, read.size, written.values, read.values, pixels),)
        return tuple(_regrouped(pixels, written, read))


def edge_of(graph: g.StreamGraph, folds: Sequence[g.Fold], index: int, port: int = 0) -> Edge:
    """The stream into input ``port`` of block ``index``."""
    return Edge(graph, index, port, folds[graph.blocks[index].inputs[port].block], folds[index])


def edges(graph: g.StreamGraph, folds: Sequence[g.Fold]) -> Iterator[Edge]:
    """Every stream, block by block, input by input."""
    for index, block in enumerate(graph.blocks):
        for port in range(len(block.inputs)):
            yield edge_of(graph, folds, index, port)


def _regrouped(pixels: int, written: Words, read: Words) -> Iterator[Converter]:
    """Lanes and channels change between words of one pixel only. pixels: of a frame."""
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
        if lanes_out != read.lanes:  # a connected layer takes words of more than a pixel
            yield Converter(lanes_out, read.lanes, channels_out, channels_out, pixels)
    if read.pixels > 1:
        yield Converter(read.lanes, read.size, channels_out, channels_out, pixels, 1, read.pixels)
