"""Test which modules help, version and completion import. Imports are counted, because seconds depend on the machine.

``python -m benchmarks.startup`` measures the seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from boards import board
from cnn import zoo
from systolic.cli import completion
from systolic.cli.table import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
LIGHT = ("systolic.cli", "systolic.option", "systolic.choices", "systolic.version", "systolic.__main__")
STYLES = {"systolic.styles", "systolic.styles.systolic", "systolic.styles.streaming"}

LOADED = """
import contextlib, io, json, os, sys
before = set(sys.modules)
from systolic.__main__ import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["systolic", *words]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def is_light(module: str) -> bool:
    """Return whether a module of the project only has data about options, or code that shows it."""
    arguments = module.startswith("systolic.styles.") and module.endswith(".arguments")
    return module == "systolic" or module.startswith(LIGHT) or module in STYLES or arguments


def loaded_by(calls: list[list[str]], environment: dict[str, str]) -> list[str]:
    """Return the modules that a new process has imported after these command lines."""
    command = [sys.executable, "-c", LOADED, json.dumps(calls)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT), **environment}, capture_output=True, text=True, check=True
    )
    modules: list[str] = json.loads(done.stdout)
    return modules


def is_ours(module: str) -> bool:
    """Return whether a module belongs to the project."""
    return (ROOT / module.split(".")[0]).is_dir()


def test_help_of_every_command_imports_only_options() -> None:
    loaded = loaded_by([["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)], {})
    assert [module for module in loaded if is_ours(module) and not is_light(module)] == []
    others = {module.split(".")[0] for module in loaded if not is_ours(module)}
    assert others <= sys.stdlib_module_names, "help must import nothing from site-packages"
    assert "typing" not in others, "the import of typing takes longer than the help itself"
    assert "systolic.cli.options.start" in loaded


def test_help_of_one_command_imports_only_its_options() -> None:
    loaded = loaded_by([["boards", "--help"]], {})
    options = {module.rsplit(".")[-1] for module in loaded if module.startswith("systolic.cli.options.")}
    assert options == {"start", "common", "form"}


def completions(line: str, folder: Path) -> tuple[set[str], list[str]]:
    """Return the words that a shell completes, and the modules that were imported for it.

    argcomplete ends its process with os._exit, so this call is replaced by one that first writes the modules.
    """
    answer, modules = folder / "answer", folder / "modules"
    code = (
        "import json, os, sys; end = os._exit; before = set(sys.modules)\n"
        "def write_and_end(status):\n"
        f"    open({str(modules)!r}, 'w').write(json.dumps(sorted(set(sys.modules) - before))); end(status)\n"
        "os._exit = write_and_end\n"
        "from systolic.__main__ import main; main()"
    )
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "PYTHONPATH": str(ROOT),
    }
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, cwd=folder, check=True)
    return {word.strip() for word in answer.read_text().splitlines()}, json.loads(modules.read_text())


def test_completion_offers_commands_networks_boards_and_values(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").touch()
    (tmp_path / "mine.cfg").touch()
    (tmp_path / "mine.txt").touch()
    cases: dict[str, set[str]] = {
        "systolic sch": {"schedule"},
        "systolic generate shapes-": {"shapes-w4a4"},
        "systolic schedule mi": {"mine.cfg"},
        "systolic generate shapes --board zcu": {"zcu102", "zcu104"},
        "systolic generate shapes --board mi": {"mine.toml"},
        "systolic generate shapes --style s": {"systolic", "streaming"},
        "systolic generate shapes --bits 1": {"16"},
        "systolic schedule shapes --objective d": {"ddr"},
        "systolic fold shapes --folding g": {"greedy"},
        "systolic run x y --conf": {"--conf"},
        "systolic run x y --thr": set(),
        "systolic networks --ver": {"--verbose"},
    }
    for line, expected in cases.items():
        found, loaded = completions(line, tmp_path)
        assert found - {""} == expected, line
        assert [module for module in loaded if is_ours(module) and not is_light(module)] == [], line
        others = {module.split(".")[0] for module in loaded if not is_ours(module)}
        assert others <= {*sys.stdlib_module_names, "argcomplete"}, line


def test_completion_names_equal_boards_and_networks() -> None:
    assert completion.board_names() == sorted(board.names())
    assert completion.network_names() == sorted(zoo.names())


@pytest.mark.parametrize("prefix", ["absent/x", "\0"])
def test_completion_in_missing_folder_is_empty(prefix: str) -> None:
    assert completion.completer("design")(prefix) == []


FIRST = """
import json, os, sys
from systolic.__main__ import main
class Line:
    def write(self, text):
        print(json.dumps([text, sorted(sys.modules)])); sys.stdout.flush(); os._exit(0)
    def isatty(self): return False
    def flush(self): pass
sys.argv, sys.stderr = ["systolic", "demo", "-o", sys.argv[1]], Line()
main()
"""


def test_demo_prints_its_first_line_before_heavy_imports(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIRST, str(tmp_path / "demo")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    line, modules = json.loads(done.stdout)
    assert line.startswith("systolic: running all steps")
    heavy = {"numpy", "PIL", "cnn", "scheduler", "hls_templates", "systolic.designs"}
    assert heavy.isdisjoint(modules), "the first line must be printed within a second"
