# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/reference/flent-names.md against Flent 2.3.0 and against ktrxer: no name of Flent is missing, and each command on the page is one
that `ktrxer` accepts: its options, its values, the parameters of its test, its plot."""

import contextlib
import dataclasses
import io
import json
import re
import shlex
import subprocess
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from ktrxer import catalogue, cli
from ktrxer.batch import spec
from ktrxer.catalogue import extras
from ktrxer.catalogue.table import EXPLAINED, TABLE
from ktrxer.commands import run
from ktrxer.panels import plots, settings
from ktrxer.runners import NAMES
from ktrxer.runners.marks import DSCP
from ktrxer.view import plot_command

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/flent-names.md").read_text()
PYTHON = ROOT / ".venv-flent/bin/python"
HERE = {"Options", "Test parameters", "Keys of batches", "Runners", "Formatters", "Plot types", "Groups of combined plots", "Reducers", "Window"}
SPAN = re.compile(r"`([^`]+)`")


def tables():
    """Of each section: the columns of each row."""
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        found[title] = [[one.strip() for one in line.strip("| ").split(" | ")] for line in text.split("\n") if line.startswith("| `")]
    return found


TABLES = tables()
ROWS = [(title, row) for title, rows in TABLES.items() for row in rows]


@cache
def of_flent():
    if not PYTHON.exists():
        pytest.skip("Flent is not installed in .venv-flent: `make .venv-flent/.ok` does it")
    done = subprocess.run([PYTHON, Path(__file__).with_name("flent_names.py")], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def faults(words):
    """What `ktrxer` says of a command line; empty if the command accepts it."""
    if words[0] == "--version":
        return ""
    if words[0] not in cli.SUBCOMMANDS:
        return f"no subcommand {words[0]}"
    stated = io.StringIO()
    try:
        with contextlib.redirect_stderr(stated), contextlib.redirect_stdout(stated):
            if words[0] == "run":
                given = run.parsed(words[1:])
                catalogue.find(given.test).make(run.setting_of(given), run.parameters_of(given))
                extras.parts(given.beside)
            else:
                given = import_module(cli.SUBCOMMANDS[words[0]].module).parser().parse_args(words[1:])
                if words[0] == "plot":
                    settings.parse(plot_command._settings(given))
                    plots.known(given.plot or "all")
    except SystemExit as ended:
        return "" if not ended.code else stated.getvalue()
    except Exception as error:
        return str(error)
    return ""


def test_each_name_of_flent_is_on_the_page_and_no_other_one():
    known = of_flent()
    assert known["version"] == "2.3.0"
    assert set(TABLES) == HERE
    for title, rows in TABLES.items():
        names = [name for row in rows for name in SPAN.findall(row[0])]
        assert len(set(names)) == len(names), title
        assert sorted(names) == sorted(known[title]), title
    keys = {SPAN.findall(row[0])[0]: SPAN.findall(row[1])[0] for row in TABLES["Options"]}
    assert keys == known["Options"]


def test_each_test_of_flent_is_in_the_catalogue_or_explained():
    assert sorted({*TABLE, *EXPLAINED} & {*of_flent()["Tests"]}) == of_flent()["Tests"]
    assert {*of_flent()["Markings"]} <= {*DSCP}


@pytest.mark.parametrize(("title", "row"), ROWS, ids=[f"{title}-{SPAN.findall(row[0])[0]}" for title, row in ROWS])
def test_each_row_names_a_counterpart_that_exists_or_the_reason(title, row):
    there = row[-1]
    if there.startswith("no counterpart: "):
        assert len(there) > len("no counterpart: ") + 20
    else:
        assert SPAN.search(there) or "](#" in there, "neither a counterpart nor a reason"
    for span in SPAN.findall(there):
        if span.startswith("ktrxer "):
            assert not faults(shlex.split(span)[1:]), span
    for key in re.findall(r"key `([a-z_]+)`", there):
        assert key in spec.KEYS
    for key in re.findall(r"key `hooks`: `([a-z_]+)`", there):
        assert key in {field.name for field in dataclasses.fields(spec.Hook)}
    for name in re.findall(r"runner `([a-z_]+)`", there):
        assert name in NAMES
    for words in re.findall(r"\*([^*]+)\*", there.replace("`", "") if title == "Window" else ""):
        assert words.lower() in _page_words(), words


@cache
def _page_words():
    return "".join(path.read_text() for path in sorted((ROOT / "web").glob("src/**/*.ts")) + [ROOT / "web/explorer.html"]).lower()


def test_a_command_that_does_not_exist_is_a_fault():
    for words in (
        "runn rrul -H far", "run rrul -H far --no-such-option", "run rrul -H far --set nothing=1", "run rrul -H far --cc a,b,c",
        "run rrul -H far --with nothing", "plot RUN --plot nothing", "plot RUN --bounds-y low", "run nothing -H far",
    ):  # fmt: skip
        assert faults(words.split()), words
