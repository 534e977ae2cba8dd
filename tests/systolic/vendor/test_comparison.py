"""Claims compared with vendor reports: each kind of difference has its verdict and its advice."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import pytest

from boards.errors import ChoiceError, DamagedFileError, FileAccessError
from systolic.vendor.claims import Claims, read_claims
from systolic.vendor.comparison.compare import Comparison, compare
from systolic.vendor.comparison.loops import DerivedLoop, derived_of
from systolic.vendor.comparison.rows import LoopRow
from systolic.vendor.reading.reports import read_reports
from systolic.vendor.report import html, text, values
from systolic.vendor.sources import DeclaredLoop, read_sources
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.vendor import texts
from tests.support.vendor.texts import Loop, Module, Run, as_claimed, design_folder, storage


def compared(design: Path, claims: Claims) -> Comparison:
    return compare(claims, read_reports(design, claims.cell))


def row_of(comparison: Comparison, function: str) -> LoopRow:
    return next(row for row in comparison.loops if row.declared.function == function)


# ---------------------------------------------------------------------------------------------- claims


def test_read_claims_of_a_design_lists_loops_and_memories(claims: Claims) -> None:
    assert (claims.top, claims.part, claims.cell) == ("systolic_top", "xc7z020clg400-1", "systolic_top_0")
    loops = {loop.function: (loop.source, loop.line, loop.ii, loop.depth) for loop in claims.loops}
    assert loops == {
        "convert_each": ("blocks.h:9", 8, 1, 3),
        "feed_phase": ("feed.h:18", 17, 1, 4),
        "load": ("top.cpp:19", 18, 1, 8),
        "multiply_unit": ("blocks.h:17", 16, 1, 12),
        "pool": ("blocks.h:35", 34, 1, 4),
        "read_rows": ("top.cpp:28", 27, 1, 3),
        "walk": ("blocks.h:26", 25, 1, 6),
    }, "watch is not synthesised"
    memories = {
        claim.name: (claim.impl, claim.count, claim.depth, claim.bits, claim.blocks) for claim in claims.memories
    }
    assert memories == {
        "feed_weights: buffer": ("bram", 8, 512, 64, 8),
        "load: rows": ("uram", 4, 4096, 72, 4),
        "systolic_top: map_buffer_1, systolic_top: map_buffer_2": ("lutram", 12, 32, 64, 528),
    }, "a directive on a parameter claims no memory"


@cases("style", ["systolic", "streaming"])
def test_read_claims_has_every_reached_pipeline(tmp_path: Path, style: str) -> None:
    """Compare the claims with a count of the macro in the text of the functions that the top reaches.

    The systolic design has no table: the loop over its values has no iterations and makes no claim.
    """
    claims = read_claims(design_folder(tmp_path / "design", style))
    reached = claims.sources.reached(claims.top)
    macros = 0
    for file, code in claims.sources.texts.items():
        functions = sorted((f for f in claims.sources.functions if f.file == file), key=lambda f: f.line)
        for function, following in zip_longest(functions, functions[1:]):
            lines = code.split("\n")[function.line - 1 : following.line - 1 if following else None]
            body = "\n".join(lines) if function.name in reached else ""
            macros += body.count("SYSTOLIC_PIPELINE(") - body.count("i < TABLE_DEPTH;")
    assert len(claims.loops) == macros > 0


@cases(
    "line",
    [
        "// } } {",
        "/* { { */",
        'tell("}}{{ \\" }");',
        "char quote = '\"', brace = '}'; // }",
        "#define OPEN { {",
        "#define TWICE(x) do { \\\r\n    x; { \\\r\n    } while (0)\r",
        "h<(3 > 2), s<1, 2>>(m);",
        "SYSTOLIC_ENTER;",
    ],
)
def test_read_sources_after_unusual_braces_finds_loops(tmp_path: Path, line: str) -> None:
    loop = "    for (int i = 0; i < 8; ++i) {\n        SYSTOLIC_PIPELINE(1, depth_of(3));\n    }\n}\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.h").write_bytes(f"void f(int *m) {{\n{line}\n{loop}void g() {{\n{loop}".encode())
    first = 3 + line.count("\n")
    assert [(f.name, f.line, [loop.line for loop in f.loops]) for f in read_sources(tmp_path).functions] == [
        ("f", 1, [first]),
        ("g", first + 4, [first + 5]),
    ]


CHOSEN = """#define BEATS 1
#if BEATS == 1
#define EXTRA 2
#else
#define EXTRA 3
#endif
static const int WIDE = BEATS > 1 ? 64 : 8;
constexpr int depth_of(int beats) { return beats == 1 ? 9 : 4; }
template <int WIDE>
void part(int BEATS) {
    for (int i = 0; i < 4; ++i) { SYSTOLIC_PIPELINE(1, depth_of(BEATS)); }
    for (int i = 0; i < 4; ++i) { SYSTOLIC_PIPELINE(1, WIDE); }
}
void top() {
    for (int i = 0; i < WIDE; ++i) { SYSTOLIC_PIPELINE(1, depth_of(BEATS) + EXTRA); }
    for (int i = 0; i < (WIDE == 8 ? 0 : 4); ++i) { SYSTOLIC_PIPELINE(1, 1); }
#if WIDE < 64
    for (int i = 0; i < 4; ++i) { SYSTOLIC_PIPELINE(EXTRA == 2 ? 1 : 2, depth_of(WIDE)); }
#endif
#if BEATS > 1
    for (int i = 0; i < 4; ++i) { SYSTOLIC_PIPELINE(1, 5); }
#endif
}
"""


def test_read_sources_of_constants_under_a_condition_evaluates_them(tmp_path: Path) -> None:
    """The names in ``part`` are parameters there, so its depths are not known. The second loop of ``top`` is empty."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.h").write_text(CHOSEN)
    part, top = (f for f in read_sources(tmp_path).functions if f.name in ("part", "top"))
    assert [(loop.ii, loop.depth) for loop in part.loops] == [(1, None), (1, None)]
    assert [(loop.ii, loop.depth) for loop in top.loops] == [(1, 11), (1, 4)]


