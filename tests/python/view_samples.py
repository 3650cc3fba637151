# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs and reports for the tests of the viewer: a valid one, and faulty ones.

    python tests/python/view_samples.py DIRECTORY
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import numpy as np
from ktrxer.store import Host, Meta, Phase, Runner, RunWriter, Series, Zero
from ktrxer.view import report_command
from synthetic import synthetic

S = 10**9

# Names in a hostile file. Each would have an effect if the viewer read it as markup, as code, or as one of its placeholders.
HOSTILE = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=2</script>",
    '"><img src=x onerror="window.pwned=3">',
    "<!--<script>",
    "%DATA%%STATIC%%TITLE%",
    "javascript:window.pwned=4",
    "__proto__",
    "$\\frac{1}{0}$ $$ \\evil{",
    "=1+cmd|'/c calc'!A1",
    "\u202egnp.exe \u2028 \u2029 \x85",
    "a" * 3000,
)
BACKWARDS = {"title": "</title><svg onload=window.pwned=5>", "host": "<iframe srcdoc='<script>parent.pwned=6</script>'>"}


def hostile(directory: Path) -> Path:
    names = [*HOSTILE, ""]
    series = [Series(i, name or "empty", "value", "Mbit/s" if i % 2 else "<b>ms</b>", group=HOSTILE[i % 3]) for i, name in enumerate(names)]
    series.append(Series(len(series), "Ping (ms) " + HOSTILE[0], "latency", "ms", 0, klass="__proto__", group="Ping (ms)"))
    meta = Meta(
        id=HOSTILE[2],
        test=HOSTILE[1],
        title=BACKWARDS["title"] + HOSTILE[0],
        version=HOSTILE[0],
        created=HOSTILE[1],
        host=Host(BACKWARDS["host"], kernel=HOSTILE[0]),
        targets=[HOSTILE[0], "../../etc/passwd"],
        zero=Zero(0, 0),
        length_ns=10 * S,
        phases=[Phase("load", 0, 10 * S)],
        settings={name: name for name in HOSTILE} | {"huge": 2**63 - 1, "deep": {"er": [[[["<script>"]]]]}},
        command=["ktrxer", "run", "$(touch /tmp/pwned)", "`id`", "'; rm -rf ~ #", HOSTILE[1]],
        runners=[Runner(0, HOSTILE[0], "ping", [HOSTILE[1], "-x"], HOSTILE[2], "failed", -11, 0, S, stderr_tail="\x1b[31m" + HOSTILE[1])],
        series=series,
        verdict="invalid",
        reasons=list(HOSTILE),
        metadata={"before": {"__proto__": {"polluted": True}, "constructor": HOSTILE[1]}},
        plots=["constructor", "__proto__"],
    )
    writer = RunWriter(directory, meta, "hostile")
    numbers = [1e308, -1e308, 5e-324, float("nan"), 0.0, 1e-300, float("inf"), -0.0, 3.0, 1e20]
    for one in series:
        if one.kind == "value":
            values = [None if v != v else v for v in np.roll(numbers, one.id).tolist()]
            writer.append("value", {"series": [one.id] * 10, "t_ns": [i * S for i in range(10)], "value": values})
    big = 2**62
    writer.append(
        "latency",
        {
            "series": [series[-1].id] * 4, "t_ns": [0, S, S, 9 * S], "seq": [0, 1, 1, -5], "state": [0, 1, 6, 0],
            "rtt_ns": [big, None, 1, -big], "lateness_ns": [-big, big, None, 0],
        },
    )  # fmt: skip
    writer.event(-5 * S, HOSTILE[0], HOSTILE[1], 0)
    return writer.finish()


def damaged(directory: Path, good: Path) -> Path:
    """A valid zip file with one table that is not a table."""
    path = directory / "damaged.ktrxer"
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "latency.parquet":
                data = data[: len(data) // 2] + bytes(len(data) - len(data) // 2)
            target.writestr(name, data)
    return path


def empty(directory: Path) -> Path:
    """A run in which nothing was received."""
    series = [Series(0, "TCP upload", "bytes", "Mbit/s", 0, 0, "up", group="TCP upload"), Series(1, "Ping (ms) ICMP", "latency", "ms", 0)]
    meta = Meta(
        id="e", test="tcp_upload", title="nothing came", created="2026-11-21T15:30:00Z", host=Host("near"), zero=Zero(0, 0), length_ns=S,
        runners=[Runner(0, "flow", "flow", ["ktrxer", "flow"], "far", "failed", 1, stderr_tail="ktrxer flow: far: connection refused\n")],
        series=series, verdict="invalid", reasons=["no runner of the kind flow was left"],
    )  # fmt: skip
    writer = RunWriter(directory, meta, "empty")
    return writer.finish()


def broken(page: Path, target: Path, old: str, new: str) -> None:
    text = page.read_text("utf-8")
    assert old in text
    target.write_text(text.replace(old, new, 1), "utf-8")


def make(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)

    def report(name: str, *runs: Path | str) -> Path:
        path = directory / f"{name}.html"
        status = report_command.main(["-o", str(path), *map(str, runs)])
        assert status == 0, name
        return path

    rrul = synthetic(directory, name="rrul", title="Home router, pfifo")
    page = report("rrul", rrul)
    other = synthetic(directory, name="codel", title="Home router, fq_codel", depth_ms=6, seed=9)
    report("two", rrul, other)
    report("compared", rrul, "--", other)
    report("hostile", hostile(directory))
    report("damaged", damaged(directory, rrul))
    report("empty", empty(directory))
    # Pages that were changed after they were made.
    text = page.read_text("utf-8")
    (directory / "cut.html").write_text(text[: text.index('"arrays":') + 5000] + "</script>" + text[text.rindex('<script type="module"') :], "utf-8")
    data = json.loads(text[(at := text.index("{", text.index('id="report"'))) : text.index("</script>", at)])
    first = data["arrays"][0]["data"]
    broken(page, directory / "column.html", first, first[:-8])
    broken(page, directory / "injected.html", '<div id="root">', "<script>window.pwned=7</script><div id=\"root\" onclick='window.pwned=8'>")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
