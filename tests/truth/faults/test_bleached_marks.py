# SPDX-License-Identifier: MIT OR Apache-2.0
"""A router that clears the DSCP of one direction. Reference: the router's own counter of the packets that it changed."""

import json

import pytest

# The router also counts the probes of the trial before the run, and the closing probes of both: one each 20 ms until one is answered.
TRIAL, CLOSING = 3, 10  # the most (probes.py, stamp.c)
EF_AND_BE = """
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, udp
def plan(setting: Setting, _: NoParameters) -> Plan:
    return combine(udp(setting, "Ping (ms) UDP BE", "BE"), udp(setting, "Ping (ms) UDP EF", "EF"))
TEST = Test("mine", "probes of two classes", plan)
"""


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_router_that_clears_marks(path, serve, tmp_path, way):
    port = "dport" if way == "up" else "sport"
    path.r.run(["nft", "-f", "-"], input=f"""
add table ip bleach
add chain ip bleach forward {{ type filter hook forward priority 0; }}
add rule ip bleach forward udp {port} 8620 ip dscp ef counter ip dscp set cs0
""")  # fmt: skip
    serve(path.b, "--token-file", path.token, "--dscp-allow", "BE,EF")  # the answers of EF are to have EF
    (tmp_path / "own.py").write_text(EF_AND_BE)
    made = path.measure(tmp_path / "own.py", "--for", "1", "--delay", "0.2", "-i", "10ms", "--no-extras")
    rules = json.loads(path.r.run(["nft", "-j", "list", "chain", "ip", "bleach", "forward"]).stdout)["nftables"]
    (changed,) = [part["counter"]["packets"] for rule in rules if "rule" in rule for part in rule["rule"]["expr"] if "counter" in part]
    best, expedited = next(runner.end for runner in made.run.meta.runners if runner.kind == "stamp")["classes"]
    print(f"figure: the router changed {changed}, of {expedited['received']} answered probes {expedited[f'mark_changed_{way}']} have another mark")
    assert changed > 90, "the reference changed nothing"
    others = TRIAL + 2 * CLOSING
    assert expedited[f"mark_changed_{way}"] == expedited["received"] and changed - others <= expedited["received"] <= changed
    other = "down" if way == "up" else "up"
    assert expedited[f"mark_changed_{other}"] == best["mark_changed_up"] == best["mark_changed_down"] == 0
    assert made.verdict != "valid" and made.says("Ping (ms) UDP EF", f"the path {way} changed the DSCP of", "of class EF from EF to BE")
    assert len([reason for reason in made.reasons if "DSCP" in reason]) == 1, "said once, by the process"
    (mark,) = expedited[f"marks_{way}"]
    assert mark == {"dscp": 0, "ecn": "off", "packets": expedited["received"]}


def test_a_router_that_clears_ecn(path, serve):
    """Of two classes with ECT(0), the router clears the ECN of one. Answers have no ECN mark."""
    path.r.run(["nft", "-f", "-"], input="""
add table ip bleach
add chain ip bleach forward { type filter hook forward priority 0; }
add rule ip bleach forward udp dport 8620 ip dscp ef ip ecn ect0 counter ip ecn set not-ect
""")
    serve(path.b)
    words = [path.ktrxer, "stamp", "10.78.0.2", "-i", "10ms", "-c", "50", "--dscp", "be,ef", "--ecn", "ect0", "--tlv", "cos", "--json"]
    out, err = path.a.popen(list(map(str, words))).communicate(timeout=60)
    assert out, err
    rules = json.loads(path.r.run(["nft", "-j", "list", "chain", "ip", "bleach", "forward"]).stdout)["nftables"]
    (changed,) = [part["counter"]["packets"] for rule in rules if "rule" in rule for part in rule["rule"]["expr"] if "counter" in part]
    best, expedited = json.loads(out)["classes"]
    print(f"figure: the router changed {changed}, of {expedited['received']} answered probes {expedited['mark_changed_up']} have another mark")
    assert changed >= 50, "the reference changed nothing"
    assert expedited["mark_changed_up"] == expedited["received"] >= 45
    assert expedited["mark_changed_down"] == best["mark_changed_up"] == best["mark_changed_down"] == 0
    end = json.loads(out)
    assert end["verdict"] != "valid"
    received = expedited["received"]
    assert expedited["marks_up"] == [{"dscp": 46, "ecn": "off", "packets": received}]
    assert [reason["text"] for reason in end["reasons"] if "ECN" in reason["text"]] == [
        f"the path up cleared the ECN mark of {received} of {received} probes of class EF, from ect0 to off: "
        "queues behind that place drop them instead of marking them"
    ]


def test_a_router_that_clears_ecn_of_a_comparison(path, serve):
    """Probes and UDP flows of `l4s` with ECT(1): each process names the direction; those without a mark have no reason."""
    path.r.run(["nft", "-f", "-"], input="""
add table ip bleach
add chain ip bleach forward { type filter hook forward priority 0; }
add rule ip bleach forward oifname rb ip ecn ect1 counter ip ecn set not-ect
""")
    serve(path.b, "--token-file", path.token)
    made = path.measure("l4s", "--set", "l4s_cc=reno", "--set", "classic_cc=reno", "--for", "2", "--delay", "0.2", "--no-extras")
    assert made.verdict == "degraded"
    named = [reason for reason in made.reasons if "cleared the ECN mark" in reason]
    assert [one.split(":")[0] for one in named] == ["Ping (ms) UDP L4S", "UDP upload"], made.reasons
    assert all("the path up cleared" in one and "from ect1 to off" in one for one in named)
