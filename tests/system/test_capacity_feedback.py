# SPDX-License-Identifier: MIT OR Apache-2.0
"""
The load of `ktrxer serve` while its client's status messages do not arrive (RFC 9097, 8.1): udpstp_peer.py as the client. Its feedback lets the rate rise, then stay,
and then it sends nothing for 0.95 s.
"""

import json
import sys
from pathlib import Path

import udpstp_peer as peer

PORT = 24601

CLIENT = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import udpstp_peer as peer

QUIET = (1.5, 2.45)
begun, came = time.monotonic(), []
status, receive = peer.Receiver.status, peer.receive


def held(self, action, rate):
    if self.number >= 3:
        self.rtt_sample, self.trial_lost = 60, 0  # between both limits: the rate stays
    return status(self, action, rate)


class Quiet:
    def __init__(self, sock):
        self.sock = sock

    def fileno(self):
        return self.sock.fileno()

    def send(self, data):
        if not QUIET[0] < time.monotonic() - begun < QUIET[1]:
            self.sock.send(data)

    def recv(self, size):
        data = self.sock.recv(size)
        came.append((time.monotonic() - begun, len(data)))
        return data


peer.Receiver.status = held
peer.receive = lambda sock, seconds, serves: receive(Quiet(sock), seconds, serves=serves)
peer.client(sys.argv[2], int(sys.argv[3]), sys.argv[4], peer.DOWN, 3, 0)
print(json.dumps([8 * sum(size for at, size in came if low <= at < low + 0.4) / 0.4 for low in (1.05, 1.5 + 0.5)]))
"""


def test_the_load_falls_while_no_status_comes(shared_pair, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token, "--udpstp-port", PORT)
    words = [str(Path(peer.__file__).parent), b.address, str(PORT), Path(token).read_text().strip()]
    before, without = json.loads(a.run([sys.executable, "-c", CLIENT, *words], timeout=40).stdout)
    assert before > 5e6, "the rate of some rows"
    assert without < before / 4, (before, without)
