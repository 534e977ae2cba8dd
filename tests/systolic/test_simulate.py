"""Test the executed generated code against the golden model, and check that a planted error is detected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from boards.errors import (
    ChoiceError,
    DamagedFileError,
    DoesNotFitError,
    FileAccessError,
    MismatchError,
    MissingValueError,
    RangeError,
    ShapeError,
    UnsupportedError,
)
from cnn.maps import Padding
from contract.program import PASS_FIELDS
from host.contract.libraries import SystolicLibrary
from scheduler.systolic.tiling import ORDERS
from systolic.execution.build import Variant
from systolic.execution.simulation import LayerResult, compare
from systolic.styles.systolic.simulate import arena, open_design, place_picture, simulate, unpack_output
from tests.support.accelerators import GEOMETRIES, Accelerator, Chain, networks, picture_for, start
from tests.support.cases import by_default
from tests.support.errors import raises
from tests.support.host.manifests import manifest_fields
from tests.support.schedules import first_fit

GiveAccelerator = Callable[..., Accelerator]
NETWORKS = networks()
NATIVE, AP_INT = Variant(), Variant(ap_int=True)
SANITISE = Variant(sanitize=True)
ROOT = Path(__file__).resolve().parents[2]


def mismatches(made: Accelerator, name: str, variant: Variant = NATIVE) -> dict[str, int]:
    """Return the mismatches of each layer of a network.

    No layer may have a constant output, because equality would then prove nothing.
    """
    network = NETWORKS[name]
    found = simulate(made.load(network), picture_for(network), variant)
    for layer, output in zip(found.layers, found.outputs, strict=True):
        assert len(np.unique(output)) > min(5, output.size // 2), f"{layer.name} is constant"
    return {layer.name: layer.mismatches for layer in found.layers}


# ------------------------------------------------------------------------------------- every integer


@pytest.mark.parametrize("geometry", by_default(1, GEOMETRIES))
@pytest.mark.parametrize("name", NETWORKS)
def test_simulated_layers_match_golden_model(name: str, geometry: str, accelerator: GiveAccelerator) -> None:
    assert set(mismatches(accelerator(geometry), name).values()) == {0}


@pytest.mark.engine
@pytest.mark.parametrize("geometry", ["odd rows", "narrow"])
@pytest.mark.parametrize("name", NETWORKS)
def test_ap_int_and_packed_products_match_golden_model(name: str, geometry: str, accelerator: GiveAccelerator) -> None:
    """Use "narrow" for the packing of a DSP48E1, with chains of 4 and the second product at bit 17."""
    assert set(mismatches(accelerator(geometry, AP_INT), name, AP_INT).values()) == {0}


def test_networks_and_geometries_cover_all_tilings() -> None:
    """Check this coverage, because the tests above would otherwise not use parts of the engine."""
    tilings = [t for a in GEOMETRIES.values() for network in NETWORKS.values() for t in first_fit(network, a).layers]
    assert {t.tiling.order for t in tilings if t.row_tiles > 1} == set(ORDERS)
    assert {t.tiling.overlap for t in tilings if t.row_tiles > 1} == {True, False}
    cut = [t.tiling.columns.count > 1 for t in tilings]
    assert set(cut) == {True, False}
    assert {t.layer.pool_size for t in tilings if t.layer.reads_pixels} == {1, 2}
    pools = {(t.layer.pool_stride, several) for t, several in zip(tilings, cut, strict=True) if t.layer.pool_size == 2}
    assert pools >= {(2, True), (1, False)}
    assert {t.layer.kernel[0] for t in tilings} >= {1, 3, 5, 7}
    assert {t.layer.stride for t in tilings} >= {1, 2, 3}
    assert {t.layer.depthwise for t in tilings} == {True, False}
    assert {t.channel_tiles > 1 for t in tilings} == {True, False}


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Draw a network of one to four random layers on a random input."""
    made = start(draw(st.integers(1, 4)), draw(st.integers(1, 26)), draw(st.integers(1, 40)), draw(st.integers(0, 99)))
    for _ in range(draw(st.integers(1, 4))):
        _draw_layer(draw, made)
    return made


