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
from ktrxer.store.reason_table import FAILURES, FORMS, WORDS
from ktrxer.store.reasons import Reason, read, read_all, reason, together
from ktrxer.summary import figures
from ktrxer.summary.text import lines
from panel_runs import run as made_run
from text_searches import messages, own_text, searches

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


@pytest.mark.slow
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
    unused = [one for one in FORMS if one not in FAILURES and f"reason_{one}" not in used and f"REASON_{one.upper()}" not in used and one not in seen]
    assert not unused


FOLDERS = ("python/ktrxer", "lab/ktrxer_lab", "cli", "methods", "lib", "capture", "bench", "web/src", "scripts", "contract")
ENDS = {".py", ".c", ".h", ".ts", ".mjs", ".sh", ""}
# Text of other programs, and names that are no sentences.
ALLOWED = {
    "collect/answers.py": "output of iw", "chance/beside.py": "output of tcpdump", "runners/fping.py": "output of fping", "runners/iputils.py": "output of ping",
    "bench/flent.py": "log of Flent", "flent/about.py": "names of Flent's series",
    "flent/reading.py": "names of Flent's series", "flent/upgrade.py": "names of Flent's series",
    "panels/tracks.py": "names of series", "panels/axes.py": "whether a note is in a list", "panels/plots.py": "whether a note is in a list",
    "truth/judge.py": "names of figures", "truth/path.py": "names of figures", "truth/during.py": "a rule of nftables in a command", "ktrxer_lab/wiring.py": "whether a name is in a list",
    "topology_text.py": "the key that a message quotes, for the line in the user's file",
    "chance/judge.py": "the sentence itself is judged: whether it names a direction without a fault",
}  # fmt: skip


def sources() -> list[tuple[Path, str]]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in ENDS and path.is_file()]
    kept = [path for path in paths if not {"__pycache__", "bundle", "node_modules"} & set(path.parts)]
    return [(path, path.read_text(errors="replace")) for path in [*kept, ROOT / "Makefile", ROOT / "contract" / "reasons.toml"]]


@pytest.fixture(scope="module")
def texts() -> str:
    return "\0".join(["", *messages((path, text) for path, text in sources() if path.suffix in (".py", ".c", ".h", ".ts", ".toml")), ""])


@pytest.mark.slow
@pytest.mark.parametrize("name, source", [
    ("x.py", 'x = any("was late" in reason for reason in end["reasons"])'), ("x.py", 're.search("[0-9.]+ per", one.text)'),
    ("x.py", 'reason.startswith("limited by")'), ("x.py", 'UP = "no datagram from here gets through"\nway = UP in line'),
    ("x.py", 'SIGNS = ("nothing listens on", "no result within")\nfound = any(sign in line for line in lines for sign in SIGNS)'),
    ("x.py", 'LATE = re.compile(r"answered nothing (at) all")\nfound = LATE.search(line)'), ("x.py", 'why = "refused" in done.stderr'),
    ("x.py", 'for sign in ["nothing listens on"]:\n    found = found or sign in line'), ("x.c", 'if (strstr(line, "nothing listens on TCP"))\n\treturn 1;'),
    ("x.c", 'return !strncmp(err.text, "the token is not", 16);'), ("x.ts", 'const failed = one.outcome.startsWith("ended");'),
    ("x.ts", 'if (line.includes("nothing listens on")) stop();'), ("x.ts", "const lost = /nothing listens on/.test(line);"),
    ("run", 'ktrxer flow up b 2>&1 | grep -q "nothing listens on" && exit'), ("run", "ktrxer summary x | sed -n '/it was stopped before/p'"),
])  # fmt: skip
def test_a_search_for_words_is_found(texts, name, source):
    assert any(own_text(one, texts) for one in searches(Path(name), source))


@pytest.mark.slow
@pytest.mark.parametrize("name, source", [
    ("x.py", 'x = any(one.id == "late" for one in reasons)'), ("x.py", 'x = "late" in names'), ("x.py", 'x = "no answer yet" in line'),
    ("x.py", 'x = line.text.startswith("PING ")'), ("x.ts", 'if (one.id === "late") stop();'), ("x.c", 'if (strcmp(name, "fq_codel") == 0)\n\treturn 1;'),
    ("run", "ktrxer summary --json x | grep -q '\"cause\": \"host_cpu\"'"),
])  # fmt: skip
def test_identifiers_and_text_of_others_are_no_search(texts, name, source):
    assert not any(own_text(one, texts) for one in searches(Path(name), source))


@pytest.mark.slow
def test_no_program_searches_its_own_text(texts):
    found, used = [], set()
    for path, source in sources():
        for one in searches(path, source) if path.suffix != ".toml" else ():
            if own_text(one, texts):
                allowed = next((end for end in ALLOWED if str(path).endswith(end)), "")
                used.add(allowed)
                found += [] if allowed else [f"{path.relative_to(ROOT)}:{one.line}: {one.words!r} in {one.place}: compare identifiers"]
    assert not found and not ALLOWED.keys() - used, (found, ALLOWED.keys() - used)


OTHERS = [
    "a sentence of an older version",
    {"id": "of_a_newer_version", "text": "the moon was full", "severity": "degraded", "cause": "the moon", "phase_percent": 99.5, "deep": {"a": 1}},
    {"id": "Not An Identifier", "text": 5, "severity": "fatal", "cause": ["x"]}, {"text": "\x1b[31mred\x07"}, {}, {"id": "late", "late_percent": "many"},
    {"id": "late", "text": "x", "names": ["a", 5, None], "late_percent": True}, {"id": "x" * 5000, "text": "y" * 5000, "n": 2**62},
]  # fmt: skip


@pytest.mark.slow
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
        reason("counts_missing", name="c", covered_percent=90.0, side="sender"),
        reason("counts_missing", name="d", covered_percent=10.0, side="sender"),
        Reason("degraded", "one", "e"), Reason("invalid", "one", "f"), Reason("degraded", "two", "f"), Reason("degraded", "alone"),
    ])  # fmt: skip
    assert [(one.names, one.severity) for one in made] == [
        (("a", "b"), "degraded"), (("a",), "degraded"), (("c", "d"), "degraded"), (("e", "f"), "invalid"), (("f",), "degraded"), ((), "degraded"),
    ]  # fmt: skip
    assert made[0].text.startswith("a, b: the DSCP or ECN of 30 % of the probes up was") and made[0].text.endswith(" (figures of the worst)")
    assert made[0].values["changed_percent"] == 30.04 and made[2].values["covered_percent"] == 10
    assert [one.text for one in made[3:]] == ["e, f: one", "f: two", "alone"]


def test_words_are_words():
    assert not [name for name in WORDS if name.endswith(("_ns", "_percent", "_bytes", "_bit_s"))]
    assert reason("place_clock_stepped", moved_ns=1_500_000_000, allowed_ns=2_000_000).text.startswith("its clock was stepped by 1.500 s during")
