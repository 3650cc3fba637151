# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run` over a path whose rate changes in mid-run, that gives probes and flows different ways, or that loses all packets of one direction.
References: the rates and delays of the topology, and the counters of nftables.

a - r - m - b, and from r to m also by x; r and b shape what they send to m
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from guests import Lab
from ktrxer.statistics.throughput import receiver_end
from ktrxer.store import Run, open_run
from ktrxer.summary import figures, model
from ktrxer.summary.text import lines as summary_lines

FILE = """
hosts = ["a", "b"]
routers = ["r", "m", "x"]
[[links]]
ends = ["a", "r"]
[[links]]
ends = ["r", "m"]
[[links]]
ends = ["m", "b"]
[[links]]
ends = ["r", "x"]
[[links]]
ends = ["x", "m"]
"""
RECIPE = """
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, {flows}, icmp, udp
def plan(setting: Setting, _: NoParameters) -> Plan:
    return combine(icmp(setting), udp(setting, "Ping (ms) UDP"), {flows}(setting, ["TCP"]))
TEST = Test("mine", "a flow beside probes", plan)
"""
# argv: the scenarios. Of each: commands before the run, the run's, and commands at times after its first samples; prints the last words of each run.
JOB = """
def sh(lines):
    return "".join(subprocess.run(["sh", "-ec", line], check=True, capture_output=True, text=True).stdout for line in lines)
def run(before, command, at, after):
    sh(before)
    child = begin_run(command)
    begun = time.monotonic()
    said = ""
    for seconds, line in at:
        time.sleep(max(0, begun + seconds - time.monotonic()))
        said += sh([line])
    end = json.loads(child.communicate()[0])
    return {"file": end["file"], "said": said + sh(after)}
json.dump([run(*one) for one in json.loads(sys.argv[1])], sys.stdout)
"""
DELAY_MS = 5  # from m to b
FAST, SLOW = 8, 2  # Mbit/s of the shaper
LIMIT = 50_000  # bytes of its queue
SHARE = 1448 / 1514  # of TCP's payload in the frames that it counts
SECONDS = 10  # of load
CHANGE_S = 5
QUEUE_DROPS = 3  # probes up that the full queue of r drops
BASE = f"ip netns exec m tc qdisc replace dev to-b root netem delay {DELAY_MS}ms limit 10000"

WIDE_MBIT = 20
WIDE = f"{BASE} rate {WIDE_MBIT}mbit".replace("limit 10000", "limit 60")


def shaped(host: str, mbit: float, limit: int = LIMIT, word: str = "replace") -> str:
    return f"ip netns exec {host} tc qdisc {word} dev to-m root tbf rate {mbit}mbit burst 5k limit {limit}"


def free(host: str) -> str:
    return f"ip netns exec {host} tc qdisc del dev to-m root"


def apart(*protocols: str) -> list[str]:
    """Rules of r: packets of a of these protocols go by x."""
    return ["ip -n r route replace default via $(ip -n x -4 -o address show dev to-r | sed 's|.*inet ||; s|/.*||') table 100",
            *(f"ip -n r rule add iif to-a ipproto {one} table 100" for one in protocols)]  # fmt: skip


def together(*protocols: str) -> list[str]:
    return [f"ip -n r rule del iif to-a ipproto {one} table 100" for one in protocols]


def outage(way: str) -> str:
    match = "iifname to-a" if way == "up" else "oifname to-a"
    return f"ip netns exec r nft 'table ip outage {{ chain forward {{ type filter hook forward priority 0; {match} counter drop; }}; }}'"


def others(words: str) -> list[str]:
    """From now on x sends to b by r, whose queue it fills."""
    return [
        "ip -n x route replace $(getent ahostsv4 b | cut -d' ' -f1 | head -1) via $(ip -n r -4 -o address show dev to-x | sed 's|.*inet ||; s|/.*||')",
        f"ip netns exec x ktrxer flow up b {words} --for 90s >/dev/null 2>&1 & echo $! >others; sleep 3",
    ]


