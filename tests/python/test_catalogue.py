# SPDX-License-Identifier: MIT OR Apache-2.0
"""The whole catalogue: each name makes a plan with its defaults and with each parameter at its limits; parity with Flent; tests of users."""

import dataclasses
import re
import socket
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from flent_series import SERIES
from ktrxer import catalogue, runners
from ktrxer.catalogue import plots, reference
from ktrxer.catalogue.recipe import (
    NoRunner,
    PlanError,
    Setting,
    combine,
    example,
    parameters_of,
    udp,
)
from ktrxer.catalogue.table import EXPLAINED, TABLE
from ktrxer.commands import new, run
from ktrxer.panels import plots as names
from ktrxer.run import addresses, checks
from ktrxer.run.schedule import Options, make

ROOT = Path(__file__).resolve().parents[2]
S = 10**9
# Runners of tools that tests of the catalogue name, which may be missing here.
OTHERS = {"http", "iperf", "iperf3", "netperf", "number", "qdisc", "video"}


def planned(name, setting=None, **given):
    """The plan and its processes; None where a runner of OTHERS is not installed."""
    test = catalogue.find(name)
    setting = setting or example(test)
    try:
        plan = test.make(setting, given)
    except NoRunner as error:
        missing = re.search(r"no runner is called '(\w+)'", str(error))
        assert missing and missing[1] in OTHERS and missing[1] not in runners.NAMES
        return None
    return plan, make(plan, setting, Options("ktrxer"))


def limits_of(test):
    """Each parameter alone at each of its limits, as texts."""
    hints = typing.get_type_hints(test.parameters)
    for one in dataclasses.fields(test.parameters):
        kind, low, high = hints[one.name], one.metadata["low"], one.metadata["high"]
        several = typing.get_origin(kind) is tuple
        inner = typing.get_args(kind)[0] if several else kind
        if typing.get_origin(inner) is typing.Literal:
            yield from ((one.name, str(choice)) for choice in typing.get_args(inner))
        elif inner is bool:
            yield from ((one.name, word) for word in ("yes", "no"))
        elif inner in (int, float):
            assert low is not None and high is not None, f"{test.name}: parameter {one.name} has no limits"
            yield from ((one.name, str(value)) for value in (low, high))
            yield from ((one.name, word) for word in one.metadata["words"])


@pytest.mark.parametrize("name", TABLE)
def test_each_test_makes_a_plan(name):
    found = planned(name)
    if found is not None:
        plan, schedule = found
        # Series of the state of a host are known in the run only.
        assert plan.plots and (schedule.series or all(job.runner.auxiliary for job in schedule.jobs))
        assert [s.id for s in schedule.series] == list(range(len(schedule.series)))
        assert all(step.to_s <= schedule.length_ns / S for step in plan.steps)