def test_read_sources_after_an_unbalanced_function_finds_the_next(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.h").write_text(
        "void f() {\n    }\n}\nvoid g() {\n    while (true) {\n        SYSTOLIC_PIPELINE(1, 2);\n    }\n}\n"
    )
    assert [(f.name, len(f.loops)) for f in read_sources(tmp_path).functions] == [("f", 0), ("g", 1)]


def test_read_sources_gives_functions_and_arguments(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.h").write_text(
        "namespace n {\ntemplate <int N>\nstatic void part(int x[N]) {\n    for (int i = 0; i < N;\n         ++i) {\n"
        "        SYSTOLIC_PIPELINE(1, DEPTH);\n        if (x[i]) { x[i] = 0; }\n    }\n}\n}\n"
        "static const int DEPTH = 4 + 1;\n"
        'void top() {\n    SYSTOLIC_PROCESS("first");\n    int table[] = {1, 2};\n    part<2>(table);\n}\n'
        "struct pair {\n    pair(const s<a, b> &x, int (&y)[3], float) : second(y[0]) {}\n};\n"
    )
    sources = read_sources(tmp_path)
    assert [(function.name, function.template, function.process) for function in sources.functions] == [
        ("part", ("N",), ""),
        ("top", (), "first"),
        ("pair", (), ""),
    ]
    assert sources.functions[2].arguments == (("s<a, b>", "x"), ("int", "y"), ("float", ""))
    (loop,) = sources.functions[0].loops
    assert (loop.line, loop.source, loop.ii, loop.depth) == (4, "a.h:6", 1, 5)
    assert sources.reached("top") == {"top", "part"}
    assert sources.reached("none") == frozenset()


# ----------------------------------------------------------------------------------------------- loops


def test_compare_of_a_design_as_claimed_holds(design: Path, claims: Claims, run: Run) -> None:
    texts.write_run(design, run)
    comparison = compared(design, claims)
    assert comparison.holds, text(comparison)
    assert {row.verdict for row in comparison.loops} == {"as claimed"}
    assert {row.verdict for row in comparison.memories} == {"as claimed"}
    assert comparison.highest_clock_mhz == pytest.approx(365)
    assert [sentence.partition(":")[0] for sentence in comparison.missing] == [
        "whether the RTL computes the same as the C++",
        "the clock and placed resources",
    ]


