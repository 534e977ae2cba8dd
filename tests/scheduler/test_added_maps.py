"""Residual adds that the Saver computes: their choice, their values on the engine, and their modelled cost."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from boards.errors import ChoiceError, SystolicError
from cnn.quantized import QuantizedNetwork
from contract.geometry import RTL
from contract.program import names_of
from host.contract.manifest import of_style, read_manifest
from host.contract.program import ImageWords, check_program
from host.contract.systolic import SystolicManifest
from host.contract.uploads import read_systolic
from scheduler.hardware.ddr import DdrRate, ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.layers import lower
from scheduler.systolic.model.cost import cost
from scheduler.systolic.network.copies import with_copies
from scheduler.systolic.program.emit import emit
from scheduler.systolic.rules import check_schedule
from systolic.execution.build import Variant
from systolic.files import write
from systolic.model import DesignInputs
from systolic.styles.systolic.exploration import explore, ways_to_add
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.measure import cycle_report
from systolic.styles.systolic.options import SystolicOptions
from systolic.trace.report import board_memory
from tests.support.arrays.added_maps import ARRAYS, NETWORKS, behind, own, residual, stage
from tests.support.arrays.run import BOARD, Run
from tests.support.errors import raises
from tests.support.quantised import Builder
from tests.support.schedules import first_fit, staying, with_on_chip
from tests.support.traced import kept, traced


def fused(network: QuantizedNetwork) -> list[str]:
    """Return the names of the additions that are fused."""
    return [network.nodes[layer.output].name for layer in lower(network, fused=True) if layer.added]


def test_lower_fused_gives_the_expected_additions() -> None:
    assert fused(residual()) == ["add4", "add8", "add12", "add14"]
    assert fused(with_copies(behind(), True)) == ["add5", "add8", "add12"]
    assert fused(with_copies(own(), True)) == ["add16"]
    assert not any(layer.added for layer in lower(residual()))


@pytest.mark.engine
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", ARRAYS)
def test_engine_fused_additions_are_bit_exact(name: str, network: str, run: Run) -> None:
    array = ARRAYS[name]
    schedule = first_fit(with_copies(NETWORKS[network](array.bits), True), array)
    layers = [scheduled.layer for scheduled in schedule.layers]
    assert any(layer.added for layer in layers)
    schedule = with_on_chip(schedule, staying(schedule.network, layers, array))
    assert run(name, check_schedule(schedule), 1) == 0


@pytest.mark.engine
def test_engine_fused_additions_of_a_batch_are_bit_exact(run: Run) -> None:
    for network in (residual(), with_copies(behind(), True)):
        assert run("8 bits", check_schedule(first_fit(network, ARRAYS["8 bits"], 3)), 2) == 0


@pytest.mark.engine
def test_engine_fused_additions_with_ap_int_are_bit_exact(run: Run) -> None:
    schedule = first_fit(residual(4), ARRAYS["4 bits"])
    assert run("4 bits", check_schedule(schedule), 3, Variant(ap_int=True)) == 0


@pytest.mark.engine
def test_engine_wrong_multiplier_gives_mismatches(run: Run) -> None:
    # A program with another multiplier of the added map must give mismatches.
    build = Builder(3, 11, 9, seed=3).conv(12, 3).conv(12, 3).add(1, 2, multipliers=(7, 9), slope=1)
    network = build.network()
    (_, layer) = lower(network, fused=True)
    assert layer.added is not None
    swapped = replace(layer.added, other_multiplier=layer.added.own_multiplier)
    schedule = first_fit(network, ARRAYS["8 bits"])
    wrong = replace(schedule.layers[1], layer=replace(schedule.layers[1].layer, added=swapped))
    assert run("8 bits", schedule, 1) == 0
    assert run("8 bits", replace(schedule, layers=(schedule.layers[0], wrong)), 1) > 0


# --- the model, the search, the program ------------------------------------------------------------------------------

TRACED = Array(
    13, 16, 16, row_depth=2048, weight_depth=4096, kept_depth=1024, chunk=64, channel_tiles=16, added_maps=True
)


@pytest.mark.engine
@pytest.mark.parametrize("share", [0.85, 0.4])
def test_cost_fused_additions_is_within_3_percent_of_the_trace(share: float, tmp_path: Path) -> None:
    schedule = kept(first_fit(stage(32, 40), TRACED))
    opened, trace = traced(schedule, BOARD, 300, tmp_path / "design")
    report = cycle_report(opened, trace, board_memory(opened, share, 19.2))
    modelled = cost(schedule, ddr_timing(BOARD, 300, DdrRate(19.2, share))).layers
    assert sum(layer.shape.added for layer in modelled) == 2
    times = [time.running for time in report.layers]
    assert sum(layer.running for layer in modelled) == pytest.approx(sum(times), rel=0.03)
    for layer, time in zip(modelled, times, strict=True):
        assert not layer.shape.added or layer.running == pytest.approx(time, rel=0.03), layer.shape.name


def test_cost_fused_addition_is_below_a_separate_pass() -> None:
    network, ddr = stage(64, 52), ddr_timing(BOARD, 300)
    fused, own = (cost(first_fit(network, replace(TRACED, added_maps=added)), ddr) for added in (True, False))
    assert len(fused.layers) == len(own.layers) - 2
    assert fused.cycles < 0.85 * own.cycles
    assert fused.traffic.maps_written < own.traffic.maps_written
    program = emit(first_fit(network, TRACED))
    assert program.words.shape[1] == 73
    assert fused.traffic.program == program.words.nbytes


def test_traffic_fused_additions_equals_the_words_of_the_maps() -> None:
    schedule = first_fit(stage(32, 20), TRACED)
    maps, layers = emit(schedule).maps, [scheduled.layer for scheduled in schedule.layers]
    moved = cost(schedule, ddr_timing(BOARD, 300)).traffic
    read = [layer.input for layer in layers] + [layer.added.other_node for layer in layers if layer.added]
    assert moved.maps_read == 16 * sum(maps[node].words for node in read)
    assert moved.maps_written == 16 * sum(maps[layer.output].words for layer in layers)


@pytest.mark.engine
def test_explore_fuses_additions_unless_pinned() -> None:
    pins = {"rows": 4, "columns": 8, "lanes": 8, "chunk": 16, "save_rows": 2, "map_ports": 2, "weight_ports": 1}
    network = stage(16, 12)
    fused, own = (
        explore(network, BOARD, 300, SystolicOptions(pins={**pins, "added_maps": count})).schedule for count in (1, 0)
    )
    best = explore(network, BOARD, 300, SystolicOptions(pins=pins))
    assert (fused.array.added_maps, own.array.added_maps, best.schedule.array.added_maps) == (1, 0, 1)
    assert (len(fused.layers), len(own.layers)) == (6, 8)
    again = explore(network, BOARD, 300, SystolicOptions(schedule=best.to_json()))
    assert again.cost.cycles == best.cost.cycles
    with raises(ChoiceError, what="added_maps", got=2, choices=(0, 1)):
        explore(network, BOARD, 300, SystolicOptions(pins={"added_maps": 2}))
    smallest = explore(network, BOARD, 300, SystolicOptions(pins=pins, objective="resources", fps=1))
    assert smallest.schedule.array.added_maps == 0


def test_ways_to_add_are_both_if_additions_can_be_fused() -> None:
    assert ways_to_add(residual(), SystolicOptions()) == (True, False)
    assert ways_to_add(residual(), SystolicOptions(engine=RTL)) == (True, False)
    assert ways_to_add(Builder(3, 8, 8).conv(8, 3).network(), SystolicOptions()) == (False,)


CHANGES = {
    "added_words": 1,
    "added_base": 1 << 20,
    "added_row_pitch": 1 << 28,
    "added_shift": 60,
    "added_limits": -(1 << 31),
}


def test_check_program_added_words_out_of_bounds_are_refused(tmp_path: Path) -> None:
    schedule = first_fit(residual(), ARRAYS["8 bits"])
    picture = np.zeros((3, 11, 9), np.uint8)
    write(generate(price(schedule, BOARD, ddr_timing(BOARD, 300)), DesignInputs({}, picture)), tmp_path / "design")
    manifest = of_style(SystolicManifest, read_manifest(tmp_path / "design"))
    uploads = read_systolic(tmp_path / "design", manifest)
    images = ImageWords(len(uploads.weights[0]), len(uploads.requantisers), uploads.requantisers[:, 3])
    adding = next(layer.first_pass for layer in manifest.layers if layer.added_node is not None)
    for number, field in product((0, adding), CHANGES):
        words = uploads.program.copy()
        words.view(np.int32)[number, names_of(manifest.array).index(field)] += CHANGES[field]
        if number == 0 and field == "added_limits":
            continue
        with pytest.raises(SystolicError) as caught:
            check_program(manifest, words, images, "program.bin")
        assert f"pass {number}" in str(caught.value)
        assert "added_" in str(caught.value)
    layers = tuple(replace(layer, added_node=len(manifest.layers)) for layer in manifest.layers)
    with pytest.raises(SystolicError) as caught:
        replace(manifest, layers=layers).validate()
    assert "added_node" in str(caught.value)
