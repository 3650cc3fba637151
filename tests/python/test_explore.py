# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer view`: its server over HTTP, from wrong requests to pictures. The tests of its page in a browser are in web/browser/."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import panel_runs
import pytest
import view_samples
from ktrxer.cli import main
from ktrxer.explore import command, server
from ktrxer.explore.answers import MOST_SERIES_SAMPLES, Answers, Refused
from ktrxer.explore.library import Library, Unknown
from ktrxer.panels import plots
from ktrxer.panels.errors import PlotError
from ktrxer.panels.model import Axis, Panel, Series
from ktrxer.panels.picture import Picture, apart, model
from ktrxer.store import RunWriter
from ktrxer.view import pack
from synthetic import synthetic

FIFO = [f"fifo-{i}.ktrxer" for i in range(3)]
FQ = [f"fq-{i}.ktrxer" for i in range(3)]
RRUL = "rrul.ktrxer"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("explore")
    whole = synthetic(directory, seconds=12, delay=3, name="rrul", title="A & B <i>")
    view_samples.hostile(directory)
    view_samples.empty(directory)
    view_samples.damaged(directory, whole)
    (directory / "half.ktrxer").write_bytes(whole.read_bytes()[:9000])
    for i in range(3):
        panel_runs.run(directory, f"fifo-{i}", up_ms=80 + i, seed=i + 1, seconds=12, title="fifo", settings={"qdisc": "pfifo"})
        panel_runs.run(directory, f"fq-{i}", up_ms=5 + i, seed=i + 20, seconds=12, title="fq", settings={"qdisc": "fq_codel"})
    secret = tmp_path_factory.mktemp("outside") / "secret.ktrxer"
    shutil.copy(whole, secret)
    (directory / "link.ktrxer").symlink_to(secret)
    (directory / "circle.ktrxer").symlink_to(directory / "circle.ktrxer")
    return directory


@pytest.fixture(scope="module")
def answers(runs: Path) -> Answers:
    return Answers(Library(runs, None))


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[server.Server]:
    made = server.Server(0, Answers(Library(directory, None)), b"<!doctype html><title>page</title>")
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


@pytest.fixture(scope="module")
def up(runs: Path) -> Iterator[server.Server]:
    with serving(runs) as made:
        yield made


def send(up: server.Server, method: str, path: str, body: Any = None, **headers: str | None) -> tuple[int, dict[str, str], bytes]:
    """A request as the page sends it; `headers` replace or remove (None) its own, with `_` for `-`."""
    usual: dict[str, str | None] = {
        "Host": f"127.0.0.1:{up.server_port}", "X-Ktrxer-Token": up.token, "Content-Type": "application/json",
        "Origin": f"http://127.0.0.1:{up.server_port}", "Sec-Fetch-Site": "same-origin",
    }  # fmt: skip
    usual |= {name.replace("_", "-"): value for name, value in headers.items()}
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    link = http.client.HTTPConnection("127.0.0.1", up.server_port, timeout=20)
    try:
        link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in ({"Content-Length": str(len(data))} | usual).items():
            if value is not None:
                link.putheader(name, value)
        link.endheaders(data)
        answer = link.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        link.close()


def opened(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(data[:4], "little")
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def columns(data: bytes, panel: int, series: int) -> tuple[np.ndarray, np.ndarray]:
    """x and y of a series, as web/src/arrays.ts reads them."""
    head, rest = opened(data)
    one = head["panels"][panel]["series"][series]
    made = []
    for key in ("x", "y"):
        column = head["arrays"][one[key]]
        raw = np.frombuffer(rest, {"f32": "<f4", "f64": "<f8", "i32": "<i4"}[column["type"]], column["count"], column["at"])
        made.append(column["base"] + column["scale"] * raw.astype(float))
    return made[0], made[1]


# ---------------------------------------------------------------------------------------------------------------- security


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
    """DNS rebinding has another Host, a form has no JSON, a fetch has an Origin; none of them has the token."""
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
        assert status == 422 and ("no such run" in text or "outside the directory" in text), text


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b"\xff", b"[" * 100_000, b'"text"'])
def test_a_body_that_is_no_object_is_refused(up: server.Server, body: bytes) -> None:
    assert send(up, "POST", "/api/runs", body)[0] == 400


