# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runners with the real tools of Debian, on this host. netperf is not among them: it is in the non-free section."""

import contextlib
import shutil
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import mqtt_broker
import numpy as np
import pytest
from ktrxer import catalogue
from ktrxer.catalogue.recipe import Setting
from ktrxer.catalogue.recipe import run as invoke
from ktrxer.run import checks
from ktrxer.run.schedule import make
from ktrxer.run.session import Session
from ktrxer.runners import Options
from ktrxer.store import Host, Meta, Zero, open_run

MS, S = 10**6, 10**9
RATE = 20_000_000  # bit/s of each flow: light for a busy machine


def measure(tmp_path, name, length_s=2.0, good=True, **parameters):
    return recorded(tmp_path, invoke(name, "x", **parameters), length_s, good)


def recorded(tmp_path, plan, length_s, good=True):
    schedule = make(plan, Setting("127.0.0.1", length_s, 0), Options())
    with checks.places_of(schedule) as places:
        checks.tools(schedule, places)
        meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), 0)
        run = open_run(Session(schedule, meta, tmp_path, places=places).run())
    print(run.meta.sentences, run.meta.runners[0].argv, run.meta.runners[0].stderr_tail)
    assert not good or not [reason for reason in run.meta.sentences if "cannot be read as results" in reason or "exit status" in reason or "covered" in reason]
    return run


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def waits(port, kind):
    """Whether a socket of this host waits at the port."""
    tables = (Path(f"/proc/net/{kind}{version}") for version in ("", "6"))
    return any(line.split()[1].endswith(f":{port:04X}") for table in tables if table.exists() for line in table.read_text().splitlines()[1:])


@contextlib.contextmanager
def server(*words, port, kind="tcp"):
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while not waits(port, kind):
            assert child.poll() is None and time.monotonic() < deadline, f"{words} does not serve"
            time.sleep(0.02)
        yield
    finally:
        child.kill()
        child.wait()


def counted(run, name, end):
    """Seconds and bytes of a flow at one end."""
    arrays = run.arrays(run.series(name))
    there = arrays["end"] == end
    return arrays["t_ns"][there] / S, arrays["bytes"][there]


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["-J"]], ids=["text", "json"])
def test_iperf3_up(tmp_path, more):
    port = free_port()
    with server("iperf3", "-s", "-p", str(port), *more, port=port):
        run = measure(tmp_path, "iperf3", 3, flows=2, interval_ns=200 * MS, bitrate_bps=RATE, port=port)
    for name in ("x::1", "x::2"):
        times, sent = counted(run, name, 0)
        far_times, received = counted(run, name, 1)
        assert len(times) >= 15 and (np.diff(sent) >= 0).all() and (np.diff(received) >= 0).all()
        assert -0.1 < times[0] < 1 and times[-1] - times[0] == pytest.approx(3, abs=0.2) and len(far_times) >= 4
        assert received[-1] == pytest.approx(sent[-1], rel=0.05) and received[-1] * 8 / 3 == pytest.approx(RATE, rel=0.2)
    info = next(one for one in run.meta.of_kind("tcp_info"))
    assert (run.arrays(info)["rtt_us"] > 0).all()


@pytest.mark.slow
def test_iperf3_both_directions_by_udp(tmp_path):
    port = free_port()
    with server("iperf3", "-s", "-p", str(port), port=port):
        run = measure(tmp_path, "iperf3", direction="both", protocol="udp", bitrate_bps=RATE, port=port)
    assert counted(run, "x down", 0)[1][-1] * 8 / 2 == pytest.approx(RATE, rel=0.2)
    assert counted(run, "x up", 1)[1][-1] * 8 / 2 == pytest.approx(RATE, rel=0.2)
    assert 0 <= run.arrays(run.series("x down loss"))["value"].max() <= 100


@pytest.mark.slow
def test_iperf3_without_a_server(tmp_path):
    """Version 3.12 ends with status 0; the error is in its document."""
    run = measure(tmp_path, "iperf3", 1, good=False, port=free_port())
    assert run.meta.verdict == "invalid" and "x: iperf3: unable to connect to server: Connection refused" in run.meta.sentences


@pytest.mark.slow
@pytest.mark.parametrize("direction, protocol", [("up", "tcp"), ("down", "tcp"), ("up", "udp")])
def test_iperf(tmp_path, direction, protocol):
    port = free_port()
    more = ["-u"] if protocol == "udp" else []
    with server("iperf", "-s", "-p", str(port), *more, port=port, kind=protocol):
        run = measure(tmp_path, "iperf", direction=direction, protocol=protocol, bitrate_bps=RATE, flows=2, port=port)
    for name in ("x::1", "x::2"):
        times, count = counted(run, name, 0)
        assert len(times) >= 9 and (np.diff(count) >= 0).all() and count[-1] * 8 / (times[-1] - times[0]) == pytest.approx(RATE, rel=0.2)
    if protocol == "udp":
        assert all(one["bytes"] == pytest.approx(RATE / 8 * 2, rel=0.2) for one in run.meta.runners[0].end["receiver"])


@pytest.mark.slow
def test_irtt(tmp_path):
    port = free_port()
    with server("irtt", "server", "-b", f"127.0.0.1:{port}", port=port, kind="udp"):
        run = measure(tmp_path, "irtt", 1, port=port, mark="EF", payload_bytes=172)
    arrays = run.arrays(run.series("x"))
    assert arrays["seq"].tolist() == list(range(len(arrays["seq"]))) and 45 <= len(arrays["seq"]) <= 50
    answered = arrays["state"] == 0
    assert answered.mean() > 0.9 and (arrays["rtt_ns"][answered] > 0).all() and (arrays["up_ns"][answered] >= 0).mean() > 0.9
    assert -10 * MS < arrays["t_ns"][0] < S and run.meta.runners[0].end["packets_sent"] == len(arrays["seq"])


