# SPDX-License-Identifier: MIT OR Apache-2.0
"""This host's own receive socket is full: its drops are named, and are not the path's. Reference: RcvbufErrors of /proc/net/snmp."""

import json
import signal
import sys

from test_udp_flows import receive_errors

# Sends to a port of this host.
FLOOD = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20_000):
    s.sendto(bytes(1000), ("10.77.0.1", int(sys.argv[1])))
"""


def port_of(host, pid):
    """The UDP port of a process, by `ss`."""
    (line,) = [line for line in host.run(["ss", "-Hunap"]).stdout.splitlines() if f"pid={pid}," in line]
    return line.split()[3].rpartition(":")[2]


def test_a_receive_socket_that_is_full(path, serve):
    serve(path.b)
    child = path.a.popen(list(map(str, [path.ktrxer, "stamp", "10.78.0.2", "-i", "10ms", "-c", "200", "-W", "500ms", "--jsonl"])))
    for line in child.stdout:
        if json.loads(line).get("number") == 50:
            break
    child.send_signal(signal.SIGSTOP)  # the program takes no packet from the socket
    path.b.run([sys.executable, "-c", FLOOD, port_of(path.a, child.pid)])
    child.send_signal(signal.SIGCONT)
    *_, last = child.stdout
    end, dropped = json.loads(last), receive_errors(path.a)
    print(f"figure: the kernel counts {dropped} drops; {end['reasons']}")
    assert dropped > 1000, "the reference: the socket was full"
    trip, loss = end["bounds"]
    print(f"figure: {trip}; {loss}")
    assert loss["cause"] == "receive_buffer" and loss["bound"] >= loss["value"], "the path lost nothing: the true loss of 0 is within the bound"
    assert (end["lost"] > 0.005 * end["sent"]) == (end["verdict"] == "degraded")
    if end["verdict"] != "valid":
        assert any("the receive buffer of this host was full and dropped" in one.get("why", "") for one in end["reasons"]), end["reasons"]
