"""`python -m tests.fuzz TARGET`: one campaign; ends with 1 where it found a defect."""

import argparse
import importlib
import sys
from pathlib import Path

from tests.fuzz.campaign import Campaign

# Each target's module has `run(campaign: Campaign) -> int`: prints what it did, gives the number of defects.
TARGETS: dict[str, str] = {}


def main() -> int:
    """Run the campaign that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, help="at most so many cases")
    parser.add_argument("--seconds", type=float, help="no case begins after so long")
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), metavar="DIR")
    options = parser.parse_args()
    campaign = Campaign(options.seed, options.cases, options.seconds, options.failures)
    defects: int = importlib.import_module(TARGETS[options.target]).run(campaign)
    return min(1, defects)


if __name__ == "__main__":
    sys.exit(main())
