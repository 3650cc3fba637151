# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures that stand in two places of one output: the end object, its samples, its parts and its reasons. The same figure is the same number, to
the last digit. conftest.py checks all output of the command under test that a test reads; tests/python/agreement.py checks the files of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from printed_samples import GIVEN

Object = dict[str, Any]
Values = Callable[[list[Object], Object], list[int] | None]  # of samples and the end object; None: the samples do not have them

ENDED = ("sent", "failed", "skipped", "cancelled")
ANSWERS = ("received", "lost", "too_late", "unanswered_at_end")
DIRECTIONS = ("lost_up", "lost_down", "lost_unknown")
CLASSES = ("sent", "failed", "untimed", *ANSWERS, *DIRECTIONS)
QUANTILES = {"p50": 500_000, "p95": 950_000, "p99": 990_000}
LINEAR, SUB_BITS = 2048, 9  # lib/base/hist.c
MISSING = "not printed"


def middle(value: int, low: int, high: int) -> int:
    """What the histogram answers for a value: the middle of its bucket, and the extremes exactly."""
    size = abs(value)
    if size >= LINEAR:
        shift = size.bit_length() - 1 - SUB_BITS
        size = (size >> shift << shift) + (1 << shift) // 2
    return min(max(size if value >= 0 else -size, low), high)


