# SPDX-License-Identifier: MIT OR Apache-2.0
"""The options of `ktrxer run`."""

from __future__ import annotations

import argparse
import ipaddress
from pathlib import Path

from ktrxer import configured
from ktrxer.arguments import Parser, between, duration
from ktrxer.commands.common import command_line, for_option, server_options, stored_options
from ktrxer.store import one_line

EXAMPLES = """\
examples:
  ktrxer run rrul -H far --token-file token           a minute of load, five idle seconds before and after
  ktrxer run tcp_nup -H far --token-file token --for 20 -t "new router" --set upload_streams=8
  ktrxer run ping -H far                              probes alone, which need no token
  ktrxer run ./mine.py -H far --token-file token      a test of your own
  ktrxer run --again old.ktrxer --token-file token    a stored run again, as it was
Before it, start `ktrxer serve --token-file token` on the host far, with a copy of the same token file. `ktrxer tests` lists the tests.
Exit status: 0 valid, 1 no result, 2 usage, 3 degraded or invalid."""


def parser() -> Parser:
    p = command_line("run", "Runs a test of flows and probes, and stores it as one file.", EXAMPLES)
    p.add_argument("test", nargs="?", metavar="TEST", help="a name that `ktrxer tests` lists, or the path of a test of your own")
    far = "the far end, a host on which `ktrxer serve` runs; may be given several times, for a test with several far ends"
    p.add_argument("-H", "--host", action="append", help=far)
    pinged = "also ping this host during the whole run, with this mark; its pings are a series of their own; may be given several times"
    p.add_argument("--ping-host", action="append", default=[], metavar="HOST[,DSCP[,ECN]]", help=pinged)
    for_option(p, "length of the load (60s)", 60.0)
    p.add_argument("--delay", type=duration, default=5.0, metavar="D", help="idle time before the load, and after it (5s)")
    stored_options(p)
    named = "name of the file, without .ktrxer (TEST-TIME.TITLE); one that exists already gets a number"
    p.add_argument("--name", metavar="NAME", help=named)
    several = "set a parameter of the test; `ktrxer tests TEST` lists the parameters; may be given several times"
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=several)
    ccs = "TCP congestion control of all flows (NAME), or of uploads and of downloads (NAME,NAME); default: that of the sending host"
    p.add_argument("--cc", default="", metavar="NAME[,NAME]", help=ccs)
    spacing = "time between probes (10ms; more on a slow path, so that the probes take at most 1 %% of its rate)"
    p.add_argument("-i", "--interval", type=duration, metavar="D", help=spacing)
    patience = "a probe that has no answer after this time is lost (10s)"
    p.add_argument("-W", "--timeout", type=duration, default=10.0, metavar="D", help=patience)
    spin = "probes spin before each send time, in a thread with a real-time priority where permitted: more processor time, less lateness"
    p.add_argument("--precise", action="store_true", help=spin)
    p.add_argument("--sample-interval", type=duration, default=0.2, metavar="D", help="time between samples of each flow (200ms)")
    server_options(p)
    p.add_argument("--from", dest="source", metavar="ADDR", help="send from this address of this host, and by the routes that it has")
    wide = "a headline figure whose error bound is wider than this share of it makes the run degraded (5 %%, or the recipe's)"
    p.add_argument("--tolerance", type=between(1, 100), metavar="PERCENT", help=wide)
    small = "what is stored about the hosts: small (default) leaves out names, addresses and routes, full has them"
    p.add_argument("--metadata", choices=("small", "full"), default="small", metavar="KIND", help=small)
    more = "also store the state of another host, before and after the run: ssh:[USER@]HOST or netns:NAME; may be given several times"
    p.add_argument("--metadata-from", action="append", default=[], metavar="PLACE", help=more)
    beside = "also record the state of a host during the run: RUNNER[@PLACE][,NAME=VALUE]..., such as qdisc@ssh:router,device=eth1; "
    beside += "may be given several times"
    p.add_argument("--with", dest="beside", action="append", default=[], metavar="RUNNER", help=beside)
    bare = "store nothing about this host, and record its counters (queues, processors) only where --with names them"
    p.add_argument("--no-extras", action="store_true", help=bare)
    tag = "a label that is stored with the run, to find and group runs by (`ktrxer runs --where`)"
    p.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help=tag)
    repeat = "repeat a stored run with its recipe, parameters, times, far end and congestion control; prints what cannot be the same"
    p.add_argument("--again", type=Path, metavar="FILE", help=repeat)
    consent = "with --again: execute the recipe that FILE contains, a program of the author of the run"
    p.add_argument("--trust-recipe", action="store_true", help=consent)
    p.add_argument("--dry-run", action="store_true", help="check everything and print the plan, but measure nothing")
    results = p.add_mutually_exclusive_group()
    results.add_argument("--json", action="store_true", help="print one JSON object: file and summary (docs/schema/run.schema.json)")
    results.add_argument("--jsonl", action="store_true", help="print one JSON object a line: start, the figures of each second, end")
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing but the path of the file")
    return p


# A stored run has these already.
FIXED = {
    "length": "--for", "delay": "--delay", "set": "--set", "cc": "--cc", "interval": "-i/--interval", "timeout": "-W/--timeout",
    "precise": "--precise", "sample_interval": "--sample-interval",
}  # fmt: skip


def _family(p: argparse.ArgumentParser, given: argparse.Namespace) -> str:
    """The option of the family of the address of --from. -4 and -6 must not contradict it."""
    try:
        version = ipaddress.ip_address(given.source).version
    except ValueError:
        p.error(f"--from: {one_line(given.source, 64)!r} is no address of this host: a name or a device is none")
    if given.family not in ("", f"-{version}"):
        p.error(f"--from: {given.source} is an address of IPv{version}, and {given.family} was given")
    return f"-{version}"


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The options, after checks of those that depend on --again."""
    p = parser()
    known, more = p.parse_known_args(arguments)
    if known.again is None and known.host is None and (far := configured.value("run", "host")) is not None:
        arguments = ["--host", far.text, *arguments]
        known.host = [far.text]
    if known.again is None and known.host is None and more and not more[0].startswith("-"):
        p.error(f"'{more[0][:64]}' is one word too many; the far end is an option: `ktrxer run {known.test} -H {more[0][:64]}`")
    for name, what in (("test", "TEST"), ("host", "-H/--host")):
        if known.again is None and getattr(known, name) is None:
            p.error(f"the following arguments are required: {what}")
    given: argparse.Namespace = p.parse_args(arguments)
    if given.source is not None:
        given.family = _family(p, given)
    if given.metadata_from and given.no_extras:
        p.error("--metadata-from: not with --no-extras, which stores no state of hosts")
    if given.again is None:
        if given.trust_recipe:
            p.error("--trust-recipe goes with --again")
        return given
    plain = parser()
    plain.set_defaults(**dict.fromkeys([*FIXED, "port", "family", "source"]))
    stated = plain.parse_args(arguments)
    for name, option in FIXED.items():
        if getattr(stated, name) is not None:
            p.error(f"{option}: not with --again, because the stored run has it")
    given.port = stated.port  # None: that of the stored run, as below
    given.family = given.family if given.source is not None else stated.family
    return given
