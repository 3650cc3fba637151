# SPDX-License-Identifier: MIT OR Apache-2.0
"""A synthetic run, made from a seed: an rrul of 70 seconds over a home router with a long queue.

    python tests/python/synthetic.py DIRECTORY     writes the run, and prints its path
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from ktrxer.store import Host, Meta, Phase, Run, Runner, RunWriter, Series, Zero, open_run
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP

S, MS, US = 10**9, 10**6, 10**3
CLASSES = ("BE", "BK", "CS5", "EF")
PROBES = (("Ping (ms) ICMP", None), ("Ping (ms) UDP BE", "BE"), ("Ping (ms) UDP BK", "BK"), ("Ping (ms) UDP EF", "EF"))


def describe(seconds: float, delay: float, title: str) -> Meta:
    total, load_from, load_to = (round(x * S) for x in (seconds, delay, seconds - delay))
    meta = Meta(
        id="5f1c0de0-0000-4000-8000-000000000001",
        test="rrul",
        title=title,
        version="0.1.0",
        created="2026-11-21T15:30:00.000000Z",
        host=Host("near", kernel="6.18.0", machine="x86_64", processors=2),
        targets=["far.example"],
        zero=Zero(5_000 * S, 1_795_275_000 * S, 200, "5f1c0de0-aaaa-4000-8000-000000000001"),
        length_ns=total,
        phases=[Phase("idle_before", 0, load_from), Phase("load", load_from, load_to), Phase("idle_after", load_to, total)],
        settings={"length_s": seconds - 2 * delay, "delay_s": delay, "cc": "cubic"},
        command=["ktrxer", "run", "rrul", "-H", "far.example", "--for", f"{seconds - 2 * delay:g}", "-t", title],
        plots=["all", "totals", "download", "upload", "ping", "ping_cdf", "lateness"],
        verdict="valid",
        metadata={"before": {"sysctls": {"net.ipv4.tcp_congestion_control": "cubic"}}, "after": {}},
    )
    end = {"type": "end", "verdict": "valid", "reasons": [], "host": {"cpu_percent": 21.0, "steal_percent": 0.0, "clock_steps": 0}}
    for name, klass in PROBES:
        kind = "stamp" if klass else "ping"
        meta.runners.append(
            Runner(len(meta.runners), f"{kind} {klass or ''}".strip(), kind, ["ktrxer", kind, "far.example"], "far.example", "ended", 0, 0, total,
                   dict(end), interval_ns=10 * MS, from_ns=0, to_ns=total)
        )
        meta.series.append(Series(len(meta.series), name, "latency", "ms", len(meta.runners) - 1, klass=klass, group="Ping (ms)"))
    for direction in ("up", "down"):
        meta.runners.append(
            Runner(len(meta.runners), f"flow {direction}", "flow", ["ktrxer", "flow", direction, "far.example", "--flows", "4"], "far.example",
                   "ended", 0, load_from, load_to, dict(end), interval_ns=200 * MS, from_ns=load_from, to_ns=load_to)
        )
        for kind, unit in (("bytes", "Mbit/s"), ("tcp_info", "")):
            for flow, klass in enumerate(CLASSES):
                name = f"TCP {direction}load {klass}"
                meta.series.append(
                    Series(len(meta.series), name, kind, unit, len(meta.runners) - 1, flow, direction, klass, f"TCP {direction}load")
                )
    meta.series.append(Series(len(meta.series), "qdisc tbf 1: on eth0", "qdisc", "", group="qdisc"))
    meta.series.append(Series(len(meta.series), "CPU", "host", "%", group="host"))
    return meta


def queue_ns(at_s: np.ndarray, rng: np.random.Generator, depth: float, delay: float, seconds: float) -> np.ndarray:
    """A queue delay like that of a few cubic flows that share a buffer: a sawtooth."""
    loaded = (at_s > delay) & (at_s < seconds - delay + 0.05)
    phase = ((at_s - delay) / 3.7) % 1
    saw = depth * (0.35 + 0.65 * np.cbrt(np.clip(phase * 2 - 1, -1, 1)) / 2 + 0.325) * np.minimum(1, np.maximum(0, (at_s - delay) / 0.8))
    return np.where(loaded, np.maximum(0, saw * MS + rng.normal(0, 0.06 * depth * MS, at_s.shape)), 0)


def synthetic(directory: Path | str, *, seconds: float = 70, delay: float = 5, seed: int = 7, title: str = "synthetic", depth_ms: float = 80,
              rate_mbit: float = 48, name: str | None = None, icmp_more_ms: float = 0, udp_answered_until_s: float = 1e9) -> Path:
    rng = np.random.default_rng(seed)
    meta = describe(seconds, delay, title)
    writer = RunWriter(directory, meta, name)
    for series in meta.of_kind("latency"):
        count = int(seconds * 100)
        due = np.arange(count) * 10 * MS + 100 * US
        late = rng.gamma(2, 3 * US, count).astype(np.int64)
        at = due + late
        up = 5 * MS + queue_ns(at / S, rng, depth_ms, delay, seconds) * (0.4 if series.klass == "EF" else 1)
        down = 5 * MS + queue_ns(at / S, rng, depth_ms / 3, delay, seconds)
        state = np.where((at > delay * S) & (rng.random(count) < 0.004), LOST_UP if series.klass else LOST, ANSWERED)
        if series.klass is None:
            down = down + icmp_more_ms * MS
        else:
            state = np.where(at > udp_answered_until_s * S, LOST_UP, state)
        state = np.where((state == LOST_UP) & (rng.random(count) < 0.2), LOST_DOWN, state)
        ok = state == ANSWERED
        one_way = ok & (series.klass is not None)

        def maybe(values: np.ndarray, there: np.ndarray) -> list[int | None]:
            return [int(v) if t else None for v, t in zip(values, there, strict=True)]

        bound = np.full(count, 180 * US)
        writer.append("latency", {
            "series": [series.id] * count, "t_ns": at.tolist(), "seq": list(range(count)), "state": state.tolist(), "lateness_ns": late.tolist(),
            "rtt_ns": maybe(up + down, ok), "up_ns": maybe(up, one_way), "down_ns": maybe(down, one_way),
            "up_bound_ns": maybe(bound, one_way), "down_bound_ns": maybe(bound, one_way),
            "own_queue_ns": maybe(2 * US + late, one_way), "far_queue_ns": maybe(3 * US + late, one_way),
        })
    load = np.arange(round(delay * S), round((seconds - delay) * S) + 1, 200 * MS)
    for series in meta.of_kind("bytes"):
        share = {"BE": 0.29, "BK": 0.17, "CS5": 0.26, "EF": 0.28}[str(series.klass)] * (rate_mbit if series.direction == "up" else rate_mbit * 2)
        step = np.maximum(0, rng.normal(share, share / 6, len(load) - 1)) * 1e6 / 8 * 0.2
        step[: min(3, len(step))] *= [0.2, 0.5, 0.8][: len(step)]
        counted = np.concatenate([[0], np.cumsum(step)]).astype(np.int64)
        for end, shift in ((0, 0), (1, 3 * MS)):
            n = len(load)
            writer.append("bytes", {"series": [series.id] * n, "t_ns": (load + shift + rng.integers(0, 50 * US, n)).tolist(), "end": [end] * n,
                                    "bytes": counted.tolist(), "bound_ns": [200 * US if end else None] * n})
    for series in meta.of_kind("tcp_info"):
        n = len(load)
        rtt = (10_000 + queue_ns(load / S, rng, depth_ms, delay, seconds) / US).astype(np.int64)
        writer.append("tcp_info", {
            "series": [series.id] * n, "t_ns": load.tolist(), "end": [0] * n, "rtt_us": rtt.tolist(), "rttvar_us": (rtt // 10).tolist(),
            "min_rtt_us": [10_000] * n, "cwnd_segments": (rtt // 700).tolist(), "ssthresh_segments": [None, *[40] * (n - 1)],
            "retransmits": np.cumsum(rng.random(n) < 0.1).tolist(), "delivery_rate_bps": [12_000_000] * n,
        })
    (qdisc,), (host,) = meta.of_kind("qdisc"), meta.of_kind("host")
    at = np.arange(0, round(seconds * S), 200 * MS)
    n = len(at)
    loaded = np.clip(at / S - delay, 0, seconds - 2 * delay)
    writer.append("qdisc", {
        "series": [qdisc.id] * n, "t_ns": at.tolist(), "bytes": (loaded * rate_mbit / 8 * 1e6).astype(np.int64).tolist(),
        "packets": (loaded * rate_mbit / 8 * 1e6 / 1514).astype(np.int64).tolist(), "drops": (loaded * 4).astype(np.int64).tolist(),
        "overlimits": (loaded * 400).astype(np.int64).tolist(), "requeues": [0] * n,
        "backlog_bytes": (queue_ns(at / S, rng, depth_ms, delay, seconds) / S * rate_mbit / 8 * 1e6).astype(np.int64).tolist(),
        "backlog_packets": (queue_ns(at / S, rng, depth_ms, delay, seconds) / S * rate_mbit / 8 * 1e6 / 1514).astype(np.int64).tolist(),
    })
    writer.append("host", {"series": [host.id] * n, "t_ns": at.tolist(), "cpu_percent": (10 + 20 * (loaded > 0) + rng.random(n)).tolist(),
                           "steal_percent": rng.random(n).tolist()})
    for runner in meta.runners:
        writer.event(int(runner.from_ns or 0), "runner_started", runner.name, runner.id)
        writer.event(int(runner.to_ns or 0), "runner_ended", runner.name, runner.id)
    return writer.finish()


def synthetic_run(directory: Path | str, **more: object) -> Run:
    return open_run(synthetic(directory, **more))  # type: ignore[arg-type]


if __name__ == "__main__":
    print(synthetic(sys.argv[1] if len(sys.argv) > 1 else "."))
