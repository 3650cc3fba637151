# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recipes and the plans made from them: names, markings, times, processes; an impossible plan is refused."""

from dataclasses import dataclass
from typing import Literal

import pytest
from ktrxer.catalogue import find
from ktrxer.catalogue.recipe import (
    DSCP,
    NoParameters,
    Plan,
    PlanError,
    Setting,
    When,
    combine,
    icmp,
    parameter,
    parameters_of,
    run,
    udp,
    uploads,
)
from ktrxer.catalogue.recipe import Test as Recipe
from ktrxer.run import checks
from ktrxer.run.schedule import Options, make

MS = 10**6


def names_of(test, **parameters):
    plan = find(test).make(Setting("HOST"), parameters)
    return [name for one in plan.runs if one.runner == "flow" for name in one.parameters.series], [one.name for one in plan.runs if one.runner != "flow"]


def test_series_have_flents_names():
    flows, probes = names_of("rrul")
    assert sorted(flows) == sorted(f"TCP {way}load {c}" for way in ("up", "down") for c in ("BE", "BK", "CS5", "EF"))
    assert probes == ["Ping (ms) ICMP", "Ping (ms) UDP BE", "Ping (ms) UDP BK", "Ping (ms) UDP EF"]
    flows, probes = names_of("rrul_be")
    assert flows[:4] == ["TCP upload BE", "TCP upload BE2", "TCP upload BE3", "TCP upload BE4"] and probes[1:] == [f"Ping (ms) UDP BE{n}" for n in (1, 2, 3)]
    assert names_of("tcp_upload") == (["TCP upload"], ["Ping (ms) ICMP"])
    assert names_of("tcp_nup", upload_streams="3") == ([f"TCP upload::{n}" for n in (1, 2, 3)], ["Ping (ms) ICMP"])
    assert set(names_of("tcp_bidirectional")[0]) == {"TCP upload", "TCP download"}


def test_rrul_marks_its_packets():
    schedule = make(find("rrul").make(Setting("HOST"), {}), Setting("HOST", cc_up="bbr"), Options("ktrxer", token_file="/t"))
    commands = {job.stored.name: " ".join(job.command()) for job in schedule.jobs}
    assert "--dscp 0,8,40,46" in commands["TCP upload"] and "--token-file /t" in commands["TCP upload"]
    together = commands["Ping (ms) UDP BE, Ping (ms) UDP BK, Ping (ms) UDP EF"]
    assert "--dscp 0,8,46 --port 8620 --tlv cos --for 70000000000ns --jsonl" in together and "--interval 10000000ns" in together
    assert "--interval 10000000ns" in commands["Ping (ms) ICMP"]
    assert [(p.name, p.from_ns, p.to_ns) for p in schedule.phases] == [
        ("idle_before", 0, 5 * 10**9), ("load", 5 * 10**9, 65 * 10**9), ("idle_after", 65 * 10**9, 70 * 10**9)]
    assert DSCP["AF41"] == 34


def test_precise_is_for_the_probes():
    for precise in (False, True):
        schedule = make(find("rrul").make(Setting("HOST"), {}), Setting("HOST"), Options("ktrxer", precise=precise))
        assert {job.runner.name: "--precise" in job.command() for job in schedule.jobs} == {"ping": precise, "stamp": precise, "flow": False}


def test_probes_that_may_share_a_process_do():
    s = Setting("H", 10, 1)
    later = When(delay_s=2)
    probes = (icmp(s), *(udp(s, f"u{n}") for n in range(10)), udp(s, "late", when=later), udp(s, "later", "EF", when=later),
              udp(s, "first"), icmp(s, "after", when=When(start_after="first")))
    schedule = make(combine(*probes), s, Options("ktrxer"))
    names = [job.stored.name for job in schedule.jobs]
    eight, two = ", ".join(f"u{n}" for n in range(8)), "u8, u9"
    assert names == ["Ping (ms) ICMP", eight, two, "late, later", "first", "after"], "others wait for the end of `first`: it stays alone"
    assert "--dscp 0,46" in " ".join(schedule.jobs[3].command()) and "--dscp" not in schedule.jobs[4].command()
    assert [series.name for series in schedule.jobs[3].series.values()] == ["late", "later"]
    assert checks.rows_of(make(combine(*probes[1:4]), s, Options("ktrxer"))) == 3 * 1200


