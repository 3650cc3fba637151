# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run --again FILE`: the same settings again, what is different, and files that must not choose what is executed."""

import dataclasses
import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest
from ktrxer import catalogue
from ktrxer.catalogue.recipe import Setting
from ktrxer.cli import main
from ktrxer.run import again, provenance
from ktrxer.run.schedule import make
from ktrxer.runners import Options
from ktrxer.store import open_run

HERE = Path(__file__).parent
# Each test begins with a stored run, which takes a second.
pytestmark = pytest.mark.slow
KEPT: dict[tuple[str, ...], Path] = {}  # stored runs by their words, because each takes a second

# A recipe of a user, which leaves a trace of its execution.
OWN = """from pathlib import Path
from ktrxer.catalogue.recipe import *
with Path("executed").open("a") as trace:
    trace.write("x")
@dataclass(frozen=True)
class Parameters:
    streams: int = parameter(1, "flows", low=1, high=9)
    marked: bool = parameter(False, "with marks")
def plan(setting, p):
    return combine(icmp(setting), uploads(setting, numbered("TCP upload", p.streams)))
TEST = Test("mine", "some uploads", plan, Parameters)
"""


@pytest.fixture(scope="module", autouse=True)
def kept(tmp_path_factory):
    KEPT.clear()
    KEPT[()] = tmp_path_factory.mktemp("kept")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder of its own, and the double of the measuring commands."""
    program = tmp_path / "fake"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S {HERE / 'fake_ktrxer.py'} good \"$@\"\n")
    program.chmod(0o755)
    monkeypatch.setenv("KTRXER_BIN", str(program))
    monkeypatch.delenv("KTRXER_LAB_TOPOLOGY", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def go(capsys, *words):
    """Exit status, output, complaints."""
    try:
        status = main(["run", *map(str, words)])
    except SystemExit as end:
        status = end.code
    told = capsys.readouterr()
    return status, told.out, told.err


def first(capsys, *words):
    if words not in KEPT:
        status, out, err = go(capsys, *words, "-H", "localhost", "--for", "0.3", "--delay", "0.1", "-q", "--no-extras", "-D", KEPT[()])
        assert status in (0, 3), err
        KEPT[words] = Path(out.strip())
    return KEPT[words]


def changed(path, **members):
    """A copy of a run whose meta.json has other members; of `metadata` and `settings`, those of an inner object."""
    made = path.with_name(f"changed-{path.name}")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == "meta.json":
                meta = json.loads(data)
                for name, value in members.items():
                    meta[name] = meta[name] | value if isinstance(value, dict) and isinstance(meta.get(name), dict) else value
                data = json.dumps(meta).encode()
            new.writestr(entry, data)
    return made


def test_a_run_of_the_catalogue_again(capsys, tmp_path):
    path = first(capsys, "tcp_nup", "--set", "upload_streams=3", "-i", "20ms", "-t", "some words", "--sample-interval", "50ms", "-4")
    status, out, err = go(capsys, "--again", path, "--no-extras", "--json")
    told = json.loads(out)
    old, new = open_run(path), open_run(told["file"])
    assert status in (0, 3) and err.startswith(f"ktrxer run: again {path}: tcp_nup to localhost (127.0.0.1), 0.5 s\n"), err
    same = ("host", "length_s", "delay_s", "probe_interval_ns", "sample_interval_ns", "timeout_ns", "port", "precise", "family", "parameters")
    assert {name: new.meta.settings[name] for name in same} == {name: old.meta.settings[name] for name in same}
    assert new.meta.settings["parameters"]["upload_streams"] == 3 and new.meta.settings["family"] == "-4"
    assert [(one.name, one.kind) for one in new.meta.series] == [(one.name, one.kind) for one in old.meta.series]
    assert [runner.parameters for runner in new.meta.runners] == [runner.parameters for runner in old.meta.runners]
    assert (new.meta.test, new.meta.title, new.meta.targets) == ("tcp_nup", "some words", ["localhost"])
    assert told["again"] == new.meta.metadata["again"] and told["again"]["id"] == old.meta.id and told["again"]["file"] == path.name
    assert told["again"]["different"] == [
        "the state of this host (kernel settings, device, qdisc) cannot be compared: one of the runs did not record it"]  # fmt: skip


def test_another_name_of_a_recipe_again(capsys):
    path = first(capsys, "tcp_4up")
    status, out, _ = go(capsys, "--again", path, "--no-extras", "-q")
    assert open_run(out.strip()).meta.test == open_run(path).meta.test and status in (0, 3)


def test_another_test_than_the_stored_one_is_refused(capsys):
    """tcp_download with the parameters of a stored upload would be an upload by another name."""
    path = first(capsys, "tcp_upload")
    status, out, err = go(capsys, "tcp_download", "--again", path, "--dry-run")
    assert (status, out) == (1, "") and err == f"ktrxer run: {path}: it is a run of tcp_upload, not of tcp_download: --again repeats a run with its own test\n"
    assert go(capsys, "tcp_upload", "--again", path, "--dry-run")[0] == 0


def test_a_dry_run_names_what_differs_and_measures_nothing(capsys, tmp_path):
    path = changed(first(capsys, "ping"), version="0.0.1", host={"name": "elsewhere", "kernel": "2.6.32"})
    before = sorted(tmp_path.iterdir())
    status, out, err = go(capsys, "--again", path, "--dry-run")
    assert status == 0 and "Nothing was measured." in out and sorted(tmp_path.iterdir()) == before
    lines = [line.removeprefix("ktrxer run:   ") for line in err.splitlines()]
    assert lines[:2] == [f"ktrxer run: again {path}: ping to localhost (127.0.0.1), 0.3 s", "ktrxer run: these things differ:"], lines
    assert any(line.startswith("ktrxer: it was 0.0.1, it is ") for line in lines)
    assert any(line.startswith("kernel: it was 2.6.32, it is ") for line in lines)
    assert any(line.startswith("this host: it was elsewhere, it is ") for line in lines)


def test_where_the_far_end_is_may_be_said_anew(capsys):
    path = changed(first(capsys, "ping"), targets=["nowhere.invalid"], settings={"host": "nowhere.invalid"})
    status, _, err = go(capsys, "--again", path)
    assert status == 1 and "'nowhere.invalid': no such host" in err
    status, _, err = go(capsys, "--again", path, "-H", "localhost", "-p", "8621", "--dry-run")
    assert status == 0 and "  far end: it was nowhere.invalid, it is localhost" in err and "  port: it was 8620, it is 8621" in err


@pytest.mark.parametrize("words, message", [
    (["--for", "5"], "--for: not with --again, because the stored run has it"), (["-l", "60"], "--for: not with --again"),
    (["--set", "a=b"], "--set: not with --again"), (["--cc", "bbr"], "--cc: not with --again"), (["--precise"], "--precise: not with --again"),
    (["-i", "10ms"], "-i/--interval: not with --again"),
])
def test_what_the_stored_run_has_cannot_be_given(capsys, words, message):
    status, _, err = go(capsys, "--again", "any.ktrxer", *words)
    assert status == 2 and err.count("\n") == 1 and message in err


def test_consent_needs_a_run(capsys):
    status, _, err = go(capsys, "rrul", "-H", "localhost", "--trust-recipe")
    assert status == 2 and "--trust-recipe goes with --again" in err


# ---------------------------------------------------------------------------------------------------- recipes of their own


@pytest.fixture
def own(capsys, tmp_path):
    """A stored run of a user's recipe, whose file is not there any more."""
    source = tmp_path / "mine.py"
    source.write_text(OWN)
    path = first(capsys, "./mine.py", "--set", "streams=2", "--set", "marked=yes")
    source.unlink()
    (tmp_path / "executed").unlink(missing_ok=True)
    return path


