# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer lab`: the command line of the lab."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ktrxer_lab import cache, console, device, kbuild, kernel_package, local, places, stock, topology, uml, vm, wiring
from ktrxer_lab.arguments import WRONG_USE, Parser, between, choice_fault, duration, outside
from ktrxer_lab.errors import BuildFailure, GuestFailure, LabError, TimeLimit
from ktrxer_lab.recipe import Recipe
from ktrxer_lab.stock import UML
from ktrxer_lab.topology_model import Topology

# Exit statuses of the lab itself.
LAB_FAILED, TIME_LIMIT = 125, 124
SEED = between(0, (1 << 62) - 1)

RUN_EXAMPLES = """\
examples:
  ktrxer lab run access -- ping -c 5 server
  ktrxer lab run access --set up=5mbit --beside 'server=ktrxer serve' -- ktrxer run rrul -H server
  ktrxer lab run ./mine.toml --in router -- tc -s qdisc
  ktrxer lab run flent --time virtual -- ping -c 100 server      # 100 s of virtual time, 2 s of real time
  ktrxer lab run access -- sh                     # a shell; `ip netns exec server COMMAND` runs a command in another host
Each host and router has a name (NAME-6: its IPv6 address, NAME-46: both).
Needs no root. All processes and namespaces are removed at the end.
The exit status is the command's; 125: the lab failed; 124: the time limit; 2: wrong use, or an error in FILE.
"""
EXAMPLES = """\
examples:
  ktrxer lab vm -- uname -a
  ktrxer lab vm --device router -- ktrxer doctor
  ktrxer lab vm --kernel 6.12 --put job.sh:/root/job.sh --get /root/out.csv:out.csv -- sh job.sh
  ktrxer lab vm --topology flent --set leaf=fq_codel --in client -- ping -c 5 10.64.4.2
  ktrxer lab vm --time real --peer 'iperf3 -s' -- iperf3 -c 10.65.0.2
The exit status is the command's; 125: the lab or the device failed; 124: the time limit; 2: wrong use.
"""


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGHUP, _interrupted)
    command: list[str] = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1 :]
    made = parser()
    options, rest = made.parse_known_args(arguments)
    if rest:
        _refuse(made, options, rest, command)
    options.command = command
    try:
        return int(options.run(options))
    except TimeLimit as error:
        _print_error(error)
        return TIME_LIMIT
    except LabError as error:
        _print_error(error)
        return LAB_FAILED


def _refuse(made: Parser, options: argparse.Namespace, rest: list[str], command: list[str]) -> NoReturn:
    """`rest` belongs to no option and to no argument."""
    chosen: Parser = next(action.choices[options.subcommand] for action in made._actions if isinstance(action, argparse._SubParsersAction))
    if options.run in (_run, _vm) and not command and not rest[0].startswith("-"):
        before = f"run {options.file}" if options.run is _run else "vm"
        chosen.error(f"'{rest[0][:64]}' is one word too many; the command comes after --: ktrxer lab {before} -- {shlex.join(rest)}")
    chosen.refuse(rest[0])


