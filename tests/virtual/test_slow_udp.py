# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rate of a UDP flow that a slow link or a token bucket carries, and its error bound. Reference: the link, which carries the flow's packets
alone (the control connection has another band), so its rate is that of the link less the headers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guests import KTRXER, Lab
from shaped import FILE

PAYLOAD = 1000
HEAD = {"far": 42, "far-6": 62}  # Ethernet, IP and UDP
SLOW = (
    "for d in to-near to-far; do for c in 'qdisc del root' 'qdisc add root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1' "
    "'qdisc add parent 1:1 {}' 'filter add parent 1: protocol ip u32 match ip protocol 17 0xff flowid 1:1' "
    "'filter add parent 1: protocol ipv6 u32 match ip6 protocol 17 0xff flowid 1:1'; do set -- $c; k=$1 o=$2; shift 2; "
    "ip netns exec mid tc $k $o dev $d $* || [ $o = del ] || exit 9; done; done"
)


def rates(folder: Path, link: str, kbit: int, seconds: int) -> None:
    lab = Lab(folder)
    (lab.folder / "shaped.toml").write_text(FILE)
    lab.write_token()
    job, flows = [SLOW.format(link)], [(way, to) for way in ("up", "down") for to in HEAD]
    for number, (way, to) in enumerate(flows):
        job.append(f"{KTRXER} flow {way} {to} -u -b {2 * kbit}k --for {seconds}s --payload {PAYLOAD} --token-file token --json >{number}.json")
    serve = f"far={KTRXER} serve --quiet --token-file token"
    done = lab("run", "./shaped.toml", "--time", "virtual", "--beside", serve, "--", "sh", "-c", "\n".join([*job, "true"]), timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    for number, (way, to) in enumerate(flows):
        end = json.loads((lab.folder / f"{number}.json").read_text())
        (one,), (bound,) = end["flows"], end["bounds"]
        truth = kbit * PAYLOAD / (PAYLOAD + HEAD[to])
        print("figure:", link, way, to, end[f"{way}_bps"] / 1e3, truth, bound, one["received_packets"])
        assert one["lost"] == 0 and one["received_packets"] == one["sent_packets"]
        assert end[f"{way}_bps"] / 1e3 == pytest.approx(truth, rel=0.02)
        assert bound["bound"] * 1e3 >= abs(bound["value"] * 1e3 - truth) and bound["cause"] == "resolution"
        assert (end["verdict"] == "valid") == (bound["bound"] <= bound["tolerance"])


@pytest.mark.parametrize(("kbit", "seconds"), [(16, 2), (64, 2), (64, 5)])
def test_a_slow_link(tmp_path: Path, kbit: int, seconds: int) -> None:
    rates(tmp_path, f"netem rate {kbit}kbit limit 1000", kbit, seconds)


def test_a_token_bucket(tmp_path: Path) -> None:
    rates(tmp_path, "tbf rate 64kbit burst 1070 limit 100000", 64, 4)
