"""The command ``coapace``, as ``python -m coapace`` and as the script that pip installs."""

import signal
import sys

from coapace import _native


def main() -> int:
    """Runs the command with the arguments of this process, and returns its exit code."""
    # The command has handlers of its own. Python's would only set a flag that nobody reads meanwhile.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command(["coapace", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
