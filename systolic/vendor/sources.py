"""Parses a design's C++: its functions, their calls, their loops with PIPELINE and memories with BIND_STORAGE.

The files are parsed without a preprocessor: the vendor's tool names loops by the lines of the files, and the design
declares its memories with macros.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tree_sitter import Node

from boards.errors import FileAccessError, UnsupportedError
from hls_templates.syntax.constants import template_values
from hls_templates.syntax.declarations import template_parameters, variables
from hls_templates.syntax.nodes import enclosing_loops, is_pragma, text_of, walk
from hls_templates.syntax.pragmas import read_pragma
from hls_templates.syntax.program import FunctionDefinition, parse
from hls_templates.syntax.scopes import arguments, callee_name
from hls_templates.syntax.unexpanded import chosen, synthesised
from hls_templates.syntax.values import ConstantFunction, constant_functions, constant_value
from systolic.execution.verilate import is_rtl

MAX_SOURCE_BYTES = 256 << 20
"""The size in bytes above which a file is refused. Weights that a design embeds may take some million."""
MAX_CODE_LENGTH = 8 << 20
"""The number of characters, without embedded weights, above which a file is refused."""


@dataclass(frozen=True)
class DeclaredLoop:
    """A loop of the C++ with SYSTOLIC_PIPELINE(II, depth), which declares its II and depth.

    Attributes:
        file: The file's name, without folders.
        line: The line of its ``for`` or ``while``, which is how the tool names it.
        directive: The line of SYSTOLIC_PIPELINE.
        ii, depth: None if they are not constants.
    """

    function: str
    file: str
    line: int
    directive: int
    ii: int | None
    depth: int | None

    @property
    def source(self) -> str:
        """ "FILE:LINE" of SYSTOLIC_PIPELINE."""
        return f"{self.file}:{self.directive}"


@dataclass(frozen=True)
class DeclaredStorage:
    """A memory of the C++ with a BIND_STORAGE directive, which declares its primitive.

    Attributes:
        line: The line of the directive.
        impl: The primitive as the directive names it, which can be a macro.
    """

    function: str
    file: str
    line: int
    variable: str
    impl: str


@dataclass(frozen=True)
class DesignFunction:
    """A function of a design's C++ with its parameters, calls, loops and memories.

    Attributes:
        line: The line of its opening brace.
        template: The names of its template parameters.
        parameters: The text between its brackets.
        arguments: Type and name of each parameter; the name is "" if the parameter has none.
        calls: The names of the functions that it calls.
        process: Its name in traces; "" if it is part of another process.
    """

    name: str
    file: str
    line: int
    template: tuple[str, ...]
    parameters: str
    arguments: tuple[tuple[str, str], ...]
    calls: frozenset[str]
    loops: tuple[DeclaredLoop, ...]
    storages: tuple[DeclaredStorage, ...]
    process: str


@dataclass(frozen=True)
class Sources:
    """The parsed C++ of a design: its functions, macros and texts.

    Attributes:
        macros: Name → (value, the comment after it).
        texts: File → its code as ``synthesised`` gives it.
    """

    functions: tuple[DesignFunction, ...]
    macros: Mapping[str, tuple[str, str]]
    texts: Mapping[str, str] = field(repr=False)

    def named(self, name: str) -> DesignFunction | None:
        """Return the process named ``name`` in the C++ or in traces, else the first function of that name, or None."""
        processes = [function for function in self.functions if function.process]
        ranks = (
            (function for function in processes if function.name == name),
            (function for function in processes if function.process == name),
            (function for function in self.functions if function.name == name),
        )
        return next((function for rank in ranks for function in rank), None)

    def reached(self, name: str) -> frozenset[str]:
        """Return ``name`` and the names of all functions that it calls, directly or through others."""
        callees: set[str] = set()
        waiting = [name] if name in self._calls else []
        while waiting:
            caller = waiting.pop()
            if caller not in callees:
                callees.add(caller)
                waiting += (self._calls[caller] & self._calls.keys()) - callees
        return frozenset(callees)

    @cached_property
    def _calls(self) -> dict[str, frozenset[str]]:
        """{function name: names of the functions that it calls}.

        It is cached, because ``reached`` is called for each of the thousands of loops of a report.
        """
        calls: dict[str, frozenset[str]] = {}
        for function in self.functions:
            calls[function.name] = calls.get(function.name, frozenset()) | function.calls
        return calls


@dataclass(frozen=True)
class Constants:
    """The constants and the constexpr functions of a design's C++.

    Attributes:
        expressions: The expressions of constants by name.
        functions: The functions by name.
    """

    expressions: Mapping[str, str]
    functions: Mapping[str, ConstantFunction]

    def inside(self, function: FunctionDefinition) -> Constants:
        """Return the constants inside a function. Its function and template parameters hide outer names."""
        hidden = {*template_values(function.body), *(parameter.name for parameter in function.params)}
        visible = {name: value for name, value in self.expressions.items() if name not in hidden}
        return replace(self, expressions={**visible, **dict(_constants(function.body))})

    def value(self, node: Node | None) -> int | None:
        """Return the integer value of an expression's node, or None if it is not a constant."""
        return constant_value(text_of(node), self.expressions, self.functions)


