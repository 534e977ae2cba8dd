"""Each rule finds the fault that is planted into a clean design; the clean design is clean."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_cpp", reason="the linter needs tree-sitter and tree-sitter-cpp")

from boards.errors import GenerateError
from hls_templates.lint import RULES, Finding, Rule, lint
from hls_templates.lint.__main__ import main
from hls_templates.lint.documented.directives import DIRECTIVES

ROOT = Path(__file__).parents[2]

TYPES = """#ifndef TYPES_H
#define TYPES_H
#include <ap_int.h>
#include <hls_stream.h>
typedef ap_int<8> value_t;
struct word_t {
    value_t lane[4];
};
struct links_t {
    hls::stream<word_t> left, right;
};
constexpr int LANES = 4;
static const int DEPTH = 2 * LANES;
#endif
"""

DESIGN = """#include "instrument.h"
#include "types.h"

template <int N>
static void scale(const word_t &in, word_t &out) {
#pragma HLS INLINE
    for (int l = 0; l < N; ++l) {
#pragma HLS UNROLL
        out.lane[l] = in.lane[l] * 3;
    }
}

static void load(const word_t *maps, int words, hls::stream<word_t> &to) {
    SYSTOLIC_PROCESS("load");
    SYSTOLIC_ENTER;
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        to.write(SYSTOLIC_LOAD(0, maps, i));
    }
}

static void compute(hls::stream<word_t> &from, int words, links_t &links) {
    word_t kept[DEPTH];
#pragma HLS ARRAY_PARTITION variable=kept cyclic factor=2 dim=1
#pragma HLS BIND_STORAGE variable=kept type=ram_s2p impl=lutram
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 5);
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
#pragma HLS DEPENDENCE variable=kept inter false
        word_t in = from.read(), out;
        scale<LANES>(in, out);
        kept[i % DEPTH] = out;
        links.left << out;
        links.right << in;
    }
}

static void save(links_t &links, int words, word_t *maps) {
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 2);
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        word_t left, right;
        links.left >> left;
        links.right.read(right);
        SYSTOLIC_STORE(0, maps, i, i % 2 ? left : right);
    }
}

static void run(const word_t *source, word_t *sink, int words) {
    SYSTOLIC_DATAFLOW(0);
    hls::stream<word_t> rows("rows");
    links_t links;
    SYSTOLIC_STREAM(rows, 16);
    load(source, words, rows);
    compute(rows, words, links);
    save(links, words, sink);
}

extern "C" void accelerate(const word_t *source, word_t *sink, int words) {
#pragma HLS INTERFACE mode=m_axi port=source bundle=maps_0 offset=slave depth=4096 max_read_burst_length=64
#pragma HLS INTERFACE m_axi port=sink bundle=maps_1 offset=slave depth=4096 num_write_outstanding=16
#pragma HLS INTERFACE mode=s_axilite port=words
#pragma HLS INTERFACE mode=s_axilite port=return
    run(source, sink, words);
}
"""


def faults(old: str = "", new: str = "", top: str = "accelerate") -> tuple[Finding, ...]:
    assert DESIGN.count(old) or not old, "the text to replace is not in the design"
    return lint({"top.cpp": DESIGN.replace(old, new, 1), "types.h": TYPES}, top)


@dataclass(frozen=True)
class Plant:
    """Replacing ``old`` by ``new`` in the clean design breaks ``rule``; ``says`` is in its sentence."""

    rule: str
    old: str
    new: str
    says: str


PIPE = "        SYSTOLIC_PIPELINE(1, 3);\n"
BODY = "        scale<LANES>(in, out);\n"
REGION = "    load(source, words, rows);\n"
TRIP = "#pragma HLS LOOP_TRIPCOUNT min=1 max=4096\n        to"
KEPT = "    word_t kept[DEPTH];\n"
LAST = "    run(source, sink, words);\n"
PROCESSES = """    load(source, words, rows);
    compute(rows, words, links);
    save(links, words, sink);
