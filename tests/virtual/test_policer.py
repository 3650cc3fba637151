# SPDX-License-Identifier: MIT OR Apache-2.0
"""A policer is named as the cause of losses; a short queue, a fair one, and losses that do not depend on the rate are not.
Reference: the rule of tc or nftables, by construction, and its counter of drops.

    client ---- mid ---- server
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from guests import FOR_RUNS, Lab

FILE = """
hosts = ["client", "server"]
routers = ["mid"]
[[links]]
ends = ["client", "mid"]
delay = "5ms"
[[links]]
ends = ["mid", "server"]
"""
IN = "ip netns exec mid"
RESET = f"for d in to-client to-server; do {IN} tc qdisc del dev $d ingress; {IN} tc qdisc del dev $d root; done 2>/dev/null; {IN} nft flush ruleset; "


def police(mbit: int, burst: str, device: str = "to-client") -> str:
    rule = f"matchall action police rate {mbit}mbit burst {burst} conform-exceed drop"
    return f"{IN} tc qdisc add dev {device} handle ffff: ingress; {IN} tc filter add dev {device} parent ffff: {rule}"


def queue(mbit: int, leaf: str) -> str:
    tc = f"{IN} tc"
    rate = f"htb rate {mbit}mbit burst 1600 cburst 1600"
    shaped = f"{tc} qdisc add dev to-server root handle 1: htb default 1; {tc} class add dev to-server parent 1: classid 1:1 {rate}"
    return f"{shaped}; {tc} qdisc add dev to-server parent 1:1 {leaf}"


def loses(match: str, per_mille: int) -> str:
    return f"{IN} nft 'table ip t {{ chain c {{ type filter hook forward priority 0; {match} numgen random mod 1000 < {per_mille} counter drop; }}; }}'"


POLICERS = {"10 Mbit/s": (10, police(10, "60k")), "40 Mbit/s": (40, police(40, "250k"))}
OTHERS = {
    "FIFO of 2 ms": queue(40, "bfifo limit 10000"),
    "fq_codel": queue(10, "fq_codel"),
    "random losses": loses("", 10),
    "losses of large packets": loses("meta length > 500", 20),
}


def results(folder: Path, jobs: dict[str, tuple[str, str]]) -> dict[str, tuple[Any, int]]:
    """Of each command after its tc commands: the printed object, and the drops of the routers."""
    lab = Lab(folder, FOR_RUNS)
    (lab.folder / "net.toml").write_text(FILE)
    lab.write_token()
    done = []
    for n, (setup, words) in enumerate(jobs.values()):
        count = f"({IN} tc -s qdisc; {IN} tc -s filter show dev to-client ingress; {IN} nft list ruleset) > {n}.counts"
        done.append(f"{RESET}{setup}; {sys.executable} -m ktrxer {words} --token-file token --json -D . > {n}.json; {count}; ")
    made = lab("run", "./net.toml", "--time", "virtual", "--beside", "server=ktrxer serve --quiet --token-file token", "--",
               "sh", "-c", "".join(done) + "true", timeout=900)  # fmt: skip
    assert made.returncode == 0, made.stderr
    return {name: (json.loads((lab.folder / f"{n}.json").read_text()), drops((lab.folder / f"{n}.counts").read_text())) for n, name in enumerate(jobs)}


def drops(counts: str) -> int:
    words = counts.replace(",", " ").replace("(", " ").split()
    dropped = sum(int(after) for word, after in pairwise(words) if word == "dropped")
    return dropped + sum(int(words[n + 2]) for n, word in enumerate(words) if word == "counter")


RUN = "run tcp_nup --set upload_streams=4 -H server --for 8 --delay 2 -i 20ms --no-extras"


def test_a_policer_is_named(tmp_path: Path) -> None:
    jobs = {name: (setup, RUN) for name, (_, setup) in POLICERS.items()}
    jobs["check"] = (police(10, "60k"), "check --server server --for 8 --delay 4 -i 20ms --hops 0")
    found = results(tmp_path, jobs)
    for name, (mbit, _) in POLICERS.items():
        made, dropped = found[name]
        print(f"figure: {name}: {made['summary']['policed']}, {dropped} drops")
        (one,) = made["summary"]["policed"]
        assert one["direction"] == "up" and 0.94 * mbit < one["rate_mbps"] < mbit and dropped > 100
        assert 0.01 < one["lost_share"] < 0.3
    answer, dropped = found["check"]
    print(f"figure: {answer['answer']}, {dropped} drops")
    assert answer["bloated"] == "no" and "There is nothing to repair" not in answer["answer"][2]
    assert "a policer limits the rate: 9." in answer["answer"][2] and "a shaper set to 8." in answer["answer"][2]


def test_other_causes_are_no_policer(tmp_path: Path) -> None:
    for name, (made, dropped) in results(tmp_path, {name: (setup, RUN) for name, setup in OTHERS.items()}).items():
        rate = made["summary"]["throughput"][0]["mean_mbps"]
        print(f"figure: {name}: {rate:.2f} Mbit/s, {dropped} drops, {made['summary']['policed']}")
        assert dropped > 5 and made["summary"]["policed"] == [], name
