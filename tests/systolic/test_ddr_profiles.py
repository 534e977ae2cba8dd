"""Test the frame rate at each DDR profile, of schedules and foldings."""

from __future__ import annotations

from typing import Any

import pytest

import systolic
from boards.board import load
from boards.errors import ChoiceError, ConflictError
from boards.facts import DDR_PROFILES
from systolic.loading import load_model
from tests.support.errors import raises

NETWORK = load_model("shapes")
SLOW: dict[str, Any] = {"ddr_gbps": 0.4, "array": "4x8x8"}
"""A memory that limits the array, so that the share of its peak decides the rate."""


def test_schedule_lists_the_rate_at_each_profile() -> None:
    shares = {name: load("pynq-z2").ddr.share(name) for name in DDR_PROFILES}
    alone = {
        name: systolic.schedule(NETWORK, "pynq-z2", 100, ddr_efficiency=share, order="streamed", **SLOW)
        for name, share in shares.items()
    }
    assert alone["measured"].frames_per_second < alone["optimistic"].frames_per_second
    for name, mapping in alone.items():
        assert mapping.values()["ddr_profile"] == name
        again = systolic.schedule(NETWORK, "pynq-z2", 100, schedule=mapping.to_json())
        assert again.values()["ddr_profile"] == name  # a saved file states its share
        listed = {rate.profile: (rate.share, rate.frames_per_second) for rate in mapping.ddr_profiles}
        assert listed[name] == (shares[name], mapping.frames_per_second)
        assert [share for share, _ in listed.values()] == list(shares.values())
        assert listed["measured"][1] < listed["optimistic"][1]
        assert f"({name}); frames/s by DDR profile (modelled): measured 0.79 → " in mapping.text()


def test_profile_option_takes_the_share_of_the_board() -> None:
    for name in DDR_PROFILES:
        mapping = systolic.schedule(NETWORK, "pynq-z2", 100, ddr_profile=name, **SLOW)
        assert mapping.values()["ddr"] == {"gbps": 0.4, "efficiency": load("pynq-z2").ddr.share(name)}
    own = systolic.schedule(NETWORK, "pynq-z2", 100, ddr_efficiency=0.5, **SLOW)
    assert own.values()["ddr_profile"] == "given"
    assert "× 0.5 (given); frames/s by DDR profile" in own.text()


def test_mapping_default_share_is_the_measured_one_of_the_board() -> None:
    for name in ("pynq-z2", "ultra96-v2", "zcu104"):
        ddr = load(name).ddr
        schedule = systolic.schedule(NETWORK, name, array="4x8x8")
        folding = systolic.fold(NETWORK, name, search="greedy", fps=100)
        for mapping in (schedule, folding):
            assert mapping.values()["ddr"] == {"gbps": ddr.preset_gbps, "efficiency": ddr.measured_share}, name
            assert mapping.values()["ddr_profile"] == "measured", name


def test_baseline_profiles_equal_schedules_at_each_profile() -> None:
    mappings = {name: systolic.schedule(NETWORK, "pynq-z2", 100, ddr_profile=name, **SLOW) for name in DDR_PROFILES}
    for number, baseline in enumerate(mappings["measured"].baselines):
        listed = {
            rate.profile: rate.frames_per_second for rate in mappings["measured"].baseline_profiles[baseline.name]
        }
        for name, mapping in mappings.items():
            assert listed[name] == mapping.clock_mhz * 1e6 / mapping.baselines[number].cycles
    naive = f"{listed['measured']:.1f} / {listed['optimistic']:.1f}"
    assert listed["measured"] < listed["optimistic"]
    assert naive in mappings["measured"].text()


def test_profile_is_refused_with_a_share_and_by_another_name() -> None:
    with raises(ConflictError, subjects=("--ddr-efficiency 0.5", "--ddr-profile measured")):
        systolic.schedule(NETWORK, "pynq-z2", 100, ddr_efficiency=0.5, ddr_profile="measured")
    with raises(ChoiceError, got="best", choices=DDR_PROFILES):
        systolic.schedule(NETWORK, "pynq-z2", 100, ddr_profile="best")


def test_folding_depends_on_the_profile_only_if_it_reads_weights_from_ddr() -> None:
    on_chip = systolic.fold(NETWORK, "pynq-z2", 100, search="greedy", ddr_gbps=0.05)
    assert {rate.frames_per_second for rate in on_chip.ddr_profiles} == {on_chip.frames_per_second}
    assert "DDR profile" not in on_chip.text()
    asked: dict[str, Any] = {"search": "greedy", "ddr_gbps": 0.05, "external": ("conv8",), "ddr_profile": "measured"}
    read = systolic.fold(NETWORK, "pynq-z2", 100, **asked)
    measured, optimistic = (rate.frames_per_second for rate in read.ddr_profiles)
    bits = read.folded.usage.ddr_bits
    assert bits > 0
    assert measured == pytest.approx(min(read.frames_per_second, 0.05e9 * 0.79 * 8 / bits))
    assert measured < optimistic
    assert "frames/s by DDR profile (modelled): measured 0.79 → " in read.text()
