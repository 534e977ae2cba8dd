"""Kernels of a few lines for the checks of HLS schedules."""

from __future__ import annotations

HEAD = '#include <ap_int.h>\n#include <hls_stream.h>\n#include "instrument.h"\nstruct pair_t { int low, high; };\n'


def kernel(lines: str, arguments: str = "hls::stream<int> &in, hls::stream<int> &out, int n", before: str = "") -> str:
    """Return a kernel whose loop, with II 1 and depth 3, contains ``lines``."""
    loop = f"for (int i = 0; i < n; ++i) {{\nSYSTOLIC_PIPELINE(1, 3);\n{lines}\n}}"
    return f"void top({arguments}) {{\n{before}\n{loop}\n}}\n"
