"""Maps of several layers in one strip of a map buffer, so that a concat is read there as one map."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards.errors import DoesNotFitError
from cnn.quantized import QuantizedNetwork
from contract.program import PASS_FIELDS, names_of
from scheduler.hardware.ddr import DdrRate, ddr_timing
from scheduler.systolic.array import Array
from scheduler.systolic.map_buffers import stays_of
from scheduler.systolic.model.cost import cost
from scheduler.systolic.network.layer import Layer
from scheduler.systolic.program.emit import emit
from scheduler.systolic.rules import check_schedule, why_in_ddr
from scheduler.systolic.schedule import SystolicSchedule, schedule_of
from scheduler.systolic.search.search import search
from scheduler.systolic.search.space import pin
from scheduler.systolic.tiling import row_slots
from systolic.model import DesignInputs
from systolic.styles.systolic.generation.generate import generate
from systolic.styles.systolic.mapping import price
from systolic.styles.systolic.measure import cycle_report
from systolic.trace.report import board_memory
from tests.support.arrays.concats import (
    ARRAYS,
    NETWORKS,
    SMALL,
    STAYING,
    cross_stage,
    fire,
    residuals,
)
from tests.support.arrays.run import BOARD, Run
from tests.support.errors import raises_among
from tests.support.quantised import Builder
from tests.support.schedules import first_fit, staying, with_on_chip
from tests.support.searches import problem, space_of
from tests.support.traced import kept as kept_there
from tests.support.traced import load_into, traced, wrong_looked_inside


def layers_of(schedule: SystolicSchedule) -> list[Layer]:
    return [scheduled.layer for scheduled in schedule.layers]


def kept(network: QuantizedNetwork, array: Array) -> SystolicSchedule:
    """Return a schedule in which every map stays on chip that may and fits."""
    schedule = first_fit(network, array)
    return check_schedule(with_on_chip(schedule, staying(network, layers_of(schedule), array)))


@pytest.mark.engine
@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("name", NETWORKS)
def test_engine_concats_on_chip_are_bit_exact(name: str, array: str, run: Run) -> None:
    schedule = kept(NETWORKS[name](ARRAYS[array].bits), ARRAYS[array])
    on_chip = tuple(tiling.on_chip for tiling in schedule.tilings)
    assert on_chip == STAYING[name]
    stays = stays_of(schedule.network, layers_of(schedule))
    beside = tuple(
        stays_there and stay.first_writer is not None for stays_there, stay in zip(on_chip, stays, strict=True)
    )
    assert any(beside)
    for chosen in (schedule, check_schedule(with_on_chip(schedule, beside))):
        assert run(array, chosen, 1) == 0


def test_emit_concats_on_chip_address_their_parts_of_the_strip() -> None:
    """Layers read one map, several maps and a slice. They write next to another map, and a sum next to its operand."""
    schedule = kept(residuals(), ARRAYS["5 rows"])
    program, pitch = emit(schedule), 6 * 32
    words = program.words.astype(int)
    names = names_of(schedule.array)
    fields = {
        name: words[:, names.index(name)].tolist()
        for name in ("in_buffer", "in_base", "in_row_pitch", "row_words", "out_buffer", "out_base", "added_buffer")
    }
    own, added = (words[:, names.index(f"{side}_base")] for side in ("out", "added"))
    assert fields["out_buffer"] == [1, 2, 1, 2, 1, 2, 0]
    assert fields["out_base"][:5] == [0, 0, 6 * 16, 0, 6 * 24]
    assert fields["in_buffer"] == [0, 1, 2, 1, 2, 1, 2]
    assert fields["in_base"][1:] == [6 * 8, 0, 6 * 16, 0, 0, 0]
    assert [fields["in_row_pitch"][n] for n in (1, 3, 5)] == [pitch] * 3
    assert [fields["row_words"][n] for n in (1, 3, 5)] == [6 * 8, 6 * 8, pitch]
    assert fields["added_buffer"] == [0, 0, 1, 0, 1, 0, 0]
    assert (own - added)[[2, 4]].tolist() == [6 * 8, 6 * 8]


def test_emit_readers_with_other_padding_start_at_another_bank() -> None:
    # A 3 × 3 and a 1 × 1 convolution read the same map. The map's banks are rotated by the row of padding of the 3 ×
    # 3 convolution. The row buffer of the 1 × 1 convolution begins with the second bank, and needs one more slot.
    schedule = kept(fire(), ARRAYS["4 rows"])
    words = emit(schedule).words.astype(int)
    rows = {
        (row[PASS_FIELDS.index("pad_top")], row[PASS_FIELDS.index("in_turn")])
        for row in words
        if row[PASS_FIELDS.index("in_buffer")] and row[PASS_FIELDS.index("stride")] == 1
    }
    assert rows == {(0, 1), (1, 1), (0, 0)}
    turned = schedule.layers[2]
    assert (turned.shape.turned, turned.shape.from_chip) == (1, True)
    in_ddr = replace(turned.shape, from_chip=False)
    slots = [row_slots(shape, 4, turned.tiling) for shape in (turned.shape, in_ddr)]
    assert slots == [turned.tiling.overlap + 2, turned.tiling.overlap + 1]


@pytest.mark.engine
@pytest.mark.parametrize("name", NETWORKS)
def test_design_run_layer_by_layer_writes_every_map_to_ddr(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    schedule = kept(NETWORKS[name](), ARRAYS["5 rows"])
    shape, folder = schedule.network.input_shape, tmp_path_factory.getbasetemp() / "looked-inside"
    picture = np.random.default_rng(3).integers(0, 256, (shape.channels, shape.height, shape.width), np.uint8)
    design = generate(price(schedule, BOARD, ddr_timing(BOARD, 300)), DesignInputs({}, picture))
    assert wrong_looked_inside(load_into(folder, design), picture) == []


@pytest.mark.engine
def test_search_keeps_concats_on_chip_which_move_no_bytes() -> None:
    network = fire()
    space = pin(space_of(network, BOARD), rows=5, columns=8, lanes=8)
    ddr = ddr_timing(BOARD, 300)
    best = search(problem(network, BOARD, space), ddr).schedule
    away = search(problem(network, BOARD, pin(space, map_depth=0)), ddr).schedule
    assert [tiling.on_chip for tiling in best.tilings] == list(STAYING["fire"])
    near, far = cost(best, ddr), cost(away, ddr)
    assert near.cycles < far.cycles
    maps = emit(away).maps
    ends = 8 * (maps[0].words + maps[max(maps)].words)
    assert near.traffic.maps_read + near.traffic.maps_written == ends < far.traffic.maps_written


def test_check_schedule_strip_larger_than_a_buffer_is_refused() -> None:
    schedule = kept(fire(), ARRAYS["4 rows"])
    small = replace(schedule.array, map_depth=80)
    with raises_among(DoesNotFitError, where="conv3", have=80):
        check_schedule(schedule_of(schedule.network, small, schedule.tilings))


def test_reason_for_ddr_is_given_per_layer() -> None:
    # Two maps compete with maps that save more, one map has no room, and operands of an add on the array are in DDR.
    schedule = kept(cross_stage(), ARRAYS["4 rows"])
    taken = "the map buffers hold maps that save more DDR traffic, or its layer reads the only buffer with room"
    assert why_in_ddr(schedule) == ("", taken, taken, "", "", "", "")
    small = kept(fire(), replace(ARRAYS["4 rows"], map_depth=100))
    assert why_in_ddr(small)[2] == "it takes 135 words of a bank, with the maps next to it, and a map buffer has 100"
    assert "".join(why_in_ddr(first_fit(fire(), replace(SMALL, windows=True, map_depth=0)))) == ""
    upsample = Builder(3, 8, 8).conv(8, 3).conv(8, 3).add(1, 2).conv(8, 1).network()
    assert why_in_ddr(first_fit(upsample, SMALL))[0].startswith("maps whose rows are read in turn are stored in DDR")
    design = generate(price(schedule, BOARD, ddr_timing(BOARD, 300)), DesignInputs({}, np.zeros((3, 10, 9), np.uint8)))
    comments = " ".join(design.files["src/top.cpp"].decode().replace("//", " ").split())
    assert f"its output is stored in DDR: {taken}" in comments


@pytest.mark.engine
def test_cost_concats_on_chip_are_within_3_percent_of_the_trace(tmp_path: Path) -> None:
    # The layers read and write strips, with and without rows of padding. One of them upsamples on chip.
    build = Builder(3, 40, 40, seed=7).conv(32, 3).conv(48, 3).at(1).conv(32, 1).concat(2, 3).conv(32, 1).pool()
    network = build.conv(48, 3).upsample().concat(8, 5).conv(48, 3).conv(16, 1).network()
    array = Array(8, 16, 16, row_depth=4096, weight_depth=8192, channel_tiles=16, map_stride=2, upscale=2, map_ports=2)
    schedule = check_schedule(kept_there(first_fit(network, array)))
    assert [layer.shape.from_chip for layer in schedule.layers] == [False, *[True] * 7]
    opened, trace = traced(schedule, BOARD, 300, tmp_path / "design")
    report = cycle_report(opened, trace, board_memory(opened, 0.85, 19.2))
    modelled = cost(schedule, ddr_timing(BOARD, 300, DdrRate(19.2, 0.85))).layers
    for layer, time in zip(modelled, report.layers, strict=True):
        assert layer.running == pytest.approx(time.running, rel=0.03, abs=20), layer.shape.name
