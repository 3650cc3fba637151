# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer recover`: closes what a crash, a kill or a full disk has left open."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ktrxer.arguments import Parser
from ktrxer.commands.common import VALID, attempt, command_line
from ktrxer.store import one_line


def parser() -> Parser:
    p = command_line(
        "recover", "Closes a run that was cut off: NAME.ktrxer.part becomes NAME.ktrxer, with all that was synced (each second)."
    )
    p.add_argument("parts", nargs="+", type=Path, metavar="NAME.ktrxer.part", help="the directory that `ktrxer run` left")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    status = VALID
    for part in given.parts:
        status = max(status, attempt("recover", part, partial(_recover, part)))
    return status


def _recover(part: Path) -> None:
    from ktrxer.run.closing import close
    from ktrxer.store import open_run, recover

    path = recover(part, close)
    print(one_line(f"{path}: {open_run(path).meta.reasons[0].text}"))
