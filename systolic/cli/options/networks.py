"""Options of ``systolic networks``."""

from __future__ import annotations

from systolic.cli.options.form import Form

FORM = Form("systolic networks")