def _interrupted(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _print_error(error: LabError) -> None:
    if isinstance(error, GuestFailure) and error.console:
        print("the end of the device's console:", file=sys.stderr)
        print("  | " + console.tail(error.console).replace("\n", "\n  | "), file=sys.stderr)
    if isinstance(error, BuildFailure):
        print("  | " + error.log.strip().replace("\n", "\n  | "), file=sys.stderr)
    print(f"ktrxer lab: {error}", file=sys.stderr)


def _show(message: str) -> None:
    print(f"ktrxer lab: {message}", file=sys.stderr)


def parser() -> Parser:
    what = "Run commands in networks made of namespaces, and in emulated devices."
    parser = Parser("ktrxer lab", description=what)
    parsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)

    def subcommand(name: str, run: Callable[[argparse.Namespace], int], help: str, **more: Any) -> Callable[..., argparse.Action]:
        made = parsers.add_parser(name, help=help, **more)
        made.set_defaults(run=run, subcommand=name)
        return made.add_argument

    usage = "ktrxer lab run FILE [OPTION ...] -- COMMAND ..."
    add = subcommand("run", _run, "run one command in a topology of namespaces on this host", usage=usage, epilog=RUN_EXAMPLES)
    add("file", metavar="FILE", help="a topology: a TOML file, or the name of an included one (docs/howto/topologies.md)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="set a parameter of the topology, e.g. queue=fq_codel")
    add("--in", dest="node", metavar="NODE", help="the node in which the command runs (default: the topology's client)")
    add("--beside", action="append", default=[], metavar="NODE=SHELL", help="run this in NODE meanwhile; its output goes to standard error")
    add("--timeout", type=duration, metavar="D", help="end the command after this time, e.g. 90s (default: never; virtual time: 24h of it)")
    add("--time", default="real", metavar="T", help="clock: real (default), or virtual: a guest whose clock skips idle time")
    add("--kernel", metavar="V", help="virtual time: the kernel, 7.3 (default), 6.12 or 6.1")
    add("--wall-limit", type=duration, metavar="D", help="virtual time: hard limit on wall time (default 10min)")
    add("--memory", type=int, metavar="MIB", help="virtual time: memory of the guest (default 512)")
    add("--seed", type=SEED, metavar="N", help="virtual time: seed of the guest's random numbers (default 1); vary it for repetitions")
    add("--dry-run", action="store_true", help="check FILE and the options, and run nothing")

    add = subcommand("vm", _vm, "run one command in one device", usage="ktrxer lab vm [OPTION ...] -- COMMAND ...", epilog=EXAMPLES)
    add("--device", default="pc", metavar="NAME", help="the device: pc (default), router, phone or uml; `ktrxer lab devices` lists them")
    add("--kernel", metavar="V", help="the kernel: 5.10, 6.1 (default) or 6.12; for pc also 7.2 and 7.3")
    add("--time", default="virtual", metavar="T", help="clock: virtual (default): one CPU, no noise of the host; real: the host's")
    add("--timeout", type=duration, default=60.0, metavar="D", help="hard limit on wall time (default 60s)")
    add("--put", action="append", default=[], metavar="FILE:PATH", help="copy a file or folder of this host into the device")
    add("--get", action="append", default=[], metavar="PATH:FILE", help="copy a file or folder of the device back here")
    add("--env", action="append", default=[], metavar="NAME=VALUE", help="set an environment variable")
    add("--with", dest="layers", action="append", default=[], metavar="LAYER", help="more packages: python, capture (tcpdump, nft)")
    add("--unit-tests", action="store_true", help="copy this source tree's unit tests into the device: /usr/libexec/ktrxer/tests")
    add("--topology", metavar="FILE", help="make a topology first: a TOML file, or the name of an included one, e.g. flent")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="set a parameter of the topology, e.g. leaf=fq_codel")
    add("--in", dest="node", metavar="NODE", help="run the command in this node of the topology")
    add("--peer", metavar="SHELL", help="a second machine at 10.65.0.2 that runs this; the first is 10.65.0.1 (real time only)")
    add("--seed", type=SEED, default=1, metavar="N", help="seed of the device's random numbers (default 1); vary it for repetitions")
    add("--shift", type=between(0, 10), metavar="N", help="virtual time: 2^N ns an instruction (default: the device's)")
    add("--cpus", type=between(1, 16), metavar="N", help="real time: number of CPUs (default: the device's)")
    add("--memory", type=int, metavar="MIB", help="memory of the device")
    add("--console", type=Path, metavar="FILE", help="write the device's kernel messages during the command to this file")
    add("--json", action="store_true", help="print one JSON object: status, output, times, kernel warnings")

    subcommand("devices", _devices, "list devices, kernels and topologies")

    add = subcommand("setup", _setup, "fetch and build every image now")
    add("--update", action="store_true", help="look for newer packages first")
    add("--device", action="append", metavar="NAME", help="only this device")
    add("--kernel", metavar="V", help="only this kernel, of the devices that have it (default: all)")
    add("--headers", action="store_true", help="also the kernel headers for `ktrxer lab module`")
    add("--from", dest="package", type=Path, metavar="FILE", help="install the kernel of virtual time from this package of a release")

    add = subcommand("module", _module, "build a kernel module for a device")
    add("source", type=Path, metavar="FOLDER", help="the folder with the Kbuild file; it is not changed")
    add("--device", default="pc", metavar="NAME", help="pc, router, phone (default pc)")
    add("--kernel", metavar="V", help="5.10, 6.1, 6.12; pc: 7.2, 7.3 (default 6.1)")
    add("--out", type=Path, default=Path(), metavar="FOLDER", help="folder for the modules (default: the current one)")

    add = subcommand("topology", _topology, "check a topology; describe it, or print the script that makes it")
    add("name", metavar="FILE", help="a TOML file, or the name of an included topology")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="set a parameter")
    add("--describe", action="store_true", help="print its hosts, addresses and links")
    add("--down", action="store_true", help="print the script that removes it")
    return parser


