# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page of a report: the built page (web/) with the title, text and data of runs inserted. No text of a run becomes markup.

The page's Content-Security-Policy allows only the one script and the one style sheet in it, by their digests. The page fetches nothing.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

TITLE, STATIC, DATA = "%TITLE%", "%STATIC%", "%DATA%"
SAFE_INTEGER = 2**53 - 1  # the largest integer that is exact in JavaScript


class PageError(Exception):
    """The built page is missing or incomplete. The text is one line."""


def explorer() -> bytes:
    """The page of the explorer, which has no data in it."""
    return _built("explorer.html").encode("utf-8")


def site(data: dict[str, Any], columns: Sequence[tuple[str, str]]) -> str:
    """The page of the explorer with its data. `columns`: names of elements, and base64 in them. The page then connects to nothing."""
    text = _built("explorer.html")
    connect, script = "; connect-src 'self'", '<script type="module">'
    if any(text.count(mark) != 1 for mark in (connect, script)):
        raise PageError("explorer.html: not the page of an explorer; `make web` builds it")
    head, rest = text.replace(connect, "").split(script)
    parts = [head, '<script type="application/json" id="site">', json_for_html(data), "</script>\n"]
    for name, inside in columns:
        parts += [f'<script type="application/octet-stream" id="{html.escape(name)}">', inside, "</script>\n"]
    return "".join([*parts, script, rest])


def _built(name: str) -> str:
    file = resources.files("ktrxer.view") / "bundle" / name
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise PageError(f"{file}: {error.strerror}; `make web` builds it, and an installed ktrxer has it") from None


def template() -> str:
    file = "report.html"
    text = _built(file)
    if any(text.count(mark) != 1 for mark in (TITLE, STATIC, DATA)):
        raise PageError(f"{file}: not the page of a report; `make web` builds it")
    return text


def json_for_html(value: Any) -> str:
    """JSON that cannot end or open an HTML element. NaN raises an error, because JSON has no NaN."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def plain(value: Any, depth: int = 64) -> Any:
    """JSON of any shape, as JavaScript can represent it: without NaN, without integers that would lose digits, with bounded depth."""
    if depth == 0:
        return "… (nested too deeply to show)"
    if isinstance(value, dict):
        return {str(name): plain(item, depth - 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth - 1) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return str(value)


def fill(title: str, data: dict[str, Any]) -> str:
    """The complete page. Each placeholder is searched only in the built page, so equal text in the data is not replaced."""
    head, rest = template().split(TITLE)
    middle, rest = rest.split(STATIC)
    before, after = rest.split(DATA)
    return "".join((head, html.escape(title), middle, static(data), before, json_for_html(data), after))


def static(data: dict[str, Any]) -> str:
    """The part of the page that needs no JavaScript: text and figures, without plots."""
    parts = ["<main>"]
    if data["overview"] is not None:
        parts += [_element("h1", data["title"]), _list(data["overview"]["sentences"])]
    for run in data["runs"]:
        parts.append(_element("h1", run["title"]))
        parts.append(_element("p", run["subtitle"]))
        parts.append(_element("p", run["headline"]["text"]))
        parts.append(_list(run["headline"]["details"]))
        parts.append(_element("p", f"Verdict: {run['verdict']}."))
        parts.append(_list([*run["damage"], *(one["text"] for one in run["reasons"])]))
        parts.append(_list([f"{f['label']}: {f['value']} {f['unit']} {f['note']}".strip() for f in run["figures"]]))
        for table in run["tables"]:
            rows = "".join("<tr>" + "".join(_element("td", cell) for cell in row) + "</tr>" for row in table["rows"])
            head = "<tr>" + "".join(_element("th", name) for name in table["columns"]) + "</tr>"
            parts.append(f"<table>{_element('caption', table['title'])}{head}{rows}</table>")
        parts += [f"<pre>{html.escape(line)}</pre>" for line in run["repeat"]]
    parts.append("<noscript><p>The plots need JavaScript. The script is in this file; the page fetches nothing.</p></noscript></main>")
    return "".join(parts)


def _element(name: str, text: str) -> str:
    return f"<{name}>{html.escape(text)}</{name}>"


def _list(items: Sequence[str]) -> str:
    return "<ul>" + "".join(_element("li", item) for item in items) + "</ul>" if items else ""
