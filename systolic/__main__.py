"""The ``systolic`` command, and ``python -m systolic``."""

import signal
import sys


def main() -> int:
    """Run the command line and return its exit status. Ctrl-C during the import ends it without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from systolic.cli.main import main as command

    signal.signal(signal.SIGINT, before)
    return command()


if __name__ == "__main__":
    sys.exit(main())