ALONE = ["kill $(cat others); sleep 1", "ip -n x route del $(getent ahostsv4 b | cut -d' ' -f1 | head -1)"]
BACKLOG = "ip netns exec r tc -s -j qdisc show dev to-m"
DROPPED = "ip netns exec r nft -j list table ip outage"
Scenario = tuple[str, list[str], list[tuple[float, str]], list[str]]  # kind of the flows, commands before, at times, after
SCENARIOS: dict[str, Scenario] = {
    "router": ("uploads", [shaped("r", FAST)], [(CHANGE_S, shaped("r", SLOW, word="change"))], [free("r")]),
    "added": ("uploads", [WIDE], [(CHANGE_S, shaped("r", FAST, word="add"))], [free("r")]),
    "removed": ("uploads", [WIDE, shaped("r", FAST)], [(CHANGE_S, free("r"))], []),
    "far host": ("downloads", [shaped("b", FAST)], [(CHANGE_S, shaped("b", SLOW, word="change"))], [free("b")]),
    "probes by a slower way": (
        "uploads", [shaped("r", FAST, 10_000), "ip netns exec r tc qdisc replace dev to-x root netem delay 60ms limit 10000", *apart("udp")], [],
        [free("r"), "ip netns exec r tc qdisc del dev to-x root", *together("udp")],
    ),
    "one kind of probes by a free way": ("uploads", [shaped("r", FAST), *apart("udp")], [], [free("r"), *together("udp")]),
    "all probes by a free way": ("uploads", [shaped("r", FAST), *apart("udp", "icmp")], [], [free("r"), *together("udp", "icmp")]),
    "others that yield": ("uploads", [shaped("r", FAST), *others("--flows 1")], [(1, BACKLOG)], [*ALONE, free("r")]),
    "others that do not yield": (
        "uploads", [shaped("r", FAST), *others(f"--udp --bitrate {1.05 * FAST * SHARE:.3f}M --payload 1448")], [(1, BACKLOG)], [*ALONE, free("r")],
    ),
    **{
        f"no packets {way}": ("uploads", [shaped("r", FAST)], [(3, outage(way)), (5, DROPPED), (5, "ip netns exec r nft delete table ip outage")], [free("r")])
        for way in ("up", "down")
    },
    **{
        f"no packets {way} to the end": ("uploads", [shaped("r", FAST)], [(3, outage(way))], ["ip netns exec r nft delete table ip outage", free("r")])
        for way in ("up", "down")
    },
}  # fmt: skip


@dataclass(frozen=True)
class Made:
    run: Run
    summary: model.Summary
    message: str  # output of the commands

    def says(self, *words: str) -> bool:
        return any(all(word in one.text for word in words) for one in self.summary.reasons)

    def begin(self) -> int:
        """Of the load, in nanoseconds."""
        phase = self.run.meta.phase("load")
        assert phase is not None
        return phase.from_ns

    def rate(self, from_s: float, to_s: float) -> float:
        """Mbit/s of the flow's payload at its receiver, within the load."""
        begin = self.begin()
        (series,) = self.run.meta.of_kind("bytes")
        arrays = self.run.arrays(series)
        mine = arrays["end"] == receiver_end(series.direction)
        times, counts = arrays["t_ns"][mine] - begin, arrays["bytes"][mine].astype(float)
        low, high = np.interp([from_s * 1e9, to_s * 1e9], times, counts)
        return float(high - low) * 8 / 1e6 / (to_s - from_s)

    def trips(self, name: str, from_s: float, to_s: float) -> np.ndarray[Any, Any]:
        """Round trips in milliseconds, within the load."""
        begin = self.begin()
        arrays = self.run.arrays(self.run.series(name))
        inside = (arrays["state"] == 0) & (arrays["t_ns"] >= begin + from_s * 1e9) & (arrays["t_ns"] < begin + to_s * 1e9)
        found: np.ndarray[Any, Any] = arrays["rtt_ns"][inside] / 1e6
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    folder = tmp_path_factory.mktemp("changes")
    lab = Lab(folder)
    (lab.folder / "net.toml").write_text(FILE)
    for flows in ("uploads", "downloads"):
        (lab.folder / f"{flows}.py").write_text(RECIPE.format(flows=flows))
    jobs = [
        ([BASE, *before], f"{sys.executable} -m ktrxer run ./{flows}.py -H b -D runs -l {SECONDS} --delay {3 if 'others' in name else 1} -i 100ms --no-extras --json".split(), at, after)
        for name, (flows, before, at, after) in SCENARIOS.items()
    ]
    found = {}
    for name, one in zip(SCENARIOS, lab.runs_in_virtual_time("b", JOB, json.dumps(jobs), timeout=500), strict=True):
        run = open_run(lab.folder / one["file"])
        found[name] = Made(run, figures.summarise(run), one["said"])
        print(f"figure: {name}: {run.meta.verdict}, {found[name].summary.reasons}, {found[name].summary.changes}")
    return found


