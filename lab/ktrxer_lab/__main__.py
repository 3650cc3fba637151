# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer lab` without the experiments: `python3 -m ktrxer_lab`, or `ktrxer-lab` of the installed distribution."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ktrxer_lab.command import main


def program(command: Callable[[list[str]], int] = main) -> int:
    """The script of the installed distribution."""
    try:
        return command(sys.argv[1:])
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter writes what is left of the output at its end
        return 141


if __name__ == "__main__":
    sys.exit(program())
