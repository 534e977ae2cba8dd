"""The formulas of the limits. They hold for any engine that computes every product in a DSP of the board.

Winograd's algorithm, which needs fewer products, is not bounded by them.

An ideal array computes a product in each field of each DSP in every cycle, for layers of all shapes. The DDR moves
each weight once per batch, at the given share of its peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boards.board import Board
from scheduler.systolic.array import PACKINGS, SIX
from tools.bounds.layers import Layer


@dataclass(frozen=True)
class Speed:
    """The speed of an ideal array and of the DDR, per second."""

    macs: float
    ddr_bytes: float


@dataclass(frozen=True)
class Format:
    """The bits of weights and of maps, and the frames that share each load of the weights."""

    bits: int
    batch: int = 1

    def bytes_of(self, values: int) -> float:
        return values * self.bits / 8


@dataclass(frozen=True)
class Limits:
    """Limits of frames per second, each derived.

    Attributes:
        macs: The products alone.
        frame: Also the DDR, if all transfers of a frame overlap with all products. Maps stay on the chip. No engine
            that loads the weights in every batch exceeds it.
        layers: As ``frame``, but the transfers of a layer only overlap with its own products: the next layer's weights
            are not loaded early.
        layers_in_ddr: As ``layers``, but each map between layers is written to DDR once, and read once by each layer.
    """

    macs: float
    frame: float
    layers: float
    layers_in_ddr: float


def products_per_dsp(kind: str, bits: int) -> int:
    """Return the most products of ``bits`` bits that a DSP computes per cycle of its clock."""
    packing = PACKINGS[kind, bits]
    return SIX.products if (kind, bits) == ("DSP48E2", 4) else packing.products


def macs_per_second(board: Board, bits: int, dsp_mhz: float) -> float:
    """Return the products of all DSPs of a board per second: DSPs × products per DSP × clock of the DSPs."""
    return board.resources.dsp * products_per_dsp(board.dsp.kind, bits) * dsp_mhz * 1e6


def ddr_bytes_of(layer: Layer, form: Format, maps_in_ddr: bool) -> float:
    """Return the bytes that a layer must move per frame: weights, picture, results and, if asked, all other maps.

    A value of the picture has one byte.
    """
    moved = form.bytes_of(layer.weights) / form.batch + layer.picture + form.bytes_of(layer.results)
    return moved + form.bytes_of(layer.reads + layer.writes) if maps_in_ddr else moved


def limits_of(layers: Sequence[Layer], speed: Speed, form: Format) -> Limits:
    """Return the limits of a network, in frames per second."""
    products = [layer.macs / speed.macs for layer in layers]
    least = [ddr_bytes_of(layer, form, False) / speed.ddr_bytes for layer in layers]
    every = [ddr_bytes_of(layer, form, True) / speed.ddr_bytes for layer in layers]
    return Limits(
        macs=1 / sum(products),
        frame=1 / max(sum(products), sum(least)),
        layers=1 / sum(map(max, products, least)),
        layers_in_ddr=1 / sum(map(max, products, every)),
    )
