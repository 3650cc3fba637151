# SPDX-License-Identifier: MIT OR Apache-2.0
"""The client of the responsiveness test of draft-ietf-ippm-responsiveness, in one direction; statistics/rpm.py has its rules.

It runs as a process of a run (runners/http_rpm.py) and prints JSON objects a line: samples of bytes and of probes, events of intervals, and
one `end` object. It follows no redirection and connects to the host of the configuration alone."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import os
import random
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import h2.exceptions

from ktrxer.arguments import host_fault
from ktrxer.http import nq
from ktrxer.http.client import WAIT_S, Answer, Client, NqError, Target, Unprocessed, connected, path_of, refused, target_of, text_of
from ktrxer.http.load import emit, ns, parser
from ktrxer.statistics.rpm import Parameters, Probes, Ramp, Rpm, pairs_each_second
from ktrxer.store.reasons import Reason, as_json, reason

S = 10**9
LAG_NS = 20_000_000  # between two measurements of this program's own delay
LAG_SHARE = 0.1  # of a trimmed mean: if this program's delay is larger, the figure is doubtful
KINDS = ("tcp", "tls", "http", "self")
TRIAL_BYTES = 1000
USELESS_MOST = 3  # and one for each connection, because a server that is loaded anew ends all of them at once


@dataclass
class Test:
    """One direction."""

    way: str
    config: nq.Config
    target: Target
    address: tuple[int, Any]
    context: ssl.SSLContext
    emit: Callable[[dict[str, Any]], None]
    sample_ns: int = S // 5
    ramp: Ramp = field(default_factory=Ramp)
    loads: list[Client] = field(default_factory=list)
    leaving: list[Client] = field(default_factory=list)  # after GOAWAY: they load until another connection does
    replaced: int = 0
    useless: int = 0  # of those that were replaced: one after the other, without an answer to a probe on a connection of the load
    found: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    lags_ns: list[int] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    counted: dict[Client, int] = field(default_factory=dict)
    moved_before: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    growing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, length_ns: int) -> None:
        """The result is that of the interval in which rate and responsiveness are stable. The load goes on to its planned
        end, because other probes of the run need the load."""
        begin = time.monotonic_ns()
        self._task(self._samples())
        self._task(self._lag())
        self._task(self._probes())
        await self._grow()
        number = 0
        while not self.over.is_set():
            number += 1
            due = begin + number * self.ramp.p.id_ns
            if due > begin + length_ns:
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), max(0, due - time.monotonic_ns()) / S)
            if self.over.is_set():
                break
            total = self.moved()
            probes = Probes(*(tuple(self.found[kind]) for kind in KINDS))
            self.found = {kind: [] for kind in KINDS}
            if self.ramp.stage != "done":
                self.ramp.interval(total - self.moved_before, probes)
                self._emit_interval()
                self._task(self._grow())
            self.moved_before = total
        self.emit(self.sample())
        self.stop()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def _emit_interval(self) -> None:
        ramp = self.ramp
        newest = ramp.results[-1] if ramp.results else None
        self.emit({
            "type": "event", "name": "rpm_interval", "time_ns": time.monotonic_ns(), "stage": ramp.stage, "connections": len(self.loads),
            "goodput_bps": round(ramp.averages[-1]), "rpm": round(newest.rpm) if newest is not None else None,
        })  # fmt: skip

    def stop(self) -> None:
        self.over.set()
        for task in self.tasks:
            task.cancel()
        for client in [*self.loads, *self.leaving]:
            client.on_close = None
            client.close()

    def abort(self, failure: str) -> None:
        """"If at any point one of these connections terminates with an error, the test should be aborted.\""""
        if not self.over.is_set():
            self.reasons.append(reason("rpm_aborted", error=failure))
            self.over.set()

    def moved(self) -> int:
        """Bytes of all loads: of received bodies, or acknowledged by the far kernel."""
        for client in [*self.loads, *self.leaving]:
            count = client.received if self.way == "down" else client.kernel()[0]
            self.counted[client] = max(count, self.counted.get(client, 0))
        return sum(self.counted.values())

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _grow(self) -> None:
        """One after the other: a connection may take longer than an interval, whose successor calls this again."""
        async with self.growing:
            while len(self.loads) < self.ramp.connections and not self.over.is_set():
                await self._add_load()

    async def _add_load(self) -> None:
        try:
            client = (await connected(self.target, self.address, self.context)).client
        except (OSError, NqError) as error:
            self.abort(f"{self.target.authority}: connection {len(self.loads) + 1} of the load failed: {text_of(error)}")
            return
        client.on_close = lambda: self.abort(
            f"{self.target.authority}: a connection of the load ended: {client.lost or 'the server closed it'}"
        )
        client.on_leave = lambda: self._left(client)
        self.loads.append(client)
        if client.leaving:
            self._left(client)
        client.load(self.way, path_of(self.config.large if self.way == "down" else self.config.upload))

    def _left(self, old: Client) -> None:
        """The server takes no more requests on a connection: another one takes its place."""
        old.on_close = old.on_leave = None
        self.loads.remove(old)
        self.leaving.append(old)
        self.replaced += 1
        self.useless += 1
        if self.useless > len(self.loads) + USELESS_MOST:
            self.abort(f"{self.target.authority}: no probe beside a load is answered: {Unprocessed()}")
        self._task(self._replace(old))

    async def _replace(self, old: Client) -> None:
        """The old connection loads until the other one does, and its probes end."""
        await self._grow()
        if old.waiting:
            await asyncio.wait(list(old.waiting.values()), timeout=WAIT_S)
        self.moved()
        self.leaving.remove(old)
        old.close()

    # ------------------------------------------------------------------------------------------------------------ probes

    async def _probes(self) -> None:
        """Foreign and self probes by turns, at equal distances."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        foreign = True
        while not self.over.is_set():
            self._task(self._foreign() if foreign else self._self())
            foreign = not foreign
            due = max(due + 0.5 / pairs_each_second(self.ramp.rate_bps, self.ramp.p), loop.time())
            await asyncio.sleep(max(0.0, due - loop.time()))

    def _result(self, kind: str, ms: float, at_ns: int) -> None:
        self.found[kind].append(ms)
        self.emit({"type": "sample", "kind": "rpm_probe", "probe": kind, "time_ns": at_ns, "ms": None if math.isinf(ms) else round(ms, 6)})

    async def _foreign(self) -> None:
        begun = time.monotonic_ns()
        try:
            opened = await connected(self.target, self.address, self.context)
        except (OSError, NqError):
            for kind in ("tcp", "tls", "http"):
                self._result(kind, math.inf, begun)
            return
        self._result("tcp", opened.tcp_ms, begun)
        self._result("tls", opened.tls_ms, begun)
        try:
            with contextlib.suppress(Unprocessed):
                self._result("http", await self._small(opened.client), begun)
        finally:
            opened.client.close()

    async def _self(self) -> None:
        """Probes one of the connections of the load, all with the same probability."""
        if self.loads:
            begun = time.monotonic_ns()
            with contextlib.suppress(Unprocessed):  # no probe: the server has not seen the request
                ms = await self._small(random.choice(self.loads))
                self.useless = self.useless if math.isinf(ms) else 0
                self._result("self", ms, begun)

    async def _small(self, client: Client) -> float:
        begun = time.monotonic_ns()
        try:
            answer = await asyncio.wait_for(client.requested("GET", path_of(self.config.small)), WAIT_S)
        except Unprocessed:
            raise
        except (OSError, h2.exceptions.H2Error):
            return math.inf
        if answer.status != 200:
            self.abort(f"{self.target.authority}: the server answers a probe with status {answer.status}")
            return math.inf
        return (time.monotonic_ns() - begun) / 1e6

    # ----------------------------------------------------------------------------------------------------- this program

    async def _lag(self) -> None:
        """Measures how late this program's event loop is: each measured time may contain that delay."""
        while True:
            due = time.monotonic_ns() + LAG_NS
            await asyncio.sleep(LAG_NS / S)
            self.lags_ns.append(max(0, time.monotonic_ns() - due))

    async def _samples(self) -> None:
        while True:
            self.emit(self.sample())
            await asyncio.sleep(self.sample_ns / S)

    def sample(self) -> dict[str, Any]:
        far: dict[str, Any] = {"end": "local"}
        if self.way == "up":
            far = {"end": "remote", "bound_ns": max((client.kernel()[1] for client in self.loads), default=0)}
        return {"type": "sample", "kind": "bytes", "flow": 0, "time_ns": time.monotonic_ns(), "bytes": self.moved()} | far

    def end(self) -> dict[str, Any]:
        ramp, result = self.ramp, self.ramp.result
        lag_ms = sorted(self.lags_ns)[int(0.99 * len(self.lags_ns))] / 1e6 if self.lags_ns else 0.0
        reasons = list(self.reasons)
        if result is None:
            reasons.append(reason("rpm_unknown"))
        elif lost := [kind for kind, rate in (("foreign", result.foreign), ("self", result.own)) if not rate]:
            share = round(100 * (1 - ramp.p.tmp), 1)
            reasons.append(reason("rpm_unanswered", share_percent=share, kind=" and ".join(lost), wait_s=float(WAIT_S)))
        elif lag_ms > max(1.0, LAG_SHARE * result.self_ms):
            reasons.append(reason("rpm_late", lag_ms=round(lag_ms, 3)))
        verdict = "invalid" if result is None else "degraded" if reasons else "valid"
        return {
            "type": "end", "end_ns": time.monotonic_ns(), "verdict": verdict, "reasons": as_json(reasons), "bytes": self.moved_before,
            "direction": self.way, "goodput_bps": ramp.rate_bps and round(ramp.rate_bps), "connections": len(self.loads),
            "intervals": len(ramp.bytes), "interval_ns": ramp.p.id_ns, "goodput_confidence": ramp.confidence("goodput"),
            "responsiveness_confidence": ramp.confidence("responsiveness"), "responsiveness": figures(result),
            "rpm_spread": [round(value) for value in ramp.spread] if ramp.spread is not None else None, "lag_p99_ms": round(lag_ms, 3),
            "replaced": self.replaced,
        }  # fmt: skip


