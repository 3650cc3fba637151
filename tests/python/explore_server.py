# SPDX-License-Identifier: MIT OR Apache-2.0
"""A directory of good, damaged and hostile runs, and its explorer, for the tests of `ktrxer view`."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import panel_runs
import view_samples
from ktrxer.explore import server
from ktrxer.explore.answers import Answers
from ktrxer.explore.library import Library
from synthetic import synthetic

FIFO = [f"fifo-{i}.ktrxer" for i in range(3)]
FQ = [f"fq-{i}.ktrxer" for i in range(3)]
RRUL = "rrul.ktrxer"


def make_runs(directory: Path, outside: Path) -> Path:
    whole = synthetic(directory, seconds=12, delay=3, name="rrul", title="A & B <i>")
    view_samples.hostile(directory)
    view_samples.empty(directory)
    view_samples.damaged(directory, whole)
    (directory / "half.ktrxer").write_bytes(whole.read_bytes()[:9000])
    for i in range(3):
        panel_runs.run(directory, f"fifo-{i}", up_ms=80 + i, seed=i + 1, seconds=12, title="fifo", settings={"qdisc": "pfifo"})
        panel_runs.run(directory, f"fq-{i}", up_ms=5 + i, seed=i + 20, seconds=12, title="fq", settings={"qdisc": "fq_codel"})
    secret = outside / "secret.ktrxer"
    shutil.copy(whole, secret)
    (directory / "link.ktrxer").symlink_to(secret)
    (directory / "circle.ktrxer").symlink_to(directory / "circle.ktrxer")
    return directory


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


SIZES = {"f32": 4, "f64": 8, "i32": 4, "i24": 3}  # of a number in a column


def numbers(kind: str, data: bytes, count: int) -> np.ndarray:
    """The raw numbers of a column (view/pack.py), NaN where one is missing."""
    if kind == "i24":
        raw = np.frombuffer(data, np.uint8, 3 * count).reshape(-1, 3).astype(np.int64) @ np.array([1, 1 << 8, 1 << 16])
        raw = np.where(raw >= 1 << 23, raw - (1 << 24), raw)
        return np.where(raw == -(1 << 23), np.nan, raw.astype(float))
    raw = np.frombuffer(data, {"f32": "<f4", "f64": "<f8", "i32": "<i4"}[kind], count)
    return np.where(raw == -(2**31), np.nan, raw.astype(float)) if kind == "i32" else raw.astype(float)


def columns(data: bytes, panel: int, series: int) -> tuple[np.ndarray, np.ndarray]:
    """x and y of a series, as web/src/arrays.ts reads them."""
    head, rest = opened(data)
    one = head["panels"][panel]["series"][series]
    made = []
    for key in ("x", "y"):
        column = head["arrays"][one[key]]
        made.append(column["base"] + column["scale"] * numbers(column["type"], rest[column["at"] :], column["count"]))
    return made[0], made[1]
