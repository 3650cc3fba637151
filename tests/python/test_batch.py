# SPDX-License-Identifier: MIT OR Apache-2.0
"""Series of runs: the file, the plan, the execution, the journal."""

from __future__ import annotations

import errno
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from batches import BASE, calls, fake_fixture, templates_fixture, written  # noqa: F401
from ktrxer.batch import journal, plan, spec
from ktrxer.batch.spec import BatchError
from ktrxer.commands import batch as command
from ktrxer.store import open_run
from ktrxer.units import span

HERE = Path(__file__).parent


def one(folder: Path, text: str) -> spec.Batch:
    (made,) = spec.read(written(folder, text))
    return made


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = ", "b.toml: at the end of the file: not a value; a string stands in quotation marks"),
        ("[run]\nhost = 'h'", "run: `test` is missing"),
        ("repetition = 3\n" + BASE, "unknown key `repetition`; do you mean `repetitions`?"),
        ("repetitions = 0\n" + BASE, "repetitions: expected a whole number of 1 to 10000"),
        ("repetitions = true\n" + BASE, "repetitions: expected a whole number"),
        ("order = 'shufled'\n" + BASE, "do you mean 'shuffled'?"),
        ("pause = '5 parsecs'\n" + BASE, "is not a duration"),
        ("retries = -1\n" + BASE, "retries: expected a whole number"),
        (BASE + "[matrix]\nqdisc = []", "matrix.qdisc: expected a list of values"),
        (BASE + "[matrix]\nqdisc = ['a', 'a']", "matrix.qdisc: a value occurs twice"),
        (BASE + "[matrix]\nqdisc = [{leaf = 'x'}]", "matrix.qdisc[0]: `name` is missing"),
        (BASE + "[matrix]\n'q d' = ['a']", "'q d' is not a name"),
        (BASE + "[matrix]\n" + "\n".join(f"d{i} = {list(range(20))}" for i in range(5)), "3200000 combinations; at most"),
        (BASE + "[[hooks]]\nwhen = 'befor'\ncommand = 'x'", "hooks[0].when: expected one of"),
        (BASE + "[[hooks]]\nwhen = 'before'", "hooks[0].command: expected a text"),
        (BASE + "[lab]\ntime = 'virtual'", "lab.topology: expected a text"),
        (BASE + "[until]\nfigure = 'p95(rtt)'\nwithin = '0%'", "until.within: '0%': expected a share"),
        ('title = "x\n' + BASE, 'b.toml: line 1: the string does not end; a string stands in quotation marks on one line, as in name = "value"; found: title = "x'),
        ("a = x", 'b.toml: line 1: not a value; a string stands in quotation marks on one line, as in name = "value"; found: a = x'),
        (BASE + "[until]\nfigure = 'p95(foo)'\nwithin = '5%'", "until.figure: 'p95(foo)' is no figure: expected p50, p95 or p99 of rtt, up or down"),
        (BASE + "[batches.a]\ninherits = 'b'", "batches.a.inherits: no batch 'b'"),
        (BASE + "[batches.a]\ninherits = 'a'", "inherits from itself"),
        (BASE + "[batches.a]\nabstract = true", "all of them are abstract"),
        (BASE + "[batches]\na = 3", "batches.a: expected a table"),
        ("a = " + "[" * 3000, "b.toml: "),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_key(tmp_path, text, said):
    with pytest.raises(BatchError) as caught:
        spec.read(written(tmp_path, text))
    assert said in str(caught.value)
    assert "b.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BASE + "cc = '{nonesuch}'", "run.cc: no variable 'nonesuch'; known are: batch, batch_time, group, number, repetition"),
        (BASE + "[variables]\na = '{b}'\nb = '{a}'\n[[hooks]]\ncommand = '{a}'", "refer to each other"),
        (BASE + "[matrix]\nx = ['1']\n[[exclude]]\nx = '1'", "leave no combination"),
        (BASE + "[[exclude]]\ny = '1'", "no dimension 'y' in the matrix"),
        (BASE + "dry-run = true", "run.dry-run: the batch sets this option itself"),
        (BASE + "lenght = '3s'", "b: run.lenght: no such key; did you mean length?"),
        (BASE + "for = '3s'", "run.for: no such key; did you mean length?"),
        (BASE + "zzz = '3s'", "run.zzz: no such key; known are again, "),
        (BASE.replace('"1s"', '"0s"'), "--for: '0s' is too small: from 200ms to 720h is possible"),
        (BASE + "cc = 'a,b,c'", "--cc a,b,c: one name, or two"),
        ("[run]\ntest = 'ping'", "b: run: ktrxer run: --host is missing: the far end"),
        ("[run]\ntest = 'ping'\nagain = 'x.ktrxer'", "run.again: not in a batch; `ktrxer run --again FILE` repeats"),
        (BASE.replace("'ping'", "'x'").replace('"ping"', '"nonesuch"'), "nonesuch"),
        (BASE + "set = { nonesuch = 3 }", "nonesuch"),
    ],
)
def test_all_cells_are_checked_before_the_first_run(tmp_path, text, said, capsys):
    assert command.main([str(written(tmp_path, text)), "--dry-run"]) == 2
    assert said in capsys.readouterr().err


