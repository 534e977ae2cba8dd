"""Test the help of the command line, the constants that it shows, and old option names that still work."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from boards.errors import ChoiceError
from boards.facts import DDR_PROFILES
from cnn.onnx.inputs import ORDERS as CHANNEL_ORDERS
from cnn.onnx.quantised.export import DIALECTS
from cnn.ops.softmax import METHODS as SOFTMAX_METHODS
from cnn.quantisation.calibration import METHODS
from cnn.quantisation.quantise import FORMATS
from contract.geometry import ENGINES
from host.vision.detection import IOU_THRESHOLD, THRESHOLD
from host.vision.picture import FITS
from scheduler.hardware.budget import Budget
from scheduler.systolic.search.space import OBJECTIVES
from scheduler.systolic.tiling import ORDERS
from systolic import choices, model
from systolic.cli import renamed
from systolic.cli.options.form import MAX_FIRST
from systolic.cli.parsing import parser
from systolic.cli.table import COMMANDS, form_of, run_of
from systolic.option import HIDDEN
from systolic.styles.registry import STYLES, default_style
from systolic.styles.systolic.arguments import PINS
from tests.support.command_line import call, refused

COLUMNS = 100


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of one command."""
    (commands,) = (action for action in parser([name])._actions if isinstance(action, argparse._SubParsersAction))
    command = commands.choices[name]
    assert isinstance(command, argparse.ArgumentParser)
    return command


def test_help_constants_equal_their_definitions() -> None:
    defined = {
        "BITS": FORMATS,
        "CALIBRATION_METHODS": METHODS,
        "FITS": tuple(FITS),
        "CHANNEL_ORDERS": CHANNEL_ORDERS,
        "DIALECTS": DIALECTS,
        "ENGINES": ENGINES,
        "LOOP_ORDERS": ORDERS,
        "OBJECTIVES": OBJECTIVES,
        "SOFTMAX_METHODS": SOFTMAX_METHODS,
        "CONFIDENCE": THRESHOLD,
        "IOU": IOU_THRESHOLD,
        "DDR_PROFILES": DDR_PROFILES,
        "SHARES": Budget().fabric,
        "USUAL_BOARD": model.USUAL_BOARD,
        "STYLES": {name: style.summary for name, style in STYLES.items()},
    }
    assert {name: getattr(choices, name) for name in defined} == defined
    assert next(iter(choices.STYLES)) == default_style()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_one_line_per_option(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    text = call(command, "--help").out
    form = form_of(command)
    assert len(form.first) <= MAX_FIRST
    assert max(len(line) for line in text.split("\nexample")[0].splitlines()) <= COLUMNS
    for option in (*form.positionals, *form.options()):
        if option.help == HIDDEN:
            continue
        shown = [line for line in text.splitlines() if re.match(rf"  .*{re.escape(option.flag)}\b", line)]
        where = f"{command} {option.flag}"
        if option.flag.startswith("-"):
            assert len(shown) >= 1, where
            assert shown[0].split("  ")[-1].strip(), f"{where}: the sentence must be on the option's line"
        sentence = option.help.split("; ")[0]
        assert re.match(r"[A-Z0-9]", sentence), where
        assert not sentence.endswith("."), where
    assert "%(" not in text


def test_help_omits_options_that_a_command_does_not_take() -> None:
    for command in ("compare", "pareto"):
        assert "saved" not in " ".join(parser_of(command).format_help().split()), (
            "compare and pareto do not take a saved schedule"
        )
    assert "--estimated-fifos" not in parser_of("fold").format_help()
    assert "--estimated-fifos" in parser_of("generate").format_help()


def test_command_has_an_example_and_a_module() -> None:
    for command in COMMANDS:
        assert callable(run_of(command))
        for example in form_of(command).example.splitlines():
            words = example.split()
            assert words[:2] == ["systolic", command]
            assert parser([command]).parse_args(words[1:]).command == command


def test_schedule_has_an_option_per_pin() -> None:
    flags = {option.flag for option in form_of("schedule").options()}
    assert {f"--{name.replace('_', '-')}" for name in PINS} <= flags


def test_help_without_a_command_lists_all_commands() -> None:
    done, bare = call("--help"), call()
    assert all(re.search(rf"^  {command} +[A-Z]", done.out, re.M) for command in COMMANDS)
    assert "example: systolic demo" in done.out
    assert re.search(r"-h, --help +Show this help and exit$", done.out, re.M)
    assert (bare.code, bare.error, bare.out) == (0, "", done.out)


# --- words that are not understood


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("generat", "shapes"), "there is no command 'generat' (did you mean generate?); see systolic --help"),
        (("list",), "there is no command 'list'; see systolic --help"),
        (
            ("run", "x", "y", "--treshold", "1"),
            "systolic run has no option --treshold (did you mean --conf?); see systolic run --help",
        ),
        (
            ("generate", "shapes", "--array", "8x8x8", "-o", "x"),
            "systolic generate has no option --array; see systolic generate --help",
        ),
        (("boards", "zcu104", "kv260"), "systolic boards has no argument 'kv260'; see systolic boards --help"),
        (("generate",), "NET is missing; see systolic generate --help"),
        (("train", "x"), "--data, -o/--output are missing; see systolic train --help"),
        (
            ("schedule", "shapes", "--clock", "fast"),
            "--clock must be a number; got 'fast'; see systolic schedule --help",
        ),
        (
            ("generate", "shapes", "--seed", "1.5"),
            "--seed must be a whole number; got '1.5'; see systolic generate --help",
        ),
        (
            ("generate", "shapes", "--bits", "5"),
            "--bits must be one of 4, 8, 16; got 5; see systolic generate --help",
        ),
        (
            ("demo", "--style", "stream"),
            "--style must be one of systolic, streaming; got 'stream' (did you mean 'streaming'?); "
            "see systolic demo --help",
        ),
        (
            ("generate", "shapes", "--size", "416"),
            "--size must be WIDTHxHEIGHT in pixels, such as 416x416; got '416'; see systolic generate --help",
        ),
        (
            ("generate", "shapes", "--size", "0x0"),
            "--size must be at least 1x1; got '0x0'; see systolic generate --help",
        ),
        (
            ("generate", "x.onnx", "--mean", "a,b"),
            "--mean must be one number, or one per channel with commas between, such as 0.485,0.456,0.406; got 'a,b'; "
            "see systolic generate --help",
        ),
        (("generate", "shapes", "--weights=--"), "--weights needs a value; got --; see systolic --help"),
        (("run", "x"), "PICTURE is missing; see systolic run --help"),
        (("boards", "--json"), "--json: expected one argument; see systolic boards --help"),
    ],
)
def test_wrong_word_gives_one_sentence_with_the_nearest_name(words: tuple[str, ...], sentence: str) -> None:
    done = call(*words)
    assert (done.code, done.out, done.error) == (2, "", f"systolic: {sentence}\n")


