# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pages of a list by curl, one after the other, each by a new connection: the time for name, connection, TLS, first byte, and all of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ktrxer.runners import tools
from ktrxer.runners.runner import Options, Parameters, Runner, RunnerError, S, Times, Tool, between, ends_well
from ktrxer.runners.samples import Line, Samples, by_line
from ktrxer.store import one_line
from ktrxer.store.meta import Series

PAGES_MOST = 1000
TOOL = Tool("curl", "curl", ["--version"], r"curl (\d+\.\d+\.\d+)", "7.75")
PHASES = ("dns", "connect", "tls", "first byte", "load")
FAILED = 400  # status codes from here on
# The page that is fetched moves to the end of the list.
FETCH = """page=$1; shift; set -- "$@" "$page"; printf '%s ' "$now"; {curl} -w '%{{json}}\\n' --url "$page" || :"""


@dataclass(frozen=True, kw_only=True)
class Pages(Parameters):
    pages: tuple[str, ...] = ()  # URLs; none: / of the host
    interval_ns: int = S  # from the beginning of one fetch to the next
    timeout_ns: int = 10 * S
    version: Literal["", "1.1", "2"] = ""  # of HTTP
    group: str = "HTTP latency"


def validate(p: Pages) -> None:
    tools.interval(p.interval_ns, 50, 3600)
    between("the time-out", p.timeout_ns / S, 0.1, 300, " s")
    between("pages", len(p.pages), 0, PAGES_MOST)
    for page in p.pages:
        url(page)


def url(text: str) -> None:
    tools.word("the page", text)
    if not text.lower().startswith(("http://", "https://")):
        raise RunnerError(f"the page {text[:60]!r} is no URL: it must begin with http:// or https://")


def curl(o: Options, timeout_ns: int, more: Sequence[str] = ()) -> str:
    """The command up to the page, for a shell. The user's ~/.curlrc is not read. No brackets of a URL are a range. No proxy of the
    environment is used: its path is not the one that is measured."""
    words = ["curl", "-q", "-s", "-g", "--noproxy", "*", "-o", "/dev/null", "--proto", "=http,https", "--max-time", f"{timeout_ns / S:g}"]
    return shlex.join([*words, *tools.family(o), *tools.option("--interface", o.source), *more])


def _pages(p: Pages, o: Options) -> tuple[str, ...]:
    return p.pages or (f"http://{f'[{host}]' if ':' in (host := p.host or o.host) else host}/",)


def command(p: Pages, o: Options, times: Times) -> list[str]:
    fetch = FETCH.format(curl=curl(o, p.timeout_ns, [f"--http{p.version}"] if p.version else []))
    return ["sh", "-c", tools.repeat(fetch), "sh", str(p.interval_ns), str(times.length_ns), *_pages(p, o)]


def series(p: Pages, name: str) -> Mapping[Hashable, Series]:
    phases = PHASES if any(page.lower().startswith("https:") for page in p.pages) else tuple(one for one in PHASES if one != "tls")
    return {phase: Series(0, f"{name} {phase}", "value", "ms", group=p.group) for phase in phases}


def line(_: Pages, samples: Samples, line: Line) -> None:
    at, text = line.text.split(" ", 1)
    made, at_ns = json.loads(text), samples.clock.real(int(at))
    samples.memory["fetches"] = samples.memory.get("fetches", 0) + 1
    if made["exitcode"] != 0 or made["http_code"] >= FAILED:
        samples.memory["failed"] = samples.memory.get("failed", 0) + 1
        samples.event(at_ns, "page_failed", text := one_line(f"{made['url_effective']}: {made['errormsg'] or made['http_code']}", 300))
        samples.memory.setdefault("first", text)
        return
    for phase, seconds in phases(made).items():
        samples.value(phase, at_ns, seconds * 1000)


def phases(made: dict[str, Any]) -> dict[str, float]:
    """The length of each, in seconds; `load` is all of them and the transfer. curl reports times since the beginning."""
    name, connect, tls, first = (made[f"time_{what}"] for what in ("namelookup", "connect", "appconnect", "starttransfer"))
    found = {"dns": name, "connect": connect - name, "first byte": first - max(connect, tls), "load": made["time_total"]}
    return found | ({"tls": tls - connect} if tls > 0 else {})


def end(_: Pages, samples: Samples) -> None:
    fetches, failed = samples.memory.get("fetches", 0), samples.memory.get("failed", 0)
    samples.result = {"fetches": fetches, "failed": failed}
    if failed:
        samples.reason("fetches_failed", failed=failed, fetches=fetches, error=str(samples.memory["first"]))


RUNNER = Runner(
    "http", "pages by curl", Pages, validate, command, series, by_line(line, end), ends_well, tool=TOOL,
    listeners=lambda p, o: tools.web_servers(_pages(p, o)))  # fmt: skip