def test_batches_inherit_and_the_top_of_the_file_holds_for_all(tmp_path):
    text = BASE + """
    [matrix]
    cc = ["cubic", "bbr"]
    [batches.base]
    abstract = true
    run = { length = "2s" }
    [batches.a]
    inherits = "base"
    repetitions = 4
    [batches.b]
    inherits = ["base", "a"]
    run = { title = "b", test = "rrul" }
    matrix = { n = [1, 2] }
    """
    a, b = spec.read(written(tmp_path, text))
    assert (a.name, a.repetitions, dict(a.run)) == ("a", 4, {"test": "ping", "host": "far.example", "length": "2s", "title": "valid"})
    assert (b.name, b.repetitions, b.run["title"], b.run["test"], b.run["length"]) == ("b", 4, "b", "rrul", "2s")
    assert list(b.matrix) == ["cc", "n"]
    assert len(plan.combinations(b)) == 4


def test_values_of_a_dimension_bring_variables_and_braces_can_be_written(tmp_path):
    made = one(tmp_path, BASE + """
    cc = "{cc}"
    [matrix]
    queue = [{ name = "fq", leaf = "fq_codel limit {n}" }]
    cc = ["cubic"]
    [variables]
    n = 100
    [lab]
    topology = "flent"
    time = "virtual"
    set = { leaf = "{leaf}" }
    [[hooks]]
    command = "awk '{{print}}' {queue}"
    """)
    (run,) = plan.planned(made, 7, "id")
    assert run.lab[0] == "flent"
    assert run.lab[-2:] == ["--set", "leaf=fq_codel limit 100"]
    assert run.options[-2:] == ["--cc", "cubic"]
    assert run.hooks[0].command == "awk '{print}' fq"
    assert {"queue=fq", "cc=cubic", "batch=b", "repetition=1", "batch_id=id", "batch_seed=7"} <= set(run.labels)


def test_paths_are_relative_to_the_file(tmp_path):
    made = one(tmp_path, BASE.replace('"ping"', '"./mine.py"') + "token-file = 'secret'\nipv6 = true\nprecise = true\nno_extras = false\n")
    (run,) = plan.planned(made, 7, "id")
    assert run.options[0] == str(tmp_path / "mine.py")
    assert run.options[run.options.index("--token-file") + 1] == str(tmp_path / "secret")
    assert "--ipv6" in run.options
    assert "--precise" in run.options
    assert "--no-extras" not in run.options


# ---------------------------------------------------------------- the order


def order_of(folder: Path, order: str, seed: int = 7, repetitions: int = 6) -> list[tuple[str, int]]:
    made = one(folder, f"order = '{order}'\nrepetitions = {repetitions}\n" + BASE + "[matrix]\nq = ['a', 'b', 'c']\n")
    return [(run.combination.group, run.repetition) for run in plan.planned(made, seed, "id")]


@pytest.mark.parametrize("order", ["interleaved", "shuffled", "given"])
def test_each_order_has_each_run_once_and_repeats_with_its_seed(tmp_path, order):
    made = order_of(tmp_path, order)
    assert sorted(made) == [(group, repetition) for group in "abc" for repetition in range(1, 7)]
    assert made == order_of(tmp_path, order)
    if order != "given":
        assert any(made != order_of(tmp_path, order, seed) for seed in range(5))