def figures(made: Rpm | None) -> dict[str, Any] | None:
    if made is None:
        return None
    found = {"rpm": made.rpm, "foreign_rpm": made.foreign, "self_rpm": made.own, "rating": made.rating}
    times = {"tcp_ms": made.tcp_ms, "tls_ms": made.tls_ms, "http_ms": made.http_ms, "self_ms": made.self_ms}
    return {name: None if isinstance(value, float) and math.isinf(value) else value for name, value in (found | times).items()}


# ------------------------------------------------------------------------------------------------------------------- before it


async def looked_up(host: str, port: int, family: int) -> tuple[int, Any]:
    loop = asyncio.get_running_loop()
    try:
        found = await asyncio.wait_for(loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM), WAIT_S)
    except TimeoutError:
        raise NqError(f"{host}: no answer of the DNS within {WAIT_S:g} s; name the server by its address") from None
    except (OSError, UnicodeError) as error:
        raise NqError(host_fault(host, error)) from None
    return found[0][0], found[0][4]


async def configured(url: str, token: str, context: ssl.SSLContext, family: int) -> nq.Config:
    """The configuration of a server: `url` is that of the object, or that of a host; then the object is at the place of our own server for
    this token, or else at the well-known one. No message contains the path, which may be a secret."""
    if urlsplit(url).path in ("", "/"):
        url = url.rstrip("/") + (f"/{quote(token, safe='')}/nq" if token else nq.WELL_KNOWN)
    target = target_of(url)
    shown = f"https://{target.authority}"
    address = await looked_up(target.connect, target.port, family)
    answer = await requested_once(target, address, context, "GET", path_of(url))
    if 300 <= answer.status < 400:
        parts = urlsplit(urljoin(url, answer.location))
        there = f"{parts.scheme}://{parts.netloc[:200]}"
        raise NqError(f"{shown}: the server redirects to {there}: name the configuration there, if you want to load that host")
    if answer.status != 200:
        remedy = "is the path of the configuration right, or does --token-file name the server's token?"
        what = f"the server answers with status {answer.status}: there is no configuration of a responsiveness test"
        raise NqError(f"{shown}: {what}; {remedy}")
    try:
        config = nq.parse(answer.body)
    except nq.ConfigError as error:
        raise NqError(f"{shown}: {error}") from None
    named, there = urlsplit(url).hostname or "", urlsplit(config.small).hostname or ""
    # test_endpoint is not compared: a host there must prove by its certificate that it serves this name.
    if not nq.one_domain(named, there):
        other = f"names {there[:200]}, a host of another domain, which is not loaded: name a configuration there"
        raise NqError(f"{shown}: its configuration {other}")
    return config


