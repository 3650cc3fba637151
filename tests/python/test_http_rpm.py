# SPDX-License-Identifier: MIT OR Apache-2.0
"""The responsiveness test: configuration objects, and its client against our server, over loopback."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ktrxer.http import nq
from ktrxer.runners.http_rpm import PROBES, PROGRAM

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
S = 10**9
GOOD = {"version": 1, "urls": {"small_download_url": "https://a/s", "large_download_url": "https://a/l", "upload_url": "https://a/u"}}


def config(**changes):
    return json.dumps(GOOD | changes).encode()


def test_the_drafts_configuration():
    assert nq.parse(config()) == nq.Config("https://a/s", "https://a/l", "https://a/u")
    assert nq.parse(config(test_endpoint="b", more=[1])).test_endpoint == "b", "unknown names are ignored"


def test_the_names_of_its_first_versions():
    urls = {"small_https_download_url": "https://a/s", "large_https_download_url": "https://a/l", "https_upload_url": "https://a/u"}
    assert nq.parse(config(urls=urls)) == nq.Config("https://a/s", "https://a/l", "https://a/u")


def test_what_our_server_writes_is_valid_for_both():
    text = nq.write("https://far:8443/x")
    assert nq.parse(text).upload == "https://far:8443/x/upload"
    assert {"small_download_url", "small_https_download_url", "https_upload_url"} <= json.loads(text)["urls"].keys()


@pytest.mark.parametrize(("text", "complaint"), [
    (b"", "not JSON"), (b"<html>", "not JSON"), (b"[]", "no urls"), (config(urls=5), "no urls"), (b"[" * 60000, "not JSON"),
    (b" " * 70000, "more than 65536 bytes"), (config(version=2), "version 2"), (config(version=True), "version True"),
    (config(urls=GOOD["urls"] | {"upload_url": "https://b/u"}), "different hosts: a, b"),
    (config(urls=GOOD["urls"] | {"upload_url": "ftp://a/u"}), "upload_url is no URL"),
    (config(urls=GOOD["urls"] | {"upload_url": "https://a/\n"}), "upload_url is no URL"),
    (config(urls={"small_download_url": "https://a/s"}), "large_download_url is missing"),
    (b'{"version": 1, "version": 1, "urls": {}}', "version appears twice"),
    (config(test_endpoint=5), "test_endpoint is no host"),
])
def test_configurations_that_are_ignored(text, complaint):
    with pytest.raises(nq.ConfigError, match=complaint):
        nq.parse(text)


@pytest.mark.parametrize(("named", "there", "loaded"), [
    ("far", "far", True), ("far", "near", False), ("aim.example.com", "h3.speed.example.com", True), ("Example.com.", "a.example.COM", True),
    ("example.com", "example.org", False), ("example.com", "badexample.com", False), ("com", "example.com", False),
    ("192.0.2.1", "192.0.2.1", True), ("192.0.2.1", "198.51.2.1", False), ("2001:db8::1", "2001:db8::2", False),
])
def test_a_host_of_another_domain_is_not_loaded(named, there, loaded):
    assert nq.one_domain(named, there) is loaded


# ------------------------------------------------------------------------------------------------------------- our own server

pytest.importorskip("h2", reason="the Python package h2 is not installed (python/requirements.txt)")

from ktrxer.http import client, rpm  # noqa: E402

TOKEN, TOKEN_IN_URL = "0123456789abcdefghij+/==", "0123456789abcdefghij%2B%2F%3D%3D"  # as base64 prints one


def environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.fail("openssl is missing: scripts/setup installs it")
    folder = tmp_path_factory.mktemp("served")
    token, ca = folder / "token", folder / "ca.pem"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    words = ["serve-http", "--port", "0", "--bind", "127.0.0.1", "--name", "127.0.0.1", "--token-file", token, "--cert-out", ca, "--json"]
    child = subprocess.Popen([sys.executable, "-m", "ktrxer", *map(str, words)], stdout=subprocess.PIPE, env=environment(), text=True)
    assert child.stdout is not None
    made = json.loads(child.stdout.readline())
    yield made["url"], str(token), str(ca), f"{made['url']}/{TOKEN_IN_URL}/nq"
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=20) == 0


@pytest.mark.parametrize("option", ["--jsonl", "-q"])
def test_the_output_of_the_server(tmp_path, option):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["--port", str(port), "--bind", "127.0.0.1", "--name", "127.0.0.1", "--open", "--cert-out", str(tmp_path / "ca.pem"), option]
    child = subprocess.Popen([sys.executable, "-m", "ktrxer", "serve-http", *words], stdout=subprocess.PIPE, env=environment(), text=True)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except ConnectionRefusedError:
            assert child.poll() is None
            time.sleep(0.02)
    child.send_signal(signal.SIGTERM)
    made = [json.loads(line) for line in child.communicate(timeout=20)[0].splitlines()]
    assert child.returncode == 0
    if option == "-q":
        assert made == []
    else:
        url = {"type": "serve_http", "url": f"https://127.0.0.1:{port}", "port": port, "open": True}
        # The server may read the end of the connection above before the signal.
        assert made == [url, {"type": "end", "requests": 0, "refused": made[-1]["refused"]}] and made[-1]["refused"] <= 1


def test_a_killed_server_leaves_no_key(tmp_path):
    ca, scratch = tmp_path / "ca.pem", tmp_path / "scratch"
    scratch.mkdir()
    words = ["serve-http", "--port", "0", "--bind", "127.0.0.1", "--name", "127.0.0.1", "--open", "--cert-out", str(ca), "--json"]
    child = subprocess.Popen([sys.executable, "-m", "ktrxer", *words], stdout=subprocess.PIPE, env=environment() | {"TMPDIR": str(scratch)}, text=True)
    assert child.stdout is not None and child.stdout.readline()
    child.kill()
    assert child.wait(timeout=20) == -signal.SIGKILL
    assert list(scratch.iterdir()) == [] and ca.read_text().startswith("-----BEGIN CERTIFICATE-----")


def program(*words, seconds=120):
    """Without -I, which hides the packages of PYTHONPATH."""
    done = subprocess.run([sys.executable, str(PROGRAM), *words], capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL, env=environment())
    assert not done.stderr, done.stderr.decode()
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("way", ["down", "up"])
def test_a_direction(served, way):
    url, token, ca, _ = served
    status, made = program(way, url, "--ca-file", ca, "--token-file", token, "--for", f"{5 * S}ns", "--interval", f"{S}ns", "--most", "4")
    end = made[-1]
    assert end["type"] == "end" and end["direction"] == way, made[-3:]
    assert end["bytes"] > 1_000_000 and end["goodput_bps"] > 0 and 4 <= end["intervals"] <= 5
    assert end["connections"] <= 4 and end["responsiveness"]["rpm"] > 0, end
    for kind in ("tcp_ms", "tls_ms", "http_ms", "self_ms"):
        assert 0 < end["responsiveness"][kind] < 5000
    assert status == (0 if end["verdict"] == "valid" else 1)
    assert {one["probe"] for one in made if one.get("kind") == "rpm_probe"} == set(PROBES)
    counts = [one["bytes"] for one in made if one.get("kind") == "bytes"]
    assert counts == sorted(counts) and counts[-1] > counts[0]
    assert [one["connections"] for one in made if one.get("name") == "rpm_interval"] == sorted(
        one["connections"] for one in made if one.get("name") == "rpm_interval")


class Loading:
    """A connection of the load."""

    def __init__(self):
        self.leaving, self.received, self.waiting, self.loads, self.closed, self.on_close = False, 0, {}, 0, False, None

    def load(self, *_):
        self.loads += 1

    def close(self):
        self.closed = True


def test_connections_that_take_longer_than_an_interval_are_no_more_than_wanted(monkeypatch):
    async def grown():
        test, opens = rpm.Test("down", nq.parse(config()), None, None, None, print), asyncio.Event()

        async def connected(*_):
            await opens.wait()
            return client.Opened(Loading(), 1.0, 1.0)

        monkeypatch.setattr(rpm, "connected", connected)
        test.ramp.connections = 2
        intervals = [asyncio.create_task(test._grow()) for _ in range(3)]
        await asyncio.sleep(0)
        opens.set()
        await asyncio.gather(*intervals)
        return len(test.loads)

    assert asyncio.run(grown()) == 2


def test_a_connection_after_goaway_is_replaced(monkeypatch):
    async def work():
        test, made = rpm.Test("down", nq.parse(config()), client.Target("https", "far", 443, "far"), None, None, print), []

        async def connected(*_):
            made.append(Loading())
            return client.Opened(made[-1], 1.0, 1.0)

        monkeypatch.setattr(rpm, "connected", connected)
        test.ramp.connections = 2
        await test._grow()
        first = made[0]
        probe = asyncio.get_running_loop().create_future()
        first.received, first.waiting = 1000, {3: probe}
        first.on_leave()
        assert test.loads == [made[1]] and test.moved() == 1000 and first.on_close is None
        await asyncio.sleep(0.01)
        assert test.loads == made[1:] and len(made) == 3 and made[2].loads == 1 and not first.closed
        first.received = 1500
        probe.set_result(None)
        await asyncio.sleep(0.01)
        assert first.closed and not test.leaving and test.moved() == 1500 and test.replaced == 1 and not test.reasons
        # A server that allows nothing beside the load.
        for _ in range(4):
            assert not test.over.is_set()
            test.loads[0].on_leave()
            await asyncio.sleep(0.01)
        assert test.over.is_set() and len(test.reasons) == 1
        assert "far: no probe beside a load is answered" in test.reasons[0].text and "keepalive_requests" in test.reasons[0].text

    asyncio.run(work())


def test_the_url_of_the_configuration(served):
    _, _, ca, config_url = served
    status, made = program("down", config_url, "--ca-file", ca, "--trial")
    assert status == 0 and made[-1]["verdict"] == "valid"


def test_without_the_token_nothing_is_served(served):
    url, _, ca, config_url = served
    status, made = program("down", url, "--ca-file", ca, "--trial")
    assert status == 1 and "status 404: there is no configuration of a responsiveness test" in made[-1]["reasons"][0]["text"]
    other = config_url.replace("0123456789", "zyxwvutsrq")
    status, made = program("down", other, "--ca-file", ca, "--trial")
    assert status == 1 and "status 404" in made[-1]["reasons"][0]["text"] and "zyxwvutsrq" not in made[-1]["reasons"][0]["text"], "the path may be a secret"


def test_a_certificate_that_is_not_trusted(served):
    status, made = program("down", served[0], "--trial")
    assert status == 1 and "its certificate is not trusted" in made[-1]["reasons"][0]["text"]


def test_a_configuration_that_names_a_host_of_another_domain(monkeypatch):
    async def answered(*_):
        return client.Answer(200, body=config())

    async def address(*_):
        return None

    monkeypatch.setattr(rpm, "requested_once", answered)
    monkeypatch.setattr(rpm, "looked_up", address)
    assert asyncio.run(rpm.configured("https://a/nq", "", None, 0)).small == "https://a/s"
    with pytest.raises(client.NqError, match=r"https://far\.example: its configuration names a, a host of another domain, which is not loaded"):
        asyncio.run(rpm.configured("https://far.example/nq", "", None, 0))


def test_a_server_that_sends_a_byte_at_a_time(monkeypatch):
    """The beginning of a TLS record of 16 KiB, a byte each 20 ms: the handshake has one limit, and not each wait in it."""
    monkeypatch.setattr(client, "WAIT_S", 1.0)
    ended = threading.Event()

    def drip(listener):
        with contextlib.suppress(OSError):
            sock = listener.accept()[0]
            for byte in b"\x16\x03\x03\x40\x00" + bytes(1 << 14):
                sock.sendall(bytes([byte]))
                if ended.wait(0.02):
                    break
            sock.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        began = time.monotonic()
        try:
            with pytest.raises(rpm.NqError, match=r"^https://127\.0\.0\.1:"):
                asyncio.run(rpm.configured(f"https://127.0.0.1:{listener.getsockname()[1]}/nq", "", ssl.create_default_context(), 0))
            assert 0.9 < time.monotonic() - began < 10
        finally:
            ended.set()
            thread.join()


def test_a_server_that_ends_in_the_middle(tmp_path):
    """The draft: the test is aborted when one connection of the load ends with an error."""
    ca, token = tmp_path / "ca.pem", tmp_path / "token"
    token.write_text("0123456789abcdefghijkl")
    token.chmod(0o600)
    words = ["serve-http", "--port", "0", "--bind", "127.0.0.1", "--name", "127.0.0.1", "--token-file", token, "--cert-out", ca, "--json"]
    far = subprocess.Popen([sys.executable, "-m", "ktrxer", *map(str, words)], stdout=subprocess.PIPE, env=environment(), text=True)
    assert far.stdout is not None
    url = json.loads(far.stdout.readline())["url"]
    client = subprocess.Popen(
        [sys.executable, str(PROGRAM), "down", url, "--ca-file", str(ca), "--token-file", str(token), "--for", f"{60 * S}ns", "--interval", f"{S}ns"],
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment(), text=True)
    assert client.stdout is not None
    try:
        while '"rpm_interval"' not in client.stdout.readline():
            assert client.poll() is None
    finally:
        far.kill()
        far.wait()
    end = json.loads(client.stdout.read().splitlines()[-1])
    assert client.wait(timeout=30) == 1 and end["type"] == "end"
    # The connection that ended, or the next one, which the ramp was about to add.
    assert any("of the load ended" in reason["text"] or "of the load failed" in reason["text"] for reason in end["reasons"]), end["reasons"]


@pytest.mark.parametrize(("words", "status", "complaint"), [
    ([], 2, "give a token"),
    (["--open", "--token-file", "x"], 2, "give a token"),
    (["--open", "--cert", "x"], 2, "--cert and --key go together"),
    (["--open", "--cert", "none.pem", "--key", "none.pem"], 1, "no certificate and key: No such file"),
    (["--token-file", "none"], 1, "none: No such file or directory"),
    (["--open", "--name", "a b"], 1, "'a b' is no name of a host"),
])
def test_servers_that_do_not_start(capsys, words, status, complaint):
    from ktrxer.cli import main

    assert main(["serve-http", *words]) == status
    assert complaint in capsys.readouterr().err


def test_requests_of_our_server(served):
    """Of a client that has the token: methods, unknown paths, the size of the objects."""
    import ssl

    from ktrxer.http.rpm import connected, path_of, target_of

    url, _, ca, config_url = served
    target = target_of(url)
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    root = path_of(config_url).removesuffix("/nq")

    async def ask():
        import socket

        client = (await connected(target, (socket.AF_INET, (target.host, target.port)), context)).client
        try:
            paths = (f"{root}/small", f"{root}/nq", f"{root}/upload", f"{root}/", "/nq")
            answers = {path: await asyncio.wait_for(client.requested("GET", path), 10) for path in paths}
        finally:
            client.close()
        return answers

    answers = asyncio.run(ask())
    assert [answer.status for answer in answers.values()] == [200, 200, 405, 404, 404]
    assert len(answers[f"{root}/small"].body) == nq.SMALL_BYTES and nq.parse(answers[f"{root}/nq"].body).small == f"{url}{root}/small"


def test_a_token_that_others_can_read(capsys, tmp_path):
    from ktrxer.cli import main

    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o644)
    assert main(["serve-http", "--name", "far", "--token-file", str(path)]) == 1
    told = capsys.readouterr().err
    assert "has mode 0644, so that other users may use it: `chmod 600 '" in told
    path.write_text("short")
    path.chmod(0o600)
    assert main(["serve-http", "--name", "far", "--token-file", str(path)]) == 1
    assert "no token: 22 to 128" in capsys.readouterr().err


def test_an_open_server_answers_at_the_well_known_url(tmp_path):
    ca = tmp_path / "ca.pem"
    words = ["serve-http", "--port", "0", "--bind", "127.0.0.1", "--name", "127.0.0.1", "--open", "--cert-out", str(ca), "--json"]
    far = subprocess.Popen([sys.executable, "-m", "ktrxer", *words], stdout=subprocess.PIPE, env=environment(), text=True)
    assert far.stdout is not None
    try:
        status, made = program("down", json.loads(far.stdout.readline())["url"], "--ca-file", str(ca), "--trial")
        assert status == 0, made
    finally:
        far.terminate()
        assert far.wait(timeout=20) == 0


def test_clients_that_do_not_speak_http_2(served):
    """Without ALPN, with other bytes than HTTP/2, without TLS: each is closed, and the next client is served."""
    url, token, ca, _ = served
    port = int(url.rpartition(":")[2])
    context = ssl.create_default_context(cafile=ca)
    for protocols, text in (([], b"GET / HTTP/1.1\r\n\r\n"), (["h2"], b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10), (["h2"], os.urandom(10_000))):
        if protocols:
            context.set_alpn_protocols(protocols)
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10), server_hostname="127.0.0.1") as sock:
            sock.settimeout(10)
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                sock.sendall(text)
                while sock.recv(10_000):
                    pass
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.settimeout(15)
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while sock.recv(10_000):
                pass
    status, _ = program("down", url, "--ca-file", ca, "--token-file", token, "--trial")
    assert status == 0


def secure_socket(served, network):
    """A connection with TLS and HTTP/2 from a network of the loopback device; None: the server has closed it."""
    url, _, ca, _ = served
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    raw = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 20, (f"127.0.{network}.1", 0))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    try:
        made = context.wrap_socket(raw, server_hostname="127.0.0.1")
        return made if made.recv(1) else None
    except (ConnectionError, ssl.SSLError):
        raw.close()
        return None


def test_one_network_leaves_places_to_others(served):
    """The server has 128 places. Of connections before TLS, and of silent ones with TLS, the greedy network loses its oldest."""
    port = int(served[0].rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(contextlib.closing(secure_socket(served, 0))) for _ in range(100)]
        half = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 20)) for _ in range(40)]
        other = secure_socket(served, 1)
        assert other is not None, "another network has no place"
        stack.enter_context(contextlib.closing(other))
        crowd[0].settimeout(20)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while crowd[0].recv(1000):  # its first frame, and then the end
                pass
        assert half[-1].fileno() >= 0 and secure_socket(served, 0) is not None, "and the greedy one serves its newest"


def test_a_peer_that_does_not_read_costs_little_memory(served):
    """Each PING has an answer, which waits in the memory of the server: the connection ends at a megabyte of them."""
    sock = secure_socket(served, 0)
    assert sock is not None
    ping = b"\0\0\x08\x06\0\0\0\0\0" + bytes(8)
    sock.settimeout(60)
    sent = 0
    with contextlib.closing(sock), pytest.raises((ConnectionError, ssl.SSLError)):
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0")
        while sent < 40 << 20:
            sock.sendall(ping * 1000)
            sent += 1000 * len(ping)
    assert sent < 20 << 20


def test_curl_is_served(served):
    """Another implementation of HTTP/2."""
    if b"HTTP2" not in subprocess.run(["curl", "--version"], capture_output=True).stdout:
        pytest.skip("curl has no HTTP/2 here")
    _, _, ca, config_url = served
    base = config_url.removesuffix("/nq")
    words = ["curl", "-sS", "--http2", "--cacert", ca, "-o", "/dev/null", "-w", "%{http_version} %{http_code} %{size_download}"]
    small = subprocess.run([*words, f"{base}/small"], capture_output=True, text=True, timeout=30)
    assert small.stdout == "2 200 1", small.stderr
    large = subprocess.run([*words, "--max-time", "1", f"{base}/large"], capture_output=True, text=True, timeout=30)
    version, status, size = large.stdout.split()
    assert (version, status) == ("2", "200") and int(size) > 1_000_000
    upload = subprocess.run([*words, "--data-binary", "@-", f"{base}/upload"], input="x" * 3_000_000, capture_output=True, text=True, timeout=30)
    assert upload.stdout.startswith("2 200"), upload.stderr


def test_the_objects_without_load_by_http_1(served):
    """Cloudflare's client measures the idle round trip so, and gives up when it has no answer."""
    _, _, ca, config_url = served
    base = config_url.removesuffix("/nq")
    words = ["curl", "-sS", "--http1.1", "--cacert", ca, "-w", " %{http_version} %{http_code} %{content_type}"]

    def text_of(*more):
        return subprocess.run([*words, *more], capture_output=True, text=True, timeout=30)

    assert text_of(f"{base}/small").stdout == "x 1.1 200 application/octet-stream"
    text, _, status = text_of(config_url).stdout.rpartition(" 1.1 ")
    assert nq.parse(text.encode()).small == f"{base}/small" and status == "200 application/json"
    assert text_of("--no-alpn", "--head", f"{base}/small").stdout.split()[-3:] == ["1.1", "200", "application/octet-stream"]
    for status, more in (("404", [f"{base[:-1]}/small"]), ("405", ["--data", "x", f"{base}/small"]), ("505", [f"{base}/large"]), ("505", ["--data", "x", f"{base}/upload"])):
        assert text_of(*more).stdout.split()[:2] == ["1.1", status], more
    assert text_of("-H", f"x: {'y' * 20_000}", f"{base}/small").stdout.split()[:2] == ["1.1", "400"]
