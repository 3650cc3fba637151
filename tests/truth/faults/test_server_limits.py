# SPDX-License-Identifier: MIT OR Apache-2.0
"""Requests that the server refuses or delays do not count as lost on the path. Reference: nftables counts requests and answers in the router."""

import json

from waiting import stand_still

COUNT = """
add table ip far
add counter ip far requests
add counter ip far answers
add chain ip far forward { type filter hook forward priority 0; }
add rule ip far forward ip saddr 10.77.0.1 udp dport 8620 counter name requests
add rule ip far forward ip daddr 10.77.0.1 udp sport 8620 counter name answers
"""


def counted(host):
    told = json.loads(host.run(["nft", "-j", "list", "counters"]).stdout)["nftables"]
    return {one["counter"]["name"]: one["counter"]["packets"] for one in told if "counter" in one}


def test_refusals_of_the_server(path, serve):
    path.r.run(["nft", "-f", "-"], input=COUNT)
    serve(path.b, "--token-file", path.token, "--max-answer-rate", "40", "--burst", "50")
    made = path.measure("ping", "--for", "3", "--delay", "0.2", "-i", "10ms", "--no-extras")
    reference = counted(path.r)
    lost = reference["requests"] - reference["answers"]
    end = next(runner.end for runner in made.run.meta.runners if runner.kind == "stamp")
    print(f"figure: by nftables {lost} without an answer; the server says {end['server_refused']} refused, {end['lost']} lost")
    assert lost > 100, "the limit was reached"
    assert abs(end["server_refused"] - lost) <= 12, "all but those before the first answer and after the last one"
    assert end["server_rate"] == 40
    assert made.verdict != "valid" and made.says("limited by the server: it refused", "40 answers a second")
    assert all(one.lost_up == one.lost_down == 0 for one in made.summary.loss), "no direction of the path is blamed"


def test_a_server_that_stands_still(path, serve):
    server = serve(path.b, "--token-file", path.token)
    child = path.start("ping", "--for", "4", "--delay", "0.2", "-i", "10ms", "--no-extras")
    path.wait_for_samples(500)
    stand_still(server.process, 1.5)
    made = path.result(child)
    assert sum(one.lost for one in made.summary.loss) == 0, "their answers came 1.5 s later"
    assert not made.says("limited by the server")


def test_two_clients_of_one_network(path, serve):
    """`ktrxer stamp` without further options. The server's limit is of both clients together."""
    path.r.run(["nft", "-f", "-"], input=COUNT.replace("10.77.0.1", "10.77.0.0/24"))
    path.a.ip("addr", "add", "10.77.0.3/24", "dev", "a0")
    serve(path.b, "--max-answer-rate", "70", "--burst", "50")
    # No interval is that of the answers (14.3 ms): a client with that interval would get all of them.
    words = [path.ktrxer, "stamp", "10.78.0.2", "-c", "200", "--json"]
    clients = (("10.77.0.1", "10ms"), ("10.77.0.3", "9.7ms"))
    children = [path.a.popen(list(map(str, [*words, "--from", own, "-i", interval]))) for own, interval in clients]
    ends = [json.loads(child.communicate(timeout=60)[0]) for child in children]
    reference = counted(path.r)
    unanswered = reference["requests"] - reference["answers"]
    for end in ends:
        print(f"figure: {unanswered} of both clients unanswered; {end['lost']} lost, {end['lost_up']} up; {end['server_refused']} refused; {end['reasons']}")
        assert end["lost"] > 20, "the limit was reached"
        assert (end["lost_up"], end["lost_down"]) == (0, 0) and end["lost_unknown"] == end["lost"], "no direction of the path is blamed"
        assert unanswered - 40 <= end["server_refused"] <= unanswered
        assert end["verdict"] != "valid" and any("limited by the server: it refused" in reason["text"] for reason in end["reasons"])
