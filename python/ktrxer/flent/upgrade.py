# SPDX-License-Identifier: MIT OR Apache-2.0
"""Converts documents of versions 1 to 3 to version 4. The document's notes list the changes."""

from __future__ import annotations

import itertools
from typing import Any

from ktrxer.flent.document import Document, Point, time_ns, time_text

QUARTER_NS = 15 * 60 * 1_000_000_000
ZONE_LIMIT_NS = 14 * 3600 * 1_000_000_000
TIMES = ("TIME", "T0", "BATCH_TIME")
PER_INTERVAL = ("dropped", "ecn_mark")
AIRTIME = ("airtime_rx", "airtime_tx")


def upgrade(document: Document) -> Document:
    """Convert the document in place."""
    if document.version == 1:
        _one(document)
    if document.version <= 2:
        _local_times(document)
    if document.version <= 3 and not document.made_up:
        _units(document)
    document.version = 4
    return document


def _one(document: Document) -> None:
    metadata = document.metadata
    if "FLENT_VERSION" not in metadata and "NETPERF_WRAPPER_VERSION" in metadata:
        metadata["FLENT_VERSION"] = metadata.pop("NETPERF_WRAPPER_VERSION")
    if not any(document.raw.values()):
        t0 = (time_ns(metadata.get("T0")) or time_ns(metadata.get("TIME")) or 0) / 1e9
        document.raw = {
            name: [{"t": t0 + x, "val": y} for x, y in zip(document.x, series, strict=True) if y is not None]
            for name, series in document.results.items()
        }
        document.made_up = True
        document.notes.append("this file of version 1 has no raw samples, only interpolated values on a grid")


def first_sample(document: Document) -> float | None:
    times = [point["t"] for points in document.raw.values() for point in points[:1] if isinstance(point.get("t"), (int, float))]
    return min(times, default=None)


def _local_times(document: Document) -> None:
    """Convert local times of the client, which versions 1 and 2 have, to UTC. The time zone is the offset between these times and the
    samples' own stamps, rounded to a quarter of an hour, the unit of time zones."""
    metadata, first = document.metadata, first_sample(document)
    stated = time_ns(metadata.get("T0")) or time_ns(metadata.get("TIME"))
    if stated is None:
        return
    shift = 0
    if first is None or document.made_up:
        document.notes.append("times in this file are local ones of an unknown zone and are read as UTC")
    else:
        apart = stated - round(first * 1e9)
        shift = round(apart / QUARTER_NS) * QUARTER_NS
        if abs(shift) > ZONE_LIMIT_NS:
            document.notes.append("the times in this file do not agree with its samples in any time zone and are read as UTC")
            shift = 0
        else:
            document.notes.append(f"times in this file are local ones of UTC{shift / 3.6e12:+g} h, as its samples show")
    for key in TIMES:
        ns = time_ns(metadata.get(key))
        if ns is not None:
            metadata[key] = time_text(ns - shift)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _units(document: Document) -> None:
    changed = set()
    for name, points in document.raw.items():
        if "UDP" in name:  # transactions a second, by netperf
            for point in points:
                if "dur" in point and _number(point.get("val")):
                    point["val"] = 1000.0 / point["val"] if point["val"] else None
                    changed.add("UDP round trips from transactions a second to ms")
        if name.startswith("HTTP latency"):
            for point in points:
                if _number(point.get("val")):
                    point["val"] = point["val"] * 1000.0
                    changed.add("HTTP latency from s to ms")
        for key in PER_INTERVAL:
            if points and any(key in point for point in points):
                _differences([point for point in points if _number(point.get(key))], key)
                changed.add(f"{key} from a sum to increments by interval")
        if any("stations" in point for point in points):
            _airtime(points)
    for meta in (document.metadata.get("SERIES_META") or {}).values() if isinstance(document.metadata.get("SERIES_META"), dict) else ():
        if isinstance(meta, dict) and meta.get("UNITS") == "bits/s":
            if _number(meta.get("MEAN_VALUE")):
                meta["MEAN_VALUE"] = meta["MEAN_VALUE"] / 1e6
            meta["UNITS"] = "Mbits/s"
    if changed:
        document.notes.append(f"version {document.version} had other units; converted: {'; '.join(sorted(changed))}")


def _differences(points: list[Point], key: str) -> None:
    values = [point[key] for point in points]
    for point, before, after in zip(points, itertools.chain(values[:1], values), values, strict=False):
        point[key] = max(0, after - before)


def _airtime(points: list[Point]) -> None:
    last: dict[tuple[str, str], Any] = {}
    for point in points:
        stations = point.get("stations")
        if not isinstance(stations, dict):
            continue
        for mac, values in stations.items():
            if not isinstance(values, dict):
                continue
            for key in AIRTIME:
                if _number(values.get(key)):
                    now = values[key]
                    values[key] = max(0, now - last.get((mac, key), now))
                    last[mac, key] = now
