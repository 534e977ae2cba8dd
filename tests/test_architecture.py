"""The layout of the project: imports point downward only, and our package names are ours alone."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import sys
from collections.abc import Collection
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = {
    "boards": set(),
    "contract": {"boards"},
    "cnn": {"boards"},
    "scheduler": {"boards", "contract", "cnn"},
    "hls_schedule": {"boards"},
    "hls_templates": {"boards", "contract"},
    "rtl_templates": {"boards", "contract"},
    "rtl_timing": {"boards"},
    "host": {"boards", "contract"},
    "systolic": {
        "boards",
        "contract",
        "cnn",
        "scheduler",
        "hls_schedule",
        "hls_templates",
        "rtl_templates",
        "rtl_timing",
        "host",
    },
}
# These are rooms of their own: of the ground floor they see the errors, the type of progress, the ranges of values,
# the parser of JSON and the renderer of templates.
ONLY_ERRORS = ("contract", "hls_schedule", "hls_templates", "rtl_templates", "rtl_timing", "host")
# Packages of the board's image. Only host/board imports pynq; IPython belongs to Jupyter.
ON_THE_BOARD = {"numpy", "PIL", "pynq", "pynqmetadata", "IPython"}


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"no sources in {package}"
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def imported(path: Path) -> frozenset[str]:
    """Return the full names of the modules that a file imports, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports name their package in full"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return frozenset(names)


def test_imports_point_downward_only() -> None:
    for package, path in [(room, path) for room in ALLOWED for path in sources(room)]:
        rooms = {name.split(".")[0] for name in imported(path)} & set(ALLOWED)
        wrong = rooms - ALLOWED[package] - {package}
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}, which is not below {package}"


def modules_imported(path: Path, modules: Collection[str]) -> set[str]:
    """Return the modules of ours that a file imports: of ``from a import b`` the module a.b if there is one, else a."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in modules else str(node.module) for name in names}
    return found & set(modules)


def test_modules_have_no_import_cycle() -> None:
    """Not even for types."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for room in ALLOWED
        for path in sources(room)
    }
    imports = {name: modules_imported(path, paths) - {name} for name, path in paths.items()}
    TopologicalSorter(imports).prepare()  # CycleError names the modules of a circle


def test_independent_packages_import_only_shared_modules_of_boards() -> None:
    for path in (path for package in ONLY_ERRORS for path in sources(package)):
        below = {name for name in imported(path) if name.split(".")[0] == "boards"}
        seen = ("boards.errors", "boards.json_text", "boards.progress", "boards.ranges", "boards.templates")
        wrong = {name for name in below if not name.startswith(seen) and name != "boards"}
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}, but of boards may only see {seen}"


def test_host_imports_only_packages_of_a_board_image() -> None:
    rooms = {"host", "contract", "boards"}
    for path in (path for room in ("host", "contract") for path in sources(room)):
        foreign = {name.split(".")[0] for name in imported(path)} - set(sys.stdlib_module_names) - rooms
        assert foreign <= ON_THE_BOARD, f"{path.relative_to(ROOT)} imports {sorted(foreign - ON_THE_BOARD)}"


def test_packages_are_typed_and_regular() -> None:
    for package in ALLOWED:
        assert (ROOT / package / "py.typed").is_file(), package
        for folder in {path.parent for path in sources(package)}:
            assert (folder / "__init__.py").is_file(), f"{folder.relative_to(ROOT)} lacks an __init__.py"


def test_package_names_are_in_no_other_distribution() -> None:
    """The names are common ones; PyPI's ``scheduler`` and ``boards`` would overwrite ours without a word."""
    owners = importlib.metadata.packages_distributions()
    if not any("systolic-cnn" in owners.get(package, []) for package in ALLOWED):
        pytest.skip("systolic-cnn is not installed here: pip install -e .")
    others = {package: set(owners.get(package, [])) - {"systolic-cnn"} for package in ALLOWED}
    taken = {package: sorted(names) for package, names in others.items() if names}
    assert not taken, f"other distributions have packages of our names; uninstall them: {taken}"


# --- one face for every style ------------------------------------------------------------------------------------

