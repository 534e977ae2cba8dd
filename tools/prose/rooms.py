"""The folders and pages whose prose is clean and stays so, and the exceptions to the rules."""

from __future__ import annotations

CLEAN = (
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks",
    "boards",
    "cnn",
    "contract",
    "docs",
    "hls_schedule",
    "hls_templates",
    "host",
    "rtl_templates",
    "rtl_timing",
    "scheduler",
    "systolic/checking",
    "systolic/cli",
    "systolic/evaluation",
    "systolic/execution",
    "systolic/front_ends",
    "systolic/report",
    "systolic/styles",
    "systolic/trace",
    "systolic/training",
    "systolic/vendor",
    "tests/cnn",
    "tests/fuzz",
    "tests/host",
    "tests/systolic/evaluation",
    "tests/systolic/exporting",
    "tests/systolic/extending",
    "tests/systolic/streaming",
    "tests/systolic/training",
    "tests/systolic/vendor",
    "tools",
)
"""Folders and pages without a finding. One is added when its last finding is gone, and never taken out."""

ALLOWED: dict[tuple[str, str], str] = {
    ("tools/prose/rules.py", ""): "the rules quote what they find",
    ("host/vision/live.py", "32 words: div style"): "HTML",
    ("benchmarks/balance.py", "42 words: static void"): "C++",
    ("tests/cnn/quantisation/test_reconstruction.py", "36 words: net width"): "a darknet cfg",
    ("tests/cnn/exported/test_contest.py", "35 words: conv_0_w"): "C++",
    ("tests/host/test_library_by_hand.py", ""): "C++",
    ("tests/host/test_closing.py", "36 words: import sys"): "Python",
    ("tests/host/test_remote.py", "34 words: pixels"): "Python",
    ("tests/host/test_video.py", "47 words: import resource"): "Python",
    ("tests/fuzz/kills/workshop.py", "48 words: bin sh"): "a shell script",
    ("tests/rtl_templates/test_route.py", "51 words: module top"): "RTLIL",
    ("cnn/darknet/cfg.py", "61 words: adam angle"): "names of options",
    ("systolic/trace/timing.py", "44 words: p b cycles"): "HTML",
    ("tools/digests/added_layer.py", "67 words: template"): "C++",
    ("hls_templates/reserved.py", ""): "reserved words",
    ("tests/systolic/extending/test_packages.py", ""): "modules in strings",
    ("tests/systolic/vendor/test_comparison.py", "47 words: namespace"): "C++",
    ("tests/scheduler/test_passes.py", "65 words: pass in_base"): "a table of the fields of passes",
    ("systolic/styles/streaming/fold_words.py", "one value a"): "manifests store these words",
}
"""Exceptions: the start of a path and of the words, with the reason. At most MAX_ALLOWED."""

MAX_ALLOWED = 20


def is_allowed(path: str, words: str) -> bool:
    """Return whether a finding at ``path`` is one of the exceptions."""
    return any(path.startswith(start) and words.startswith(phrase) for start, phrase in ALLOWED)
