# SPDX-License-Identifier: MIT OR Apache-2.0
"""A Python half beside a command of another version, and run files of another version: read and shown, with one line about what is not known."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tables
from ktrxer.runners import ping, probes, stamp
from ktrxer.runners.probes import Probes
from ktrxer.runners.samples import Chunk, Clock, Samples
from ktrxer.store import meta as meta_file
from ktrxer.store import object_table, objects, open_run
from ktrxer.store.meta import Runner, Series
from ktrxer.store.writer import RunWriter
from ktrxer.summary.figures import summarise
from ktrxer.summary.text import lines
from test_store import rows, small

ROOT = Path(__file__).resolve().parents[2]
START = {"type": "start", "schema": 1, "version": "0.9.0", "command": "ping", "clock": {"mono_ns": 0, "real_ns": 0, "bound_ns": 1}}
TRIP = {"type": "sample", "kind": "round_trip", "number": 0, "received_ns": 6, "from": "::1", "scheduled_ns": 1, "sent_ns": 2, "rtt_ns": 4, "lateness_ns": 1}
END = {"type": "end", "sent": 1, "received": 1, "lost": 0, "payload_bytes": 56, "late": 0, "late_after_us": 100.0, "verdict": "valid", "reasons": []}


def reading(*made):
    samples = Samples({None: Series(0, "a", "latency", "ms")}, Clock(0, 0), to_ns=10**9)
    feed = probes.read(Probes(), samples)
    next(feed)
    for one in (*(json.dumps(one).encode() + b"\n" for one in made), None):
        try:
            feed.send(Chunk(one, 5) if one else None)
        except StopIteration:
            break
    return samples


def test_fields_kinds_and_events_of_a_newer_command_are_counted():
    new = [TRIP | {"colour": "red"}, TRIP | {"number": 1, "colour": "blue"}, {"type": "sample", "kind": "jump", "height_ns": 5}]
    new += [{"type": "event", "name": "sunset", "time_ns": 5}, {"type": "weather", "rain": 1}]
    samples = reading(START, *new, END | {"jumps": 2, "rtt_us": {"p50": 1.0, "p999": 2.0}})
    assert list(samples.unknown) == ["round_trip colour", "sample jump", "event sunset", "weather", "jumps", "rtt_us.p999"]
    assert samples.garbage == 0 and len(samples.table("latency")[0]) == 2
    assert not reading(START, TRIP, END).unknown


def test_an_older_command_lacks_fields():
    samples = reading({"type": "start", "schema": 1, "command": "ping", "clock": START["clock"]}, {**TRIP, "lateness_ns": None}, {"type": "end", "sent": 1})
    assert not samples.unknown and not samples.garbage and len(samples.table("latency")[0]) == 1


@pytest.mark.parametrize("end", [None, 5, [], {}, {"sent": "many", "lost": True, "classes": 5, "output": [], "rtt_us": "low", "reasons": 7, "port": 1e400}])
def test_a_field_has_its_type_or_is_not_there(end):
    for kind in ("stamp", "ping", "flow", "ppt", "irtt", "unheard-of"):
        assert objects.result_of(kind, end) == {}


def test_readers_have_each_field_of_the_tables():
    known = tables.load()
    assert set(object_table.GROUPS) == {group.name for group in known.groups.values() if group.c}
    for one in (made for made in known.objects if made.c):
        for name in one.names or ("",):
            fields = objects._of_line(one.command, one.line, name)
            assert list(fields) == [member.name for member in known.members(known.around(one))]


def run_file(tmp_path, change, end=None):
    """A run whose meta.json is that of another version."""
    writer = RunWriter(tmp_path, small(runners=[Runner(0, "ping", "ping", ["ktrxer", "ping", "far"], status="ended", end=end or END)], verdict="valid"))
    writer.append("latency", rows(5))
    path = writer.finish()
    with zipfile.ZipFile(path) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    made = json.loads(members["meta.json"])
    change(made)
    other = tmp_path / "other.ktrxer"
    with zipfile.ZipFile(other, "w") as packed:
        for name, data in (members | {"meta.json": json.dumps(made)}).items():
            packed.writestr(name, data)
    return other


def newer(made):
    made.update(version="0.9.0", weather={"rain": 1})
    made["runners"][0]["end"].update(jumps=2, reasons=[{"id": "too_sunny", "text": "the sun shines", "severity": "degraded", "cause": "sky", "lux": 5}])
    made["runners"][0]["colour"] = "red"
    made["series"].append({"id": 1, "name": "jumps", "kind": "jump", "unit": "m", "runner": 0})
    made["phases"].append({"name": "warm_up", "from_ns": 0, "to_ns": 5})
    made["reasons"].append({"id": "too_sunny", "text": "the sun shines", "severity": "degraded", "cause": "sky", "lux": 5})


def older(made):
    """Reasons were sentences, and objects had fewer fields."""
    made.update(version="0.0.9", reasons=["the path was slow"], verdict="degraded")
    made["runners"][0]["end"] = {"type": "end", "sent": 5, "reasons": ["the path was slow"]}
    for name in ("unknown", "process", "auxiliary", "place", "parameters"):
        del made["runners"][0][name]


def test_a_file_of_a_newer_version_is_shown_with_one_line_of_what_is_not_read(tmp_path):
    run = open_run(run_file(tmp_path, newer))
    text = lines(summarise(run))
    said = [line for line in text if line.startswith("not read")]
    assert said == ["not read  5 fields or series that this version does not have: series of kind jump, phases of name warm_up, colour, ..."]
    assert any("the sun shines" in line for line in text) and len(run.arrays(run.meta.series[0])["rtt_ns"]) == 5


def test_a_file_of_an_older_version_is_shown(tmp_path):
    text = lines(summarise(open_run(run_file(tmp_path, older))))
    assert any("the path was slow" in line for line in text) and not any("not read" in line for line in text)


def test_a_file_of_this_version_has_no_such_words(tmp_path):
    with pytest.raises(meta_file.StoreError, match="should be one of"):
        open_run(run_file(tmp_path, lambda made: made["series"].append({"id": 1, "name": "b", "kind": "jump", "unit": "m"})))


@pytest.mark.slow
@pytest.mark.parametrize("change", [newer, older])
@pytest.mark.parametrize("words", [["summary"], ["summary", "--json"], ["runs"], ["export", "--format", "csv", "-D", "."], ["report", "--output", "out.html"]])
def test_commands_show_files_of_other_versions(tmp_path, change, words):
    file = run_file(tmp_path, change)
    command = [sys.executable, "-m", "ktrxer", *words, str(file)] if words != ["runs"] else [sys.executable, "-m", "ktrxer", "runs", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}/python:{ROOT}/lab", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, capture_output=True, text=True)
    assert "Traceback" not in done.stderr and done.returncode in (0, 3), done.stderr


def test_both_probers_are_read_by_it():
    assert ping.RUNNER.read is probes.read and stamp.RUNNER.read is probes.read