def _draw_layer(draw: st.DrawFn, made: Chain) -> None:
    """Draw a random layer and add it to the network."""
    kind = draw(st.sampled_from(("conv", "conv", "conv", "depthwise", "pool", "pool 1", "pool cut", "dense")))
    if len(made.nodes) > 1 and kind.startswith("pool"):
        assume(min(made.last.height, made.last.width) >= 2)
        made.pool(1 if kind == "pool 1" else 2, padded=kind != "pool cut")
    elif len(made.nodes) > 1 and kind == "dense":
        assume(made.last.height * made.last.width <= 64)
        made.dense(draw(st.integers(1, 40)), draw(st.sampled_from((0.0, 0.1, 1.0))))
    else:
        kernel = draw(st.sampled_from((1, 2, 3, 5, 7)))
        pads = Padding(*(draw(st.integers(0, kernel - 1)) for _ in range(4)))
        assume(made.last.height + pads.top + pads.bottom >= kernel)
        assume(made.last.width + pads.left + pads.right >= kernel)
        depthwise = kind == "depthwise" and len(made.nodes) > 1
        filters = made.last.channels if depthwise else draw(st.integers(1, 40))
        slope, bits = draw(st.sampled_from((0.0, 0.1, 1.0))), draw(st.sampled_from((8, 8, 5)))
        stride = draw(st.sampled_from((1, 1, 2, 3, 4)))
        made.convolution(filters, kernel, stride, pads, slope=slope, bits=bits, depthwise=depthwise)


