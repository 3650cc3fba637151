# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the tests of single engines: receivers at the far end, and checks of every engine.

a0 10.77.0.1 ---- b0 10.77.0.2
"""

import subprocess
import sys
from typing import Any

from ktrxer_lab.hosts import Netns
from waiting import until

# Both receive until their standard input ends, then read the rest of the socket, and print all packets.
_TAKE = """
import select, socket, struct, sys
def take(s, keep):
    s.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
    print("ready", flush=True)
    ends = False
    while True:
        ready = select.select([s] if ends else [s, sys.stdin], [], [], 0.1 if ends else 60)[0]
        if s in ready:
            keep(*s.recvfrom(65536))
        elif ends:
            return
        elif ready:
            ends = True
        else:
            sys.exit("nothing came for a minute")
"""

# Length and number of each probe to port 9, in the order of arrival.
_LISTEN = (
    _TAKE
    + """
out = []
def keep(data, _):
    assert not any(data[8:]), "the rest of the payload is zero"
    out.append((len(data), struct.unpack_from("!Q", data)[0]))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 9))
take(s, keep)
for length, number in out:
    print(length, number)
"""
)

# Each complete frame from a link address; other frames have a different length.
_CAPTURE = (
    _TAKE
    + """
source, length, out = bytes.fromhex(sys.argv[2]), int(sys.argv[3]), []
def keep(frame, about):
    if about[2] != 4 and frame[6:12] == source and len(frame) == length:
        out.append(frame)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 3))
take(s, keep)
for frame in out:
    print(frame.hex())
"""
)


class Listener:
    """A receiver on a port of the far end, ready when the constructor returns."""

    def __init__(self, host: Netns) -> None:
        self._start(host, _LISTEN, host.address)

    def _start(self, host: Netns, code: str, *arguments: str) -> None:
        self.process: subprocess.Popen[str] = host.popen([sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "ready\n", self.process.communicate()[1]

    def lines(self) -> list[str]:
        """All packets that have arrived."""
        out, errors = self.process.communicate(timeout=60)
        assert not errors, errors
        return out.split("\n")[:-1]

    def probes(self) -> list[tuple[int, int]]:
        """(length, number) of each."""
        pairs = (line.split() for line in self.lines())
        return [(int(length), int(number)) for length, number in pairs]


class Capture(Listener):
    """Receives complete frames of one length."""

    def __init__(self, host: Netns, sender: Netns, length: int) -> None:
        mac = sender.ip_json("link", "show", "dev", sender.device)[0]["address"].replace(":", "")
        self._start(host, _CAPTURE, host.device, mac, str(length))

    def frames(self) -> list[bytes]:
        return [bytes.fromhex(line) for line in self.lines() if line]


class Engine:
    """One engine of the command under test."""

    def __init__(self, name: str, ktrxer: Any, ktrxer_json: Any) -> None:
        self.name, self.ktrxer, self.ktrxer_json = name, ktrxer, ktrxer_json

    def doctor(self, host: Netns, device: str | None = None) -> dict[str, Any]:
        engines = self.ktrxer_json(host, "doctor", "--device", device or host.device, status=None)["engines"]
        found: dict[str, Any] = next(engine for engine in engines if engine["name"] == self.name)
        return found

    def words(self, a: Netns, to: str, *options: object) -> list[str]:
        return [str(word) for word in (self.ktrxer, "send", "--engine", self.name, "--device", a.device, to, *options)]

    def send(self, a: Netns, b: Netns, *options: object, status: int | None = None, **more: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.ktrxer_json(a, *self.words(a, b.address, *options)[1:], status=status, **more)
        closes(result)
        return result

    def refusal(self, host: Netns, *options: object, to: str = "10.77.0.2", wrap: tuple[str, ...] = ()) -> str:
        """The single line on standard error."""
        done = host.run([*wrap, *self.words(host, to, *options)], check=False)
        assert done.returncode != 0, done.stdout
        lines = [line for line in done.stderr.splitlines() if line.startswith("ktrxer send:")]
        assert len(lines) == 1, done.stderr
        return lines[0]


def closes(result: dict[str, Any]) -> None:
    assert result["sent"] + result["failed"] + result["skipped"] + result["cancelled"] == result["requested"]
    assert sum(result["departure_stamp"].values()) == result["sent"]


def flowing(host: Netns, packets: int = 300, within_s: float = 20) -> None:
    """Returns once the host's device has sent so many packets more than at the call. A busy machine begins late."""
    more = host.counters()["tx"]["packets"] + packets
    until(lambda: host.counters()["tx"]["packets"] >= more, f"{host.device} has sent {packets} packets", within_s)


def gro(host: Netns, on: bool) -> None:
    """Switch GRO on, so that the veth device polls and accepts frames that are redirected to its peer."""
    host.run(["ethtool", "-K", host.device, "gro", "on" if on else "off"])
