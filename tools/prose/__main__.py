"""``python -m tools.prose``."""

import sys

from tools.prose.command import main

sys.exit(main(sys.argv[1:]))