def test_a_stored_recipe_is_not_executed_without_consent(own, capsys, tmp_path):
    status, _, err = go(capsys, "--again", own)
    assert status == 1 and err.count("\n") == 1 and "its recipe mine.py is a program of its author" in err and "--trust-recipe" in err
    assert not (tmp_path / "executed").exists()


def test_a_stored_recipe_with_consent(own, capsys, tmp_path):
    status, out, err = go(capsys, "--again", own, "--trust-recipe", "--no-extras", "--json")
    assert (tmp_path / "executed").exists() and status in (0, 3)
    digest = hashlib.sha256(OWN.encode()).hexdigest()
    assert f"the recipe mine.py is executed, because --trust-recipe was given: 11 lines, sha256 {digest}, from {own}" in err.splitlines()[0]
    new = open_run(json.loads(out)["file"])
    assert new.meta.settings["parameters"] == {"streams": 2, "marked": True}
    assert new.meta.metadata["recipe"] == open_run(own).meta.metadata["recipe"], "the new run can be repeated, too"


def test_a_copy_of_the_recipe_that_the_user_names(own, capsys, tmp_path):
    (tmp_path / "copy.py").write_text(OWN.replace("some uploads", "other words"))
    status, _, err = go(capsys, "./copy.py", "--again", own, "--dry-run")
    assert status == 0 and "the recipe mine has changed since: its sha256 was " in err


