"""The help of the maintainers' commands, their sub-commands and the linter has the sentence of ``systolic --help``."""

from __future__ import annotations

from pathlib import Path

import pytest

from hls_templates.lint.__main__ import main as lint
from systolic.cli.parsing import SHOW_HELP
from tools.figures.command import main as figures
from tools.program import main as program

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("words", [["-h"], ["update", "--help"]])
def test_help_of_a_command_and_of_its_commands_has_the_sentence(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (figures, program, lint) if words == ["-h"] else (figures,):
        with pytest.raises(SystemExit) as ended:
            command(words)
        assert ended.value.code == 0
        said = capsys.readouterr().out
        assert SHOW_HELP in said
        assert "show this help message" not in said


def test_commands_of_the_maintainers_all_use_the_parser() -> None:
    folders = (ROOT / "tools", ROOT / "benchmarks", ROOT / "tests" / "fuzz")
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    users = [path for path in paths if "Parser(" in path.read_text("utf-8")]
    assert len(users) > 15
    assert not [path for path in users if "argparse.ArgumentParser(" in path.read_text("utf-8")]