def read_sources(folder: Path) -> Sources:
    """Parse the C++ in ``src/`` of a design's folder.

    Raises:
        FileAccessError: The folder or a file cannot be read, or there is no C++.
        UnsupportedError: The engine is in SystemVerilog.
    """
    paths = [path for path in sorted((folder / "src").glob("*")) if path.suffix in (".h", ".cpp")]
    read = {path: _read(path) for path in paths}
    named = _unique((name, value) for text in read.values() for name, value, _ in _macros(text))
    read = {path: chosen(text, named) for path, text in read.items()}
    macros = [macro for text in read.values() for macro in _macros(text)]
    texts = {path.name: _code(path, text) for path, text in read.items()}
    if is_rtl(folder):
        raise UnsupportedError(
            f"comparing {folder} with the vendor's reports",
            "its engine is in SystemVerilog, and only reports about C++ are read",
            remedy="read vivado/utilization.rpt and vivado/timing.rpt, which build_vivado.tcl writes",
        )
    if not texts:
        remedy = "copy the whole generated folder"
        raise FileAccessError(str(folder / "src"), "holds no C++", "folder", remedy=remedy)
    programs = {name: parse(text.encode()) for name, text in texts.items()}
    values = [(name, value) for name, value, _ in macros]
    values += [pair for program in programs.values() for pair in _constants(program.root)]
    constant = constant_functions(function for program in programs.values() for function in program.all_functions)
    constants = Constants(_unique(values), constant)
    functions = tuple(
        _function(name, function, constants)
        for name, program in programs.items()
        for function in _outermost(program.all_functions)
    )
    return Sources(functions, {name: (value, comment) for name, value, comment in macros}, texts)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        reason, remedy = f"cannot be read: {error.strerror}", "copy the whole generated folder"
        raise FileAccessError(str(path), reason, "source", remedy=remedy) from error
    if len(data) > MAX_SOURCE_BYTES:
        reason = f"has more than {MAX_SOURCE_BYTES:,} bytes, which no generated source has"
        raise FileAccessError(str(path), reason, "source")
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _code(path: Path, text: str) -> str:
    code = synthesised(text)
    if len(code) > MAX_CODE_LENGTH:
        reason = f"has more than {MAX_CODE_LENGTH:,} characters of code, which no generated source has"
        raise FileAccessError(str(path), reason, "source")
    return code


_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)[ \t]+([^\n/]*?)[ \t]*(?://[ \t]*([^\n]*))?$", re.MULTILINE
)


def _macros(text: str) -> list[tuple[str, str, str]]:
    """Return name, value and comment of each macro that a text defines."""
    return [(name, value.strip(), comment.strip()) for name, value, comment in _MACRO.findall(text)]


def _constants(node: Node) -> Iterator[tuple[str, str]]:
    """Yield (name, expression) of each C++ constant that is defined in ``node`` of the syntax tree."""
    for inner in walk(node):
        if inner.type in ("declaration", "field_declaration"):
            for variable in variables(inner):
                if variable.const and variable.value is not None and variable.value.type != "initializer_list":
                    yield variable.name, " ".join(text_of(variable.value).split())


def _unique(values: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return {name: expression} of constants; a name with several different expressions is left out."""
    expressions: dict[str, set[str]] = {}
    for name, expression in values:
        expressions.setdefault(name, set()).add(expression)
    return {name: next(iter(several)) for name, several in expressions.items() if len(several) == 1}


def _outermost(functions: Iterable[FunctionDefinition]) -> Iterator[FunctionDefinition]:
    """Yield the functions in the order of the text, without methods of classes that are inside a function."""
    end = 0
    for function in sorted(functions, key=lambda function: function.node.start_byte):
        if function.node.start_byte >= end:
            end = function.node.end_byte
            yield function


def _function(file: str, function: FunctionDefinition, constants: Constants) -> DesignFunction:
    name = function.name
    constants = constants.inside(function)
    calls, storages, loops, process = set[str](), list[DeclaredStorage](), list[DeclaredLoop](), ""
    for node in walk(function.body):
        if node.type == "call_expression":
            callee = callee_name(node)
            calls.add(callee)
            if callee == "SYSTOLIC_PIPELINE":
                loops += _loop(name, file, node, constants)
            elif callee == "SYSTOLIC_PROCESS":
                process = process or text_of(next(iter(arguments(node)), None)).strip('"')
        elif is_pragma(node):
            storages += _storage(name, file, node)
    return DesignFunction(
        name=name,
        file=file,
        line=_line(function.body),
        template=_template(function.node),
        parameters=" ".join(function.parameter_text.split()),
        arguments=tuple((variable.type, variable.name) for variable in function.params),
        calls=frozenset(calls),
        loops=tuple(loops),
        storages=tuple(storages),
        process=process,
    )


def _template(definition: Node) -> tuple[str, ...]:
    """Return the names of the function's template parameters, without the ones of its class."""
    is_template = definition.parent is not None and definition.parent.type == "template_declaration"
    return template_parameters(definition) if is_template else ()


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _loop(function: str, file: str, directive: Node, constants: Constants) -> Iterator[DeclaredLoop]:
    """Yield the loop that the SYSTOLIC_PIPELINE directive is in, unless it has no iterations."""
    loop = next(enclosing_loops(directive), None)
    if loop is None or _is_empty(loop, constants):
        return
    rates = [constants.value(argument) for argument in arguments(directive)]
    ii, depth = rates if len(rates) == 2 else (None, None)
    yield DeclaredLoop(function, file, _line(loop), _line(directive), ii, depth)


def _is_empty(loop: Node, constants: Constants) -> bool:
    """Return whether the loop's condition is ``… < 0``, with a number or a constant."""
    condition = loop.child_by_field_name("condition")
    if condition is None or text_of(condition.child_by_field_name("operator")) != "<":
        return False
    return constants.value(condition.child_by_field_name("right")) == 0


def _storage(function: str, file: str, directive: Node) -> Iterator[DeclaredStorage]:
    pragma = read_pragma(directive)
    variable, impl = pragma.get("variable"), pragma.get("impl")
    if pragma.name == "BIND_STORAGE" and variable and impl:
        yield DeclaredStorage(function, file, _line(directive), variable, impl)