def test_compare_of_a_missed_ii_gives_the_tools_reason(design: Path, claims: Claims, run: Run) -> None:
    (loop,) = (loop for loop in claims.loops if loop.function == "feed_phase")
    name = f"VITIS_LOOP_{loop.line}_1"
    texts.write_run(design, run.changed("feed_phase", Module("feed_phase", (Loop(name, 2, 6),))))
    (design / "hls.log").write_text(texts.LOG.format(module="feed_phase", loop=name))
    comparison = compared(design, claims)
    row = row_of(comparison, "feed_phase")
    assert (row.verdict, comparison.holds) == ("worse", False)
    assert row.advice.startswith(
        "the achieved II is 2 cycles: Unable to schedule 'store' operation ('buffer_write', feed.h:32) on array"
    )
    assert row.advice.endswith(f"declare SYSTOLIC_PIPELINE(2, 6) at {loop.source} and trace again")


@cases(
    "ii, depth, verdict, sentence",
    [
        (
            1,
            9,
            "worse",
            r"each start of the loop takes 5 cycles more: declare SYSTOLIC_PIPELINE\(1, 9\) at feed\.h:\d+",
        ),
        (1, 3, "better", r"each start of the loop takes 1 cycles less"),
        (None, 9, "worse", r"not pipelined, because the loop contains a call"),
        (3, 9, "worse", r"the achieved II is 3 cycles: the log reports for this loop whether accesses share a port"),
    ],
)
def test_compare_of_different_loops_gives_verdict_and_advice(
    design: Path, claims: Claims, run: Run, ii: int | None, depth: int, verdict: str, sentence: str
) -> None:
    loop = next(loop for loop in claims.loops if loop.function == "feed_phase")
    assert (loop.ii, loop.depth) == (1, 4), "the claim that these cases differ from"
    changed = Module("feed_phase", (Loop(f"VITIS_LOOP_{loop.line}_1", ii, depth),))
    texts.write_run(design, run.changed("feed_phase", changed))
    row = row_of(compared(design, claims), "feed_phase")
    assert row.verdict == verdict
    assert re.search(sentence, row.advice), row.advice


def test_compare_of_a_long_path_names_its_longest_step(design: Path, claims: Claims, run: Run) -> None:
    late = replace(run.module("feed_phase"), estimated_ns=7.9)
    texts.write_run(design, replace(run.changed("feed_phase", late), estimated_ns=7.9))
    schedule = design / "hls/solution/.autopilot/db/feed_phase.verbose.sched.rpt"
    schedule.parent.mkdir(parents=True)
    schedule.write_text(texts.SCHEDULE.format(module="feed_phase"))
    comparison = compared(design, claims)
    row = row_of(comparison, "feed_phase")
    assert row.advice == (
        "the longest path takes 7.90 ns, but only 7.30 ns are available; its longest step is add at feed.h:72, 2.30 ns"
        "; multiplexers of shared operators and memories take 3.89 ns"
    )
    assert [step.ns for step in row.path] == [0.859, 0.243, 0.605, 2.303]
    (clock,) = comparison.clocks
    advice = "paths are too long in feed_phase; the rows of their loops say where"
    assert (clock.verdict, clock.advice) == ("worse", advice)
    assert clock.highest_mhz == pytest.approx(730 / 7.9)
    assert "Longest path of feed_phase" in html(comparison)


