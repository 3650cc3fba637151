# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer view`: its command, and its server over HTTP: requests of other sites, paths, wrong requests. The tests of its page in a browser
are in web/browser/."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from explore_server import FIFO, RRUL, make_runs, send, serving
from ktrxer.cli import main
from ktrxer.explore import command, server


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("explore"), tmp_path_factory.mktemp("outside"))


@pytest.fixture(scope="module")
def up(runs: Path) -> Iterator[server.Server]:
    with serving(runs) as made:
        yield made


# ---------------------------------------------------------------------------------------------------------------- security


@pytest.mark.slow
def test_silent_connections_take_no_place_of_the_page(runs: Path) -> None:
    """Any user of the machine can connect, and each connection has a thread."""
    with serving(runs) as up, contextlib.ExitStack() as stack:
        page = http.client.HTTPConnection("127.0.0.1", up.server_port, timeout=20)
        stack.callback(page.close)
        headers = {"Host": f"127.0.0.1:{up.server_port}", "X-Ktrxer-Token": up.token, "Content-Type": "application/json"}
        page.request("POST", "/api/runs", b"{}", headers)
        assert page.getresponse().read()
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", up.server_port), 20)) for _ in range(2 * server.MOST_CONNECTIONS)]
        assert silent[0].recv(1) == b"", "the oldest one without the token is closed"
        page.request("POST", "/api/runs", b"{}", headers)
        assert page.getresponse().status == 200, "the page stays connected"
        assert send(up, "GET", "/")[0] == 200
        # Threads of closed connections end a moment later.
        until = time.monotonic() + 20
        while (count := sum(one.name.endswith("(process_request_thread)") for one in threading.enumerate())) > server.MOST_CONNECTIONS:
            assert time.monotonic() < until, f"{count} threads"
            time.sleep(0.02)


def test_a_connection_does_not_wait_for_a_second_syn(up: server.Server) -> None:
    """The kernel drops the SYN of a connection that the queue of the socket cannot take; the next SYN comes after a second."""
    with up._lock, contextlib.ExitStack() as stack:  # the server accepts one connection and stops there
        for _ in range(server.MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection(("127.0.0.1", up.server_port), 0.9))


def test_the_page_has_no_data_and_cannot_be_framed(up: server.Server) -> None:
    status, headers, body = send(up, "GET", "/", X_Ktrxer_Token=None, Origin=None, Sec_Fetch_Site="none")
    assert status == 200 and b"page" in body and up.token.encode() not in body
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'" and headers["X-Frame-Options"] == "DENY"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin" and headers["Cache-Control"] == "no-store"
    assert not [name for name in headers if name.startswith("Access-Control")]


def test_it_listens_on_the_loopback_address_only(up: server.Server) -> None:
    assert up.socket.getsockname()[0] == "127.0.0.1" and len(up.token) >= 32
    with serving(up.answers.library.directory) as other:
        assert other.token != up.token


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": None}, 421),
        ({"X_Ktrxer_Token": None}, 403),
        ({"X_Ktrxer_Token": "x" * 32}, 403),
        ({"X_Ktrxer_Token": "\xff\xfe"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Length": "99999999"}, 413),
        ({"Content_Length": "-1"}, 413),
        ({"Content_Length": "0x10"}, 413),
        ({"Transfer_Encoding": "chunked"}, 415),
    ],
)
def test_a_request_of_another_site_is_refused(up: server.Server, headers: dict[str, str | None], status: int) -> None:
    """DNS rebinding has another Host, a form has no JSON, a fetch has an Origin; all three lack the token."""
    found, answered, body = send(up, "POST", "/api/runs", {}, **headers)
    assert found == status and b"rrul" not in body
    assert not [name for name in answered if name.startswith("Access-Control")]


def test_a_preflight_request_is_refused(up: server.Server) -> None:
    status, headers, _ = send(
        up, "OPTIONS", "/api/runs", Origin="https://evil.example", Access_Control_Request_Headers="x-ktrxer-token", Content_Length=None
    )
    assert status == 403 and not [name for name in headers if name.startswith("Access-Control")]


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/rrul.ktrxer", "//evil.example/", "/api/../runs", "/api/", "/api/__init__", "/%2e%2e/x", "/api/runs/"]
)
def test_no_path_is_a_file(up: server.Server, path: str) -> None:
    for method in ("GET", "POST"):
        status, _, body = send(up, method, path, {})
        assert status == 404 and b"root:" not in body, path


