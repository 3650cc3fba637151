# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer view`: starts the explorer of a directory of runs."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer import printed
from ktrxer.arguments import any_port
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, command_line, complain, force_option, show

if TYPE_CHECKING:
    from ktrxer.explore.answers import Answers
    from ktrxer.explore.server import Server

EXAMPLES = """\
examples:
  ktrxer view runs                     prints an address: open it in a browser of this machine
  ktrxer view runs --port 8080         the same port each time
  ktrxer view runs --view 'plot=ping_cdf&run=fifo.ktrxer&run=fq_codel.ktrxer'
  ktrxer view runs --export runs.html --view column=settings/cc   one page that needs no server, for an archive
The explorer listens only on 127.0.0.1 and reads only runs in the directory. Its address contains a token that is new at each start.
Over ssh: `ssh -L 8080:127.0.0.1:8080 HOST ktrxer view runs --port 8080`. Ctrl-C ends the explorer."""


def parser() -> argparse.ArgumentParser:
    parser = command_line(
        "view", "Starts the explorer: a page on this machine with a table of all runs of a directory, and their plots.", EXAMPLES
    )
    parser.add_argument("directory", nargs="?", type=Path, default=Path(), metavar="DIR", help="directory of runs (default: this one)")
    parser.add_argument("-p", "--port", type=any_port, default=0, metavar="PORT", help="TCP port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--view", default="", metavar="TEXT", help="what the page shows at first: the part of its address behind `#`")
    parser.add_argument("--export", type=Path, metavar="SITE.html", help="write the table and the plots of each run as one page, and end")
    force_option(parser)
    parser.add_argument("--no-cache", action="store_true", help="compute all figures anew")
    parser.add_argument("--json", action="store_true", help="print the address, or the page that was written, as a JSON object")
    return parser


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    if not given.directory.is_dir():
        why = "not a directory: a single run is shown by `ktrxer report`" if given.directory.exists() else os.strerror(errno.ENOENT)
        complain("view", f"{given.directory}: {why}")
        return NO_RESULT
    if given.export is not None and given.port:
        complain("view", "--port is for the server; --export writes a page that needs none")
        return USAGE
    if given.export is not None and given.export.suffix != ".html":
        complain("view", f"--export {given.export}: the page must be called NAME.html")
        return USAGE
    if given.export is not None and given.export.exists() and not given.force:
        complain("view", f"{given.export}: exists already; --force replaces it")
        return NO_RESULT
    from ktrxer.analyse import cache
    from ktrxer.explore.answers import Answers
    from ktrxer.explore.library import Library
    from ktrxer.explore.server import LOOPBACK, Server
    from ktrxer.view import page

    try:
        answers = Answers(Library(given.directory, None if given.no_cache else cache.file()))
        if given.export is not None:
            return _export(given, answers)
        server = Server(given.port, answers, page.explorer())
    except page.PageError as error:
        complain("view", str(error))
        return NO_RESULT
    except OSError as error:
        remedy = "; give another --port, or no --port for a free one" if error.errno in (errno.EADDRINUSE, errno.EACCES) else ""
        complain("view", f"{LOOPBACK} port {given.port}: the explorer cannot listen there: {error.strerror}{remedy}")
        return NO_RESULT
    address = server.address(_without_token(given.view))
    if given.json:
        printed.show({"address": address, "directory": str(given.directory)}, line=True)
    else:
        print(address, flush=True)
    threading.Thread(target=answers.warm, daemon=True).start()
    _serve(server)
    return VALID


def _export(given: argparse.Namespace, answers: Answers) -> int:
    """PageError: the page of the explorer is not built."""
    from ktrxer.explore import site
    from ktrxer.explore.answers import Refused
    from ktrxer.explore.library import Unknown
    from ktrxer.view.arguments import ViewError, write

    view, absent = _without_token(given.view), []
    try:
        try:
            text, problems = site.build(answers, view)
        except Refused as error:
            if not (absent := error.columns):
                raise
            text, problems = site.build(answers, site.without(view, absent))
        data = text.encode("utf-8", "replace")
        write(given.export, [], given.force, lambda part: part.write_bytes(data))
    except (Refused, Unknown, ViewError) as error:
        complain("view", str(error))
        return NO_RESULT
    if absent:
        columns, them = ("columns", "them") if len(absent) > 1 else ("column", "it")
        complain("view", f"exported without the {columns} {', '.join(absent)}: no run has {them}")
    for problem in problems:
        complain("view", f"exported without plots: {problem}")
    made = {"file": str(given.export), "bytes": len(data), "without_plots": problems, "without_columns": absent}
    if given.json:
        printed.show(made, line=True)
    else:
        show(given.export)
    return VALID


def _without_token(view: str) -> str:
    """A copied link contains the token of an explorer that has ended."""
    return "&".join(part for part in view.rpartition("#")[2].split("&") if part and not part.startswith("token="))


def _serve(server: Server) -> None:
    """Serves until SIGINT or SIGTERM."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    stop.wait()
    server.shutdown()
    server.server_close()
