# SPDX-License-Identifier: MIT OR Apache-2.0
"""Levels and outages of `ktrxer flow`, and what is none. Reference: the times at which the router's netem changes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from guests import KTRXER, Lab
from shaped import FILE

SHAPE = "for d in to-near to-far; do ip netns exec mid tc qdisc {} dev $d root netem {}; done"
FLOW = "flow {} {} --for {}s --token-file token --json"


@dataclass(frozen=True)
class Case:
    netem: str
    words: str
    seconds: int
    changes: tuple[tuple[float, str], ...] = ()  # seconds after the begin of the command, and netem's words
    rates: tuple[float, ...] = ()  # Mbit/s of the levels
    outage_s: float = 0
    ways: tuple[str, ...] = ("up", "down")
    to: str = "far"
    one_flow_s: tuple[float, float] | None = None  # the router drops the packets of the last connection between these times


# tcp or udp, begin and length in seconds: the router drops the packets of the connection whose socket is the youngest one.
ONE_FLOW = """
sleep $2
port=$(ip netns exec near ss -${1%${1#?}} -aenH |
    sed -n 's/^[EU][A-Z]* *[0-9]* *[0-9]* *[^ ]*:\\([0-9]*\\) .*ino:\\([0-9]*\\).*/\\2 \\1/p' | sort -n | tail -n 1 | cut -d ' ' -f 2)
ip netns exec mid nft "table inet one { chain pass { type filter hook forward priority 0; $1 sport $port drop; $1 dport $port drop; }; }"
sleep $3
ip netns exec mid nft delete table inet one
"""
DEAD = "loss 100%"
STALL = "delay 10ms limit 1000 rate 10mbit"
STEP = "delay 10ms limit 100 rate {}mbit"
CASES = {
    "tcp stalls": Case(STALL, "", 6, ((1.5, DEAD), (3.5, STALL)), rates=(0, 9.5), outage_s=2),
    "udp stalls": Case(STALL, "-u -b 2M", 4, ((1, DEAD), (3, STALL)), outage_s=2, to="far-6"),
    "udp stalls, slow": Case(STALL, "-u -b 64k", 8, ((2, DEAD), (6, STALL)), outage_s=4),
    "tcp stalls at 600 ms": Case("delay 300ms limit 1000 rate 10mbit", "", 24, ((12, DEAD), (16, "delay 300ms limit 1000 rate 10mbit")), outage_s=4),
    "tcp steps": Case(STEP.format(10), "", 14, ((5, STEP.format(0.4)), (9, STEP.format(10))), rates=(9.5, 0.38, 9.5)),
    "udp steps": Case(STEP.format(10), "-u -b 9.4M", 14, ((5, STEP.format(0.4)), (9, STEP.format(10))), rates=(9.4, 0.38, 9.4)),
    "four tcp steps": Case(STEP.format(10), "--flows 4", 14, ((5, STEP.format(0.4)), (9, STEP.format(10))), rates=(9.5, 0.38, 9.5), to="far-6"),
    "satellite": Case(STEP.format(8), "", 12, ((6, STEP.format(4)),), rates=(7.6, 3.8)),
    "one of four tcp flows": Case(STALL, "--flows 4", 9, one_flow_s=(3, 6), outage_s=3),
    "one of four udp flows": Case(STALL, "-u -b 2M --flows 4", 9, rates=(8, 6, 8), one_flow_s=(3, 6), outage_s=3, to="far-6"),
    "slow start": Case("delay 300ms limit 2000 rate 20mbit", "", 10),
    "loss at 600 ms": Case("delay 300ms limit 2000 rate 10mbit loss 2%", "", 20),
    "a slow udp flow": Case(STALL, "-u -b 64k", 10),
    "a slow tcp flow": Case(STALL, "-b 64k", 10),
    "poisson": Case(STALL, "-u -b 64k --model poisson", 10),
    "voip": Case(STALL, "-u --model voip -b 64k", 20),
    "bbr": Case("delay 20ms limit 200 rate 10mbit", "--cc bbr", 22),
    "shallow": Case("delay 20ms limit 10 rate 10mbit", "--cc cubic", 20),
    "many": Case("delay 20ms limit 60 rate 10mbit", "--flows 16", 10),
    "fifty": Case("delay 20ms limit 60 rate 10mbit", "--flows 50", 15),
    "four in a shallow queue": Case("delay 20ms limit 8 rate 10mbit", "--flows 4", 20),
    "eight and losses": Case("delay 20ms limit 60 rate 10mbit loss 5%", "--flows 8", 20),
    "four at 600 ms": Case("delay 300ms limit 300 rate 10mbit loss 1%", "--flows 4 --cc reno", 20),
    "heavy loss": Case("delay 20ms limit 60 rate 10mbit loss 30%", "-u -b 2M", 10),
    "a small path": Case("delay 20ms limit 20 rate 64kbit", "", 15),
    "beside many": Case("delay 20ms limit 60 rate 10mbit", "-u -b 200k", 10),
}


def run_all(folder: Path, cases: dict[str, Case]) -> dict[tuple[str, str], dict[str, Any]]:
    lab = Lab(folder)
    (lab.folder / "shaped.toml").write_text(FILE)
    lab.write_token()
    job, files = list[str](), dict[tuple[str, str], Path]()
    for name, one in cases.items():
        for way in one.ways:
            files[name, way] = lab.folder / f"{len(files)}.json"
            job.append(SHAPE.format("replace", one.netem))
            if name == "beside many":
                job.append(f"{KTRXER} flow {way} far --flows 8 --for 12s --token-file token >/dev/null 2>&1 & sleep 1")
            job += [f"(sleep {at}; {SHAPE.format('replace', words)}) &" for at, words in one.changes]
            if one.one_flow_s is not None:
                begin, end = one.one_flow_s
                job.append(f"sh -e ./one {'udp' if '-u' in one.words else 'tcp'} {begin} {end - begin} &")
            job.append(f"{KTRXER} {FLOW.format(way, one.to, one.seconds)} {one.words} >{files[name, way].name}; wait")
    (lab.folder / "one").write_text(ONE_FLOW)
    (lab.folder / "job").write_text("\n".join([*job, "true"]))
    serve = f"far={KTRXER} serve --quiet --token-file token"
    done = lab("run", "./shaped.toml", "--time", "virtual", "--beside", serve, "--", "sh", "./job", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return {key: json.loads(path.read_text()) for key, path in files.items()}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    made = run_all(tmp_path_factory.mktemp("findings"), CASES)
    for (name, way), end in made.items():
        begin = end["start_ns"]
        levels = [(one["direction"], round((one["to_ns"] - begin) / 1e9, 1), round(one["rate_bps"] / 1e6, 3)) for one in end["levels"]]
        dead = [(round((one["from_ns"] - begin) / 1e9, 2), one["low_ns"] / 1e6, (one["high_ns"] or 0) / 1e6) for one in end["outages"]]
        print(f"figure: {name} {way}: {end[f'{way}_bps']} {end['verdict']} {[one['id'] for one in end['reasons']]} levels {levels} outages {dead}")
    return made


@pytest.mark.parametrize(("name", "way"), [(name, way) for name, one in CASES.items() for way in one.ways])
def test_levels_and_outages(ends: dict[tuple[str, str], dict[str, Any]], name: str, way: str) -> None:
    one, end = CASES[name], ends[name, way]
    assert [level["rate_bps"] / 1e6 for level in end["levels"]] == pytest.approx(one.rates, rel=0.12, abs=0.001)
    if not one.outage_s:
        assert end["outages"] == []
        return
    (dead,) = end["outages"]
    assert (dead["flow"] is None) == (one.one_flow_s is None)
    assert dead["direction"] == way and dead["low_ns"] <= dead["high_ns"]
    assert one.outage_s * 1e9 <= dead["high_ns"] and dead["low_ns"] >= 0.8 * one.outage_s * 1e9
