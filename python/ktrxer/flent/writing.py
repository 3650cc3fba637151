# SPDX-License-Identifier: MIT OR Apache-2.0
"""Converts a stored run to a Flent document of version 4, for Flent's own plots.

Samples go into raw_values, each with Flent's time (of a ping: the time of the answer). Flent draws a grid where it draws no samples. Each
value of the grid belongs to a window of one step around an instant: for a rate the bytes in the window, for a delay the mean of the answers
in it. It is missing if the window is not fully covered. Sums and averages use only windows in which all flows are covered.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from ktrxer.flent import container
from ktrxer.flent.document import Document, Point, check, clean, time_text
from ktrxer.flent.errors import FlentError
from ktrxer.flent.upgrade import upgrade
from ktrxer.statistics.throughput import bytes_rate, receiver_end
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP
from ktrxer.store.meta import Meta, Runner, Series

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ktrxer.store import Run

    Floats = NDArray[np.float64]

STEP_S = 0.2
STEPS_LIMIT = 1_000_000  # Flent refuses more
FLENT = "2.3.0"  # the version whose format and names are written
GAP_STEPS = 5  # a longer time than so many usual sample intervals is a gap
LOST_WHERE = {LOST: "true", LOST_UP: "up", LOST_DOWN: "down"}

# The sums and averages that Flent's tests declare, by the names of their parts.
COMPUTED: tuple[tuple[str, str, str], ...] = (
    ("TCP upload avg", "mean", r"TCP upload( |::)(?!sum$|avg$).*"),
    ("TCP upload sum", "sum", r"TCP upload( |::)(?!sum$|avg$).*"),
    ("TCP download avg", "mean", r"TCP download( |::)(?!sum$|avg$).*"),
    ("TCP download sum", "sum", r"TCP download( |::)(?!sum$|avg$).*"),
    ("TCP totals", "sum", r"TCP (up|down)load\b(?! sum$| avg$).*"),
    ("Ping (ms) avg", "mean", r"Ping \(ms\)( (?!avg$)|::).*"),
)
RUNNERS = {"sum": "SumRunner", "mean": "AverageRunner"}


def document(run: Run, step_s: float | None = None) -> Document:
    """With `step_s`, and of a run that was not imported from a file of Flent, the grid is computed from the samples."""
    if step_s is None and run.original is not None:
        return _unchanged(run, run.original())
    return _Writer(run, step_s or STEP_S).document()


def _unchanged(run: Run, data: bytes) -> Document:
    """The file from which the run was imported, in version 4, with the run's title."""
    made = upgrade(check(container.parse(data)))
    if made.made_up:
        made.metadata["FAKE_RAW_VALUES"] = True
    if run.meta.title != (made.text("TITLE") or ""):
        made.metadata["TITLE"] = clean(run.meta.title)
    return made


