"""Test batches: every frame of a batch is bit-exact, and layers that reuse weights read them once per batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from boards.board import load
from boards.errors import DoesNotFitError, RangeError
from cnn.integer_model import run_integer
from cnn.maps import Padding
from host.contract.libraries import SystolicLibrary
from host.contract.manifest import read_manifest
from host.contract.parts import MAX_FRAMES
from scheduler.hardware.ddr import ddr_timing
from scheduler.systolic.layers import MAX_BATCH, lower
from scheduler.systolic.model.cost import cost
from scheduler.systolic.search.search import search
from scheduler.systolic.search.space import pin
from systolic.execution.build import Variant, build
from systolic.files import write
from systolic.styles.systolic.measure import cycle_report, trace_design
from systolic.styles.systolic.simulate import fill_batch, open_design, simulate, simulate_batch
from systolic.trace.report import board_memory
from systolic.trace.solver import Trace
from tests.support.accelerators import GEOMETRIES, Accelerator, design_of, networks, picture_for, start
from tests.support.cases import by_default, cases
from tests.support.command_line import call, refused
from tests.support.detectors import tiny_files
from tests.support.errors import raises, raises_among
from tests.support.host.manifests import manifest_fields
from tests.support.schedules import first_fit
from tests.support.searches import problem, space_of

GiveAccelerator = Callable[..., Accelerator]
NETWORK = (
    start(3, 8, 6).convolution(20).pool().convolution(24, 1).pool().dense(40, 0.1).dense(30).dense(9).network("batch")
)
"""A network whose layers reuse their weights from the 2×2 map on. Each earlier layer is fused with a pool."""
ARRAY = GEOMETRIES["odd rows"]
ROWS = ARRAY.rows
LINK = ddr_timing(load("zcu104"), 300)
NATIVE, AP_INT, TRACE = Variant(), Variant(ap_int=True), Variant(trace=True)


def mismatches(made: Accelerator, network: object, batch: int, variant: Variant = NATIVE) -> list[list[int]]:
    """Return the mismatches of each layer, per frame. The frames differ, so that a swapped frame is a mismatch."""
    assert network is not None
    folder = made.load(network, batch)  # type: ignore[arg-type]
    found = simulate_batch(folder, [picture_for(folder.network, seed) for seed in range(batch)], variant)
    assert len(found) == batch
    ends = {one.outputs[0].tobytes() for one in found}
    assert len(ends) == batch
    return [[layer.mismatches for layer in one.layers] for one in found]


def weight_bytes(trace: Trace) -> int:
    """Return the bytes that the weight readers sent to the array in all passes."""
    streams = [stream for region in trace.regions for stream in region.streams]
    return sum(one.elements * one.element_bytes for one in streams if one.writer.startswith("read_weights"))


@pytest.mark.parametrize("batch", by_default(1, [1, 3, ROWS, ROWS + 2]))
def test_batch_frames_match_golden_model(batch: int, accelerator: GiveAccelerator) -> None:
    assert mismatches(accelerator("odd rows"), NETWORK, batch) == [[0] * 5] * batch


@pytest.mark.engine
def test_batch_with_packed_products_matches_golden_model(accelerator: GiveAccelerator) -> None:
    assert mismatches(accelerator("odd rows", AP_INT), NETWORK, 3, AP_INT) == [[0] * 5] * 3


@pytest.mark.engine
@pytest.mark.parametrize("batch", [2, ROWS, 2 * ROWS + 1])
def test_batch_of_dense_layers_matches_golden_model(batch: int, accelerator: GiveAccelerator) -> None:
    """Use maps of odd sizes, with more rows than the largest stride, and with channels that do not fill a word."""
    made = accelerator("odd rows")
    for network in (
        start(3, 14, 10).convolution(20).pool().dense(40, 0.1).dense(9).network(),
        start(2, 11, 3).convolution(5, padding=Padding()).dense(33).network(),
        start(3, 9, 9).convolution(8).convolution(7, 1).dense(12, 0.1).network(),
    ):
        jobs = lower(network, batch)
        assert max(job.joined for job in jobs) > 4
        found = mismatches(made, network, batch)
        assert found == [[0] * len(jobs)] * batch


@pytest.mark.engine
@pytest.mark.parametrize("name", sorted(set(networks()) - {"deep"}))
def test_batch_of_every_layer_kind_matches_golden_model(name: str, accelerator: GiveAccelerator) -> None:
    found = mismatches(accelerator("odd rows"), networks()[name], 3)
    assert {count for frame in found for count in frame} == {0}


def test_search_counts_weight_room_of_the_next_batch() -> None:
    network, board = networks()["deep"], load("zcu104")
    whole = space_of(network, board, batch=3)
    space = pin(whole, rows=ARRAY.rows, columns=ARRAY.columns, lanes=ARRAY.lanes, weight_depth=ARRAY.weight_depth)
    with raises_among(DoesNotFitError, where="conv2", need=300):
        search(problem(network, board, space, 3))


def test_lower_stacks_frames_of_layers_that_reuse_weights() -> None:
    jobs = lower(NETWORK, 7)
    assert [(job.stacked, job.repeats) for job in jobs] == [(1, 7), (1, 7), (7, 1), (7, 1), (7, 1)]
    assert [job.joined for job in jobs] == [1, 1, 2, 1, 1]  # the first dense layer reads maps of two rows
    assert jobs[2].kernel == (1, NETWORK.nodes[jobs[2].input].shape.width)
    assert [job.out.height for job in jobs[2:]] == [7, 7, 7]
    grid = start(3, 9, 9).convolution(8, 1).convolution(8, 1, 2).convolution(8, 1, padding=Padding(0, 1, 0, 1))
    assert [job.stacked for job in lower(grid.average().network(), 2)] == [2, 1, 2, 1]
    low = lower(start(3, 4, 4).convolution(8).average().network(), 3)[1]
    assert (low.stacked, low.stride, low.joined) == (3, 4, 1)  # a depthwise layer joins no rows
    pixels = lower(start(3, 5, 7).dense(21).network(), 3)[0]
    assert (pixels.repeats, pixels.joined) == (3, 1)
    for side, joined in ((32, 32), (33, 1)):  # 65,536 values, and one row more
        assert lower(start(3, side, 32).convolution(64, 1).dense(1).network(), 2)[1].joined == joined


def test_cost_counts_stacked_weights_once_per_batch() -> None:
    alone, batch = cost(first_fit(NETWORK, ARRAY), LINK), cost(first_fit(NETWORK, ARRAY, ROWS), LINK)
    shares = [one.traffic.weights / all_.traffic.weights for one, all_ in zip(alone.layers, batch.layers, strict=True)]
    assert shares == [1 / ROWS, 1 / ROWS, 1, 1, 1]
    assert batch.bytes_per_frame < alone.bytes_per_frame
    assert batch.macs == ROWS * alone.macs
    assert batch.frames_per_second == pytest.approx(300e6 * ROWS / batch.cycles)


@pytest.mark.engine
def test_trace_reads_dense_weights_once_per_batch(accelerator: GiveAccelerator) -> None:
    network = start(3, 14, 10).convolution(20).pool().dense(40, 0.1).dense(9).network("high")
    made = accelerator("odd rows", TRACE)
    moved = {}
    for batch in (1, ROWS):
        folder = made.load(network, batch)
        moved[batch] = weight_bytes(trace_design(folder, picture_for(network)))
        priced = cost(first_fit(network, ARRAY, batch), LINK)
        assert moved[batch] == sum(layer.traffic.weights for layer in priced.layers)
    dense = [layer.traffic.weights for layer in cost(first_fit(network, ARRAY), LINK).layers][1:]
    assert ROWS * moved[1] - moved[ROWS] == (ROWS - 1) * sum(dense) > 0.75 * ROWS * moved[1]


@pytest.mark.engine
def test_traced_cycles_per_frame_fall_as_modelled(accelerator: GiveAccelerator) -> None:
    made = accelerator("odd rows", TRACE)
    traced = {}
    for batch in (1, ROWS):
        folder = made.load(NETWORK, batch)
        traced[batch] = cycle_report(folder, trace_design(folder, picture_for(NETWORK)), board_memory(folder))
    assert traced[ROWS].cycles_per_frame < 0.6 * traced[1].cycles_per_frame
    assert traced[ROWS].frames_per_second == pytest.approx(
        traced[ROWS].clock_mhz * 1e6 * ROWS / traced[ROWS].timing.cycles
    )
    for report in traced.values():
        modelled = sum(layer.modelled_cycles for layer in report.layers)
        assert modelled == pytest.approx(sum(layer.cycles for layer in report.layers), rel=0.1)


@pytest.mark.engine
def test_bench_batch_data_matches_expected(accelerator: GiveAccelerator) -> None:
    """Expect data/expected.bin from the test bench's data/maps.bin. Its frames differ."""
    made = accelerator("odd rows")
    folder = made.load(NETWORK, 3)
    files = design_of(NETWORK, ARRAY, 3).files
    maps = np.frombuffer(files["data/maps.bin"], np.int8).reshape(-1, folder.manifest.word_bytes).copy()
    library = SystolicLibrary(build(made.path, NATIVE), folder.manifest)
    library.run(folder.memory(maps), 0, folder.manifest.passes)
    out = folder.manifest.layers[-1].output
    flat = maps.reshape(-1)[out.offset : out.offset + 3 * out.bytes]
    assert flat.tobytes() == files["data/expected.bin"]
    assert len({flat[at * out.bytes :][: out.bytes].tobytes() for at in range(3)}) == 3


