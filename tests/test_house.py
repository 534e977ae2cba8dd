"""The house is readable: the limits that benchmarks/house.py measures, room by room."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("radon", reason="complexity is counted by radon")

from benchmarks.house import ROOMS, VAGUE_SHARE, Measures, measure, report, vague_places, worst


@pytest.fixture(scope="module")
def measures() -> Measures:
    return measure()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_within_the_limits(measures: Measures, room: str) -> None:
    over = worst(measures, room)
    assert not over, f"over the limits of benchmarks/house.py:\n{over}"


@pytest.mark.parametrize("room", ROOMS)
def test_names_say_what_they_name(measures: Measures, room: str) -> None:
    names = [name for place, name in measures.named if place.startswith(f"{room}/")]
    vague = vague_places(measures, f"{room}/").splitlines()
    assert len(vague) <= VAGUE_SHARE * len(names), "\n".join(vague)


def measured(tmp_path: Path, **modules: str) -> Measures:
    """Of a room ``r`` with these modules."""
    (tmp_path / "r").mkdir()
    for name, text in {"__init__": '"""A room with what the test needs."""\n', **modules}.items():
        (tmp_path / "r" / f"{name}.py").write_text(text)
    return measure(tmp_path, ("r",))


def test_a_room_without_faults_has_none(tmp_path: Path) -> None:
    assert worst(measured(tmp_path, tile='def rows(tile: int) -> int:\n    """How many."""\n    return tile\n')) == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n" * 351, "r/m.py: 351 lines"),
        ("def f(a, b, c, d, e, f, g):\n    'Adds.'\n", "r/m.py:1 f: 7 parameters"),
        ("def f():\n    'Adds.'\n" + "    x = 1\n" * 59, "r/m.py:1 f: 61 lines"),
        ("def f():\n    return 1\n", "r/m.py:1 f: no docstring"),
        ("def _f(a):\n" + "    if a: pass\n" * 12, "r/m.py:1 _f: complexity 13"),
        ("class A:\n    def f(self, a):\n" + "        if a: pass\n" * 12, "r/m.py:2 f: complexity 13"),
    ],
)
def test_what_is_over_a_limit_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert worst(measured(tmp_path, m=text)) == message


def test_a_folder_with_too_many_modules_and_a_package_without_a_sentence(tmp_path: Path) -> None:
    assert worst(measured(tmp_path, **{f"m{i}": "" for i in range(12)})) == ""
    (tmp_path / "r" / "top.cpp.j2").write_text("")
    (tmp_path / "r" / "__init__.py").write_text('"""r."""\n')
    assert worst(measure(tmp_path, ("r",))) == "r: 13 modules\nr/__init__.py: no sentence in its docstring"


def test_vague_bindings_are_counted_where_they_are_bound(tmp_path: Path) -> None:
    measures = measured(tmp_path, m="def f(kept):\n    'Adds.'\n    found, tile = kept\n    return found\n")
    assert sorted(vague_places(measures).splitlines()) == ["r/m.py:1 kept", "r/m.py:3 found"]
    assert measures.vague == 0.5
    assert "| vague bindings | 50.0% |" in report(measures)
