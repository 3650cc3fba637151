# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer tests` with broken recipes of a user: each hides no other one."""

import json

import pytest
from ktrxer import catalogue
from ktrxer.catalogue.recipe import PlanError, Setting
from ktrxer.commands import new, tests


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "ktrxer" / "tests"


BROKEN = {
    "syntax": ("def (\n", "syntax.py, line 1 (def (): SyntaxError: "),
    "at_import": ('"""Mine."""\nimport no_such_module\n', "at_import.py, line 2 (import no_such_module): ModuleNotFoundError: "),
    "in_plan": ("from ktrxer.catalogue.recipe import *\n\ndef plan(s, p):\n    return 1 / 0\nTEST = Test('in_plan', 'x', plan)\n",
                "in_plan.py, line 4 (return 1 / 0): ZeroDivisionError: "),
    "hosts": ("from ktrxer.catalogue.recipe import *\n\ndef plan(s, p):\n    return icmp(s)\nTEST = Test('hosts', 'x', plan, hosts=2)\n",
              "hosts.py: TypeError: "),
}  # fmt: skip


def test_a_broken_test_of_a_user_hides_no_other(folder, capsys):
    assert new.main(["test", "two_uploads"]) == 0
    for name, (text, _) in BROKEN.items():
        (folder / f"{name}.py").write_text(text)
    capsys.readouterr()
    assert tests.main(["--json"]) == 1
    out, err = capsys.readouterr()
    made = {one["name"]: one for one in json.loads(out)["tests"]}
    assert list(made) == list(catalogue.summaries()) and len(made["two_uploads"]["series"]) == 4
    assert {name for name, one in made.items() if "error" in one} == set(BROKEN)
    for name, (_, why) in BROKEN.items():
        assert why in made[name]["error"] and made[name]["error"] in err and made[name]["series"] == []
    assert made["at_import"]["summary"].startswith("Mine. (")


def test_a_broken_test_among_those_that_are_explained(folder, capsys):
    folder.mkdir(parents=True)
    for name, (text, _) in BROKEN.items():
        (folder / f"{name}.py").write_text(text)
    for name, (_, why) in BROKEN.items():
        assert tests.main([name, "rrul", "ping"]) == 2
        out, err = capsys.readouterr()
        assert why in err and "rrul: " in out and "\n\nping: " in out
    assert tests.main(["no_such", "rrul"]) == 2
    out, err = capsys.readouterr()
    assert "no test is called 'no_such'" in err and "rrul: " in out


def test_the_list_with_a_broken_file(folder, capsys):
    """The list executes no file, so it shows errors of syntax alone."""
    folder.mkdir(parents=True)
    (folder / "at_import.py").write_text(BROKEN["at_import"][0])
    assert tests.main([]) == 0
    (folder / "syntax.py").write_text(BROKEN["syntax"][0])
    capsys.readouterr()
    assert tests.main([]) == 1
    out, err = capsys.readouterr()
    assert "rrul " in out and "at_import" in out and "syntax " in out
    assert "syntax: cannot be read: SyntaxError: " in err


def test_a_bug_in_a_file_that_a_relative_path_names(tmp_path, monkeypatch):
    """Python names the file of a module by its absolute path, so the line was missing."""
    (tmp_path / "bug.py").write_text("from ktrxer.catalogue.recipe import *\n\ndef plan(setting, p):\n    return 1 / 0\nTEST = Test('bug', 'x', plan)\n")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    with pytest.raises(PlanError, match=r"^\.\./bug\.py, line 4 \(return 1 / 0\): ZeroDivisionError"):
        catalogue.find("../bug.py").make(Setting("h"), {})