@pytest.mark.parametrize("name", ["../outside/secret.ktrxer", "/etc/passwd", "..", "", "link.ktrxer", "circle.ktrxer", "rrul.ktrxer/../rrul.ktrxer", "\0"])
def test_no_name_reaches_a_file_outside_the_directory(up: server.Server, name: str) -> None:
    for route in ("picture", "metadata", "keys"):
        status, _, body = send(up, "POST", f"/api/{route}", {"runs": [name], "plot": "ping"})
        text = json.loads(body)["error"]
        # Python 3.13 resolves a link to itself, and then opens it.
        assert status == 422 and ("no such run" in text or "outside the directory" in text or "symbolic links" in text), text


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b"\xff", b"[" * 100_000, b'"text"'])
def test_a_body_that_is_no_object_is_refused(up: server.Server, body: bytes) -> None:
    assert send(up, "POST", "/api/runs", body)[0] == 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("route", "asked"),
    [
        ("picture", {"runs": []}),
        ("picture", {"runs": "rrul.ktrxer"}),
        ("picture", {"runs": [1]}),
        ("picture", {"runs": [RRUL], "plot": "nonsense"}),
        ("picture", {"runs": [RRUL], "plot": 7}),
        ("picture", {"runs": [RRUL], "arrange": "sideways"}),
        ("picture", {"runs": [RRUL], "settings": {"part": ["../x"]}}),
        ("picture", {"runs": [RRUL], "shown": -1}),
        ("picture", {"runs": [RRUL], "shown": True}),
        ("picture", {"runs": [RRUL], "range": [2, 1]}),
        ("picture", {"runs": [RRUL], "range": "all"}),
        ("picture", {"runs": [f"{i}" for i in range(65)]}),
        ("picture", {"runs": FIFO, "plot": "ping_heat", "arrange": "all"}),
        ("save", {"runs": [RRUL], "plot": "ping", "kind": "exe"}),
        ("runs", {"where": "test="}),
        ("runs", {"columns": ["nonsense"]}),
        ("runs", {"columns": [str(i) for i in range(41)]}),
        ("groups", {"runs": FIFO, "by": "nonsense"}),
        ("compare", {"a": FIFO, "b": []}),
        ("compare", {"a": ["empty.ktrxer"], "b": FIFO}),
        ("metadata", {"runs": ["half.ktrxer"]}),
    ],
)
def test_a_wrong_request_has_one_line_for_the_user(up: server.Server, route: str, asked: dict[str, Any]) -> None:
    status, _, body = send(up, "POST", f"/api/{route}", asked)
    text = json.loads(body)["error"]
    assert status == 422 and text and "\n" not in text and "defect" not in text, text


def test_a_connection_that_sends_nothing_keeps_no_other_waiting(up: server.Server) -> None:
    with socket.create_connection(("127.0.0.1", up.server_port)) as idle:
        idle.sendall(b"POST /api/runs HTTP/1.1\r\n")
        assert send(up, "POST", "/api/about", {})[0] == 200


def test_pages_that_wait_share_one_look_at_the_directory_and_end_it_when_they_are_closed(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at 10,000 runs takes a tenth of a second of processor time."""
    looks = 0
    others = set(threading.enumerate())  # of the server of the other tests
    with serving(runs) as up, contextlib.ExitStack() as stack:
        library = up.answers.library
        look = library.version

        def counted() -> str:
            nonlocal looks
            looks += 1
            return look()

        monkeypatch.setattr(library, "version", counted)
        monkeypatch.setattr(server, "POLL_S", 0.1)
        monkeypatch.setattr(server, "WAIT_S", 600)
        body = json.dumps({"since": look()}).encode()
        head = f"POST /api/changes HTTP/1.1\r\nHost: 127.0.0.1:{up.server_port}\r\nX-Ktrxer-Token: {up.token}\r\n"
        request = f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        pages = [stack.enter_context(socket.create_connection(("127.0.0.1", up.server_port), 20)) for _ in range(20)]
        began = time.monotonic()
        for page in pages:
            page.sendall(request)
        until = began + 60
        while looks < 3:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert looks <= 3 + (time.monotonic() - began) / 0.09, "20 pages look no more often than one"
        for page in pages:
            page.close()
        until = time.monotonic() + 60
        while any(one.name.endswith("(process_request_thread)") for one in threading.enumerate() if one not in others):
            assert time.monotonic() < until, "the server waits for changes that no page will read"
            time.sleep(0.02)


# ----------------------------------------------------------------------------------------------------------------- command


def test_a_port_that_is_taken_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["view", str(runs), "--port", str(port)]) == 1
    text = capsys.readouterr().err
    assert f"127.0.0.1 port {port}: the explorer cannot listen there" in text and "another --port" in text


def test_a_run_is_not_a_directory(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(runs / RRUL)]) == 1
    assert "`ktrxer report`" in capsys.readouterr().err


def test_a_link_of_an_ended_explorer_opens_its_view_again() -> None:
    link = "http://127.0.0.1:1234/#token=old&run=a.ktrxer&plot=ping"
    assert command._without_token(link) == "run=a.ktrxer&plot=ping"
    assert command._without_token("plot=ping&token=old") == "plot=ping"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_its_address_and_ends_by_a_signal(runs: Path, number: signal.Signals) -> None:
    words = [sys.executable, "-m", "ktrxer", "view", str(runs), "--no-cache", "--view", "plot=ping", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        made = json.loads(process.stdout.readline())
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=[\w-]{32,}&plot=ping", made["address"])
        assert match
        link = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=20)
        link.request("GET", "/")
        assert b"Content-Security-Policy" in link.getresponse().read()
        process.send_signal(number)
        assert process.wait(20) == 0
