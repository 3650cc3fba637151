# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures of an end object that its samples and events give, too, of methods whose samples are no single probes: flow, capacity, pair, abw, ppt measure,
trace. printed_figures.py compares them; a figure of the samples that is None is not known from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

Object = dict[str, Any]
Figures = Iterator[tuple[str, Any, Any]]  # path, the value in the end object, that of the samples
WAYS = ("up", "down", "round_trip")
OUTCOMES = ("lost", "unsent", "reordered", "one_stamp", "not_back_to_back", "usable")
TIMES = ("first_sent_ns", "second_sent_ns", "first_arrived_ns", "second_arrived_ns")


def _ways(end: Object, objects: Sequence[Object]) -> Iterator[tuple[str, Object, list[Object]]]:
    for way in WAYS:
        if isinstance(end.get(way), dict):
            yield way, end[way], [one for one in objects if one.get("type") == "sample" and one.get("direction") == way]


def _flow(end: Object, objects: Sequence[Object]) -> Figures:
    for flow in end.get("flows", ()):
        its = [one for one in objects if one.get("flow") == flow["flow"]]
        sender, receiver = ("local", "remote") if flow["direction"] == "up" else ("remote", "local")
        for side in ("local", "remote"):
            counted = [one for one in its if one["type"] == "sample" and one["kind"] != "tcp_info" and one["end"] == side]
            yield f"flows[{flow['flow']}].samples_{side}", flow[f"samples_{side}"], len(counted)
            ended = [one["bytes"] for one in its if one.get("name") == "flow_ended" and one["end"] == side]
            given = flow["received_bytes"] if side == receiver else flow.get("acked_bytes", flow.get("sent_bytes"))
            if given is not None and len(ended) == 1:
                yield f"flows[{flow['flow']}].bytes of the {side} end", given, ended[0]
        states = [one["retransmits"] for one in its if one.get("kind") == "tcp_info" and one["end"] == sender]
        if states and flow.get("retransmits") is not None and states[-1] is not None:
            yield f"flows[{flow['flow']}].retransmits", max(flow["retransmits"], states[-1]), flow["retransmits"]


def _capacity(end: Object, objects: Sequence[Object]) -> Figures:
    for way, result, samples in _ways(end, objects):
        yield f"{way}.sub_intervals", result["sub_intervals"], len(samples)
        if not result["maximum"] or not samples:
            continue
        for name in ("datagrams", "lost", "reordered", "duplicates"):
            yield f"{way}.{name}", result[name], sum(one[name] for one in samples)
        yield f"{way}.loss", result["loss"], _share(result["lost"], result["datagrams"])
        for name in ("delay_variation", "rtt_variation"):
            for which, of in (("min", min), ("max", max)):
                known = [one[f"{name}_{which}_ns"] for one in samples if one[f"{name}_{which}_ns"] is not None]
                yield f"{way}.{name}.{which}_ns", result[name][f"{which}_ns"], of(known) if known else None
        for mode in ("maximum", "first_mode", "second_mode"):
            if mode in result:
                yield from _mode(f"{way}.{mode}", result[mode], samples)


def _mode(path: str, mode: Object, samples: list[Object]) -> Figures:
    inside = mode["first"] <= mode["sub_interval"] < mode["first"] + mode["count"] <= len(samples)
    yield f"{path}.bit_s of its sub-intervals", inside, True
    if not inside:
        return
    best = samples[mode["sub_interval"]]
    yield f"{path}.bit_s", mode["bit_s"], best["bit_s"]
    yield f"{path}.loss", mode["loss"], _share(best["lost"], best["datagrams"])
    for name in ("delay_variation", "rtt_variation"):
        for which in ("min_ns", "max_ns"):
            yield f"{path}.{name}.{which}", mode[name][which], best[f"{name}_{which}"]


def _share(lost: int, arrived: int) -> float:
    return round(lost / (lost + arrived), 6) if lost + arrived else 0.0


def _outcome(one: Object) -> str:
    """Of pairs_outcome_of() in methods/estimate/pairs.c."""
    sent, sent_again, arrived, arrived_again = (one[name] for name in TIMES)
    if not arrived or not arrived_again:
        return "lost"
    if not sent or not sent_again:
        return "unsent"
    if arrived_again <= arrived:
        return "one_stamp" if arrived_again == arrived else "reordered"
    return "not_back_to_back" if abs(sent_again - sent) > (arrived_again - arrived) / 2 else "usable"


def _pairs(path: str, size: Object, samples: list[Object], count: str, by: str) -> Figures:
    its = [one for one in samples if one[by] == size[by]]
    found = Counter(map(_outcome, its))
    yield f"{path}.{count}", size[count], len(its)
    for name in OUTCOMES[:4]:
        yield f"{path}.{name}", size[name], found[name]
    yield f"{path}: pairs by outcome", sum(size[name] for name in OUTCOMES), len(its)
    if count == "pairs":  # ppt has another limit of the gap at departure
        yield f"{path}.usable", size["usable"], found["usable"]


def _pair(end: Object, objects: Sequence[Object]) -> Figures:
    for way, result, samples in _ways(end, objects):
        for i, size in enumerate(result["sizes"]):
            yield from _pairs(f"{way}.sizes[{i}]", size, samples, "pairs", "ip_bytes")


def _ppt(end: Object, objects: Sequence[Object]) -> Figures:
    for way, result, samples in _ways(end, objects):
        for i, train in enumerate(result.get("trains", ())):
            yield from _pairs(f"{way}.trains[{i}]", train, samples, "probes", "trailing_wire_bytes")


def _abw(end: Object, objects: Sequence[Object]) -> Figures:
    for way, result, samples in _ways(end, objects):
        sent = sum(one["sent"] for one in samples)
        yield f"{way}.steps", result["steps"], len(samples)
        yield f"{way}.probes", result["probes"], sent
        yield f"{way}.probes_lost", result["probes_lost"], sent - sum(one["arrived"] for one in samples)
        yield f"{way}.fleets", result["fleets"], sum(one["step"] == "fleet" for one in samples)


def _trace(end: Object, objects: Sequence[Object]) -> Figures:
    samples = [one for one in objects if one.get("kind") == "hop_answer"]
    yield "answered", end["answered"], len(samples)
    for hop in end["hops"]:
        its = [one for one in samples if one["hop"] == hop["hop"]]
        yield f"hops[{hop['hop']}].answered", hop["answered"], len(its)
        addresses = [node["address"] for node in hop["nodes"]]
        for node in hop["nodes"]:
            if node["address"] is None or addresses.count(node["address"]) != 1:
                continue
            of = [one for one in its if one["from"] == node["address"] and one["stage"] != "loaded"]
            trips = sorted(one["rtt_ns"] for one in of if one["rtt_ns"] is not None)
            yield f"{node['id']}.answers", node["answers"], len(of)
            for name, at in (("min", 0), ("p50", (len(trips) - 1) // 2), ("max", -1)):
                yield f"{node['id']}.rtt_us.{name}", node["rtt_us"][name], trips[at] / 1000 if trips else None


GIVEN = {"flow": _flow, "capacity": _capacity, "pair": _pair, "abw": _abw, "ppt measure": _ppt, "trace": _trace}
