# SPDX-License-Identifier: MIT OR Apache-2.0
"""A path that loses, copies and reorders packets in both directions. Reference: the forwarder records its treatment of each packet."""

import json
import subprocess
import sys

import pytest

# argv: seed, share of copies, share of delayed packets. At the end of its input it prints its treatment of each of the first COUNT probes.
FORWARDER = """
import heapq, json, random, select, socket, struct, sys, time
dice, copies, held, count = random.Random(int(sys.argv[1])), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
outer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); outer.bind(("10.77.0.2", 9000))
inner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); inner.connect(("10.78.0.2", 8620))
passed, came, queue, client, order = [0] * count, {}, [], None, 0
print("up", flush=True)
while True:
    wait = max(0, queue[0][0] - time.monotonic()) if queue else None
    ready, _, _ = select.select([outer, inner, sys.stdin], [], [], wait)
    if sys.stdin in ready:
        break
    for one in ready:
        packet, sender = one.recvfrom(9000)
        client = sender if one is outer else client
        number = struct.unpack("!I", packet[:4] if one is outer else packet[24:28])[0]
        for _ in range(2 if number < count and dice.random() < copies else 1):
            if number >= count or dice.random() >= 0.2:
                order += 1
                due = time.monotonic() + (dice.uniform(0.001, 0.02) if number < count and dice.random() < held else 0)
                heapq.heappush(queue, (due, order, one is outer, number, packet))
    while queue and queue[0][0] <= time.monotonic():
        _, _, up, number, packet = heapq.heappop(queue)
        if up:
            inner.send(packet)
        else:
            outer.sendto(packet, client)
        if number < count and up:
            passed[number] += 1
        elif number < count:
            counts = came.setdefault(number, {})
            mine = struct.unpack("!I", packet[:4])[0]
            counts[mine] = counts.get(mine, 0) + 1
print(json.dumps({
    "up": sum(not n for n in passed), "down": sum(n > 0 and i not in came for i, n in enumerate(passed)),
    "copies_up": sum(len(c) - 1 for c in came.values()), "copies_down": sum(n - 1 for c in came.values() for n in c.values()),
}))
"""
COUNT = 400


@pytest.mark.parametrize(("copies", "held", "limits"), [(0, 0.3, False), (0.15, 0.3, True), (0.15, 0.3, False)])
def test_no_direction_is_wrong(path, serve, copies, held, limits):
    serve(path.b)
    words = [sys.executable, "-c", FORWARDER, "7", str(copies), str(held), str(COUNT)]
    forwarder = path.r.popen(words, stdin=subprocess.PIPE)
    assert forwarder.stdout.readline() == "up\n"
    command = [path.ktrxer, "stamp", "10.77.0.2", "-p", "9000", "-i", "3ms", "-c", str(COUNT), "-W", "300ms", "--json"]
    out, err = path.a.popen(command + ["--no-limits"] * (not limits)).communicate(timeout=60)
    truth = json.loads(forwarder.communicate(timeout=20)[0])
    end = json.loads(out)
    message = {key: end[key] for key in ("lost", "lost_up", "lost_down", "lost_unknown", "duplicates_up", "duplicates_down")}
    print(f"figure: the forwarder lost {truth}; stamp says {message}", err)
    assert truth["up"] > 25 and truth["down"] > 25 and (truth["copies_up"] > 10) == (copies > 0)
    assert end["reflector_restarts"] == 0 and end["lost"] == truth["up"] + truth["down"]
    assert (end["duplicates_up"], end["duplicates_down"]) == (truth["copies_up"], truth["copies_down"])
    if limits or not copies:
        assert (end["lost_up"], end["lost_down"], end["lost_unknown"]) == (truth["up"], truth["down"], 0)
    else:
        assert end["lost_up"] <= truth["up"] and end["lost_down"] <= truth["down"] and end["lost_unknown"] > 0
        assert end["lost_up"] + end["lost_down"] + end["lost_unknown"] == end["lost"]