def test_compare_finds_loops_in_inlining_functions(design: Path, claims: Claims) -> None:
    """Find loops in a process that inlines its callees, in a flattened nest with two lines, and in copied functions."""
    line = {loop.function: loop.line for loop in claims.loops}
    modules = (
        Module("first_process_Pipeline_1", (Loop(f"VITIS_LOOP_9_1_VITIS_LOOP_{line['multiply_unit']}_2", 1, 12),)),
        Module("width_process", (Loop(f"VITIS_LOOP_{line['convert_each']}_1", 1, 3),)),
        Module("convert_each_1_4_s", (Loop(f"VITIS_LOOP_{line['convert_each']}_1", 2, 3),)),
        Module("other", (Loop("VITIS_LOOP_4_1", 1, 2),)),
    )
    texts.write_run(design, Run(claims.top, claims.part, 3.33, modules))
    comparison = compared(design, claims)
    rows = {(row.declared.function, row.fact.module, row.fact.ii) for row in comparison.loops if row.fact}
    assert rows == {
        ("multiply_unit", "first_process_Pipeline_1", 1),
        ("convert_each", "width_process", 1),
        ("convert_each", "convert_each_1_4_s", 2),
    }
    assert [loop.module for loop in comparison.undeclared] == ["other"]
    assert claims.sources.reached("pool") == {"pool"}, "its variables have the names of functions, and are not calls"
    unread = row_of(comparison, "walk")
    assert (unread.verdict, unread.fact) == ("open", None)
    assert unread.advice.startswith("the report has no loop at this line")


def test_compare_of_a_flattened_nest_takes_the_inner_loop(design: Path, claims: Claims) -> None:
    line = {loop.function: loop.line for loop in claims.loops}
    nest = Loop(f"VITIS_LOOP_{line['convert_each']}_1_VITIS_LOOP_{line['walk']}_2", 1, 6)
    texts.write_run(design, Run(claims.top, claims.part, 3.33, (Module("width_process", (nest,)),)))
    assert {row.declared.function for row in compared(design, claims).loops if row.fact} == {"walk"}


def test_compare_of_equal_lines_uses_file_or_function(design: Path, claims: Claims) -> None:
    """Shift the lines of feed.h so that loops in two files have the same line number."""
    feed, pool = (next(loop for loop in claims.loops if loop.function == name) for name in ("feed_phase", "pool"))
    path = design / "src/feed.h"
    path.write_text("\n" * (pool.line - feed.line) + path.read_text())
    moved = read_claims(design)
    assert [loop.line for loop in moved.loops if loop.function == "feed_phase"] == [pool.line]
    name = f"VITIS_LOOP_{pool.line}_1"
    modules = (
        Module("pool", (Loop(name, 4, 4),)),
        Module("run_pass", (Loop(name, 2, 4, "src/feed.h:34"),)),
        Module("feed_phase", (Loop(name, 3, 4),)),
    )
    texts.write_run(design, Run(moved.top, moved.part, 10.0, modules))
    rows = {(row.declared.function, row.fact.ii) for row in compared(design, moved).loops if row.fact}
    assert rows == {("pool", 4), ("feed_phase", 2), ("feed_phase", 3)}


# -------------------------------------------------------------------------------------------- memories


def test_compare_of_a_split_array_is_worse(design: Path, claims: Claims, run: Run) -> None:
    parts = tuple(storage(f"feed_weights_buffer_lane_{i}", "bram", 1) for i in range(64))
    changed = replace(run.module("feed_weights"), nodes=parts)
    texts.write_run(design, run.changed("feed_weights", changed))
    row = next(row for row in compared(design, claims).memories if row.name.startswith("feed_weights"))
    assert (row.verdict, row.claimed, row.achieved) == ("worse", "8 BRAM36 in 8 of 512 × 64 bits", "32 BRAM36 in 64")
    assert row.advice.startswith("64 memories instead of the claimed 8: the tool split a struct with an array of lanes")


@cases(
    "nodes, verdict, sentence",
    [
        ([storage("buffer_0", "lutram")], "worse", "the tool used lutram: its log says at feed.h:"),
        (
            [storage(f"buffer_{i}", "auto", 4) for i in range(8)],
            "worse",
            "the words are wider or more numerous than the sources declare",
        ),
        ([storage(f"buffer_{i}", "auto", 1) for i in range(8)], "better", ""),
        ([storage("another", "bram", 1)], "open", "the report has no memory of this name"),
    ],
)
def test_compare_of_different_memories_gives_verdict_and_advice(
    design: Path, claims: Claims, run: Run, nodes: list[dict[str, str]], verdict: str, sentence: str
) -> None:
    texts.write_run(design, run.changed("feed_weights", replace(run.module("feed_weights"), nodes=tuple(nodes))))
    row = next(row for row in compared(design, claims).memories if row.name.startswith("feed_weights"))
    assert (row.verdict, row.advice[: len(sentence)]) == (verdict, sentence)


