# SPDX-License-Identifier: MIT OR Apache-2.0
"""http/load.py against a web server that behaves, redirects, refuses, stalls, closes, or is a captive portal."""

import json
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from ktrxer import runners
from ktrxer.http import load
from ktrxer.runners import Options, RunnerError, Times
from ktrxer.runners.http_load import PROGRAM, Load
from ktrxer.runners.runner import Ended
from ktrxer.runners.samples import Chunk, Clock, Samples
from ktrxer.store.meta import Runner

S = 10**9
SIZE = 4_000_000


def drip(out, head, release):
    """A head that does not end, or a body: one byte each 50 ms, for up to 15 s."""
    for byte in head + bytes(b"x" * 300):
        out.write(bytes([byte]))
        if release.wait(0.05):
            return


class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in {"content-length": len(body), **fields}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        kind = self.path[1:]
        host = f"http://127.0.0.1:{self.server.server_port}"
        if kind == "large":
            self.reply(200, bytes(SIZE), content_type="application/octet-stream")
        elif kind == "small":
            self.reply(200, b"<html>log in", content_type="text/html")
        elif kind == "stall":
            self.send_response(200)
            self.send_header("content-length", str(SIZE))
            self.end_headers()
            self.server.release.wait(30)
        elif kind == "silent":
            self.server.release.wait(30)
        elif kind == "drip-head":
            drip(self.wfile, b"HTTP/1.1 200 OK\r\nx: ", self.server.release)
        elif kind == "close":
            self.close_connection = True
        elif kind == "garbage":
            self.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n")
            self.close_connection = True
        elif kind == "moved":
            self.reply(302, location="/large")
        elif kind == "away":
            self.reply(302, location="http://portal.example/login")
        elif kind == "round":
            self.reply(301, location=f"{host}/round")
        else:
            self.reply(int(kind), retry_after=7)

    def do_POST(self):
        kind = self.path[1:]
        length = int(self.headers["content-length"])
        if kind == "drip-body":
            while length:
                length -= len(self.rfile.read(min(length, 1 << 16)))
            drip(self.wfile, b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n", self.server.release)
        elif kind == "upload":
            while length:
                length -= len(self.rfile.read(min(length, 1 << 16)))
            self.reply(200, b"thank you")
        elif kind == "limit" and length > 10_000:
            self.reply(413)
            self.close_connection = True
        elif kind in ("limit", "away"):
            self.rfile.read(length)
            self.reply(200) if kind == "limit" else self.reply(307, location="http://portal.example/")
        else:
            self.rfile.read(min(length, 1000))
            self.reply(int(kind))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_):
        pass  # clients that go away


@pytest.fixture(scope="module")
def web():
    server = Server(("127.0.0.1", 0), Web)
    server.release = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.release.set()
    server.shutdown()
    server.server_close()


