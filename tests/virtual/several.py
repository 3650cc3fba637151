# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs several commands of `ktrxer`, one after another, in forks of one process that has imported their packages once.

    several.py FILE      JSON: a list of lists of words

The current folder gets N.out and N.err of each, and `statuses`, a list in JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import ktrxer.cli
import ktrxer.commands.run
import ktrxer.run.session
import ktrxer.summary.figures


def one(words: list[str], name: str) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for descriptor, end in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{name}.{end}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
    status = 125
    try:
        status = ktrxer.cli.main(words)
    except SystemExit as end_of_it:
        status = end_of_it.code if isinstance(end_of_it.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


wanted = json.loads(Path(sys.argv[1]).read_text())
Path("statuses").write_text(json.dumps([one(words, str(number)) for number, words in enumerate(wanted)]))