def test_compare_lists_fifos_and_adapters_without_a_claim(design: Path, claims: Claims, run: Run) -> None:
    nodes = (storage("rows_U", "srl", kind="fifo"), {**storage("maps_0", "", 4, kind="m_axi"), "BINDTYPE": "adapter"})
    texts.write_run(design, replace(run, modules=(*run.modules, Module("run_pass", (), nodes))))
    rows = {row.name: row for row in compared(design, claims).memories}
    assert (rows["FIFOs of streams"].achieved, rows["adapters of AXI ports"].bram36) == ("srl in 1", 2)


# --------------------------------------------------------------------- resources, clock and the whole


def test_compare_prefers_the_counts_of_vivado(design: Path, claims: Claims, run: Run) -> None:
    texts.write_run(design, run)
    texts.write_vivado(design)
    texts.write_cosim(design, texts.cosim())
    comparison = compared(design, claims)
    rows = {row.kind: row for row in comparison.resources}
    assert (rows["dsp"].placed, rows["dsp"].verdict) == (208, "as claimed")
    assert (rows["bram36"].placed, rows["bram36"].available) == (28.5, 140)
    assert (rows["lut"].synthesised, rows["lut"].placed, rows["lut"].verdict) == (30000, 20100, "better")
    assert comparison.highest_clock_mhz == pytest.approx(1000 / (10 - 0.123))
    assert comparison.co_simulation == (
        f"Pass in 1,200 cycles; the model has {claims.cycles:,} for all passes",
        "as claimed",
    )
    assert (comparison.missing, comparison.holds) == ((), True)
    (design / "vivado/utilization_hierarchical.rpt").unlink()
    whole = compared(design, claims)
    row = next(row for row in whole.resources if row.kind == "lut")
    assert (row.placed, row.verdict, row.advice) == (
        23000,
        "worse",
        "936 more than estimated: the rows of the memories and the tool's report say where",
    )
    assert "Vivado's resource counts are for the whole block design" in text(whole)


def test_compare_of_luts_before_placement_is_open(design: Path, claims: Claims, run: Run) -> None:
    texts.write_run(design, replace(run, counts={**run.counts, "LUT": 50000}))
    row = next(row for row in compared(design, claims).resources if row.kind == "lut")
    assert (row.verdict, row.synthesised) == ("open", 50000)


def test_compare_of_too_many_dsps_advises_a_smaller_design(design: Path, claims: Claims, run: Run) -> None:
    texts.write_run(design, replace(run, counts={**run.counts, "DSP": 230}))
    row = next(row for row in compared(design, claims).resources if row.kind == "dsp")
    assert row.advice == "230 do not fit the device's 220: generate a smaller array or folding"


@cases(
    "slacks, sentence",
    [
        (
            {"wns": -0.25},
            "7 endpoints miss setup, the worst by 0.250 ns: shorten the first path of vivado/timing.rpt, or generate "
            "for a clock of at most 98 MHz",
        ),
        ({"whs": -0.02}, "hold is missed by 0.020 ns, which a slower clock does not fix: route with another strategy"),
    ],
)
def test_compare_of_missed_timing_gives_advice(
    design: Path, claims: Claims, slacks: dict[str, float], sentence: str
) -> None:
    texts.write_vivado(design, **slacks)
    comparison = compared(design, claims)
    (clock,) = comparison.clocks
    assert (clock.verdict, clock.advice, comparison.holds) == ("worse", sentence, False)


def test_compare_reports_the_clock_with_the_least_slack(design: Path, claims: Claims) -> None:
    """Report the clock with the least slack, and not a slower clock, whose longer paths meet its period."""
    texts.write_vivado(design, wns=0.25)
    path = design / "vivado/timing.rpt"
    slow = "clk_slow      5.000 0.000 0 99 0.100 0.000 0 99 4.0 0.0 0 99\n"
    text = path.read_text().replace("clk_fpga_0    ", f"{slow}clk_fpga_0    ")
    path.write_text(text.replace("clk_fpga_0  {", "clk_slow    {0.000 10.000}  20.000  50.000\nclk_fpga_0  {"))
    (clock,) = compared(design, claims).clocks
    assert (clock.path_ns, clock.budget_ns) == (9.75, 10.0)


