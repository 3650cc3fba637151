# SPDX-License-Identifier: MIT OR Apache-2.0
"""Hooks of a batch, and the files of its runs."""

import time
from pathlib import Path

import pytest
from batches import BASE, calls, fake_fixture, templates_fixture, written  # noqa: F401
from ktrxer.batch import journal
from ktrxer.commands import batch as command


def test_hooks_run_in_order_and_one_beside_ends_with_the_run(tmp_path, fake):
    hooks = [("first", "echo first >> h"), ("before", "echo before {q} {repetition} >> h"), ("after", "echo after >> h"), ("last", "echo last >> h")]
    text = BASE + "[matrix]\nq = ['x', 'y']\n" + "".join(f"[[hooks]]\nwhen = '{when}'\ncommand = '{line}'\n" for when, line in hooks)
    text += "[[hooks]]\nwhen = 'beside'\ncommand = 'echo $$ > pid; exec sleep 100'\n"
    assert command.main([str(written(tmp_path, "order = 'given'\n" + text))]) == 0
    assert (tmp_path / "h").read_text().splitlines() == ["first", "before x 1", "after", "before y 1", "after", "last"]
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_hooks_get_the_file_of_the_run(tmp_path, fake):
    """Before, beside and after a run, also of its second try, whose file has another name. They run in the folder of the batch file."""
    hooks = [(when, f'echo {when} {{file}} "$KTRXER_FILE" >> h') for when in ("before", "beside", "after")]
    hooks += [(when, f'echo {when} "$KTRXER_FILE" >> h') for when in ("first", "last")]
    text = "order = 'given'\ndirectory = 'out'\n" + BASE.replace("valid", "once") + "name = '{q}/{batch_time}-{batch}'\n[matrix]\nq = ['x', 'y']\n"
    text += "".join(f"[[hooks]]\nwhen = '{when}'\ncommand = '{line}'\n" for when, line in hooks)
    assert command.main([str(written(tmp_path, text))]) == 0
    made = journal.load(tmp_path / "out/b.batch.jsonl").tries
    assert [one.verdict for one in made] == ["invalid", "valid"] * 2
    began = made[0].file.removeprefix("x/").removesuffix("-b.ktrxer")
    assert [one.file for one in made] == [f"{q}/{began}-b{n}.ktrxer" for q in "xy" for n in ("", "-2")]
    assert all((tmp_path / "out" / one.file).is_file() for one in made)
    found = [line.split(" ") for line in (tmp_path / "h").read_text().splitlines()]
    assert found[0] == ["first", ""] and found[-1] == ["last", ""]
    expected = {(when, str(tmp_path / "out" / one.file)) for one in made for when in ("before", "beside", "after")}
    assert {(when, file) for when, file, _ in found[1:-1]} == expected and all(file == again for _, file, again in found[1:-1])


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", ".x", "a/..", "x" * 300])
def test_a_name_of_a_file_that_is_none_is_refused(tmp_path, name, capsys):
    assert command.main([str(written(tmp_path, BASE + f"name = '{name}'")), "--dry-run"]) == 2
    assert "run.name: " in capsys.readouterr().err and not (tmp_path.parent / "x.ktrxer").exists()


def test_the_file_of_a_run_is_no_option_of_it(tmp_path, capsys):
    assert command.main([str(written(tmp_path, BASE.replace("valid", "{file}"))), "--dry-run"]) == 2
    assert "no variable 'file'" in capsys.readouterr().err


@pytest.mark.parametrize(("when", "ran"), [("before", 0), ("after", 1), ("beside", 1)])
def test_an_essential_hook_that_fails_fails_the_run(tmp_path, fake, when, ran, capsys):
    text = "retries = 0\n" + BASE + f"[[hooks]]\nwhen = '{when}'\ncommand = 'exit 3'\nessential = true\n"
    assert command.main([str(written(tmp_path, text))]) == (3 if ran else 1)
    assert len(calls(tmp_path)) == ran
    out, err = capsys.readouterr()
    assert "1 run in 1 try: 0 valid" in out
    assert "exit 3" in err
    assert [made.verdict for made in journal.load(tmp_path / "b.batch.jsonl").tries] == ["invalid" if ran else None]


def test_a_hook_that_is_not_essential_is_named_and_the_run_counts(tmp_path, fake, capsys):
    assert command.main([str(written(tmp_path, BASE + "[[hooks]]\ncommand = 'exit 3'\n"))]) == 0
    assert "hook `exit 3` ended with 3" in capsys.readouterr().err


def test_an_essential_first_hook_ends_the_batch(tmp_path, fake, capsys):
    text = BASE + "[[hooks]]\nwhen = 'first'\ncommand = 'exit 3'\nessential = true\n"
    assert command.main([str(written(tmp_path, text))]) == 1
    assert not calls(tmp_path)


def test_a_hook_that_hangs_is_ended_at_its_limit(tmp_path, fake, capsys):
    began = time.monotonic()
    assert command.main([str(written(tmp_path, BASE + "[[hooks]]\ncommand = 'sleep 60'\ntimeout = '200ms'\n"))]) == 0
    assert time.monotonic() - began < 20
    assert "did not end within 0.2 s" in capsys.readouterr().err
