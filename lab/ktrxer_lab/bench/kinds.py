# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kinds of bench: figures from the time stamps in the harness's samples. Each quantile is a value that occurred (type 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ktrxer_lab.bench.table import Column, Row, Table

WARM = 5  # BENCH_WARM of the harness: the first probes or pairs of a turn, which do not count
CROSS_OFF_PERCENT = 5
NS_PER_S = 1_000_000_000

Sample = dict[str, Any]
Pools = dict[str, list[int]]  # values in ns, or packets a second, of one turn

KEYS = (
    Column("engine", "sender", text=True, is_key=True),
    Column("payload", "payload B", is_key=True),
    Column("cross", "cross pps", is_key=True),
)
ROUNDS = (Column("rounds"), Column("stalled_rounds", "stalled"))
INTERVAL = Column("interval_us", "interval us", 3, is_key=True)
LOSS = (Column("lost_percent", "lost %", 3, 2), Column("cross_arrived_kpps", "cross kpps", 3, 2))


def quantile(values: Sequence[int], parts_per_million: int) -> int | None:
    """The smallest value with at least this share of all values at or below it."""
    if not values:
        return None
    rank = -(-len(values) * parts_per_million // 1_000_000)
    return sorted(values)[max(rank, 1) - 1]


def median(values: Sequence[int]) -> int | None:
    return quantile(values, 500_000)


def iqr(values: Sequence[int]) -> int | None:
    high, low = quantile(values, 750_000), quantile(values, 250_000)
    return None if high is None or low is None else high - low


def rate(count: int, first_ns: int, last_ns: int) -> list[int]:
    """Packets a second, (count - 1) / (last - first); empty without two packets at different times."""
    return [(count - 1) * NS_PER_S // (last_ns - first_ns)] if count >= 2 and last_ns > first_ns else []


@dataclass
class Rounds:
    """The values of all rounds, and the median of each round."""

    count: int = 0
    values: Pools = field(default_factory=dict)
    medians: Pools = field(default_factory=dict)

    def add(self, pools: Pools) -> None:
        self.count += 1
        for name, values in pools.items():
            self.values.setdefault(name, []).extend(values)
            middle = median(values)
            if middle is not None:
                self.medians.setdefault(name, []).append(middle)

    def figures(self, pool: str, prefix: str = "") -> Row:
        values, medians = self.values.get(pool, []), self.medians.get(pool, [])
        shares = {f"p{share}_us": quantile(values, share * 10_000) for share in (10, 25, 75, 90, 99)}
        found = {"median_us": median(medians), "spread_us": iqr(medians), "iqr_us": iqr(values), **shares}
        return {prefix + key: figure for key, figure in found.items()}


@dataclass
class Gathered:
    """The samples of one sender at one point."""

    clean: Rounds = field(default_factory=Rounds)
    stalled: Rounds = field(default_factory=Rounds)
    cross: list[int] = field(default_factory=list)
    sent: int = 0
    arrived: int = 0
    stamps: dict[str, int] = field(default_factory=dict)  # counts by source
    interval_ns: int = 0

    @property
    def rounds(self) -> Rounds:
        """The rounds without stalls; if all had stalls, all rounds. The row's counts show which."""
        return self.clean if self.clean.count else self.stalled


@dataclass(frozen=True)
class Kind:
    name: str
    columns: tuple[Column, ...]
    explains: str  # printed below the table
    pools: Callable[[list[Sample]], Pools]  # of the jobs of one turn
    figures: Callable[[Gathered], Row]
    options: tuple[str, ...]  # the settings as options of the harness, to repeat a run
    main_job: int = 0  # the job whose packets are counted


# ---------------------------------------------------------------------------------------------------------------- rates


def _rate_pools(jobs: list[Sample]) -> Pools:
    train, flood, *template = jobs
    size, rates = train["train"], list[int]()
    for at in range(0, len(train["arrivals_ns"]) - size + 1, size):
        came = [stamp for stamp in train["arrivals_ns"][at : at + size] if stamp]
        if len(came) >= size - size // 10:  # at least nine tenths of the train arrived
            rates += rate(len(came), min(came), max(came))
    floods = (("flood", flood), *(("template", one) for one in template))
    return {"train": rates} | {name: rate(one["timed"], one["first_ns"], one["last_ns"]) for name, one in floods}


def _rate_figures(gathered: Gathered) -> Row:
    row: Row = {}
    for pool, key in (("train", "train"), ("flood", "rate"), ("template", "template")):
        medians = gathered.rounds.medians.get(pool, [])
        row |= {f"{key}_kpps": median(medians), f"{key}_spread_kpps": iqr(medians)}
    return row


# ------------------------------------------------------------------------------------------------------------ schedules


def _schedule_pools(jobs: list[Sample]) -> Pools:
    (job,) = jobs
    arrivals, interval = job["arrivals_ns"], job["interval_ns"]
    # Intervals are those between neighbouring numbers: a lost probe has none.
    gaps = [late - soon for soon, late in zip(arrivals[WARM:], arrivals[WARM + 1 :], strict=False) if soon and late]
    # The distance of each arrival from its scheduled time, relative to the turn's median, because all share one path.
    places = [stamp - number * interval for number, stamp in enumerate(arrivals) if number >= WARM and stamp]
    middle = median(places) or 0
    return {"error": [abs(gap - interval) for gap in gaps], "gap": gaps, "offset": [place - middle for place in places]}


def _schedule_figures(gathered: Gathered) -> Row:
    rounds, stalled = gathered.rounds, gathered.stalled.values.get("error", [])
    return {
        "interval_us": gathered.interval_ns,
        **rounds.figures("error"),
        **rounds.figures("gap", "gap_"),
        **rounds.figures("offset", "offset_"),
        "stalled_median_us": median(stalled),
        "stalled_p90_us": quantile(stalled, 900_000),
    }


# ---------------------------------------------------------------------------------------------------------------- pairs


def _pairs_pools(jobs: list[Sample]) -> Pools:
    (job,) = jobs

    def gaps(stamps: list[int] | None) -> list[int]:
        # The second probe may arrive first or have the same stamp: a gap is never negative.
        pairs = zip((stamps or [])[2 * WARM :: 2], (stamps or [])[2 * WARM + 1 :: 2], strict=True)
        return [abs(second - first) for first, second in pairs if first and second]

    return {"driver": gaps(job["calls_ns"]), "arrival": gaps(job["arrivals_ns"])}


def _pairs_figures(gathered: Gathered) -> Row:
    rounds = gathered.rounds
    return {
        "pairs": len(rounds.values.get("arrival", [])), **rounds.figures("driver", "driver_"), **rounds.figures("arrival", "arrival_")
    }


def _stamps_pools(jobs: list[Sample]) -> Pools:
    (job,) = jobs
    sent, arrivals, calls = job["sent_ns"], job["arrivals_ns"], job["calls_ns"]
    pools: Pools = {"difference": [], "size": [], "driver": []}
    for at in range(2 * WARM, len(arrivals) - 1, 2):
        if not (sent[at] and sent[at + 1] and arrivals[at] and arrivals[at + 1]):
            continue
        reported = sent[at + 1] - sent[at]
        difference = reported - (arrivals[at + 1] - arrivals[at])
        pools["difference"].append(difference)
        pools["size"].append(abs(difference))
        if calls and calls[at] and calls[at + 1]:
            pools["driver"].append(abs(reported - (calls[at + 1] - calls[at])))
    return pools


def _stamps_figures(gathered: Gathered) -> Row:
    rounds, count = gathered.rounds, gathered.stamps
    wire, driver, queued = (count.get(source, 0) for source in ("wire", "driver", "queued"))
    return {
        "pairs": len(rounds.values.get("difference", [])),
        "stamp": "wire" if wire > driver + queued else "driver" if driver > queued else "queued",
        **rounds.figures("difference"),
        **rounds.figures("size", "size_"),
        **rounds.figures("driver", "driver_"),
    }


def _us(key: str, head: str | None = None, **more: Any) -> Column:
    return Column(key, head, 3, 2, **more)


def _spread(key: str) -> Column:
    return Column(key, "+-", 3, 2)


RATE = Kind(
    "rate",
    (
        *KEYS, *ROUNDS,
        Column("train_kpps", "train kpps", 3, better=1, spread="train_spread_kpps"), Column("train_spread_kpps", "IQR", 3),
        Column("rate_kpps", "flood kpps", 3, better=1, spread="rate_spread_kpps"), Column("rate_spread_kpps", "IQR", 3),
        Column("template_kpps", "template kpps", 3, better=1, spread="template_spread_kpps"), Column("template_spread_kpps", "IQR", 3),
        Column("rate_mbps", "Mbit/s", 3), *LOSS,
    ),
    "kpps: thousand packets a second at the far end, (n-1)/(last-first); median over the rounds and the IQR of these. "
    "Mbit/s: of IP packets, the flood's. template: number, source port and checksum differ, engines only.",
    _rate_pools, _rate_figures, ("payload", "cross", "for_ns", "train", "threads", "rounds", "seed"), main_job=1,
)  # fmt: skip
SCHEDULE = Kind(
    "schedule",
    (
        *KEYS, INTERVAL, *ROUNDS,
        _us("median_us", "median us", better=-1, spread="spread_us"), _spread("spread_us"), _us("iqr_us", "IQR us"),
        _us("p90_us", "p90 us"), _us("p99_us", "p99 us"), _us("offset_iqr_us", "offset IQR"), _us("offset_p99_us", "p99"),
        _us("stalled_median_us"), _us("stalled_p90_us"), *LOSS,
    ),
    "|interval at the far end - scheduled interval|. median: the median of the rounds' medians; +-: the IQR of these; IQR, p90, p99: of "
    "all intervals. offset: arrival - scheduled time - its median.",
    _schedule_pools, _schedule_figures, ("payload", "cross", "both_ways", "interval_ns", "count", "rounds", "seed", "fq"),
)  # fmt: skip
METHODS = Kind(
    "schedule",
    (
        *KEYS, INTERVAL, *ROUNDS,
        _us("gap_p10_us", "gap p10 us"), _us("gap_p25_us", "p25"), _us("gap_median_us", "median", spread="gap_spread_us"),
        _us("gap_spread_us"), _us("gap_p75_us", "p75"), _us("gap_p90_us", "p90"),
        _us("median_us", "error median us", better=-1, spread="spread_us"), _spread("spread_us"), _us("iqr_us", "IQR us"),
        _us("p90_us"), _us("p99_us"), _us("stalled_median_us"), _us("stalled_p90_us"), *LOSS,
    ),
    "gap: between neighbours at the far end (of all rounds). error: |gap - scheduled interval|; +-: the IQR of the rounds' medians. "
    "OIR: the engine has all probes from the start; OFR: it gets each one a fixed period before its time; OSM: a sleep ends, and the "
    "engine sends at once; RSM: a raw socket sends at once.",
    _schedule_pools, _schedule_figures, (*SCHEDULE.options, "methods", "predispatch"),
)  # fmt: skip
PAIRS = Kind(
    "pairs",
    (
        *KEYS, *ROUNDS, Column("pairs", "pairs"), _us("driver_p10_us"), _us("driver_p25_us"),
        _us("driver_median_us", "driver median us", better=-1, spread="driver_spread_us"), _spread("driver_spread_us"),
        _us("driver_p75_us"), _us("driver_iqr_us", "IQR us"), _us("driver_p90_us", "p90 us"), _us("driver_p99_us", "p99 us"),
        _us("arrival_median_us", "arrival median us", better=-1, spread="arrival_spread_us"), _spread("arrival_spread_us"),
        _us("arrival_iqr_us", "IQR us"), _us("arrival_p90_us", "p90 us"), _us("arrival_p99_us"), *LOSS,
    ),
    "driver: between the two calls of the device's driver; probes of one call are 0 apart there. arrival: between the two at the far end; "
    "one poll of its device takes both and compresses the gap.",
    _pairs_pools, _pairs_figures, ("payload", "cross", "both_ways", "interval_ns", "count", "rounds", "seed"),
)  # fmt: skip
STAMPS = Kind(
    "stamps",
    (
        *KEYS, Column("gap_us", "gap us", 3, is_key=True), *ROUNDS, Column("pairs", "pairs"), Column("stamp", "stamp", text=True),
        _us("p10_us", "p10 us"), _us("median_us", "median us", spread="spread_us"), _spread("spread_us"), _us("iqr_us", "IQR us"),
        _us("p90_us", "p90 us"), _us("size_median_us", "|median| us", better=-1, spread="size_spread_us"), _us("size_spread_us"),
        _us("size_p90_us", "|p90| us"), _us("size_p99_us", "|p99| us"), _us("driver_median_us", "at driver: median us"),
        _us("driver_p90_us"), LOSS[0], Column("cross_arrived_kpps", None, 3),
    ),
    "gap of the reported send times less the gap of the arrivals, signed; | |: its size. at driver: the same against the calls of the "
    "device's driver, where a `driver` stamp is taken.",
    _stamps_pools, _stamps_figures, ("payload", "cross", "gaps", "count", "rounds", "seed"),
)  # fmt: skip
RECEIVE_COLUMNS = (
    Column("what", "what", text=True, is_key=True), Column("rules", "exact rules", is_key=True),
    Column("wildcards", "wildcards", is_key=True),
    Column("rounds"), Column("cost_ns", "ns a packet", better=-1, spread="cost_spread_ns"), Column("cost_spread_ns", "IQR"),
    Column("sent"), Column("captured"), Column("lost", "lost"), Column("lossless_rounds", "without loss"),
    Column("rate_kpps", "kpps", 3, better=1, spread="rate_spread_kpps"), Column("rate_spread_kpps", "IQR", 3),
    Column("flow_mbps", "Mbit/s", better=1, spread="flow_spread_mbps"), Column("flow_spread_mbps", "IQR"),
)  # fmt: skip
RECEIVE_EXPLAINS = (
    "ns a packet: BPF_PROG_RUN, the mean of {repeat} runs. "
    "kpps: packets that reached this process, captured and dropped, by their own stamps."
)
RECEIVE_OPTIONS = ("rules", "repeat", "rate_pps", "for_ns", "payload", "ring", "rounds", "no_flow")


@dataclass
class Senders:
    """The turns of `bench rate`, `schedule`, `pairs` and `stamps`."""

    kind: Kind
    gathered: dict[tuple[int, int, int, str], Gathered] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)  # of a degraded verdict

    @property
    def explains(self) -> str:
        return self.kind.explains

    def add(self, sample: Sample) -> None:
        point = (sample["cross"], sample["payload"], sample["gap_ns"], sample["engine"])
        gathered = self.gathered.setdefault(point, Gathered())  # also for the warm-up round, which sets the order of the senders
        if sample["round"] < 0 or sample["failed"] is not None:
            return
        jobs = sample["jobs"]
        counted = jobs[self.kind.main_job]
        (gathered.stalled if sample["stalled"] else gathered.clean).add(self.kind.pools(jobs))
        sent = counted["sent"] if counted["pattern"] == "flood" else len(counted["arrivals_ns"])
        if sent is not None:
            gathered.sent += sent
            gathered.arrived += counted["arrived"]
        gathered.cross += rate(counted["cross"], counted["cross_first_ns"], counted["cross_last_ns"])
        gathered.interval_ns = jobs[0]["interval_ns"]
        for source in ("wire", "driver", "queued"):
            gathered.stamps[source] = gathered.stamps.get(source, 0) + jobs[0][source]

    def table(self) -> Table:
        rows = [self._row(*point, gathered) for point, gathered in self.gathered.items() if gathered.rounds.count]
        return Table(self.kind.columns, rows)

    def _row(self, cross: int, payload: int, gap_ns: int, engine: str, gathered: Gathered) -> Row:
        row: Row = {
            "engine": engine, "payload": payload, "cross": cross, "gap_us": gap_ns,
            "rounds": gathered.clean.count + gathered.stalled.count, "stalled_rounds": gathered.stalled.count,
            **self.kind.figures(gathered),
        }  # fmt: skip
        if gathered.sent:
            row["lost_percent"] = max(0, gathered.sent - gathered.arrived) * 100_000 // gathered.sent
        packets = row.get("rate_kpps")
        if isinstance(packets, int):
            row["rate_mbps"] = packets * (payload + 28) * 8 // 1000  # of IP packets, in kbit/s
        if cross:
            came = median(gathered.cross) or 0
            row["cross_arrived_kpps"] = came
            if abs(came - cross) * 100 > cross * CROSS_OFF_PERCENT:
                wanted = f"{came} of {cross} packets a second of cross traffic arrived"
                self.reasons.append(f"{wanted} beside {engine} at {payload} bytes")
        return row


@dataclass
class Receivers:
    """The rounds of `bench receive`."""

    explains: str = RECEIVE_EXPLAINS
    rounds: dict[tuple[str, str, int, int], list[Sample]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        self.rounds.setdefault((sample["kind"], sample["what"], sample["rules"], sample["wildcards"]), []).append(sample)

    def table(self) -> Table:
        return Table(RECEIVE_COLUMNS, [self._row(*part, samples) for part, samples in self.rounds.items()])

    def _row(self, part: str, what: str, rules: int, wildcards: int, samples: list[Sample]) -> Row:
        row: Row = {"what": what, "rules": rules, "wildcards": wildcards, "rounds": len(samples)}
        if part == "cost":
            return row | _middle("cost_ns", "cost_spread_ns", (one["cost_ns"] for one in samples))
        if part == "flow":
            return row | _middle("flow_mbps", "flow_spread_mbps", (one["mbps"] for one in samples))
        row |= {key: sum(one[key] for one in samples) for key in ("sent", "captured", "lost")}
        row["lossless_rounds"] = sum(one["sent"] == one["captured"] for one in samples)
        rates = (value for one in samples for value in rate(one["captured"], one["first_ns"], one["last_ns"]))
        return row | _middle("rate_kpps", "rate_spread_kpps", rates)


def _middle(key: str, spread: str, values: Iterable[int]) -> Row:
    all_values = list(values)
    return {key: median(all_values), spread: iqr(all_values)}


KINDS = {kind.name: kind for kind in (RATE, SCHEDULE, PAIRS, STAMPS)}
NAMES = (*KINDS, "receive")


def reader(name: str, methods: bool) -> Senders | Receivers:
    """The reader that computes figures from the samples of a bench."""
    if name == "receive":
        return Receivers()
    return Senders(METHODS if name == "schedule" and methods else KINDS[name])


def options(name: str, methods: bool) -> tuple[str, ...]:
    found = reader(name, methods)
    return found.kind.options if isinstance(found, Senders) else RECEIVE_OPTIONS


def columns(name: str, methods: bool) -> Sequence[Column]:
    found = reader(name, methods)
    return found.kind.columns if isinstance(found, Senders) else RECEIVE_COLUMNS
