"""The network fuzzer: old defects stay fixed, planted defects are found, and a few hundred random layers are exact."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import onnx
import pytest

from boards.board import load
from scheduler.systolic.array import Array
from systolic.styles.registry import style_named
from systolic.styles.systolic.options import SystolicOptions
from tests.fuzz.campaign import Campaign
from tests.fuzz.networks import checks, draw, trial
from tests.fuzz.networks.case import Case, read_case
from tests.fuzz.networks.draw import draw_case
from tests.fuzz.networks.planted import PLANTS, try_planted
from tests.fuzz.networks.prepare import drawn_schedule
from tests.fuzz.networks.run import Tally, run
from tests.fuzz.networks.shrink import shrunk_by, smaller_cases
from tests.fuzz.networks.trial import Outcome, try_case
from tests.support.executed import executed
from tests.support.onnx.decoder import decoder
from tests.support.quantised import Builder

CORPUS = sorted((Path(__file__).parent / "corpus" / "networks").glob("*.json"))
RESIZE = Path(__file__).parent / "corpus" / "networks" / "resize_of_opset_11.json"
TERNARY = Path(__file__).parent / "corpus" / "networks" / "ternary_of_two_bits.json"
DRAWN_ON = Array(4, 16, 8, row_depth=512, weight_depth=512, kept_depth=256, chunk=8, channel_tiles=32)
QUICK = (RESIZE,)
"""The cases for which no code is compiled."""

SEED, SYSTOLIC, STREAMING, MAX_REFUSED = 1, 34, 4, 0.2


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of compiled code, which other tests and runs share if SYSTOLIC_TEST_BUILDS names one."""
    folder = Path(os.environ.get("SYSTOLIC_TEST_BUILDS", tmp_path_factory.mktemp("builds")))
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.engine] * (path not in QUICK)) for path in CORPUS],
)
def test_try_case_from_corpus_does_not_fail(path: Path, cache: Path) -> None:
    outcome = try_case(read_case(path.read_text("utf-8")), cache)
    assert outcome.state != "failed", f"{outcome.stage}: {outcome.sentence}"