async def requested_once(
    target: Target, address: tuple[int, Any], context: ssl.SSLContext, method: str, path: str, body: int = 0
) -> Answer:
    try:
        opened = await connected(target, address, context)
        try:
            return await asyncio.wait_for(opened.client.requested(method, path, body), WAIT_S)
        finally:
            opened.client.close()
    except OSError as error:
        raise NqError(f"https://{target.authority}: {text_of(error)}") from None


async def tried(test: Test) -> None:
    """A small upload, and a probe beside the load: a server that refuses large bodies, or does not read them, answers before the probe."""
    target, where = test.target, (test.target, test.address, test.context)
    if test.way == "up":
        small = await requested_once(*where, "POST", path_of(test.config.upload), TRIAL_BYTES)
        if wrong := refused(small.status, test.way):
            raise NqError(f"{target.authority}: {wrong}")
    try:
        client = (await connected(*where)).client
        try:
            client.load(test.way, path_of(test.config.large if test.way == "down" else test.config.upload))
            probe = await asyncio.wait_for(client.requested("GET", path_of(test.config.small)), WAIT_S)
        finally:
            client.close()
    except OSError as error:
        raise NqError(f"{target.authority}: {text_of(error)}") from None
    if client.lost is not None:
        raise NqError(f"{target.authority}: {text_of(client.lost)}")
    if probe.status != 200:
        raise NqError(f"{target.authority}: the server answers a probe with status {probe.status}")