"""


def region(processes: str, before: str = "") -> tuple[str, str]:
    return PROCESSES, before + processes


PLANTS = (
    Plant("not-parsed", LAST, "    run(source, , sink;\n", "must be C++ that the linter can read"),
    # 1
    Plant("unknown-directive", "HLS UNROLL", "HLS UNROL", "documents, not UNROL; correct its name"),
    Plant("unknown-directive", "HLS INLINE", "HLS DATA_PACK variable=in", "not DATA_PACK; use AGGREGATE"),
    Plant("unknown-directive", "HLS UNROLL", "HLS if (N > 2) UNROLL", "newer than 2024.2"),
    Plant(
        "unknown-option",
        "HLS UNROLL",
        "HLS UNROLL region",
        "UNROLL takes factor, skip_exit_check, off, not «region»",
    ),
    Plant(
        "unknown-option",
        "port=words",
        "port=words max_read_burst_length=4",
        "INTERFACE s_axilite takes mode, port",
    ),
    Plant("missing-option", " factor=2", "", "ARRAY_PARTITION type=cyclic needs factor"),
    Plant(
        "missing-option",
        "BIND_STORAGE variable=kept type=ram_s2p",
        "BIND_STORAGE variable=kept",
        "needs type=",
    ),
    Plant("repeated-option", "dim=1", "dim=1 dim=2", "ARRAY_PARTITION takes dim once"),
    Plant(
        "bad-value",
        "SYSTOLIC_PIPELINE(1, 3)",
        "SYSTOLIC_PIPELINE(0, 3)",
        "PIPELINE ii must be a constant of 1…, not «0»",
    ),
    Plant("bad-value", "impl=lutram", "impl=flash", "BIND_STORAGE impl must be auto|bram"),
    Plant("bad-value", "burst_length=64", "burst_length=512", "must be a constant of 1…256, not «512»"),
    Plant(
        "bad-value",
        "SYSTOLIC_STREAM(rows, 16)",
        "SYSTOLIC_STREAM(rows, words)",
        "STREAM depth must be a constant",
    ),
    Plant("bad-value", "min=1 max=4096", "min=9 max=4", "min must be at most max=4, not «9»"),
    Plant(
        "bad-storage",
        "ram_s2p impl=lutram",
        "ram_t2p impl=lutram",
        "type=ram_t2p can be impl=auto|bram|uram, not lutram",
    ),
    Plant("bad-storage", "ram_s2p impl=lutram", "rom_1p impl=uram", "type=rom_1p can be impl=auto|bram|lutram"),
    # 2
    Plant(
        "directive-scope",
        "#pragma HLS INLINE\n",
        "#pragma HLS UNROLL\n",
        "UNROLL must stand in a loop's braces",
    ),
    Plant(
        "directive-scope",
        "        to.write",
        "        if (i)\n        {\n#pragma HLS INLINE\n        }\n        to.write",
        "INLINE must stand in a function's body, but it stands in a conditional's braces",
    ),
    Plant(
        "directive-scope",
        KEPT,
        KEPT + "    for (int i = 0; i < 4; ++i)\n#pragma HLS UNROLL\n        kept[i] = word_t();\n",
        "front of a loop's braces",
    ),
    Plant(
        "directive-scope",
        "static void load",
        "#pragma HLS INLINE\nstatic void load",
        "but it stands in no function",
    ),
    Plant(
        "directive-late",
        f"{PIPE}{TRIP}.write(SYSTOLIC_LOAD(0, maps, i));\n",
        "        to.write(maps[i]);\n        SYSTOLIC_PIPELINE(1, 3);\n#pragma HLS LOOP_TRIPCOUNT min=1 max=4\n",
        "PIPELINE must come before the first statement",
    ),
    Plant(
        "interface-not-top",
        '    SYSTOLIC_PROCESS("load");\n',
        "#pragma HLS INTERFACE mode=ap_none port=words\n",
        "INTERFACE belongs only to the top function accelerate, but it stands in load",
    ),
    Plant(
        "directive-conflict",
        "    SYSTOLIC_DATAFLOW(0);\n",
        "#pragma HLS PIPELINE\n    SYSTOLIC_DATAFLOW(0);\n",
        "DATAFLOW and PIPELINE exclude each other",
    ),
    # 3
    Plant(
        "undeclared-variable",
        "variable=kept cyclic",
        "variable=keep cyclic",
        "a variable of compute, but «keep» is none",
    ),
    Plant("undeclared-variable", "port=words", "port=count", "a port of accelerate, but «count» is none"),
    Plant(
        "undeclared-variable",
        f"{KEPT}#pragma HLS ARRAY_PARTITION variable=kept cyclic factor=2 dim=1\n",
        f"#pragma HLS ARRAY_PARTITION variable=kept cyclic factor=2 dim=1\n{KEPT}",
        "declare it before",
    ),
    Plant(
        "undeclared-variable",
        "#pragma HLS INLINE",
        "#pragma HLS FUNCTION_INSTANTIATE variable=l",
        "a argument of scale",
    ),
    Plant(
        "stream-top-argument",
        "port=words\n",
        "port=words\n#pragma HLS STREAM variable=sink depth=2\n",
        "sink is an argument of the top function",
    ),
    # 4
    Plant(
        "dataflow-statement",
        *region("    if (words > 0) load(source, words, rows);\n" + PROCESSES.split("\n", 1)[1]),
        "but a condition stands in it",
    ),
    Plant(
        "dataflow-statement",
        *region(PROCESSES, "    if (words == 0) return;\n"),
        "but a condition stands in it",
    ),
    Plant(
        "dataflow-statement",
        *region(PROCESSES, "    words = words + 1;\n"),
        "but «words = words + 1;» stands in it",
    ),
    Plant(
        "dataflow-static",
        *region(PROCESSES, "    static int frames; // lint: allow(static-local) counted\n"),
        "must not be static, but frames is",
    ),
    Plant(
        "dataflow-argument",
        "load(source, words, rows)",
        "load(source, words + 1, rows)",
        "load takes «words + 1»",
    ),
    Plant(
        "dataflow-argument",
        "load(source, words, rows)",
        "load(&source[4], words, rows)",
        "load takes «&source[4]»",
    ),
    Plant("dataflow-return", "static void load(", "static int load(", "load returns int"),
    Plant("dataflow-unknown", REGION, REGION + "    watch(words);\n", "watch with 1 arguments has none here"),
    Plant(
        "dataflow-loop",
        "    SYSTOLIC_DATAFLOW(0);\n",
        "    int frame = 0;\n    while (frame < words) {\n"
        "#pragma HLS LOOP_TRIPCOUNT max=4\n    SYSTOLIC_DATAFLOW(0);\n",
        "be a for loop",
    ),
    Plant(
        "channel-writers",
        *region("    compute(rows, words, links);\n    save(links, words, sink);\n"),
        "channel rows must have exactly one writer, but none write it",
    ),
    Plant(
        "channel-writers",
        *region("    load(source, words, rows);\n" + PROCESSES),
        "but load and load write it",
    ),
    Plant(
        "channel-readers",
        *region("    load(source, words, rows);\n    save(links, words, sink);\n"),
        "channel rows must have exactly one reader, but none read it",
    ),
    Plant(
        "channel-readers",
        *region(PROCESSES + "    hls::stream<word_t> spare;\n    load(sink, words, spare);\n"),
        "channel spare must have exactly one reader",
    ),
    Plant("channel-same-process", "links.right << in", "links.right << links.left.read()", "compute does both"),
    Plant(
        "channel-feedback",
        *region("    compute(rows, words, links);\n    load(source, words, rows);\n    save(links, words, sink);\n"),
        "but compute reads it before load writes it",
    ),
    Plant(
        "argument-processes",
        REGION,
        REGION + "    hls::stream<word_t> spare;\n    load(source, words, spare);\n",
        "argument source may be read by one process, but load and load do so",
    ),
    Plant(
        "argument-order",
        *region("    save(links, words, sink);\n    load(sink, words, rows);\n"),
        "argument sink must be read before it is written, but save writes it before load reads it",
    ),
    Plant(
        "shared-variable",
        REGION,
        REGION + "    count(words);\n    count(words);\n",
        "count and count write words",
    ),
    Plant("shared-global", '    SYSTOLIC_PROCESS("load");\n', "    total += words;\n", "load and save use total"),
    # 5
    Plant("dynamic-memory", LAST, LAST + "    int *p = new int;\n", "but new allocates"),
    Plant("dynamic-memory", LAST, LAST + "    free(sink);\n", "but free allocates or frees"),
    Plant("standard-library", LAST, LAST + "    std::vector<int> v;\n", "std::vector is a host type"),
    Plant(
        "system-call",
        LAST,
        LAST + '    printf("done");\n',
        "printf calls one; guard it by #ifndef __SYNTHESIS__",
    ),
    Plant("system-call", LAST, LAST + "    std::cout << words;\n", "std::cout calls one"),
    Plant("exception", LAST, LAST + "    throw 1;\n", "throw came; return a status"),
    Plant(
        "virtual",
        "static void load",
        "struct base_t { virtual void run(); };\nstatic void load",
        "is virtual",
    ),
    Plant("run-time-type", LAST, LAST + "    dynamic_cast<word_t *>(sink);\n", "dynamic_cast asks at run time"),
    Plant("recursion", LAST, LAST + "    accelerate(source, sink, words);\n", "accelerate calls itself"),
    Plant("recursion", '    SYSTOLIC_PROCESS("load");\n', "    again(words);\n", "again reaches itself"),
    Plant("function-pointer", LAST, LAST + "    void (*chosen)(int);\n", "is a pointer to a function"),
    Plant("pointer-to-pointer", LAST, LAST + "    word_t **rows;\n", "«**rows» is a pointer to a pointer"),
    Plant("goto", LAST, LAST + "    goto end;\nend:;\n", "goto came"),
    Plant("endless-loop", LAST, LAST + "    while (true) {\n    }\n", "«while (true) {» has no end condition"),
    Plant("endless-loop", LAST, LAST + "    for (;;) {\n    }\n", "has no end condition"),
    Plant("unbounded-loop", TRIP, "        to", "«for (int i = 0; i < words; ++i) {» has none; add min and max"),
    Plant(
        "unbounded-loop",
        LAST,
        LAST + "    while (words > 3) {\n        --words;\n    }\n",
        "needs LOOP_TRIPCOUNT",
    ),
    Plant("static-local", KEPT, KEPT + "    static int seen;\n", "seen is static without a note"),
    Plant("floating-point", LAST, LAST + "    double gain = 1;\n", "double is floating point"),
    Plant("floating-point", LAST, LAST + "    words = words * 1.5;\n", "1.5 is floating point"),
    # 6
    Plant(
        "pipeline-inner-loop",
        BODY,
        BODY + "        for (int j = 0; j < words; ++j) {\n"
        "#pragma HLS LOOP_TRIPCOUNT max=4\n            out.lane[j] = 0;\n        }\n",
        "«for (int j = 0; j < words; ++j) {» has not (pipeline at top.cpp:28)",
    ),
    Plant(
        "pipeline-inner-loop",
        BODY,
        BODY + "        clear(out, words);\n",
        "«for (int j = 0; j < n; ++j) {» has not",
    ),
    Plant(
        "pipeline-nested",
        BODY,
        BODY + "        for (int j = 0; j < 4; ++j) {\n#pragma HLS PIPELINE\n            out.lane[j] = 0;\n        }\n",
        "asks for a pipeline of its own",
    ),
    # 7
    Plant(
        "reserved-name",
        "word_t *sink, int words) {\n#pragma HLS INTERFACE mode=m_axi",
        "word_t *sink, int words, int *Register) {\n#pragma HLS INTERFACE mode=m_axi",
        "the name of an argument of the top function reaches the hardware and must not be a reserved word, but Register"
        " is one of VHDL;",
    ),
)

HELPERS = """
static void watch_nothing();
static void count(int &number) { ++number; }
static void clear(word_t &out, int n) {
    for (int j = 0; j < n; ++j) {
#pragma HLS LOOP_TRIPCOUNT max=4
        out.lane[j] = 0;
    }
}
static void again(int n);
static void once(int n) { if (n) again(n); }
static void again(int n) { once(n); }
static int total;
"""


def planted(plant: Plant) -> tuple[Finding, ...]:
    assert DESIGN.count(plant.old), f"not in the design: {plant.old!r}"
    text = DESIGN.replace(plant.old, plant.new, 1)
    if plant.rule == "dataflow-loop":
        text = text.replace("    save(links, words, sink);\n}", "    save(links, words, sink);\n    }\n}")
    if plant.rule == "shared-global":
        text = text.replace("        word_t left, right;\n", "        word_t left, right;\n        total += i;\n")
    needed = [part for part in HELPERS.split("\nstatic ") if _uses(plant, part)]
    helpers = "".join(f"static {part}\n" for part in needed)
    return lint(
        {"top.cpp": text.replace("template <int N>", f"{helpers}template <int N>", 1), "types.h": TYPES},
        "accelerate",
    )


def _uses(plant: Plant, helper: str) -> bool:
    name = helper.split("(")[0].split(";")[0].split()[-1] if helper.split() else ""
    return bool(name) and (
        f"{name}(" in plant.new
        or (name == "total" and "total" in plant.new)
        or (name == "once" and "again" in plant.new)
    )


def test_a_clean_design_has_no_findings() -> None:
    assert faults() == ()


@pytest.mark.parametrize("plant", PLANTS, ids=lambda p: f"{p.rule}: {p.says[:30]}")
def test_a_planted_fault_is_found(plant: Plant) -> None:
    found = planted(plant)
    assert [f for f in found if f.rule == plant.rule and plant.says in f.sentence], [str(f) for f in found]


def test_every_rule_has_a_planted_fault_and_a_source() -> None:
    assert {plant.rule for plant in PLANTS} == set(RULES)
    assert all(rule.source for rule in RULES.values())


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_the_example_of_a_rule_breaks_it(rule: Rule) -> None:
    findings = lint({"example.cpp": rule.example}, "top")
    assert rule.name in {finding.rule for finding in findings}, rule.example


def test_rules_are_numbered_by_group_and_place() -> None:
    numbers = [tuple(int(part) for part in rule.number.split(".")) for rule in RULES.values()]
    for (group, place), (later_group, later_place) in pairwise(numbers):
        assert (later_group, later_place) in ((group, place + 1), (group + 1, 1))


def test_a_fault_is_found_at_its_own_line_behind_macros_and_includes() -> None:
    (found,) = faults("SYSTOLIC_PIPELINE(1, 5)", "SYSTOLIC_PIPELINE(-1, 5)")
    line = DESIGN.splitlines().index("        SYSTOLIC_PIPELINE(1, 5);") + 1
    assert (found.file, found.line, found.rule) == ("top.cpp", line, "bad-value")


def test_a_fault_in_a_header_is_found_once_in_the_header() -> None:
    header = TYPES.replace("value_t lane[4];", "float lane[4];")
    (found,) = lint({"a.cpp": DESIGN, "b.cpp": '#include "types.h"\n', "types.h": header}, "accelerate")
    assert (found.file, found.line, found.rule) == ("types.h", 7, "floating-point")


def test_a_note_with_a_reason_silences_its_rule_only() -> None:
    line = "    static int seen;"
    note = "// lint: allow(static-local) the row survives from pass to pass"
    assert faults(KEPT, f"{KEPT}{line}  {note}\n") == ()
    assert faults(KEPT, f"{KEPT}    {note}\n{line}\n") == ()
    assert [f.rule for f in faults(KEPT, f"{KEPT}{line}  // lint: allow(static-local)\n")] == ["static-local"]
    assert [f.rule for f in faults(KEPT, f"{KEPT}{line}  // lint: allow(goto) other\n")] == ["static-local"]


@pytest.mark.parametrize(
    "text",
    [
        "for (int i = 0; i < LANES * 2 - 1; i += 2) {\n    }",
        "for (int i = LANES - 1; i >= 0; --i) {\n    }",
        "do {\n    } while (0);",
        "const int most = DEPTH / 2;\n    for (int i = 0; i < most; ++i) {\n    }",
        "for (int i = 0; i < LANES; ++i) {\n#pragma HLS UNROLL\n"
        "        for (int j = 0; j < i; ++j) {\n        }\n    }",
        "for (int i = 0; i < 9; ++i) {\n#pragma HLS PIPELINE II=DEPTH\n"
        "        for (int j = 0; j < LANES; ++j)\n"
        "            for (int k = j; k < LANES; ++k) words += k;\n    }",
    ],
)
def test_loops_with_constant_bounds_are_clean(text: str) -> None:
    assert faults(LAST, f"{LAST}    {text}\n") == ()


@pytest.mark.parametrize(
    "text",
    [
        "INTERFACE mode=ap_ctrl_chain port=return",
        "PIPELINE off",
        "ALLOCATION operation instances=mul limit=2",
        "ALLOCATION function instances=run limit=1",
        "LATENCY min=1 max=4",
        "STABLE variable=words",
        "EXPRESSION_BALANCE off",
        "CACHE port=source lines=8 depth=128",
        "ALIAS ports=source,sink distance=1024",
        "PERFORMANCE target_ti=3000 unit=cycle",
    ],
)
def test_documented_directives_are_clean_in_a_function(text: str) -> None:
    assert faults("port=return\n", f"port=return\n#pragma HLS {text}\n") == ()


@pytest.mark.parametrize(
    "text",
    ["II=2 style=flp", "II=DEPTH", "II=sizeof(word_t)/4", "ii=2*LANES rewind", "rewind=true", "off=false"],
)
def test_documented_pipelines_are_clean_in_a_loop(text: str) -> None:
    assert faults("        SYSTOLIC_PIPELINE(1, 2);\n", f"#pragma HLS PIPELINE {text}\n") == ()


def test_every_directive_has_a_scope_and_only_known_needs() -> None:
    for name, directive in DIRECTIVES.items():
        assert directive.scopes <= {"function", "loop", "region", "conditional"}, name
        assert set(directive.needs) <= set(directive.options), name
        assert all(set(options) <= set(directive.options) for options in directive.modes.values()), name


MEMBERS = """#include <hls_stream.h>
struct filter_t {
    int window[4];
    void run(hls::stream<int> &source, hls::stream<int> &sink) {
#pragma HLS ARRAY_PARTITION variable=this->window complete
#pragma HLS ARRAY_PARTITION variable=window complete
        window[0] = source.read();
        sink.write(window[0]);
    }
};
void top(hls::stream<int> &source, hls::stream<int> &sink) {
#pragma HLS DATAFLOW
    hls::stream<int> pair[2];
    filter_t first, second, third;
    first.run(source, pair[0]);
    second.run(pair[0], pair[1]);
    third.run(pair[1], sink);
}
"""


def test_members_methods_and_arrays_of_streams_are_followed() -> None:
    assert lint({"top.cpp": MEMBERS}, "top") == ()
    (found,) = lint({"top.cpp": MEMBERS.replace("second.run(pair[0]", "second.run(source")}, "top")[:1]
    assert found.rule in ("argument-processes", "channel-readers")
    rules = {f.rule for f in lint({"top.cpp": MEMBERS.replace("third.run(pair[1]", "third.run(pair[0]")}, "top")}
    assert rules == {"channel-readers"}
    (found,) = lint({"top.cpp": MEMBERS.replace("this->window", "this->windows")}, "top")
    assert found.rule == "undeclared-variable"


BRANCHES = """#include <hls_stream.h>
template <int DEEP> void top(hls::stream<int> &source, hls::stream<int> &sink);
static void copy(hls::stream<int> &source, hls::stream<int> &sink) { sink.write(source.read()); }
template <int DEEP> void top(hls::stream<int> &source, hls::stream<int> &sink) {
#pragma HLS DATAFLOW
    hls::stream<int> link;
    copy(source, link);
    if constexpr (DEEP > 1) {
        copy(link, sink);
    } else {
        copy(link, sink);
    }
}
"""


def test_the_branches_of_a_compile_time_condition_are_alternatives() -> None:
    assert lint({"top.cpp": BRANCHES}, "top") == ()
    (found,) = lint({"top.cpp": BRANCHES.replace("} else {\n        copy(link, sink);", "} else {")}, "top")
    assert found.rule == "channel-readers"
    assert "dataflow-statement" in {f.rule for f in lint({"top.cpp": BRANCHES.replace(" constexpr", "")}, "top")}


FRAMES = """#include <hls_stream.h>
static void copy(const int *source, int *sink) { sink[0] = source[0]; }
void top(const int *source, int *sink, int frames) {
    for (int f = 0; f < frames; ++f) {
#pragma HLS LOOP_TRIPCOUNT max=4
#pragma HLS DATAFLOW
        int kept[4];
        copy(source, kept);
        copy(kept, sink);
    }
}
"""


def test_a_dataflow_loop_stands_alone_with_a_plain_header() -> None:
    assert lint({"top.cpp": FRAMES}, "top") == ()
    beside = FRAMES.replace("    for", "    sink[1] = 2;\n    for")
    assert [f.rule for f in lint({"top.cpp": beside}, "top")] == ["dataflow-loop"]
    (found,) = lint({"top.cpp": FRAMES.replace("f = 0", "f = frames")}, "top")
    assert "declare its counter in the header with a constant start" in found.sentence


STREAMS = """#include <hls_stream.h>
struct links_t {
    hls::stream<int> left, right;
};
static void split(hls::stream<int> &source, links_t &links) {
    hls::stream<int> &left = links.left;
    left.write(source.read());
    links.right.write(source.read());
}
static void take_left(links_t &links, hls::stream<int> &sink) { sink.write(links.left.read()); }
static void join(hls::stream<int> &left, links_t &links, int *sink) {
    sink[0] = left.read() + links.right.read();
}
void top(hls::stream<int> &source, int *sink) {
    links_t links;
    hls::stream<int> rest;
    assert(sink != 0);
#pragma HLS DATAFLOW
    split(source, links);
    take_left(links, rest);
    join(rest, links, sink);
}
"""


def test_each_stream_of_a_struct_is_a_channel_of_its_own() -> None:
    assert lint({"top.cpp": STREAMS}, "top") == ()
    twice = STREAMS.replace("left.read() + links.right", "left.read() + links.left")
    assert [f.sentence.split("; ")[0] for f in lint({"top.cpp": twice}, "top")] == [
        "channel links.right must have exactly one reader, but none read it",
        "channel links.left must have exactly one reader, but take_left and join read it",
    ]
    (found,) = lint({"top.cpp": STREAMS.replace("    left.write(source.read());\n", "")}, "top")
    assert found.sentence.startswith("channel links.left must have exactly one writer, but none write it")


BURSTS = """#include <hls_burst_maxi.h>
static void fetch(hls::burst_maxi<int> maps, hls::stream<int> &to) {
    maps.read_request(0, 4);
    to.write(maps.read());
}
static void put(hls::stream<int> &from, hls::burst_maxi<int> maps) {
    maps.write_request(0, 1);
    maps.write(from.read());
    maps.write_response();
}
void top(hls::burst_maxi<int> source, hls::burst_maxi<int> sink) {
#pragma HLS DATAFLOW
    hls::stream<int> link;
    fetch(source, link);
    put(link, sink);
}
"""


PACKS = """#include <hls_stream.h>
template <class W>
inline void write_all(const W &) {}
template <class W, class... STREAMS>
inline void write_all(const W &value, hls::stream<W> &first, STREAMS &...others) {
    first.write(value);
    write_all(value, others...);
}
template <class TERM>
void add_term(TERM value, int &sum) { sum += value; }
template <class... TERMS>
void add(int count, hls::stream<TERMS> &...ins, hls::stream<int> &out) {
    int sum = 0;
    const int expanded[] = {(add_term<TERMS>(ins.read(), sum), 0)...};
    out.write(sum);
}
void produce(int count, hls::stream<int> &a, hls::stream<int> &b) { write_all(count, a, b); }
void consume(hls::stream<int> &sums, int *result) { *result = sums.read(); }
void accelerate(int count, int *result) {
#pragma HLS INTERFACE mode=s_axilite port=return
#pragma HLS DATAFLOW
    hls::stream<int> a, b, sums;
    produce(count, a, b);
    add<int, int>(count, a, b, sums);
    consume(sums, result);
}
"""


def test_streams_are_followed_through_parameter_packs() -> None:
    assert lint({"top.cpp": PACKS}, "accelerate") == ()
    for right, wrong, rule in (
        ("first.write(value);", "", "channel-writers"),
        ("write_all(count, a, b)", "write_all(count, a)", "channel-writers"),
        ("ins.read(), sum", "0, sum", "channel-readers"),
        ("out.write(sum)", "", "channel-writers"),
    ):
        assert right in PACKS
        assert {finding.rule for finding in lint({"top.cpp": PACKS.replace(right, wrong)}, "accelerate")} == {rule}


def test_manual_bursts_have_one_reader_and_one_writer() -> None:
    assert lint({"top.cpp": BURSTS}, "top") == ()
    assert lint({"top.cpp": BURSTS.replace("put(link, sink)", "put(link, source)")}, "top") == ()
    twice = BURSTS.replace(
        "    fetch(source, link);", "    hls::stream<int> other;\n    fetch(source, other);\n    fetch(source, link);"
    )
    assert "argument source may be read by one process" in " ".join(f.sentence for f in lint({"top.cpp": twice}, "top"))


def test_names_that_the_hardware_reserves_are_found_at_the_top_alone() -> None:
    text = "static void signal(int *out) { out[0] = 1; }\nvoid design(int *data,\n            int *program) {\n}\n"
    findings = lint({"a.cpp": text}, "design")
    assert [(f.line, f.rule, f.sentence.split("but ")[1].split(";")[0]) for f in findings] == [
        (2, "reserved-name", "design is one of Verilog"),
        (3, "reserved-name", "program is one of SystemVerilog"),
    ]
    noted = text.replace("            int *program", "    // lint: allow(reserved-name) renamed\n    int *program")
    assert [f.line for f in lint({"a.cpp": noted}, "design")] == [2]


def test_a_directive_that_names_the_object_alone_names_no_member() -> None:
    (finding,) = lint({"top.cpp": MEMBERS.replace("variable=this->window", "variable=this")}, "top")
    assert "must name a variable of run, but «this» is none" in finding.sentence


def test_the_top_function_must_be_there() -> None:
    with pytest.raises(GenerateError, match="the top function must be defined in the sources, but other is not"):
        faults(top="other")


def test_names_outside_the_project_are_refused() -> None:
    with pytest.raises(GenerateError, match=r"named by a path inside the project, not '\.\./x\.h'"):
        lint({"../x.h": ""}, "")


def test_what_the_preprocessor_refuses_is_told() -> None:
    with pytest.raises(GenerateError, match=r"the preprocessor must accept the sources, but: .*too small"):
        lint({"a.h": '#error "too small"\n'}, "")


def test_constants_of_an_absent_header_are_believed_only_without_it() -> None:
    text = '#include "parameters.h"\nvoid top(int *p) {\n    for (int i = 0; i < ROWS; ++i) p[i] = 0;\n}\n'
    assert lint({"a.cpp": text}, "top") == ()
    (found,) = lint({"a.cpp": text, "parameters.h": ""}, "top")
    assert found.rule == "unbounded-loop"


def test_the_command_prints_findings_and_tells_by_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "top.cpp").write_text(DESIGN.replace("HLS UNROLL", "HLS UNROL"))
    (tmp_path / "types.h").write_text(TYPES)
    command = [
        sys.executable,
        "-m",
        "hls_templates.lint",
        str(tmp_path / "top.cpp"),
        str(tmp_path / "types.h"),
    ]
    done = subprocess.run([*command, "--top", "accelerate"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("top.cpp:8: unknown-directive: ")


def test_the_command_says_clean_and_unusable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "top.cpp").write_text(DESIGN)
    (tmp_path / "types.h").write_text(TYPES)
    files = [str(tmp_path / "top.cpp"), str(tmp_path / "types.h")]
    assert main([*files, "--top", "accelerate"]) == 0
    assert main([*files, "--top", "missing"]) == 2
    assert "missing is not" in capsys.readouterr().err


def test_the_command_explains_a_rule_by_its_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--explain", "goto"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("5.10 goto: `goto`\nSource: UG1399, Unsupported C/C++ Constructs\n")
    assert "if (data[1]) goto again;" in text


def test_the_document_has_the_table_of_rules_that_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rules"]) == 0
    document = ROOT / "docs/reference/lint.md"
    assert capsys.readouterr().out in document.read_text("utf-8")