def test_more_probes_than_a_server_answers_are_told_before():
    for interval, rate in ((100_000, 30_000), (10 * MS, 300)):
        assert make(find("rrul").make(Setting("H", probe_interval_ns=interval), {}), Setting("H"), Options("k")).reflected_hz() == rate


@pytest.mark.parametrize("plan, message", [
    (Plan(), "nothing would be measured"),
    (Plan(icmp(Setting("H")).runs + udp(Setting("H"), "Ping (ms) ICMP").runs), "called 'Ping"),
    (udp(Setting("H"), "x", "EFF"), "no marking is called 'EFF'"),
    (icmp(Setting("H"), when=When(start_after="absent")), "waits for 'absent'"),
    (combine(icmp(Setting("H"), "a", when=When(start_after="b")), icmp(Setting("H"), "b", when=When(start_after="a"))),
     "a waits for itself, by way of b"),
    (icmp(Setting("H"), "a", when=When(start_after="a")), "a waits for itself$"),
    (icmp(Setting("H", probe_interval_ns=1000)), "0.1 ms to 60000 ms"),
    (icmp(Setting("H"), "a\x1b[2J"), "control characters"),
    (icmp(Setting("H"), place="moon"), "'moon' is not a place; there are local, netns:NAME, ssh:"),
    (icmp(Setting("H"), host="-oProxyCommand=x"), "is no host"),
    (uploads(Setting("H"), ["same", "same"]), "two series of the test are called 'same'"),
    (uploads(Setting("H"), ["u"], protocol="udp"), "UDP flows need a bit rate"),
    (uploads(Setting("H"), ["u"], model="voip"), "a traffic model and a payload are for UDP"),
    (uploads(Setting("H"), ["u"], [f"x{n}" for n in range(2)]), "no marking is called 'x0'"),
    (uploads(Setting("H"), [f"u{n}" for n in range(1001)]), "flows: 1001; 1 to 1000"),
])
def test_plans_that_cannot_be(plan, message):
    with pytest.raises(PlanError, match=message):
        Recipe("x", "x", lambda _s, _p: plan).make(Setting("H"), {})


def test_a_plan_longer_than_its_run():
    with pytest.raises(PlanError, match="beyond the end of the run"):
        make(icmp(Setting("H"), when=When(60, 60)), Setting("H"), Options(""))


def test_parameters_are_typed_and_checked():
    test = find("tcp_nup")
    with pytest.raises(PlanError, match="no parameter 'streams'; it has: upload_streams"):
        parameters_of(test, {"streams": "1"})
    for bad, why in (("0", "may be 1 to 1000"), ("-1", "may be"), ("1e3", "is no whole number, or num_cpus"), ("all", "is no"), ("2000", "may be")):
        with pytest.raises(PlanError, match=why):
            test.make(Setting("H"), {"upload_streams": bad})
    with pytest.raises(PlanError, match="did you mean rrul"):
        find("rrull")


OWN = '''
from ktrxer.catalogue import tcp_bidirectional
from ktrxer.catalogue.recipe import *
@dataclass(frozen=True)
class Parameters:
    gap_s: float = parameter(0.1, "between the two", low=0, high=5)
def plan(setting, p):
    return combine(tcp_bidirectional.plan(setting, tcp_bidirectional.Parameters(directions="up")),
                   uploads(setting, ["second"], name="second", when=When(p.gap_s, 0.2, start_after="TCP upload")))
TEST = Test("mine", "two uploads, one after another", plan, Parameters)
'''


def test_a_users_own_test_by_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "own.py"
    path.write_text(OWN)
    test = find(str(path))
    assert test.make(Setting("H"), {"gap_s": "0.5"}).runs[2].when == When(0.5, 0.2, "TCP upload")
    with pytest.raises(PlanError, match="gap_s: 9; it may be 0 to 5"):
        test.make(Setting("H"), {"gap_s": "9"})
    path.write_text("x = 1\nraise RuntimeError('oops')\n")
    with pytest.raises(PlanError, match=r"own.py, line 2 \(raise RuntimeError\('oops'\)\): RuntimeError: oops"):
        find(str(path))
    path.write_text("x = 1\n")
    with pytest.raises(PlanError, match="it has no TEST"):
        find(str(path))
    with pytest.raises(PlanError, match=r"none.py: No such file or directory; `ktrxer new test none` writes one"):
        find("./none.py")
    (tmp_path / "folder").mkdir()
    for no_file in ("./folder", str(tmp_path / "folder"), "/dev/null"):
        with pytest.raises(PlanError, match=r"(folder|null): a test is a Python file, NAME.py$"):
            find(no_file)
    path.write_bytes(b"x = 1\0\n")
    with pytest.raises(PlanError, match=r"own.py: (Syntax|Value)Error: source code string cannot contain null bytes"):
        find(str(path))
    path.write_text("x = (1\n")
    with pytest.raises(PlanError, match=r"own.py, line 1 \(x = \(1\): SyntaxError"):
        find(str(path))