def test_interleaved_turns_around_so_that_a_drift_meets_all_alike(tmp_path):
    made = order_of(tmp_path, "interleaved")
    rounds = [[group for group, repetition in made if repetition == n] for n in range(1, 7)]
    assert rounds[0] == rounds[1][::-1] == rounds[2]
    places: dict[str, int] = Counter()
    for place, (group, _) in enumerate(made):
        places[group] += place
    assert len(set(places.values())) == 1


def test_given_order_is_that_of_the_file(tmp_path):
    assert [group for group, _ in order_of(tmp_path, "given")][:3] == ["a", "b", "c"]


def test_keys_of_runs_stay_when_repetitions_are_added(tmp_path):
    few, many = (one(tmp_path, f"repetitions = {n}\n" + BASE + "[matrix]\nq = ['a', 'b']\n") for n in (2, 5))
    keys = [{(run.combination.group, run.repetition): run.key for run in plan.planned(made, 7, "id")} for made in (few, many)]
    assert keys[0].items() <= keys[1].items()
    assert len(set(keys[1].values())) == 10


# ---------------------------------------------------------------- the runs


def test_a_batch_stores_its_runs_with_labels_and_a_journal(tmp_path, fake, capsys):
    path = written(tmp_path, "repetitions = 2\ndirectory = 'out'\n" + BASE + "[matrix]\nq = ['a', 'b']\n")
    assert command.main([str(path)]) == 0
    out, err = capsys.readouterr()
    assert "4 runs in 4 tries: 4 valid, 0 degraded or invalid, 0 without a file" in out
    assert "1 of 4: b: " in err
    runs = [open_run(one).meta for one in sorted((tmp_path / "out").glob("*.ktrxer"))]
    labels = [meta.metadata["labels"] for meta in runs]
    assert sorted((one["q"], one["repetition"], one["try"]) for one in labels) == [("a", "1", "1"), ("a", "2", "1"), ("b", "1", "1"), ("b", "2", "1")]
    assert len({one["batch_id"] for one in labels}) == 1
    state = journal.load(tmp_path / "out" / "b.batch.jsonl")
    assert state.seeds == [7]
    assert [made.verdict for made in state.tries] == ["valid"] * 4
    assert len(list((tmp_path / "out" / "b.logs").iterdir())) == 4


def test_runs_that_are_not_valid_are_made_again_and_every_try_is_kept(tmp_path, fake, capsys):
    path = written(tmp_path, "retries = 2\n" + BASE.replace("valid", "{b}") + "[matrix]\nb = ['once', 'invalid']\n")
    assert command.main([str(path)]) == 3
    out, err = capsys.readouterr()
    assert "2 runs in 5 tries: 1 valid, 1 degraded or invalid, 0 without a file" in out
    assert [line.split(": ")[1] for line in err.splitlines()] == ["1 of 2", "1 of 2", "2 of 2", "2 of 2", "2 of 2"], "tries of one run have its number"
    tries = Counter(line.split()[0] for line in calls(tmp_path))
    assert tries == {"once": 2, "invalid": 3}
    assert len(list(tmp_path.glob("*.ktrxer"))) == 5


def test_a_run_without_a_file_is_named_with_its_last_message(tmp_path, fake, capsys):
    hook = "[[hooks]]\nwhen = 'after'\ncommand = 'echo no such file >&2'\n"
    path = written(tmp_path, "retries = 0\n" + BASE.replace("valid", "fails") + hook)
    assert command.main([str(path)]) == 1
    out, err = capsys.readouterr()
    assert "1 run in 1 try: 0 valid, 0 degraded or invalid, 1 without a file" in out
    assert "no file (status 1)" in err
    assert "the far end does not answer" in err


def test_five_failures_in_a_row_end_the_batch(tmp_path, fake, capsys):
    path = written(tmp_path, "repetitions = 9\nretries = 0\n" + BASE.replace("valid", "fails"))
    assert command.main([str(path)]) == 1
    assert "5 runs in a row made no file" in capsys.readouterr().err
    assert len(calls(tmp_path)) == 5


