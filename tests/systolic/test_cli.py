"""Test the ``systolic`` command as a user calls it: exit statuses, one JSON object on stdout, sentences on stderr."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from zlib import crc32

import pytest
from PIL import Image

from boards import board
from boards.errors import ChoiceError, DoesNotFitError, FileAccessError, MissingValueError, SeveralFaultsError
from cnn import zoo
from host.contract.simulation_library import sources, sources_key
from systolic.cli.demonstration import BY_STYLE, Demonstration
from systolic.cli.parsing import parser
from systolic.loading import load_model
from systolic.model import sample_pictures
from tests.support.command_line import call, refused
from tests.support.detectors import LABELS, TINY_CFG, tiny_files, tiny_schedule
from tests.support.host.manifests import manifest_fields

ROOT = Path(__file__).resolve().parents[2]
PICTURE = str(sample_pictures()[0])


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Return tiny.cfg, with tiny.names and tiny.weights in its folder."""
    cfg, _ = tiny_files(tmp_path)
    (tmp_path / "schedule.json").write_text(tiny_schedule())
    cfg.with_suffix(".weights").write_bytes(load_model(str(cfg), seed=2).files["model/network.weights"])
    return cfg


def generate_arguments(tiny: Path, *more: object) -> tuple[object, ...]:
    """Return a call with the schedule of ``tiny``, unless more options choose the bits or another schedule."""
    options = ("--weights", tiny.with_suffix(".weights"), "--names", tiny.with_suffix(".names"))
    board = ("--board", "pynq-z2", "--clock", 250)
    chosen = {"--bits", "--schedule"} & set(more)
    schedule = () if chosen else ("--schedule", tiny.parent / "schedule.json")
    return ("generate", tiny, *options, *schedule, *board, "--calibrate", PICTURE, "-o", tiny.parent / "out", *more)


# --------------------------------------------------------------------------------------------- boards


def test_boards_lists_all_or_shows_one() -> None:
    done = call("boards")
    assert done.code == 0
    assert re.findall(r"^([a-z]\S+) {2,}[A-Z]", done.out, re.M) == list(board.names())
    assert "resources.dsp" in call("boards", "kv260").out
    found = call("boards", "zcu104", "--json", "-").json["boards"]
    assert [(one["name"], one["resources"]["dsp"]) for one in found] == [("zcu104", 1728)]
    assert found[0]["clocks_mhz"] == sorted(found[0]["clocks_mhz"])
    refused(call("boards", "zcu105"), ChoiceError, got="zcu105", choices=board.names())


def test_networks_lists_size_classes_bits_and_weights() -> None:
    values = {one["name"]: one for one in call("networks", "--json", "-").json["networks"]}
    assert list(values) == list(zoo.names())
    sides = ("width", "height", "channels", "classes", "bits", "trained")
    facts = {name: tuple(values[name][side] for side in sides) for name in values}
    assert facts["shapes"] == (160, 160, 3, 6, None, True)
    assert facts["ultranet-small"] == (160, 80, 3, 1, 4, True)
    assert facts["cnv-w1a1"] == (32, 32, 3, 10, 1, False)
    assert facts["mobilenet-v2"] == (224, 224, 3, 1000, None, False)
    assert facts["yolov3-tiny"] == (416, 416, 3, 80, None, False)
    assert facts["unet-small"] == (128, 128, 3, 4, None, False)
    assert values["ds-cnn"]["layers"] == len(load_model("ds-cnn", seed=1).network.nodes) - 1
    text = call("networks").out
    assert re.search(r"^shapes +160×160×3 +\d+ +6 +float +trained$", text, re.M)
    assert re.search(r"^ultranet +320×160×3 +\d+ +1 +4 +none$", text, re.M)


# ------------------------------------------------------------------------------------------- generate


