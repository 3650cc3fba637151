# SPDX-License-Identifier: MIT OR Apache-2.0
"""A stateless reflector repeats the number of a probe: probes that overtake others on the way to it are no restart of its count (RFC 4737)."""

import json

import pytest

# Of each six probes, two arrive behind the next two: 0 1 4 5 2 3.
RELAY = """
import select, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
out = socket.socket(family, socket.SOCK_DGRAM); out.connect((sys.argv[1], 9108))
near = socket.socket(family, socket.SOCK_DGRAM); near.bind(("", 8620))
print("ready", flush=True)
held, count = [], 0
while True:
    for one in select.select([out, near], [], [])[0]:
        data, source = one.recvfrom(2048)
        if one is out:
            near.sendto(data, client)
            continue
        client, turn, count = source, count % 6, count + 1
        if turn in (2, 3):
            held.append(data)
        else:
            out.send(data)
        if turn == 5:
            for late in held: out.send(late)
            held = []
"""


@pytest.mark.parametrize("address", ["address", "address6"])
@pytest.mark.parametrize("stateless", [True, False])
def test_overtaking_up(shared_pair, ktrxer, address, stateless):
    a, b = shared_pair
    to = getattr(b, address)
    server = b.popen([ktrxer, "serve", *(["--stateless"] if stateless else []), "--port", "9108", "--jsonl"])
    relay = b.popen(["python3", "-I", "-c", RELAY, to])
    try:
        assert '"start"' in server.stdout.readline() and "listening" in server.stdout.readline()
        assert relay.stdout.readline() == "ready\n", relay.stderr.read()
        end = json.loads(a.run([ktrxer, "stamp", to, "--count", "60", "--interval", "10ms", "--json"], check=False).stdout)
        assert end["received"] == 60 and end["reflector_restarts"] == 0, end
        assert (end["reordered_up"], end["reordered_down"]) == (20, 0), end
        assert not [one for one in end["reasons"] if one["id"] == "reflector_restarted"]
    finally:
        for child in (server, relay):
            child.kill()
            child.communicate()
