"""Energy per frame: counted activity times coefficients, each with a source, a year and bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from boards.board import load
from scheduler.hardware.ddr import ddr_timing
from scheduler.hardware.energy import ASSUMPTIONS, COEFFICIENTS, SOURCE, Activity, Energy, energy
from scheduler.streaming.area.usage import StreamingUsage
from scheduler.streaming.lower import lower
from scheduler.streaming.model.energy import block_activity, dma_activity
from scheduler.systolic.array import Array
from systolic.styles.systolic.mapping import SystolicMapping, price
from tests.support.quantised import Builder
from tests.support.schedules import first_fit

ZCU104, PYNQ_Z2 = load("zcu104"), load("pynq-z2")
NODES = {ZCU104.family: 16 / 45 * 0.85**2 / 0.81, PYNQ_Z2.family: 28 / 45 / 0.81}
"""Energy of each family's process node, relative to 45 nm and 0.9 V."""
NETWORK = Builder(3, 26, 26).conv(16, 3).pool().conv(40, 3).conv(8, 1).network()


@pytest.fixture(scope="module")
def mapping() -> SystolicMapping:
    array = Array(13, 16, 8, row_depth=1024, weight_depth=2048, kept_depth=512, chunk=16, channel_tiles=8)
    return price(first_fit(NETWORK, array), ZCU104, ddr_timing(ZCU104, 300))


def test_coefficients_have_a_source_and_bounds() -> None:
    years = {kind: coefficient.year for kind, coefficient in COEFFICIENTS.items()}
    assert years == {"dsp": 2014, "bram": 2014, "uram": 2014, "lut": 2020, "ddr": 2016}
    for coefficient in COEFFICIENTS.values():
        assert coefficient.source
        for board in (ZCU104, PYNQ_Z2):
            least, most = coefficient.bounds(board.family)
            assert 0 < least <= most
    assert COEFFICIENTS["dsp"].bounds(ZCU104.family)[0] < COEFFICIENTS["dsp"].bounds(PYNQ_Z2.family)[0]


def test_coefficients_bounds_follow_from_the_sources() -> None:
    # The lower bound of DDR4 is IDD4W less IDD3N at 1.2 V over 64 pins at 2400 MT/s (Micron). The upper bound, with
    # pins and controller, is 2.6 nJ for 64 bits (ISSCC 2014). The upper bound of LUTs is the power of a chip
    # with a published report, whose BRAM is between the bounds of BRAM.
    assert COEFFICIENTS["ddr"].bounds(ZCU104.family) == pytest.approx((0.724 * 1.2 / 153.6e9 * 1e12, 40.625))
    of_report = 1e12 / 180e6
    logic, all_wires = (watts / 475_034 * of_report for watts in (1.235, 1.235 + 3.132))
    least, most = COEFFICIENTS["lut"].bounds(ZCU104.family)
    assert least == pytest.approx(logic, rel=0.05)
    assert most == pytest.approx(all_wires)
    least, most = COEFFICIENTS["bram"].bounds(ZCU104.family)
    assert least < 1.532 / 412.5 / 72 * of_report < most


def test_source_names_every_assumption() -> None:
    assert all(assumption in SOURCE for assumption in ASSUMPTIONS)


def test_energy_kind_is_count_times_mean_of_bounds() -> None:
    for kind, coefficient in COEFFICIENTS.items():
        least, most = coefficient.bounds(ZCU104.family)
        joules = energy(Activity(**{kind: 1e6}), ZCU104.family)
        assert joules.kinds[kind] == pytest.approx((least * most) ** 0.5)
        assert [joules.least, joules.most] == pytest.approx([least, most])
        assert joules.total == joules.kinds[kind]


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        # At 45 nm and 0.9 V, a product of 32 × 32 bits takes 3.1 pJ, and an addition of 32 bits 0.1 pJ. A DSP
        # multiplies 27 × 18 bits and adds 48 bits.
        ("dsp", 3.1 * 486 / 1024 + 0.15, 14 * (3.1 * 486 / 1024 + 0.15)),
        ("bram", 0.15625, 14 * 0.15625),
        ("uram", 0.3125, 14 * 0.3125),
    ],
)
def test_coefficients_hard_blocks_scale_with_the_node(kind: str, least: float, most: float) -> None:
    # The lower bound is an ASIC at 16 nm and 0.85 V, or 28 nm and 1 V, scaled by C · V². The upper bound is 14 times
    # that.
    for board, scale in NODES.items():
        assert COEFFICIENTS[kind].bounds(board) == pytest.approx((least * scale, most), rel=1e-12)


