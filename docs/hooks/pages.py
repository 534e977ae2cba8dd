"""Pages and tables that are generated from the code, so that they cannot contradict it.

MkDocs calls ``on_config``, ``on_files`` and ``on_page_markdown``; tests/test_docs.py calls the other functions too.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "systolic",
    "boards",
    "contract",
    "cnn",
    "scheduler",
    "hls_schedule",
    "hls_templates",
    "rtl_templates",
    "rtl_timing",
    "host",
)
HEADERS = ROOT / "hls_templates"
GLOSSARY = "systolic/report/glossary.md"
"""The glossary page, which is part of the package because reports quote it."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of the packages to the section *Modules* of the navigation."""
    for section in config.nav or []:
        for entry in section.get("Reference", []):
            if isinstance(entry, dict) and "Modules" in entry:
                entry["Modules"] = [{package: page_of(package)} for package in packages()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the files of docs/."""
    from mkdocs.structure.files import File

    pages = {page_of(package): package_page(package) for package in packages()}
    pages |= {f"{name.lower()}.md": root_page(name) for name in ("CONTRIBUTING", "CHANGELOG")}
    pages["glossary.md"] = glossary_page()
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def packages() -> list[str]:
    """Return the dotted names of all packages, each top-level package before its subpackages."""
    return [
        ".".join(init.parent.relative_to(ROOT).parts)
        for room in ROOMS
        for init in sorted((ROOT / room).rglob("__init__.py"))
    ]


def modules(package: str) -> list[str]:
    """Return the package itself and the dotted names of its modules."""
    folder = ROOT.joinpath(*package.split("."))
    names = sorted(path.stem for path in folder.glob("*.py") if path.stem not in {"__init__", "__main__"})
    return [package, *(f"{package}.{name}" for name in names)]


def page_of(package: str) -> str:
    return f"reference/modules/{package}.md"


def package_page(package: str) -> str:
    """Return the page of a package: its docstring, then every module with its public names."""
    options = "    options: {show_root_heading: false, show_submodules: false}"
    return "\n\n".join([f"# {package}", f"::: {package}\n{options}", *(f"::: {name}" for name in modules(package)[1:])])


def commands_list() -> str:
    """Return a section per command, with its summary, its example and a table of options from argparse."""
    from systolic.cli.parsing import parser

    lines: list[str] = []
    for name, command in subcommands(parser()).items():
        lines += [f"## systolic {name}", "", _sentence(command.description or ""), ""]
        example = re.sub(r"^examples?:\s*", "", command.epilog or "")
        lines += ["```sh", *(line.strip() for line in example.splitlines()), "```", ""]
        for group in command._action_groups:
            lines += _option_table(command, group)
    return "\n".join(lines)


def renamed_table() -> str:
    """Return the old names of options and commands, each with the new one."""
    from systolic.cli import renamed

    names = {**renamed.OPTIONS, **{f"systolic {old}": f"systolic {new}" for old, new in renamed.COMMANDS.items()}}
    return "\n".join(["| old | new |", "| --- | --- |", *(f"| `{old}` | `{new}` |" for old, new in names.items())])


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command by the command's name."""
    return {
        name: command
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, command in action.choices.items()
    }


def _option_table(command: argparse.ArgumentParser, group: argparse._ArgumentGroup) -> list[str]:
    shown = (action for action in group._group_actions if action.help != argparse.SUPPRESS)
    rows = [_option_row(command, action) for action in shown if action.dest != "help"]
    return [f"| {group.title} | meaning |", "| --- | --- |", *rows, ""] if rows else []


def _option_row(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = command._get_formatter()
    if action.option_strings:
        value = "" if action.nargs == 0 else f" {formatter._format_args(action, action.dest.upper())}"
        names = ", ".join(f"`{name}{value}`" for name in action.option_strings)
    else:
        names = f"`{formatter._format_args(action, action.dest)}`"
    return f"| {names.replace('|', chr(92) + '|')} | {_cell(formatter._expand_help(action))} |"


def _cell(text: str) -> str:
    return re.sub(r"([|\[\]*_])", r"\\\1", text).replace("<", "&lt;")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def root_page(name: str) -> str:
    """Return a page of the repository's root, with its links relative to docs/."""
    return (ROOT / f"{name}.md").read_text("utf-8").replace(f"]({GLOSSARY})", "](glossary.md)").replace("](docs/", "](")


def glossary_page() -> str:
    """Return the glossary with an anchor per term, so that pages can link to ``glossary.md#pass``."""

    def anchored(row: re.Match[str]) -> str:
        name = row[1].split(",")[0].lower()
        return f'| <a id="{re.sub("[^a-z0-9]+", "-", name).strip("-")}"></a>{row[1]} |'

    return re.sub(r"^\| (?!word |---)([^|]+?) \|", anchored, (ROOT / GLOSSARY).read_text("utf-8"), flags=re.M)


def headers_list() -> str:
    """Return a table per folder of hls_templates/ of its C++ headers and their head comments."""
    lines: list[str] = []
    for folder in sorted({path.parent for path in headers()}):
        lines += [f"## {folder.relative_to(ROOT).as_posix()}", "", "| file | what it is |", "| --- | --- |"]
        lines += [f"| `{path.name}` | {_cell(head_comment(path))} |" for path in headers() if path.parent == folder]
        lines.append("")
    return "\n".join(lines)


def headers() -> list[Path]:
    """Return every header, and every source file without a header of the same name."""
    sources = (path for path in HEADERS.rglob("*.cpp") if not path.with_suffix(".h").exists())
    return sorted([*HEADERS.rglob("*.h"), *sources])


def head_comment(path: Path) -> str:
    """Return the first paragraph of the comment at the start of a file."""
    paragraph: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        text = line.removeprefix("//").strip()
        if not line.startswith("//") or (paragraph and not text):
            break
        paragraph.append(text)
    return " ".join(paragraph)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace marks such as ``<!-- generated: boards -->`` by the generated text."""
    return MARK.sub(lambda mark: GENERATED[mark[1]](*mark[2].split()), markdown)


def api_list() -> str:
    """Return sections of the public functions, classes and errors of ``systolic``."""
    names = [name for name in getattr(importlib.import_module("systolic"), "__all__", ()) if not name.startswith("_")]
    errors = [name for name in names if name.endswith("Error")]
    functions = [name for name in names if name.islower()]
    sections = {
        "Functions": functions,
        "Classes": [name for name in names if name not in (*functions, *errors)],
        "Errors": sorted(errors, key=lambda name: name != "SystolicError"),
    }
    return "\n\n".join(
        "\n\n".join([f"## {title}", *(f"::: systolic.{name}\n    options: {{heading_level: 3}}" for name in listed)])
        for title, listed in sections.items()
        if listed
    )


def boards_table() -> str:
    """Return a table of the boards, from their TOML files."""
    from boards.board import load, names

    lines = [
        "| name | part | DSP | BRAM36 | URAM | LUT | DDR rated / as booted, GB/s | HP ports |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in names():
        board = load(name)
        have, ddr = board.resources, board.ddr
        ports = [port for port in board.ports if not port.coherent]
        lines.append(
            f"| `{name}` | {board.part} | {have.dsp} | {have.bram36} | {have.uram} | {have.lut:,} "
            f"| {ddr.peak_gbps:.1f} / {ddr.preset_gbps:.1f} | {len(ports)} × {ports[0].bits} bits |"
        )
    return "\n".join(lines)


def manifest_example(style: str) -> str:
    """Return the manifest of the small design of a style in tests/golden."""
    text = (ROOT / "tests/golden" / style / "design/manifest.json").read_text("utf-8")
    return "\n".join(["```json", text.rstrip(), "```"])


def schema_table(module: str) -> str:
    """Return a table of a file's keys from its JSON Schema, one row per key, with dots before nested keys."""
    schema = importlib.import_module(module).SCHEMA
    return "\n".join(["| key | value | |", "| --- | --- | --- |", *_schema_rows(schema, "")])


def _schema_rows(schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for key, value in schema["properties"].items():
        required = "required" if key in schema.get("required", ()) else "optional"
        yield f"| `{prefix}{key}` | {_schema_value(value)} | {required} |"
        nested = value.get("items", value)
        if "properties" in nested:
            yield from _schema_rows(nested, f"{prefix}{key}{'[]' if 'items' in value else ''}.")


def _schema_value(value: Mapping[str, Any]) -> str:
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"])
    if value["type"] == "array" and "properties" not in value["items"]:
        return f"list: {_schema_value(value['items'])}"
    if value["type"] == "array":
        return "list of objects"
    bounds = f", {value['minimum']}…{value.get('maximum', '')}" if "minimum" in value else ""
    return f"{value['type']}{bounds}"


def fields_tables(module: str, name: str) -> str:
    """Return a table of fields for a dataclass and for every dataclass in its fields, the class itself first."""
    wanted, done = [getattr(importlib.import_module(module), name)], {}
    while wanted:
        kind = wanted.pop(0)
        if kind not in done:
            hints = get_type_hints(kind)
            done[kind] = {field.name: hints[field.name] for field in fields(kind)}
            wanted += [part for hint in done[kind].values() for part in _dataclasses_in(hint)]
    return "\n\n".join(_fields_table(kind, hints) for kind, hints in done.items())


def _dataclasses_in(hint: Any) -> list[type]:
    parts = [part for argument in get_args(hint) for part in _dataclasses_in(argument)]
    return [hint, *parts] if is_dataclass(hint) and isinstance(hint, type) else parts


def _fields_table(kind: type, hints: Mapping[str, Any]) -> str:
    meanings = {name: text for base in reversed(kind.__mro__) for name, text in _meanings(base).items()}
    rows = [f"| `{key}` | {_type_name(hint)} | {_plain(meanings.get(key, ''))} |" for key, hint in hints.items()]
    head = [f"### {kind.__name__}", "", _plain(FIELDS.split(_one_line(kind))[0]), ""]
    return "\n".join([*head, "| key | type | meaning |", "| --- | --- | --- |", *rows])


def _meanings(kind: type) -> dict[str, str]:
    """Return the meaning of each field, from ``field, field: meaning.`` in the docstring."""
    _, *parts = FIELDS.split(_one_line(kind))
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: text.rstrip(".;") for names, text in pairs for name in names.split(", ")}


def _one_line(kind: type) -> str:
    """Return the docstring of a class on one line, its fields one after the other."""
    return " ".join((kind.__doc__ or "").replace("Attributes:", "").split())


def _plain(text: str) -> str:
    return re.sub(r"((?:\[\w+\]){2,})", r"`\1`", text.replace("``", "`")).replace("|", "\\|")


def _type_name(hint: Any) -> str:
    arguments = [argument for argument in get_args(hint) if argument not in (Ellipsis, type(None))]
    if get_origin(hint) is tuple:
        return f"list of {' and '.join(dict.fromkeys(map(_type_name, arguments)))}"
    if len(arguments) == 1:
        return f"{_type_name(arguments[0])}, or absent"
    if len(arguments) > 1:
        return " or ".join(map(_type_name, arguments))
    name = str(hint.__name__)
    return f"[{name}](#{name.lower()})" if is_dataclass(hint) else name


def modules_table(package: str) -> str:
    """Return a table of the modules of a package and its subpackages, with the first sentence of each docstring."""
    inside = [name for name in packages() if name == package or name.startswith(f"{package}.")]
    listed = [module for name in inside for module in modules(name)[1:]]
    rows = [f"| `{module.removeprefix(f'{package}.')}` | {_cell(first_sentence(module))} |" for module in listed]
    return "\n".join([f"| module of `{package}` | what it is |", "| --- | --- |", *rows])


def first_sentence(module: str) -> str:
    """Return the first sentence of a module's docstring, without its full stop."""
    source = ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")
    paragraph = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
    return re.split(r"(?<=[.;]) ", paragraph)[0].rstrip(".;")


GENERATED: Mapping[str, Callable[..., str]] = {
    "api": api_list,
    "boards": boards_table,
    "commands": commands_list,
    "fields": fields_tables,
    "headers": headers_list,
    "manifest": manifest_example,
    "modules": modules_table,
    "renamed": renamed_table,
    "schema": schema_table,
}
"""The functions for marks, by the name in the mark; the words after the name are their arguments."""
FIELDS = re.compile(r"(?<=[.;]) (?=[a-z]\w*(?:, \w+)*: )([a-z]\w*(?:, \w+)*): ")
"""The start of a field's description in a docstring, with the names of the fields as its group."""
MARK = re.compile(r"<!-- generated: (\w+) ?(.*?) -->")
