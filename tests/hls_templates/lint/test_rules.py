"""Each rule finds the fault that is planted into a clean design; the clean design is clean."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest

from hls_templates.lint import RULES, Finding, Rule, lint
from tests.support.cases import cases
from tests.support.lint_designs import DESIGN, KEPT, LAST, TYPES, faults


@dataclass(frozen=True)
class Plant:
    """A fault: replacing ``old`` with ``new`` in the clean design breaks ``rule``, whose sentence contains ``says``."""

    rule: str
    old: str
    new: str
    says: str


PIPE = "        SYSTOLIC_PIPELINE(1, 3);\n"


BODY = "        scale<LANES>(in, out);\n"


REGION = "    load(source, words, rows);\n"


TRIP = "#pragma HLS LOOP_TRIPCOUNT min=1 max=4096\n        to"


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
        "UNROLL must be in a loop's braces",
    ),
    Plant(
        "directive-scope",
        "        to.write",
        "        if (i)\n        {\n#pragma HLS INLINE\n        }\n        to.write",
        "INLINE must be in a function's body, but it is in a conditional's braces",
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
        "but it is in no function",
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
        "INTERFACE may be only in the top function accelerate, but it is in load",
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
        "a variable of compute, but «keep» is not one",
    ),
    Plant("undeclared-variable", "port=words", "port=count", "a port of accelerate, but «count» is not one"),
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
        "but this one has a condition",
    ),
    Plant(
        "dataflow-statement",
        *region(PROCESSES, "    if (words == 0) return;\n"),
        "but this one has a condition",
    ),
    Plant(
        "dataflow-statement",
        *region(PROCESSES, "    words = words + 1;\n"),
        "but this one has «words = words + 1;»",
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
    Plant(
        "dataflow-call-sites",
        LAST,
        "    if (words > 9) {\n    " + LAST + "    } else {\n    " + LAST + "    }\n",
        "run, which keeps frames, is also called at top.cpp:",
    ),
    Plant(
        "stable-struct",
        "static void run(const word_t *source, word_t *sink, int words) {\n    SYSTOLIC_DATAFLOW(0);\n"
        '    hls::stream<word_t> rows("rows");\n    links_t links;\n    SYSTOLIC_STREAM(rows, 16);\n' + REGION,
        "static void bring(word_t bounds, const word_t *maps, int words, hls::stream<word_t> &to) {\n"
        "    if (bounds.lane[0]) load(maps, words, to);\n}\n"
        "static void run(const word_t *source, word_t *sink, int words, word_t bounds) {\n    SYSTOLIC_DATAFLOW(0);\n"
        '    hls::stream<word_t> rows("rows");\n    links_t links;\n    SYSTOLIC_STREAM(rows, 16);\n'
        "    bring(bounds, source, words, rows);\n",
        "must be STABLE, but bounds of word_t, which bring takes, is not",
    ),
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
    Plant("exception", LAST, LAST + "    throw 1;\n", "this is throw; return a status"),
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
    Plant("goto", LAST, LAST + "    goto end;\nend:;\n", "this is goto"),
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
        "«for (int j = 0; j < words; ++j) {» has none (pipeline at top.cpp:29)",
    ),
    Plant(
        "pipeline-inner-loop",
        BODY,
        BODY + "        clear(out, words);\n",
        "«for (int j = 0; j < n; ++j) {» has none",
    ),
    Plant(
        "pipeline-nested",
        BODY,
        BODY + "        for (int j = 0; j < 4; ++j) {\n#pragma HLS PIPELINE\n            out.lane[j] = 0;\n        }\n",
        "asks for a pipeline of its own",
    ),
    Plant(
        "request-apart",
        "static void run(",
        "void ask(hls::burst_maxi<word_t> port) {\n    for (int i = 0; i < 8; ++i) {\n#pragma HLS PIPELINE\n"
        "        port.write_request(i, 1);\n        port.write(word_t());\n        port.write_response();\n    }\n}\n"
        "static void run(",
        "but write_request and write_response of port are in one pipeline",
    ),
    Plant(
        "bank-writers",
        "        kept[i % DEPTH] = out;\n",
        "        kept[i % DEPTH] = out;\n        kept[words % DEPTH] = in;\n",
        "several stores select a bank of kept (dimension 1) at run time",
    ),
    # 7
    Plant(
        "reserved-name",
        "word_t *sink, int words) {\n#pragma HLS INTERFACE mode=m_axi",
        "word_t *sink, int words, int *Register) {\n#pragma HLS INTERFACE mode=m_axi",
        "the name of an argument of the top function reaches the hardware and must not be a reserved word, but Register"
        " is one of VHDL;",
    ),
    # 8
    Plant(
        "wide-stream",
        '    hls::stream<word_t> rows("rows");\n',
        '    hls::stream<word_t> rows("rows");\n    hls::stream<ap_uint<LANES * 1024 + 1>> beats;\n',
        "a stream may be 4096 bits wide, but beats has 4097;",
    ),
    Plant(
        "struct-array",
        "#pragma HLS AGGREGATE variable=kept compact=bit\n",
        "",
        "but kept of word_t has none. Each member would be a separate memory",
    ),
    Plant(
        "volatile-output",
        "    for (int i = 0; i < words; ++i) {\n        SYSTOLIC_PIPELINE(1, 2);\n",
        "    for (int i = 0; i < words; ++i) {\n        SYSTOLIC_PIPELINE(1, 2);\n        *maps = word_t();\n",
        "must be volatile, but maps is not",
    ),
    Plant(
        "unbound-fifo",
        "SYSTOLIC_STREAM(rows, 16)",
        "SYSTOLIC_STREAM(rows, 64)",
        "but rows, 64 words of 32 bits, has none. It would be a memory",
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
    if plant.rule == "dataflow-call-sites":
        text = text.replace(KEPT, f"    static int frames;  // lint: allow(static-local) counted\n{KEPT}")
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


def test_lint_clean_design_has_no_findings() -> None:
    assert faults() == ()


@pytest.mark.parametrize("plant", PLANTS, ids=lambda p: f"{p.rule}: {p.says[:30]}")
def test_lint_planted_fault_is_reported(plant: Plant) -> None:
    found = planted(plant)
    assert [f for f in found if f.rule == plant.rule and plant.says in f.sentence], [str(f) for f in found]


def test_lint_rules_each_have_a_planted_fault_and_a_source() -> None:
    assert {plant.rule for plant in PLANTS} == set(RULES)
    assert all(rule.source for rule in RULES.values())


@cases("rule", RULES.values(), ids=list(RULES))
def test_lint_rule_example_breaks_its_rule(rule: Rule) -> None:
    findings = lint({"example.cpp": rule.example}, "top")
    assert rule.name in {finding.rule for finding in findings}, rule.example


def test_rules_are_numbered_by_group_and_place() -> None:
    numbers = [tuple(int(part) for part in rule.number.split(".")) for rule in RULES.values()]
    for (group, place), (later_group, later_place) in pairwise(numbers):
        assert (later_group, later_place) in ((group, place + 1), (group + 1, 1))
