# SPDX-License-Identifier: MIT OR Apache-2.0
"""Queues of network devices: counters of each qdisc and class, the statistics that its kind has of its own, the tins of cake, and the
flows of fq_codel, cake and sfq. By netlink here, by `tc -s` elsewhere."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ktrxer.collect.errors import StateError
from ktrxer.collect.netlink import Netlink, Qdisc, handle_text
from ktrxer.collect.queue_stats import is_count, unit_of
from ktrxer.runners import state, tc_json, tc_text
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, Times, Tool, ends_well
from ktrxer.runners.samples import NotUnderstood, Samples
from ktrxer.runners.state import Frame
from ktrxer.store.meta import Series

QDISCS_MOST = 16  # of one device; of more, as with a device of many queues, only the root is sampled
CLASSES_MOST = 256
FLOWS_MOST = 64  # of one process: the first ones that have packets
WITHOUT_QUEUE = ("", "noqueue", "ingress", "clsact")
WITH_CLASSES = ("htb", "hfsc", "drr", "qfq", "ets", "prio", "cbq", "multiq")
WITH_FLOWS = ("fq_codel", "cake", "sfq", "fq_pie")
TIN_NAMES = {3: ("Bulk", "Best Effort", "Voice"), 4: ("Bulk", "Best Effort", "Video", "Voice")}  # as tc names them
# $1: the device, or empty for all; $2: not empty for its classes, too.
BODY = (
    'echo "#qdisc"; tc -s -j qdisc show ${1:+dev "$1"} || exit; '
    '[ -z "$2" ] || { echo "#class"; tc -s class show dev "$1"; }'
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Queues(Parameters):
    interval_ns: int = 200 * MS
    device: str = ""  # empty: here the device of the route to the run's host, elsewhere all devices
    classes: bool = True  # elsewhere only of a device that is named
    flows: bool = False  # of fq_codel, cake and sfq; likewise


def validate(p: Queues) -> None:
    state.check_interval(p)
    state.check_device(p.device)


def command(p: Queues, _: Options, times: Times) -> list[str]:
    return state.loop(BODY, p.interval_ns, times, p.device, "1" if p.device and (p.classes or p.flows) else "")


# ----------------------------------------------------------------------------------------------------------------- samples


def add(p: Queues, samples: Samples, at_ns: int, qdiscs: Sequence[tuple[str, Qdisc]], classes: Sequence[tuple[str, Qdisc]]) -> None:
    """One sample. `classes`: with the flows."""
    queues = [(device, one) for device, one in qdiscs if one.kind not in WITHOUT_QUEUE]
    counts = Counter(device for device, _ in queues)
    queues = [(device, one) for device, one in queues if counts[device] <= QDISCS_MOST or handle_text(one.parent) == "root"]
    twice = Counter((device, _name(one)) for device, one in queues)
    for device, one in queues:
        # The queues of a device with several of them have qdiscs without handles.
        at = f" at {one.parent >> 16:x}:{one.parent & 0xFFFF:x}" if twice[device, _name(one)] > 1 else ""
        _queue(samples, at_ns, f"{samples.name} {device} {_name(one)}{at}", (device, one.kind, one.handle, one.parent), one)
    flows = [(device, one) for device, one in classes if one.kind in WITH_FLOWS]
    if p.classes:
        for device, one in [pair for pair in classes if pair[1].kind in WITH_CLASSES][:CLASSES_MOST]:
            title = f"{samples.name} {device} class {one.kind} {handle_text(one.handle)}"
            _queue(samples, at_ns, title, (device, "class", one.kind, one.handle), one)
    if p.flows:
        _flows(samples, at_ns, queues, flows)


def _name(one: Qdisc) -> str:
    """The name in tc's format: "fq_codel 10:"; a kernel's default qdisc has no handle."""
    return f"{one.kind} {one.handle >> 16:x}:" if one.handle else one.kind


def _queue(samples: Samples, at_ns: int, title: str, key: Hashable, one: Qdisc) -> None:
    if not samples.new(key, Series(0, title, "qdisc", "", group=samples.name)):
        return
    samples.add(
        key, at_ns, bytes=one.bytes, packets=one.packets, drops=one.drops, overlimits=one.overlimits, requeues=one.requeues,
        marks=one.marks, backlog_bytes=one.backlog_bytes, backlog_packets=one.backlog_packets,
    )  # fmt: skip
    for name, value in one.own.items():
        samples.changing((key, name), at_ns, value, f"{title} {name}", unit_of(name), title, count=is_count(name))
    for number, tin in enumerate(one.tins):
        tin_name = TIN_NAMES[len(one.tins)][number] if len(one.tins) in TIN_NAMES else str(number)
        for name, value in tin.items():
            series_name, group = f"{title} tin {tin_name} {name}", f"{title} tins"
            samples.changing((key, number, name), at_ns, value, series_name, unit_of(name), group, count=is_count(name))


def _flows(samples: Samples, at_ns: int, queues: Sequence[tuple[str, Qdisc]], flows: Sequence[tuple[str, Qdisc]]) -> None:
    seen: set[tuple[str, int]] = set()
    for device, queue in queues:
        # Several qdiscs without handles, as those of a device with several queues, share the numbers of their flows.
        if queue.kind not in WITH_FLOWS or (device, queue.handle) in seen:
            continue
        seen.add((device, queue.handle))
        title = f"{samples.name} {device} {_name(queue)}"
        mine = [one for of, one in flows if of == device and one.handle >> 16 == queue.handle >> 16]
        count = f"{title} flows with packets"
        samples.changing((device, queue.handle, "flows"), at_ns, len(mine), count, "", f"{title} flows", count=False)
        for one in mine:
            key = (device, one.handle)
            if not samples.number_of(key, FLOWS_MOST, at_ns, "flows"):
                continue
            values = {"backlog_bytes": one.backlog_bytes, "backlog_packets": one.backlog_packets, "drops": one.drops, **one.own}
            for name, value in values.items():
                series_name, group = f"{title} flow {handle_text(one.handle)} {name}", f"{title} flows"
                samples.changing((key, "flow", name), at_ns, value, series_name, unit_of(name), group, count=is_count(name))


# ------------------------------------------------------------------------------------------------------------------ sources


def read(p: Queues, samples: Samples, frame: Frame) -> None:
    _, _, rest = frame.text.partition("#qdisc\n")
    qdiscs, _, classes = rest.partition("\n#class")
    found = tc_json.queues(qdiscs, p.device)
    if not found:
        raise NotUnderstood("tc printed no qdisc")
    add(p, samples, frame.at_ns, found, tc_text.classes(classes.lstrip("\n"), p.device))


class Here:
    def __init__(self, p: Queues, o: Options) -> None:
        self._p = p
        with state.refusals():
            self._netlink = Netlink()
        try:
            self._device = p.device or socket.if_indextoname(self._netlink.way_to(state.address_of(o), source=o.source).index)
            self._index = socket.if_nametoindex(self._device)
            if not [one for one in self._netlink.qdiscs(self._index) if one.kind not in WITHOUT_QUEUE]:
                raise RunnerError(f"{self._device} has no queue (noqueue): there is nothing to count")
        except StateError as error:
            self.close()
            raise RunnerError(str(error)) from None
        except OSError:
            self.close()
            raise RunnerError(f"no device {p.device!r} here") from None
        except RunnerError:
            self.close()
            raise

    def sample(self, samples: Samples, at_ns: int) -> None:
        with state.refusals():
            qdiscs = [(self._device, one) for one in self._netlink.qdiscs(self._index)]
            kinds = (*(WITH_CLASSES if self._p.classes else ()), *(WITH_FLOWS if self._p.flows else ()))
            wanted = any(one.kind in kinds for _, one in qdiscs)
            classes = [(self._device, one) for one in self._netlink.classes(self._index)] if wanted else []
        if not [one for _, one in qdiscs if one.kind not in WITHOUT_QUEUE]:
            raise RunnerError(f"the qdiscs of {self._device} were removed")
        add(self._p, samples, at_ns, qdiscs, classes)

    def close(self) -> None:
        self._netlink.close()


RUNNER = Runner(
    "qdisc", "queues of network devices: qdiscs, classes, tins, flows", Queues, validate, command, state.no_series,
    state.by_frame(read), ends_well, tool=Tool("tc", "iproute2", ("-V",), r"iproute2-(?:ss)?(\d+(?:\.\d+)*)"), auxiliary=True, here=Here,
)  # fmt: skip