def test_no_parameters_is_a_dataclass_too():
    assert parameters_of(find("ping"), {}) == NoParameters()


def test_the_interval_keeps_the_probes_at_one_percent():
    setting = Setting("H", 10, 1)
    schedule = make(find("rrul").make(setting, {}), setting, Options("ktrxer"))
    assert schedule.light_interval(10 * 10**6, 1e9) == 10 * 10**6, "not shorter than what was asked for"
    assert schedule.light_interval(10 * 10**6, 10e6) == 34 * 10**6, "4 x 105 bytes"
    assert schedule.light_interval(10 * 10**6, 1000) == 10**9, "at least one a second"


def test_the_rate_of_a_trial_is_not_that_of_its_slowest_flow():
    """One of four flows of 250 kB waits 200 ms for the retransmission of its last packet on a path of 50 Mbit/s."""
    flows = [{"direction": "up", "bytes": 250_000, "start_ns": 10**9, "duration_ns": ms * 10**6} for ms in (150, 155, 160, 360)]
    flows.append({"direction": "down", "bytes": 0, "start_ns": 10**9, "duration_ns": 0})
    assert list(checks._rates({"flows": flows})) == [37_500_000]
    flows[3] |= {"duration_ns": 160 * 10**6}
    assert list(checks._rates({"flows": flows})) == [50_000_000]


def test_choices_lists_and_computed_values():
    @dataclass(frozen=True)
    class Parameters:
        way: Literal["up", "down"] = parameter("up", "a choice")
        sizes: tuple[int, ...] = parameter((1, 2), "a list", low=1, high=9)
        names: tuple[str, ...] = parameter((), "names")
        flows: int = parameter("num_cpus", "a number", low=1, words={"num_cpus": lambda: 7})

    test = Recipe("x", "x", lambda s, p: icmp(s), Parameters)
    assert parameters_of(test, {}) == Parameters("up", (1, 2), (), 7), "a default that is computed is stored as its value"
    given = {"way": "down", "sizes": "3, 4", "names": "a,b", "flows": "num_cpus"}
    assert parameters_of(test, given) == Parameters("down", (3, 4), ("a", "b"), 7)
    for key, text, why in (("way", "both", "'both'; it may be up, down"), ("sizes", "1,10", "10; it may be 1 to 9"), ("sizes", "1,x", "'x' is no whole")):
        with pytest.raises(PlanError, match=why):
            parameters_of(test, {key: text})


def test_a_runner_that_is_not_there():
    with pytest.raises(PlanError, match=r"no runner is called 'pong'; did you mean ping\? "):
        run("pong", "x")
    with pytest.raises(PlanError, match=r"runner ping has no parameter speed; it has: host, family, interval_ns, mark, ecn, payload_bytes, group"):
        run("ping", "x", speed=1)
    with pytest.raises(PlanError, match="its parameters are Flows, not Probes"):
        Recipe("x", "x", lambda s, _: run("ping", "x", uploads(s, ["u"]).runs[0].parameters)).make(Setting("H"), {})


def test_another_name_of_a_recipe_sets_its_parameters():
    assert names_of("tcp_4up")[0] == [f"TCP upload::{n}" for n in range(1, 5)]
    assert parameters_of(find("tcp_2down"), {}).download_streams == 2 and find("tcp_2down").name == "tcp_2down"
    with pytest.raises(PlanError, match="did you mean tcp_12up"):
        find("tcp_12upp")


def test_a_dry_run_names_the_addresses_of_all_far_ends(capsys, monkeypatch):
    from ktrxer.commands import run as command

    monkeypatch.setattr(checks, "far_end", lambda _, **__: None)
    status = command.main(["rtt_fair_var", "-H", "127.0.0.1", "-H", "127.0.0.2", "--for", "1", "--delay", "0", "--dry-run", "--no-extras"])
    assert (status, capsys.readouterr().out.splitlines()[0]) == (0, "Nothing was measured. 1 seconds to 127.0.0.1, 127.0.0.2:")
