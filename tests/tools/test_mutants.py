"""The kept mutants: where a mutant may be, how a patch is tried, and what the record says of the suite."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.mutants import record
from tools.mutants.command import HERE, main
from tools.mutants.reach import Reach
from tools.mutants.trial import ROOT, Copy, Patch, StalePatchError, judges, read_patch

PATCH = """--- a/area/sum.py
+++ b/area/sum.py
@@ -1,4 +1,4 @@
 def area(rows, columns):
     \"\"\"Return the product.\"\"\"
-    return rows * columns
+    return rows + columns

"""


@pytest.fixture
def project(tmp_path: Path) -> Copy:
    """Return a project of one function, with a test that notices the patch and one that does not."""
    (tmp_path / "area").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "area/__init__.py").touch()
    (tmp_path / "area/sum.py").write_text(
        'def area(rows, columns):\n    """Return the product."""\n    return rows * columns\n\n', "utf-8"
    )
    (tmp_path / "tests/test_area.py").write_text(
        "from area.sum import area\n\n\ndef test_square():\n    assert area(2, 2) == 4\n\n\n"
        "def test_area():\n    assert area(2, 3) == 6\n",
        "utf-8",
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    return Copy(tmp_path)


@pytest.fixture
def patch(tmp_path: Path) -> Patch:
    (tmp_path / "chain").mkdir()
    (tmp_path / "chain/01-product.patch").write_text(PATCH, "utf-8")
    return read_patch(tmp_path / "chain/01-product.patch")


def test_read_patch_gives_file_line_and_name(patch: Patch) -> None:
    assert (patch.name, patch.target, patch.line) == ("chain/01-product", "area/sum.py", 3)


def test_copy_names_the_first_test_that_fails_with_a_patch_and_none_without(project: Copy, patch: Patch) -> None:
    tests = ["tests/test_area.py::test_square", "tests/test_area.py::test_area"]
    project.apply(patch)
    assert project.failing(tests, "default", 1) == "tests/test_area.py::test_area"
    assert project.failing(tests[:1], "default", 1) == ""
    project.apply(patch, reverse=True)
    assert project.failing(tests, "default", 1) == ""


def test_copy_refuses_a_patch_that_does_not_fit(project: Copy, patch: Patch) -> None:
    (project.root / "area/sum.py").write_text("def area(rows, columns):\n    return 1\n", "utf-8")
    with pytest.raises(StalePatchError, match="chain/01-product"):
        project.apply(patch)


def test_judges_are_the_tests_that_reach_the_line_within_the_budget_and_never_digests(
    project: Copy, patch: Patch
) -> None:
    names = ["tests/a.py::slow", "tests/a.py::fast", "tests/tools/b.py::digest", "tests/a.py::other"]
    seconds = dict(zip(names, (50.0, 1.0, 0.1, 0.2), strict=True))
    reach = Reach(seconds, {"area/sum.py": {3: names[:3], 1: names[3:]}}, [])
    assert judges(patch, project.root, reach, 60) == [names[1], names[0]]
    assert judges(patch, project.root, reach, 10) == [names[1]]
    assert judges(patch, project.root, reach, 0) == [names[1]]


def test_score_counts_only_mutants_that_some_test_kills() -> None:
    kills = {
        "patches/1": {"default": "t"},
        "patches/2": {"default": "", "engine": "t"},
        "patches/3": {"default": "", "engine": "", "proof": "t"},
        "patches/4": {"default": "", "engine": "", "proof": ""},
        "patches/5": {"default": ""},
        "chain/1": {"default": "t"},
    }
    equivalent = {"patches/5": "only the speed changes"}
    assert record.score(kills, equivalent) == record.Score(mutants=5, killed=3, default=1, engine=2, equivalent=1)
    untried = {**kills, "patches/6": {"default": ""}, "chain/2": {"default": ""}}
    assert record.score(untried, equivalent) == record.Score(6, 3, 1, 2, equivalent=1, untried=1)


def test_promised_shares_are_those_of_the_mutants_that_some_test_kills() -> None:
    assert list(record.Score(mutants=30, killed=20, default=17, engine=19).shortfalls()) == []
    for default, engine, untried in ((16, 19, 0), (17, 18, 0), (17, 19, 1)):
        assert len(list(record.Score(30, 20, default, engine, untried=untried).shortfalls())) == 1


def test_record_reaches_the_promised_shares_and_kills_the_chain() -> None:
    kills, equivalent = record.read(), record.read_equivalent()
    patches = {f"{path.parent.name}/{path.stem}" for path in HERE.glob("*/*.patch")}
    chain = {name for name in patches if name.startswith("chain/")}
    assert (len(chain), len(patches)) == (10, 110)
    assert set(kills) | set(equivalent) == patches
    assert all(kills[name]["default"] for name in chain)
    assert [name for name in equivalent if any(kills.get(name, {}).values())] == []
    assert list(record.score(kills, equivalent).shortfalls()) == []


def test_equivalent_mutants_have_a_reason() -> None:
    assert all(len(reason) > 20 for reason in record.read_equivalent().values())


def test_report_command_prints_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    assert "mutants, " in capsys.readouterr().out


@pytest.mark.proof
def test_patches_apply_to_the_project_and_revert(tmp_path: Path) -> None:
    copy = Copy.of_project(tmp_path / "copy")
    for path in sorted(HERE.glob("*/*.patch")):
        patch = read_patch(path)
        copy.apply(patch)
        assert (copy.root / patch.target).read_bytes() != (ROOT / patch.target).read_bytes(), patch.name
        copy.apply(patch, reverse=True)
        assert (copy.root / patch.target).read_bytes() == (ROOT / patch.target).read_bytes(), patch.name


def test_tokens_are_found_in_code_and_not_in_comments_strings_or_assignments() -> None:
    pytest.importorskip("cosmic_ray", reason="mutants are drawn with Cosmic Ray: pip install -e .[mutation]")
    from tools.mutants.draw import tokens

    def found(text: str, path: str) -> list[str]:
        return [text[start:end] for start, end in tokens(text, path)]

    assert found('a = b + 1;  // c - 1\nf("d + 1");\n', "a.h") == ["+", "1"]
    assert found("template <int A, int B = 1>\nint x = 10 * A;\n#if A > 1\n", "a.h") == ["*"]
    assert found("    step <= step + 1;\n    full <= count <= 1;\n", "a.sv") == ["+", "1", "<=", "1"]


def test_help_has_an_example() -> None:
    done = subprocess.run(
        ["python", "-m", "tools.mutants", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "example:" in done.stdout
