# SPDX-License-Identifier: MIT OR Apache-2.0
"""Batch files that would measure something other than what they say are refused."""

from __future__ import annotations

import errno
import io
import json
import re
from types import SimpleNamespace

import pytest
from ktrxer.batch import journal, plan, spec
from ktrxer.commands import batch as command
from ktrxer.run.live import TerminalView

BASE = """
[run]
test = "ping"
host = "far.example"
"""


@pytest.mark.parametrize("name", ["batch", "group", "repetition", "number", "batch_id", "batch_seed", "try"])
@pytest.mark.parametrize("text", ["[matrix]\n{} = [4, 8]", "[variables]\n{} = 4", "[matrix]\nx = [{{name = 'a', {} = 4}}]"])
def test_a_name_that_each_run_has_is_refused(tmp_path, name, text):
    path = tmp_path / "b.toml"
    path.write_text(BASE + text.format(name))
    with pytest.raises(spec.BatchError, match=f"`{name}` is reserved: each run has its own batch, group"):
        spec.read(path)


def test_abstract_is_a_truth_value(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(BASE + "[batches.a]\nabstract = 'false'\n[batches.b]\n")
    with pytest.raises(spec.BatchError, match=r"batches\.a\.abstract: expected true or false"):
        spec.read(path)


def test_a_table_in_run_is_named(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text("[run.a]\ntest = 'ping'\n")
    with pytest.raises(spec.BatchError, match=r"run: `a` is a table: settings stand in \[run\] itself; several batches are \[batches.NAME.run\]"):
        spec.read(path)


@pytest.mark.slow
@pytest.mark.parametrize(("lab", "said"), [
    ("topology = 'acess'", "b: lab: no topology 'acess'; choose one of: access, "),
    ("topology = './mine.toml'", "b: lab: {}/mine.toml: No such file or directory; "),
    ("topology = 'access'\nset = {{ kueue = 'fq' }}", "b: lab: topology access has no parameter 'kueue'; choose one of: "),
    ("topology = 'access'\nset = {{ up = 'fast' }}", "b: lab: "),
    ("topology = 'access'\nbeside = 'sever=ktrxer serve'", "b: lab: no node 'sever' in access; choose one of: "),
])
def test_a_network_that_cannot_be_made_is_refused_before_the_first_run(tmp_path, lab, said, capsys):
    path = tmp_path / "b.toml"
    path.write_text(BASE + "[matrix]\nq = ['a', 'b']\n[lab]\ntime = 'virtual'\n" + lab.replace("{{", "{").replace("}}", "}"))
    assert command.main([str(path), "--dry-run"]) == 2
    assert said.format(tmp_path) in capsys.readouterr().err


def test_a_network_of_which_a_variable_has_a_wrong_value_is_refused(tmp_path, capsys):
    path = tmp_path / "b.toml"
    path.write_text(BASE + "[matrix]\nq = ['fq_codel', 'fq_kodel']\n[lab]\ntime = 'virtual'\ntopology = 'access'\nset = { queue = '{q}' }\n")
    assert command.main([str(path), "--dry-run"]) == 2
    assert "fq_kodel" in capsys.readouterr().err
    path.write_text(path.read_text().replace("fq_kodel", "pfifo limit 100"))
    assert command.main([str(path), "--dry-run"]) == 0


def test_a_kernel_without_a_part_of_the_network_is_found_by_a_dry_run(tmp_path, monkeypatch, capsys):
    """Each network once, without the programs beside it."""
    double = tmp_path / "ktrxer"
    fails = "echo 'ktrxer lab: this kernel has no netem' >&2; exit 1"
    double.write_text(f'#!/bin/sh\ncase $* in *--dry-run*) exit 0;; esac\necho "$@" >>calls\ncase $* in *5ms*) {fails};; esac\n')
    double.chmod(0o755)
    monkeypatch.setenv("KTRXER_BIN", str(double))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "b.toml"
    lab = "[lab]\ntopology = 'access'\nset = { delay = '{d}' }\nbeside = ['server=ktrxer serve']\n"
    path.write_text(BASE + "[matrix]\nd = ['1ms', '5ms', '9ms']\ncc = ['cubic', 'reno']\n" + lab)
    for words in (["--dry-run"], []):
        (tmp_path / "calls").unlink(missing_ok=True)
        assert command.main([str(path), *words]) == 1
        assert re.fullmatch(r"ktrxer batch: b: 5ms (cubic|reno): this kernel has no netem\n", capsys.readouterr().err)
        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls[-1] == "lab run access --set delay=5ms -- true" and len(set(calls)) == len(calls) <= 3
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b.toml", "calls", "ktrxer"]


def test_a_host_without_virtual_time_is_refused_before_the_first_run(tmp_path, monkeypatch, capfd):
    """As without the programs that build the kernel: one message, no try, no journal. A dry run needs no kernel."""
    double = tmp_path / "ktrxer"
    double.write_text("#!/bin/sh\ncase $* in *--dry-run*) exit 0;; esac\necho \"$@\" >>calls\necho no flex >&2\nexit 125\n")
    double.chmod(0o755)
    monkeypatch.setenv("KTRXER_BIN", str(double))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "b.toml"
    path.write_text(BASE + "[matrix]\nq = ['a', 'b']\n[lab]\ntime = 'virtual'\ntopology = 'access'\n")
    assert command.main([str(path), "--dry-run"]) == 0 and not (tmp_path / "calls").exists()
    assert command.main([str(path)]) == 1
    assert capfd.readouterr().err.splitlines() == ["no flex", "ktrxer batch: b: no run is made, because virtual time does not work here (see above)"]
    assert (tmp_path / "calls").read_text() == "lab run access --time virtual -- true\n"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b.toml", "calls", "ktrxer"]


def test_an_exclusion_of_a_value_that_no_point_has_is_refused(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(BASE + "[matrix]\ncc = ['cubic', 'bbr']\n[[exclude]]\ncc = 'bbrr'\n")
    (batch,) = spec.read(path)
    with pytest.raises(spec.BatchError, match="exclude: the dimension 'cc' has no value 'bbrr'; it has cubic, bbr"):
        plan.combinations(batch)


def test_a_full_disk_at_the_beginning_leaves_no_journal(tmp_path, monkeypatch):
    path = tmp_path / "b.batch.jsonl"
    whole = journal.os.write

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal.os, "write", full)
    with pytest.raises(spec.BatchError, match=f"{path}: No space left on device; no run was made"):
        journal.create(path, journal.State("id", "b.toml", [], []), "boot")
    assert not path.exists()
    monkeypatch.setattr(journal.os, "write", whole)
    journal.create(path, journal.State("id", "b.toml", [], []), "boot").close()


@pytest.mark.parametrize("wrong", [{"seeds": [float("inf")]}, {"batches": [], "seeds": []}])
def test_a_damaged_first_line_of_a_journal_is_named(tmp_path, wrong):
    path = tmp_path / "b.batch.jsonl"
    path.write_text(json.dumps({"type": "batch", "format": 1, "id": "x", "file": "b.toml", "seeds": [], "batches": []} | wrong) + "\n")
    with pytest.raises(spec.BatchError, match="damaged: "):
        journal.load(path)


@pytest.mark.parametrize("text", ["[/x]", "[q=5%]"])
def test_no_text_of_a_run_is_markup_of_the_terminal(text):
    view = TerminalView(io.StringIO())
    view.progress.update(view.task, description=text, at=text)
    view.console.print(view.progress)
    assert view.console.file.getvalue().count(text) == 2


def test_the_title_of_a_run_has_no_markup():
    view, phase = TerminalView(io.StringIO()), SimpleNamespace(name="load", from_ns=0, to_ns=10)
    session = SimpleNamespace(now_ns=5, stopping="", newest=None, meta=SimpleNamespace(test="ping", series=[], runners=[]),
                              schedule=SimpleNamespace(length_ns=10, phases=[phase], jobs=[]))
    view.console.print(view.picture(session))
    assert "ping under load" in view.console.file.getvalue() and "[bold]" not in view.console.file.getvalue()


MATRIX = BASE + """
length = "20s"
"no-extras" = true
[variables]
rate = "10"
[matrix]
cc = ["cubic", "bbr"]
queue = [{ name = "fifo", leaf = "pfifo" }, { name = "codel", leaf = "codel" }]
"""


@pytest.mark.parametrize(
    ("settings", "runs", "holds"),
    [
        (["length=5s"], 4, lambda one: one.run["length"] == "5s"),
        (["cc=reno"], 2, lambda one: one.matrix["cc"] == ({"cc": "reno"},)),
        (["queue=codel", "cc=bbr"], 1, lambda one: one.matrix["queue"] == ({"queue": "codel", "leaf": "codel"},)),
        (["rate=20"], 4, lambda one: one.variables["rate"] == "20" and "rate" not in one.run),
        (["no_extras=false", "host=a=b"], 4, lambda one: one.run["no-extras"] is False and one.run["host"] == "a=b"),
        (['host=["a", "b"]'], 4, lambda one: one.run["host"] == ["a", "b"]),
    ],
)
def test_other_values_than_those_of_the_file(tmp_path, settings, runs, holds):
    path = tmp_path / "b.toml"
    path.write_text(MATRIX)
    (batch,) = [spec.overridden(one, settings) for one in spec.read(path)]
    assert holds(batch) and len(plan.combinations(batch)) == runs


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "length"], "--set length: expected NAME=VALUE"),
        (["--set", "=5"], "--set =5: expected NAME=VALUE"),
        (["--set", "queue=red"], "--set queue=red: a value of queue has variables of its own; the file has fifo, codel"),
        (["--set", "pause=3s"], "--set pause: not an option of [run], a dimension or a variable: change it in the file"),
        (["--set", "group=x"], "--set group: not an option of [run]"),
        (["--set", "lenght=5s"], "lenght"),
    ],
)
def test_other_values_that_cannot_be(tmp_path, capsys, words, said):
    path = tmp_path / "b.toml"
    path.write_text(MATRIX)
    assert command.main([str(path), "--dry-run", *words]) == 2
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err


def test_a_journal_takes_no_other_values(tmp_path, capsys):
    assert command.main(["--resume", str(tmp_path / "b.batch.jsonl"), "--set", "length=5s"]) == 2
    assert "--resume takes everything from the journal" in capsys.readouterr().err


def test_a_program_of_a_hook_that_this_host_does_not_have(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KTRXER_BIN", "/bin/true")
    path = tmp_path / "b.toml"
    hooks = ["nosuch-program -x", "cd /", "echo {batch}", "A=1 nosuch", "./mine.sh", "( nosuch )"]
    path.write_text(BASE + "".join(f"[[hooks]]\nwhen = 'first'\ncommand = {json.dumps(one)}\n" for one in hooks))
    assert command.main([str(path), "--dry-run"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "hook" in line]
    assert said == [f"ktrxer batch: b: hook, first: this host has no {name}" for name in ("nosuch-program", "./mine.sh")]
    (tmp_path / "mine.sh").write_text("#!/bin/sh\n")
    (tmp_path / "mine.sh").chmod(0o755)
    assert command.main([str(path), "--dry-run"]) == 0 and "mine.sh" not in capsys.readouterr().err
