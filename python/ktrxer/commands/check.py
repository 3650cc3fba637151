# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer check`: one command that says whether the line is bloated, where the queue is, and what to do."""

from __future__ import annotations

import argparse
import math
import textwrap
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ktrxer import printed
from ktrxer.arguments import Parser, between, duration, outside
from ktrxer.catalogue import extras
from ktrxer.catalogue.recipe import PlanError, Setting
from ktrxer.commands import run as running
from ktrxer.commands.common import DOUBTFUL, NO_RESULT, USAGE, VALID, command_line, complain, for_option, server_options, stored_options
from ktrxer.run import checks, provenance, timers
from ktrxer.run.schedule import Schedule, make
from ktrxer.runners import RunnerError
from ktrxer.store import StoreError, one_line
from ktrxer.store.reasons import Reason

if TYPE_CHECKING:
    from ktrxer.check.answer import Answer, Here
    from ktrxer.check.blocked import Blocked
    from ktrxer.check.figures import Check, Load
    from ktrxer.store import Run

RESPONSIVENESS = (
    "direction", "goodput_bps", "connections", "interval_ns", "goodput_confidence", "responsiveness_confidence", "rpm_spread", "lag_p99_ms",
    "replaced",
)  # fmt: skip
EXAMPLES = """\
examples:
  ktrxer check                                                  both directions, against the server of the configuration
  ktrxer check --server far --token-file token                  against `ktrxer serve` on the host far
  ktrxer check --download https://example.net/large.iso         the download direction alone, from any web server
  ktrxer check --download URL --upload URL --gateway            both, with probes to the first router alone
Without a server, that of the configuration counts (`ktrxer config`): its host, else its nq. The nq that is shipped
with ktrxer is the server of Apple's networkQuality: a terminal asks before the first use, otherwise --yes is needed.
Nothing is sent to another host that you do not name. Exit status: 0 valid, 1 no result, 2 usage, 3 degraded or
invalid."""

LENGTH_S, NQ_LENGTH_S = 10.0, 20.0  # the draft's stability needs eleven intervals of a second at least
DELAY_S = 5.0
INTERVAL_S, FOREIGN_INTERVAL_S = 0.01, 0.2  # of the probes: to `ktrxer serve`, and to hosts of other people


def parser() -> Parser:
    p = command_line(
        "check", "Measures the line idle, under an upload and under a download, and prints the result in three sentences.", EXAMPLES
    )
    p.add_argument("--server", metavar="HOST", help="the far end, where `ktrxer serve` runs")
    p.add_argument("--download", metavar="URL", help="an object of 1 MB or more on a web server: it is downloaded again and again")
    p.add_argument("--upload", metavar="URL", help="an URL of a web server that takes POST requests of 32 MiB")
    about = "the responsiveness test of the IETF: a server, https://HOST[:PORT], or the URL of its configuration"
    p.add_argument("--nq", metavar="URL", help=about)
    looks = "interval of the responsiveness test: 1s (default, as versions of the draft before 09 have it), or 5s, with --for 60s"
    p.add_argument("--nq-interval", type=duration, default=1.0, metavar="D", help=looks)
    p.add_argument("--target", metavar="HOST", help="the host whose round trip is measured (the host of --server or of the URL)")
    p.add_argument("--gateway", action="store_true", help="measure the round trip to the first router of this host, and nothing beyond it")
    p.add_argument("--hops", type=between(0, 8), default=3, metavar="N", help="also probe the first N routers on the path, 0 to 8 (3)")
    for_option(p, "length of each load, 5s to 5m (10s; with --nq 20s)")
    p.add_argument("--delay", type=duration, metavar="D", help="idle time before the first load, 4s to 1m (5s)")
    p.add_argument("--flows", type=between(1, 32), default=4, metavar="N", help="connections of each load, 1 to 32 (4)")
    every = "time between probes (10ms to `ktrxer serve`, or more so that the probes take 1 %% of the path's rate; else 200ms)"
    p.add_argument("-i", "--interval", type=duration, metavar="D", help=every)
    p.add_argument("--ca-file", default="", metavar="FILE", help="certificates of an authority that this host does not trust, for https")
    p.add_argument("--yes", action="store_true", help="use the server that is shipped with ktrxer without a question")
    server_options(p)
    stored_options(p)
    results = p.add_mutually_exclusive_group()
    results.add_argument("--json", action="store_true", help="print one object (docs/schema/check.schema.json)")
    results.add_argument("--jsonl", action="store_true", help="print one JSON object a line: start, the figures of each second, end")
    p.add_argument("-q", "--quiet", action="store_true", help="print the three sentences alone")
    return p