def quantile(ordered: list[int], millionths: int) -> int:
    """Of type 1, as ktrxer_hist_quantile() has it."""
    rank = -(-len(ordered) * millionths // 1_000_000)
    return ordered[0] if rank <= 1 else middle(ordered[rank - 1], ordered[0], ordered[-1])


def histogram(values: list[int]) -> dict[str, int | None]:
    if not values:
        return dict.fromkeys(("min", "iqr", "max", *QUANTILES))
    ordered = sorted(values)
    spread = quantile(ordered, 750_000) - quantile(ordered, 250_000)
    return {"min": ordered[0], "iqr": spread, "max": ordered[-1]} | {name: quantile(ordered, at) for name, at in QUANTILES.items()}


def _columns(samples: list[Object], kind: str, *fields: str) -> list[tuple[Any, ...]]:
    """These fields of all samples of a kind, and of the columns of `--brief`, which may lack some."""
    rows = [tuple(map(one.get, fields)) for one in samples if one.get("kind") == kind]
    for one in samples:
        if one.get("kind") == f"{kind}s":
            rows += zip(*(one.get(name) or [MISSING] * len(one["number"]) for name in fields), strict=True)
    return rows


def _known(kind: str, field: str) -> Values:
    def of(samples: list[Object], _: Object) -> list[int] | None:
        found = [value for (value,) in _columns(samples, kind, field)]
        return None if MISSING in found else [value for value in found if value is not None and (value >= 0 or "queue" not in field)]

    return of


def _lateness(samples: list[Object], end: Object) -> list[int] | None:
    """Probes without an answer have a lateness, but no sample that states it."""
    found = [sent - due for sent, due in _columns(samples, "round_trip", "sent_ns", "scheduled_ns")]
    return found if len(found) == end.get("sent") else None


def _variation(way: str) -> Values:
    def of(samples: list[Object], _: Object) -> list[int] | None:
        records = [one for one in samples if one.get("kind") == "owamp" and one["direction"] == way]
        delays = [one["received_ns"] - one["sent_ns"] for one in {one["number"]: one for one in reversed(records)}.values()]
        return [one - min(delays) for one in delays]

    return of


def _count(kind: str) -> Callable[[list[Object]], int]:
    return lambda samples: len(_columns(samples, kind, "number"))


PROBES = {
    "timed": _count("round_trip"), "too_late": _count("too_late"),
    "lost": lambda samples: _count("lost")(samples) - _count("too_late")(samples),
}  # fmt: skip
COUNTS: dict[str, dict[str, Callable[[list[Object]], int]]] = {"ping": PROBES, "stamp": PROBES}
HISTOGRAMS: dict[str, dict[str, Values]] = {
    "ping": {"rtt_us": _known("round_trip", "rtt_ns"), "own_queue_us": _known("round_trip", "own_queue_ns"), "lateness_us": _lateness},
    "stamp": {
        "rtt_us": _known("round_trip", "rtt_ns"), "own_queue_us": _known("round_trip", "own_queue_ns"),
        "far_queue_us": _known("round_trip", "far_queue_ns"), "ipdv_us": _known("round_trip", "ipdv_ns"),
        "ipdv_up_us": _known("round_trip", "ipdv_up_ns"), "ipdv_down_us": _known("round_trip", "ipdv_down_ns"),
        "lateness_us": _lateness,
    },
    "send": {"lateness_us": _known("probe", "lateness_ns")},
    "tcp": {"rtt_us": _known("tcp_pair", "rtt_ns")},
    "owamp": {f"{way}.delay_variation_us": _variation(way) for way in ("up", "down")},
}  # fmt: skip


def at(end: Object, path: str) -> Any:
    for name in path.split("."):
        end = end.get(name) if isinstance(end, dict) else None  # type: ignore[assignment]
    return end


def disagreements(objects: list[Object]) -> Iterator[str]:
    if not objects or not all(isinstance(one, dict) for one in objects):
        return
    command = objects[0].get("start", objects[0]).get("command", "")
    by_command: dict[str, list[Object]] = {}
    for one in objects:
        by_command.setdefault(one.get("of", command), []).append(one)
    dropped = any(one.get("output", {}).get("dropped") for one in objects)
    for name, its in by_command.items():
        end = its[-1]
        if not {"verdict", "reasons"} <= end.keys():
            continue  # cut off
        yield from (f"{name}: {text}" for text in _inside(end))
        if objects[0].get("type") == "start" and not dropped:  # else a test has read some lines before
            yield from (f"{name}: {text}" for text in _samples(name, end, its))


def _samples(command: str, end: Object, objects: list[Object]) -> Iterator[str]:
    samples = [one for one in objects if one.get("type") == "sample"]
    counts = end | {"timed": end["received"] - end["untimed"]} if {"received", "untimed"} <= end.keys() else end
    for field, count in COUNTS.get(command, {}).items():
        if field in counts and counts[field] != (found := count(samples)):
            yield f"{field}: {counts[field]} in the end object, {found} samples"
    for field, values_of in HISTOGRAMS.get(command, {}).items():
        given, values = at(end, field), values_of(samples, end)
        if given is None or values is None:
            continue
        for name, ns in histogram(values).items():
            if given[name] != (us := None if ns is None else ns / 1000):
                yield f"{field}.{name}: {given[name]} in the end object, {us} of the samples"
    if command in GIVEN:
        yield from (f"{path}: {value} in the end object, {found} of the samples" for path, value, found in GIVEN[command](end, objects) if value != found)


def _inside(end: Object) -> Iterator[str]:
    """Statements of an end object against its figures: parts and sums, quantiles, rates and counts, the verdict, the bounds, the reasons."""
    for whole, parts in (("requested", ENDED), ("sent", ANSWERS), ("lost", DIRECTIONS)):
        for one in (end, *end.get("classes", ())):
            if {whole, *parts} <= one.keys():
                yield from _sum(one, whole, [one[name] or 0 for name in parts])
    for name in CLASSES if end.get("classes") else ():
        values = [one.get(name) for one in end["classes"]]
        if end.get(name) is not None and None not in values:
            yield from _sum(end, name, values)
    flows = end.get("flows")
    if isinstance(flows, list) and flows and "received_bytes" in flows[0]:
        yield from _sum(end, "bytes", [one["bytes"] for one in flows])
    yield from _ordered(end, "")
    yield from _judged(end)
    for reason in filter(lambda one: isinstance(one, dict), end["reasons"]):
        for name, value in reason.items():
            if type(value) is int and type(end.get(name)) is int and end[name] != value:
                yield f"{name}: {value} in the reason {reason['id']}, {end[name]} in the end object"


ASCENDING = (("min", "p50", "p95", "p99", "max"), ("min_ns", "p50_ns", "max_ns"), ("low", "value", "high"), ("low_bit_s", "bit_s", "high_bit_s"))
LESS = (("received_packets", "sent_packets"), ("acked_bytes", "sent_bytes"), ("lost", "sent"), ("lost", "requested"), ("answered", "probes"))
TIMES = ("rtt_us", "own_queue_us", "far_queue_us")  # histograms of times that are not below 0


def _ordered(value: Any, path: str) -> Iterator[str]:
    """In the object and in all its parts."""
    if isinstance(value, list):
        for i, one in enumerate(value):
            yield from _ordered(one, f"{path}[{i}]")
    if not isinstance(value, dict):
        return
    for names in ASCENDING:
        known = [value[name] for name in names if isinstance(value.get(name), int | float)]
        if known != sorted(known):
            yield f"{path}: {dict(zip(names, known, strict=False))} are not in ascending order"
    for small, large in LESS:
        if all(type(value.get(name)) is int for name in (small, large)) and value[small] > value[large]:
            yield f"{path}.{small}: {value[small]} of {value[large]} {large}"
    for name, one in value.items():
        if name in TIMES and isinstance(one, dict) and isinstance(one.get("min"), int | float) and one["min"] < 0:
            yield f"{path}.{name}: a time of {one['min']} us"
        yield from _ordered(one, f"{path}.{name}" if path else name)


def _judged(end: Object) -> Iterator[str]:
    """The verdict is that of the worst reason, and each bound beyond its tolerance is one. A judged value is the printed figure."""
    severities = {one.get("severity") for one in end["reasons"] if isinstance(one, dict)}
    worst = "invalid" if "invalid" in severities else "degraded" if severities else "valid"
    if end["verdict"] != worst:
        yield f"verdict: {end['verdict']}, and its worst reason makes it {worst}"
    bounds = end.get("bounds")
    for one in bounds if isinstance(bounds, list) else ():
        if end["verdict"] == "valid" and (one["bound"] is None or one["bound"] > one["tolerance"]):
            yield f"bounds: valid, and {one['figure']} has the bound {one['bound']} of {one['tolerance']} {one['unit']}"
        printed = {
            "rtt_p50": at(end, "rtt_us.p50"), "up_p50": at(end, "up_us.p50"), "down_p50": at(end, "down_us.p50"),
            "rate_up": _mbit(end.get("up_bps")), "rate_down": _mbit(end.get("down_bps")),
        }.get(one["figure"])  # fmt: skip
        if printed is not None and one["value"] is not None and "probes" not in one and abs(printed - one["value"]) > 0.0011:
            yield f"bounds: {one['figure']} is {one['value']} {one['unit']} there, and {printed} in the end object"


def _mbit(bit_s: Any) -> float | None:
    return bit_s / 1e6 if isinstance(bit_s, int | float) else None


def _sum(of: Object, name: str, parts: list[int]) -> Iterator[str]:
    if of[name] != sum(parts):
        yield f"{name}: {of[name]} is not the sum of {', '.join(map(str, parts))}"
