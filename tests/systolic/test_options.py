"""Test options without effect or out of range, and files of another kind: each is refused with a reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from boards.errors import (
    ChoiceError,
    ConflictError,
    DamagedFileError,
    DoesNotFitError,
    FileAccessError,
    InvalidValueError,
    MismatchError,
    MissingValueError,
    RangeError,
    SeveralFaultsError,
    SystolicError,
    UnknownKeyError,
    UnsupportedError,
)
from cnn import zoo
from scheduler.hardware.ddr import MIN_EFFICIENCY
from scheduler.systolic.array import Array
from scheduler.systolic.schedule_file import from_json, to_json
from systolic.cli.parsing import parser
from systolic.model import sample_pictures
from systolic.styles.options import GIVEN, saved_text
from systolic.styles.streaming.options import StreamingOptions
from systolic.styles.systolic.options import SystolicOptions
from tests.support.bitstreams import write_built
from tests.support.command_line import call, refused
from tests.support.detectors import tiny_files
from tests.support.errors import raises
from tests.support.quantised import Builder
from tests.support.schedules import first_fit

PICTURE = str(sample_pictures()[0])
TINY = ("--seed", 1, "--board", "pynq-z2")
ONE_ARRAY = (*TINY, "--clock", 250, "--array", "4x8x8")
"""Options for one clock and one array, so that a search is short."""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Return the cfg file of a small detection network."""
    return tiny_files(tmp_path)[0]


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        (("--fps", 0), ["--fps"]),
        (("--folding", "greedy"), ["--folding"]),
        (("--external", "a", "--pad-ends"), ["--pad-ends", "--external"]),
        (("--estimated-fifos",), ["--estimated-fifos"]),
        (("--deadline", 5, "--max-pixels", 4), ["--deadline", "--max-pixels"]),
    ],
)
def test_generate_with_options_of_other_style_is_refused(
    options: tuple[object, ...], flags: list[str], tmp_path: Path
) -> None:
    done = call("generate", "shapes", "-o", tmp_path / "out", *options)
    refused(
        done,
        ConflictError,
        subjects=("--style systolic", *flags),
        remedy=f"add --style streaming, or leave out {flags[0]}",
    )


def test_generate_with_softmax_option_explains_the_array(tmp_path: Path) -> None:
    done = call("generate", "shapes", "-o", tmp_path / "out", "--softmax", "stable")
    assert "the host computes the softmax after an array" in done.error


def test_simulate_with_trace_options_requires_cycles(tmp_path: Path) -> None:
    simulate = ("simulate", tmp_path, "--picture", PICTURE)
    for options, flags in (
        (("--timeline", "t.png"), "--timeline"),
        (("--fifos", "--clock", 100), "--fifos, --clock"),
        (("--ddr-efficiency", 0.5), "--ddr-efficiency"),
    ):
        refused(
            call(*simulate, *options),
            MissingValueError,
            what="--cycles",
            reason=f"{flags} has an effect only on a cycle trace",
        )
    refused(call(*simulate, "--hls"), MissingValueError, what="--cycles")
    refused(call(*simulate, "--cycles", "--layer", "a"), MissingValueError, what="--timeline FILE.png")
    refused(call(*simulate, "-o", "a.fst"), MissingValueError, what="--waves LAYER")
    for flag in ("--ap-int", "--golden"):
        refused(call(*simulate, "--cycles", flag), ConflictError, subjects=("--cycles", flag))
    refused(call(*simulate, "--cycles", "--timeline", "."), FileAccessError, path=".", reason="is a folder")
    for clock in (0.0, float("inf")):
        refused(call(*simulate, "--cycles", "--clock", clock), RangeError, got=clock, low=0)
    assert call(*simulate, "--cycles", "--clock", "nan").code == 2
    refused(call(*simulate, "--cycles", "--ddr-efficiency", 7), RangeError, got=7.0, low=MIN_EFFICIENCY, high=1)


