# SPDX-License-Identifier: MIT OR Apache-2.0
"""This host before and after a run: what the qdisc of its own device dropped, whether that qdisc was changed, and which routes its rules
give probes and flows. All of it is in the metadata of the run, and a run file of unknown origin may contain anything there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ktrxer.runners.marks import DSCP
from ktrxer.store import Run, one_line
from ktrxer.store.meta import Series
from ktrxer.store.reasons import Reason, reason

COUNTERS = {"direct_pkts", "direct_packets_stat"}  # of htb: among its parameters, and no parameter (netlink, tc)


@dataclass(frozen=True)
class OwnDrops:
    """The root qdisc's counts between the beginning and the end of the run. All traffic of the device counts. The kernel counts a dropped
    packet of TCP as one, and a packet that leaves as its segments: TCP hands over several segments as one packet (GSO), also where
    `ethtool -K` has switched the offloads off."""

    device: str
    qdisc: str
    dropped: int
    left: int


def _look(run: Run, when: str, name: str) -> Mapping[str, Any]:
    looked = run.meta.metadata.get(when)
    found = looked.get(name) if isinstance(looked, dict) else None
    return found if isinstance(found, dict) else {}


def _qdiscs(egress: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = egress.get("qdiscs")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _root(egress: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((one for one in _qdiscs(egress) if one.get("parent") == "root"), None)


def _count(qdisc: Mapping[str, Any], name: str) -> int:
    stats = qdisc.get("stats")
    value = stats.get(name) if isinstance(stats, dict) else None
    return value if isinstance(value, int) else 0


def _devices(egress: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The device of the route, then those below it."""
    lower = egress.get("lower")
    return [egress, *(one for one in lower if isinstance(one, dict))] if isinstance(lower, list) else [egress]


def _same_devices(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    found = {str(one.get("device")): one for one in _devices(after)}
    return [(one, found[name]) for one in _devices(before) if (name := str(one.get("device"))) in found]


def own_drops(run: Run) -> OwnDrops | None:
    """The first device that has a queue: that of the route or, below a virtual device without one, the one that sent most packets.
    None: not known, or no device has a queue."""
    made: list[OwnDrops] = []
    before, after = _look(run, "before", "egress"), _look(run, "after", "egress")
    for at, (earlier, later) in enumerate(_same_devices(before, after)):
        first, last = _root(earlier), _root(later)
        if first is None or last is None or first.get("kind") == "noqueue" or _shape(earlier) != _shape(later):
            continue
        dropped, left = (_count(last, name) - _count(first, name) for name in ("drops", "packets"))
        if dropped >= 0 and left >= 0:
            made.append(OwnDrops(one_line(str(later.get("device")), 40), one_line(str(last.get("kind")), 40), dropped, left))
        if not at and made:
            break
    return max(made, key=lambda one: one.left, default=None)


def _shape(egress: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    made = []
    for one in _qdiscs(egress):
        parameters = one.get("parameters")
        known = parameters if isinstance(parameters, dict) else {}
        made.append((one.get("kind"), one.get("handle"), one.get("parent"), {k: v for k, v in known.items() if k not in COUNTERS}))
    return egress.get("device"), made


def changed(run: Run) -> Reason | None:
    """The reason, if packets to the target left through another device or another qdisc at the end than at the beginning."""
    return _changed(_look(run, "before", "egress"), _look(run, "after", "egress"), "this host")


def changed_elsewhere(run: Run) -> Iterator[Reason]:
    """The same of the other hosts of the run, whose state is known."""
    before, after = _look(run, "before", "places"), _look(run, "after", "places")
    for place in before.keys() & after.keys():
        first, last = (_egress_of(state) for state in (before[place], after[place]))
        # A command that failed in between has left the qdiscs out.
        if _qdiscs(first) and _qdiscs(last) and (found := _changed(first, last, one_line(str(place), 60))) is not None:
            yield found


def _egress_of(state: Any) -> Mapping[str, Any]:
    found = state.get("egress") if isinstance(state, dict) else None
    return found if isinstance(found, dict) else {}


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], where: str) -> Reason | None:
    if not before.get("device") or not after.get("device"):
        return None
    if before["device"] != after["device"]:
        of = "" if where == "this host" else f" of {where}"
        return reason("route_changed", of_host=of, before=str(before["device"]), after=str(after["device"]))
    for earlier, later in _same_devices(before, after):
        (device, first), (_, last) = _shape(earlier), _shape(later)
        if first == last:
            continue
        kinds = ["/".join(str(kind) for kind, *_ in qdiscs) or "none" for qdiscs in (first, last)]
        what = f"from {kinds[0]} to {kinds[1]}" if kinds[0] != kinds[1] else f"{kinds[0]} has other parameters or another handle"
        return reason("qdisc_changed", host=where, device=str(device), change=what)
    return None


def _route(run: Run, series: Series, found: Any, default: str) -> tuple[int, str]:
    """A number for each route, and its device."""
    runner = run.meta.runner_of(series)
    kind = runner.kind if runner is not None else ""
    protocol = {"ping": "icmp", "stamp": "udp"}.get(kind) or (runner.result.get("protocol") if runner is not None else None)
    dscp = DSCP.get(series.klass or "BE", 0)
    for one in found if isinstance(found, list) else []:
        dscps, route = (one.get(name) for name in ("dscp", "route")) if isinstance(one, dict) else (None, None)
        if isinstance(dscps, list) and isinstance(route, int) and one.get("protocol") == protocol and dscp in dscps:
            return route, str(one.get("device"))
    return 0, default


def routed_apart(run: Run) -> Reason | None:
    """The reason, if this host's rules send probes by a route that no flow of the run has."""
    before = run.meta.metadata.get("before")
    found = before.get("other_routes") if isinstance(before, dict) else None
    device = str(_look(run, "before", "egress").get("device"))
    flows = {_route(run, series, found, device): series.name for series in run.meta.of_kind("bytes")}
    apart = {_route(run, series, found, device): series.name for series in run.meta.of_kind("latency")}
    apart = {route: name for route, name in apart.items() if route not in flows}
    if not flows or not apart:
        return None
    ((_, own), probes), ((_, theirs), name) = next(iter(apart.items())), next(iter(flows.items()))
    return reason("routed_apart", probes_of=probes, flows_of=name, before=own, after=theirs)
