# SPDX-License-Identifier: MIT OR Apache-2.0
"""`run --ping-host`, and Flent's parameters of the same meaning."""

import pytest
from ktrxer import catalogue
from ktrxer.catalogue.recipe import PlanError
from ktrxer.commands import run


def test_other_hosts_have_pings_of_their_own() -> None:
    """Flent's ping_hosts and ping_markings, whose numbers are the whole byte with DSCP and ECN."""
    words = ["tcp_2up", "-H", "far", "--ping-host", "b,EF", "--set", "ping_hosts=far,c,d", "--set", "ping_markings=0,1,0xb8"]
    given = run.parsed(words)
    test = catalogue.find("tcp_2up")
    plan = test.make(run.setting_of(given), run.parameters_of(given))
    made = {one.name: (one.parameters.host, one.parameters.mark, one.parameters.ecn) for one in plan.runs if one.runner == "ping"}
    assert made == {
        "Ping (ms) ICMP": ("", None, "off"),
        "Ping (ms) ICMP b EF (extra)": ("b", "EF", "off"),
        "Ping (ms) ICMP far (extra)": ("far", None, "off"),
        "Ping (ms) ICMP c ect1 (extra)": ("c", None, "ect1"),
        "Ping (ms) ICMP d 46 (extra)": ("d", "46", "off"),
    }


@pytest.mark.parametrize("words", [
    ["--ping-host", "b,EF,ect0,x"], ["--ping-host", "b,XX"], ["--ping-host=-x"], ["--set", "ping_hosts=b", "--set", "ping_markings=3"],
])  # fmt: skip
def test_a_host_to_ping_that_is_refused(words: list[str]) -> None:
    given = run.parsed(["tcp_2up", "-H", "far", *words])
    with pytest.raises(PlanError):
        catalogue.find("tcp_2up").make(run.setting_of(given), run.parameters_of(given))