STYLE_NAMES = {"systolic", "streaming"}
IMPLEMENTATIONS = ("systolic/styles/systolic", "systolic/styles/streaming", "host/systolic", "host/streaming")
OF_ONE_STYLE = re.compile(r"(Systolic|Streaming|Pipeline)[A-Z]\w*")
MAY_ASK = re.compile(r"isinstance|issubclass|\bcase\b|[\"'](systolic|streaming)[\"']")
"""Text that a module with such a question has; most modules need not be parsed."""


def _constants(node: ast.AST) -> set[str]:
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def _names(node: ast.AST) -> set[str]:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def asks_for_a_style(node: ast.AST) -> bool:
    """Return whether code compares with a style's name or tests for a class of one style."""
    if isinstance(node, (ast.Compare, ast.MatchValue)):
        return bool(_constants(node) & STYLE_NAMES)
    if isinstance(node, ast.MatchClass):
        return any(OF_ONE_STYLE.fullmatch(name) for name in _names(node.cls))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        return any(OF_ONE_STYLE.fullmatch(name) for name in _names(node.args[1]) - {"SystolicError"})
    return False


def test_asks_for_a_style_recognises_every_form() -> None:
    asking = (
        'manifest.style == "streaming"',
        'style in ("systolic", "other")',
        "isinstance(design, StreamingDesign)",
        "isinstance(report, (int, measure.SystolicReport))",
        'match style:\n    case "systolic":\n        pass',
        "match design:\n    case SystolicDesign():\n        pass",
    )
    others = ("isinstance(error, SystolicError)", "STYLES[manifest.style]", 'name == "systolic_top"')
    for code in (*asking, *others):
        assert any(map(asks_for_a_style, ast.walk(ast.parse(code)))) == (code in asking), code
    assert all(map(MAY_ASK.search, asking))


def test_style_comparisons_are_only_in_the_style_implementations() -> None:
    """Code reaches a style only through systolic/styles/style.py and the host's registry."""
    questions = []
    for path in (path for package in ALLOWED for path in sources(package)):
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith(IMPLEMENTATIONS) and MAY_ASK.search(path.read_text("utf-8")):
            questions += [
                f"{place}:{getattr(node, 'lineno', 0)}" for node in ast.walk(parsed(path)) if asks_for_a_style(node)
            ]
    assert questions == []


def asks_for_an_engine(node: ast.AST) -> bool:
    """Return whether a node compares something with the name of an engine."""
    if not isinstance(node, ast.Compare):
        return False
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    values = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
    return bool(names & {"HLS", "RTL"} or values & {"hls", "rtl"})


def test_engine_comparisons_are_in_no_package() -> None:
    """Code reaches an engine only through scheduler/systolic/engines; language.py has facts of each."""
    assert asks_for_an_engine(ast.parse('array.engine == "rtl"', mode="eval").body)
    assert asks_for_an_engine(ast.parse("engine != RTL", mode="eval").body)
    for path in (path for package in ("contract", "scheduler", "host", "systolic") for path in sources(package)):
        asking = [node.lineno for node in ast.walk(parsed(path)) if asks_for_an_engine(node)]  # type: ignore[attr-defined]
        assert asking == [], path.relative_to(ROOT)


def test_styles_do_not_import_each_other() -> None:
    for style, other in (("systolic", "streaming"), ("streaming", "systolic")):
        for path in sorted((ROOT / "systolic/styles" / style).rglob("*.py")):
            foreign = {name for name in imported(path) if name.startswith(f"systolic.styles.{other}")}
            assert not foreign, f"{path.relative_to(ROOT)} imports {sorted(foreign)}"


@pytest.mark.parametrize("notebook", sorted(ROOT.glob("*/notebooks/*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_import_the_public_api_alone(notebook: Path) -> None:
    """They import host and systolic, and no module below systolic."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    names: set[str] = set()
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module))
    ours = {name for name in names if name.split(".")[0] in ALLOWED}
    assert ours <= {"systolic"} | {name for name in ours if name.split(".")[0] == "host"}, sorted(ours)


def test_figures_are_drawn_only_into_a_picture() -> None:
    """systolic.report.figures.Picture is drawn into: of matplotlib's own a notebook may show nothing but its name."""
    own = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources("systolic")
        if "matplotlib" in path.read_text("utf-8")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("Figure", "subplots", "figure")
        if any(keyword.arg in ("figsize", "layout") for keyword in node.keywords)
    }
    assert own == set(), "draw into a Picture"
