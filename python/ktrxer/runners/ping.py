# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer ping`: ICMP echo."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ktrxer.runners import own, probes
from ktrxer.runners.marks import DSCP
from ktrxer.runners.probes import Probes
from ktrxer.runners.runner import Options, Runner, Times, Trial
from ktrxer.store.meta import Series


def _words(p: Probes, o: Options) -> list[str]:
    return [o.ktrxer, "ping", *probes.common(p, o, ["--dscp", str(DSCP[p.mark])] if p.mark else []), *own.sockets(o)]


def command(p: Probes, o: Options, times: Times) -> list[str]:
    return own.words(_words(p, o), times)


def series(p: Probes, name: str) -> Mapping[Hashable, Series]:
    return {None: probes.series_of(name, p, p.mark)}


def trial(p: Probes, o: Options, _: bool) -> Trial:
    return Trial(probes.trial(_words(p, o)), server=False)


RUNNER = Runner(
    "ping", "ICMP echo by `ktrxer ping`", Probes, probes.validate, command, series, probes.read, own.health,
    protocol="ICMP", own=True, trial=trial, timeout_ns=probes.timeout_of, probes=lambda _: 1,
)  # fmt: skip