def test_fill_batch_repeats_the_last_picture(tmp_path: Path) -> None:
    write(design_of(NETWORK, ARRAY, 3), tmp_path / "design")
    folder = open_design(tmp_path / "design")
    first, last = picture_for(NETWORK, 1), picture_for(NETWORK, 2)
    _, frames = fill_batch(folder, (first, last))
    assert [frame.tobytes() for frame in frames] == [one.tobytes() for one in (first, last, last)]
    for count in (0, 4):
        with raises(RangeError, got=count, low=1, high=3):
            fill_batch(folder, (first,) * count)


@cases("batch", [0, 10**9, "3", True])
def test_open_design_with_damaged_batch_raises_range_error(batch: object, tmp_path: Path) -> None:
    write(design_of(NETWORK, ARRAY, 2), tmp_path / "design")
    manifest = tmp_path / "design" / "manifest.json"
    manifest.write_text(json.dumps({**manifest_fields(manifest.parent), "batch": batch}))
    with raises(RangeError, where=f"{manifest}: batch", got=batch, low=1, high=64):
        open_design(tmp_path / "design")


def test_simulate_repeats_one_picture_in_the_batch(accelerator: GiveAccelerator) -> None:
    folder, picture = accelerator("odd rows").load(NETWORK, 3), picture_for(NETWORK)
    found = simulate(folder, picture)
    assert found.mismatches == 0
    wanted = run_integer(NETWORK, picture)[folder.manifest.layers[-1].node]
    assert wanted is not None
    assert np.array_equal(found.outputs[-1], wanted)