@pytest.mark.parametrize("recipe", [
    {"source": OWN + "\n# more"}, {"source": None}, {"source": 5}, {"sha256": "0" * 64}, {"sha256": None},
])
def test_a_stored_recipe_that_is_not_whole(own, capsys, tmp_path, recipe):
    stored = open_run(own).meta.metadata["recipe"]
    status, _, err = go(capsys, "--again", changed(own, metadata={"recipe": stored | recipe}), "--trust-recipe")
    assert status == 1 and err.count("\n") == 1 and "is not whole in the file" in err
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("file", ["../../mine.py", "/etc/cron.d/x.py", "a\nb.py", "", "-x.py", "x" * 300 + ".py", ".py", "$(id).py"])
def test_the_name_of_a_stored_recipe_is_no_path(own, capsys, tmp_path, file):
    stored = open_run(own).meta.metadata["recipe"]
    before = set(tmp_path.rglob("*"))
    status, _, err = go(capsys, "--again", changed(own, metadata={"recipe": stored | {"file": file}}), "--trust-recipe", "--dry-run")
    assert status == 0, err
    after = {path.name for path in tmp_path.rglob("*")} - {path.name for path in before}
    assert after == {"executed"}


def test_a_file_that_gives_the_catalogues_name_to_its_own_recipe(own, capsys, tmp_path):
    """The catalogue's recipe of this name is used, and never the source in the file."""
    stored = open_run(own).meta.metadata["recipe"] | {"name": "ping", "catalogue": True}
    path = changed(own, test="ping", metadata={"recipe": stored}, settings={"parameters": {}})
    status, _, err = go(capsys, "--again", path, "--dry-run")
    assert status == 0 and "the recipe ping has changed since" in err and not (tmp_path / "executed").exists()
    for claimed in (False, None):
        path = changed(own, test="ping", metadata={"recipe": stored | {"catalogue": claimed}}, settings={"parameters": {}})
        status, _, err = go(capsys, "--again", path, "--dry-run")
        assert status == 1 and "a program of its author" in err and not (tmp_path / "executed").exists()


def test_a_recipe_that_the_catalogue_does_not_have(own, capsys):
    stored = open_run(own).meta.metadata["recipe"] | {"name": "no_such_test", "catalogue": True}
    status, _, err = go(capsys, "--again", changed(own, metadata={"recipe": stored}), "--trust-recipe")
    assert status == 1 and "the recipe 'no_such_test' is not in the catalogue of this version" in err


# ------------------------------------------------------------------------------------------------------------- wrong files


@pytest.mark.parametrize("members, message", [
    ({"settings": {"host": 5}}, "settings.host: should be text"), ({"settings": {"length_s": "60"}}, "settings.length_s: should be a number"),
    ({"settings": {"length_s": 1e30}}, "--for: '1e+30s' is too large: from 200ms to 720h"), ({"settings": {"delay_s": -1}}, "--delay: '-1s'"),
    ({"settings": {"probe_interval_ns": 1}}, "--interval: '0.001us'"), ({"settings": {"port": 0}}, "--port: '0'"),
    ({"settings": {"timeout_ns": 0}}, "--timeout: '0s'"), ({"settings": {"precise": 1}}, "settings.precise"),
    ({"settings": {"host": "-oProxyCommand=id"}}, "names do not begin with a dash"), ({"settings": {"host": "localhost:22"}}, "a host has no port"),
    ({"settings": {"family": "-x"}}, "family is neither -4 nor -6"), ({"settings": {"cc_up": "a,b --x"}}, "congestion control has no possible name"),
    ({"settings": {"parameters": {"no_such": 1}}}, "has no parameter 'no_such' any more"), ({"settings": {"parameters": []}}, "settings.parameters"),
    ({"settings": []}, "settings"), ({"metadata": {"recipe": None}}, "it does not name its recipe"), ({"metadata": {"recipe": 5}}, "it does not name its recipe"),
])
def test_settings_that_cannot_be(capsys, members, message):
    status, out, err = go(capsys, "--again", changed(first(capsys, "ping"), **members))
    assert status in (1, 2) and err.count("\n") == 1 and message in err and not out, err


@pytest.mark.parametrize("value", [0, 99, -1, "x", [1, 2], {"a": 1}, True, 1.5])
def test_parameters_that_cannot_be(capsys, value):
    path = changed(first(capsys, "tcp_nup", "--set", "upload_streams=1"), settings={"parameters": {"upload_streams": value}})
    status, _, err = go(capsys, "--again", path, "--dry-run")
    assert "Traceback" not in err
    assert (status, err.count("\n")) == (1, 1) if value != 99 else status in (0, 3)


def test_an_imported_run_is_not_repeated(capsys):
    plain = changed(first(capsys, "ping"), settings=None)  # else members are added
    for settings in ({}, {"parameters": {"upload_streams": "4"}}):
        path = changed(plain, settings=settings)
        status, _, err = go(capsys, "--again", path)
        assert (status, err) == (1, f"ktrxer run: {path}: it has no settings: it was imported, so `ktrxer run` cannot repeat it\n")