class _Writer:
    def __init__(self, run: Run, step_s: float) -> None:
        self.run, self.meta, self.step_s = run, run.meta, step_s
        self.raw: dict[str, list[Point]] = {}
        self.results: dict[str, Floats] = {}
        self.series_meta: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        spans = [(float(one["t_ns"][0]), float(one["t_ns"][-1])) for one in map(run.arrays, self.meta.series) if len(one["t_ns"])]
        if not spans:
            raise FlentError(f"{run.path}: it has no samples to export")
        self.first_ns, last_ns = min(a for a, _ in spans), max(b for _, b in spans)
        count = max(1, int(np.ceil((last_ns - self.first_ns) / (step_s * 1e9))))
        if count > STEPS_LIMIT:
            raise FlentError(f"{run.path}: {count} steps of {step_s:g} s are more than Flent's limit of a million: choose a longer --step")
        self.x = np.arange(count) * step_s
        # Windows of one step around each instant.
        self.edges = (self.first_ns + (np.arange(count + 1) - 0.5) * step_s * 1e9).round().astype(np.int64)

    def document(self) -> Document:
        for series in self.meta.series:
            put = getattr(self, f"_{series.kind}", None)
            if put is not None:
                put(series)
        self._computed()
        for points in self.raw.values():
            points.sort(key=lambda point: float(point["t"]))
        results = {name: [None if np.isnan(one) else float(one) for one in values] for name, values in self.results.items()}
        x = [round(float(one), 9) for one in self.x]
        return Document(4, self._metadata(), x, results, self.raw, self.notes)

    # -- each kind of sample --

    def _time(self, t_ns: NDArray[Any]) -> list[float]:
        """Seconds since 1970, rounded to the microsecond, the precision of a double of that size."""
        return [round(float(one), 6) for one in (np.asarray(t_ns, np.int64) + self.meta.zero.realtime_ns) / 1e9]

    def _bytes(self, series: Series) -> None:
        samples = self.run.arrays(series)
        wanted = receiver_end(series.direction)
        chosen = samples["end"] == wanted
        if not chosen.any():
            chosen = samples["end"] == 1 - wanted
        t, counts = np.asarray(samples["t_ns"][chosen], np.int64), np.asarray(samples["bytes"][chosen], np.int64)
        steps, moved = np.diff(t), np.diff(counts)
        good = (steps > 0) & (moved >= 0)
        rates = moved[good] * 8e3 / steps[good]  # bytes a nanosecond in Mbit/s
        self.raw[series.name] = [
            {"t": at, "dur": round(float(dur) / 1e9, 9), "val": float(rate)}
            for at, dur, rate in zip(self._time(t[1:][good]), steps[good], rates, strict=True)
        ]
        usual = float(np.median(steps)) if len(steps) else self.step_s * 1e9
        windows = bytes_rate(t, counts, self.edges, gap_ns=int(GAP_STEPS * max(usual, self.step_s * 1e9)))
        self.results[series.name] = windows.rate_bps() / 1e6
        load = self.meta.phase("load")
        a, b = (load.from_ns, load.to_ns) if load else (int(t[0]), int(t[-1])) if len(t) else (0, 0)
        mean = self._mean_rate(t, counts, a, b)
        more: dict[str, Any] = {"MEAN_VALUE": mean} if mean is not None else {}
        if len(counts):
            more |= {"BYTES_RECVD": int(counts[-1] - counts[0]), "ELAPSED_TIME": round(float(t[-1] - t[0]) / 1e9, 3)}
        self._describe(series, "NetperfDemoRunner", "Mbits/s", more)

    @staticmethod
    def _mean_rate(t: NDArray[Any], counts: NDArray[Any], a: int, b: int) -> float | None:
        """The mean rate over the covered part of the load."""
        inside = (t >= a) & (t <= b)
        if inside.sum() < 2:
            return None
        return float((counts[inside][-1] - counts[inside][0]) * 8e3 / (t[inside][-1] - t[inside][0]))

    def _latency(self, series: Series) -> None:
        samples = self.run.arrays(series)
        icmp = "ICMP" in series.name
        points = self.raw.setdefault(series.name, [])
        state, rtt = samples["state"], samples["rtt_ns"]
        answered = (state == ANSWERED) & ~np.isnan(rtt)
        back_ns = np.asarray(samples["t_ns"][answered] + rtt[answered], np.int64)
        chosen = (column[answered] for column in (samples["seq"], rtt, samples["up_ns"], samples["down_ns"]))
        for t, (seq, value, up, down) in zip(self._time(back_ns), zip(*chosen, strict=True), strict=True):
            point: Point = {"seq": float(seq) if icmp else int(seq), "t": t, "val": float(value) / 1e6}
            if not np.isnan(up):
                point["owd_up"] = float(up) / 1e6
            if not np.isnan(down):
                point["owd_down"] = float(down) / 1e6
            points.append(point)
        lost = np.isin(state, list(LOST_WHERE))
        if not icmp:
            for seq, t, how in zip(samples["seq"][lost], self._time(samples["t_ns"][lost]), state[lost], strict=True):
                points.append({"seq": int(seq), "t": t, "lost": True, "lost_dir": LOST_WHERE[int(how)]})
        if series.group == "VoIP":
            self._voip(series, samples, answered, lost)
        else:
            self.results[series.name] = self._means(back_ns, rtt[answered] / 1e6)
        values = rtt[answered] / 1e6
        more: dict[str, Any] = {}
        if len(values):
            more = {"MEAN_VALUE": float(values.mean()), "MIN_VALUE": float(values.min()), "MAX_VALUE": float(values.max())}
        total = int(answered.sum() + lost.sum())
        if total and not icmp:
            more |= {"PACKETS_SENT": total, "PACKETS_RECEIVED": int(answered.sum()), "PACKET_LOSS_RATE": float(lost.sum() / total)}
            more |= self._one_way(samples, answered) if len(values) else {}
        self._describe(series, "PingRunner" if icmp else "IrttRunner", "ms", more)

    def _voip(self, series: Series, samples: dict[str, NDArray[Any]], answered: NDArray[Any], lost: NDArray[Any]) -> None:
        """A call, as Flent's voip tests have it: delay and jitter up, and the number of lost packets in each window."""
        t_ns, up = np.asarray(samples["t_ns"][answered], np.int64), samples["up_ns"][answered] / 1e6
        self.results[f"{series.name}::delay"] = self._means(t_ns, up)
        self.results[f"{series.name}::jitter"] = self._means(t_ns[1:], np.abs(np.diff(up)))
        at = np.searchsorted(self.edges, np.asarray(samples["t_ns"][lost], np.int64), "right") - 1
        inside = (at >= 0) & (at < len(self.x))
        self.results[f"{series.name}::loss"] = np.bincount(at[inside], minlength=len(self.x)).astype(np.float64)

    @staticmethod
    def _one_way(samples: dict[str, NDArray[Any]], answered: NDArray[Any]) -> dict[str, Any]:
        found = {}
        for column, key in (("rtt_ns", "RTT"), ("up_ns", "OWD_UP"), ("down_ns", "OWD_DOWN")):
            known = samples[column][answered]
            known = known[~np.isnan(known)] / 1e6
            if len(known):
                found[f"{key}_MEAN"] = float(known.mean())
                if key == "RTT":
                    found |= {"RTT_MEDIAN": float(np.median(known)), "RTT_MIN": float(known.min()), "RTT_MAX": float(known.max())}
        return found

    def _means(self, t_ns: NDArray[Any], values: Floats) -> Floats:
        """The mean of the values in each window; NaN for an empty window."""
        at = np.searchsorted(self.edges, t_ns, "right") - 1
        inside = (at >= 0) & (at < len(self.x)) & ~np.isnan(values)
        sums = np.bincount(at[inside], values[inside], minlength=len(self.x))
        counts = np.bincount(at[inside], minlength=len(self.x))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(counts > 0, sums / counts, np.nan)

    def _tcp_info(self, series: Series) -> None:
        """Add fields of TCP_INFO to the rates of the same flow, as Flent does."""
        samples = self.run.arrays(series)
        sender = samples["end"] == 1 - receiver_end(series.direction)
        if not sender.any():
            return
        points = self.raw.setdefault(series.name, [])
        keys = (
            ("tcp_cwnd", "cwnd_segments", 1.0),
            ("tcp_rtt", "rtt_us", 1e-3),
            ("tcp_rtt_var", "rttvar_us", 1e-3),
            ("tcp_pacing_rate", "pacing_rate_bps", 1e-6),
            ("tcp_delivery_rate", "delivery_rate_bps", 1e-6),
        )
        columns = {key: samples[column][sender] * factor for key, column, factor in keys}
        t_ns = np.asarray(samples["t_ns"][sender], np.int64)
        for i, t in enumerate(self._time(t_ns)):
            points.append({"t": t} | {key: float(values[i]) for key, values in columns.items() if not np.isnan(values[i])})
        for key, values in columns.items():
            if not np.isnan(values).all():
                self.results[f"{series.name}::{key}"] = self._means(t_ns, values)

    def _qdisc(self, series: Series) -> None:
        samples = self.run.arrays(series)
        marks = samples["marks"]
        names = (("sent_bytes", "bytes"), ("sent_pkts", "packets"), ("overlimits", "overlimits"), ("requeues", "requeues"))
        backlog = (("backlog_bytes", "backlog_bytes"), ("backlog_pkts", "backlog_packets"))
        times = self._time(samples["t_ns"])
        points = [{"t": t} | {key: int(samples[column][i]) for key, column in (*names, *backlog)} for i, t in enumerate(times)]
        for key, counted in (("dropped", samples["drops"]), ("ecn_mark", marks)):
            if len(points) and not np.isnan(np.asarray(counted, np.float64)).any():
                for point, added in zip(points, np.maximum(0, np.diff(counted, prepend=counted[0])), strict=True):
                    point[key] = int(added)
        self.raw[series.name] = points
        for key, column in backlog:
            self.results[f"{series.name}::{key}"] = self._means(samples["t_ns"], np.asarray(samples[column], np.float64))
        self._describe(series, "TcRunner", "misc", {})

    def _host(self, series: Series) -> None:
        samples = self.run.arrays(series)
        load = samples["cpu_percent"] / 100
        times = self._time(samples["t_ns"])
        self.raw[series.name] = [{"t": t, "load": float(one)} for t, one in zip(times, load, strict=True) if not np.isnan(one)]
        self.results[f"{series.name}::load"] = self._means(samples["t_ns"], load)
        self._describe(series, "CpuStatsRunner", "misc", {})

    def _value(self, series: Series) -> None:
        samples = self.run.arrays(series)
        known = ~np.isnan(samples["value"])
        if any(series.name == name for name, _, _ in COMPUTED):
            # Export values unchanged if they were imported unchanged.
            self.results[series.name] = self._means(samples["t_ns"][known], samples["value"][known])
            self.raw.setdefault(series.name, [])
            return
        times = self._time(samples["t_ns"][known])
        self.raw[series.name] = [{"t": t, "val": float(one)} for t, one in zip(times, samples["value"][known], strict=True)]
        self.results[series.name] = self._means(samples["t_ns"][known], samples["value"][known])
        self._describe(series, "CommandOutputRunner", series.unit or "misc", {})

    # -- the other parts of the document --

    def _describe(self, series: Series, runner: str, unit: str, more: dict[str, Any]) -> None:
        process = self.meta.runner_of(series)
        known: dict[str, Any] = {"RUNNER": runner, "IDX": len(self.series_meta), "UNITS": unit} | more
        if process is not None:
            known["COMMAND"] = shlex.join(process.argv)
            known |= {"REMOTE_HOST": process.host} if process.host else {}
            flow = _flow_end(process, series)
            if flow.get("cc"):
                known["CONG_CONTROL"] = str(flow["cc"])
            if isinstance(flow.get("retransmits"), int):
                known["TCP_RETRANSMIT"] = flow["retransmits"]
        self.series_meta[series.name] = known

    def _computed(self) -> None:
        for name, how, pattern in COMPUTED:
            parts = [one for one in self.results if re.fullmatch(pattern, one) and "::tcp_" not in one]
            if len(parts) < 2 or name in self.results:
                continue
            total = np.sum([self.results[one] for one in parts], axis=0)  # NaN if one of them is
            self.results[name] = total / len(parts) if how == "mean" else total
            self.raw[name] = []
            means = [float(mean) for one in parts if (mean := self.series_meta[one].get("MEAN_VALUE")) is not None]
            self.series_meta[name] = {"RUNNER": RUNNERS[how], "IDX": len(self.series_meta), "COMPUTED_LATE": False}
            self.series_meta[name]["UNITS"] = self.series_meta[parts[0]]["UNITS"]
            if len(means) == len(parts):
                self.series_meta[name]["MEAN_VALUE"] = sum(means) / (len(parts) if how == "mean" else 1)

    def _metadata(self) -> dict[str, Any]:
        meta = self.meta
        load = meta.phase("load")
        length = (load.to_ns - load.from_ns if load else meta.length_ns) / 1e9
        before = meta.metadata.get("flent")
        kept = dict(before) if isinstance(before, dict) else {}
        local_host = meta.host.name or "localhost"
        hosts = [clean(one) for one in meta.targets] or ["localhost"]
        return kept | {
            "NAME": flent_name(meta),
            "TITLE": clean(meta.title),
            "NOTE": kept.get("NOTE"),
            "HOST": hosts[0],
            "HOSTS": hosts,
            "LOCAL_HOST": clean(local_host),
            "LENGTH": _plain(length),
            "TOTAL_LENGTH": _plain(meta.length_ns / 1e9),
            "STEP_SIZE": self.step_s,
            "TIME": time_text(meta.zero.realtime_ns),
            "T0": time_text(meta.zero.realtime_ns + round(self.first_ns)),
            "TEST_PARAMETERS": _parameters(meta),
            "FLENT_VERSION": kept.get("FLENT_VERSION", FLENT),
            "IP_VERSION": _ip_version(meta),
            "BATCH_NAME": kept.get("BATCH_NAME"),
            "BATCH_TIME": kept.get("BATCH_TIME"),
            "BATCH_TITLE": kept.get("BATCH_TITLE"),
            "BATCH_UUID": kept.get("BATCH_UUID"),
            "DATA_FILENAME": None,
            "FAILED_RUNNERS": sum(one.status in ("failed", "killed") for one in meta.runners),
            "HTTP_GETTER_DNS": kept.get("HTTP_GETTER_DNS"),
            "HTTP_GETTER_URLLIST": kept.get("HTTP_GETTER_URLLIST"),
            "HTTP_GETTER_WORKERS": kept.get("HTTP_GETTER_WORKERS"),
            "REMOTE_METADATA": kept.get("REMOTE_METADATA", {}),
            "KERNEL_NAME": "Linux",
            "KERNEL_RELEASE": meta.host.kernel,
            "SERIES_META": self.series_meta,
            "KTRXER": {"version": meta.version, "verdict": meta.verdict, "reasons": [one.as_json() for one in meta.reasons], "id": meta.id},
        }


def _plain(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number


def flent_name(meta: Meta) -> str:
    """The name of Flent's test. Flent opens a file of this name, so it must be a single word."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", meta.test).strip("_")[:100] or "unknown"


def _parameters(meta: Meta) -> dict[str, str]:
    found = meta.settings.get("parameters") if isinstance(meta.settings.get("parameters"), dict) else meta.settings
    chosen = {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}
    plain = {key: value for key, value in chosen.items() if isinstance(value, (str, int, float)) and not isinstance(value, bool)}
    kept = {clean(key, 100): clean(str(value), 200) for key, value in plain.items()}
    for direction in ("upload", "download"):
        flows = sum(one.kind == "bytes" and one.name.startswith(f"TCP {direction}::") for one in meta.series)
        if flows:
            kept[f"{direction}_streams"] = str(flows)
    return kept


def _ip_version(meta: Meta) -> int:
    return 6 if meta.settings.get("ip_version") in (6, "6") else 4


def _flow_end(process: Runner, series: Series) -> dict[str, Any]:
    flows = process.result.get("flows", ()) if process.kind == "flow" and series.kind == "bytes" else ()
    return next((one for one in flows if one.get("flow") == series.flow), {})