def main(arguments: list[str]) -> int:
    from ktrxer.check.default import NotAgreed

    given = parser().parse_args(arguments)
    try:
        return _check(given, arguments)
    except (PlanError, RunnerError, NotAgreed) as error:
        complain("check", str(error))
        return USAGE
    except (checks.CheckError, StoreError) as error:
        complain("check", str(error))
        return NO_RESULT


def _usage(given: argparse.Namespace) -> None:
    from ktrxer.check.default import NONE, agree, default

    found = None if given.server or given.nq or given.download or given.upload else default()
    if found is not None:
        given.server, given.nq = found.server or None, found.nq or None
    given.whose = found.stated if found is not None else ""
    urls = [url for url in (given.nq, given.download, given.upload) if url]
    if bool(given.server) + bool(given.nq) + bool(given.download or given.upload) > 1:
        raise PlanError("--server and --nq make both loads: give one of them, or --download and --upload")
    if not given.server and not urls:
        raise PlanError(NONE)
    for url in urls:
        _host_in(url)
    given.stated = given.length, given.delay
    given.length = given.length if given.length is not None else NQ_LENGTH_S if given.nq else LENGTH_S
    given.delay = given.delay if given.delay is not None else DELAY_S
    if given.gateway and (given.target or given.server):
        raise PlanError("--gateway goes with --nq, --download and --upload, and without --target")
    for name, value, low, high, bounds in (
        ("--for", given.length, 5, 300, "5s to 5m"),  # shorter ones have no interval of the median
        ("--delay", given.delay, 4, 60, "4s to 1m"),
        ("--interval", given.interval or INTERVAL_S, 0.01, 1, "10ms to 1s"),
        ("--nq-interval", given.nq_interval, 0.1, 60, "100ms to 1m"),
    ):
        if not low <= value <= high:
            raise PlanError(f"{name}: {outside(f'{value:g}s', value < low, bounds)}")
    if found is not None:
        agree(found, given.yes)


def _host_of(given: argparse.Namespace) -> str:
    """The host of the round trips."""
    if given.target or given.server:
        return str(given.target or given.server)
    return _host_in(given.nq or given.download or given.upload)