def _pairs(values: list[str], separator: str, option: str) -> list[tuple[str, str]]:
    pairs = []
    for value in values:
        left, found, right = value.partition(separator)
        if not found or not left or not right:
            _wrong(f"{option} {value}: expected two parts with {separator!r} between them")
        pairs.append((left, right))
    return pairs


def _wrong(message: str) -> NoReturn:
    print(f"ktrxer lab: {message}", file=sys.stderr)
    raise SystemExit(WRONG_USE)


def _machine(options: argparse.Namespace) -> vm.Machine:
    chosen = device.load(options.device)
    recipe = Recipe.load()
    for layer in options.layers:
        recipe.get("layers", layer)
    emulator = chosen.emulator
    if options.time == "virtual" and (options.cpus or 1) > 1:
        _wrong("virtual time has one CPU; --cpus needs --time real")
    if options.memory is not None and options.memory < 64:
        _wrong(f"--memory {options.memory}: expected 64 MiB or more (the {options.device} has {emulator.memory_mib})")
    return vm.Machine(chosen, chosen.kernel(options.kernel), options.time, options.seed, options.shift, options.cpus, options.memory)


def _vm(options: argparse.Namespace) -> int:
    if not options.command:
        _wrong("no command; give it after --, e.g. ktrxer lab vm -- uname -a")
    if options.time not in ("virtual", "real"):
        _wrong(f"--time: {choice_fault(options.time, ('real', 'virtual'))}")
    if not 1 <= options.timeout <= 86400:
        _wrong(f"--timeout: {outside(f'{options.timeout:g}s', options.timeout < 1, '1s to 24h')}")
    if options.peer is not None and options.time != "real":
        _wrong("--peer needs --time real: in virtual time each machine has its own clock")
    if options.device == UML:
        return _vm_guest(options)
    try:
        stock.kernels(options.device)
        machine = _machine(options)
    except LabError as error:
        _wrong(str(error))
    command, setup = tuple(options.command), ""
    environment: dict[str, str] = {}
    if options.topology is not None:
        chosen = _load(options.topology, options.set)
        if chosen.events() or chosen.helpers():
            _wrong(f"{chosen.name} has `down`, `at` or `trace`, which only `ktrxer lab run` supports; virtual time has its own kernel")
        setup = wiring.script(chosen)
        of_machine = {"device": machine.device.name, "kernel": str(machine.kernel), "clock": machine.time}
        environment["KTRXER_LAB_TOPOLOGY"] = chosen.provenance(options.node or chosen.client, place="device", **of_machine)
        if options.node is not None:
            command = ("ip", "netns", "exec", _node(chosen, options.node), *command)
    elif options.set or options.node:
        _wrong("--set and --in need --topology")
    gets = _pairs(options.get, ":", "--get")
    for path, _ in gets:
        if not path.startswith("/"):
            _wrong(f"--get {path}: the path in the device must begin with /")
    puts = _pairs(options.put, ":", "--put")
    for source, path in puts:
        if not path.startswith("/"):
            _wrong(f"--put {source}:{path}: the path in the device must begin with /")
        if not Path(source).exists():
            _wrong(f"--put {source}: No such file or directory")
    job = vm.Job(
        command=command,
        put=tuple((Path(source), path) for source, path in puts),
        get=tuple(path for path, _ in gets),
        environment=environment | dict(_pairs(options.env, "=", "--env")),
        setup=setup,
        layers=tuple(options.layers),
        limit_s=options.timeout,
        unit_tests=options.unit_tests,
    )
    if options.command[0] == "ktrxer" and places.program(machine.device.build) is None and not puts:
        raise LabError(f"there is no ktrxer for the {machine.device.name}: {places.program_remedy()}")
    on_output = None if options.json else _pass_on
    if options.peer is not None:
        answer = vm.boot_pair(machine, machine, job, options.peer, on_output, _show)
    else:
        answer = vm.boot(machine, job, on_output, _show)
    try:
        if options.console is not None:
            options.console.write_text("\n".join(answer.kernel_log) + "\n")
        complete = _bring_back(answer, gets)
    finally:
        if answer.files is not None:
            answer.files.unlink()
    if options.json:
        print(json.dumps(_as_json(machine, answer, shlex.join(options.command))))
    else:
        for line in answer.warnings:
            _show(f"the device's kernel warned: {line}")
    return answer.status if complete else answer.status or LAB_FAILED


