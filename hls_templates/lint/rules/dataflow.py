"""Group 4: DATAFLOW regions are canonical, and each channel has one writer and one reader."""

from __future__ import annotations

from hls_templates.lint.rules.rule import Rule

_CANONICAL = "UG1399, Canonical Body"
_LIMITS = "UG1399, Limitations of Control-Driven Task-Level Parallelism"

_COPY = "static void copy(hls::stream<int> &in, hls::stream<int> &out) { out.write(in.read()); }\n"
_FETCH = "static void fetch(const int *data, hls::stream<int> &out) { out.write(data[0]); }\n"
_STORE = "static void store(hls::stream<int> &in, int *data) { data[0] = in.read(); }\n"
_STREAMS = "hls::stream<int> &source, hls::stream<int> &sink"


def _region(processes: str, parameters: str, *statements: str) -> str:
    """Return the C++ text of an example: the processes, and a top function that is a DATAFLOW region with the given
    statements."""
    lines = "".join(f"    {statement}\n" for statement in statements)
    return f"{processes}void top({parameters}) {{\n#pragma HLS DATAFLOW\n{lines}}}\n"


RULES = (
    Rule(
        "4.1",
        "dataflow-statement",
        "a statement of a region that is neither a declaration nor a call; each branch of `if constexpr` is checked",
        "a DATAFLOW region may have only declarations and calls, but this one has {actual}; move it into a process",
        _CANONICAL,
        _region(_COPY, f"{_STREAMS}, int count", "if (count > 0) copy(source, sink);"),
    ),
    Rule(
        "4.2",
        "dataflow-static",
        "a static variable in a region",
        "a variable of a DATAFLOW region must not be static, but {actual} is; make it local",
        _CANONICAL,
        _region(
            _COPY, _STREAMS, "static int frames;  // lint: allow(static-local) shows rule 4.2", "copy(source, sink);"
        ),
    ),
    Rule(
        "4.3",
        "dataflow-argument",
        "a computed argument or an element of an array",
        "a process takes whole variables, but {process} takes «{actual}»; compute it inside the process",
        _CANONICAL,
        _region(_FETCH, "const int *data, hls::stream<int> &sink", "fetch(&data[4], sink);"),
    ),
    Rule(
        "4.4",
        "dataflow-return",
        "a process that returns a value",
        "a process must return void, but {process} returns {actual}; return through a reference",
        _CANONICAL,
        _region(
            "static int take(hls::stream<int> &in) { return in.read(); }\n", "hls::stream<int> &source", "take(source);"
        ),
    ),
    Rule(
        "4.5",
        "dataflow-unknown",
        "a process whose definition is not among the sources, so that its channels cannot be checked",
        "the channels of a process are checked in its definition, but {process} with {count} arguments has none here;"
        " lint its file too",
        _CANONICAL,
        _region(f"void watch({_STREAMS});\n", _STREAMS, "watch(source, sink);"),
    ),
    Rule(
        "4.6",
        "dataflow-loop",
        "a DATAFLOW loop that is not a lone `for` with a constant start and a plain bound",
        "a DATAFLOW loop must {required}, but {actual}; rewrite the loop",
        "UG1399, Canonical Body",
        f"{_COPY}void top({_STREAMS}, int count) {{\n    for (int i = count; i < 9; ++i) {{\n"
        "#pragma HLS LOOP_TRIPCOUNT max=9\n#pragma HLS DATAFLOW\n        copy(source, sink);\n    }\n}\n",
    ),
    Rule(
        "4.7",
        "channel-writers",
        "a local stream or array without exactly one writer",
        "channel {channel} must have exactly one writer, but {actual} write it; {hint}",
        _CANONICAL,
        _region(_COPY, "hls::stream<int> &sink", "hls::stream<int> middle;", "copy(middle, sink);"),
    ),
    Rule(
        "4.8",
        "channel-readers",
        "a local stream or array without exactly one reader",
        "channel {channel} must have exactly one reader, but {actual} read it; {hint}",
        _CANONICAL,
        _region(_COPY, "hls::stream<int> &source", "hls::stream<int> middle;", "copy(source, middle);"),
    ),
    Rule(
        "4.9",
        "channel-same-process",
        "a process that reads and writes one channel",
        "a process may read or write channel {channel}, but {actual} does both; keep the data inside it",
        _LIMITS,
        _region(
            "static void spin(hls::stream<int> &ring) { ring.write(ring.read()); }\n",
            "",
            "hls::stream<int> ring;",
            "spin(ring);",
        ),
    ),
    Rule(
        "4.10",
        "channel-feedback",
        "a reader called before its writer",
        "channel {channel} must be written before it is read, but {reader} reads it before {writer} writes it;"
        " swap the calls",
        _CANONICAL,
        _region(
            _COPY + _FETCH,
            "const int *data, hls::stream<int> &sink",
            "hls::stream<int> middle;",
            "copy(middle, sink);",
            "fetch(data, middle);",
        ),
    ),
    Rule(
        "4.11",
        "argument-processes",
        "a pointer or port read, or written, by two processes; a stream argument in two",
        "argument {channel} may be {required} process, but {actual} do so; fuse them or pass a second argument",
        _LIMITS,
        _region(
            _FETCH,
            "const int *data, hls::stream<int> &left, hls::stream<int> &right",
            "fetch(data, left);",
            "fetch(data, right);",
        ),
    ),
    Rule(
        "4.12",
        "argument-order",
        "an argument written by an earlier process than the one that reads it",
        "argument {channel} must be read before it is written, but {writer} writes it before {reader} reads it;"
        " pass two arguments",
        _CANONICAL,
        _region(_STORE + _FETCH, f"{_STREAMS}, int *data", "store(source, data);", "fetch(data, sink);"),
    ),
    Rule(
        "4.13",
        "shared-variable",
        "a scalar written by two processes",
        "a variable may be written by one process, but {actual} write {channel}; give each its own",
        _CANONICAL,
        _region("static void add(int &sum) { ++sum; }\n", "int count", "add(count);", "add(count);"),
    ),
    Rule(
        "4.14",
        "shared-global",
        "a global variable used by two processes",
        "a global variable may be used by one process, but {actual} use {channel}; pass its value through a stream",
        _LIMITS,
        _region(
            "static int total;\n"
            "static void add(hls::stream<int> &in) { total += in.read(); }\n"
            "static void report(hls::stream<int> &out) { out.write(total); }\n",
            _STREAMS,
            "add(source);",
            "report(sink);",
        ),
    ),
    Rule(
        "4.15",
        "dataflow-call-sites",
        "two calls of a DATAFLOW function that keeps state between calls",
        "a DATAFLOW function that keeps state must be called in one place, but {actual}, which keeps {state}, is also"
        " called at {first}; select its arguments first and call it once",
        "UG1399, pragma HLS allocation: a function that is called twice may be built twice, each with its own memory",
        "static void copy(hls::stream<int> &in, hls::stream<int> &out) {\n"
        "    static int words;  // lint: allow(static-local) shows rule 4.15\n"
        "    words += 1;\n    out.write(in.read() + words);\n}\n\n"
        f"static void run({_STREAMS}) {{\n#pragma HLS DATAFLOW\n    copy(source, sink);\n}}\n\n"
        f"void top({_STREAMS}, int count) {{\n    if (count > 1) run(source, sink);\n    else run(source, sink);\n}}\n",
    ),
    Rule(
        "4.16",
        "stable-struct",
        "a struct that a region passes to its processes by value, without STABLE",
        "a struct by value in a DATAFLOW region must be STABLE, but {actual} of {type}, which {process} takes, is not."
        " Each of its members would become a FIFO to each process; add «STABLE variable={actual}»",
        "UG1399, pragma HLS stable: scalars that do not change while the region runs need no synchronisation",
        "struct pass_t {\n    int rows, columns;\n};\n"
        "static void copy(pass_t pass, hls::stream<int> &in, hls::stream<int> &out) {\n"
        "    out.write(in.read() + pass.rows);\n}\n"
        + _region("", f"pass_t pass, {_STREAMS}", "copy(pass, source, sink);"),
    ),
)