def test_generate_writes_and_describes_a_design(tiny: Path) -> None:
    done = call(*generate_arguments(tiny, "--json", "-"))
    assert (done.code, done.error) == (0, "")
    values = done.json
    assert {"folder", "digest", "network", "board", "clock_mhz", "array", "layers"} <= set(values)
    assert (values["network"], values["board"]) == ("tiny", "pynq-z2")
    assert [layer["name"] for layer in values["layers"]] == ["conv1", "conv2"]
    manifest = manifest_fields(tiny.parent / "out")
    assert manifest["labels"] == list(LABELS)


def test_generate_twice_gives_the_same_bytes(tiny: Path) -> None:
    first = call(*generate_arguments(tiny, "--json", "-")).json["digest"]
    before = {path: path.read_bytes() for path in (tiny.parent / "out").rglob("*") if path.is_file()}
    refused(call(*generate_arguments(tiny)), "--force")
    again = call(*generate_arguments(tiny, "--force", "--json", "-")).json["digest"]
    after = {path: path.read_bytes() for path in (tiny.parent / "out").rglob("*") if path.is_file()}
    assert (first, before) == (again, after)


@pytest.mark.engine
def test_generate_with_four_bits_narrows_the_words(tiny: Path) -> None:
    """Tests of the engine cover the 16-bit format and the executed design."""
    assert call(*generate_arguments(tiny, "--bits", 4)).code == 0
    values = manifest_fields(tiny.parent / "out")
    assert values["array"]["bits"] == 4
    assert values["word_bytes"] == values["array"]["lanes"] * 4 // 8


@pytest.mark.engine
@pytest.mark.parametrize("bits", [4, 16])
def test_generate_with_other_bits_simulates_without_mismatches(bits: int, tiny: Path) -> None:
    assert call(*generate_arguments(tiny, "--bits", bits)).code == 0
    done = call("simulate", tiny.parent / "out", "--picture", PICTURE, "--json", "-")
    assert done.json["mismatches"] == 0