def test_compare_of_a_failed_co_simulation_is_worse(design: Path, claims: Claims) -> None:
    texts.write_cosim(design, texts.cosim("Fail", "NA"))
    comparison = compared(design, claims)
    sentence = "Fail: the output of the RTL differs from the words that the test bench expects"
    assert comparison.co_simulation == (sentence, "worse")
    assert not comparison.holds


def test_compare_with_reports_of_another_design_lists_conflicts(design: Path, claims: Claims, run: Run) -> None:
    texts.write_run(design, replace(run, part="xczu7ev-ffvc1156-2-e", target_ns=20.0))
    texts.write_vivado(design, period=20.0)
    comparison = compared(design, claims)
    assert [sentence.partition(",")[0] for sentence in comparison.conflicts] == [
        "the synthesis is for xczu7ev-ffvc1156-2-e",
        "the target period of the synthesis is 20 ns",
        "Vivado's fastest clock has 50.00 MHz",
    ]
    assert not comparison.holds


def test_compare_with_a_refused_directive_does_not_hold(design: Path, claims: Claims, run: Run) -> None:
    pragmas = (
        '<Pragma type="dependence" location="src/pool.h:86" status="invalid" options="variable=kept">unknown</Pragma>'
    )
    texts.write_run(design, replace(run, pragmas=pragmas))
    comparison = compared(design, claims)
    assert (comparison.refused, comparison.holds) == (("src/pool.h:86: dependence variable=kept (unknown)",), False)
    assert "directive refused: src/pool.h:86" in text(comparison)


def test_text_of_a_comparison_has_no_control_characters(design: Path, claims: Claims, run: Run) -> None:
    (loop,) = (loop for loop in claims.loops if loop.function == "feed_phase")
    name = f"VITIS_LOOP_{loop.line}_1"
    texts.write_run(
        design, replace(run.changed("feed_phase", Module("feed_phase", (Loop(name, 2, 6),))), version="2\x9bJ")
    )
    log = texts.LOG.format(module="feed_phase", loop=name).replace("Unable", "\x1b[2JUnable")
    (design / "hls.log").write_text(log)
    assert "cycles: ?[2JUnable" in text(compared(design, claims))
    assert all(character.isprintable() or character == "\n" for character in text(compared(design, claims)))


def test_read_sources_of_many_values_finds_no_function(design: Path) -> None:
    """Read a header of embedded weights with nested braces, and comments that do not end."""
    values_of = ", ".join("{" + ", ".join(["{1, 2}"] * 50) + "}" for _ in range(2000))
    (design / "src/constants.h").write_text(
        f"static const int weights[2000][50][2] = {{{values_of}}};\n" + "/*" * 20000
    )
    names = {function.name for function in read_sources(design).functions if function.file == "constants.h"}
    assert names == set()


def test_values_and_html_of_a_comparison_are_complete(design: Path, claims: Claims, run: Run) -> None:
    texts.write_run(design, run)
    comparison = compared(design, claims)
    told = values(comparison)
    assert set(told["loops"][0]) == {
        *("process", "source", "declared_ii", "derived_ii", "achieved_ii"),
        *("declared_depth", "derived_depth", "achieved_depth", "module"),
        *("path_ns", "budget_ns", "path", "verdict", "advice"),
    }
    assert (told["clock_mhz"], told["holds"], told["highest_clock_mhz"]) == (claims.clock_mhz, True, 365.0)
    shown = html(replace(comparison, conflicts=("<script>alert(1)</script>",)))
    assert "<script" not in shown
    assert "Achieved: reported by Vitis HLS" in shown


def test_values_of_a_comparison_include_derived_loops(design: Path, claims: Claims, run: Run) -> None:
    texts.write_run(design, run)
    derived = {
        (loop.function, loop.source): DerivedLoop(2 if loop.function == "pool" else 1, depth + 3, depth)
        for loop in claims.loops
        for depth in [loop.depth or 0]
    }
    comparison = compare(claims, read_reports(design, claims.cell), derived)
    row = next(row for row in values(comparison)["loops"] if row["process"] == "pool")
    assert (row["declared_ii"], row["derived_ii"], row["achieved_ii"]) == (1, 2, 1)
    count = len(comparison.loops)
    sentence = (
        f"systolic check derived the right II for {count - 1} of {count} loops, and for 0 of them the depth within"
    )
    assert sentence in text(comparison)
    assert "derived" in text(comparison).split("\n")[0]
    assert "derived" not in text(compared(design, claims))


