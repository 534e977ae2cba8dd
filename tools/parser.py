"""The command-line parser of the maintainers' commands: ``tools``, ``benchmarks`` and the fuzzer."""

from __future__ import annotations

import argparse
from typing import Any

from systolic.cli.parsing import SHOW_HELP


class Parser(argparse.ArgumentParser):
    """An argparse parser whose --help, also of its commands, has the sentence that ``systolic --help`` has."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._option_string_actions["--help"].help = SHOW_HELP