@pytest.mark.engine
def test_compare_of_formats_has_one_row_per_format(tiny: Path) -> None:
    """Expect four int4, two int8 or one int16 products per DSP, and fewer bytes from DDR for narrower weights."""
    formats = ("--bits", 4, "--bits", 8, "--bits", 16)
    rows = call("compare", tiny, "--board", "zcu104", "--array", "4x8x8", *formats, "--json", "-").json["rows"]
    assert [row["asked"] for row in rows] == [f"zcu104, 4x8x8, int{bits}" for bits in (4, 8, 16)]
    four, eight, wide = (row["schedule"] for row in rows)
    last = [one["layers"][-1]["parts"]["compute"] for one in (four, eight, wide)]
    assert 2 * last[0] == last[1] == last[2]
    assert four["ddr_bytes"]["weights"] < eight["ddr_bytes"]["weights"] < wide["ddr_bytes"]["weights"]
    macs = [one["usage"]["dsp"] - 2 * one["array"]["save_rows"] * 8 for one in (four, eight, wide)]
    assert macs == [4 * 8 * 8 // 2, 4 * 8 * 8 // 2, 4 * 8 * 8]


def test_generate_with_schedule_of_other_bits_is_refused(tiny: Path) -> None:
    saved = tiny.parent / "schedule.json"
    array = ("--board", "pynq-z2", "--clock", 250, "--array", "4x8x8")
    assert call("schedule", tiny, *array, "--bits", 4, "--save", saved).code == 0
    done = call(*generate_arguments(tiny, "--schedule", saved))
    assert (done.code, "4 bits" in done.error, "conv2" in done.error) == (2, True, True)


def test_generate_keeps_a_foreign_folder(tiny: Path) -> None:
    refused(call("generate", "shapes"), MissingValueError, what="-o DIR")
    (tiny.parent / "out").mkdir()
    (tiny.parent / "out" / "thesis.tex").write_text("kept")
    refused(call(*generate_arguments(tiny, "--force")), str(tiny.parent / "out"))
    assert [path.name for path in (tiny.parent / "out").iterdir()] == ["thesis.tex"]


def test_generate_with_damaged_weights_is_refused(tiny: Path) -> None:
    weights = tiny.with_suffix(".weights")
    whole = weights.read_bytes()
    wanted = (len(whole) - 20) // 4
    weights.write_bytes(whole[:-8])
    done = call(*generate_arguments(tiny))
    refused(done, "tiny.weights")
    assert f"{wanted}" in done.error
    assert f"{wanted - 2}" in done.error
    assert "conv2" in done.error, "the error names the layer at which the weights run out"
    weights.write_bytes(whole + bytes(12))
    done = call(*generate_arguments(tiny))
    refused(done, "tiny.weights")
    assert f"{wanted + 3}" in done.error
    weights.write_bytes(whole[:7])
    refused(call(*generate_arguments(tiny)), "tiny.weights")
    weights.unlink()
    refused(call(*generate_arguments(tiny)), "tiny.weights")
    assert not (tiny.parent / "out").exists()


def test_generate_with_wrong_cfg_names_its_line(tiny: Path) -> None:
    for change, to, place in (
        ("[maxpool]", "[maxpol]", "tiny.cfg:14"),
        ("pad=1", "paddin=1", "tiny.cfg:11"),
        ("size=3", "size=300", "tiny.cfg:"),
        ("classes=3", "classes=7", "tiny.cfg:"),
        ("width=36", "width=-4", "tiny.cfg:2"),
        ("[net]", "[note]", "tiny.cfg:1"),
    ):
        tiny.write_text(TINY_CFG.replace(change, to, 1))
        refused(call(*generate_arguments(tiny)), f"{place}.*: ")


def test_commands_list_all_unmappable_layers_first(tiny: Path) -> None:
    odd = "[upsample]\nstride=2\nscale=3\n\n"
    relu = "[convolutional]\nfilters=16\nsize=1\nactivation=relu\n\n"
    tiny.write_text(TINY_CFG.replace("[maxpool]\nsize=2", f"{odd}{relu}{odd}{relu}[maxpool]\nsize=2"))
    absent = ("--calibrate", tiny.parent / "none.jpg", "-o", tiny.parent / "out")
    for command in (("generate", tiny, "--seed", 1, *absent), ("schedule", tiny), ("compare", tiny)):
        done = call(*command)
        refused(done, SeveralFaultsError)
        assert isinstance(done.refusal, SeveralFaultsError)
        places = [error.where for error in done.refusal.errors]
        assert places == ["tiny.cfg:14", "tiny.cfg:23"]
        assert "the streaming style" in done.error, "the error names the style that supports the layer"


@pytest.mark.engine
def test_generate_of_too_large_layer_reports_need_and_have(tiny: Path) -> None:
    tiny.write_text(
        "[net]\nwidth=64\nheight=64\nchannels=3\n[convolutional]\nfilters=128\nsize=3\npad=1\nactivation=leaky\n"
        "[connected]\noutput=10\nactivation=linear\n"
    )
    done = call("generate", tiny, "--seed", 1, "--board", "pynq-z2", "--calibrate", PICTURE, "-o", tiny.parent / "out")
    refused(done, SeveralFaultsError)
    assert isinstance(done.refusal, SeveralFaultsError)
    short = [error for error in done.refusal.errors if isinstance(error, DoesNotFitError)]
    assert len(short) == 2
    assert all(error.need is not None and error.have is not None and error.need > error.have for error in short)
    assert not (tiny.parent / "out").exists()


def test_generate_names_unreadable_calibration_pictures(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "no.jpg").write_text("not a picture")
    options = ("--seed", 1, "--board", "pynq-z2", "-o", tmp_path / "out", "--calibrate")
    refused(call("generate", tiny, *options, tmp_path / "no.jpg"), "no.jpg")
    refused(call("generate", tiny, *options, tmp_path / "absent.jpg"), "absent.jpg")


def test_generate_escapes_a_hostile_file_name(tiny: Path) -> None:
    hostile = tiny.with_name('a"; ${x} [exec y]\n#error.cfg')
    tiny.rename(hostile)
    board, schedule = ("--board", "pynq-z2", "--clock", 250), tiny.parent / "schedule.json"
    done = call(
        "generate", hostile, "--seed", 1, *board, "--schedule", schedule, "-o", tiny.parent / "out", "--json", "-"
    )
    assert done.code == 0
    assert re.fullmatch(r"\w+", done.json["network"])
    for path in (tiny.parent / "out" / "src").iterdir():
        assert "exec y" not in path.read_text()


# ------------------------------------------------------------------------------------ simulate and run


def test_simulate_prints_one_json_object(tiny_design: Path) -> None:
    done = call("simulate", tiny_design, "--picture", PICTURE, "--json", "-")
    assert (done.code, done.error) == (0, "")
    values = done.json
    assert values["mismatches"] == 0
    assert [(one["name"], one["values"], one["mismatches"]) for one in values["layers"]] == [
        ("conv1", 8 * 14 * 18, 0),
        ("conv2", 16 * 14 * 18, 0),
    ]
    assert all(one["sqnr_db"] > 15 for one in values["layers"])


@pytest.mark.engine
def test_simulate_with_ap_int_prints_a_table(tiny_design: Path) -> None:
    done = call("simulate", tiny_design, "--picture", PICTURE, "--ap-int")
    assert done.code == 0
    assert "0 mismatches in 6,048 values: every bit equal (executed ap_int code against the golden model" in done.out


def test_simulate_writes_json_to_a_file_and_prints_the_table(tiny_design: Path, tmp_path: Path) -> None:
    done = call("simulate", tiny_design, "--picture", PICTURE, "--json", tmp_path / "out.json")
    assert "every bit equal" in done.out
    assert json.loads((tmp_path / "out.json").read_text())["mismatches"] == 0
    absent = tmp_path / "absent" / "out.json"
    refused(call("simulate", tiny_design, "--picture", PICTURE, "--json", absent), FileAccessError, path=str(absent))


def test_simulate_of_faulty_design_names_the_layer_and_exits_with_1(tiny_design: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_design, tmp_path / "design")
    path = tmp_path / "design" / "data" / "weights_0.bin"
    data = bytearray(path.read_bytes())
    whole = str(crc32(data))
    data[-8] ^= 0x70  # in the last step of the last layer
    path.write_bytes(data)
    manifest = tmp_path / "design" / "manifest.json"
    assert whole in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(whole, str(crc32(data))))  # or the folder is refused
    done = call("simulate", tmp_path / "design", "--picture", PICTURE)
    assert done.code == 1
    assert "THE DESIGN IS NOT RIGHT" in done.out
    assert re.search(r"^conv1 +2,016 +0 ", done.out, re.M)
    assert re.search(r"^conv2 .* first at channel \d+, row \d+, column \d+$", done.out, re.M)
    values = call("run", tmp_path / "design", PICTURE, "--json", "-")
    assert values.code == 1
    assert values.json["mismatches"] > 0