def _pass_on(out: bytes, err: bytes) -> None:
    for stream, data in ((sys.stdout, out), (sys.stderr, err)):
        if data:
            stream.buffer.write(data)
            stream.buffer.flush()


def _as_json(machine: vm.Machine, answer: vm.Answer, command: str) -> dict[str, object]:
    return {
        "device": machine.device.name,
        "kernel": machine.kernel,
        "time": machine.time,
        "seed": machine.seed,
        "command": command,
        "status": answer.status,
        "stdout": answer.stdout.decode(errors="replace"),
        "stderr": answer.stderr.decode(errors="replace"),
        "boot_s": round(answer.boot_s, 3),
        "wall_s": round(answer.wall_s, 3),
        "cpu_s": round(answer.cpu_s, 3),
        "guest_s": round(answer.guest_s, 3),
        "boot_guest_s": round(answer.boot_guest_s, 3),
        "kernel_warnings": answer.warnings,
    }


def _bring_back(answer: vm.Answer, gets: list[tuple[str, str]]) -> bool:
    """Write the files of the device to the requested places. False if one is missing."""
    for path, target in gets:
        if path in answer.missing:
            continue
        base = path.strip("/")
        if answer.files is None:
            answer.missing.append(path)
            continue
        with cache.no_space(Path(target)), tarfile.open(answer.files) as archive:
            for member in archive:
                name = member.name.strip("/")
                if name != base and not name.startswith(base + "/"):
                    continue
                place = Path(target + name.removeprefix(base))
                if member.isdir():
                    place.mkdir(parents=True, exist_ok=True)
                elif member.isreg():
                    source = archive.extractfile(member)
                    if place.is_dir():
                        place = place / Path(name).name
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(source.read() if source else b"")
    for path in answer.missing:
        _show(f"--get {path}: the device has no such file")
    return not answer.missing


def _devices(_: argparse.Namespace) -> int:
    for name in device.names():
        one = device.load(name)
        mips = 1000 >> one.emulator.shift
        built = "" if places.program(one.build) else f"; has no ktrxer: {places.program_remedy()}"
        print(f"{name:<8} {one.title}; {mips} MIPS in virtual time; kernels {', '.join(one.kernels)} (the first by default){built}")
    print(f"{UML:<8} a guest of user-mode Linux with this host's files; virtual time; kernels {', '.join(uml.kernels())}")
    for name in topology.names():
        print(f"topology {name}: {topology.load(name).title}")
    return 0


def _setup(options: argparse.Namespace) -> int:
    if options.package is not None:
        if options.device or options.kernel or options.headers or options.update:
            _wrong("--from FILE installs what FILE holds: give no other option with it")
        _show(f"the kernel is installed: {kernel_package.install(options.package, _show)}")
        return 0
    try:
        wanted = stock.wanted(options.device or [], options.kernel)
    except LabError as error:
        _wrong(str(error))
    stock.prepare(wanted, options.update, options.headers, _show)
    _show(f"the images of {', '.join(wanted)} are ready in {places.cache()}")
    return 0


def _load(name: str, settings: list[str]) -> Topology:
    try:
        return topology.load(name, dict(_pairs(settings, "=", "--set")))
    except LabError as error:
        _wrong(str(error))


def _node(chosen: Topology, name: str) -> str:
    if name not in chosen.nodes:
        _wrong(f"no node {name[:64]!r} in {chosen.name}; choose one of: {', '.join(chosen.nodes)}")
    return name


