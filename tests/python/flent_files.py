# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small Flent files of each version, written by hand from the description of the format (docs/reference/flent-files.md), without data of
real runs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

T0 = 1_700_000_000.25  # 2023-11-14T22:13:20.25Z
ZULU = {"TIME": "2023-11-14T22:13:19.900000Z", "T0": "2023-11-14T22:13:20.250000Z"}
# The same instants in Indian local time, as files before version 3 have them.
LOCAL = {"TIME": "2023-11-15T03:43:19.900000", "T0": "2023-11-15T03:43:20.250000"}
STEP, COUNT = 0.2, 51


def ping(count: int = COUNT, lost: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """Round trips of a little more than 20 ms; `lost` are the numbers of lost probes."""
    return [{"t": T0 + STEP * i, "val": 20.0 + i % 5, "seq": float(i)} for i in range(count) if i not in lost]


def irtt(count: int = COUNT) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = []
    for i in range(count):
        if i == 7:
            points.append({"seq": i, "t": T0 + STEP * i, "lost": True, "lost_dir": "up"})
        else:
            points.append({"seq": i, "t": T0 + STEP * i + 0.021, "val": 21.0, "owd_up": 9.0, "owd_down": 12.0, "ipdv": 0.1})
    return points


def flow(mbit: float = 8.0, count: int = 40, start: float = 1.0, dur: float = 0.25) -> list[dict[str, Any]]:
    """Adjacent intervals; `t` is the end of each."""
    return [{"t": T0 + start + dur * (i + 1), "dur": dur, "val": mbit} for i in range(count)]


def grid(value: float | None = 20.0) -> list[float | None]:
    return [value] * COUNT


def metadata(**more: Any) -> dict[str, Any]:
    return {
        "NAME": "tcp_upload", "HOST": "far", "HOSTS": ["far"], "LOCAL_HOST": "near", "TITLE": "by hand", "NOTE": None,
        "LENGTH": 8, "TOTAL_LENGTH": 10, "STEP_SIZE": STEP, "TEST_PARAMETERS": {"k": "v"}, "FLENT_VERSION": "2.3.0", "IP_VERSION": 4,
        "KERNEL_RELEASE": "6.1.0", **ZULU, **more,
    }


def four() -> dict[str, Any]:
    """A file of version 4, with every kind of series that the importer distinguishes."""
    raw: dict[str, Any] = {
        "Ping (ms) ICMP": ping(lost=(3, 4)),
        "Ping (ms) UDP EF": irtt(),
        "TCP upload": [],
        "qdisc_stats_near": [
            {"t": T0 + i, "sent_bytes": 1000 * i, "sent_pkts": i, "dropped": 2, "overlimits": 3 * i, "requeues": 0, "backlog_bytes": 5, "backlog_pkts": 1, "ecn_mark": 1}
            for i in range(10)
        ],
        "cpu_stats_near": [{"t": T0 + i, "load": 0.5, "cpu0": 0.25, "cpu1": 0.75} for i in range(10)],
        "number": [{"t": T0 + i, "value": i} for i in range(10)],
        "TCP upload sum": [],
    }
    # Socket statistics stand between the rates of their flow.
    sockets = [{"t": T0 + 1.1 + 0.5 * i, "tcp_cwnd": 10 + i, "tcp_rtt": 21.5, "tcp_rtt_var": 1.25, "tcp_delivery_rate": 7.5} for i in range(15)]
    raw["TCP upload"] = sorted(flow() + sockets, key=lambda point: float(point["t"]))
    meta = {
        "Ping (ms) ICMP": {"RUNNER": "PingRunner", "IDX": 0, "UNITS": "ms", "COMMAND": "fping -D -p 200 far", "MEAN_VALUE": 22.0},
        "Ping (ms) UDP EF": {"RUNNER": "IrttRunner", "IDX": 1, "UNITS": "ms", "COMMAND": "irtt client far", "REMOTE_HOST": "far"},
        "TCP upload": {"RUNNER": "NetperfDemoRunner", "IDX": 2, "UNITS": "Mbits/s", "COMMAND": "netperf -H far", "MEAN_VALUE": 8.0, "CONG_CONTROL": "cubic"},
        "TCP upload sum": {"RUNNER": "SumRunner", "IDX": 3, "UNITS": "Mbits/s", "COMPUTED_LATE": False},
        "qdisc_stats_near": {"RUNNER": "TcRunner", "IDX": 4, "UNITS": "misc"},
        "cpu_stats_near": {"RUNNER": "CpuStatsRunner", "IDX": 5, "UNITS": "misc"},
        "number": {"RUNNER": "CommandOutputRunner", "IDX": 6, "UNITS": "widgets"},
    }
    return {
        "version": 4,
        "x_values": [round(STEP * i, 6) for i in range(COUNT)],
        "results": {
            "Ping (ms) ICMP": grid(22.0), "Ping (ms) UDP EF": grid(21.0), "TCP upload": grid(8.0), "TCP upload sum": grid(8.0),
            "TCP upload::tcp_cwnd": grid(10.0), "qdisc_stats_near::dropped": grid(2.0), "cpu_stats_near::load": grid(0.5), "number": grid(1.0),
        },
        "raw_values": raw,
        "metadata": metadata(SERIES_META=meta, BATCH_NAME=None, BATCH_TIME=None, FAILED_RUNNERS=0),
    }


def three() -> dict[str, Any]:
    """A file of version 3: UDP_RR in transactions a second, HTTP in seconds, cumulative drops."""
    return {
        "version": 3,
        "x_values": [round(STEP * i, 6) for i in range(COUNT)],
        "results": {"Ping (ms) UDP BE": grid(10.0), "HTTP latency": grid(5.0), "qdisc_stats_near::dropped": grid(0.0)},
        "raw_values": {
            "Ping (ms) UDP BE": [{"t": T0 + STEP * i, "dur": STEP, "val": 100.0 if i != 9 else 0} for i in range(COUNT)],
            "HTTP latency": [{"t": T0 + STEP * i, "val": 0.005} for i in range(COUNT)],
            "qdisc_stats_near": [{"t": T0 + i, "sent_bytes": i, "sent_pkts": i, "dropped": 7 * i, "ecn_mark": i} for i in range(10)],
        },
        "metadata": metadata(
            NAME="http-rrul",
            SERIES_META={"Ping (ms) UDP BE": {"UNITS": "ms", "RUNNER": "NetperfDemoRunner"}, "HTTP latency": {"UNITS": "ms"}, "x": {"UNITS": "bits/s", "MEAN_VALUE": 2e6}},
        ),
    }


def two() -> dict[str, Any]:
    """A file of version 2: local times without a zone."""
    made = three()
    made["version"] = 2
    made["metadata"] |= {**LOCAL, "BATCH_TIME": LOCAL["TIME"]}
    return made


def one(*, samples: bool = True) -> dict[str, Any]:
    """A file of version 1: no version, samples (if any) in the metadata, and the former name of the tool."""
    series = {"Ping (ms) ICMP": {"UNITS": "ms", "RAW_VALUES": ping() if samples else []}, "TCP upload": {"UNITS": "Mbits/s"}}
    made = metadata(**LOCAL, SERIES_META=series)
    made["NETPERF_WRAPPER_VERSION"] = made.pop("FLENT_VERSION")
    del made["TOTAL_LENGTH"]
    return {
        "x_values": [round(STEP * i, 6) for i in range(COUNT)],
        "results": {"Ping (ms) ICMP": grid(22.0), "TCP upload": [*grid(8.0)[:-1], None]},
        "metadata": made,
    }


def large(series: int = 60, seconds: int = 60) -> dict[str, Any]:
    """A file of the size of a run of rrul with all its additional series, to measure time."""
    made = four()
    count = round(seconds / STEP)
    made["x_values"] = [round(STEP * i, 6) for i in range(count)]
    made["results"], made["raw_values"] = {}, {}
    described = {}
    for i in range(series):
        name, kind = (f"TCP upload::{i}", "flow") if i % 3 == 0 else (f"Ping (ms) UDP {i}", "ping") if i % 3 == 1 else (f"cpu_stats_{i}", "cpu")
        made["results"][name] = [20.0 + j % 7 for j in range(count)]
        points = flow(count=count, dur=STEP) if kind == "flow" else irtt(count) if kind == "ping" else [{"t": T0 + STEP * j, "load": 0.5} for j in range(count)]
        made["raw_values"][name] = points
        runner = {"flow": "NetperfDemoRunner", "ping": "IrttRunner", "cpu": "CpuStatsRunner"}[kind]
        described[name] = {"RUNNER": runner, "IDX": i, "UNITS": {"flow": "Mbits/s", "ping": "ms", "cpu": "misc"}[kind]}
    made["metadata"] |= {"SERIES_META": described, "LENGTH": seconds - 10, "TOTAL_LENGTH": seconds}
    return made


def write(path: Path, value: Any) -> Path:
    """The bytes of a file as Flent writes it: indented, sorted, gzip."""
    path.write_bytes(gzip.compress(json.dumps(value, indent=2, sort_keys=True).encode()))
    return path