def test_run_prints_and_draws_boxes(tiny_design: Path, tmp_path: Path) -> None:
    done = call("run", tiny_design, PICTURE, "-o", tmp_path / "boxes.png", "--json", "-")
    assert (done.code, done.error) == (0, "")
    values = done.json
    with Image.open(PICTURE) as picture, Image.open(tmp_path / "boxes.png") as drawn:
        assert (values["width"], values["height"]) == picture.size == drawn.size
    for one in values["detections"]:
        assert set(one) == {"label", "probability", "box"}
        assert one["label"] in LABELS
        x0, y0, x1, y1 = one["box"]
        assert 0 <= x0 <= x1 <= values["width"]
        assert 0 <= y0 <= y1 <= values["height"]
    none = call("run", tiny_design, PICTURE, "--threshold", 1)
    assert none.out == "no object found\n"


def test_simulate_and_run_refuse_other_files(tiny_design: Path, tmp_path: Path) -> None:
    refused(call("simulate", tmp_path, "--picture", PICTURE), "systolic generate")
    refused(call("run", tmp_path, PICTURE), str(tmp_path))
    (tmp_path / "no.png").write_text("text")
    refused(call("run", tiny_design, tmp_path / "no.png"), "no.png")
    refused(call("simulate", tiny_design, "--picture", tmp_path / "absent.png"), "absent.png")
    refused(call("run", tiny_design, PICTURE, "-o", tmp_path / "no" / "b.png"), "b.png")


