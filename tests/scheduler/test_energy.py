"""Energy is a sum of what is counted elsewhere, by coefficients that each have a source, a year and bounds."""

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
"""Energy against 45 nm and 0.9 V."""
NETWORK = Builder(3, 26, 26).conv(16, 3).pool().conv(40, 3).conv(8, 1).network()


@pytest.fixture(scope="module")
def mapping() -> SystolicMapping:
    array = Array(13, 16, 8, row_depth=1024, weight_depth=2048, kept_depth=512, chunk=16, channel_tiles=8)
    return price(first_fit(NETWORK, array), ZCU104, ddr_timing(ZCU104, 300))


def test_every_coefficient_has_its_source_and_bounds() -> None:
    years = {kind: coefficient.year for kind, coefficient in COEFFICIENTS.items()}
    assert years == {"dsp": 2014, "bram": 2014, "uram": 2014, "lut": 2020, "ddr": 2016}
    for coefficient in COEFFICIENTS.values():
        assert coefficient.source
        for board in (ZCU104, PYNQ_Z2):
            least, most = coefficient.bounds(board.family)
            assert 0 < least <= most
    assert COEFFICIENTS["dsp"].bounds(ZCU104.family)[0] < COEFFICIENTS["dsp"].bounds(PYNQ_Z2.family)[0]


def test_bounds_are_those_of_the_sources() -> None:
    """DDR4 chips: IDD4W less IDD3N at 1.2 V over 64 pins at 2400 MT/s (Micron); with pins and controller 2.6 nJ for 64
    bits (ISSCC 2014). A reported chip's LUTs are its most, and its BRAM's bits lie between the bounds of BRAM."""
    assert COEFFICIENTS["ddr"].bounds(ZCU104.family) == pytest.approx((0.724 * 1.2 / 153.6e9 * 1e12, 40.625))
    of_report = 1e12 / 180e6
    logic, all_wires = (watts / 475_034 * of_report for watts in (1.235, 1.235 + 3.132))
    least, most = COEFFICIENTS["lut"].bounds(ZCU104.family)
    assert least == pytest.approx(logic, rel=0.05)
    assert most == pytest.approx(all_wires)
    least, most = COEFFICIENTS["bram"].bounds(ZCU104.family)
    assert least < 1.532 / 412.5 / 72 * of_report < most


def test_what_is_assumed_is_said() -> None:
    assert all(assumption in SOURCE for assumption in ASSUMPTIONS)


def test_a_kind_is_its_count_times_the_mean_of_its_bounds() -> None:
    for kind, coefficient in COEFFICIENTS.items():
        least, most = coefficient.bounds(ZCU104.family)
        joules = energy(Activity(**{kind: 1e6}), ZCU104.family)
        assert joules.kinds[kind] == pytest.approx((least * most) ** 0.5)
        assert [joules.least, joules.most] == pytest.approx([least, most])
        assert joules.total == joules.kinds[kind]


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        # 45 nm, 0.9 V: a product of 32 × 32 bits 3.1 pJ, an addition of 32 bits 0.1 pJ; a DSP has 27 × 18 and 48 bits
        ("dsp", 3.1 * 486 / 1024 + 0.15, 14 * (3.1 * 486 / 1024 + 0.15)),
        ("bram", 0.15625, 14 * 0.15625),
        ("uram", 0.3125, 14 * 0.3125),
    ],
)
def test_hard_blocks_are_at_best_an_asic_of_the_board_s_node(kind: str, least: float, most: float) -> None:
    """16 nm at 0.85 V or 28 nm at 1 V: C · V². At most they are what 45 nm needs in LUTs."""
    for board, scale in NODES.items():
        assert COEFFICIENTS[kind].bounds(board) == pytest.approx((least * scale, most), rel=1e-12)


