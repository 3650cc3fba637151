# SPDX-License-Identifier: MIT OR Apache-2.0
"""Topology files: their meaning, and an error of one line for each wrong one."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import time
from pathlib import Path

import pytest
from ktrxer_lab import command, topology, topology_model, trace, wiring
from ktrxer_lab.errors import LabError

HEAD = 'hosts = ["a", "b"]\nrouters = ["r"]\n'
LINK = '[[links]]\nends = ["a", "r"]\n'
ROUTE = '[[routes]]\nnode = "r"\nto = "b"\n'
RING = 'hosts = ["a", "b"]\nrouters = ["r", "s"]\n' + "".join(f'[[links]]\nends = ["{x}", "{y}"]\n' for x, y in ("ar", "rs", "sa", "rb"))
REST = '[[links]]\nends = ["r", "b"]\n'
CLOCK = HEAD + LINK + REST + "[[clocks]]\nnode = 'b'\n"


def parse(text: str, **settings: str) -> topology_model.Topology:
    return topology.parse(text.encode(), Path("mine.toml"), settings)


def test_both_directions_unless_one_is_said_apart() -> None:
    made = parse(HEAD + LINK + 'rate = "10mbit"\ndelay = "5ms"\nfrom.r = { rate = "2.5 Mbit/s", queue = "fq_codel", loss = "0.1%" }\n' + REST)
    there, back = (made.links[0].shapes[node] for node in ("a", "r"))
    assert (there.rate_bps, there.queue, there.delay_ns, there.loss_ppm) == (10_000_000, (), 5_000_000, 0)
    assert (back.rate_bps, back.queue, back.delay_ns, back.loss_ppm) == (2_500_000, ("fq_codel",), 5_000_000, 1000)
    assert made.links[0].wire == "wire-1", "a delay beside a queue has a namespace of its own"
    assert made.links[1].wire is None
    assert (made.client, made.server, made.routers) == ("a", "b", {"r"})


def test_parameters_fill_in_and_are_set() -> None:
    text = HEAD + '[parameters]\nspeed = "1mbit"\n' + LINK + 'rate = "{speed}"\n' + REST
    assert parse(text).links[0].shapes["a"].rate_bps == 1_000_000
    assert parse(text, speed="2gbit").links[0].shapes["a"].rate_bps == 2_000_000_000
    with pytest.raises(LabError, match="topology mine has no parameter 'sped'; choose one of: speed"):
        parse(text, sped="1mbit")


def test_routes_lead_through_routers_and_only_through_them() -> None:
    ring = parse(
        'hosts = ["a", "b", "c"]\nrouters = ["r", "s"]\n'
        + "".join(f'[[links]]\nends = ["{x}", "{y}"]\n' for x, y in (("a", "r"), ("r", "s"), ("s", "b"), ("a", "c"), ("c", "s")))
    )
    ways = {to.number: gate for to, _, gate in ring.routes("a")}
    assert ways == {2: "r", 3: "r", 5: "r"}, "c is a host: it forwards nothing"
    assert str(ring.address("c")) == "10.64.4.2"


def test_the_topologies_that_come_along_are_good_and_described() -> None:
    assert {"access", "flent"} <= set(topology.names())
    for name in topology.names():
        made = topology.load(name)
        assert made.title in made.describe()
        assert all(f"{node} -> " in made.describe() for node in made.nodes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "`hosts` must name two or more"),
        ("hosts = 3\n", "`hosts` must be a list of names, found 3"),
        ('hosts = ["a"]\n', "`hosts` must name two or more"),
        ('hosts = ["a", "a"]\n' + LINK, "'a' is named twice"),
        ('hosts = ["a", "../b"]\n' + LINK, "'../b' is not a name"),
        ('hosts = ["a", "$(reboot)"]\n' + LINK, "is not a name"),
        ('hosts = ["a", "verylonghostname"]\n' + LINK, "is not a name"),
        ("hosts = [" + ", ".join(f'"h{i}"' for i in range(65)) + "]\n" + LINK, "65 hosts and routers: at most 64"),
        (HEAD, "no links"),
        (HEAD + "links = 3\n", "no links"),
        (HEAD + "links = [1]\n", "no links"),
        (HEAD + LINK, "'b' has no link"),
        (HEAD + '[[links]]\nends = ["a", "x"]\n', "link 1: `ends`: 'x' is not among hosts and routers"),
        (HEAD + '[[links]]\nends = ["a"]\n', "`ends` must be two names"),
        (HEAD + '[[links]]\nends = ["a", "a"]\n', "`ends`: both are 'a'"),
        (HEAD + LINK + LINK + REST, "a and r are linked already, by link 1"),
        ('hosts = ["a", "b", "c"]\n[[links]]\nends = ["a", "b"]\n[[links]]\nends = ["b", "c"]\n', "no path from 'a' to 'c': only routers forward"),
        (HEAD + LINK + "leaf = 'codel'\n" + REST, "unknown key 'leaf'"),
        (HEAD + LINK + "dealy = '1ms'\n" + REST, "unknown key 'dealy'; do you mean `delay`?"),
        (HEAD + LINK + "from.b = {}\n" + REST, "`from.b`: not an end of this link"),
        (HEAD + LINK + "from = 1\n" + REST, "`from` holds one table for an end"),
        (HEAD + LINK + "rate = 10\n" + REST, "`rate` must be text in quotes, found 10"),
        (HEAD + LINK + "rate = 'fast'\n" + REST, "`rate` must be from 8kbit to 100gbit, e.g. \"10mbit\"; found 'fast'"),
        (HEAD + LINK + "rate = '-1mbit'\n" + REST, "`rate` must be"),
        (HEAD + LINK + "rate = '1e9bit'\n" + REST, "`rate` must be"),
        (HEAD + LINK + "rate = '{speed}'\n" + REST, "uses the parameter 'speed', which is not in [parameters]"),
        (HEAD + "[parameters]\nx = '1'\n" + LINK + "rate = '{x.__class__}'\n" + REST, "uses the parameter 'x.__class__'"),
        (HEAD + "[parameters]\nx = '1'\n" + LINK + "rate = '{x:>99999999999}'\n" + REST, "uses the parameter 'x:>99999999999'"),
        (HEAD + "[parameters]\nx = []\n" + LINK + REST, "`x` must be text or a number"),
        (HEAD + "[parameters]\nx = true\n" + LINK + REST, "`x` must be text or a number"),
        (HEAD + f"[parameters]\nx = {'9' * 30}\n" + LINK + REST, "`x` is too large"),
        (HEAD + LINK + "delay = '61s'\n" + REST, "`delay` must be a time up to 60s"),
        (HEAD + LINK + "delay = '1 fortnight'\n" + REST, "`delay` must be a time"),
        (HEAD + LINK + "jitter = '1ms'\n" + REST, "`jitter` 1ms is more than `delay` 0"),
        (HEAD + LINK + "loss = '101%'\n" + REST, "`loss` must be 0% to 100%"),
        (HEAD + LINK + "loss = '1'\n" + REST, "`loss` must be"),
        (HEAD + LINK + "loss = '1%'\nburst = '3'\n" + REST, "`burst` must be a number of packets"),
        (HEAD + LINK + "burst = 3\n" + REST, "`burst` needs a `loss`"),
        (HEAD + LINK + "reorder = '1%'\n" + REST, "`reorder` needs `delay`"),
        (HEAD + LINK + "duplicate = 'twice'\n" + REST, "`duplicate` must be 0% to 100%"),
        (HEAD + LINK + "distribution = 'normal'\n" + REST, "`distribution` needs `jitter`"),
        (HEAD + LINK + "delay = '5ms'\njitter = '1ms'\ndistribution = 'normel'\n" + REST, "do you mean `normal`?"),
        (HEAD + LINK + "rate = '1mbit'\npolice = '1mbit'\n" + REST, "`police`, `rate` and `trace` exclude each other in a direction"),
        (HEAD + LINK + "police = 'fast'\n" + REST, "`police` must be from 8kbit"),
        (HEAD + LINK + "down = '1s to 2s'\n" + REST, "`down` must be a list of times"),
        (HEAD + LINK + "down = ['1s']\n" + REST, "`down`: '1s' must be two times"),
        (HEAD + LINK + "down = ['2s to 1s']\n" + REST, "must end after it begins"),
        (HEAD + LINK + "down = ['2s to 3s', '1s to 4s']\n" + REST, "follow the one before"),
        (HEAD + LINK + "trace = 'no.trace'\n" + REST, "`trace`: no.trace: No such file"),
        (HEAD + LINK + "rate = '1mbit'\ntrace = 'x'\n" + REST, "exclude each other in a direction: use one of them"),
        (HEAD + LINK + "bucket = '1MB'\n" + REST, "`bucket` needs `rate`"),
        (HEAD + LINK + "rate = '1mbit'\nbucket = '1kB'\n" + REST, "`bucket` must hold a packet of the link: 1514 bytes"),
        (HEAD + LINK + "rate = '1mbit'\nbucket = '10kbit'\n" + REST, "`bucket` must be a number of bytes"),
        (HEAD + LINK + "rate = '1mbit'\npeak = '2mbit'\n" + REST, "`peak` needs `bucket`"),
        (HEAD + LINK + "rate = '1mbit'\nbucket = '9kB'\npeak = '1mbit'\n" + REST, "`peak` must be above `rate`"),
        (HEAD + LINK + "aggregate = '32 packets'\n" + REST, "`aggregate` must be a time up to 60s"),
        (HEAD + LINK + "aggregate = '4ms, 0 packets'\n" + REST, "`aggregate` must be as"),
        (HEAD + LINK + "aggregate = '4ms to 2ms'\n" + REST, "`aggregate` must be a time or two"),
        (HEAD + LINK + "bleach = 'dscq'\n" + REST, "`bleach`: 'dscq': do you mean `dscp`?"),
        (HEAD + LINK + "nat = 'yes'\n" + REST, "`nat` must be true or false"),
        (HEAD + LINK + "from.a = { nat = true }\n" + REST, "`nat`: 'a' is a host; only routers forward"),
        (HEAD + "routes = 3\n" + LINK + REST, "`routes` must be at most 1000 tables"),
        (HEAD + LINK + "queue = ''\n" + REST, "`queue` must be a queue as tc names it"),
        (HEAD + LINK + "queue = 'pfifo; reboot'\n" + REST, "`queue` must be a queue as tc names it"),
        (HEAD + LINK + "queue = 'pfifo $(reboot)'\n" + REST, "`queue` must be"),
        (HEAD + LINK + "queue = '-force'\n" + REST, "`queue` must be"),
        (HEAD + LINK + "mtu = 100\n" + REST, "`mtu` must be a number from 576"),
        (HEAD + LINK + "mtu = true\n" + REST, "`mtu` must be"),
        (HEAD + LINK + "offload = 1\n" + REST, "`offload` must be true or false"),
        (HEAD + LINK + "offload = true\nrate = '1mbit'\n" + REST, "exclude each other"),
        (HEAD + LINK + "subnet = '10.0.0.1/24'\n" + REST, "`subnet`: 10.0.0.1/24 has host bits set"),
        (HEAD + LINK + "subnet = '10.0.0.0/31'\n" + REST, "no room for two addresses"),
        (HEAD + LINK + "subnet = '8.8.8.0/24'\n" + REST, "must be of a private network"),
        (HEAD + LINK + "subnet = '127.0.0.0/24'\n" + REST, "must be of a private network"),
        (HEAD + LINK + "subnet = '10.64.0.0/16'\n" + REST, "subnet 10.64.2.0/24 overlaps that of link 1"),
        (HEAD + 'client = "r"\n' + LINK + REST, "`client` must be one of the hosts (a, b), found 'r'"),
        (HEAD + 'client = "b"\n' + LINK + REST, "`client` and `server` are both 'b'"),
        (HEAD + 'title = "x\\u001b[2Jy"\n' + LINK + REST, "one line of printable text"),
        (HEAD + 'tilte = "x"\n' + LINK + REST, "unknown key 'tilte'; do you mean `title`?"),
        ("hosts = [", "not TOML"),
        ('title = "x\nhosts = []\n', 'not TOML: line 1: the string does not end; '),
        ("title = 'x'\nhosts = client", 'not TOML: line 2: not a value; a string stands in quotation marks on one line, as in name = "value"; found: hosts = client'),
        ("x = " + "[" * 100_000, "not TOML: nested too deeply"),
        ("x = " + "9" * 5000, "not TOML"),
        ("#" * (256 * 1024 + 1), "larger than 256 KiB"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(text: str, words: str) -> None:
    with pytest.raises(LabError) as caught:
        parse(text)
    message = str(caught.value)
    assert words in message
    assert re.match(r"mine\.toml(:\d+)?: ", message) and "\n" not in message and len(message) < 400 and message.isprintable()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + LINK + "queue = 'cakee'\n" + REST, "mine.toml:5: link 1 (a - r): `queue`: unknown queue 'cakee'; do you mean `cake`?"),
        (HEAD + LINK + REST + "from.r = { rate = '1mbit', queue = 'fq_coddel' }\n", "mine.toml:7: link 2 (r - b), from r: `queue`: unknown queue"),
        (HEAD + LINK + "rate = '1mbit'\nfrom.r = { rate = 'fast' }\n" + REST, "mine.toml:6: link 1 (a - r), from r: `rate` must be"),
        (HEAD + LINK + "dealy = '1ms'\n" + REST, "mine.toml:5: link 1 (a - r): unknown key 'dealy'"),
        (HEAD + LINK + '[[links]]\nends = ["a", "x"]\n', "mine.toml:6: link 2: `ends`: 'x' is not among"),
        (HEAD + LINK + REST + "[parameters]\nok = 1\nx = []\n", "mine.toml:9: [parameters]: `x` must be"),
        (HEAD + LINK + REST + "[[routes]]\nto = 'b'\n", "mine.toml:7: route 1: `node` is missing"),
        (HEAD + LINK + REST + ROUTE + "via = 'b'\nat = 'soon'\n", "mine.toml:11: route 1: `at` must be a time"),
        (HEAD + LINK + REST + ROUTE + "via = 'r'\n", "mine.toml:10: route 1: `via`: 'r' is not a neighbour of 'r'; choose one of: a, b"),
        (HEAD + LINK + REST + ROUTE + "via = 'a'\n", "mine.toml:10: route 1: `via`: 'a' is a host, which does not forward"),
        (HEAD + LINK + REST + ROUTE + "via = 'bb'\n", "mine.toml:10: route 1: `via`: 'bb': do you mean `b`?"),
        (RING + ROUTE + "via = 's'\n", "mine.toml:11: route 1: packets to 'b' loop: r, s, r; write a route to b for s, too"),
        ('client = "r"\n' + HEAD + LINK + REST, "mine.toml:1: `client` must be one of the hosts"),
        (CLOCK, "mine.toml:7: clock 1: the clock of 'b' has no `offset`, `rate_ppm` or `slew`"),
        (CLOCK + "slew = 'fast'\n", "mine.toml:9: clock 1: `slew` must be a time up to 24 hours"),
        (CLOCK + "rate_ppm = -500\nslew = '-1ms'\n", "mine.toml:10: clock 1: `slew`: the clock of 'b' has the limit of 500 ppm already"),
        (CLOCK + "slew = '5ms'\n[[clocks]]\nnode = 'b'\nat = '9s'\noffset = '1s'\n", "mine.toml:12: clock 2: `at`: must be later than that of the"),
        (CLOCK + "rate_ppm = 501\n", "mine.toml:9: clock 1: `rate_ppm` must be a number from -500 to 500, found 501"),
        (CLOCK + "rate_ppm = nan\n", "mine.toml:9: clock 1: `rate_ppm` must be"),
        (CLOCK + "rate_ppm = true\n", "mine.toml:9: clock 1: `rate_ppm` must be"),
        (CLOCK + "offset = '1 year'\n", "mine.toml:9: clock 1: `offset` must be a time up to 24 hours"),
        (CLOCK + "offset = '--1s'\n", "mine.toml:9: clock 1: `offset` must be"),
        (CLOCK + "offset = '1s'\nat = '-1s'\n", "mine.toml:10: clock 1: `at` must be a time"),
        (CLOCK + "offset = '1s'\n[[clocks]]\nnode = 'b'\noffset = '1s'\n", "mine.toml:10: clock 2: `at`: must be later than that of the clock"),
        (CLOCK.replace("'b'", "'c'"), "mine.toml:8: clock 1: `node`: 'c': choose one of: a, b, r"),
        (CLOCK + "ofset = '1s'\n", "mine.toml:9: clock 1: unknown key 'ofset'; do you mean `offset`?"),
        ("clocks = 3\n" + HEAD + LINK + REST, "mine.toml:1: `clocks` must be at most 1000 tables"),
    ],
)
def test_the_line_of_a_mistake(text: str, words: str) -> None:
    with pytest.raises(LabError) as caught:
        parse(text)
    assert str(caught.value).startswith(words)


def test_impairments_become_the_words_of_tc() -> None:
    made = parse(
        HEAD + LINK + "delay = '10ms'\njitter = '1ms'\ndistribution = 'normal'\nloss = '2%'\nburst = 5\nreorder = '3%'\nduplicate = '4%'\n" + REST
    )
    assert "delay 10000us 1000us distribution normal loss gemodel 0.408163% 20.000000% duplicate 4.0000% reorder 3.0000%" in wiring.script(made)
    made = parse(HEAD + LINK + "police = '8mbit'\ndown = ['1.5s to 2s', '3s to 4s']\n" + REST)
    assert wiring.script(made).count("ingress prio 3 matchall action police rate 8000000bit burst 50000 conform-exceed drop/ok") == 2
    assert [at for at, _ in made.events()] == [1.5, 2, 3, 4]
    assert made.events()[0][1] == ["ip", "-n", "wire-1", "link", "set", "dev", "wire", "down"]
    assert "down from 1.5 to 2 s" in made.describe() and "policed to 8 Mbit/s" in made.describe()


def test_clocks_begin_and_step() -> None:
    made = parse(CLOCK + "offset = '-3ms'\nrate_ppm = 20.5\n[[clocks]]\nnode = 'b'\noffset = '1s'\nat = '10s'\n")
    assert made.clocks == (topology_model.Clock(0, "b", -3_000_000, 20_500), topology_model.Clock(10_000_000_000, "b", 1_000_000_000, 20_500))
    assert "'echo -3000000 20500 0 >/proc/net/host_clock'" in wiring.script(made)
    assert [(at, words[-1]) for at, words in made.events()] == [(10.0, "echo 1000000000 20500 0 >/proc/net/host_clock")]
    assert "b: clock -3 ms, +20.5 ppm\n  b: clock +1000 ms, +20.5 ppm from 10 s on" in made.describe()
    assert "host_clock" not in wiring.script(parse(HEAD + LINK + REST))


def test_a_slew_ends_when_the_clock_is_corrected() -> None:
    made = parse(CLOCK + "offset = '3ms'\nrate_ppm = 100\n[[clocks]]\nnode = 'b'\nat = '10s'\nslew = '-6ms'\n")
    # 600 ppm slower than before: 10 s.
    assert [(clock.at_ns / 1e9, clock.step_ns, clock.rate_ppb, clock.slew_ppb) for clock in made.clocks] == [
        (0, 3_000_000, 100_000, 0), (10, 0, 100_000, -600_000), (20, 0, 100_000, 0)
    ]  # fmt: skip


def test_a_trace_is_read_and_its_mistakes_have_a_line(tmp_path: Path) -> None:
    file = tmp_path / "lte.trace"
    for text, words in (
        ("1\n2\nx\n", "lte.trace:3: expected a time in whole milliseconds, found 'x'"),
        ("1\n\n2\n", "lte.trace:2: expected a time"),
        ("5\n4\n", "lte.trace:2: 4 ms is before the line above, 5 ms"),
        ("-1\n", "lte.trace:1: expected a time"),
        ("0\n0\n", "the last time must be above 0 ms"),
        ("", "the last time must be above 0 ms"),
    ):
        file.write_text(text)
        with pytest.raises(LabError, match=re.escape(words)):
            topology.parse((HEAD + LINK + "trace = 'lte.trace'\n" + REST).encode(), tmp_path / "mine.toml")
    file.write_text("1\n2\n2\n10")
    made = topology.parse((HEAD + LINK + "from.a = { trace = 'lte.trace', queue = 'bfifo limit 9000' }\n" + REST).encode(), tmp_path / "mine.toml")
    assert made.links[0].shapes["a"].trace == topology_model.Trace(file, "bytes", 9000) and not made.links[0].shapes["a"].shaped
    assert [words[-5:] for words in made.helpers()] == [[str(file), "rate-a", "wire", "bytes", "9000"]]
    with pytest.raises(LabError, match="before a `trace` it is"):
        topology.parse((HEAD + LINK + "trace = 'lte.trace'\nqueue = 'codel'\n" + REST).encode(), tmp_path / "mine.toml")


def test_a_trace_sends_what_each_opportunity_holds() -> None:
    link = trace.Link((1, 2, 2, 10), "packets", 4)
    assert [link.next_ns, *itertools.islice(link.coming, 5)] == [at * 1_000_000 for at in (1, 2, 2, 10, 11, 12)]
    for frame, size in ((b"a", 757), (b"b", 757), (b"c", 3000), (b"d", 60), (b"e", 60)):
        link.put(frame, size)
    assert link.dropped == 1
    assert [link.take() for _ in range(4)] == [[b"a", b"b"], [], [b"c"], [b"d"]]
    assert link.held == 0


def test_a_trace_of_bytes_drops_what_does_not_fit() -> None:
    link = trace.Link((1,), "bytes", 1000)
    for frame, size in ((b"a", 600), (b"b", 600), (b"c", 400)):
        link.put(frame, size)
    assert link.dropped == 1 and link.take() == [b"a", b"c"] and link.held == 0
    link.pass_by(5_500_000)
    assert link.next_ns == 6_000_000


def test_a_queue_that_is_not_known_is_left_to_the_kernel() -> None:
    made = parse(HEAD + LINK + "queue = 'blue limit 3'\n" + REST)
    assert made.links[0].shapes["a"].queue == ("blue", "limit", "3")


def test_not_utf8() -> None:
    with pytest.raises(LabError, match=r"mine\.toml: not UTF-8"):
        topology.parse(b"\xff\xfe", Path("mine.toml"))


def test_a_name_or_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(HEAD + LINK + REST)
    assert topology.load("own.toml").name == "own"
    assert topology.load("./own.toml").nodes == ("a", "r", "b")
    for name, words in (
        ("nowhere.toml", "No such file or directory; the lab's own are: access"),
        (f"{tmp_path}/", "a folder; the lab.s own are: access"),
        ("ring", "no topology 'ring'; choose one of: access"),
    ):
        with pytest.raises(LabError, match=words):
            topology.load(name)


def test_every_script_is_shell_and_holds_no_word_of_the_file_unquoted(tmp_path: Path) -> None:
    made = parse(HEAD + LINK + "rate = '1mbit'\nqueue = 'pfifo limit 10'\ndelay = '3ms'\njitter = '1ms'\nloss = '1%'\n" + REST)
    for text in (wiring.script(made), wiring.teardown(made), wiring.script(topology.load("flent"))):
        assert subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, timeout=20).stderr == ""
    assert "netem limit 100000 delay 3000us 1000us loss 1.0000%" in wiring.script(made)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "access"], "no command; give it after --"),
        (["run", "access", "--in", "moon", "--", "true"], "no node 'moon' in access; choose one of: client, modem, isp, server"),
        (["run", "access", "--beside", "moon=true", "--", "true"], "no node 'moon'"),
        (["run", "access", "--beside", "server", "--", "true"], "--beside server: expected two parts with '=' between them"),
        (["run", "access", "--set", "speed=1", "--", "true"], "topology access has no parameter 'speed'"),
        (["run", "access", "--set", "up=1", "--", "true"], "`rate` must be from 8kbit"),
        (["run", "access", "--timeout", "0", "--", "true"], "--timeout: '0s' is too small: from 100ms"),
        (["run", "ring", "--", "true"], "no topology 'ring'"),
        (["run", "--", "true"], "FILE is missing: a topology"),
        (["topology", "ring"], "no topology 'ring'"),
    ],
)
def test_wrong_use_is_status_2_and_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = command.main(arguments)
    except SystemExit as wrong:
        status = int(str(wrong.code))
    message = capsys.readouterr().err
    assert status == 2
    assert words in message and message.count("\n") == 1


@pytest.mark.slow
def test_no_file_makes_it_fall_over() -> None:
    """A changed valid file gives a topology or an error of one line, in a short time."""
    chance, started = random.Random(6), time.process_time()
    seeds = [topology.find(name).read_bytes() for name in topology.names()] + [(HEAD + LINK + "loss = '1%'\nmtu = 1400\n" + REST).encode()]
    junk = [b"[", b"]", b"{", b"}", b'"', b"=", b"\n", b"-1", b"1e999", b"nan", b"true", b"[[links]]", b"\xff", b"{rate}", b"from.", b"9" * 400]
    outcomes = {True: 0, False: 0}
    for _ in range(1500):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            data[at : at + chance.choice((0, 1, 5, 40))] = chance.choice(junk)
        try:
            wiring.script(topology.parse(bytes(data), Path("fuzz.toml")))
            outcomes[True] += 1
        except LabError as error:
            assert "\n" not in str(error) and len(str(error)) < 600
            outcomes[False] += 1
    assert min(outcomes.values()) > 50, outcomes
    assert time.process_time() - started < 60
