# SPDX-License-Identifier: MIT OR Apache-2.0
"""
A client of OWAMP by hand (RFC 4656, unauthenticated mode), for test_owamp_rfc4656.py: each message on its own, so that a test can send the wrong one. It is written
from the layouts of the RFC and uses nothing of this project. `run_here` makes a script of it, because it runs in another namespace.
"""

CLIENT = '''
import json, socket, struct, time

HOST, PORT = {host!r}, {port}
EPOCH, GAP = 2208988800, 0.05


def ntp(seconds):
    return int((seconds + EPOCH) * 2**32)


def unix(stamp):
    return stamp / 2**32 - EPOCH


def sleep_until(at):
    time.sleep(max(0, at - time.time()))


class Control:
    def __init__(self, mode=1):
        self.tcp = socket.create_connection((HOST, PORT), 5)
        self.mine = self.tcp.getsockname()[0]
        self.greeting = self.take(64)
        self.tcp.sendall(struct.pack(">I160x", mode))
        self.started = self.take(48)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((self.mine, 0))

    def take(self, length):
        data = b""
        while len(data) < length:
            more = self.tcp.recv(length - len(data))
            assert more, "closed"
            data += more
        return data

    def request(self, up=True, packets=5, timeout=1.0, start=0.2, slots=1, slot_type=1, version=4, conf=None, receiver=None, type_p=0):
        """Accept, port."""
        conf = conf or (0 if up else 1, 1 if up else 0)
        own = self.udp.getsockname()[1]
        ends = (self.mine, receiver or HOST) if up else (HOST, self.mine)
        ports = (own, 0) if up else (0, own)
        self.up, self.start, sid = up, time.time() + start, bytes(16) if up else bytes(range(16))
        message = struct.pack(">BBBBIIHH", 1, version, *conf, slots, packets, *ports)
        message += b"".join(socket.inet_aton(one).ljust(16, bytes(1)) for one in ends) + sid
        message += struct.pack(">IQQI8x16x", 0, ntp(self.start), int(timeout * 2**32), type_p)
        message += struct.pack(">B7xQ", slot_type, int(GAP * 2**32)) * slots + bytes(16)
        self.tcp.sendall(message)
        accept, port, theirs = struct.unpack(">BxH16s12x16x", self.take(48))
        self.sid = theirs if up else sid
        if accept == 0:
            self.udp.connect((HOST, port))
        return accept, port

    def due(self, number):
        return self.start + GAP * (number + 1)

    def begin(self):
        self.tcp.sendall(struct.pack(">B31x", 2))
        assert self.take(32)[0] == 0
        return time.time()

    def send(self, number, stamp, error=0x0001):
        self.udp.send(struct.pack(">IQH", number, ntp(stamp), error))

    def receive(self, seconds):
        """Numbers, and the times in the packets."""
        came, until = [], time.time() + seconds
        while (left := until - time.time()) > 0:
            self.udp.settimeout(left)
            try:
                number, stamp = struct.unpack(">IQ", self.udp.recv(2000)[:12])
            except TimeoutError:
                break
            came.append((number, unix(stamp)))
        return came

    def stop(self, following, accept=0):
        """What the server has sent: its next numbers and skip ranges."""
        body = struct.pack(">16sII8x", self.sid, following, 0) if self.up else b""
        self.tcp.sendall(struct.pack(">BBHI8x", 3, accept, 0, int(self.up)) + body + bytes(16))
        kind, _, sessions = struct.unpack(">BBxxI8x", self.take(16))
        assert kind == 3
        sent = []
        for _ in range(sessions):
            following, skips = struct.unpack(">16xII", self.take(24))
            sent.append((following, [struct.unpack(">II", self.take(8)) for _ in range(skips)]))
            self.take(-(24 + 8 * skips) % 16)
        self.take(16)
        return sent

    def fetch(self):
        """Records: number, send error, receive error, send time, receive time (0: lost), TTL."""
        self.tcp.sendall(struct.pack(">B7xII16s16x", 4, 0, 0xFFFFFFFF, self.sid))
        accept, _, _, skips, records = struct.unpack(">BBxxIII16x", self.take(32))
        found = []
        if accept == 0:
            slots = struct.unpack(">4xI", self.take(112)[:8])[0]
            self.take(16 * slots + 16)
            self.take(8 * skips + -8 * skips % 16 + 16)
            for _ in range(records):
                number, send, receive, sent, received, ttl = struct.unpack(">IHHQQB", self.take(25))
                found.append((number, send, receive, unix(sent), unix(received) if received else 0, ttl))
            self.take(-25 * records % 16 + 16)
        return dict(accept=accept, records=found, due=[self.due(number) for number in range(40)])
'''

# A server that refuses each set-up with a value of Accept.
LISTEN = """
import socket, struct
listener = socket.create_server(("{address}", {port}))
print("ready", flush=True)
control = listener.accept()[0]
control.sendall(struct.pack(">12xI16x16xI12x", 1, 1024))
control.recv(164, socket.MSG_WAITALL)
control.sendall(struct.pack(">15xB32x", {accept}))
control.recv(1)
"""

# Sends the packets of one session down. Number 3 leaves 0.6 s after the time in it. The next number is that of the command line.
SENDS = """
import socket, struct, sys, time
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
tcp = listener.accept()[0]
take = lambda length: tcp.recv(length, socket.MSG_WAITALL)
tcp.sendall(struct.pack(">12xI16x16xI12x", 1, 1024))
take(164)
tcp.sendall(bytes(48))
head = take(144)
packets, port, sid = struct.unpack(">I", head[8:12])[0], struct.unpack(">H", head[14:16])[0], head[48:64]
start, gap = struct.unpack(">Q", head[68:76])[0] / 2**32 - 2208988800, struct.unpack(">Q", head[120:128])[0] / 2**32
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.connect((tcp.getpeername()[0], port))
udp_port = udp.getsockname()[1]
tcp.sendall(struct.pack(">BxH16s12x16x", 0, udp_port, sid))
take(32)
tcp.sendall(bytes(32))
due = [start + gap * (n + 1) for n in range(packets)]
for at, stamp, n in sorted((at + 0.6 * (n == 3), at, n) for n, at in enumerate(due)):
    time.sleep(max(0, at - time.time()))
    udp.send(struct.pack(">IQH", n, int((max(stamp, time.time() if n != 3 else 0) + 2208988800) * 2**32), 1))
take(32)
tcp.sendall(struct.pack(">BBHI8x", 3, 0, 0, 1) + struct.pack(">16sII8x", sid, int(sys.argv[3]), 0) + bytes(16))
tcp.recv(1)
"""


def run_here(host: str, port: int, body: str) -> str:
    return CLIENT.format(host=host, port=port) + body
