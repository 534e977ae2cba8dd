"""Show docstrings as plain text: brackets, stars and angle brackets in them are not Markdown."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
FIELD = re.compile(r"\n(?=[\w, ]{1,40}: )|(?<=\.)\s(?=[a-z]\w*(?:, \w+)*: )")
ROLE = re.compile(r":(?:mod|func|class|meth):`~?([^`]+)`")


class PlainDocstrings(Extension):
    """Extension of mkdocstrings that escapes Markdown characters of docstrings, outside code."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = escaped(obj.docstring.value)


def escaped(text: str) -> str:
    """Return a docstring with Markdown characters escaped, except in code spans and indented blocks.

    A line ``field: meaning`` stays a separate line.
    """
    text = re.sub(r"(\n *)?::$", ":", ROLE.sub(r"``\1``", text), flags=re.MULTILINE)
    parts = CODE.split(FIELD.sub("  \n", text))
    return "".join(part if part.startswith("`") else _escape_lines(part) for part in parts)


def _escape_lines(text: str) -> str:
    return "\n".join(
        line if line.startswith("    ") else re.sub(r"([\[\]*_<>|])", r"\\\1", line) for line in text.split("\n")
    )