def _host_in(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if not host:
        raise PlanError(f"{one_line(url, 200)}: not an URL of a server: give http://HOST/PATH or https://HOST/PATH")
    return host


def _port_in(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _word(value: bool) -> str:
    return "yes" if value else "no"


def _check(given: argparse.Namespace, arguments: list[str]) -> int:
    from ktrxer.check import blocked
    from ktrxer.check import path as ways
    from ktrxer.check.plan import PLOTS, TEST

    _usage(given)
    given.host = _host_of(given)
    given.precise, given.label, given.metadata, given.no_extras, given.name, given.source = False, [], "small", False, None, None
    options = running.options_of(given)
    checks.directory(given.directory, 0)
    address = checks.resolve(given.host, given.family, given.port)
    try:
        here, router = ways.route(address)
    except (ways.StateError, OSError) as error:
        raise checks.CheckError(f"{given.host}: {error}; is this host connected?") from None
    routers: list[str] = []
    note = ""
    if given.gateway:
        if router is None:
            raise checks.CheckError(f"{given.host} is on this host's own network: no router is before it; leave out --gateway")
        given.host = address = router
    else:
        routers, note = ways.traced(options, address, given.hops)
    port = options.port if given.server else _port_in(given.nq or given.download or given.upload)
    # The port is not that of another target.
    way = timers.Handshake(address, port) if not (given.gateway or given.target) else None
    answers, why = ways.answering(options, [address, *routers], way)
    handshakes = not answers[address] and not given.server and not given.target and not given.gateway
    if not answers[address] and not given.server and not handshakes:
        if why:
            raise checks.CheckError(f"{why}; or leave out --target and --gateway")
        remedy = "name one that does by --target, for example the first router of your provider, or leave out --target and --gateway"
        raise checks.CheckError(f"{given.host} ({address}) does not answer ICMP echo requests, so its round trip is not known; {remedy}")
    if why and routers:
        note = f"the first routers are not measured: {why}"
    routers = [one for one in routers if answers[one]]
    interval = given.interval or (INTERVAL_S if given.server else FOREIGN_INTERVAL_S)
    setting = Setting(given.host, given.length, given.delay, round(interval * 1e9), timeout_ns=4 * 10**9)
    parameters = {
        "server": _word(bool(given.server)), "download": given.download or "", "upload": given.upload or "",
        "nq": given.nq or "", "nq_interval": str(given.nq_interval), "ca_file": given.ca_file,
        "flows": str(given.flows), "hops": ",".join(routers), "pings": _word(answers[address]),
        "handshakes": str(port) if handshakes else "0",
    }  # fmt: skip
    default, missing = extras.every(replace(options, host=address))

    def planned() -> Schedule:
        return make(extras.beside(TEST.make(setting, parameters), [], default), setting, options)

    schedule = planned()
    pins = checks.several(schedule)
    for one in checks.others(pins):
        complain("check", one)
    checks.pin(schedule, pins)
    checks.directory(given.directory, checks.rows_of(schedule))
    gap = blocked.Blocked()
    with checks.places_of(schedule) as places:
        estimate = bool(given.server) and given.interval is None
        try:
            rate = checks.far_end(schedule, estimate)
        except checks.CheckError:
            trip = way.trip_ns if way is not None else 0
            found = blocked.found(replace(options, host=address), address, port, bool(given.server), answers[address], why, trip)
            if found is None:
                raise
            if not (answers[address] or found.load or found.udp):
                raise checks.CheckError("; ".join(found.traffic)) from None
            gap, rate = found, None
            alone = bool(given.server) and not gap.udp and not answers[address]
            parameters |= {"udp": _word(gap.udp), "load": _word(gap.load)} | ({"handshakes": str(port)} if alone else {})
            schedule = checks.pin(planned(), pins)
            rate = checks.far_end(schedule, estimate)
        if not answers[address]:
            gap = gap.with_icmp(address, why, bool(given.server))
        if estimate:
            setting = replace(setting, probe_interval_ns=checks.light(schedule, setting.probe_interval_ns, rate))
        setting, pause = _for_trip(given, setting, schedule.trip_ns)
        parameters |= {"pause": f"{pause:g}"}
        tried = schedule
        schedule = checks.pin(planned(), pins)
        schedule.take_over(tried)
        _announce(given, schedule, gap)
        meta = running.describe(TEST, setting, parameters, given, arguments)
        meta.command = ["ktrxer", "check", *arguments]
        meta.plots = list(PLOTS)
        meta.settings["rate_estimate_bps"] = rate
        if missing:
            meta.metadata["not_collected"] = missing
        settings = {"routers": routers, "note": note, "server": given.whose, "blocked": list(gap.traffic)}
        meta.settings["check"] = settings | provenance.plain(here)
        stored = running.measure(given, meta, schedule, address, places).path
    return report(stored, given, here, note, gap)


def _for_trip(given: argparse.Namespace, setting: Setting, trip_ns: int) -> tuple[Setting, float]:
    """The times that were not stated, and the pause between the loads, for a path with this round trip."""
    from ktrxer.check.plan import PAUSE_S

    length, delay = given.stated
    setting = replace(
        setting,
        length_s=timers.load_s(setting.length_s, trip_ns) if length is None else setting.length_s,
        delay_s=timers.idle_s(setting.delay_s, trip_ns) if delay is None else setting.delay_s,
        timeout_ns=timers.lost_ns(setting.timeout_ns, trip_ns),
    )
    return setting, timers.pause_s(PAUSE_S, trip_ns)


def _announce(given: argparse.Namespace, schedule: Schedule, gap: Blocked) -> None:
    if not (given.quiet or given.json or given.jsonl):
        if not gap.load:
            print(textwrap.fill(f"No load is possible: {'; '.join(gap.traffic)}.", 100, break_long_words=False, break_on_hyphens=False))
        print(f"Measuring for {schedule.length_ns / 1e9:.0f} s: stop other traffic, so that the line is idle at first.", flush=True)


def report(stored: Path, given: argparse.Namespace, here: Here, note: str = "", gap: Blocked | None = None) -> int:
    """Print the answer of a stored run."""
    from ktrxer.check import answer, figures
    from ktrxer.store import open_run

    run = open_run(stored)
    check = figures.of(run)
    reasons = run.meta.reasons
    traffic = gap.traffic if gap is not None else ()
    whose = str(settings.get("server") or "") if isinstance(settings := run.meta.settings.get("check"), dict) else ""
    if gap is not None and not gap.load:
        check, made = None, answer.unknown(f"no load is possible, and {figures.idle_alone(run)}", traffic)
    elif check is None or run.meta.verdict == "invalid":
        none = "no probe was answered, or no load transferred data"
        made = answer.unknown(f"the measurement is {run.meta.verdict}, for the reasons below" if reasons else none, traffic)
        check = None
    else:
        made = answer.of(check, here, traffic)
    if given.json or given.jsonl:
        more = {"blocked": list(traffic), "responsiveness": _ends(run), "server": whose or None}
        found = as_json(stored, run.meta.verdict, reasons, made, check, note) | more
        printed.show(printed.end(run.meta.command, found, line=given.jsonl), line=given.jsonl)
    else:
        if whose:
            print(textwrap.fill(whose, 100, break_long_words=False, break_on_hyphens=False))
        for sentence in made.sentences:
            print(textwrap.fill(sentence, 100, break_long_words=False, break_on_hyphens=False))
        for sentence in responsiveness_lines(run):
            print(sentence)
        if note and not given.quiet:
            print(f"({note})")
        if check is not None and check.failed:
            print(f"not computed: {one_line('; '.join(check.failed), 400)}")
        if run.meta.verdict != "valid":
            print(f"verdict: {run.meta.verdict}", *(f"  - {one_line(one.text, 1000)}" for one in reasons), sep="\n")
        if not given.quiet:
            print(f"stored; `ktrxer summary`, `ktrxer report` and `ktrxer plot` show it:\n{stored}")
    if check is None:
        return DOUBTFUL if run.meta.verdict == "invalid" and run.meta.accounts.get("measured", True) else NO_RESULT
    return VALID if run.meta.verdict == "valid" else DOUBTFUL


def _ends(run: Run) -> list[dict[str, Any]]:
    """The results of the responsiveness tests, as their processes printed them."""
    found = [runner.end for runner in run.meta.runners if runner.kind == "http_rpm" and runner.end is not None]
    return [
        {name: end.get(name) for name in RESPONSIVENESS} | (made if isinstance(made := end.get("responsiveness"), dict) else {})
        for end in found
    ]


def responsiveness_lines(run: Run) -> list[str]:
    made = []
    for end in _ends(run):
        value, spread = end.get("rpm"), end.get("rpm_spread")
        if isinstance(value, int | float):
            between = f", {spread[0]:.0f} to {spread[1]:.0f} in the last intervals" if isinstance(spread, list) and len(spread) == 2 else ""
            sure = f"confidence {end.get('responsiveness_confidence')}"
            made.append(f"responsiveness {end.get('direction')}: {value:.0f} round trips a minute, {end.get('rating')} ({sure}{between})")
    return made


def as_json(stored: Path, verdict: str | None, reasons: list[Reason], made: Answer, check: Check | None, note: str) -> dict[str, Any]:
    from ktrxer.check.figures import LEVEL, scale

    result: dict[str, Any] = {
        "file": str(stored), "verdict": verdict, "reasons": [one.as_json() for one in reasons],
        "answer": list(made.sentences),
        "bloated": made.bloated, "note": note, "target": None, "probes": None, "idle_ms": None, "grade": None, "level": LEVEL,
        "loads": [], "failed": [],
        "outages": [], "byte_outages": [],
    }  # fmt: skip
    if check is None:
        return result
    letter, low, high = check.grades
    idle = check.idle
    return result | {
        "target": check.target, "probes": check.probes,
        "idle_ms": {"p50": _finite(idle.p50), "low": _finite(idle.p50_low), "high": _finite(idle.p50_high), "p99": _finite(idle.p99)},
        "grade": {"letter": letter, "low": low, "high": high, "added_ms": _finite(check.added_ms), "scale": scale()},
        "loads": [_load(load, made) for load in check.loads], "failed": list(check.failed),
        "outages": [asdict(one) for one in check.outages], "byte_outages": [asdict(one) for one in check.byte_outages],
    }  # fmt: skip


def _load(load: Load, made: Answer) -> dict[str, Any]:
    queue, shaper = load.queue, made.shapers_mbps.get(load.direction)
    return {
        "direction": load.direction,
        "rate_bps": round(load.rate_mbps * 1e6) if load.rate_mbps is not None else None,
        "p50_ms": _finite(load.loaded.p50), "p99_ms": _finite(load.loaded.p99),
        "lost": load.loaded.lost, "probes": load.loaded.count + load.loaded.lost,
        "added_ms": _finite(load.added_ms), "low_ms": _finite(load.low_ms), "high_ms": _finite(load.high_ms),
        "queue": None if queue is None else {"place": queue.place, "share": queue.share, "before_hop": queue.hop, "qdisc": queue.qdisc},
        "hops": [{"hop": h.number, "address": h.address, "idle_ms": h.idle_ms, "added_ms": h.added_ms} for h in load.hops],
        "levels": [{"from_s": one.from_s, "to_s": one.to_s, "rate_bps": round(one.median * 1e6)} for one in load.levels],
        "shaper_bps": round(shaper * 1e6) if shaper is not None and made.bloated != "no" else None,
    }  # fmt: skip


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