@pytest.mark.engine
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_random_networks_match_golden_model(geometry: str, accelerator: GiveAccelerator) -> None:
    made = accelerator(geometry)
    ran = []

    @settings(
        max_examples=60,
        derandomize=True,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(chains())
    def every_bit(chain: Chain) -> None:
        network = chain.network()
        try:
            folder = made.load(network)
        except (DoesNotFitError, UnsupportedError):
            return
        ran.append(len(chain.nodes))
        found = simulate(folder, picture_for(network))
        assert found.mismatches == 0, found.layers

    every_bit()
    assert len(ran) >= 40, "too few of the random networks fit for a useful test"


@pytest.mark.engine
def test_extreme_values_saturate_as_in_golden_model(accelerator: GiveAccelerator) -> None:
    """Use weights of −127 and 127, and pixels of 0 and 255. The results reach both ends of the range."""
    made = start(4, 9, 10).convolution(8, slope=1.0).convolution(8, 3, slope=1.0)
    signs = np.where(np.arange(8) % 2, 1, -1)
    for index, inputs in ((1, np.ones(4, int)), (2, signs)):
        op = made.nodes[index].op
        signed = 127 * np.outer(signs, inputs)[:, :, None, None]
        weights = np.broadcast_to(signed, op.weights.shape).astype(np.int8)  # type: ignore[union-attr]
        made.nodes[index] = replace(made.nodes[index], op=replace(op, weights=weights))  # type: ignore[arg-type]
    network = made.network()
    picture = np.zeros((4, 9, 10), np.uint8)
    picture[:, :, 5:] = 255
    for variant in (Variant(), AP_INT):
        found = simulate(accelerator("odd rows", variant).load(network), picture, variant)
        assert found.mismatches == 0
        assert {-128, 127} <= set(found.outputs[1].reshape(-1).tolist())


def test_second_frame_starts_without_state_of_the_first(accelerator: GiveAccelerator) -> None:
    """Check repeated frames, because static variables of the engine keep weights between passes."""
    network = NETWORKS["pools"]
    folder = accelerator("odd rows").load(network)
    first = [simulate(folder, picture_for(network, seed)) for seed in (1, 2, 1)]
    assert [one.mismatches for one in first] == [0, 0, 0]
    assert not np.array_equal(first[0].outputs[0], first[1].outputs[0])


def test_frame_can_be_run_pass_by_pass(accelerator: GiveAccelerator) -> None:
    network = NETWORKS["pools"]
    folder = accelerator("odd rows").load(network)
    whole = simulate(folder, picture_for(network))
    library = SystolicLibrary(sorted((folder.path / "build").glob("native-*.so"))[0], folder.manifest)
    maps = arena(folder)
    place_picture(folder, picture_for(network), maps)
    for index in range(len(folder.program)):
        library.run(folder.memory(maps), index, 1)
    last = unpack_output(folder.manifest.layers[-1], folder.manifest.lanes, maps)
    assert np.array_equal(last, whole.outputs[-1])


def test_simulate_reports_progress_of_every_pass(accelerator: GiveAccelerator) -> None:
    network = NETWORKS["classifier"]
    told: list[str] = []
    folder = accelerator("odd rows").load(network)
    simulate(folder, picture_for(network), progress=told.append)
    assert any(line.startswith("golden model") for line in told)
    assert told[-1] == f"executing, pass {len(folder.program)} of {len(folder.program)}, 100%"


# -------------------------------------------------------------------------------- planted errors


def broken_layers(made: Accelerator, variant: Variant = NATIVE) -> list[str]:
    """Return the names of the layers of "pools" that differ, with the data files of the folder."""
    found = simulate(open_design(made.path), picture_for(NETWORKS["pools"]), variant)
    return [one.name for one in found.layers if one.mismatches]


@pytest.fixture
def planted(accelerator: GiveAccelerator, tmp_path: Path) -> Accelerator:
    """Return a copy with the network "pools", which a test may damage."""
    made = accelerator("odd rows").copy(tmp_path / "design")
    made.load(NETWORKS["pools"])
    assert broken_layers(made) == []
    return made


def replant(made: Accelerator, name: str, data: bytes) -> None:
    """Replace a data file, and its checksum in the manifest, as if the generator had written this file."""
    path, manifest = made.path / "data" / name, made.path / "manifest.json"
    text = manifest.read_text("utf-8")
    before = f'"crc32": {crc32(path.read_bytes())}'
    assert before in text
    manifest.write_text(text.replace(before, f'"crc32": {crc32(data)}'), "utf-8")
    path.write_bytes(data)


def field_of(made: Accelerator, layer: int, name: str) -> int:
    """Return a field of a layer's first pass in the program."""
    folder = open_design(made.path)
    return int(folder.program[folder.manifest.layers[layer].first_pass][PASS_FIELDS.index(name)])


LAYERS = ["conv1", "conv3", "conv5", "conv6", "conv8"]


@pytest.mark.parametrize("layer", range(5))
def test_changed_weight_shows_from_its_layer_on(layer: int, planted: Accelerator) -> None:
    path = planted.path / "data" / "weights_0.bin"
    data = bytearray(path.read_bytes())
    at = field_of(planted, layer, "weights_base") * planted.array.lanes
    at += next(i for i in range(1 << 20) if data[at + i])
    data[at] ^= 0xC0
    replant(planted, path.name, bytes(data))
    assert broken_layers(planted)[0] == LAYERS[layer]


@pytest.mark.parametrize("layer", range(5))
def test_changed_shift_shows_from_its_layer_on(layer: int, planted: Accelerator) -> None:
    path = planted.path / "data" / "requantisers.bin"
    words = np.fromfile(path, "<u4").reshape(-1, 4)
    words[field_of(planted, layer, "requantiser_base") + 3, 2] += 1
    replant(planted, path.name, words.tobytes())
    assert broken_layers(planted)[0] == LAYERS[layer]


@pytest.mark.parametrize(
    ("file", "line", "wrong"),
    by_default(
        1,
        [
            (
                "load.h",
                "load.slot = wraps ? next_slot(pass, load.slot) : load.slot;",
                "",
            ),
            ("load.h", "bank < feed.bank ? next_slot_address : slot_address", "slot_address"),
            ("load.h", "start.slot = next_slot(pass, start.slot);", ""),
        ],
    ),
    ids=["slot of the rows that load", "slot of the rows below the tile", "slot of the tile"],
)
def test_wrong_row_reuse_shows_in_the_layer_that_reuses(
    file: str, line: str, wrong: str, accelerator: GiveAccelerator, tmp_path: Path
) -> None:
    """Let only conv2 reuse rows: conv1 is one tile high and its windows have one row, so that it reuses nothing."""
    made = accelerator("odd rows").copy(tmp_path / "design")
    network = start(3, 18, 18).convolution(8, 1, 4, Padding()).convolution(8, 3, padding=Padding(4, 4, 4, 4)).network()
    folder = made.load(network)
    assert simulate(folder, picture_for(network)).mismatches == 0
    source = made.path / "src" / file
    text = source.read_text()
    assert text.count(line) == 1, "the engine must have this line once: choose another line to break"
    source.write_text(text.replace(line, wrong))
    found = simulate(folder, picture_for(network))
    assert [bool(one.mismatches) for one in found.layers] == [False, True]


@pytest.mark.engine
def test_changed_weight_shows_in_the_ap_int_build(planted: Accelerator, accelerator: GiveAccelerator) -> None:
    made = accelerator("odd rows", AP_INT)
    made.load(NETWORKS["pools"])
    path = made.path / "data" / "weights_1.bin"
    replant(made, path.name, bytes([path.read_bytes()[0] ^ 0xC0]) + path.read_bytes()[1:])
    assert broken_layers(made, variant=AP_INT)[0] == "conv1"


def test_program_with_address_outside_the_maps_is_refused(planted: Accelerator) -> None:
    path = planted.path / "data" / "program.bin"
    words = np.fromfile(path, "<u4").reshape(-1, 64)
    words[2, PASS_FIELDS.index("in_base")] = 1_000_000
    replant(planted, path.name, words.tobytes())
    with raises(RangeError, what="in_base", got=1_000_000, where="data/program.bin: pass 2"):
        broken_layers(planted)


# ------------------------------------------------------------------------------------- sanitisers

SANITISED = """
import os
import sys
from pathlib import Path
import numpy as np
from host.contract import uploads
from systolic.execution.build import Variant
from systolic.styles.systolic.simulate import open_design, simulate
if os.environ.get("UNCHECKED"):
    uploads.check_program = lambda *_: None
for path in sys.argv[1:]:
    folder = open_design(Path(path))
    picture = np.load(Path(path) / "picture.npy")
    print(simulate(folder, picture, Variant(sanitize=True)).mismatches)
"""


def run_sanitised(*folders: Path, unchecked: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the folders one after another in one process, with the sanitisers' libraries loaded first."""
    libraries = (
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    )
    environment = {**os.environ, "LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"}
    environment |= {"PYTHONPATH": str(ROOT)} | ({"UNCHECKED": "1"} if unchecked else {})
    command = [sys.executable, "-c", SANITISED, *map(str, folders)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.engine
def test_sanitisers_report_only_a_planted_error(accelerator: GiveAccelerator, tmp_path: Path) -> None:
    made = accelerator("odd rows", SANITISE)
    folders = []
    for number, network in enumerate(NETWORKS.values()):
        made.load(network)
        folders.append(made.copy(tmp_path / str(number)).path)
        np.save(folders[-1] / "picture.npy", picture_for(network))
    clean = run_sanitised(*folders)
    assert (clean.returncode, clean.stderr) == (0, "")
    assert clean.stdout.split() == ["0"] * len(NETWORKS)

    words = np.fromfile(folders[0] / "data/program.bin", "<u4").reshape(-1, 64)
    # Let the rows cross the end of the row buffer, because the sanitiser's red zone after it is only a few words wide.
    words[1, PASS_FIELDS.index("block_words")] = made.array.row_depth - 8
    replant(Accelerator(folders[0], made.array), "program.bin", words.tobytes())
    refused = run_sanitised(folders[0])
    assert "pass 1: block_words" in refused.stderr, "the check of the program must report it before it runs"
    damaged = run_sanitised(folders[0], unchecked=True)
    assert damaged.returncode != 0
    assert "load.h" in damaged.stderr
    assert "out of bounds" in damaged.stderr or "AddressSanitizer" in damaged.stderr


# ------------------------------------------------------------------------------- folders and input


def test_open_design_of_other_folder_is_refused(tmp_path: Path) -> None:
    with raises(FileAccessError, path=str(tmp_path / "nothing"), what="folder"):
        open_design(tmp_path / "nothing")
    (tmp_path / "manifest.json").write_text('{"format": "another"}')
    with raises(DamagedFileError, path=str(tmp_path / "manifest.json"), remedy="run systolic generate first"):
        open_design(tmp_path)


def test_open_design_of_other_version_is_refused(planted: Accelerator) -> None:
    path = planted.path / "manifest.json"
    path.write_text(path.read_text().replace('"version": 3', '"version": 99'))
    with raises(ChoiceError, what="the version", got=99, choices=(2, 3), where=str(path)):
        open_design(planted.path)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("data/weights_1.bin", "copy the whole folder to the board"),
        ("data/program.bin", "copy the whole folder to the board"),
        ("network.npz", "generate the design again"),
    ],
)
def test_open_design_with_missing_file_is_refused(name: str, remedy: str, planted: Accelerator) -> None:
    (planted.path / name).unlink()
    with raises(FileAccessError, path=str(planted.path / name), remedy=remedy):
        open_design(planted.path)


def test_open_design_with_truncated_file_is_refused(planted: Accelerator) -> None:
    path = planted.path / "data" / "requantisers.bin"
    path.write_bytes(path.read_bytes()[:-4])
    with raises(MismatchError, what="the checksum", where=str(path)):
        open_design(planted.path)


def test_open_design_without_images_is_refused(planted: Accelerator) -> None:
    path = planted.path / "manifest.json"
    path.write_text(path.read_text().replace('"images"', '"pictures"'))
    with raises(MissingValueError, what="'images'", where=f"{path}: networks[0]", remedy="generate the design again"):
        open_design(planted.path)


def test_open_design_with_huge_arena_is_refused(planted: Accelerator) -> None:
    path = planted.path / "manifest.json"
    path.write_text(json.dumps({**manifest_fields(planted.path), "maps_bytes": 1 << 50}))
    with raises(RangeError, where=f"{path}: maps_bytes", got=1 << 50, low=1, high=1 << 31):
        open_design(planted.path)


def test_place_picture_of_other_shape_or_type_is_refused(planted: Accelerator) -> None:
    folder = open_design(planted.path)
    with raises(ShapeError, what="the input", required="type uint8 and shape (3, 23, 17)"):
        place_picture(folder, np.zeros((3, 17, 23), np.uint8), arena(folder))
    with raises(ShapeError, what="the input", required="type uint8 and shape (3, 23, 17)"):
        place_picture(folder, np.zeros((3, 23, 17), np.float32), arena(folder))


def test_damaged_library_is_refused(planted: Accelerator, tmp_path: Path) -> None:
    path = tmp_path / "damaged.so"
    path.write_bytes(b"no library")
    with raises(DamagedFileError, path=str(path), remedy="remove this library and build it again"):
        SystolicLibrary(path, open_design(planted.path).manifest)


def test_compare_counts_mismatches_and_names_the_first() -> None:
    wanted = np.zeros((2, 3, 4), np.int8)
    found = wanted.copy()
    found[1, 0, 2] = found[1, 2, 0] = 1
    assert compare("conv", wanted, found) == LayerResult("conv", 24, 2, (1, 0, 2))
    assert compare("conv", wanted, wanted) == LayerResult("conv", 24, 0, None)
    with raises(ShapeError, what="the design's map of conv", got=(1, 3, 4), required=(2, 3, 4)):
        compare("conv", wanted, found[:1])