def test_coefficients_lut_scales_with_the_node_and_ddr_does_not() -> None:
    reported = 4.367 / 475_034 / 180e6 * 1e12
    for board, scale in NODES.items():
        bounds = 14 * 0.003125 * scale, reported * scale / NODES[ZCU104.family]
        assert COEFFICIENTS["lut"].bounds(board) == pytest.approx(bounds, rel=1e-12)
        assert COEFFICIENTS["ddr"].bounds(board) == pytest.approx((5.65625, 40.625), rel=1e-12)


def test_energy_million_activities_give_microjoules() -> None:
    done = Activity(dsp=3e6, ddr=2e6)
    joules = energy(done, ZCU104.family)
    least, most = COEFFICIENTS["dsp"].bounds(ZCU104.family)
    assert joules.kinds == pytest.approx(
        {"dsp": 3 * (least * most) ** 0.5, "bram": 0, "uram": 0, "lut": 0, "ddr": 2 * (5.65625 * 40.625) ** 0.5},
        rel=1e-12,
    )
    assert (joules.least, joules.most) == pytest.approx((3 * least + 11.3125, 3 * most + 81.25), rel=1e-12)


def test_activity_adds_and_multiplies_per_kind() -> None:
    first, second = Activity(1, 2, 3, 4, 5), Activity(10, 20, 30, 40, 50)
    assert first + second == Activity(11, 22, 33, 44, 55)
    assert first.times(3) == Activity(3, 6, 9, 12, 15)
    assert Activity() == Activity(0, 0, 0, 0, 0)


def test_energy_small_is_printed_in_microjoules() -> None:
    # In millijoules the energy and its bounds would be printed as 0.00.
    joules = Energy({"dsp": 2.5, "ddr": 0.75}, 1.234, 16.0)
    assert str(joules) == (
        "energy: 3.25 µJ per frame (DSP 2.50, DDR 0.75), estimated between 1.23 and 16.00; dynamic energy only"
    )


def test_energy_large_is_printed_in_millijoules() -> None:
    joules = Energy({"dsp": 1234.56789, "ddr": 10.00049}, 345.67891, 9876.54321)
    assert str(joules) == (
        "energy: 1.24 mJ per frame (DSP 1.23, DDR 0.01), estimated between 0.35 and 9.88; dynamic energy only"
    )
    assert joules.values() == {
        "microjoules": {"dsp": 1234.568, "ddr": 10.0},
        "total": 1244.568,
        "least": 345.679,
        "most": 9876.543,
    }


def test_mapping_energy_of_layers_adds_up(mapping: SystolicMapping) -> None:
    values = mapping.values()
    for kind, microjoules in values["energy"]["microjoules"].items():
        layers = sum(layer["energy"]["microjoules"][kind] for layer in values["layers"])
        assert layers == pytest.approx(microjoules, abs=0.01)
    assert values["energy"]["least"] < values["energy"]["total"] < values["energy"]["most"]
    assert values["energy"]["source"] == SOURCE
    assert "; dynamic energy only" in str(mapping.energy)


def test_layer_activities_equal_the_counts_of_the_schedule(mapping: SystolicMapping) -> None:
    total = sum(mapping.layer_activities, Activity())
    assert total.ddr == 8 * mapping.cost.traffic.total
    assert total.dsp >= mapping.schedule.cycles * mapping.schedule.array.mac_dsps
    assert total.lut == mapping.schedule.cycles * mapping.usage.lut
    assert 2 * total.dsp >= mapping.cost.macs  # two products per DSP at 8 bits


def test_layer_activities_follow_the_placement_of_a_buffer(mapping: SystolicMapping) -> None:
    # The bits of weights count for BRAM or URAM, where their buffer is placed, or for neither if it is in LUTs.
    bits = {}
    for impl in ("bram", "uram", "lutram"):
        placed = replace(mapping, placement={**mapping.placement, "weights": impl})
        total = sum(placed.layer_activities, Activity())
        bits[impl] = total.bram, total.uram
    in_bram, in_uram = bits["bram"][0] - bits["uram"][0], bits["uram"][1] - bits["bram"][1]
    assert in_bram == in_uram > 0
    assert bits["lutram"] == (bits["uram"][0], bits["bram"][1])


def test_block_activity_counts_the_cycles_of_the_block() -> None:
    usage = StreamingUsage(lut=10, dsp=3, bram18=2, uram=1, ddr_bits=7)
    assert block_activity(usage, 100) == Activity(dsp=300, bram=7200, uram=7200, lut=1000, ddr=7)
    graph = lower(NETWORK)
    assert dma_activity(graph).ddr == 3 * 26 * 26 * 8 + 8 * 13 * 13 * 8