def _run(options: argparse.Namespace) -> int:
    if not options.command:
        _wrong(f"no command; give it after --, e.g. ktrxer lab run {options.file} -- ping -c 5 server")
    if options.timeout is not None and not 0.1 <= options.timeout <= 604800:
        _wrong(f"--timeout: {outside(f'{options.timeout:g}s', options.timeout < 1, '100ms to 168h')}")
    if options.time not in ("virtual", "real"):
        _wrong(f"--time: {choice_fault(options.time, ('real', 'virtual'))}")
    chosen = _load(options.file, options.set)
    beside = [(_node(chosen, node), shell) for node, shell in _pairs(options.beside, "=", "--beside")]
    node = _node(chosen, options.node or chosen.client)
    job = local.Job(tuple(options.command), node, tuple(beside), options.timeout)
    guest = _guest(options, options.wall_limit) if options.time == "virtual" else None
    for name in ("kernel", "wall_limit", "memory", "seed"):
        if guest is None and getattr(options, name) is not None:
            _wrong(f"--{name.replace('_', '-')} needs --time virtual")
    if options.dry_run:
        return 0
    return local.run(chosen, job) if guest is None else _in_guest(guest, chosen, job)


def _guest(options: argparse.Namespace, wall_limit_s: float | None) -> uml.Guest:
    """The guest of virtual time that the command line describes."""
    if wall_limit_s is not None and not 1 <= wall_limit_s <= 604800:
        _wrong(f"--wall-limit: {outside(f'{wall_limit_s:g}s', wall_limit_s < 1, '1s to 168h')}")
    if options.memory is not None and not 128 <= options.memory <= 16384:
        _wrong(f"--memory: {outside(str(options.memory), options.memory < 128, '128 to 16384')}")
    if options.kernel is not None and options.kernel not in uml.kernels():
        _wrong(f"--kernel {options.kernel}: virtual time has {', '.join(uml.kernels())}")
    seed = 1 if options.seed is None else options.seed
    return uml.Guest(options.kernel or uml.KERNEL, options.memory or uml.MEMORY_MIB, wall_limit_s or uml.WALL_LIMIT_S, seed)


def _in_guest(guest: uml.Guest, chosen: Topology | None, job: local.Job) -> int:
    """Run a command in virtual time."""
    plan = local.made_plan(chosen, job, "the device lab has another kernel: ktrxer lab vm --topology FILE -- COMMAND", "virtual time")
    answer = uml.run(guest, plan, _pass_on, _show)
    if answer.overlay_full:
        size = f"{int(guest.memory_mib * uml.OVERLAY_SHARE)} MiB of the guest's memory"
        cure = "write to that folder, or give the guest more (--memory)"
        _show(f"the guest's overlay is full: it holds all files written outside of {Path.cwd()}, in {size}; {cure}")
    return answer.status


# Options of `vm` that need a machine with its own files.
_NOT_OF_GUESTS = ("put", "get", "env", "layers", "unit_tests", "peer", "shift", "cpus", "console", "json")


def _vm_guest(options: argparse.Namespace) -> int:
    """`ktrxer lab vm --device uml`."""
    for name in _NOT_OF_GUESTS:
        if getattr(options, name):
            option = "with" if name == "layers" else name.replace("_", "-")
            _wrong(f"--{option} is not for the device uml, which has this host's files")
    if options.time != "virtual":
        _wrong(f"--time {options.time}: the device uml has virtual time only")
    chosen = None if options.topology is None else _load(options.topology, options.set)
    if chosen is None and (options.set or options.node):
        _wrong("--set and --in need --topology")
    node = None if chosen is None or options.node is None else _node(chosen, options.node)
    return _in_guest(_guest(options, options.timeout), chosen, local.Job(tuple(options.command), node))


def _module(options: argparse.Namespace) -> int:
    if options.command:
        _wrong("a command needs a device that runs: build first, then `ktrxer lab vm --put NAME.ko:/root/NAME.ko -- ...`")
    try:
        chosen = device.load(options.device)
        kernel = chosen.kernel(options.kernel)
    except LabError as error:
        _wrong(str(error))
    if not options.source.is_dir():
        _wrong(f"{options.source}: No such file or directory")
    for path in kbuild.build(chosen, kernel, options.source, options.out, _show):
        print(path)
    return 0


def _topology(options: argparse.Namespace) -> int:
    chosen = _load(options.name, options.set)
    print(chosen.describe() if options.describe else wiring.teardown(chosen) if options.down else wiring.script(chosen), end="")
    return 0
