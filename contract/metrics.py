# SPDX-License-Identifier: MIT OR Apache-2.0
"""The metrics of `ktrxer serve --metrics`, from the tables of metrics, that of the server and those of its services: a C header with
a function that writes each one, the table of the reference page and the section of the manual page."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tables import TableError

COMMANDS = Path(__file__).resolve().parents[1] / "cli" / "commands"
TITLE = "Metrics of serve"
HEAD = """/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Made by contract/generate.py from the tables of metrics. A metric that the table does not have does not compile. */
#ifndef KTRXER_METRIC_TABLE_H
#define KTRXER_METRIC_TABLE_H

#include "serve_metrics.h"
"""
SECONDS = "_seconds"  # the end of a name; C code gives nanoseconds


@dataclass(frozen=True)
class Metric:
    key: str
    type: str
    text: str
    by: str = ""

    @property
    def name(self) -> str:
        return f"ktrxer_{self.key}"

    @property
    def sample(self) -> str:
        return f"{self.name}{'_total' if self.type == 'counter' else ''}{f'{{{self.by}}}' if self.by else ''}"


def files() -> list[Path]:
    """That of the server itself, and those of its services, in the order of printing."""
    return sorted(COMMANDS.glob("*/metrics.toml"), key=lambda path: (path.parent.name != "serve", path))


def load() -> list[Metric]:
    return [one for path in files() for one in _read(path)]


def _read(file: Path) -> list[Metric]:
    made = []
    for key, given in tomllib.loads(file.read_text()).items():
        wrong = given.keys() - {"is", "text", "by"} or not re.fullmatch(r"[a-z][a-z0-9_]*", key) or key.endswith("_total")
        if wrong or given.get("is") not in ("gauge", "counter") or given.get("by", "reason") not in ("reason", "direction"):
            raise TableError(f"{file}: {key}: `is` is gauge or counter, `by` is reason or direction, `text` is a sentence")
        if not re.fullmatch(r"[A-Z][^\"\\]*\.", given.get("text", "")):
            raise TableError(f"{file}: {key}: the text is a sentence")
        made.append(Metric(key, given["is"], given["text"], given.get("by", "")))
    return made


def _writer(one: Metric) -> str:
    kind = f"METRICS_{one.type.upper()}"

    def value(label: str, number: str) -> str:
        return f"metrics_value(t, \"{one.name}\", {kind}, {label}, {number});"

    parameters, lines = ", uint64_t value", [value("NULL, NULL", "value")]
    if one.by == "direction":
        parameters, lines = ", uint64_t up, uint64_t down", [value(f'"direction", "{way}"', way) for way in ("up", "down")]
    elif one.by == "reason":
        parameters = ", const char *const *reasons, const uint64_t *counts, int count"
        lines = ["for (int i = 1; i < count; i++) /* 0: not refused */", "\t" + value('"reason", reasons[i]', "counts[i]")]
    elif one.key.endswith(SECONDS):
        parameters, lines = ", uint64_t ns", [f'metrics_seconds(t, "{one.name}", ns);']
    body = "\n\t".join([f'metrics_family(t, "{one.name}", {kind}, "{one.text}");', *lines])
    return f"static inline void metric_{one.key}(struct metrics_text *t{parameters})\n{{\n\t{body}\n}}\n"


def header() -> str:
    return "\n".join([HEAD, *map(_writer, load()), "#endif\n"])


def page() -> str:
    rows = [f"| `{one.sample}` | {one.type} | {one.text} |" for one in load()]
    about = "`ktrxer serve --metrics` prints them in the format of OpenMetrics 1.0."
    return "\n".join([f"## {TITLE}", "", about, "", "| sample | type | meaning |", "|---|---|---|", *rows, ""])