def test_files_that_are_no_runs(capsys, tmp_path):
    (tmp_path / "text.ktrxer").write_text("hello")
    for path, message in ((tmp_path / "text.ktrxer", "text.ktrxer"), (tmp_path / "none.ktrxer", "none.ktrxer"), (tmp_path, "not a run")):
        status, _, err = go(capsys, "--again", path)
        assert status == 1 and err.count("\n") == 1 and message in err


# ----------------------------------------------------------------------------------------------------------- what differs


def both(capsys):
    """Two equal descriptions, and a schedule that fits."""
    meta = open_run(first(capsys, "tcp_upload")).meta
    setting = Setting(**{name: meta.settings[name] for name in (one.name for one in dataclasses.fields(Setting))})
    schedule = make(catalogue.find("tcp_upload").make(setting, {}), setting, Options())
    return meta, schedule


def test_equal_runs_have_no_difference(capsys):
    meta, schedule = both(capsys)
    assert again.differences(meta, meta, schedule) == []


def test_each_difference_is_named(capsys):
    meta, schedule = both(capsys)
    other = dataclasses.replace(meta, version="9.9", metadata=meta.metadata | {"topology": {"name": "access"}}, targets=["other"])
    assert again.differences(other, meta, schedule) == [
        f"ktrxer: it was 9.9, it is {meta.version}", "far end: it was other, it is localhost",
        "it ran in the emulated network access of `ktrxer lab`, which is not there now: `ktrxer lab run` makes it around a command",
    ]  # fmt: skip
    job = schedule.jobs[0].stored
    job.place, job.tool_version = "ssh:router", "5.1"
    assert again.differences(meta, meta, schedule) == [
        f"{job.name}: its place was local, it is ssh:router", f"{job.name}: its tool version was not known, it is 5.1"]  # fmt: skip
    job.name = "another"
    found = again.differences(meta, meta, schedule)
    assert "the process another is new in the plan" in found and any("is not in the plan any more" in line for line in found)


def test_states_of_hosts_are_compared_without_their_counters():
    egress = {"driver": "veth", "qdiscs": [{"kind": "fq", "handle": "8001:", "parameters": {"limit": 5}, "stats": {"drops": 1}}], "offloads": {"tso": True}}
    state = {"sysctls": {"net.core.rmem_max": "1"}, "egress": egress}
    later = {"sysctls": {"net.core.rmem_max": "1"}, "egress": egress | {"qdiscs": [egress["qdiscs"][0] | {"handle": "8002:", "stats": {"drops": 9}}]}}
    assert again.of_hosts(state, later) == []
    later = {"sysctls": {"net.core.rmem_max": "2"}, "egress": egress | {"offloads": {"tso": False}}}
    assert again.of_hosts(state, later) == ["egress.offloads.tso: it was True, it is False", "sysctls.net.core.rmem_max: it was 1, it is 2"]
    htb = {"kind": "htb", "handle": "1:", "parameters": {"r2q": 10, "direct_packets_stat": 3}}
    for change, line in (({"direct_packets_stat": 7}, []), ({"r2q": 20}, ["egress.qdiscs.htb.r2q: it was 10, it is 20"])):
        now = htb | {"parameters": htb["parameters"] | change}
        assert again.of_hosts({"egress": {"qdiscs": [htb]}}, {"egress": {"qdiscs": [now]}}) == line
    assert again.of_hosts(state, state | {"egress": egress | {"qdiscs": [htb]}}) == ["egress.qdiscs: it was fq, it is htb"]
    many = {"sysctls": {f"net.ipv4.tcp_{n}": "1" for n in range(100)}}
    assert len(again.of_hosts(many, {"sysctls": {}})) == again.SHOWN_MOST + 1
    for hostile in (None, [], 5, "x"):
        assert len(again.of_hosts(hostile, state)) == 1
    for hostile in ({"egress": 5}, {"egress": {"qdiscs": [5, None, {"stats": 1}]}}, {"sysctls": [1]}, {"cpu": None}):
        assert all(line.isprintable() for line in again.of_hosts(hostile, state))


def test_the_congestion_control_that_was_used_is_named(capsys):
    run = open_run(first(capsys, "tcp_upload"))
    run.meta.settings["congestion_control"] = {"TCP upload": "bbr"}
    assert (again.settings_of(run).cc_up, again.settings_of(run).cc_down) == ("bbr", "")
    for hostile in ({"TCP upload": "--x"}, {"TCP upload": 5}, [], "x", {"TCP upload": None}):
        run.meta.settings["congestion_control"] = hostile
        assert again.settings_of(run).cc_up == ""


def test_the_catalogues_recipes_are_marked():
    assert all(provenance.recipe(test)["catalogue"] for test in map(catalogue.find, catalogue.summaries()))
