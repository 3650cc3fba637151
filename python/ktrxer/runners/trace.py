# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer trace`: the routes to a host, the round trip to each router, and the queue that fills under load."""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

from ktrxer.runners import marks, methods, own
from ktrxer.runners.marks import DSCP
from ktrxer.runners.own import Object, maybe, number
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, S, Times, Trial, between
from ktrxer.runners.samples import NotUnderstood, Reading, Samples
from ktrxer.store.columns import HOP_ANSWERS, STAGES
from ktrxer.store.meta import Series

LOADS = ("none", "up", "down", "both")
LOADED_LEAST = 8  # answers of a hop, idle and loaded: fewer have no interval


@dataclass(frozen=True, kw_only=True)
class Routes(Parameters):
    interval_ns: int = 50 * MS  # between repeated probes of a hop
    protocol: Literal["udp", "tcp", "icmp"] = "udp"
    port: int | None = None
    one_route: bool = False
    repeat: int = 3  # probes of each hop of the first route, after the search
    hops: int = 30
    tries: int = 3
    timeout_ns: int = S
    mark: str | None = None
    load: Literal["none", "up", "down", "both"] = "none"  # TCP flows to or from `ktrxer serve`, by the command itself
    load_flows: int = 4
    load_ns: int = 5 * S  # of the repeated probes without the flows, and with them


def validate(p: Routes) -> None:
    methods.check_choice(p.protocol, ("udp", "tcp", "icmp"), "protocol")
    methods.check_choice(p.load, LOADS, "load")
    between("time between repeated probes", p.interval_ns / MS, 1, 60_000, " ms")
    between("repeated probes", p.repeat, 0, 100)
    between("hops", p.hops, 1, 64)
    between("tries", p.tries, 1, 10)
    between("time-out", p.timeout_ns / MS, 0.001, 60_000, " ms")
    between("flows of the load", p.load_flows, 1, 32)
    if p.port is not None:
        between("port", p.port, 1, 65535)
        if p.protocol == "icmp":
            raise RunnerError("ICMP has no ports")
    if p.load != "none":
        between("repeated probes under load", p.load_ns / p.interval_ns, LOADED_LEAST, 600 * S)
    marks.check([p.mark])


def _words(p: Routes, o: Options) -> list[str]:
    words = [o.ktrxer, "trace", p.host or o.host, "--protocol", p.protocol, "--hops", str(p.hops)]
    words += ["--port", str(p.port)] if p.port is not None else []
    words += ["--dscp", str(DSCP[p.mark])] if p.mark is not None else []
    return [*words, *own.sockets(o)]


def command(p: Routes, o: Options, times: Times) -> list[str]:
    words = [*_words(p, o), "--tries", str(p.tries), "--timeout", f"{p.timeout_ns}ns", "--repeat", str(p.repeat)]
    words += ["--interval", f"{p.interval_ns}ns", *(["--one-route"] if p.one_route else [])]
    if p.load != "none":
        words += ["--load", p.load, "--load-flows", str(p.load_flows), "--load-for", f"{p.load_ns}ns", "--server-port", str(o.port)]
        words += ["--token-file", o.token_file] if o.token_file else []
    return own.counted(words, times)


def series(p: Routes, name: str) -> Mapping[Hashable, Series]:
    made: dict[Hashable, Series] = {"hop": Series(0, name, "hop", "ms", klass=p.mark, group="Routes")}
    if p.load != "none":
        made["queue"] = Series(0, f"{name} queue that fills", "range", "ms", group="Routes")
    return made


def trial(p: Routes, o: Options, estimate: bool) -> Trial:
    if p.load != "none":
        return methods.server_trial(p, o, estimate)
    return Trial([*_words(p, o), "--one-route", "--repeat", "0", "--tries", "1", "--timeout", "500ms", "--json"], server=False)


def read(_: Routes, samples: Samples) -> Reading:
    def sample(made: Object) -> None:
        if made.get("kind") != "hop_answer":
            return
        stage, answer = str(made.get("stage")), str(made.get("answer"))
        if stage not in STAGES or answer not in HOP_ANSWERS:
            raise NotUnderstood(f"an answer of type {answer[:20]!r} in stage {stage[:20]!r}")
        samples.add(
            "hop", number(made, "sent_ns") - own.zero(samples), seq=number(made, "number"), hop=number(made, "hop"),
            flow=number(made, "flow"), stage=STAGES.index(stage), answer=HOP_ANSWERS.index(answer), address=_address(made),
            rtt_ns=maybe(made, "rtt_ns"), own_queue_ns=maybe(made, "own_queue_ns"),
        )  # fmt: skip

    def end(made: Object) -> None:
        load = methods.part(made, "load")
        hops, fullest = load.get("hops"), load.get("queue_before_hop")
        if fullest is None or "queue" not in samples.series:
            return
        found = [hop for hop in hops if isinstance(hop, dict) and hop.get("hop") == fullest] if isinstance(hops, list) else []
        if not found:
            raise NotUnderstood("the queue that fills is of a hop that the list does not have")
        delay, error = (found[0].get(name) for name in ("queue_us", "queue_uncertainty_us"))
        if not isinstance(delay, int | float) or not isinstance(error, int | float):
            return
        bounds = {"value": delay, "low": delay - abs(error), "high": delay + abs(error)}
        methods.estimate(samples, "queue", methods.ended(samples, made), bounds, methods.US)

    return own.read(samples, sample, end=end)


def _address(made: Object) -> str:
    """The scope of a link-local address is removed: it names a device of this host."""
    text = str(made.get("from"))[:60].partition("%")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise NotUnderstood(f"an answer from {text!r}") from None


RUNNER = Runner(
    "trace", "routes and round trips by hop by `ktrxer trace`", Routes, validate, command, series, read, own.mild_health,
    own=True, ends_itself=True, trial=trial, timeout_ns=lambda p, _: p.timeout_ns,
)  # fmt: skip