def program(*words, seconds=60):
    done = subprocess.run([sys.executable, "-I", str(PROGRAM), *words], capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert not done.stderr, done.stderr
    return done.returncode, objects


@pytest.mark.slow
def test_a_download(web):
    status, made = program("down", f"{web}/large", "--flows", "3", "--for", f"{S}ns", "--sample-interval", "100000000ns")
    assert (status, made[0]["type"], made[-1]["type"], made[-1]["verdict"]) == (0, "start", "end", "valid")
    samples = [one for one in made if one["type"] == "sample"]
    assert {one["flow"] for one in samples} == {0, 1, 2} and {one["end"] for one in samples} == {"local"}
    counts = [one["bytes"] for one in samples if one["flow"] == 1]
    assert counts == sorted(counts) and counts[-1] > SIZE, "the object is requested again and again"
    assert len(counts) == 11


@pytest.mark.slow
def test_an_upload_counts_acknowledged_bytes(web):
    status, made = program("up", f"{web}/upload", "--flows", "2", "--for", f"{S}ns")
    assert (status, made[-1]["verdict"]) == (0, "valid")
    samples = [one for one in made if one["type"] == "sample" and one["flow"] == 0]
    assert samples[-1]["end"] == "remote" and samples[-1]["bytes"] > 100_000 and samples[-1]["bound_ns"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("way", "path", "complaint"), [
    ("down", "small", "the object has 12 bytes (text/html); a load needs one of 1000000 bytes at least; a captive portal"),
    ("down", "404", "status 404: there is no such object"),
    ("down", "403", "it refuses this download"),
    ("down", "503", "(Retry-After: 7): it is busy or limits requests"),
    ("down", "511", "a captive portal of the local network"),
    ("down", "500", "status 500; name another URL"),
    ("down", "away", "redirected to another host, http://portal.example/login: name that URL"),
    ("down", "round", "more than 3 redirections"),
    ("down", "close", "closed the connection before its reply was complete"),
    ("down", "garbage", "the reply is not HTTP/1.1: 'SSH-2.0-OpenSSH'"),
    ("up", "405", "it takes no upload there"),
    ("up", "403", "it refuses this upload"),
    ("up", "away", "the upload is redirected to http://portal.example/"),
])
def test_what_one_request_finds(web, way, path, complaint):
    status, made = program(way, f"{web}/{path}", "--trial")
    assert status == 1 and len(made) == 1 and made[0]["verdict"] == "invalid"
    assert complaint in made[0]["reasons"][0]["text"]


@pytest.mark.parametrize(("path", "complaint"), [
    ("stall", "the server stalled: it sent no data within 0.5 s"), ("silent", "the server stalled: no complete reply within 0.5 s"),
    ("drip-head", "the server stalled: no complete reply within 0.5 s"),
])
def test_a_server_that_stalls(web, monkeypatch, path, complaint):
    monkeypatch.setattr(load, "WAIT_S", 0.5)
    with pytest.raises(load.LoadError, match=complaint):
        load.final_place(f"{web}/{path}", None, 0)


@pytest.mark.slow
def test_a_reply_of_single_bytes_does_not_hold_an_upload(web, monkeypatch):
    """The reply's body comes one byte at a time: the connection is given up, and reported."""
    monkeypatch.setattr(load, "WAIT_S", 2.5)
    monkeypatch.setattr(load, "POST_BYTES", 100_000)
    loaded = load.Load(load.place_of(f"{web}/drip-body"), None, True, 1)
    loaded.start()
    until = time.monotonic() + 20
    while not loaded.flows[0].failures and time.monotonic() < until:
        time.sleep(0.05)
    loaded.stop.set()
    assert "no complete reply within 2.5 s" in load.end_of(loaded, False)["reasons"][0]["text"]


def test_redirections_within_the_host_are_followed(web):
    assert load.final_place(f"{web}/moved", None, 0).path == "/large"


@pytest.mark.slow
def test_an_upload_that_is_refused_in_the_middle(web):
    """A body of 1000 bytes was accepted, those of the load are too large."""
    status, made = program("up", f"{web}/limit", "--flows", "1", "--for", f"{S}ns")
    assert status == 1 and "it takes no upload there" in made[-1]["reasons"][0]["text"]


def test_nothing_listens():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/x"
    status, made = program("down", url, "--trial")
    assert status == 1 and "no connection: Connection refused" in made[0]["reasons"][0]["text"]


def test_tls_to_a_server_without_it(web):
    status, made = program("down", f"{web.replace('http', 'https')}/large", "--trial")
    assert status == 1 and "no connection: " in made[0]["reasons"][0]["text"]


def test_a_slow_dns_server(monkeypatch):
    monkeypatch.setattr(load, "DNS_S", 0.2)
    answered = threading.Event()
    monkeypatch.setattr(load.socket, "getaddrinfo", lambda *_: answered.wait(60) and [])
    with pytest.raises(load.LoadError, match=r"far\.example: no answer of the DNS within 0\.2 s"):
        load.place_of("http://far.example/x")  # after the answer, it would complain that the DNS has none
    answered.set()


@pytest.mark.parametrize("url", ["ftp://far/x", "http://", "http:///x", "http://far:99999/", "http://[::1/", "http://far/a b", "large.iso"])
def test_urls_that_are_none(url):
    with pytest.raises(load.LoadError, match="not an URL"):
        load.place_of(url)


def test_the_end_of_standard_input_ends_it(web):
    words = [sys.executable, "-I", str(PROGRAM), "down", f"{web}/large", "--for", f"{60 * S}ns", "--stop-on-eof"]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    while not json.loads(child.stdout.readline()).get("bytes"):
        pass
    child.stdin.close()
    last = child.stdout.read().splitlines()[-1]
    assert child.wait(timeout=20) == 1 and [one["id"] for one in json.loads(last)["reasons"]] == ["load_stopped"]


@pytest.mark.parametrize(("given", "complaint"), [
    ({"url": "ftp://far/x", "series": ("a",)}, "no URL of a web server"),
    ({"url": "http://far/x"}, "connections: 0; 1 to 32"),
    ({"url": "http://far/x", "series": ("a",) * 33}, "connections: 33"),
    ({"url": "http://far/x", "series": ("a",), "interval_ns": 1}, "time between samples"),
])
def test_parameters_that_are_refused(given, complaint):
    with pytest.raises(RunnerError, match=complaint):
        runners.find("http_load").validate(Load(**given))


@pytest.mark.slow
def test_the_runner_reads_its_program(web):
    runner = runners.find("http_load")
    p = Load(url=f"{web}/large", series=("a", "b"))
    words = runner.command(p, Options(), Times(S // 2))
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # the end of its input would stop it
    assert child.stdin is not None and child.stdout is not None
    printed = child.stdout.read()
    child.stdin.close()
    assert child.wait(timeout=60) == 0
    series = runner.series(p, "HTTP download")
    for number, one in enumerate(series.values()):
        one.id = number
    samples = Samples(series, Clock(0, 0), to_ns=time.monotonic_ns())
    reading = runner.read(p, samples)
    next(reading)
    reading.send(Chunk(printed, 0))
    with pytest.raises(StopIteration):
        reading.send(None)
    assert not samples.garbage, samples.first_garbage
    rows = samples.take()["bytes"]
    assert set(rows["series"]) == {0, 1} and max(rows["bytes"]) > 0
    assert samples.result is not None and samples.result["verdict"] == "valid"
    ended = Ended(Runner(0, "x", "http_load", [], end={"verdict": "invalid", "reasons": ["no byte was transferred"]}), 1)
    assert [reason.severity for reason in runner.health(ended)] == ["degraded"]