@pytest.mark.engine
def test_try_case_random_networks_match_golden_model(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Try networks on two arrays and as a few pipelines only, because each of these is compiled."""
    monkeypatch.setattr(draw, "ARRAYS", 2)
    drawn = [draw_case(SEED, number) for number in range(200)]
    cases = [case for case in drawn if case.style == "systolic" and case.mapping["kind"] == "drawn"][:SYSTOLIC]
    cases += [case for case in drawn if case.style == "streaming"][:STREAMING]
    tally, failures = Tally(), []
    for case in cases:
        outcome = try_case(case, cache)
        tally.count(case, outcome)
        if outcome.state == "failed":
            failures.append(f"{outcome.stage}: {outcome.sentence}\n{case.text()}")
    assert not failures, "\n".join(failures)
    assert sum(tally.refusals.values()) <= MAX_REFUSED * len(cases), tally.text(0)
    assert sum(tally.layers.values()) >= 200, tally.text(0)
    assert set(tally.executed) == {"systolic", "streaming"}


def test_draw_case_same_seed_and_number_gives_same_case() -> None:
    assert draw_case(3, 5).text() == draw_case(3, 5).text() != draw_case(3, 6).text()
    assert read_case(draw_case(3, 5).text()).text() == draw_case(3, 5).text()


@pytest.mark.parametrize("places", [(2, 2), (1, 3)])
def test_drawn_schedule_has_all_mapped_layers(places: tuple[int, int]) -> None:
    """Draw a schedule with the copies in front of a depth to space, whose blocks have few channels."""
    network = Builder(16, 6, 8).conv(24, 1).depth(*places).conv(8, 1).network()
    case = next(
        case
        for case in map(partial(draw_case, SEED), range(100))
        if case.mapping["kind"] == "drawn" and case.style == "systolic"
    )
    case = replace(case, mapping={**case.mapping, "array": asdict(DRAWN_ON), "batch": 1})
    options = SystolicOptions(schedule=drawn_schedule(case, network))
    mapping = style_named("systolic").map(network, load("zcu104"), 300, options, lambda _: None)
    names = [layer.layer.name for layer in mapping.schedule.layers]
    assert sum(name.endswith("_copy") for name in names) == places[0] * places[1]


# --- planted defects ---------------------------------------------------------------------------------------------


@pytest.mark.engine
def test_try_planted_ternary_defect_is_found(cache: Path) -> None:
    case = read_case(TERNARY.read_text("utf-8"))
    outcome = try_planted("streaming: TERNARY saturates to −2", replace(case, checks=("native",)), cache)
    assert (outcome.state, outcome.stage) == ("failed", "native")
    assert "wrong integers in frame 0 of 1: x1: " in outcome.sentence
    assert len(PLANTS) >= 10


@pytest.mark.engine
def test_try_planted_depth_to_space_defect_is_found(tmp_path: Path) -> None:
    """Try a decoder, because few drawn networks have a depth to space."""
    onnx.save(decoder("CRD", (0, 1, 1, 0)), tmp_path / "net.onnx")
    with PLANTS["streaming: depth to space stays in a pixel instead of moving to the next"]():
        assert executed(tmp_path / "net.onnx", "streaming").mismatches > 0


MEAN = "systolic: padding of a picture holds 0, not its zero point"


@pytest.mark.engine
def test_draw_case_padded_picture_with_mean_finds_planted_defect(cache: Path) -> None:
    """Find a planted defect with case 13 of seed 2, which pads a picture that has a mean, on the array."""
    case = draw_case(2, 13)
    assert case.network["topology"]["input"]["mean"] > 0
    assert case.network["topology"]["layers"][0]["padding"] > 0
    outcome = try_planted(MEAN, replace(case, checks=("native",)), cache)
    assert (outcome.state, outcome.stage) == ("failed", "native")
    assert "wrong integers in frame 0" in outcome.sentence


@pytest.mark.engine
def test_draw_case_function_of_13_bits_finds_planted_defect(cache: Path) -> None:
    """Find a defect in the pieces of a table with case 29 of seed 10, whose pipeline has activations of 13 bits."""
    case = draw_case(10, 29)
    assert (case.style, case.target["bits"], case.target["activation_bits"]) == ("streaming", 8, 13)
    assert "mish" in [options.get("activation") for _, options in case.network["sections"]]
    outcome = try_planted("streaming: lines are rounded down", replace(case, checks=("native",)), cache)
    assert (outcome.state, outcome.stage) == ("failed", "native")
    assert "wrong integers in frame 0" in outcome.sentence


def _ends_by_signal(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _ends_by_a_signal_without_a_name(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGRTMIN + 3)


def _exits(_: Any) -> None:
    os._exit(255)


def _never_ends(_: Any) -> None:
    while True:
        pass


def _raises(_: Any) -> None:
    raise KeyError("a traceback")


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (_ends_by_signal, "the process ended by SIGSEGV"),
        (_ends_by_a_signal_without_a_name, f"the process ended by signal {signal.SIGRTMIN + 3}"),
        (_exits, "the process ended by exit code 255"),
        pytest.param(_never_ends, "not done after 1 s of processor time", marks=pytest.mark.engine),
        (_raises, "KeyError in test_networks.py:_raises: 'a traceback'"),
    ],
)
def test_try_case_crash_hang_or_traceback_fails(
    check: Callable[[Any], None], sentence: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(checks.CHECKS, "native", check)
    monkeypatch.setattr(trial, "CPU_SECONDS", 1)
    case = replace(read_case(RESIZE.read_text("utf-8")), checks=("native",))
    outcome = try_case(case, cache)
    assert (outcome.state, outcome.stage) == ("failed", "native")
    assert outcome.sentence.startswith(sentence)


def test_try_case_process_ends_while_sending_outcome_fails(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(_: Case, __: Path, folder: Path, sender: Connection) -> None:
        (folder / "stage").write_text("native")
        os.write(sender.fileno(), b"\0\0\1\0half of 256 bytes")
        os._exit(3)

    monkeypatch.setattr(trial, "_child", half)
    outcome = try_case(read_case(RESIZE.read_text("utf-8")), cache)
    assert (outcome.state, outcome.stage) == ("failed", "native")
    assert outcome.sentence.startswith("the process ended by exit code 3")


def _waits(_: Any) -> None:
    time.sleep(3600)


def test_try_case_without_processor_time_is_a_hang(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detect a hang by the processor time, because a case can take long on a busy machine."""
    monkeypatch.setitem(checks.CHECKS, "native", _waits)
    monkeypatch.setattr(trial, "WAIT_SECONDS", 1)
    monkeypatch.setattr(trial, "MIN_SECONDS", 0.1)
    outcome = try_case(replace(read_case(RESIZE.read_text("utf-8")), checks=("native",)), cache)
    assert (outcome.state, outcome.stage) == ("failed", "time")
    assert outcome.sentence == "the case hangs: less than 0.1 s of processor time in 1 s"


# --- shrinking of failures ---------------------------------------------------------------------------------------


def _concats(case: Case) -> list[Any]:
    return [layer for layer in case.network["topology"]["layers"] if layer["type"] == "concat"]


def test_shrunk_by_failure_of_concat_keeps_only_the_concat() -> None:
    """Shrink a case, if every case with a concat of two or more maps fails."""
    failure = Outcome("failed", "native", "wrong integers")

    def attempt(case: Case) -> Outcome:
        joins = [layer for layer in _concats(case) if len(layer["from"]) >= 2]
        return failure if joins else Outcome("passed")

    cases = (draw_case(2, number) for number in range(1000))
    case = next(c for c in cases if c.network["form"] == "exported" and attempt(c) is failure and c.layers >= 6)
    smaller = shrunk_by(case, failure, attempt)
    assert attempt(smaller) is failure
    assert smaller.layers == 1
    assert smaller.checks == ("native",)
    assert smaller.network["topology"]["input"] == {"channels": 1, "height": 1, "width": 1}
    assert smaller.mapping["kind"] == "greedy"


def test_shrunk_by_failure_of_darknet_route_keeps_only_the_route() -> None:
    failure = Outcome("failed", "trace", "wrong")

    def attempt(case: Case) -> Outcome:
        return failure if any(kind == "route" for kind, _ in case.network["sections"]) else Outcome("passed")

    cases = (draw_case(2, number) for number in range(1000))
    darknet = (c for c in cases if c.network["form"] == "darknet")
    case = next(c for c in darknet if attempt(c) is failure and c.layers >= 8)
    smaller = shrunk_by(case, failure, attempt)
    assert [kind for kind, _ in smaller.network["sections"]] == ["net", "route"]


@pytest.mark.parametrize("kind", ["shortcut", "sam", "scale_channels"])
def test_smaller_cases_renumber_the_layer_that_a_section_reads(kind: str) -> None:
    """Remove each layer in turn. The reader then reads the same layer as before, or the one before a removed layer."""
    layers = [["convolutional", {"filters": number}] for number in range(1, 5)]
    sections = [["net", {}], *layers, [kind, {"from": "-3"}]]
    case = replace(draw_case(2, 0), network={"form": "darknet", "sections": sections})
    read = []
    for smaller in islice(smaller_cases(case), 1, 5):  # without the fourth layer, the third, the second and the first
        *left, (_, options) = smaller.network["sections"][1:]
        read.append(left[int(options["from"])][1]["filters"])
    assert read == [2, 2, 1, 2]


def test_shrunk_by_other_failure_is_not_accepted() -> None:
    """Keep the case, if a smaller case fails with another sentence."""
    case = draw_case(2, 0)

    def attempt(smaller: Case) -> Outcome:
        return Outcome("failed", "native", "first" if smaller.layers == case.layers else "second")

    assert shrunk_by(case, Outcome("failed", "native", "first"), attempt).layers == case.layers


@pytest.mark.engine
def test_run_failure_is_reported_stored_and_replayed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYSTOLIC_TEST_BUILDS", str(cache))
    monkeypatch.setattr("tests.fuzz.networks.run.draw_case", lambda *_: read_case(TERNARY.read_text("utf-8")))
    monkeypatch.setattr("tests.fuzz.networks.run.SHRINK_SECONDS", 0.0)
    monkeypatch.setitem(checks.CHECKS, "native", _raises)
    assert run(Campaign(7, 1, None, tmp_path)) == 1
    told = capsys.readouterr().out
    path = tmp_path / "seed-7-case-0.json"
    assert "case 0 FAILED streaming native: KeyError in test_networks.py:_raises" in told
    assert f"repeat with: python -m tests.fuzz networks --replay {path}" in told
    assert "1 networks in " in told
    assert "1 failed in 1 ways" in told
    assert run(Campaign(7, None, None, tmp_path, replay=(path,))) == 1
    monkeypatch.undo()
    monkeypatch.setenv("SYSTOLIC_TEST_BUILDS", str(cache))
    assert run(Campaign(7, None, None, tmp_path, replay=(path, path.with_suffix(".small.json")))) == 0


@pytest.mark.parametrize(("layers", "cases", "defects"), [(0, None, 0), (40, None, 0), (40, 5, 1)])
def test_run_with_required_layers_continues_until_they_are_executed(
    layers: int,
    cases: int | None,
    defects: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Run a campaign whose time allows no case, so that only the required layers make it continue.

    One more case begins before the last one is counted. Too few layers count as a defect.
    """
    monkeypatch.setenv("SYSTOLIC_TEST_BUILDS", str(tmp_path))
    monkeypatch.setattr("tests.fuzz.networks.trial.run_case", lambda *_: Outcome("passed", layers={"Concat": 4}))
    monkeypatch.setattr("tests.fuzz.campaign.LONGEST", 1e9)
    assert run(Campaign(7, cases, 1e-6, tmp_path, layers=layers)) == defects
    told = capsys.readouterr().out
    executed = {(0, None): 0, (40, None): 44, (40, 5): 20}[layers, cases]
    assert f"{executed} layers, 0 refused" in told
    assert ("at least 40 layers must be executed, and 20 were" in told) == bool(defects)


@pytest.mark.engine
def test_try_case_networks_on_one_array_share_a_compiled_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compile once, because the sources differ only in comments and in bounds that g++ does not compile."""
    cases = (draw_case(SEED, number) for number in range(1000))
    drawn = [c for c in cases if c.style == "systolic" and c.mapping["kind"] == "drawn"][:30]
    array = drawn[0].mapping["array"]
    alike = [replace(c, checks=("native",)) for c in drawn if c.mapping["array"] == array]
    networks = [c for c in alike if c.target["board"] == drawn[0].target["board"]][:3]
    assert len(networks) == 3
    for case in networks:
        assert try_case(case, tmp_path).state == "passed"
    assert len(list(tmp_path.glob("*.so"))) == 1


@pytest.mark.parametrize("name", PLANTS)
def test_plant_finds_the_text_that_it_changes(name: str) -> None:
    with PLANTS[name]():
        pass
