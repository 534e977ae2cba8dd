"""The linter follows readers and writers of channels through calls, members, structs, references and bursts."""

from __future__ import annotations

from hls_templates.lint import lint

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


def test_lint_directive_on_the_object_itself_is_reported() -> None:
    (finding,) = lint({"top.cpp": MEMBERS.replace("variable=this->window", "variable=this")}, "top")
    assert "must name a variable of run, but «this» is not one" in finding.sentence


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


def test_lint_branches_of_a_compile_time_condition_are_alternatives() -> None:
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


def test_lint_dataflow_loop_with_other_statements_or_a_variable_start_is_reported() -> None:
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


def test_lint_streams_of_a_struct_are_separate_channels() -> None:
    assert lint({"top.cpp": STREAMS}, "top") == ()
    twice = STREAMS.replace("left.read() + links.right", "left.read() + links.left")
    assert [f.sentence.split("; ")[0] for f in lint({"top.cpp": twice}, "top")] == [
        "channel links.right must have exactly one reader, but none read it",
        "channel links.left must have exactly one reader, but take_left and join read it",
    ]
    (found,) = lint({"top.cpp": STREAMS.replace("    left.write(source.read());\n", "")}, "top")
    assert found.sentence.startswith("channel links.left must have exactly one writer, but none write it")


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


def test_lint_streams_in_parameter_packs_are_followed() -> None:
    assert lint({"top.cpp": PACKS}, "accelerate") == ()
    for right, wrong, rule in (
        ("first.write(value);", "", "channel-writers"),
        ("write_all(count, a, b)", "write_all(count, a)", "channel-writers"),
        ("ins.read(), sum", "0, sum", "channel-readers"),
        ("out.write(sum)", "", "channel-writers"),
    ):
        assert right in PACKS
        assert {finding.rule for finding in lint({"top.cpp": PACKS.replace(right, wrong)}, "accelerate")} == {rule}


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


def test_manual_bursts_have_one_reader_and_one_writer() -> None:
    assert lint({"top.cpp": BURSTS}, "top") == ()
    assert lint({"top.cpp": BURSTS.replace("put(link, sink)", "put(link, source)")}, "top") == ()
    twice = BURSTS.replace(
        "    fetch(source, link);", "    hls::stream<int> other;\n    fetch(source, other);\n    fetch(source, link);"
    )
    assert "argument source may be read by one process" in " ".join(f.sentence for f in lint({"top.cpp": twice}, "top"))
