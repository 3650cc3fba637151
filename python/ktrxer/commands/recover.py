# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer recover`: closes what a crash, a kill or a full disk has left open."""

from __future__ import annotations

from ktrxer.commands.common import BAD, VALID, Parser, complain
from ktrxer.store import StoreError


def parser() -> Parser:
    p = Parser("recover", "Closes a run that was cut off: NAME.ktrxer.part becomes NAME.ktrxer, with all that was synced (each second).")
    p.add_argument("parts", nargs="+", metavar="NAME.ktrxer.part", help="the directory that `ktrxer run` left")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    from ktrxer.run.closing import close
    from ktrxer.store import open_run, recover

    status = VALID
    for part in given.parts:
        try:
            path = recover(part, close)
        except (StoreError, OSError) as error:
            complain("recover", str(error))
            status = BAD
            continue
        print(f"{path}: {open_run(path).meta.reasons[0]}")
    return status
