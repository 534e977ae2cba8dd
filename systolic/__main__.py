"""``python -m systolic``: the command without its script."""

import sys

from systolic.cli.main import main

sys.exit(main())