@pytest.mark.parametrize("command", ["run", "evaluate"])
def test_conf_and_iou_must_be_between_0_and_1(command: str, tmp_path: Path) -> None:
    words = ("run", tmp_path, PICTURE) if command == "run" else ("evaluate", "shapes", "--data", tmp_path)
    for flag, value in (("--conf", 2.0), ("--iou", -1.0)):
        refused(call(*words, flag, value), RangeError, what=flag, got=value, low=0, high=1)
    assert call(*words, "--conf", "nan").code == 2


def test_evaluate_options_have_ranges(tmp_path: Path) -> None:
    evaluate = ("evaluate", "shapes", "--data", tmp_path)
    for flag, value, low in (("--workers", 0, 1), ("--executed", -1, 0), ("--pictures", 0, 1)):
        refused(call(*evaluate, flag, value), RangeError, what=flag, got=value, low=low, integer=True)
    refused(call(*evaluate, "--executed", 1), InvalidValueError, got="shapes")
    refused(call(*evaluate, "--board", "zcu104"), MissingValueError, what="--mixed SHARE")
    mixed = ("--mixed", 0.5)
    refused(call(*evaluate, *mixed, "--bits", 4), ConflictError, subjects=("--mixed", "--bits"))
    refused(call(*evaluate, *mixed, "--zero-points"), ConflictError, subjects=("--mixed", "--zero-points"))


def test_old_objective_latency_is_fps() -> None:
    given = [parser().parse_args(["schedule", "shapes", "--objective", name]).objective for name in ("latency", "ddr")]
    assert given == ["fps", "ddr"]


@pytest.mark.parametrize(
    ("options", "expected", "fields"),
    [
        (("--workers", -2), RangeError, {"what": "--workers", "got": -2, "low": 1}),
        (("--ddr-efficiency", 7), RangeError, {"got": 7.0, "low": MIN_EFFICIENCY, "high": 1}),
        (("--ddr-efficiency", 0.5, "--ddr-profile", "measured"), ConflictError, {}),
        (("--dsp-share", 2), RangeError, {"got": 2.0, "low": 0, "high": 1}),
        (("--objective", "ddr", "--fps", 0), MissingValueError, {"remedy": "give --fps RATE"}),
        (("--objective", "speed"), ChoiceError, {"got": "speed"}),
        (("--map-depth", -1), SeveralFaultsError, {}),
        (("--array", "4x8x8", "--map-depth", 1 << 20), DoesNotFitError, {"resource": "BRAM36", "have": 133}),
        (("--array", "16x16x16"), DoesNotFitError, {"resource": "DSPs", "need": 2048, "have": 213}),
        (("--array", "4x4"), InvalidValueError, {"got": "4x4"}),
        (("--dsp-clock", 2, "--engine", "hls"), ConflictError, {"subjects": ("--engine hls", "--dsp-clock 2")}),
    ],
)
def test_schedule_with_bad_options_is_refused(
    options: tuple[object, ...], expected: type[SystolicError], fields: dict[str, object], tiny: Path
) -> None:
    refused(call("schedule", tiny, *TINY, "--clock", 250, *options), expected, **fields)


def test_streaming_options_have_ranges() -> None:
    for what, values, low in (
        ("--fps in frames/s", {"fps": 0.0}, 0),
        ("--deadline in seconds", {"deadline": 0.0}, 0),
        ("--max-pixels", {"max_pixels": 0}, 1),
        ("--max-padding", {"max_padding": -1}, 0),
        ("--effort", {"effort": 0}, 1),
        ("--attempts", {"attempts": 0}, 1),
    ):
        with raises(RangeError, what=what, got=next(iter(values.values())), low=low):
            StreamingOptions(**values)
    with raises(ChoiceError, got="best", choices=("exact", "greedy", "annealing")):
        StreamingOptions(search="best")
    with raises(ChoiceError, what="--softmax", got="fast"):
        StreamingOptions(softmax="fast")
    with raises(UnsupportedError, subject="--softmax legacy", remedy="take --softmax stable"):
        StreamingOptions(softmax="legacy")