def token_of(path: str | None) -> str:
    try:
        return Path(path).read_text().strip() if path else ""
    except (OSError, UnicodeError) as error:
        raise NqError(f"{path}: {text_of(error)}") from None


async def prepared(given: argparse.Namespace) -> Test:
    context = ssl.create_default_context(cafile=given.ca_file)
    context.set_alpn_protocols(["h2"])
    config = await configured(given.url, token_of(given.token_file), context, given.family)
    target = target_of(config.small, config.test_endpoint)
    address = await looked_up(target.connect, target.port, given.family)
    ramp = Ramp(Parameters(id_ns=given.interval, mnp=given.most))
    return Test(given.direction, config, target, address, context, emit, given.sample_interval, ramp)


async def work(given: argparse.Namespace) -> int:
    loop = asyncio.get_running_loop()
    real_minus_mono = time.time_ns() - time.monotonic_ns()
    try:
        test = await prepared(given)
        if given.trial:
            await tried(test)
    except (NqError, OSError) as error:
        text = str(error) if isinstance(error, NqError) else f"{given.ca_file}: {text_of(error)}"
        why = as_json([reason("http_failed", error=text)])
        emit({"type": "end", "end_ns": time.monotonic_ns(), "verdict": "invalid", "reasons": why, "bytes": 0})
        return 1
    if given.trial:
        emit({"type": "end", "end_ns": time.monotonic_ns(), "verdict": "valid", "reasons": [], "bytes": 1})
        return 0

    def stop() -> None:
        test.abort("the test was stopped before its end")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    if given.stop_on_eof:

        def read() -> None:
            if not os.read(0, 4096):
                loop.remove_reader(0)
                stop()

        loop.add_reader(0, read)
    if given.start_at is not None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(test.over.wait(), max(0, given.start_at - real_minus_mono - time.monotonic_ns()) / S)
    if not test.over.is_set():
        await test.run(given.length)
    end = test.end()
    emit(end)
    return 0 if end["verdict"] == "valid" else 1


def main() -> int:
    p = parser(__doc__, 20)
    p.add_argument("--most", type=int, default=Parameters().mnp, help="connections of the load at most")
    p.add_argument("--interval", type=ns, default=Parameters().id_ns, help="interval duration of the draft")
    p.add_argument("--token-file")
    given = p.parse_args()
    if not given.trial:
        emit({"type": "start", "schema": 1, "command": "http_rpm", "clock": {"mono_ns": time.monotonic_ns(), "real_ns": time.time_ns()}})
    return asyncio.run(work(given))


if __name__ == "__main__":
    sys.exit(main())