@pytest.mark.parametrize(
    "words",
    [
        ("run", "a" * 5000, "a.png"),
        ("compare", f"{'9' * 5000}.cfg"),
        ("simulate", "a/" * 4000),
        ("generate", "shapes", "--seed", "9" * 5000, "-o", "x"),
        ("schedule", "shapes", "--clock", "x" * 5000),
        ("x" * 5000,),
        ("generate", "shapes", f"--{'x' * 5000}"),
    ],
)
def test_very_long_argument_gives_a_sentence(words: tuple[str, ...]) -> None:
    done = call(*words)
    assert (done.code, done.out) == (2, "")
    assert 20 < max(map(len, done.error.splitlines())) < 3000


# --- old names


@pytest.mark.parametrize(
    ("command", "old", "new", "name"),
    [
        (("run", "x", "y"), "--threshold", "--conf", "conf"),
        (("run", "x", "y"), "--overlap", "--iou", "iou"),
        (("evaluate", "x", "--data", "y"), "--threshold", "--conf", "conf"),
        (("evaluate", "x", "--data", "y"), "--overlap", "--iou", "iou"),
        (("train", "x", "--data", "y", "-o", "z"), "--rate", "--lr", "rate"),
    ],
)
def test_old_option_sets_the_new_one_and_is_hidden(command: tuple[str, ...], old: str, new: str, name: str) -> None:
    before, after = (parser([command[0]]).parse_args([*command, option, "0.125"]) for option in (old, new))
    assert getattr(before, name) == getattr(after, name) == 0.125
    assert before.notes == [f"{old} is called {new} now; version 0.3 will not accept the old name"]
    assert not hasattr(after, "notes")
    help_text = call(command[0], "--help").out
    assert (old in help_text, new in help_text) == (False, True)
    assert renamed.OPTIONS[old] == new


def test_old_option_is_reported_once_on_standard_error(tmp_path: Path) -> None:
    done = call("run", tmp_path, "y", "--threshold", "1", "--threshold", "0.5", "--overlap", "0.5")
    assert done.error.splitlines()[:2] == [
        "systolic: --threshold is called --conf now; version 0.3 will not accept the old name",
        "systolic: --overlap is called --iou now; version 0.3 will not accept the old name",
    ]
    quiet = call("run", tmp_path, "y", "--threshold", "1", "-q")
    assert "--threshold" not in quiet.error


def test_generate_list_still_lists_the_networks() -> None:
    done = call("generate", "list")
    assert (done.code, done.out.split()) == (0, list(model.networks()))
    assert done.error == (
        "systolic: systolic generate list is called systolic networks now; version 0.3 will not accept the old name\n"
    )


def test_unknown_network_suggests_the_nearest_name() -> None:
    done = call("schedule", "shaps")
    refused(done, ChoiceError, got="shaps", choices=model.networks())
    assert "did you mean 'shapes'?" in done.error
