"""The documentation names only what is there: files, modules, commands, options, Python that compiles."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shlex
import sys
from argparse import SUPPRESS
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from systolic.cli.main import parser
from tests.support.rooms import ROOMS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "systolic/report/glossary.md", *(ROOT / "docs").rglob("*.md")])
PLACES = (*ROOMS, "benchmarks", "tools", "tests", "docs", ".ci")
OTHER_TOOLS = ("python", "pip", "pytest", "mkdocs", "vitis", "vivado", "g++", "pynq")
"""First words of code spans whose options belong to other programs than systolic."""


def load_pages() -> ModuleType:
    """docs/hooks/pages.py, which MkDocs loads by its path too."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs/hooks/pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = load_pages()
COMMANDS = pages.subcommands(parser())


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> Iterator[str]:
    """Yield the fenced code of a language, without the indentation of a list around it."""
    fence = rf"^( *)```{language}\n(.*?)^\1```$"
    for indent, code in re.findall(fence, page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        yield re.sub(rf"^{indent}", "", code, flags=re.MULTILINE)


def code_spans(page: Path) -> list[str]:
    prose = re.sub(r"^( *)```.*?^\1```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose)


def command_lines(page: Path) -> Iterator[list[str]]:
    """Yield the words of every ``systolic …`` that a reader may type."""
    lines = [line for language in ("sh", "", "text") for code in blocks(page, language) for line in code.splitlines()]
    for text in (part.strip() for line in [*lines, *code_spans(page)] for part in line.split("&&")):
        if text.startswith("systolic ") and "✗" not in text:
            yield shlex.split(text, comments=True)


def resolves(dotted: str) -> bool:
    """Return whether a module, a name in a module, or a member of a class exists."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            place: object = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for name in parts[length:]:
            lazy = name in getattr(place, "__all__", ()) or name in getattr(place, "__annotations__", {})
            if not hasattr(place, name) and not lazy and name not in getattr(place, "__dataclass_fields__", {}):
                return False
            place = getattr(place, name, None) if not lazy else None
        return True
    return False


def faults(check: Callable[[Path], Iterable[object]]) -> dict[str, list[object]]:
    """Return what the check finds wrong on each page, without the pages that are right."""
    found = {name_of(page): list(check(page)) for page in PAGES}
    return {page: wrong for page, wrong in found.items() if wrong}


def missing_files(page: Path) -> list[str]:
    spans = (span for span in code_spans(page) if span.split("/")[0] in PLACES and "/" in span)
    named = [span.split(":")[0].rstrip("/") for span in spans]
    named = [path for path in named if re.fullmatch(r"[\w./*-]+", path) and "NAME" not in path and "MODULE" not in path]
    return [path for path in named if not list(ROOT.glob(path))]


def missing_links(page: Path) -> list[str]:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    generated = {"contributing.md", "changelog.md", "glossary.md"}
    local = [link for link in links if "://" not in link and Path(link).name not in generated]
    return [link for link in local if not (page.parent / link).exists()]


MODULE = re.compile(rf"(?:{'|'.join(ROOMS)})(?:\.[A-Za-z_]\w*)+")


def missing_modules(page: Path) -> list[str]:
    files = (".py", ".json", ".toml", ".hwh", ".md")
    named = [span for span in code_spans(page) if MODULE.fullmatch(span) and not span.endswith(files)]
    named += re.findall(r"^::: ([\w.]+)$", page.read_text("utf-8"), re.MULTILINE)
    return [name for name in named if not resolves(name)]


def wrong_commands(page: Path) -> Iterator[list[str]]:
    """Yield command lines whose command, or one of whose options, does not exist."""
    for words in command_lines(page):
        if words[1].startswith("-") or words[1] in ("…", "COMMAND"):
            continue
        command = COMMANDS.get(words[1])
        options = {word.split("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
        if command is None or not options <= set(command._option_string_actions):
            yield words


def unknown_options(page: Path) -> set[str]:
    known = {"--help", "--version", "--rules", "--explain"}
    known = known.union(*(command._option_string_actions for command in COMMANDS.values()))
    ours = [span for span in code_spans(page) if not span.startswith(OTHER_TOOLS)]
    return {match for span in ours for match in re.findall(r"(?:^|(?<=[\s(]))--[a-z][\w-]*", span)} - known


def unknown_names(page: Path) -> Iterator[str]:
    """Yield what the Python on a page takes from a module that does not have it."""
    for code in blocks(page, "python"):
        for node in ast.walk(ast.parse(code, name_of(page))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in ROOMS:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "systolic":
                names = [f"systolic.{node.attr}"]
            yield from (name for name in names if not resolves(name))


TEST = re.compile(r"(?:tests/[\w/]+\.py::)?test_\w+")


def missing_tests(page: Path) -> set[str]:
    """Return the tests that a page names, alone or as FILE::NAME, and that no test module has, or not that file."""
    return {span for span in code_spans(page) if TEST.fullmatch(span)} - names_of_tests()


@cache
def names_of_tests() -> frozenset[str]:
    """Return every test function, by its name alone and as FILE::NAME."""
    names: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        own = re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text("utf-8"), re.M)
        names.update(own, (f"{name_of(path)}::{name}" for name in own))
    return frozenset(names)


def environments_in_packages(page: Path) -> list[str]:
    """Return folders of the project in which a page makes an environment: it would become part of a package."""
    made = re.findall(r"python3 -m venv ([\w./-]+)", page.read_text("utf-8"))
    return [folder for folder in made if (ROOT / folder).exists() and folder != ".venv"]


def test_pages_name_only_files_that_are_there() -> None:
    assert faults(missing_files) == {}


def test_pages_name_only_tests_that_are_there() -> None:
    assert faults(missing_tests) == {}


def test_onnx_page_constructs_each_name_an_existing_test() -> None:
    page = (ROOT / "docs/reference/onnx.md").read_text("utf-8")
    (section,) = re.findall(r"^## Constructs and their tests\n(.*?)(?=^## )", page, re.M | re.S)
    rows = [row for row in _rows(section) if row[1:] != ["---"] * len(row[1:])][1:]
    named = {construct: re.findall(r"`([^`]+)`", tests) for construct, _, tests in rows}
    assert len(named) == len(rows)
    assert [construct for construct, tests in named.items() if not tests] == []
    wrong = {test for tests in named.values() for test in tests if "::" not in test or test not in names_of_tests()}
    assert wrong == set()


def test_links_lead_to_files_that_are_there() -> None:
    assert faults(missing_links) == {}


def test_pages_name_only_modules_that_are_there() -> None:
    assert faults(missing_modules) == {}


def test_command_lines_have_known_commands_and_options() -> None:
    assert faults(wrong_commands) == {}


def test_options_in_the_prose_are_known() -> None:
    assert faults(unknown_options) == {}


def test_python_on_pages_compiles_and_imports_what_is_there() -> None:
    assert faults(unknown_names) == {}


def test_pages_make_no_environment_in_a_folder_of_the_project() -> None:
    assert faults(environments_in_packages) == {}


def test_code_names_only_pages_that_exist() -> None:
    sources = [path for place in (*ROOMS, "benchmarks", "tools", "tests") for path in (ROOT / place).rglob("*")]
    texts = {path: path.read_text("utf-8") for path in sources if path.suffix in {".py", ".h", ".cpp", ".j2"}}
    named = {(path, page) for path, text in texts.items() for page in re.findall(r"docs/[\w/-]+\.md", text)}
    assert sorted(f"{path}: {page}" for path, page in named if not (ROOT / page).exists()) == []


def test_reference_lists_every_module_of_every_package() -> None:
    listed = {module for package in pages.packages() for module in pages.modules(package)}
    files = [path.relative_to(ROOT).with_suffix("") for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    there = {".".join(path.parts).removesuffix(".__init__") for path in files if path.name != "__main__"}
    assert listed == there
    for package in pages.packages():
        text = pages.package_page(package)
        assert [module for module in pages.modules(package) if f"::: {module}\n" not in f"{text}\n"] == []


def test_architecture_page_tree_lists_every_package() -> None:
    (tree,) = (code for code in blocks(ROOT / "docs/architecture.md", "text") if code.startswith("boards/"))
    folders: list[str] = []
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        above = [folder for folder in folders if folder.count("/") == depth - 1][-1:] if depth else []
        names = re.findall(r"(\w+)/", line.strip().split("   ")[0])
        folders += ["/".join([*above, name]) for name in names]
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []
    assert {package.replace(".", "/") for package in pages.packages()} <= set(folders)


def test_headers_each_have_a_head_comment() -> None:
    assert [path.name for path in pages.headers() if not pages.head_comment(path)] == []


def test_reference_lists_every_command_and_option() -> None:
    text = pages.commands_list()
    for name, command in COMMANDS.items():
        assert f"## systolic {name}\n" in text
        shown = [action for action in command._actions if action.option_strings and action.help != SUPPRESS]
        options = [action.option_strings[-1] for action in shown]
        assert [option for option in options if option != "--help" and f"`{option}" not in text] == []


def test_pages_show_every_command() -> None:
    shown = {words[1] for page in PAGES for words in command_lines(page)}
    assert set(COMMANDS) - shown == set()


def test_install_page_lists_every_extra_and_every_package_name() -> None:
    page = (ROOT / "docs/how-to/install.md").read_text("utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = settings["project"]["optional-dependencies"]
    assert {row[0].strip("`") for row in _rows(page)[2:]} == set(extras)
    (names,) = re.findall(r"have plain names: (.*?)\.\n", page, re.DOTALL)
    rooms = settings["tool"]["setuptools"]["packages"]["find"]["include"]
    assert set(re.findall(r"`(\w+)`", names)) == {room.removesuffix("*") for room in rooms}


def test_generated_parts_replace_their_marks_in_pages() -> None:
    for page in PAGES:
        assert "<!-- generated" not in pages.on_page_markdown(page.read_text("utf-8")), name_of(page)


@pytest.mark.parametrize(
    ("page", "module", "entries"),
    [
        ("schedule_file", "scheduler.systolic.schedule_file", "layers"),
        ("folding_file", "scheduler.streaming.folding_file", "blocks"),
    ],
)
def test_file_pages_explain_every_key_of_the_schema(page: str, module: str, entries: str) -> None:
    rows = _rows((ROOT / f"docs/reference/{page}.md").read_text("utf-8"))
    schema = importlib.import_module(module).SCHEMA["properties"][entries]["items"]["properties"]
    explained = {key for row in rows for key in re.findall(r"`(\w+)`", row[0])}
    assert explained == set(schema) - {"name"}


def test_site_requests_no_files_of_other_servers() -> None:
    """Neither fonts nor scripts; Material would fetch mermaid where a page has a diagram of that kind."""
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "font: false" in settings
    assert "http" not in settings
    assert [name_of(page) for page in PAGES if "```mermaid" in page.read_text("utf-8")] == []


def _rows(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