def test_simulate_without_compiler_is_refused(
    tiny_design: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_design, tmp_path / "design", ignore=shutil.ignore_patterns("build"))
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    done = call("simulate", tmp_path / "design", "--picture", PICTURE)
    refused(done, "g\\+\\+")


def test_simulate_cycles_prints_one_json_object(tiny_design: Path, tmp_path: Path) -> None:
    picture = ("simulate", tiny_design, "--picture", PICTURE, "--cycles")
    done = call(*picture, "--json", "-", "--timeline", tmp_path / "t.png", "--fifos")
    assert done.code == 0
    values = done.json
    wanted = {"cycles_per_frame", "frames_per_second", "dsp", "dsp_efficiency", "layers", "processes", "fifos"}
    assert wanted <= set(values)
    assert {one["name"] for one in values["layers"]} == {"conv1", "conv2"}
    with Image.open(tmp_path / "t.png") as drawn:
        assert drawn.width > 300
    refused(call(*picture, "--timeline", tmp_path / "no" / "t.png"), "t.png")


# ----------------------------------------------------------------------------------- demo


@pytest.fixture
def pinned_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pin the array of the demo, so that its search is short."""
    pins = {"rows": 8, "columns": 8, "lanes": 8, "save_rows": 2, "chunk": 16, "map_ports": 1, "weight_ports": 1}
    pinned = Demonstration("shapes", "hills", {"pins": pins})
    monkeypatch.setitem(BY_STYLE, "systolic", pinned)


@pytest.mark.engine
@pytest.mark.parametrize("style", BY_STYLE)
def test_demo_detects_the_drawn_objects(style: str, tmp_path: Path) -> None:
    done = call("demo", "--style", style, "-o", tmp_path / "demo", "--json", "-")
    assert done.code == 0
    assert done.json["simulate"]["mismatches"] == 0
    assert done.json["generate"].get("style", "systolic") == style
    truth = done.json["truth"]
    assert (truth["missed"], truth["added"]) == (0, 0)
    assert truth["mean_iou"] >= 0.5


def test_demo_prints_valid_commands_and_can_be_repeated(tmp_path: Path, pinned_demo: None) -> None:
    folder = tmp_path / "a demo"
    done = call("demo", "-o", folder)
    assert done.error.startswith("systolic: running all steps")
    _, _, steps = done.out.partition("\nnext:\n")
    commands = [shlex.split(line[line.index("systolic ") :]) for line in steps.splitlines()]
    assert [words[:2] for words in commands[:2]] == [["systolic", "run"], ["systolic", "simulate"]]
    assert all(words[2] == str(folder / "accelerator") for words in commands[:2])
    for words in commands:
        assert parser([words[1]]).parse_args(words[1:]).command == words[1]
    first = sources_key(sources(folder / "accelerator"))
    values = call("demo", "-o", folder, "--json", "-").json
    assert sources_key(sources(folder / "accelerator")) == first
    assert set(values) == {"generate", "simulate", "run", "truth"}
    assert values["simulate"]["mismatches"] == 0
    assert values["run"]["detections"], "the trained network must detect an object in its own sample"
    assert (values["truth"]["missed"], values["truth"]["added"]) == (0, 0)
    with Image.open(folder / "boxes.png") as drawn:
        assert drawn.size == (values["run"]["width"], values["run"]["height"])


def test_demo_keeps_a_foreign_folder(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("kept")
    refused(call("demo", "-o", foreign), FileAccessError, path=str(foreign))
    assert (foreign / "thesis.tex").is_file()


def test_demo_into_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "boxes.png").write_bytes(b"")
    refused(call("demo", "-o", tmp_path / "boxes.png"), FileAccessError, reason="is a file")
