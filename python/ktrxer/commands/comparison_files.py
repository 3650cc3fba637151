# SPDX-License-Identifier: MIT OR Apache-2.0
"""A comparison as files for a continuous-integration job: a table in Markdown, test cases in JUnit's XML."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from ktrxer.analyse.compare import Check, Comparison, notable, sentences
from ktrxer.analyse.factorial import Factorial
from ktrxer.commands.comparison_text import EFFECT_HEAD, HEAD, cells, effect_cells
from ktrxer.store import one_line


def markdown(made: Sequence[Comparison], checks: Sequence[Sequence[Check]], effects: Factorial | None = None) -> str:
    parts = []
    for one, some in zip(made, checks, strict=True):
        parts.append(f"### {_plain(one.name_b)} against {_plain(one.name_a)} ({len(one.runs_b)} and {len(one.runs_a)} runs)\n")
        parts.append(f"A is {_plain(one.name_a)}, B is {_plain(one.name_b)}.\n")
        parts += [f"- {'held' if check.held else '**not shown**'}: {_plain(check.label)}: {_plain(check.text)}" for check in some]
        parts += [f"- {_plain(text)}" for text in sentences(one)]
        parts.append("")
        parts.append(_row([name or " " for name in HEAD]))
        parts.append(_row(["---", *["---:"] * (len(HEAD) - 2), "---"]))
        parts += [_row([_plain(cell) for cell in cells(row)]) for row in one.rows if notable(row)]
        parts += ["", *(f"Note: {_plain(note)}." for note in one.notes), ""]
    if effects is not None:
        parts += ["### Effects of the factors\n", _row([name or " " for name in EFFECT_HEAD]), _row(["---"] * len(EFFECT_HEAD))]
        parts += [_row([_plain(cell) for cell in effect_cells(one)]) for one in effects.effects]
        parts += ["", *(f"Note: {_plain(note)}." for note in effects.notes), ""]
    return "\n".join(parts)


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _plain(text: str) -> str:
    """Names come from files: none of their characters is markup."""
    clean = one_line(text, 300)
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~!$&" else c for c in clean)


def junit(made: Sequence[Comparison], checks: Sequence[Sequence[Check]]) -> str:
    cases = []
    failures = 0
    for one, some in zip(made, checks, strict=True):
        for check in some:
            name, group = quoteattr(_xml(check.label)), quoteattr(_xml(f"{one.name_b} against {one.name_a}"))
            cases.append(f"  <testcase classname={group} name={name}>")
            if not check.held:
                failures += 1
                cases.append(f"    <failure message={quoteattr(_xml(check.text))}/>")
            else:
                cases.append(f"    <system-out>{escape(_xml(check.text))}</system-out>")
            cases.append("  </testcase>")
    head = f'<testsuite name="ktrxer compare" tests="{sum(map(len, checks))}" failures="{failures}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>", ""])


def _xml(text: str) -> str:
    """Removes the characters that XML 1.0 cannot hold."""
    clean = one_line(text, 300)
    return "".join(c for c in clean if c == "\t" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000")
