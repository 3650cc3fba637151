# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer note`: title and note of a stored run."""

from __future__ import annotations

from pathlib import Path

from ktrxer.arguments import Parser
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, attempt, command_line, complain
from ktrxer.commands.opening import is_flent
from ktrxer.store import one_line

EXAMPLES = """\
examples:
  ktrxer note rrul.ktrxer 'the neighbour was downloading'
  ktrxer note rrul.ktrxer --title 'cake, 20 Mbit/s'
  ktrxer note rrul.ktrxer --remove
The note is the label `note`, which `ktrxer run --label note=TEXT` sets, too: a column of `ktrxer runs`."""


def parser() -> Parser:
    p = command_line("note", "Shows or changes the title and the note of a stored run. Its samples stay as they are.", EXAMPLES)
    p.add_argument("file", type=Path, metavar="FILE", help="NAME.ktrxer")
    p.add_argument("text", nargs="?", metavar="TEXT", help="the note; without it and the options: show both")
    p.add_argument("--title", metavar="TEXT", help="the title")
    p.add_argument("--remove", action="store_true", help="remove the note")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    if is_flent(given.file):
        complain("note", f"{given.file}: a data file of Flent is not changed; `ktrxer import` makes a run of it")
        return NO_RESULT

    if given.remove and given.text is not None:
        complain("note", "--remove: a note is given, too")
        return USAGE

    def work() -> None:
        from ktrxer.store import notes

        made = notes.edit(given.file, given.title, "" if given.remove else given.text)
        labels = made.metadata.get("labels") or {}
        print(f"title: {one_line(made.title)}" if made.title else "no title")
        print(f"note: {one_line(str(labels[notes.NOTE]))}" if notes.NOTE in labels else "no note")

    return attempt("note", given.file, work) or VALID