def test_both_bounds_of_a_lut_are_of_the_board_s_node_and_those_of_the_ddr_of_none() -> None:
    reported = 4.367 / 475_034 / 180e6 * 1e12
    for board, scale in NODES.items():
        bounds = 14 * 0.003125 * scale, reported * scale / NODES[ZCU104.family]
        assert COEFFICIENTS["lut"].bounds(board) == pytest.approx(bounds, rel=1e-12)
        assert COEFFICIENTS["ddr"].bounds(board) == pytest.approx((5.65625, 40.625), rel=1e-12)


def test_a_million_of_a_kind_is_its_picojoules_in_microjoules() -> None:
    done = Activity(dsp=3e6, ddr=2e6)
    joules = energy(done, ZCU104.family)
    least, most = COEFFICIENTS["dsp"].bounds(ZCU104.family)
    assert joules.kinds == pytest.approx(
        {"dsp": 3 * (least * most) ** 0.5, "bram": 0, "uram": 0, "lut": 0, "ddr": 2 * (5.65625 * 40.625) ** 0.5},
        rel=1e-12,
    )
    assert (joules.least, joules.most) == pytest.approx((3 * least + 11.3125, 3 * most + 81.25), rel=1e-12)


def test_activities_add_and_multiply_kind_by_kind() -> None:
    first, second = Activity(1, 2, 3, 4, 5), Activity(10, 20, 30, 40, 50)
    assert first + second == Activity(11, 22, 33, 44, 55)
    assert first.times(3) == Activity(3, 6, 9, 12, 15)
    assert Activity() == Activity(0, 0, 0, 0, 0)


def test_energy_of_a_small_network_is_told_in_microjoules() -> None:
    """In millijoules it would be 0.00, and so would its bounds."""
    joules = Energy({"dsp": 2.5, "ddr": 0.75}, 1.234, 16.0)
    assert str(joules) == (
        "energy: 3.25 µJ per frame (DSP 2.50, DDR 0.75), estimated between 1.23 and 16.00; dynamic energy only"
    )


def test_energy_is_told_in_millijoules_and_listed_in_microjoules() -> None:
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


def test_layers_add_up_to_the_frame(mapping: SystolicMapping) -> None:
    values = mapping.values()
    for kind, microjoules in values["energy"]["microjoules"].items():
        layers = sum(layer["energy"]["microjoules"][kind] for layer in values["layers"])
        assert layers == pytest.approx(microjoules, abs=0.01)
    assert values["energy"]["least"] < values["energy"]["total"] < values["energy"]["most"]
    assert values["energy"]["source"] == SOURCE
    assert "; dynamic energy only" in str(mapping.energy)


def test_what_is_counted_is_the_schedules(mapping: SystolicMapping) -> None:
    total = sum(mapping.layer_activities, Activity())
    assert total.ddr == 8 * mapping.cost.traffic.total
    assert total.dsp >= mapping.schedule.cycles * mapping.schedule.array.mac_dsps
    assert total.lut == mapping.schedule.cycles * mapping.usage.lut
    assert 2 * total.dsp >= mapping.cost.macs  # two products a DSP at 8 bits


def test_a_buffer_counts_where_it_lies(mapping: SystolicMapping) -> None:
    """The weights' bits go from BRAM to URAM with their buffer, and to neither where it is LUTs."""
    bits = {}
    for impl in ("bram", "uram", "lutram"):
        placed = replace(mapping, placement={**mapping.placement, "weights": impl})
        total = sum(placed.layer_activities, Activity())
        bits[impl] = total.bram, total.uram
    in_bram, in_uram = bits["bram"][0] - bits["uram"][0], bits["uram"][1] - bits["bram"][1]
    assert in_bram == in_uram > 0
    assert bits["lutram"] == (bits["uram"][0], bits["bram"][1])


def test_a_block_works_in_its_own_cycles() -> None:
    usage = StreamingUsage(lut=10, dsp=3, bram18=2, uram=1, ddr_bits=7)
    assert block_activity(usage, 100) == Activity(dsp=300, bram=7200, uram=7200, lut=1000, ddr=7)
    graph = lower(NETWORK)
    assert dma_activity(graph).ddr == 3 * 26 * 26 * 8 + 8 * 13 * 13 * 8
