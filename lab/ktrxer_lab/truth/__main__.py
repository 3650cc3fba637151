# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer truth` without the experiments: `python3 -m ktrxer_lab.truth`, or `ktrxer-truth` of the installed distribution."""

from __future__ import annotations

import sys
from functools import partial

from ktrxer_lab import __main__
from ktrxer_lab.truth.command import main

program = partial(__main__.program, main)

if __name__ == "__main__":
    sys.exit(program())