def test_compare_takes_unknown_depths_from_the_derived_loops(design: Path, claims: Claims, run: Run) -> None:
    texts.write_run(design, run)
    unsaid = replace(claims, loops=tuple(replace(loop, depth=None) for loop in claims.loops))
    reports = read_reports(design, claims.cell)
    assert {row["declared_depth"] for row in values(compare(unsaid, reports))["loops"]} == {None}
    derived = {(loop.function, loop.source): DerivedLoop(1, 2, loop.depth or 0) for loop in claims.loops}
    rows = values(compare(unsaid, reports, derived))["loops"]
    assert [row["declared_depth"] for row in rows] == [
        row["declared_depth"] for row in values(compare(claims, reports))["loops"]
    ]
    shallow = {key: replace(known, declared_depth=1) for key, known in derived.items()}
    assert not compare(unsaid, reports, shallow).holds


def test_derived_of_a_loop_depends_on_its_process() -> None:
    loop = DeclaredLoop("unit", "unit.h", 8, 9, 1, None)
    derived = {("first", "unit.h:9"): DerivedLoop(1, 4, 32), ("second", "unit.h:9"): DerivedLoop(1, 9, 48)}
    assert derived_of(derived, "first", loop) == DerivedLoop(1, 4, 32)
    assert derived_of(derived, "of no region", loop) == DerivedLoop(1, 9, 48), "the worst of all processes"
    assert derived_of({}, "first", loop) is None


def test_read_sources_keeps_constants_of_functions_apart(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    loop = "    constexpr int DEPTH = STAGES + {};\n    for (;;) {{\n        SYSTOLIC_PIPELINE(1, DEPTH);\n    }}\n"
    parts = [f"void part{n}() {{\n{loop.format(n)}}}\n" for n in (1, 2)]
    (tmp_path / "src/a.h").write_text("constexpr int STAGES = 5;\n" + "".join(parts))
    assert [f.loops[0].depth for f in read_sources(tmp_path).functions] == [6, 7]


@cases("bound, loops", [("i < DEPTH", 0), ("i < DEPTH + 1", 1), ("i <= DEPTH", 1), ("i < n", 1)])
def test_read_sources_omits_loops_without_iterations(bound: str, loops: int, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    loop = f"    for (int i = 0; {bound}; ++i) {{\n        SYSTOLIC_PIPELINE(1, 3);\n    }}\n"
    (tmp_path / "src/a.h").write_text(f"static const int DEPTH = 0;\nvoid part(int n) {{\n{loop}}}\n")
    assert len(read_sources(tmp_path).functions[0].loops) == loops


def test_part_of_claims_has_one_function(claims: Claims) -> None:
    part = claims.part_of("feed_weights")
    assert {loop.function for loop in part.loops} == {"feed_phase"}
    assert [claim.storages[0].impl for claim in part.memories] == ["WEIGHT_MEMORY"]
    assert (part.resources, part.cycles) == ({}, None)
    with raises(ChoiceError, what="--only", got="feed") as caught:
        claims.part_of("feed")
    assert "feed_phase" in caught.value.choices


def test_read_claims_without_sources_or_scripts_is_refused(design: Path) -> None:
    (design / "run_hls.tcl").write_text("exit 0\n")
    with raises(DamagedFileError, path=str(design / "run_hls.tcl")):
        read_claims(design)
    for path in (design / "src").iterdir():
        path.unlink()
    with raises(FileAccessError, path=str(design / "src"), reason="holds no C++"):
        read_claims(design)


def test_as_claimed_of_other_claims_gives_other_reports(claims: Claims) -> None:
    """Check that the simulated synthesis run follows the claims: other claims give another report."""
    other = replace(claims, loops=tuple(replace(loop, depth=99) for loop in claims.loops))
    assert texts.csynth_xml(as_claimed(claims)) != texts.csynth_xml(as_claimed(other))