def test_read_manifest_accepts_batches_up_to_the_maximum(tmp_path: Path) -> None:
    assert MAX_FRAMES == MAX_BATCH
    for batch in (1, 2, MAX_BATCH):
        write(design_of(NETWORK, ARRAY, batch), tmp_path / str(batch))
        assert read_manifest(tmp_path / str(batch)).batch == batch


@cases("batch", [0, -1, MAX_BATCH + 1])
def test_first_fit_with_batch_out_of_range_raises_range_error(batch: int) -> None:
    with raises(RangeError, what="the number of frames in a batch", got=batch, low=1, high=MAX_BATCH):
        first_fit(NETWORK, ARRAY, batch)


# ---------------------------------------------------------------------------------------- the commands


@pytest.fixture
def cfg(tmp_path: Path) -> Path:
    """Return the cfg file of a small detection network."""
    return tiny_files(tmp_path)[0]


def pictures(folder: Path) -> list[Path]:
    """Write two different random pictures and return their files."""
    paths = [folder / f"{seed}.png" for seed in range(2)]
    for seed, path in enumerate(paths):
        Image.fromarray(np.random.default_rng(seed).integers(0, 256, (28, 36, 3), np.uint8)).save(path)
    return paths


@pytest.mark.engine
def test_commands_generate_and_simulate_batches(cfg: Path, tmp_path: Path) -> None:
    saved, design, shots = tmp_path / "s.json", tmp_path / "design", pictures(tmp_path)
    board = ("--board", "pynq-z2", "--clock", 250)  # the clock that a search over all clocks would choose
    done = call("schedule", cfg, *board, "--batch", 3, "--save", saved, "--report", tmp_path / "s.html")
    assert done.code == 0
    assert "batches of 3 frames" in done.out
    assert "a batch of 3 frames: " in done.out
    assert json.loads(saved.read_text())["batch"] == 3
    assert "batches of 3 frames" in (tmp_path / "s.html").read_text()
    made = call("generate", cfg, "--seed", 1, "--board", "pynq-z2", "--schedule", saved, "-o", design, "--json", "-")
    assert made.json["batch"] == 3
    ran = call("simulate", design, "--picture", *shots, "--json", "-")
    assert ran.code == 0
    assert (ran.json["batch"], ran.json["mismatches"], len(ran.json["frames"])) == (3, 0, 3)
    assert ran.json["frames"][1]["layers"] == ran.json["frames"][2]["layers"] != ran.json["frames"][0]["layers"]
    ran = call("simulate", design, "--picture", *shots, "--golden")
    assert (ran.code, ran.out.count("the standalone C++ golden program agrees in every layer")) == (0, 3)
    refused(
        call("simulate", design, "--picture", *shots[:2], "--cycles"), RangeError, what="pictures with --cycles", got=2
    )
    refused(call("simulate", design, "--picture", *shots, *shots), r"design takes .*1 and 3.*4")
    found = call("run", design, shots[0], "--json", "-")
    assert (found.code, found.json["mismatches"]) == (0, 0)
    other = ("generate", cfg, "--seed", 1, "--board", "pynq-z2", "--schedule", saved, "-o", tmp_path / "x")
    refused(call(*other, "--batch", 2), r"s\.json: --batch .*3.*2")