def begun(folder: Path, text: str) -> subprocess.Popen[str]:
    """A batch in a process of its own, in its slow run."""
    path = written(folder, text)
    words = [sys.executable, "-m", "ktrxer", "batch", str(path)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 30
    while not (folder / "slow.pid").exists() or not (folder / "slow.pid").read_text():
        assert time.monotonic() < end
        assert child.poll() is None
        time.sleep(0.02)
    return child


SLOW = "order = 'given'\n" + BASE.replace("valid", "{t}") + "[matrix]\nt = ['valid', 'slow']\n"


@pytest.mark.slow
def test_stopped_and_resumed(tmp_path, fake, capsys, monkeypatch):
    child = begun(tmp_path, SLOW)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "--resume" in err
    state = journal.load(tmp_path / "b.batch.jsonl")
    assert [made.verdict for made in state.tries] == ["valid"]
    assert len(state.unfinished) == 1
    # The file has changed since; the batch goes on as it was. Its slow run is valid this time.
    written(tmp_path, SLOW.replace("seed = 7", "seed = 8"))
    fast = (HERE / "fake_run.py").read_text().replace('title == "slow"', "False")
    (tmp_path / "fast.py").write_text(fast)
    (tmp_path / "fast.py").chmod(0o755)
    monkeypatch.setenv("KTRXER_BIN", str(tmp_path / "fast.py"))
    assert command.main(["--resume", str(tmp_path / "b.batch.jsonl")]) == 0
    out, err = capsys.readouterr()
    assert "has changed since the batch began" in err
    assert "a run was cut off" in err
    assert "2 runs in 2 tries: 2 valid" in out
    assert [line.split()[0] for line in calls(tmp_path)] == ["valid", "slow", "slow"]
    assert command.main([str(tmp_path / "b.toml")]) == 2
    assert "exists already: `ktrxer batch --resume" in capsys.readouterr().err


@pytest.mark.slow
def test_nothing_is_left_after_a_kill(tmp_path, fake):
    child = begun(tmp_path, SLOW)
    child.kill()
    child.communicate(timeout=30)
    pid = int((tmp_path / "slow.pid").read_text())
    end = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_two_at_once_are_refused(tmp_path, fake, capsys):
    child = begun(tmp_path, SLOW)
    try:
        assert command.main(["--resume", str(tmp_path / "b.batch.jsonl")]) == 2
        assert "another `ktrxer batch` uses this journal" in capsys.readouterr().err
    finally:
        child.kill()
        child.communicate(timeout=30)


def test_a_run_that_is_killed_is_made_again(tmp_path, fake, capsys):
    assert command.main([str(written(tmp_path, BASE.replace("valid", "killed")))]) == 0
    out, err = capsys.readouterr()
    assert "1 run in 2 tries: 1 valid" in out and "killed by signal 9" in err
    first, second = journal.load(tmp_path / "b.batch.jsonl").tries
    assert (first.file, first.verdict, first.status) == (None, None, -9) and second.verdict == "valid"


def test_one_process_forks_all_runs(tmp_path, fake):
    assert command.main([str(written(tmp_path, "repetitions = 3\n" + BASE))]) == 0
    parents = (tmp_path / "parents.txt").read_text().split()
    assert len(parents) == 3
    assert len(set(parents)) == 1
    assert not Path(f"/proc/{parents[0]}").exists()


def test_a_run_whose_parent_is_killed_ends_with_it_and_is_made_again(tmp_path, fake, capsys):
    began = time.monotonic()
    assert command.main([str(written(tmp_path, BASE.replace("valid", "orphan")))]) == 0
    out, err = capsys.readouterr()
    assert "1 run in 2 tries: 1 valid" in out and "killed by signal 9" in err
    assert time.monotonic() - began < 25
    first, second = journal.load(tmp_path / "b.batch.jsonl").tries
    assert (first.file, first.status, second.verdict) == (None, -9, "valid")


def test_a_disk_that_fills_in_mid_batch_ends_it_and_it_goes_on_afterwards(tmp_path, fake, capsys, monkeypatch):
    whole = journal.os.write

    def full(descriptor: int, data: bytes) -> int:
        if b'"attempt": 1' in data and b'"type": "ended"' in data and len(calls(tmp_path)) == 2:
            whole(descriptor, data[:20])
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(descriptor, data)

    monkeypatch.setattr(journal.os, "write", full)
    assert command.main([str(written(tmp_path, "repetitions = 3\n" + BASE))]) == 1
    err = capsys.readouterr().err
    path = tmp_path / "b.batch.jsonl"
    assert f"{path}: No space left on device; the batch ends; remove the cause, then `ktrxer batch --resume {path}` continues it" in err
    monkeypatch.setattr(journal.os, "write", whole)
    assert command.main(["--resume", str(path)]) == 0
    assert "3 runs in 3 tries: 3 valid" in capsys.readouterr().out
    assert [line.split()[1] for line in calls(tmp_path)] == ["1", "2", "2", "3"], "only the run whose end was not written is made again"


def test_a_clock_that_is_set_back_between_runs_changes_neither_order_nor_names(tmp_path, fake, capsys):
    text = "repetitions = 4\n" + BASE + "[[hooks]]\nwhen = 'after'\ncommand = 'touch -d 2001-01-01 *.ktrxer'\n"
    assert command.main([str(written(tmp_path, text))]) == 0
    path = tmp_path / "b.batch.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for i, line in enumerate(one for one in lines if "began" in one):
        line["began"] = f"20{40 - i}-01-01T00:00:00.000000Z"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert command.main(["--resume", str(path)]) == 0
    assert "4 runs in 4 tries: 4 valid" in capsys.readouterr().out
    assert len(calls(tmp_path)) == len(list(tmp_path.glob("*.ktrxer"))) == 4


def test_another_boot_is_named(tmp_path, fake, capsys):
    assert command.main([str(written(tmp_path, BASE))]) == 0
    path = tmp_path / "b.batch.jsonl"
    lines = [line for line in path.read_text().splitlines() if '"boot"' not in line]
    path.write_text("\n".join([lines[0], json.dumps({"type": "boot", "id": "another"}), *lines[1:]]) + "\n")
    assert command.main(["--resume", str(path)]) == 0
    assert "this host was restarted since" in capsys.readouterr().err


def test_a_damaged_journal_loses_no_whole_line(tmp_path, fake, capsys):
    assert command.main([str(written(tmp_path, "repetitions = 3\n" + BASE))]) == 0
    path = tmp_path / "b.batch.jsonl"
    whole = path.read_bytes()
    rng = random.Random(1)
    head = whole.index(b"\n") + 1
    for _ in range(60):
        data = bytearray(whole[: rng.randrange(head, len(whole) + 1)])
        for _ in range(rng.randrange(3)):
            data[rng.randrange(head, len(data) + 1) - 1] = rng.randrange(256)
        path.write_bytes(data)
        state = journal.load(path)
        assert len(state.tries) <= 3
    path.write_bytes(whole[:-20])
    assert command.main(["--resume", str(path)]) == 0
    assert len(calls(tmp_path)) == 4
    for text in (b"", b"{}\n", b"[1]\n", b"\xff\xff\n", b'{"type": "batch", "format": 9}\n', b'{"type": "batch", "format": 1, "id": 3}\n'):
        path.write_bytes(text)
        with pytest.raises(BatchError):
            journal.load(path)


def test_resume_takes_no_further_settings(tmp_path, capsys):
    assert command.main(["--resume", str(tmp_path / "x.batch.jsonl"), "--seed", "3"]) == 2
    assert "takes everything from the journal" in capsys.readouterr().err
    assert command.main(["--resume", str(tmp_path / "x.batch.jsonl")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_one_group_has_nothing_to_compare(tmp_path, fake, capsys):
    assert command.main([str(written(tmp_path, BASE))]) == 0
    assert f"`ktrxer runs {tmp_path}` lists them" in capsys.readouterr().out
    assert command.main([str(tmp_path / "b.toml"), "--dry-run"]) == 0
    assert "1 combination, 1 repetition" in capsys.readouterr().out


# ---------------------------------------------------------------- dry run


def test_dry_run_says_what_and_how_long_and_does_nothing(tmp_path, fake, capsys):
    text = "repetitions = 30\npause = '8s'\n" + BASE.replace('"1s"', '"60s"') + "[matrix]\nq = ['a', 'b']\n"
    assert command.main([str(written(tmp_path, text)), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "2 combinations, 30 repetitions, interleaved, seed 7" in out
    assert "60 runs take about 70 min" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.toml"]


@pytest.mark.parametrize(("seconds", "text"), [(44.6, "45 s"), (600, "10 min"), (11_100, "3 h 05 min")])
def test_spans(seconds, text):
    assert span(seconds) == text