# A limit of one parameter that needs another value of another one.
IMPOSSIBLE = {
    ("bursts", "burst_length", "3600"): "no burst fits",
    ("bursts_11e", "burst_length", "3600"): "no burst fits",
    ("dslreports_8dn", "download_streams", "0"): "nothing would load the path",
    ("tcp_upload_1000", "upload_streams", "0"): "nothing would load the path",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_each_parameter_at_its_limits(name):
    test = catalogue.find(name)
    for key, text in limits_of(test):
        if typing.get_origin(typing.get_type_hints(test.parameters)[key]) is tuple and key == "stream_delays" and text == "3600":
            with pytest.raises(PlanError, match="it would begin 3600 s after the beginning of a load of 60 s"):
                test.make(example(test), {key: text})
        elif (name, key, text) in IMPOSSIBLE:
            with pytest.raises(PlanError, match=IMPOSSIBLE[name, key, text]):
                test.make(example(test), {key: text})
        elif planned(name, **{key: text}) is None:
            break  # its runner is missing


@pytest.mark.parametrize("name", TABLE)
def test_beyond_each_limit(name):
    test = catalogue.find(name)
    for one in dataclasses.fields(test.parameters):
        low, high = one.metadata["low"], one.metadata["high"]
        for text in (str(low - 1), str(high + 1), "x") if low is not None and high is not None else ():
            with pytest.raises(PlanError, match=f"parameter {one.name}: "):
                parameters_of(test, {one.name: text})


def expanded(given):
    for name in given:
        start = re.fullmatch(r"(.*)::1\.\.(\d+)", name)
        yield from (f"{start[1]}::{n}" for n in range(1, int(start[2]) + 1)) if start else (name,)


# Series of Flent that have other names here, with the reason.
ELSEWHERE = {
    "dslreports_8dn": (r"Ping \(ms\) TCP BE\d", "no runner makes requests over TCP: the probes are UDP"),
    "iterated_bidirectional": (r"TCP (up|down)load", "each iteration has series of its own: TCP upload::1"),
}
SETTINGS = {"upload_streams": "3", "download_streams": "3", "bidir_streams": "4", "ipmi_power_command": "echo 5"}


@pytest.mark.parametrize("name", [name for name in SERIES if name not in EXPLAINED])
def test_series_have_flents_names(name):
    test = catalogue.find(name)
    setting = Setting("HOST", more_hosts=("HOST2", "HOST3")) if "_var" in name and test.hosts[1] > 1 else example(test)
    free = {field.name for field in dataclasses.fields(test.parameters)} - test.given.keys()
    found = planned(name, setting, **{key: value for key, value in SETTINGS.items() if key in free})
    if found is None:
        return  # its runner is missing: test_each_test_makes_a_plan accepts only those of OTHERS
    here = {series.name for series in found[1].series} | {one.name for one in found[0].runs}
    pattern, _ = ELSEWHERE.get(name, ("$^", ""))
    absent = [series for series in expanded(SERIES[name]) if series not in here]
    assert not [series for series in absent if not re.fullmatch(pattern, series)]
    assert bool(absent) == (name in ELSEWHERE)


def test_all_84_names_of_flent():
    ours = {name for name, entry in TABLE.items() if entry.family == "of ktrxer alone"}
    assert len(SERIES) == 84 and {*TABLE, *EXPLAINED} - ours == SERIES.keys() and not TABLE.keys() & EXPLAINED.keys()
    recipes = {entry.recipe for name, entry in TABLE.items() if name not in ours}
    files = {path.stem for path in (ROOT / "python/ktrxer/catalogue").glob("*.py") if "\nTEST = Test(" in path.read_text()}
    assert files == {entry.recipe for entry in TABLE.values()}, "a recipe that no name has, or a name without a recipe"
    print(f"figure: {len(SERIES.keys() & TABLE.keys())} of 84 names of Flent by {len(recipes)} recipes; {len(EXPLAINED)} explained")
    for name in EXPLAINED:
        with pytest.raises(PlanError, match=f"{name} has no recipe: the test "):
            catalogue.find(name)


def test_the_page_is_that_of_the_table():
    page = (ROOT / "docs/reference/catalogue.md").read_text()
    assert page == reference.page(), "python -m ktrxer.catalogue.reference > docs/reference/catalogue.md"


def test_each_plot_that_a_test_may_name_exists():
    assert set(plots.NAMES) == {*names.PLOTS, *names.OWN} and plots.SCALED == names.SCALED


@pytest.mark.parametrize("name, hosts, why", [
    ("rtt_fair", ("a", "b", "c"), r"rtt_fair has 4 far ends: give -H 4 times; it was given 3 times$"),
    ("rrul", ("a", "b"), r"rrul has 1 far end: give -H 1 time; it was given 2 times$"),
    ("rtt_fair_var", ("a",) * 65, r"has 1 to 64 far ends: give -H 1 to 64 times; it was given 65 times$"),
])
def test_the_number_of_far_ends(name, hosts, why):
    with pytest.raises(PlanError, match=why):
        catalogue.find(name).make(Setting(hosts[0], more_hosts=hosts[1:]), {})


def test_several_far_ends_and_directions():
    setting = Setting("a", more_hosts=("b", "a"))
    plan, schedule = planned("rtt_fair_var_mixed", setting, data_directions="u,d,ud", markings="BE,CS1", stream_delays="0,0,2")
    series = {one.name: one for one in schedule.series if one.kind == "bytes"}
    assert series.keys() == {"TCP upload BE a", "TCP upload BE a//2", "TCP download BE b", "TCP download BE a//2"}
    assert {one.group for one in series.values()} == {"TCP upload", "TCP download"}
    late = next(job for job in schedule.jobs if job.stored.name == "TCP upload of TCP upload BE a//2")
    assert (late.from_ns, late.length_ns, late.stored.host) == (7 * S, 58 * S, "a") and late.command()[3] == "a"
    assert [one.parameters.host for one in plan.runs if one.runner == "ping"] == ["a", "b", "a"]


def test_staggered_starts_and_their_steps():
    plan, schedule = planned("tcp_2up_square", Setting("h", 60, 10))
    when = {one.name: (one.when.delay_s, one.when.length_s, one.parameters.cc) for one in plan.runs}
    assert when == {
        "TCP cubic": (0, 60, ("cubic",)), "TCP cubic 2": (10, 10, ("cubic",)), "TCP reno": (30, 10, ("reno",)), "TCP westwood": (50, 10, ("westwood",)),
    }
    assert schedule.length_ns == 60 * S
    assert [(step.name, step.from_s, step.to_s) for step in plan.steps][:3] == [("cubic", 0, 10), ("cubic, cubic 2", 10, 20), ("cubic", 20, 30)]
    assert planned("tcp_2up_delay", Setting("h", 60, 10))[1].length_ns == 70 * S
    assert planned("tcp_4up_squarewave", Setting("h", 60, 10))[1].length_ns == 120 * S
    with pytest.raises(PlanError, match="--delay must be above 0"):
        planned("tcp_2up_delay", Setting("h", 60, 0))
    plan, _ = planned("udp_flood_var_up_stagger", Setting("a", 60, 5, more_hosts=("b", "c")))
    floods = [(one.when.delay_s, one.when.length_s) for one in plan.runs if one.runner == "flow"]
    assert floods == [(5, 60), (25, 40), (45, 20)]
    plan, schedule = planned("iterated_bidirectional", Setting("h", 10, 2), iterations="2")
    assert schedule.length_ns == 26 * S and [step.from_s for step in plan.steps] == [2, 14]
    assert [(p.name, p.from_ns, p.to_ns) for p in schedule.phases] == [("idle_before", 0, 2 * S), ("load", 2 * S, 24 * S), ("idle_after", 24 * S, 26 * S)]


def test_command_lines():
    def command(name, process, **given):
        return " ".join(next(job for job in planned(name, **given)[1].jobs if job.stored.name == process).command())

    flood = command("udp_flood", "UDP upload", udp_bandwidth="6M", udp_pktsize="1000", markings="EF")
    assert "flow up HOST" in flood and "--udp --model constant --payload 1000 --bitrate 6000000 --dscp 46" in flood and "--flood" not in flood
    assert "--flood" in command("udp_flood", "UDP upload", flood="yes")
    assert "--interval 20000000ns" in (voip := command("voip", "VoIP", voip_marking="EF")) and "--dscp 46" in voip and "--payload 172" in voip
    assert "-6" in command("rrul46", "TCP upload IPv6").split() and "-4" in command("rrul46", "Ping (ms) UDP BE, Ping (ms) UDP BK").split()
    assert "--ecn ect1" in command("l4s", "Ping (ms) UDP L4S") and "--tlv cos" in command("l4s", "Ping (ms) UDP L4S")
    assert "--ecn ect1,off" in command("l4s", "UDP upload") and "--cc prague" in command("l4s", "TCP upload L4S")
    assert "--dscp 4 " in command("rrul_prio", "Ping (ms) ICMP PRIO") + " "
    assert "--cc cubic,bbr --dscp 0,0,8,8" in command("cubic_bbr", "TCP upload")
    assert "--cc ledbat" in command("rrul_torrent", "TCP upload Torrent") and "--cc" not in command("rrul_torrent", "TCP upload")


@pytest.mark.parametrize("text, bits", [("6M", 6_000_000), ("64k", 64_000), ("1.5Gbit/s", 1_500_000_000), ("5000", 5000)])
def test_bit_rates(text, bits):
    assert parameters_of(catalogue.find("udp_flood"), {"udp-bandwidth": text}).udp_bandwidth == bits, "Flent's names may have a dash"


def test_values_that_cannot_be():
    for name, given, why in (
        ("udp_flood", {"udp_bandwidth": "fast"}, "parameter udp_bandwidth: 'fast' is not a bit rate: no digits"),
        ("udp_flood", {"udp_bandwidth": "10"}, "parameter udp_bandwidth: 10; it may be 1000 to"),
        ("rrul", {"labels": ",".join(map(str, range(65)))}, "parameter labels: 65 values; there may be 64"),
        ("rrul", {"labels": "a,a"}, "two series of the test are called"),
        ("rrul", {"ping_labels": "a,a"}, "two labels of the test are 'a'"),
        ("tcp_2up_delay", {"labels": "a,a"}, "two labels of the test are 'a'"),
        ("tcp_2up_delay", {"starts": "0,100", "lengths": "length,rest"}, "stream 2: it would begin when all other flows have ended"),
        ("tcp_2up_delay", {"starts": ""}, "labels, starts and lengths need a value each"),
        ("rrul", {"labels": ""}, "TCP upload: 0 flows"),
        ("rrul", {"markings": "64"}, "no marking is called '64'; there are BE, .* and 0 to 63"),
        ("rtt_fair_var", {"data_directions": "u,x"}, "parameter data_directions: 'x'; it may be u, d, ud"),
        ("rtt_fair_var", {"data_directions": ""}, "data_directions is empty"),
        ("rrul_var", {"labels": "x,x"}, "two labels of the test are 'x'"),
        ("power_usage", {"mqtt_topic": ""}, "neither mqtt_topic nor ipmi_power_command"),
        ("command-output", {"command": " "}, "the command is empty"),
        ("command-output", {"command": "'"}, "cannot be split into words"),
        ("bursts", {"burst_length": "58"}, r"no burst fits into 60 s \(--for\): the first begins after 5 s \(--delay\) and lasts 58 s \(burst_length\)$"),
        ("voip", {"load": "all"}, "'all'; it may be none, up, down, rrul"),
    ):
        with pytest.raises(PlanError, match=why):
            catalogue.find(name).make(example(catalogue.find(name)), given)


# ------------------------------------------------------------------------------------------------------------- tests of users


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "ktrxer" / "tests"


def test_new_writes_a_test_that_works(folder, capsys):
    assert new.main(["test", "two_uploads"]) == 0
    path = folder / "two_uploads.py"
    out = capsys.readouterr().out
    assert str(path) in out
    named = re.findall(r"/\S+/catalogue/\w+\.py", out)
    assert [Path(one).name for one in named] == ["recipe.py", "rrul.py"] and all(Path(one).exists() for one in named) and "docs/" not in out  # `make install` installs no docs
    test = catalogue.find("two_uploads")
    plan = test.make(Setting("h", 10, 1), {"gap_s": "3", "marking": "EF"})
    assert make(plan, Setting("h", 10, 1), Options("k")).length_ns == 15 * S
    before = path.read_text()
    assert new.main(["test", "two_uploads"]) == 1 and path.read_text() == before
    assert "exists already, and is left as it is" in capsys.readouterr().err
    assert catalogue.summaries()["two_uploads"] == f"Two uploads, the second of which begins later, beside pings. ({path})"
    assert "two_uploads" in catalogue.summaries()


def test_new_refuses(folder, capsys, tmp_path):
    for words, status, why in (
        (["test", "rrul"], 2, "rrul is a test of ktrxer already"),
        (["test", "../x"], 2, "cannot be the name of a test"),
        (["test", "x" * 42], 2, "cannot be the name"),
        (["test", "mine", "-D", str(tmp_path / "absent")], 1, "cannot be written: No such file"),
    ):
        assert new.main(words) == status
        assert why in capsys.readouterr().err
    assert not folder.exists()
    with pytest.raises(SystemExit):
        new.main(["report", "mine"])
    assert "'report' is not known; it is one of: test" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        new.main(["test"])
    assert "NAME is missing: name of the test: letters" in capsys.readouterr().err


def test_a_file_cannot_replace_a_test_of_the_table(folder):
    folder.mkdir(parents=True)
    (folder / "rrul.py").write_text("raise SystemExit('executed')")
    assert catalogue.find("rrul").path == "" and catalogue.summaries()["rrul"] == TABLE["rrul"].summary


BUGS = (
    ("    return combine(icmp(setting, rate=3))", r"bug.py, line 4 \(return combine\(icmp\(setting, rate=3\)\)\): TypeError: .*rate"),
    ("    return run('ping', 'x', speed=1)", r"bug.py, line 4 \(return run.*: x: runner ping has no parameter speed"),
    ("    return 1 / 0", r"bug.py, line 4 \(return 1 / 0\): ZeroDivisionError: division by zero"),
    ("    raise SystemExit(0)", r"bug.py, line 4 \(raise SystemExit\(0\)\): SystemExit: 0"),
    ("    return 3", r"bug.py: TypeError: `plan` returned int, not a Plan"),
    ("    return combine(icmp(setting), plots=('pings',))", r"bug.py: unknown plot 'pings' of the test; did you mean ping\? There are: all, totals"),
    ("    return combine(icmp(setting), plots=('own',), panels=[Panel('other', 'x', ('*',))])", r"unknown plot 'own' .*other, all"),
    ("    return combine(icmp(setting), steps=[Step('x', 3, 2)])", r"bug.py: step 'x' of the test lasts from 3 s to 2 s"),
    ("    return run('ftp', 'x')", r"bug.py, line 4 .*no runner is called 'ftp'"),
)  # fmt: skip


@pytest.mark.parametrize("line, why", BUGS)
def test_a_bug_in_a_users_test(folder, line, why):
    folder.mkdir(parents=True)
    path = folder / "bug.py"
    path.write_text(f"from ktrxer.catalogue.recipe import *\n\ndef plan(setting, p):\n{line}\nTEST = Test('bug', 'x', plan)\n")
    with pytest.raises(PlanError, match=why) as caught:
        catalogue.find("bug").make(Setting("h"), {})
    assert "\n" not in str(caught.value)


def test_a_users_test_that_ends_the_program(folder):
    """`ktrxer run` ended with status 0 and without a word."""
    folder.mkdir(parents=True)
    (folder / "bug.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(PlanError, match=r"bug.py, line 2 \(sys.exit\(0\)\): SystemExit: 0"):
        catalogue.find("bug")


def test_a_users_plot_of_its_own(folder):
    folder.mkdir(parents=True)
    line = "    return combine(icmp(setting), plots=('own', 'ping_scaled'), panels=[Panel('own', 'x', ('Ping*',))])"
    (folder / "mine.py").write_text(f"from ktrxer.catalogue.recipe import *\n\ndef plan(setting, p):\n{line}\nTEST = Test('mine', 'x', plan)\n")
    assert catalogue.find("mine").make(Setting("h"), {}).plots == ("own", "ping_scaled")


def test_the_summary_of_a_broken_file(folder):
    folder.mkdir(parents=True)
    (folder / "broken.py").write_text("def (\n")
    (folder / "not a name.py").write_text("")
    made = catalogue.summaries()
    assert made["broken"].startswith("cannot be read: SyntaxError: ") and "(broken.py, line 1)" in made["broken"]
    assert "not a name" not in made


def test_an_entry_point(tmp_path, monkeypatch):
    place = tmp_path / "theirs-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text("[ktrxer.tests]\ntheir_ping = their_tests:TEST\ntheir_bug = their_tests:NOTHING\n")
    (tmp_path / "their_tests.py").write_text(
        "from ktrxer.catalogue.recipe import *\nTEST = Test('their_ping', 'x', lambda s, p: icmp(s))\nNOTHING = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert catalogue.find("their_ping").make(Setting("h"), {}).runs and catalogue.summaries()["their_ping"] == "(their_tests:TEST)"
    with pytest.raises(PlanError, match=r"the entry point their_tests:NOTHING: it has no TEST"):
        catalogue.find("their_bug")
    with pytest.raises(PlanError, match="did you mean their_ping"):
        catalogue.find("their_pong")


def test_the_list_imports_no_recipe():
    """It is printed in 0.1 s; most of that is the start of Python."""
    code = "import sys; from ktrxer.commands import tests; tests.main([]); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert "rtt_fair_var_mixed" in done.stdout and "ktrxer.catalogue.table" in loaded
    for module in ("catalogue.recipe", "catalogue.rrul", "runners", "places"):
        assert f"'ktrxer.{module}'" not in loaded
    assert "'numpy'" not in loaded and "'pyarrow'" not in loaded


# ------------------------------------------------------------------------------------------------------------ the command line


def test_settings_of_the_command_line():
    words = ["rtt_fair_var", "-H", "a", "-H", "b", "--set", "tcp_cong_control=bbr,cubic", "--set", "markings=EF"]
    given = run.parser().parse_args(words)
    setting = run.setting_of(given)
    assert (setting.hosts, setting.cc_up, setting.cc_down) == (("a", "b"), "bbr", "cubic") and run.parameters_of(given) == {"markings": "EF"}
    with pytest.raises(PlanError, match="--cc and the parameter tcp_cong_control are the same setting"):
        run.setting_of(run.parser().parse_args([*words, "--cc", "reno"]))


def test_the_trial_of_flows_has_each_marking_and_congestion_control():
    """A far end refuses some markings, and lacks some congestion controls: that is found before the run."""
    for name, count in (("rrul_cs8", 8), ("rrul", 4), ("cubic_bbr", 4), ("tcp_8up", 1)):
        schedule = make(catalogue.find(name).make(Setting("127.0.0.1"), {}), Setting("127.0.0.1"), Options("k"))
        for job in schedule.jobs:
            if job.runner.name == "flow":
                command = job.runner.trial(job.invocation.parameters, job.options, False).command
                assert command[command.index("--flows") + 1] == str(count), (name, command)


def test_a_name_with_several_addresses(monkeypatch):
    """A name server that changes their order: all parts of a run measure one host."""
    known = {socket.AF_INET: ["192.0.2.1", "192.0.2.2"], socket.AF_INET6: ["2001:db8::1"]}

    def turning(host, port, family=0, kind=0, *_):
        del host, port, kind
        known[socket.AF_INET].reverse()
        both = known[family] if family else [*known[socket.AF_INET6], *known[socket.AF_INET]]
        return [(family, 0, 0, "", (address, 0)) for address in both]

    monkeypatch.setattr(socket, "getaddrinfo", turning)
    monkeypatch.setattr(addresses, "connected_first", lambda *_: None)
    setting = Setting("far.example")
    schedule = make(catalogue.find("rrul46").make(setting, {}), setting, Options("k"))
    pins = checks.several(schedule)
    assert list(pins) == [("far.example", "-4")]
    assert list(checks.others(pins)) == [f"far.example has 2 addresses of this family; {pins['far.example', '-4'][0]} alone is measured"]
    checks.pin(schedule, pins)
    (pinned,) = {job.command()[2 if job.runner.name != "flow" else 3] for job in schedule.jobs if job.options.family == "-4"}
    assert pinned in known[socket.AF_INET] and {job.stored.host for job in schedule.jobs} == {"far.example"}
    assert all("far.example" in job.command() for job in schedule.jobs if job.options.family == "-6"), "it has one address of IPv6"


def test_addresses_of_all_far_ends():
    test = catalogue.find("rtt_fair_var")
    setting = Setting("127.0.0.1", more_hosts=("127.0.0.2", "::1"))
    schedule = make(test.make(setting, {}), setting, Options("k"))
    assert checks.hosts(schedule, setting.hosts) == {"127.0.0.1": "127.0.0.1", "127.0.0.2": "127.0.0.2", "::1": "::1"}
    wrong = Setting("127.0.0.1", more_hosts=("127.0.0.1:80",))
    with pytest.raises(checks.CheckError, match=r"127.0.0.1:80: a host has no port"):
        checks.hosts(make(test.make(wrong, {}), wrong, Options("k")), wrong.hosts)
    both = Setting("127.0.0.1")
    with pytest.raises(checks.CheckError, match=r"'127.0.0.1': no such host with an address of IPv6"):
        checks.hosts(make(catalogue.find("rrul46").make(both, {}), both, Options("k")), both.hosts)


def test_probes_to_several_far_ends_count_for_each_server():
    setting = Setting("a", probe_interval_ns=200_000, more_hosts=("b",))
    plan = combine(udp(setting, "x", host="a"), udp(setting, "y", host="b"))
    assert make(plan, setting, Options("k")).reflected_hz() == 5000