@pytest.mark.parametrize(
    ("route", "asked"),
    [
        ("picture", {"runs": []}),
        ("picture", {"runs": "rrul.ktrxer"}),
        ("picture", {"runs": [1]}),
        ("picture", {"runs": [RRUL], "plot": "nonsense"}),
        ("picture", {"runs": [RRUL], "plot": 7}),
        ("picture", {"runs": [RRUL], "arrange": "sideways"}),
        ("picture", {"runs": [RRUL], "part": "../x"}),
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


# ------------------------------------------------------------------------------------------------------------------- table


def test_the_table_has_each_run_and_any_property_as_a_column(answers: Answers) -> None:
    found = answers.runs({"columns": ["settings/qdisc", "added"]})
    assert found["columns"][-2:] == ["settings/qdisc", "added"]
    rows = {row[0]: dict(zip(["name", "state", *found["columns"]], row, strict=True)) for row in found["rows"]}
    assert rows[RRUL]["title"] == "A & B <i>" and rows[RRUL]["verdict"] == "valid"
    assert rows[FIFO[0]]["settings/qdisc"] == "pfifo" and rows[FIFO[0]]["added"] == pytest.approx(80, abs=5)
    assert rows["half.ktrxer"]["state"] == "damaged" and "half.ktrxer: " in str(rows["half.ktrxer"]["file"])
    assert "outside the directory" in str(rows["link.ktrxer"]["file"])
    assert rows["hostile.ktrxer"]["title"].startswith("</title><svg")
    assert [row[0] for row in answers.runs({"where": "settings/qdisc=fq_codel"})["rows"]] == FQ[::-1]


def test_a_directory_without_runs_has_an_empty_table(tmp_path: Path) -> None:
    made = Answers(Library(tmp_path, None))
    assert made.runs({})["rows"] == []
    tmp_path.rmdir()
    with pytest.raises((Refused, Unknown), match="No such file"):
        made.runs({})


def test_keys_offer_figures_and_paths_that_are_columns(answers: Answers) -> None:
    keys = answers.keys({"runs": [FIFO[0]]})["keys"]
    assert "udp.rtt.load.p95" in keys and "settings/qdisc" in keys
    assert len(answers.runs({"columns": keys[:40]})["rows"]) == 13


def test_ten_thousand_runs_are_one_table_in_time(tmp_path: Path) -> None:
    """The copies share one cache entry each; the second table reads no file."""
    one = panel_runs.run(tmp_path, "run-0", seconds=9)
    for i in range(1, 2000):
        os.link(one.path, tmp_path / f"run-{i}.ktrxer")
    made = Answers(Library(tmp_path, tmp_path / "cache" / "runs.sqlite"))
    made.runs({})
    begin = time.process_time()
    rows = made.runs({})["rows"]
    took = time.process_time() - begin
    print(f"figure: table of 2,000 runs from the cache: {took * 1e3:.0f} ms of CPU time")
    assert len(rows) == 2000 and took < 5


# ----------------------------------------------------------------------------------------------------------------- changes


def test_a_run_appears_grows_and_ends(tmp_path: Path) -> None:
    """The answer to `changes` comes as soon as the directory changes."""
    with serving(tmp_path) as up:
        before = json.loads(send(up, "POST", "/api/runs", {})[2])["version"]
        seen: list[str] = []
        waiting = threading.Thread(
            target=lambda: seen.append(json.loads(send(up, "POST", "/api/changes", {"since": before})[2])["version"])
        )
        waiting.start()
        whole = panel_runs.run(tmp_path / "..", "template", seconds=9)
        meta = whole.meta
        writer = RunWriter(tmp_path, meta, "live")
        waiting.join()
        assert seen[0] != before
        rows = json.loads(send(up, "POST", "/api/runs", {})[2])["rows"]
        assert [row[:2] for row in rows] == [["live.ktrxer.part", "running"]]
        part = whole.table("latency").slice(0, 200)
        writer.append("latency", {name: part.column(name).to_pylist() for name in part.column_names})
        writer.sync()
        names, _ = opened(send(up, "POST", "/api/picture", {"runs": ["live.ktrxer.part"], "plot": "ping"})[2])
        assert len(names["panels"]) == 1 and "still being recorded" in names["problems"][0]
        writer.finish()
        rows = json.loads(send(up, "POST", "/api/runs", {})[2])["rows"]
        assert [row[:2] for row in rows] == [["live.ktrxer", "finished"]]
        # The page may still ask for the name that the run had.
        status, _, body = send(up, "POST", "/api/picture", {"runs": ["live.ktrxer.part"], "plot": "ping"})
        assert status == 200 and opened(body)[0]["problems"] == []


# ----------------------------------------------------------------------------------------------------------------- picture


def test_a_spike_is_in_the_answer_at_any_zoom() -> None:
    """The server sends the minimum and the maximum of each part, and of its bounds: one sample of a million is not lost."""
    count = 1_000_000
    rng = np.random.default_rng(1)
    y = rng.normal(10, 0.1, count)
    y[654_321], y[100_001] = 500.0, -3.0
    high = y + 1
    high[222_222] = 900.0
    t = np.arange(count) / 1e3
    panel = Panel("p", "p", Axis("t", "s"), Axis("y", "ms"), (Series("s", "s", "line", t, y, low=y - 1, high=high),))
    for window in (None, (600.0, 700.0), (654.0, 655.0)):
        pool = pack.Pool()
        begin = time.process_time()
        head, rest = opened(pool.answer({"panels": [pack.panel(panel, pool, MOST_SERIES_SAMPLES, window)]}))
        took = time.process_time() - begin
        x, values = columns(pool.answer(head), 0, 0)
        one = head["panels"][0]["series"][0]
        top = head["arrays"][one["high"]]
        highs = np.frombuffer(rest, "<f4", top["count"], top["at"])
        assert len(values) <= 1.1 * MOST_SERIES_SAMPLES and values.max() == 500.0
        at = x[values.argmax()]
        assert at == pytest.approx(654.321, abs=1e-5)
        if window is None:
            assert values.min() == -3.0 and highs.max() == 900.0
            print(f"figure: a million samples reduced to {len(values):,} in {took * 1e3:.0f} ms of CPU time, {len(rest):,} bytes")
        else:
            assert x.min() <= window[0] + 0.011 and x.max() >= window[1] - 0.011 and x.max() - x.min() < 1.01 * (window[1] - window[0]) + 0.1
    inside, _ = columns(pool.answer({"panels": [pack.panel(panel, pool, MOST_SERIES_SAMPLES, (654.0, 655.0))]}), 0, 0)
    assert len(inside) == pytest.approx(1000, abs=5)  # all samples of a second


def test_the_picture_is_that_of_the_plot_and_of_its_command(answers: Answers, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"runs": [*FIFO, *FQ], "plot": "ping_cdf", "arrange": "by-name", "part": "load"}
    head, _ = opened(answers.picture(asked))
    labels = [one["label"] for one in head["panels"][0]["series"]]
    assert labels == [f"{group} (n=3): {one}" for group in ("fifo", "fq") for one in ("UDP BE", "UDP EF", "mean")]
    words = head["command"].split()
    assert words[:2] == ["ktrxer", "plot"]
    assert main([*words[1:-1], str(tmp_path / "x.svg"), "--json"]) == 0
    outline = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in outline["panels"][0]["series"]] == [one["label"] for one in head["panels"][0]["series"]]


def test_one_run_after_the_other_has_the_axes_of_all(answers: Answers, runs: Path) -> None:
    asked = {"runs": [FIFO[0], FQ[0]], "plot": "ping"}
    heads = [opened(answers.picture(asked | {"shown": shown}))[0] for shown in (0, 1)]
    tops = {(head["panels"][0]["y"]["unit"], head["panels"][0]["y"]["most"]) for head in heads}
    assert len(tops) == 1 and next(iter(tops))[1] > 80
    assert [head["title"] for head in heads] == ["fifo", "fq"]
    assert FQ[0] in heads[1]["command"] and FIFO[0] not in heads[1]["command"]
    cdf = [opened(answers.picture(asked | {"plot": "ping_cdf", "shown": shown}))[0]["panels"][0] for shown in (0, 1)]
    assert cdf[0]["x"]["unit"] == cdf[1]["x"]["unit"]


def test_runs_beside_each_other_have_one_scale(runs: Path, answers: Answers) -> None:
    both = [answers.library.run(name).run for name in (FIFO[0], FQ[0])]
    made = model(both, Picture("ping", "beside"))
    assert made.columns == 2 and [panel.title for panel in made.panels] == ["fifo", "fq"]
    assert made.panels[0].y.most == made.panels[1].y.most and made.panels[0].link == made.panels[1].link
    cdf = model(both, Picture("ping_cdf", "beside")).panels
    assert cdf[0].link == cdf[1].link == cdf[0].key.split(": ")[1]  # a common x axis
    empty = answers.library.run("empty.ktrxer").run
    assert [len(one.panels) for one in apart([both[0], empty], Picture("ping"))] == [1, 0]
    with pytest.raises(PlotError, match="no samples"):
        model([empty, empty], Picture("ping", "beside"))


def test_runs_with_scaled_axes_stay_scaled(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "OUTLIERS", 50)
    both = [answers.library.run(name).run for name in (RRUL, FQ[0])]
    most = [one.panels[0].y.most for one in apart(both, Picture("ping_scaled"))]
    alone = plots.model(both[:1], "ping_scaled").panels[0].y.most
    assert alone is not None and most == [alone, alone]


def test_damaged_runs_are_named_and_the_others_drawn(answers: Answers) -> None:
    names = ["hostile.ktrxer", "empty.ktrxer", "damaged.ktrxer", "half.ktrxer", "gone.ktrxer", RRUL]
    head, _ = opened(answers.picture({"runs": names, "plot": "ping"}))
    assert len(head["panels"]) == 1
    problems = "\n".join(head["problems"])
    for part in ("half.ktrxer", "gone.ktrxer: no such run", "latency samples cannot be read"):
        assert part in problems
    assert dict(head["names"]).keys() == {"hostile.ktrxer", "empty.ktrxer", "damaged.ktrxer", RRUL}


@pytest.mark.parametrize("log", ["", "x", "y"])
@pytest.mark.parametrize("arrange", ["overlay", "beside", "by-name", "all"])
def test_each_plot_of_hostile_runs_has_an_answer_or_a_reason(answers: Answers, arrange: str, log: str) -> None:
    """Huge values, NaN, one point, all lost: JSON without NaN, or one line."""
    for plot in ("all", "ping", "ping_cdf", "ping_ccdf", "ping_violin", "ping_heat", "box_ping", "ping_histogram", "ping_band", "bar_combine"):
        for names in (["hostile.ktrxer"], ["hostile.ktrxer", "empty.ktrxer", FIFO[0]]):
            asked = {"runs": names, "plot": plot, "arrange": arrange, "log": log}
            try:
                head, _ = opened(answers.picture(asked))
            except Refused as error:
                assert "\n" not in str(error)
            else:
                assert head["panels"]
                assert answers.save(asked | {"kind": "csv"})[0].startswith(b"panel,")
                json.loads(answers.save(asked | {"kind": "json"})[0])


def test_csv_has_each_sample_and_no_formula(answers: Answers) -> None:
    data, kind, name = answers.save({"runs": [RRUL], "plot": "ping", "kind": "csv"})
    lines = data.decode().splitlines()
    assert kind == "text/csv" and name == "ping.csv" and lines[0] == "panel,series,x,x unit,y,y unit"
    assert len(lines) == 1 + 4 * 1200  # four kinds of probes, 12 s, 100 a second; a lost one has no y
    data, _, _ = answers.save({"runs": ["hostile.ktrxer"], "plot": "all", "kind": "csv"})
    assert not re.search(rb"(^|,)=", data, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_a_figure_is_saved(up: server.Server, kind: str) -> None:
    status, headers, body = send(up, "POST", "/api/save", {"runs": [RRUL], "plot": "ping", "kind": kind})
    assert status == 200 and headers["Content-Disposition"] == f'attachment; filename="ping.{kind}"'
    assert body.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[kind])


def test_sixty_series_are_an_answer_in_time(tmp_path: Path) -> None:
    run = panel_runs.run(tmp_path, "many", seconds=20, classes=tuple(f"C{i}" for i in range(60)))
    made = Answers(Library(tmp_path, None))
    begin = time.process_time()
    head, rest = opened(made.picture({"runs": [run.path.name], "plot": "ping"}))
    took = time.process_time() - begin
    print(f"figure: picture of 60 series: {took * 1e3:.0f} ms of CPU time, {len(rest):,} bytes")
    assert sum(len(panel["series"]) for panel in head["panels"]) == 60 and took < 5


# -------------------------------------------------------------------------------------------------- comparison and metadata


def test_two_groups_are_compared_as_by_the_command(answers: Answers, capsys: pytest.CaptureFixture[str]) -> None:
    groups = answers.groups({"runs": [*FIFO, *FQ], "by": "settings/qdisc"})["groups"]
    assert groups == [["pfifo", FIFO], ["fq_codel", FQ]]
    head, _ = opened(answers.compare({"a": FIFO, "b": FQ, "a_name": "pfifo", "b_name": "fq_codel"}))
    assert "lower than pfifo" in head["comparison"]["sentences"][0] and head["panels"][0]["title"] == "fq_codel against pfifo"
    words = head["command"].split()
    assert words[:2] == ["ktrxer", "compare"]
    assert main([*words[1 : words.index("--")], "--json", *words[words.index("--") :]]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert head["comparison"]["sentences"][0] in json.dumps(printed)


def test_the_metadata_that_differ_are_listed(answers: Answers) -> None:
    found = answers.metadata({"runs": [FIFO[0], FQ[0], "half.ktrxer"]})
    rows = {row[0]: row[1:] for row in found["differences"]}
    assert rows["settings/qdisc"] == ["pfifo", "fq_codel"] and len(found["problems"]) == 1
    assert answers.runs({"columns": ["settings/qdisc"]})  # each key is a column, too
    hostile = answers.metadata({"runs": ["hostile.ktrxer", RRUL]})
    json.dumps(hostile, allow_nan=False)


# ----------------------------------------------------------------------------------------------------------------- command


def test_a_port_that_is_taken_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["view", str(runs), "--port", str(port)]) == 1
    text = capsys.readouterr().err
    assert f"127.0.0.1 port {port}: cannot be listened on" in text and "another --port" in text


@pytest.mark.parametrize(("words", "text"), [(["nowhere"], "no such directory"), (["-p", "70000"], "from 0 to 65535")])
def test_wrong_use_has_status_2(tmp_path: Path, words: list[str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["view", *words]) == 2
    assert text in capsys.readouterr().err


def test_a_run_is_not_a_directory(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(runs / RRUL)]) == 2
    assert "`ktrxer report`" in capsys.readouterr().err


def test_a_link_of_an_ended_explorer_opens_its_view_again() -> None:
    link = "http://127.0.0.1:1234/#token=old&run=a.ktrxer&plot=ping"
    assert command._without_token(link) == "run=a.ktrxer&plot=ping"
    assert command._without_token("plot=ping&token=old") == "plot=ping"


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
