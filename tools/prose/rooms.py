"""The folders and pages whose prose is clean and stays so, and the exceptions to the rules."""

from __future__ import annotations

CLEAN = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
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
    "setup.py",
    "systolic",
    "tests",
    "tools",
)
"""Folders and pages without a finding. One is added when its last finding is gone, and never taken out."""

ALLOWED: dict[tuple[str, str], str] = {
    ("tools/prose/rules.py", ""): "the rules quote what they find",
    ("cnn/darknet/cfg.py", "61 words: adam angle"): "names of options",
    ("hls_templates/reserved.py", ""): "reserved words",
    ("systolic/styles/streaming/fold_words.py", "one value a"): "manifests store these words",
    ("tests/golden/", "one value a"): "the same words in generated code",
    ("tests/tools/test_prose.py", ""): "the tests of the rules quote what they find",
    ("tests/test_gate.py", "31 words: step first"): "a shell script",
    ("host/vision/live.py", "32 words: div style"): "HTML",
    ("systolic/trace/timing.py", "44 words: p b cycles"): "HTML",
}
"""Exceptions: the start of a path and of the words, with the reason. At most MAX_ALLOWED."""

MAX_ALLOWED = 20


def is_allowed(path: str, words: str) -> bool:
    """Return whether a finding at ``path`` is one of the exceptions."""
    return any(path.startswith(start) and words.startswith(phrase) for start, phrase in ALLOWED)
