# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Reports of `ktrxer serve`: JSON objects, one line for each client, metrics.

a0 10.77.0.1, 10.78.0.1 ------------- b0 10.77.0.2, fd00:77::2, 10.78.0.2      clients in A, the server in B
"""

import json
import signal
import sys
import time

import metrics as metric_table
import pytest
from flows import MS, command
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from recorded import wrong
from stamps import requests
from test_flow_faults import HOSTILE
from waiting import event, received

# Control connections with a wrong token from one address, one after another; the address, the server, how many.
GUESSES = (
    HOSTILE.split("if mode ==")[0]
    + """
def connect():
    s = socket.socket(); s.settimeout(5); s.bind((sys.argv[4], 0)); s.connect((host, 8620)); return s
for _ in range(int(sys.argv[5])):
    c = Control(token=b"wrong"); c.send(1, request()); assert REFUSE(1) in rest(c.s)
"""
)

FETCH = """
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET); s.settimeout(10)
s.connect((sys.argv[1], int(sys.argv[2]))); s.sendall(sys.argv[3].encode().decode("unicode_escape").encode("latin-1"))
data = b""
while part := s.recv(65536): data += part
sys.stdout.write(data.decode())
"""


def fetch(host, address, port, request=r"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"):
    """Status line, head, body."""
    text = host.run([sys.executable, "-c", FETCH, address, str(port), request], timeout=20).stdout.replace("\r\n", "\n")
    head, _, body = text.partition("\n\n")
    return head.splitlines()[0], head, body


def metrics(host, address="127.0.0.1", port=9620):
    """The values by name and label, read by an independent parser."""
    status, head, body = fetch(host, address, port)
    assert status == "HTTP/1.0 200 OK" and "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8" in head
    assert f"Content-Length: {len(body)}" in head
    return {(s.name, *s.labels.values()): s.value for family in text_string_to_metric_families(body) for s in family.samples}


def events_of(server, name="client_ended"):
    """Stops the server; the events of this name."""
    server.process.send_signal(signal.SIGTERM)
    out, err = server.process.communicate(timeout=20)
    assert server.process.returncode == 0, err
    objects = [json.loads(line) for line in out.splitlines()]
    server.end = objects[-1]
    return [one for one in objects if one.get("name") == name]


# ---------------------------------------------------------------------------------------------------------------------- JSON


def test_objects_match_their_schemas(shared_pair, ktrxer, serve, flow, stamp, token):
    a, b = shared_pair
    child = b.popen([ktrxer, "serve", "--token-file", token, "--jsonl"])
    lines = [child.stdout.readline(), child.stdout.readline()]
    flow(a, "both", b.address, "--bytes", "100k")
    stamp(a, b.address, "-c", 20, "-i", "5ms")
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 0, err
    objects = [json.loads(line) for line in (*lines, *out.splitlines())]
    assert not wrong(objects)
    assert [one["type"] for one in objects] == ["start", *["event"] * (len(objects) - 2), "end"]
    assert [one["name"] for one in objects[1:-1]] == ["listening", "client_ended", "client_ended"]
    # The schema rejects invalid objects.
    ended = objects[2]
    for spoilt in ({**ended, "end": 1}, {**ended, "action": "other"}, {k: v for k, v in ended.items() if k != "address"}):
        assert wrong([objects[0], spoilt]), spoilt


def test_json_is_one_object_at_the_end(shared_pair, ktrxer, token):
    _, b = shared_pair
    child = b.popen([ktrxer, "serve", "--token-file", token, "--json"])
    while "8620" not in b.run(["ss", "-Hltn"]).stdout:
        assert child.poll() is None, child.communicate()
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 0 and not err
    end = json.loads(out)
    assert end["log_lines_left_out"] == 0


def test_quiet_prints_nothing(shared_pair, ktrxer, flow, token):
    a, b = shared_pair
    child = b.popen([ktrxer, "serve", "--token-file", token, "-q"])
    while "8620" not in b.run(["ss", "-Hltn"]).stdout:
        assert child.poll() is None, child.communicate()
    flow(a, "down", b.address, "--bytes", "10k")
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 0 and out == "" and err == ""


# ------------------------------------------------------------------------------------------------------------------- the log


def test_each_client_has_one_line(shared_pair, flow, stamp, serve, token):
    a, b = shared_pair
    server = serve(b, "--token-file", token)
    flow(a, "both", b.address, "--flows", 3, "--bytes", "100k")
    flow(a, "down", b.address, "--udp", "--bitrate", "1M", "--for", "300ms")
    begun = time.monotonic_ns()
    client, _ = stamp(a, b.address, "-c", 20, "-i", "5ms")
    lasted = time.monotonic_ns() - begun
    both, udp, probes = events_of(server)
    assert both["address"] == "10.77.0.1" and both["action"] == "flows" and both["end"] == "finished"
    assert both["flows_up"] == both["flows_down"] == 3 and both["udp_flows"] == 0
    assert both["bytes_in"] == both["bytes_out"] == 300_000 and both["left_out_before"] == 0
    assert udp["udp_flows"] == udp["flows_down"] == 1 and udp["bytes_in"] == 0 and udp["bytes_out"] > 10_000 and udp["packets_out"] > 10
    assert 300 * MS <= udp["duration_ns"] < 10_000 * MS
    assert probes["action"] == "stamp" and probes["packets_in"] == probes["packets_out"] == requests(client) and probes["end"] == "stopping"
    assert probes["bytes_in"] >= 20 * 44 and probes["port"] > 0 and 0 < probes["duration_ns"] < lasted


def test_the_classes_of_one_client_have_one_line(shared_pair, ktrxer, stamp, serve):
    """Those of an earlier command have their own: no session of it overlaps."""
    a, b = shared_pair
    server = serve(b)
    first, _ = stamp(a, b.address, "-c", 20, "-i", "5ms")
    done = a.run([ktrxer, "stamp", b.address, "-c", "20", "-i", "20ms", "--dscp", "0,EF,AF41", "--jsonl"], check=False, timeout=30)
    ends = [one for one in map(json.loads, done.stdout.splitlines()) if one["type"] == "end"]
    one, three = sorted(events_of(server), key=lambda event: event["sessions"])
    assert (one["sessions"], three["sessions"]) == (1, 3) and one["packets_in"] == requests(first)
    assert three["packets_in"] == three["packets_out"] >= 60 and three["end"] == one["end"] == "stopping", (three, ends)
    assert 350 * MS < three["duration_ns"] < 20_000 * MS and three["left_out_before"] == 0


@pytest.mark.plain_build
def test_an_idle_client_of_several_classes_has_one_line(shared_pair, ktrxer):
    """A session of fewer than 16 packets is over after 10 s; the table is reviewed in 4 s."""
    a, b = shared_pair
    child = b.popen([ktrxer, "serve"])
    try:
        while not (line := child.stdout.readline()).startswith("client: ktrxer stamp"):
            assert line, child.communicate()
        a.run([ktrxer, "stamp", b.address, "-c", "8", "-i", "200ms", "--dscp", "0,EF,AF41,CS1"], check=False, timeout=30)
        line = child.stdout.readline()
        while "STAMP" not in line:
            line = child.stdout.readline()
            assert line, child.communicate()
        assert line.startswith("client 10.77.0.1: STAMP, 4 sessions, ") and line.endswith(" s: idle\n"), line
    finally:
        child.terminate()
        rest = child.communicate(timeout=20)[0]
    assert "client 10" not in rest, rest


def test_a_client_that_is_gone_is_counted(shared_pair, ktrxer, serve, token):
    """Its flows have no end message; their bytes count nevertheless."""
    a, b = shared_pair
    server = serve(b, "--token-file", token)
    for kind in ((), ("--udp",)):
        child = a.popen([*command(ktrxer, token, "both", b.address, *kind, "--bitrate", "8M", "--for", "30s"), "--jsonl"])
        received(child, flows=2, more_than=100_000)
        child.kill()
        child.communicate()
        one = event(server.process, "client_ended")
        assert one["end"] == "lost" and one["bytes_in"] > 100_000 and one["bytes_out"] > 100_000, one
        assert (one["packets_in"] > 20 and one["packets_out"] > 20) == bool(kind), one
    server.stop()
    assert server.end["flows"]["bytes_in"] > 200_000


def test_a_refused_client_has_its_reason(shared_pair, flow, refusal, serve, token, tmp_path):
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--max-flows", 2)
    wrong = tmp_path / "wrong"
    wrong.write_text("another token, also long enough\n")
    wrong.chmod(0o600)
    refusal(a, b.address, "--bytes", "10k", token=wrong)
    refusal(a, b.address, "--flows", 3, "--bytes", "10k")
    assert [one["end"] for one in events_of(server)] == ["wrong_token", "too_many_flows"]


def test_a_flood_of_clients_is_no_flood_of_lines(pair, flow, serve, token):
    """90 guesses from one network: its log lines are limited, those of another network are not."""
    a, b = pair
    a.ip("addr", "add", "10.78.0.1/24", "dev", "a0")
    b.ip("addr", "add", "10.78.0.2/24", "dev", "b0")
    server = serve(b, "--token-file", token)
    begin = time.monotonic()
    done = a.run([sys.executable, "-c", GUESSES, "10.78.0.2", "guess", token, "10.78.0.1", "90"], check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    took = time.monotonic() - begin
    flow(a, "down", b.address, "--bytes", "10k")
    lines = events_of(server)
    guesses = [one for one in lines if one["end"] == "wrong_token"]
    assert 20 <= len(guesses) <= 22 + took and all(one["address"] == "10.78.0.1" for one in guesses)
    assert [one["address"] for one in lines if one["end"] == "finished"] == ["10.77.0.1"]
    assert server.end["log_lines_left_out"] == 90 - len(guesses)
    assert sum(one["left_out_before"] for one in lines) == server.end["log_lines_left_out"]


def test_the_line_for_people(shared_pair, ktrxer, flow, token):
    a, b = shared_pair
    child = b.popen([ktrxer, "serve", "--token-file", token])
    while not child.stdout.readline().startswith("client: ktrxer flow"):
        pass
    flow(a, "up", b.address, "--bytes", "100k")
    line = child.stdout.readline()
    assert line.startswith("client 10.77.0.1: 1 flows up, 0 down, 100000 bytes in, 0 bytes out, ") and line.endswith(" s: finished\n"), line
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)


# ------------------------------------------------------------------------------------------------------------------- metrics


def test_metrics_are_openmetrics(shared_pair, ktrxer, flow, stamp, serve, token):
    """Read by the parser of Prometheus, under the filter of system calls."""
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--metrics", "127.0.0.1:9620")
    assert server.listening["system_call_filter"] is (b"__asan_init" not in ktrxer.read_bytes())
    before = metrics(b)
    assert before["ktrxer_connections_total",] == 0 and before["ktrxer_clients",] == 0
    flow(a, "both", b.address, "--bytes", "100k")
    client, _ = stamp(a, b.address, "-c", 20, "-i", "5ms")
    after = metrics(b)
    assert after["ktrxer_flow_bytes_total", "up"] == after["ktrxer_flow_bytes_total", "down"] == 100_000
    assert after["ktrxer_clients_granted_total",] == 1 and after["ktrxer_flows_started_total",] == 2
    assert after["ktrxer_stamp_answers_total",] == after["ktrxer_stamp_requests_total",] == requests(client)
    assert after["ktrxer_stamp_bytes_total", "up"] == after["ktrxer_stamp_bytes_total", "down"] >= 20 * 44
    assert after["ktrxer_loop_calls_total",] > before["ktrxer_loop_calls_total",] and 0 < after["ktrxer_loop_longest_call_seconds",] < 1
    assert after["ktrxer_loop_ready_sources",] >= 1
    server.stop()
    flows = server.end["flows"]
    assert after["ktrxer_connections_total",] == flows["connections"]
    assert list(dict.fromkeys(name for name, *_ in after)) == [one.sample.partition("{")[0] for one in metric_table.load()]


def test_refusals_by_reason(shared_pair, ktrxer, flow, refusal, serve, token, tmp_path):
    a, b = shared_pair
    serve(b, "--token-file", token, "--max-flows", 2, "--metrics", "[::1]:9620", "--max-answer-rate", 10, "--burst", 5)
    refusal(a, b.address, "--flows", 3, "--bytes", "10k")
    a.run([ktrxer, "stamp", b.address, "-c", "50", "-i", "1ms"], check=False, timeout=30)
    a.run([sys.executable, "-c", "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(bytes(20), ('10.77.0.2', 8620))"])
    values = metrics(b, "::1")
    assert values["ktrxer_flow_refusals_total", "too_many_flows"] == 1 and values["ktrxer_flow_refusals_total", "wrong_token"] == 0
    assert values["ktrxer_stamp_refusals_total", "rate"] >= 30 and values["ktrxer_stamp_refusals_total", "too_short"] == 1
    refused = sum(value for (name, *_), value in values.items() if name == "ktrxer_stamp_refusals_total")
    assert values["ktrxer_stamp_requests_total",] == values["ktrxer_stamp_answers_total",] + refused


def test_metrics_are_off_by_default(shared_pair, serve, token):
    _, b = shared_pair
    serve(b, "--token-file", token)
    assert "9620" not in b.run(["ss", "-Hltn"]).stdout


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (r"GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        (r"GET /metricsx HTTP/1.1\r\n\r\n", "404 Not Found"),
        (r"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (r"\x00\xff\n\n", "405 Method Not Allowed"),
        (r"GET /metrics HTTP/1.1\r\nX: " + "a" * 3000, "431 Request Header Fields Too Large"),
        (r"GET /metrics?x=1 HTTP/1.0\n\n", "200 OK"),
    ],
)
def test_other_requests(shared_pair, serve, token, request_text, status):
    _, b = shared_pair
    serve(b, "--token-file", token, "--metrics", "127.0.0.1:9620")
    assert fetch(b, "127.0.0.1", 9620, request_text)[0] == f"HTTP/1.0 {status}"


@pytest.mark.plain_build
def test_slow_readers_of_metrics_hold_no_place(shared_pair, serve, token):
    """With twenty silent connections the next request is answered at once; they are closed after some seconds."""
    _, b = shared_pair
    serve(b, "--token-file", token, "--metrics", "127.0.0.1:9620")
    hold = "import socket\nmany = [socket.create_connection(('127.0.0.1', 9620)) for _ in range(20)]\nprint(flush=True)\n"
    child = b.popen([sys.executable, "-c", hold + "print([s.recv(1) for s in many])"])
    child.stdout.readline()
    begin = time.monotonic()
    assert metrics(b)["ktrxer_clients",] == 0
    assert time.monotonic() - begin < 4
    out, err = child.communicate(timeout=20)
    assert out.count("b''") == 20, err


@pytest.mark.parametrize(
    "value", ["9620", ":9620", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:1x", "::1:9620", "[::1]", "[]:1", "localhost:9620"]
)
def test_a_wrong_address_of_metrics_is_one_line(shared_pair, ktrxer, token, value):
    _, b = shared_pair
    done = b.run([ktrxer, "serve", "--token-file", token, "--metrics", value], check=False, timeout=20)
    assert done.returncode == 2 and done.stderr.splitlines()[0].startswith(f"ktrxer serve: --metrics {value}: not ADDR:PORT"), done.stderr


def test_a_port_of_metrics_that_is_taken(shared_pair, ktrxer, serve, token):
    _, b = shared_pair
    serve(b, "--token-file", token, "--metrics", "127.0.0.1:9620")
    done = b.run([ktrxer, "serve", "--port", "8630", "--token-file", token, "--metrics", "127.0.0.1:9620"], check=False, timeout=20)
    assert done.returncode == 1 and "TCP port 9620 of 127.0.0.1 is taken by another program" in done.stderr
