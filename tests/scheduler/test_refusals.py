"""Errors for boards, formats and networks, raised before a search."""

from __future__ import annotations

import pytest

from boards.board import load
from boards.errors import RangeError, SeveralFaultsError, UnsupportedError
from cnn.datatype import DataType, TensorType
from cnn.maps import Shape
from cnn.ops import QInput
from cnn.quantized import QNode, QuantizedNetwork
from scheduler.nodes import check_computes
from scheduler.systolic.formats import check_products, lane_bits, least_bits
from scheduler.systolic.layers import check_batch, lower
from scheduler.systolic.model.clock import check_dsp_clock, highest_mhz
from tests.support.errors import faults_of, raises
from tests.support.quantised import Builder

ZCU104 = load("zcu104")


@pytest.mark.parametrize("batch", [0, -1, 65])
def test_check_batch_out_of_range_is_refused(batch: int) -> None:
    with raises(RangeError, what="the number of frames in a batch", got=batch, low=1, high=64):
        check_batch(batch)
    check_batch(64)


def test_lower_network_without_layers_is_refused() -> None:
    node = QNode("input", QInput(), (), Shape(3, 8, 8), TensorType(DataType(8, False), 1.0), "net:1")
    with raises(UnsupportedError, subject="the network idle"):
        check_computes(QuantizedNetwork("idle", (node,)))


def test_least_bits_maps_above_16_bits_are_refused() -> None:
    build = Builder(3, 6, 6, bits=16)
    build.type = TensorType(DataType(16, False), 1.0)  # lanes are signed: 17 bits
    network = build.conv(8, 3).conv(8, 3).network()
    layers = lower(Builder(3, 6, 6, bits=16).conv(8, 3).conv(8, 3).network())
    assert least_bits(Builder(3, 6, 6, bits=16).conv(8, 3).conv(8, 3).network()) == 16
    with raises(RangeError, where=network.name, got=17, high=16):
        lane_bits(network, layers)


def test_check_products_six_need_a_dsp48e2_and_four_bits() -> None:
    network = Builder(3, 6, 6, bits=8).conv(8, 3).conv(8, 3).network()
    check_products(network, lower(network), "DSP48E1", 0)
    with raises(UnsupportedError, subject="6 products per DSP48E1"):
        check_products(network, lower(network), "DSP48E1", 6)
    with raises(SeveralFaultsError) as caught:
        check_products(network, lower(network), "DSP48E2", 6)
    assert faults_of(caught.value, RangeError, where="conv1", what="the number of bits of weights", high=4)
    assert faults_of(caught.value, RangeError, where="conv2", what="the number of bits of the input", high=4)
    narrow = Builder(3, 6, 6, bits=4).conv(8, 3).conv(8, 3).network()
    check_products(narrow, lower(narrow), "DSP48E2", 6)


def test_check_dsp_clock_beyond_the_board_is_refused() -> None:
    limit = min(ZCU104.fmax.dsp, ZCU104.fmax.global_clock)
    check_dsp_clock(ZCU104, limit / 2, 2)
    assert highest_mhz(ZCU104, 2) <= limit / 2
    with raises(RangeError, got=limit / 2 + 1, high=limit / 2, where=f"{ZCU104.title} ({ZCU104.part})"):
        check_dsp_clock(ZCU104, limit / 2 + 1, 2)
    check_dsp_clock(ZCU104, limit, 1)