def test_commands_with_bad_batch_report_the_range(cfg: Path, tmp_path: Path) -> None:
    asked = ("generate", cfg, "--seed", 1, "-o", tmp_path / "x")
    refused(call(*asked, "--batch", 0), "batch .*1 and 64.*0")
    refused(call("schedule", cfg, "--batch", 65), "batch .*1 and 64.*65")
    refused(
        call(*asked, "--style", "streaming", "--batch", 2),
        "--style streaming and --batch exclude each other.*--style systolic",
    )
    refused(call("compare", cfg, "--batch", 2, "--batch", 65), "batch .*1 and 64.*65")
    assert not (tmp_path / "x").exists()


@pytest.mark.engine
def test_compare_has_one_row_per_batch(cfg: Path, tmp_path: Path) -> None:
    asked = ("compare", cfg, "--board", "pynq-z2", "--array", "4x8x8", "--bits", 4, "--bits", 8)
    done = call(*asked, "--batch", 1, "--batch", 4, "--report", tmp_path / "c.html", "--json", tmp_path / "c.json")
    assert done.code == 0
    rows = json.loads((tmp_path / "c.json").read_text())["rows"]
    wanted = [f"pynq-z2, 4x8x8, int{bits}, batch {batch}" for bits in (4, 8) for batch in (1, 4)]
    assert [row["asked"] for row in rows] == wanted
    assert [row["schedule"]["batch"] for row in rows] == [1, 4, 1, 4]
    assert all(one in done.out and one in (tmp_path / "c.html").read_text() for one in wanted)
