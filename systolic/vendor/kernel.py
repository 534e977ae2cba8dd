"""A C++ top for one function of a design, so that its synthesis takes seconds instead of hours.

Its loops and memories are the same as in the whole design. Each stream becomes a port, and each ``hls::burst_maxi`` a
memory port. An array parameter is partitioned like the array that the design passes to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from boards.errors import FileAccessError, InvalidValueError, UnsupportedError, shown
from hls_templates.render import render
from hls_templates.vendor.values import word
from host.whole_file import write_whole
from systolic.vendor.claims import Claims
from systolic.vendor.reading.reports import KERNELS
from systolic.vendor.sources import DesignFunction, Sources

SCRIPT, UNIT = "run_hls.tcl", "kernel.cpp"


def kernel_folder(design: Path, function: str) -> Path:
    """Return the folder in which ``function`` is synthesised.

    Raises:
        InvalidValueError: ``function`` is not a C++ name.
    """
    if not re.fullmatch(r"[A-Za-z_]\w{0,99}", function):
        raise InvalidValueError("--only", function, "the name of a function of the design")
    return design / KERNELS / function


def write_kernel(design: Path, function: str, claims: Claims) -> Path:
    """Write the Tcl script and the C++ top that synthesise ``function`` alone, and return their folder.

    Raises:
        InvalidValueError: The design has no such function.
        UnsupportedError: The function is a template whose callers choose its types, or a parameter has no name.
        FileAccessError: The folder cannot be written.
    """
    folder = kernel_folder(design, function)
    files = kernel_files(function, claims)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_whole(folder / name, text.encode())
    except OSError as error:
        reason, remedy = f"cannot be written: {error.strerror}", "copy the design elsewhere"
        raise FileAccessError(str(folder), reason, "folder", remedy=remedy) from error
    return folder


def kernel_files(function: str, claims: Claims) -> dict[str, str]:
    """Return {"run_hls.tcl", "kernel.cpp": text} to synthesise ``function`` alone. Raises as ``write_kernel``."""
    named = claims.sources.named(function)
    if named is None:
        raise InvalidValueError("--only", function, "the name of a function of the design")
    nameless = next((kind for kind, name in named.arguments if not name), None)
    if nameless is not None:
        raise UnsupportedError(
            f"the parameter {shown(nameless)}", "it has no name, so the kernel cannot pass an argument to it"
        )
    top = f"{named.name}_kernel"
    fields = {
        "function": named.name,
        "top": top,
        "parameters": named.parameters,
        "pragmas": list(_pragmas(claims.sources, named.arguments)),
        "call": f"{named.name}{_arguments(claims.sources, named)}({', '.join(name for _, name in named.arguments)})",
        "unit": UNIT,
        "sources": "src",
        "part": word(claims.part, "part"),
        "clock_ns": f"{claims.period_ns:.6f}",
    }
    return {SCRIPT: render("vendor/run_kernel.tcl.j2", fields), UNIT: render("vendor/kernel.cpp.j2", fields)}


def _arguments(sources: Sources, function: DesignFunction) -> str:
    """Return the template arguments, such as "<8, 4>", of a function's first call in the C++; "" if it has none.

    Raises:
        UnsupportedError: No call has template arguments, or a parameter's type depends on one.
    """
    if not function.template:
        return ""
    chosen = set(function.template) & set(re.findall(r"\w+", function.parameters))
    calls = (re.search(rf"\b{function.name}\s*(<[^<>;(){{}}]*>)\s*\(", text) for text in sources.texts.values())
    call = next((match for match in calls if match), None)
    if chosen or call is None:
        raise UnsupportedError(
            f"the function {function.name} alone",
            f"it is a template, and its callers choose {', '.join(sorted(chosen)) or 'its arguments'}",
            remedy="name a function that calls it",
        )
    return call[1]


_PARTITION = re.compile(r"HLS\s+(ARRAY_PARTITION|ARRAY_RESHAPE)\s+variable\s*=\s*(\w+)([^\n)]*)")


def _pragmas(sources: Sources, parameters: Sequence[tuple[str, str]]) -> Iterator[str]:
    for kind, name in parameters:
        if kind.startswith("hls::burst_maxi"):
            yield f"INTERFACE mode=m_axi port={name} bundle={name} offset=slave latency=64"
        elif "stream" not in kind:
            yield from (
                f"{directive} variable={name}{options}" for directive, options in _partitions(sources, kind, name)
            )


def _partitions(sources: Sources, kind: str, name: str) -> list[tuple[str, str]]:
    """Return the ARRAY_PARTITION and ARRAY_RESHAPE directives for an array parameter, as (directive, options).

    They are copied from the first array of the parameter's type, else from an array of its name, because the function
    itself does not contain them.
    """
    by_type: dict[str, list[tuple[str, str]]] = {}
    by_name: dict[str, list[tuple[str, str]]] = {}
    for file, text in sources.texts.items():
        for directive, variable, options in _PARTITION.findall(text):
            entry = (directive, f" {options.strip()}" if options.strip() else "")
            if kind.endswith("_t") and re.search(rf"\b{re.escape(kind)}\s+{variable}\s*;", text):
                by_type.setdefault(variable, []).append(entry)
            elif variable == name:
                by_name.setdefault(file, []).append(entry)
    return next(iter([*by_type.values(), *by_name.values()]), [])