def test_fold_with_rate_above_the_clock_is_refused(tiny: Path) -> None:
    done = call("fold", tiny, *TINY, "--clock", 250, "--fps", 1e9)
    refused(done, RangeError, what="--fps in frames/s at 250 MHz", got=1e9, high=250e6)


def test_unknown_pin_is_refused() -> None:
    with raises(UnknownKeyError, keys=["speed"]):
        SystolicOptions(pins={"speed": 1})
    with raises(ChoiceError, what="added_maps", got=2, choices=(0, 1)):
        _ = SystolicOptions(pins={"added_maps": 2}).fused


def test_compare_suggests_removing_only_pinned_arrays(tiny: Path) -> None:
    done = call("compare", tiny, *TINY, "--clock", 250, "--array", "16x16x16", "--array", "4x8x8")
    assert (done.code, done.out.count("leave out --array"), done.out.count("a larger board")) == (0, 1, 0)


def test_compare_with_no_workers_is_refused(tiny: Path) -> None:
    refused(call("compare", tiny, "--workers", 0), RangeError, what="--workers", got=0)


@pytest.mark.parametrize(
    ("options", "expected", "fields"),
    [
        (("--ddr-efficiency", 7), RangeError, {"got": 7.0, "high": 1}),
        (("--ddr-efficiency", 0.5, "--ddr-profile", "measured"), ConflictError, {}),
        (("--ddr-gbps", 8, "--ddr-gbps", 0), RangeError, {"got": 0.0}),
        (("--objective", "ddr"), MissingValueError, {"remedy": "give --fps RATE"}),
        (("--fps", -1), RangeError, {"what": "the frame rate", "got": -1.0}),
    ],
)
def test_compare_refuses_an_option_that_no_combination_can_use(
    options: tuple[object, ...], expected: type[SystolicError], fields: dict[str, object], tiny: Path
) -> None:
    """Report such an option as an error instead of a table in which every row has this error."""
    refused(call("compare", tiny, *TINY, "--array", "4x8x8", *options), expected, **fields)


def test_schedule_of_streaming_layers_suggests_the_style() -> None:
    done = call("schedule", "cnv-w1a1")
    assert done.code == 2
    assert done.error.count("--style streaming") == 1


def test_commands_refuse_files_of_other_formats(tmp_path: Path) -> None:
    remedies = {
        **dict.fromkeys(("boxes.png", "weights.npz"), ""),
        **dict.fromkeys(("m.pt", "m.PTH"), "torch.onnx.export"),
        **dict.fromkeys(("m.tflite", "saved_model.pb"), "python -m tf2onnx.convert"),
        "m.caffemodel": "python -m caffe2onnx.convert",
        **dict.fromkeys(("m.engine", "m.xmodel"), "use the .onnx file that it was made from"),
    }
    for name, remedy in remedies.items():
        for command in (("generate", name, "-o", tmp_path / "out"), ("schedule", name), ("fold", name)):
            done = call(*command)
            refused(done, UnsupportedError, subject=f"{name} as a network")
            assert remedy in done.error
    refused(call("evaluate", "shaps", "--data", tmp_path), ChoiceError, got="shaps", choices=zoo.names())


def test_commands_refuse_damaged_and_missing_files(tiny: Path, tmp_path: Path) -> None:
    out = ("-o", tmp_path / "out")
    refused(call("generate", tiny, *TINY, "--calibrate", tmp_path, *out), str(tmp_path))
    absent = ("--calibrate", tmp_path / "none.jpg")  # the calibration picture is read later
    saved = ("generate", tiny, *TINY, *absent, *out, "--schedule")
    refused(call(*saved, PICTURE), DamagedFileError, path=PICTURE)
    refused(call(*saved, tmp_path / "s.json"), FileAccessError, path=str(tmp_path / "s.json"), what="schedule")
    folded = ("generate", tiny, "--seed", 1, *absent, *out, "--style", "streaming", "--folding", PICTURE)
    refused(call(*folded), DamagedFileError, path=PICTURE)
    refused(call("fold", tiny, "--folding", PICTURE), DamagedFileError, path=PICTURE)
    refused(call("fold", tiny, "--calibrate", PICTURE), MissingValueError, what="--mixed SHARE")


