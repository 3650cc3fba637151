# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of each of Flent's tests and of each version, and an independent computation of the figures of a file from its raw values."""

from __future__ import annotations

import bz2
import gzip
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import flent_files as files
import flent_series

STEP, LENGTH, DELAY = 0.2, 8, 2
TOTAL = LENGTH + 2 * DELAY
COUNT = round(TOTAL / STEP) + 1
FEW = 20  # flows of a group; more are the same again

Points = list[dict[str, Any]]


def names_of(test: str) -> list[str]:
    made = []
    for name in flent_series.SERIES[test]:
        base, _, numbers = name.partition("::")
        if found := re.fullmatch(r"(\d+)\.\.(\d+)", numbers):
            made += [f"{base}::{i}" for i in range(int(found[1]), min(int(found[2]), FEW) + 1)]
        else:
            made.append(name)
    return made


def kind_of(name: str) -> str:
    if name.startswith(("TCP ", "UDP ")):
        return "flow"
    if name.startswith("Ping"):
        return "udp" if "UDP" in name else "ping"
    return {"VoIP": "call", "HTTP latency": "http", "qdisc-stats": "qdisc"}.get(name.partition("::")[0], "value")


def _flow(chance: random.Random) -> Points:
    made, t = [], float(DELAY)
    while t < DELAY + LENGTH - 0.3:
        dur = round(chance.uniform(0.19, 0.29), 3)
        t += dur
        made.append({"t": files.T0 + t, "dur": dur, "val": round(chance.uniform(2, 9), 2)})
    return made


def _points(kind: str, chance: random.Random, version: int) -> Points:
    at = [files.T0 + STEP * i for i in range(COUNT - 1)]
    ms = [round(chance.uniform(20, 60), 3) for _ in at]
    if kind == "flow":
        return _flow(chance)
    if kind == "ping":
        return [{"t": t, "val": one, "seq": float(i)} for i, (t, one) in enumerate(zip(at, ms, strict=True))]
    if kind == "udp" and version < 4:
        return [{"t": t, "dur": STEP, "val": 1000 / one} for t, one in zip(at, ms, strict=True)]
    if kind == "udp" or (kind == "call" and version == 4):
        return [{"t": t, "val": one, "seq": i, "owd_up": one / 2, "owd_down": one / 2} for i, (t, one) in enumerate(zip(at, ms, strict=True))]
    if kind == "call":
        return [{"t": t, "val": one, "seq": i, "size": 172} for i, (t, one) in enumerate(zip(at, ms, strict=True))]
    if kind == "http":
        return [{"t": t, "val": one / 1000 if version < 4 else one} for t, one in zip(at, ms, strict=True)]
    if kind == "qdisc":
        return [{"t": t, "sent_bytes": 1500 * i, "sent_pkts": i, "dropped": i, "ecn_mark": 0, "backlog_bytes": 5, "backlog_pkts": 1, "overlimits": i, "requeues": 0} for i, t in enumerate(at)]
    return [{"t": t, "val": one} for t, one in zip(at, ms, strict=True)]


def _mean(points: Points) -> float | None:
    lengths = [point.get("dur", STEP) for point in points]
    return math.fsum(p["val"] * dur for p, dur in zip(points, lengths, strict=True)) / math.fsum(lengths) if points else None


RUNNERS = {"flow": "NetperfDemoRunner", "ping": "PingRunner", "udp": "IrttRunner", "call": "VoipRunner", "http": "HttpGetterRunner", "qdisc": "TcRunner"}


def of_test(test: str, version: int) -> dict[str, Any]:
    """The series of the test with random values that are the same each time."""
    chance = random.Random(f"{test} {version}")
    x = [round(STEP * i, 6) for i in range(COUNT)]
    raw, results, described = {}, {}, {}
    for index, name in enumerate(names_of(test)):
        kind = kind_of(name)
        raw[name] = points = _points(kind, chance, version)
        if name.startswith("UDP"):  # of iperf, at equal intervals that it does not name
            points[:] = [{"t": files.T0 + DELAY + STEP * (i + 1), "val": point["val"]} for i, point in enumerate(points)]
        inside = [kind != "flow" or DELAY <= one <= DELAY + LENGTH for one in x]
        grid = [round(chance.uniform(2, 9 if kind == "flow" else 60), 3) if there else None for there in inside]
        if kind == "call":
            results |= {f"{name}::{key}": grid for key in ("delay", "jitter", "loss")}
        elif kind == "qdisc":
            results |= {f"{name}::{key}": grid for key in ("dropped", "backlog_bytes", "delay")}
        else:
            results[name] = grid
        unit = "Mbits/s" if kind == "flow" else "Kbps" if kind == "call" and version < 4 else "ms"
        described[name] = {"UNITS": unit}
        if version >= 3:
            described[name] |= {"IDX": index, "RUNNER": RUNNERS.get(kind, "CommandOutputRunner")}
        if kind == "flow":
            described[name]["MEAN_VALUE"] = _mean(points)
    flows = [name for name in raw if name.startswith("TCP upload")]
    if len(flows) > 1:
        results["TCP upload sum"] = [None if None in row else sum(row) for row in zip(*(results[one] for one in flows), strict=True)]
        raw["TCP upload sum"] = []
        described["TCP upload sum"] = {"UNITS": "Mbits/s", "MEAN_VALUE": sum(described[one]["MEAN_VALUE"] for one in flows)}
    hosts = sorted({word for name in raw for word in name.split() if re.fullmatch(r"HOST\d*", word)}) or ["HOST"]
    more = {"NAME": test, "HOST": hosts[0], "HOSTS": hosts, "LENGTH": LENGTH, "TOTAL_LENGTH": TOTAL, "TEST_PARAMETERS": {}}
    made = files.metadata(**more, **({} if version >= 3 else files.LOCAL), SERIES_META=described)
    if version > 1:
        return {"version": version, "x_values": x, "results": results, "raw_values": raw, "metadata": made}
    del made["SERIES_META"], made["T0"]
    return {"x_values": x, "results": results, "metadata": made}


def load(path: Path) -> dict[str, Any]:
    """A file, without any code of ktrxer."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else bz2.decompress(data) if data[:3] == b"BZh" else data
    made: dict[str, Any] = json.loads(text)
    return made


def round_trips(value: dict[str, Any], name: str) -> list[tuple[float, float]]:
    """(send time in seconds since 1970, ms) of each answered probe, or of each value of the grid of version 1."""
    version = value.get("version", 1)
    if version == 1:
        return [(x - y / 1000, y) for x, y in zip(value["x_values"], value["results"][name], strict=True) if y is not None]
    made = []
    for point in value["raw_values"][name]:
        val = point.get("val")
        if val is None or (version < 4 and "UDP" in name and "dur" in point and not val):
            continue
        ms = 1000 / val if version < 4 and "UDP" in name and "dur" in point else val
        made.append((point["t"] - ms / 1000, ms))
    return made


def mean_rate(value: dict[str, Any], name: str) -> float | None:
    """The mean of a flow's rates, each weighted by its interval."""
    if value.get("version", 1) == 1:
        known = [one for one in value["results"][name] if one is not None]
        return sum(known) / len(known) if known else None
    return _mean([point for point in value["raw_values"][name] if point.get("val") is not None])