@pytest.mark.parametrize("where", ["router", "far host"])
def test_a_shaper_that_is_changed_in_mid_run(made: dict[str, Made], where: str) -> None:
    """A change of the path is a result, and no fault of a host: rates and delays are those of the shaper before and after it."""
    one = made[where]
    assert (one.run.meta.verdict, one.summary.reasons) == ("valid", [])
    assert one.rate(1, CHANGE_S - 1) == pytest.approx(FAST * SHARE, rel=0.05) and one.rate(CHANGE_S + 2, SECONDS) == pytest.approx(SLOW * SHARE, rel=0.1)
    frame_ms = 1514 * 8 / SLOW / 1000
    for name in ("Ping (ms) UDP", "Ping (ms) ICMP"):
        for mbit, span in ((FAST, (1, CHANGE_S - 1)), (SLOW, (CHANGE_S + 2, SECONDS))):
            full_ms = LIMIT * 8 / mbit / 1000
            found = one.trips(name, *span)
            assert len(found) > 20 and found.max() < full_ms + DELAY_MS + frame_ms + 1, (name, mbit)
            # A sender's TCP keeps the queue of its own host short (TSQ).
            assert where == "far host" or np.median(found) > 0.5 * full_ms + DELAY_MS, (name, mbit)
    assert one.summary.where[0].place == ("up" if where == "router" else "the far host's own queue") and one.summary.where[0].share > 0.8


@pytest.mark.parametrize(("name", "before", "after"), [
    ("router", FAST, SLOW), ("far host", FAST, SLOW), ("added", WIDE_MBIT, FAST), ("removed", FAST, WIDE_MBIT),
])  # fmt: skip
def test_the_mean_over_a_change_is_not_stated_without_it(made: dict[str, Made], name: str, before: int, after: int) -> None:
    one = made[name]
    assert one.run.meta.verdict == "valid", one.summary.reasons
    (flow,) = [change for change in one.summary.changes if change.unit == "Mbit/s"]
    assert [level.median for level in flow.levels] == pytest.approx([before * SHARE, after * SHARE], rel=0.1)
    changed_s = flow.levels[0].to_s - one.begin() / 1e9
    assert one.rate(1.5, changed_s - 0.5) == pytest.approx(before * SHARE, rel=0.1), "the change was not earlier"
    assert one.rate(changed_s + 0.5, SECONDS) == pytest.approx(after * SHARE, rel=0.1), "nor later"
    (line,) = [line for line in summary_lines(one.summary) if line.startswith("changed in mid-run  TCP")]
    assert f"{flow.levels[0].median:.2f} Mbit/s until {flow.levels[0].to_s:.1f} s, then {flow.levels[1].median:.2f} Mbit/s" in line


def test_a_path_that_does_not_change_has_no_levels(made: dict[str, Made]) -> None:
    for name in ("probes by a slower way", "one kind of probes by a free way", "all probes by a free way"):
        assert made[name].summary.changes == [], name


@pytest.mark.parametrize("how", ["yield", "do not yield"])
def test_others_fill_the_path_in_the_whole_run(made: dict[str, Made], how: str) -> None:
    """Others that yield to the load leave times with a shorter queue, which the idle round trips contradict. Others that do not yield hold the
    same queue in the whole run: no figure of the run can show it, so the grade states the idle round trip that it is beside."""
    one = made[f"others that {how}"]
    backlog = json.loads(one.message)[0]["backlog"]
    print(f"figure: backlog before the load {backlog} bytes; {one.summary.grade}")
    assert backlog > 0.3 * LIMIT, "the reference: the queue before the load"
    found = one.says("the idle UDP round trips were not those of an idle path", "other traffic filled the path")
    assert found == (how == "yield")
    if found:
        assert one.summary.grade is None and one.run.meta.verdict == "degraded"
        return
    grade = one.summary.grade
    if grade is None:
        assert one.rate(1.5, SECONDS) < FAST / 100, "only the load of a run through which none gets has no grade"
        return
    assert grade.idle_ms == pytest.approx(DELAY_MS + backlog * 8 / FAST / 1000, abs=10)
    (line,) = [line for line in summary_lines(one.summary) if "the idle p50 is" in line]
    assert f"{grade.idle_ms:.1f} ms" in line and "a queue that other traffic fills in the whole run" in line