def test_generate_with_schedule_of_other_network_is_refused(tiny: Path, tmp_path: Path) -> None:
    saved, other = tmp_path / "s.json", tmp_path / "other.cfg"
    assert call("schedule", tiny, *ONE_ARRAY, "--save", saved).code == 0
    layer = "[convolutional]\nfilters=8\nsize=1\nactivation=leaky\n\n"
    other.write_text(tiny.read_text().replace("[maxpool]", f"{layer}[maxpool]"))
    done = call("generate", other, *TINY, "--calibrate", PICTURE, "--schedule", saved, "-o", tmp_path / "out")
    refused(done, MismatchError, got="tiny", expected="other")


def test_generate_keeps_the_order_of_a_saved_schedule(tiny: Path, tmp_path: Path) -> None:
    saved = tmp_path / "s.json"
    order = ("--order", "streamed", "--save", saved, "--json", "-")
    one = call("schedule", tiny, *ONE_ARRAY, *order).json["layers"]
    made = ("--calibrate", PICTURE, "--schedule", saved, "-o", tmp_path / "out", "--json", "-")
    other = call("generate", tiny, *TINY, *made).json["layers"]
    assert [layer["order"] for layer in one] == [layer["order"] for layer in other]
    assert {layer["order"] for layer in one} == {"streamed"}


def test_schedule_with_map_depth_0_keeps_maps_in_ddr(tiny: Path) -> None:
    free = call("schedule", tiny, *ONE_ARRAY, "--json", "-").json
    bare = call("schedule", tiny, *ONE_ARRAY, "--map-depth", 0, "--json", "-").json
    assert (free["array"]["map_depth"] > 0, bare["array"]["map_depth"]) == (True, 0)
    assert any(layer["on_chip"] for layer in free["layers"])
    assert not any(layer["on_chip"] for layer in bare["layers"])
    assert bare["ddr_bytes_per_frame"] > free["ddr_bytes_per_frame"]


def test_package_prints_how_to_install_the_wheel(tiny_design: Path, tmp_path: Path) -> None:
    """Expect an installation without dependencies, because the board's image has them (docs/explanation/host.md)."""
    done = call("package", tiny_design, "--without-bitstream", "-o", tmp_path)
    assert "pip install --no-deps" in done.out
    assert "simulated board" in done.out
    design = shutil.copytree(tiny_design, tmp_path / "design", ignore=shutil.ignore_patterns("build"))
    write_built(design)
    assert "; install it on the board: pip install --no-deps" in call("package", design, "-o", tmp_path).out


def test_invalid_saved_schedule_is_named_once() -> None:
    """Give the schedule as text. There is no file whose name could precede the sentence."""
    network = Builder(3, 40, 60).conv(16, 3).conv(8, 1).network("edited")
    array = Array(5, 8, 8, row_depth=1024, weight_depth=1024, kept_depth=512, chunk=8, channel_tiles=16)
    values = json.loads(to_json(first_fit(network, array)))
    values["array"]["row_depth"] = 8
    text, name = saved_text(json.dumps(values), "schedule", "systolic schedule --save FILE")
    with pytest.raises(SeveralFaultsError) as refusal:
        from_json(text, network, name)
    assert refusal.value.where == GIVEN
    assert str(refusal.value).count("the schedule") == 1


def test_options_derive_choices_from_pins() -> None:
    assert [SystolicOptions(pins={"added_maps": pin}).fused for pin in (0, 1)] == [(False,), (True,)]
    assert SystolicOptions().fused == (True, False)
    assert [SystolicOptions(pins=pins).dsp_clock for pins in ({}, {"dsp_clock": 2})] == [1, 2]
    assert [SystolicOptions(pins=pins).dsp_products for pins in ({}, {"dsp_products": 6})] == [0, 6]