@pytest.mark.slow
def test_iputils(tmp_path):
    run = measure(tmp_path, "iputils", 1, interval_ns=50 * MS, mark="EF")
    arrays = run.arrays(run.series("x"))
    assert arrays["seq"].tolist() == list(range(1, 21)) and (arrays["rtt_ns"] > 0).all() and -10 * MS < arrays["t_ns"][0] < S


@pytest.mark.slow
def test_ditg(tmp_path):
    """One test for all models: ITGRecv has one port for all senders of the host."""
    with server("ITGRecv", port=9000):
        for model in ("constant", "poisson", "voip"):
            run = measure(tmp_path, "ditg", flows=2, model=model, mark="EF", port=free_port() // 2)
            for name in ("x::1", "x::2"):
                arrays = run.arrays(run.series(name))
                assert len(arrays["seq"]) == pytest.approx(100 if model == "voip" else 200, rel=0.4)
                assert (arrays["rtt_ns"][arrays["state"] == 0] > 0).all() and -10 * MS < arrays["t_ns"].min() < 2 * S


class Pages(BaseHTTPRequestHandler):
    def do_GET(self):
        rate = int(self.path.split("/")[1]) if self.path.startswith("/1") else 0
        known = self.path in ("/", "/other") or rate
        body = bytes(rate // 16 or 10)  # half a second
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


@pytest.mark.tool
def test_http(tmp_path, web):
    run = measure(tmp_path, "http", 1, pages=(f"{web}/", f"{web}/other"), interval_ns=100 * MS)
    load, connect = (run.arrays(run.series(f"x {phase}"))["value"] for phase in ("load", "connect"))
    assert 6 <= len(load) <= 10 and (load > 0).all() and (connect >= 0).all() and (connect <= load).all() and run.meta.runners[0].end["failed"] == 0


@pytest.mark.tool
def test_http_pages_that_fail(tmp_path, web):
    run = measure(tmp_path, "http", 1, pages=(f"{web}/none", f"http://127.0.0.1:{free_port()}/", f"{web}/"), interval_ns=200 * MS)
    assert any("fetches failed" in reason for reason in run.meta.sentences) and run.meta.verdict == "degraded"
    texts = run.table("events").column("text").to_pylist()
    assert any("/none: 404" in text for text in texts) and any("Failed to connect" in text or "Could not connect" in text for text in texts)


@pytest.mark.tool
def test_video(tmp_path, web):
    ladder = (1_000_000, 10_000_000, 100_000_000)
    run = measure(tmp_path, "video", 3, url=f"{web}/{{bitrate}}/{{segment}}", segment_ns=500 * MS, buffer_ns=S, ladder_bps=ladder)
    rates = run.arrays(run.series("x bitrate"))["value"]
    assert rates[0] == 1 and rates[-1] > 1, "the bit rate rises"
    buffer, end = run.arrays(run.series("x buffer"))["value"], run.meta.runners[0].end
    assert 0 < buffer.max() <= 1.6 and 5 <= end["segments"] <= 10 and end["failed"] == 0 and end["stalls"] <= 2


@pytest.mark.slow
def test_number(tmp_path):
    run = measure(tmp_path, "number", 1, words=("cut", "-d ", "-f1", "/proc/uptime"), interval_ns=100 * MS)
    arrays = run.arrays(run.series("x"))
    assert 6 <= len(arrays["value"]) <= 10
    assert np.diff(arrays["value"]) == pytest.approx(np.diff(arrays["t_ns"]) / S, abs=0.05), "the times are those of the numbers"


@pytest.mark.slow
def test_number_of_a_program_without_end(tmp_path):
    """It is stopped at the end of its time, which is the plan and no fault."""
    run = measure(tmp_path, "number", 1, words=("sh", "-c", "while cut -d. -f1 /proc/uptime; do sleep 0.1; done"), repeat=False)
    assert run.meta.verdict == "valid", run.meta.sentences
    assert len(run.arrays(run.series("x"))["value"]) >= 3


@pytest.mark.tool
@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="there is no mosquitto_sub: make setup")
def test_values_of_a_meter_by_mqtt(tmp_path):
    """mqtt_read of the catalogue with the real mosquitto_sub, which does not end by itself."""
    published = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        broker = threading.Thread(target=lambda: mqtt_broker.publish(listener.accept()[0], published), daemon=True)
        broker.start()
        test = catalogue.find("mqtt_read")
        given = {"mqtt_host": "127.0.0.1", "mqtt_port": listener.getsockname()[1], "mqtt_payload_key": "power"}
        run = recorded(tmp_path, test.make(Setting("127.0.0.1", 2, 0), given), 2)
        broker.join(10)
    assert run.meta.verdict == "valid", run.meta.sentences
    values = run.arrays(run.series("mqtt_data"))
    assert len(values["value"]) >= 5 and list(values["value"]) == published[: len(values["value"])] and not broker.is_alive()


def test_number_of_a_missing_command(tmp_path):
    with pytest.raises(checks.CheckError, match=r"^x, in place local: ktrxer-no-such-command is not installed$"):
        measure(tmp_path, "number", 1, words=("ktrxer-no-such-command",), interval_ns=100 * MS)
    assert not list(tmp_path.iterdir())
