# SPDX-License-Identifier: MIT OR Apache-2.0
"""A reason is data (contract/reasons.toml): the table, its use, and what files and commands of other versions have in its place."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ktrxer.runners.own import health
from ktrxer.runners.runner import Ended
from ktrxer.store.meta import Runner
from ktrxer.store.reason_table import FORMS, WORDS
from ktrxer.store.reasons import Reason, read, read_all, reason, together
from ktrxer.summary import figures
from ktrxer.summary.text import lines
from panel_runs import run as made_run

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("python/ktrxer", "lab/ktrxer_lab") for path in (ROOT / folder).rglob("*.py"))
PLACES = re.compile(r"\{(\w+)\}")


def test_the_generated_files_are_those_of_the_table():
    done = subprocess.run([sys.executable, "contract/reasons.py", "check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def calls(name: str):
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if called is not None and name in (getattr(called, "id", ""), getattr(called, "attr", "")) and node.args:
                yield path, node


def test_each_reason_is_made_with_the_values_of_its_sentence():
    seen = set()
    for path, node in calls("reason"):
        if not isinstance(node.args[0], ast.Constant):
            continue
        identifier = node.args[0].value
        given = {word.arg for word in node.keywords} - {"name"}
        assert given == set(PLACES.findall(FORMS[identifier].text)), f"{path}:{node.lineno}: {identifier}"
        assert (len(node.args) == 1) == bool(FORMS[identifier].severity), f"{path}:{node.lineno}: {identifier}: its severity"
        seen.add(identifier)
    assert len(seen) > 40
    used = "\n".join(path.read_text() for folder in ("cli", "bench", "tests/unit", "methods") for path in (ROOT / folder).rglob("*.c"))
    unused = [one for one in FORMS if f"reason_{one}" not in used and f"REASON_{one.upper()}" not in used and one not in seen]
    assert unused == ["host_busy", "far_busy", "host_stolen", "far_stolen"], "those of the judge, by a name that is put together"


# Code that looks into sentences: the page leaves out those that its headline has, whole.
COMPARES = {"view/report.py"}
TEXTS = re.compile(r"\breasons?\b|\bsentences?\b|\.text\b")


def searches(source: str) -> list[int]:
    """Lines that compare a part of the text of a reason."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(isinstance(one, ast.In | ast.NotIn) for one in node.ops):
            if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str) and " " in node.left.value:
                found += [node.lineno for one in node.comparators if TEXTS.search(ast.unparse(one))]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("search", "match", "fullmatch", "findall", "sub"):
                found += [node.lineno for one in node.args[1:] if TEXTS.search(ast.unparse(one))]
            elif node.func.attr in ("startswith", "endswith") and TEXTS.search(ast.unparse(node.func.value)):
                found.append(node.lineno)
    return found


@pytest.mark.parametrize("source", [
    'x = any("was late" in reason for reason in end["reasons"])', 're.search("[0-9.]+ %", one.text)', 'reason.startswith("limited by")',
])
def test_a_search_for_words_is_found(source):
    assert searches(source)


def test_no_program_searches_sentences_for_words():
    reads = [path for path in SOURCES if "store.reasons" in path.read_text() or '"reasons"' in path.read_text()]
    assert len(reads) > 15
    for path in reads:
        assert not searches(path.read_text()) or str(path).endswith(tuple(COMPARES)), f"{path}: {searches(path.read_text())}: compare identifiers"
    for script in ("scripts/demo", "Makefile"):
        assert not re.search(r"verdict:.*grep|grep.*this \(machine", (ROOT / script).read_text()), f"{script}: `ktrxer summary --json` has identifiers"


OTHERS = [
    "a sentence of an older version",
    {"id": "of_a_newer_version", "text": "the moon was full", "severity": "degraded", "cause": "the moon", "phase_percent": 99.5, "deep": {"a": 1}},
    {"id": "Not An Identifier", "text": 5, "severity": "fatal", "cause": ["x"]}, {"text": "\x1b[31mred\x07"}, {}, {"id": "late", "late_percent": "many"},
    {"id": "late", "text": "x", "names": ["a", 5, None], "late_percent": True}, {"id": "x" * 5000, "text": "y" * 5000, "n": 2**62},
]  # fmt: skip


@pytest.mark.parametrize("value", OTHERS)
def test_reasons_of_other_versions_are_read_and_shown(tmp_path, value):
    run = made_run(tmp_path, "r", verdict="degraded", reasons=[value])
    (found,) = run.meta.reasons
    assert found.text and found.text.isprintable() and found.severity in ("degraded", "invalid")
    summary = figures.summarise(run)
    assert any(found.text[:40] in line for line in lines(summary))
    assert json.loads(json.dumps(summary.as_json()))["reasons"] == [found.as_json()] and read(found.as_json()) == found
    if isinstance(value, str):
        assert (found.id, found.text) == ("text", value)


def test_what_is_no_reason_is_left_out():
    assert read_all([None, 5, ["x"], "a"]) == [Reason("degraded", "a")] and read_all({"a": 1}) == [] and read_all(None) == []


@pytest.mark.parametrize("reasons, severity", [
    (["a", "b"], "invalid"), ([{"id": "late", "text": "a", "severity": "degraded"}], "degraded"), ([], "invalid"), ("x", "invalid"), ([5], "invalid"),
])
def test_the_severity_of_a_process(reasons, severity):
    made = list(health(Ended(Runner(0, "x", "stamp", [], end={"verdict": "invalid", "reasons": reasons}), 1)))
    assert made and made[0].severity == severity


def test_together():
    made = together([
        reason("marks_changed", name="a", changed_percent=3.0, direction="up", of_class=""),
        reason("marks_changed", name="b", changed_percent=30.04, direction="up", of_class=""),
        reason("marks_changed", name="a", changed_percent=5.0, direction="down", of_class=""),
        reason("probes_missing", name="c", recorded=90, due=100, recorded_percent=90.0),
        reason("probes_missing", name="d", recorded=10, due=100, recorded_percent=10.0),
        Reason("degraded", "one", "e"), Reason("invalid", "one", "f"), Reason("degraded", "two", "f"), Reason("degraded", "alone"),
    ])  # fmt: skip
    assert [(one.names, one.severity) for one in made] == [
        (("a", "b"), "degraded"), (("a",), "degraded"), (("c", "d"), "degraded"), (("e", "f"), "invalid"), (("f",), "degraded"), ((), "degraded"),
    ]  # fmt: skip
    assert made[0].text.startswith("a, b: the DSCP or ECN of 30 % of the probes up was") and made[0].text.endswith(" (figures of the worst)")
    assert made[0].values["changed_percent"] == 30.04 and made[2].values["recorded"] == 10
    assert [one.text for one in made[3:]] == ["e, f: one", "f: two", "alone"]


def test_words_are_words():
    assert not [name for name in WORDS if name.endswith(("_ns", "_percent", "_bytes", "_bit_s"))]
    assert reason("place_clock_stepped", moved_ns=1_500_000_000, allowed_ns=2_000_000).text.startswith("its clock was stepped by 1.500 s during")