def test_probes_by_a_slower_way_than_the_flows(made: dict[str, Made]) -> None:
    one = made["probes by a slower way"]
    assert np.median(one.trips("Ping (ms) UDP", 1, SECONDS)) == pytest.approx(60 + DELAY_MS, abs=2), "the reference: the delay of the other way"
    assert one.run.meta.verdict == "degraded"
    assert one.says("UDP and the flows' own round trips", "contradict each other", "different paths")
    assert not one.says("limited by")


def test_one_kind_of_probes_by_another_way(made: dict[str, Made]) -> None:
    one = made["one kind of probes by a free way"]
    assert np.median(one.trips("Ping (ms) UDP", 1, SECONDS)) < DELAY_MS + 2, "the reference: the other way has no queue"
    assert one.run.meta.verdict == "degraded" and one.says("UDP and ICMP round trips", "contradict each other", "different paths")


def test_all_probes_by_another_way(made: dict[str, Made]) -> None:
    """docs/explanation/faults.md: this looks like a fair queue. The round trips of the flows are beside those of the probes."""
    one = made["all probes by a free way"]
    assert (one.run.meta.verdict, one.summary.reasons) == ("valid", [])
    found = one.summary.responsiveness
    assert found is not None and found.foreign_rpm is not None and found.self_rpm is not None
    assert found.self_rpm < 60_000 / (0.5 * LIMIT * 8 / FAST / 1000) and found.foreign_rpm > 60_000 / (DELAY_MS + 2)


@pytest.mark.parametrize("way", ["up", "down"])
def test_all_packets_of_one_direction_are_lost_under_load(made: dict[str, Made], way: str) -> None:
    """Probes of UDP have a direction, those of ICMP have none. Losses are a result; no host is blamed."""
    one = made[f"no packets {way}"]
    (rule,) = [part for part in json.loads(one.message)["nftables"] if "rule" in part]
    dropped = rule["rule"]["expr"][1]["counter"]["packets"]
    lost = {series.name: one.run.arrays(series)["state"] for series in one.run.meta.of_kind("latency")}
    print(f"figure: nftables dropped {dropped}; {[(name, np.unique(state, return_counts=True)) for name, state in lost.items()]}")
    assert dropped >= 20, "the reference dropped nothing"
    assert not one.says("limited by"), one.summary.reasons
    sums = {name: sum(getattr(loss, name) for loss in one.summary.loss) for name in ("lost", "lost_up", "lost_down")}
    assert 30 <= sums["lost"] <= 50
    here, other = ("lost_up", "lost_down") if way == "up" else ("lost_down", "lost_up")
    assert 15 <= sums[here] <= sums["lost"] / 2 + 5 and sums[other] <= QUEUE_DROPS
    assert one.rate(8, SECONDS) > 0.5 * FAST * SHARE, "the flow goes on"
    (stalled,) = one.summary.byte_outages
    assert stalled.direction == "up" and stalled.high_ms is not None and stalled.high_ms > 2000 and 1500 < stalled.low_ms < 4500
    assert any(line.startswith("outage  no byte up for ") for line in summary_lines(one.summary)[1:3])
    assert one.summary.grade is None or one.summary.grade.outage_ms >= stalled.low_ms


@pytest.mark.parametrize("way", ["up", "down"])
def test_all_packets_of_one_direction_are_lost_from_then_on(made: dict[str, Made], way: str) -> None:
    """Nothing of the server arrives from then on, in either case: the direction cannot be known, and the flow has no end."""
    one = made[f"no packets {way} to the end"]
    sums = {name: sum(getattr(loss, name) for loss in one.summary.loss) for name in ("lost", "lost_up", "lost_down")}
    assert sums["lost"] > 80 and sums["lost_up"] <= QUEUE_DROPS and sums["lost_down"] == 0, sums
    assert one.run.meta.verdict != "valid" and one.says("final counts", "did not arrive") and not one.says("limited by")
