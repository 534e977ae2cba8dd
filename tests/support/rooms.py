"""The packages of the project."""

from __future__ import annotations

ROOMS = (
    "boards",
    "contract",
    "cnn",
    "scheduler",
    "hls_schedule",
    "hls_templates",
    "rtl_templates",
    "rtl_timing",
    "host",
    "systolic",
)
