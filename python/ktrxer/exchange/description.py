# SPDX-License-Identifier: MIT OR Apache-2.0
"""Descriptions of a published data set: a Frictionless data package (https://datapackage.org/standard/) of CSV tables, and a Croissant
description (https://docs.mlcommons.org/croissant/) of Parquet tables. Both name each file with its size and SHA-256, and each column."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer import __version__
from ktrxer.store import columns

if TYPE_CHECKING:
    from ktrxer.exchange.tables import Written

UNITS = {"_ns": "nanoseconds", "_us": "microseconds", "_bps": "bit/s", "_percent": "percent", "_bytes": "bytes", "_segments": "segments"}
MEANINGS = {
    "run": "name of the run", "series": "number of the series in its run", "t_ns": "nanoseconds since the run's zero",
    "name": "name of the series",
    "class": "marking of the packets", "direction": "up: from the measuring host; down: to it", "seq": "number of the probe",
    "state": "0 answered, 1 lost, 2 lost up, 3 lost down, 4 failed, 5 skipped, 6 duplicate, 7 answered after the time-out",
    "end": "0: counted at the measuring host, 1: at the far host", "bytes": "bytes since the beginning of the flow",
}  # fmt: skip
TITLES = {
    "latency": "round trips and one-way delays of probes", "bytes": "byte counts of flows", "tcp_info": "the kernel's state of TCP flows",
    "udp": "packet counts of UDP flows", "qdisc": "counters of packet schedulers", "host": "load of the measuring host",
    "value": "other values",
    "range": "estimates of methods with their bounds", "pair": "pairs of packets that were sent back to back",
    "tcp_pair": "pairs of TCP segments to a web server", "ip_capacity": "sub-intervals of tests of IP-layer capacity",
    "hop": "answers of routers to probes of a trace", "events": "events of the run",
}  # fmt: skip
assert set(TITLES) == set(columns.KINDS)


@dataclass(frozen=True)
class About:
    name: str
    title: str
    license: str  # an SPDX name; "" if none was given
    created: str


def _meaning(column: str) -> str:
    unit = next((unit for ending, unit in UNITS.items() if column.endswith(ending)), "")
    return MEANINGS.get(column, unit)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def identifier(text: str) -> str:
    """Lower-case letters, digits, `-`, `_` and `.`: what a data package allows as a name."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-.") or "runs"


def _kind(type_: Any) -> str:
    """integer, number or string."""
    import pyarrow as pa

    if pa.types.is_integer(type_):
        return "integer"
    return "number" if pa.types.is_floating(type_) else "string"


# ------------------------------------------------------------------------------------------------------------------ Frictionless


def frictionless(about: About, written: Sequence[Written]) -> dict[str, Any]:
    """datapackage.json, version 2 of the standard."""
    resources = []
    for number, one in enumerate(written, 1):
        fields = [_described({"name": f.name, "type": _kind(f.type)}, f.name) for f in one.schema]
        resources.append({
            "name": identifier(f"{number:05}-{one.kind}"), "type": "table", "title": TITLES[one.kind], "path": one.path.name,
            "scheme": "file", "format": "csv", "mediatype": "text/csv", "encoding": "utf-8", "bytes": one.path.stat().st_size,
            "hash": f"sha256:{digest(one.path)}", "schema": {"fields": fields, "missingValues": [""]},
        })  # fmt: skip
    made: dict[str, Any] = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json", "name": identifier(about.name), "title": about.title,
        "created": about.created, "resources": resources, "sources": [{"title": f"ktrxer {__version__}"}],
    }  # fmt: skip
    return made | ({"licenses": [{"name": about.license}]} if about.license else {})


def _described(field: dict[str, Any], column: str) -> dict[str, Any]:
    meaning = _meaning(column)
    return field | ({"description": meaning} if meaning else {})


# ------------------------------------------------------------------------------------------------------------------ Croissant

# The context of version 1.0 of the specification, shortened to the terms in use.
CONTEXT = {
    "@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/", "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/", "citeAs": "cr:citeAs", "column": "cr:column", "conformsTo": "dct:conformsTo",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "extract": "cr:extract", "field": "cr:field", "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet", "includes": "cr:includes", "recordSet": "cr:recordSet", "source": "cr:source",
}  # fmt: skip
DATA_TYPES = {"integer": "sc:Integer", "number": "sc:Float", "string": "sc:Text"}


def croissant(about: About, written: Sequence[Written]) -> dict[str, Any]:
    """JSON-LD: a file object for each file, a file set and a record set for each kind of table."""
    distribution: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject", "@id": one.path.name, "name": one.path.name, "contentUrl": one.path.name,
            "contentSize": f"{one.path.stat().st_size} B", "encodingFormat": "application/vnd.apache.parquet", "sha256": digest(one.path),
        }
        for one in written
    ]  # fmt: skip
    record_sets = []
    for kind in dict.fromkeys(one.kind for one in written):
        first = next(one for one in written if one.kind == kind)
        distribution.append({
            "@type": "cr:FileSet", "@id": f"files-{kind}", "name": f"files-{kind}", "encodingFormat": "application/vnd.apache.parquet",
            "includes": f"*.{kind}.parquet",
        })  # fmt: skip
        fields = [
            {
                "@type": "cr:Field", "@id": f"{kind}/{f.name}", "name": f.name, "description": _meaning(f.name),
                "dataType": DATA_TYPES[_kind(f.type)],
                "source": {"fileSet": {"@id": f"files-{kind}"}, "extract": {"column": f.name}},
            }
            for f in first.schema
        ]  # fmt: skip
        record_sets.append({"@type": "cr:RecordSet", "@id": kind, "name": kind, "description": TITLES[kind], "field": fields})
    made: dict[str, Any] = {
        "@context": CONTEXT, "@type": "sc:Dataset", "conformsTo": "http://mlcommons.org/croissant/1.0", "name": identifier(about.name),
        "description": about.title, "datePublished": about.created, "version": "1.0.0",
        "distribution": distribution, "recordSet": record_sets,
    }  # fmt: skip
    return made | ({"license": f"https://spdx.org/licenses/{about.license}.html"} if about.license else {})
