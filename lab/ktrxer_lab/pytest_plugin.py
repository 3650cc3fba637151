# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests that run inside a device of the lab and are reported like the host's own tests.

    from ktrxer_lab.pytest_plugin import in_device

    @in_device("pc", "router", kernel="6.1")
    def test_something():        # runs as root in the device, under its own pytest; once for each device
        ...

    @in_network("access", time="virtual")
    def test_something():        # runs in the client of a topology on this host's files, in virtual or real time

The folder's conftest.py needs `from ktrxer_lab.pytest_plugin import *`. All tests of a run that need the same machine share one boot, also
tests of different modules. The machines run beside the host's own tests, at most as many at a time as there are CPUs. If a test crashes its
machine, the test fails with the end of the console's output, and the remaining tests get a new machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Any, TypeVar, cast

import pytest

from ktrxer_lab.errors import BuildFailure, GuestFailure, LabError, Unavailable

__all__ = [
    "in_device",
    "in_network",
    "limited",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_runtest_protocol",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
]

Function = TypeVar("Function", bound=Callable[..., object])
ROOT = "/lab-tests"
HERE = os.environ.get("KTRXER_LAB_DEVICE")  # set inside a device
TIMEOUT_S = 600.0  # of wall time, on a host with other load


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """A test that hangs fails after so many seconds, and the rest of its file runs. 0: no limit."""

    def late(*_: object) -> None:
        pytest.fail(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# pytest imports pygments to colour its output. In a device it needs no colours, so these empty classes suffice.
COLOURLESS = {
    "__init__.py": "",
    "formatters/__init__.py": "",
    "formatters/terminal.py": "class TerminalFormatter: pass\n",
    "lexer.py": "class Lexer: pass\n",
    "lexers/__init__.py": "",
    "lexers/diff.py": "class DiffLexer: pass\n",
    "lexers/python.py": "class PythonLexer: pass\n",
}


@dataclass(frozen=True)
class Wish:
    """The machine that a test needs."""

    kernel: str | None = None
    time: str = "virtual"
    timeout: float = field(default=TIMEOUT_S, compare=False)  # a shared boot uses the longest of its tests
    topology: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    layers: tuple[str, ...] = ()
    modules: tuple[str, ...] = field(default=(), compare=False)  # a shared boot has the modules of all its tests


def in_device(
    *devices: str,
    kernel: str | None = None,
    time: str = "virtual",
    timeout: float = TIMEOUT_S,
    topology: str | None = None,
    settings: dict[str, str] | None = None,
    layers: tuple[str, ...] = (),
    modules: tuple[str, ...] = (),
    slow: tuple[str, ...] = (),
) -> Callable[[Function], Function]:
    """Run the test in each of these devices. In the devices in `slow` it runs only with the mark `slow`.

    `timeout` is the hard limit, in seconds of wall time, of one boot with all tests that share it. `modules` are folders of kernel modules
    beside the test's file: they are built for the device's kernel and copied to /root, not loaded.
    """
    if not devices:
        raise TypeError("in_device: name a device")
    wish = Wish(kernel, time, timeout, topology, tuple(sorted((settings or {}).items())), layers, modules)

    def mark(function: Function) -> Function:
        marked: Function = pytest.mark.in_device(devices, wish, slow)(function)
        return marked

    return mark


@dataclass(frozen=True)
class Network:
    """The topology that a test needs."""

    topology: str
    time: str
    node: str | None
    settings: tuple[tuple[str, str], ...]
    timeout: float = field(compare=False)


def in_network(
    topology: str, *, time: str = "virtual", node: str | None = None, settings: dict[str, str] | None = None, timeout: float = TIMEOUT_S
) -> Callable[[Function], Function]:
    """Run the test in a node of a topology (default: its client), as `ktrxer lab run` does.

    `time` is `virtual` (a guest whose clock skips idle time) or `real` (namespaces of this host). `timeout` is the hard limit, in
    seconds of wall time, of one guest with all tests that share it.
    """
    if time not in ("virtual", "real"):
        raise TypeError(f"in_network: time={time!r}: choose virtual or real")
    wish = Network(topology, time, node, tuple(sorted((settings or {}).items())), timeout)

    def mark(function: Function) -> Function:
        marked: Function = pytest.mark.in_network(wish)(function)
        return marked

    return mark


def _elsewhere(item: pytest.Item) -> bool:
    """Whether this process runs on the host and the test runs in a device or a network."""
    return HERE is None and any(item.get_closest_marker(name) is not None for name in ("in_device", "in_network"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "in_device(devices, wish): runs inside a device of the lab")
    config.addinivalue_line("markers", "in_network(wish): runs inside a topology of the lab")
    config.addinivalue_line("markers", "slow: takes minutes")
    if HERE is None:  # handle SIGTERM like Ctrl-C: stop the machines and remove their folders
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("in_device")
    if marker is not None:
        devices = [
            pytest.param(name, marks=[pytest.mark.slow] if name in marker.args[2] else [])
            for name in marker.args[0]
            if HERE in (None, name)
        ]
        metafunc.fixturenames.append("lab_device")
        metafunc.parametrize("lab_device", devices)


class Batch:
    """The tests that share one machine, and their reports. The machine runs in its own thread."""

    def __init__(self, items: list[pytest.Item]) -> None:
        self.items = items
        self.reports: dict[str, list[pytest.TestReport]] = {}
        self.boots: list[str] = []  # a line with the times of each boot

    def run(self, stop: Event) -> None:
        left = self.items
        while left and not stop.is_set():
            try:
                self._boot(left, stop)
            except Exception as error:  # pass any error on to the thread that waits for these tests
                for item in left:
                    self.reports.setdefault(item.nodeid, [_report(item, "failed", f"{type(error).__name__}: {error}")])
            left = [item for item in left if item.nodeid not in self.reports]

    def _boot(self, left: list[pytest.Item], stop: Event) -> None:
        """Run one boot. It gives a report for at least one more test."""
        from ktrxer_lab import device, topology, vm, wiring

        wish, name = _wish(left[0]), _device(left[0])
        built, left = self._build_modules(left)
        if not left:
            return
        try:
            chosen = device.load(name)
            machine = vm.Machine(chosen, chosen.kernel(wish.kernel), cast("vm.Time", wish.time))
            setup = wiring.script(topology.load(wish.topology, dict(wish.settings))) if wish.topology else ""
            job = vm.Job(
                command=("python3", "-m", "ktrxer_lab.guest", *(item.nodeid for item in left)),
                environment={**_passed_on(), "KTRXER_LAB_DEVICE": name, "PYTHONPATH": f"{ROOT}/lab", "KTRXER_LAB_ROOT": ROOT},
                setup=setup,
                layers=("python", *wish.layers),
                limit_s=max(_wish(item).timeout for item in left),
                extra=_files(left, built),
            )
            answer = vm.boot(machine, job, stop=stop)
            what = " ".join(filter(None, (name, machine.kernel, wish.time, wish.topology)))
            self.boots.append(f"{answer.cpu_s:6.1f} s of processor, {answer.wall_s:6.1f} s of wall: {len(left):3} tests, {what}")
            output, error = answer.stdout, ""
            if answer.status != 0:
                error = f"the device's pytest ended with {answer.status}:\n{answer.stderr.decode(errors='replace')}"
        except Unavailable as unavailable:
            self.reports.update({item.nodeid: [_report(item, "skipped", str(unavailable))] for item in left})
            return
        except GuestFailure as failure:
            output = failure.stdout
            error = f"{failure}\n{failure.stderr.decode(errors='replace')}\n--- console ---\n{failure.console[-3000:]}"
        except LabError as failure:
            output, error = b"", str(failure)
        self._take(left, output, error)

    def _take(self, left: list[pytest.Item], output: bytes, error: str) -> None:
        """Read the reports from the output of a machine's pytest. `error` is the reason if some are missing."""
        by_id = {item.nodeid: item for item in left}
        collected: dict[str, list[pytest.TestReport]] = {}
        begun: str | None = None
        hook, config = left[0].config.hook, left[0].config
        for line in _json_lines(output):
            if "begin" in line:
                begun = str(line["begin"])
            elif "report" in line:
                report = hook.pytest_report_from_serializable(config=config, data=line["report"])
                if isinstance(report.longrepr, list):  # file, line and reason of a skip: pytest requires a tuple, which JSON does not have
                    report.longrepr = tuple(report.longrepr)
                collected.setdefault(report.nodeid, []).append(report)
                if report.when == "teardown":
                    begun = None
        done = {nodeid: reports for nodeid, reports in collected.items() if reports[-1].when == "teardown" and nodeid in by_id}
        self.reports.update(done)
        rest = [item for item in left if item.nodeid not in done]
        if not rest:
            return
        if not collected and begun is None:  # no test has begun: another boot would give the same result
            self.reports.update({item.nodeid: [_report(item, "failed", error or "the device ran no test")] for item in left})
            return
        # The machine ended early: the running test has failed or, between two tests, the next one.
        culprit = by_id.get(begun or "", rest[0])
        words = error or "the device sent no report of this test"
        self.reports[culprit.nodeid] = [*collected.get(culprit.nodeid, []), _report(culprit, "failed", words)]

    def _build_modules(self, left: list[pytest.Item]) -> tuple[dict[str, bytes], list[pytest.Item]]:
        """Build the kernel modules of the tests. Returns the modules, and the tests whose modules were built; the others get a failed
        report."""
        from ktrxer_lab import device, kbuild, scratch, vm

        built: dict[str, bytes] = {}
        for source in dict.fromkeys(item.path.parent / name for item in left for name in _wish(item).modules):
            chosen = device.load(_device(left[0]))
            outcome, words = "failed", ""
            try:
                with scratch.folder() as place:
                    for path in kbuild.build(chosen, chosen.kernel(_wish(left[0]).kernel), source, place, vm.quiet):
                        built[path.name] = path.read_bytes()
            except Unavailable as unavailable:
                outcome, words = "skipped", str(unavailable)
            except BuildFailure as failure:
                words = f"{failure}\n{failure.log}"
            except LabError as failure:
                words = str(failure)
            if words:
                without = [item for item in left if source in (item.path.parent / name for name in _wish(item).modules)]
                self.reports.update({item.nodeid: [_report(item, outcome, words)] for item in without})
                left = [item for item in left if item not in without]
        return built, left


class NetworkBatch(Batch):
    """The tests that share one run of `ktrxer lab run`."""

    def _boot(self, left: list[pytest.Item], stop: Event) -> None:
        wish, root = _network(left[0]), left[0].config.rootpath
        limit = max(_network(item).timeout for item in left)
        words = [sys.executable, "-m", "ktrxer_lab", "run", wish.topology, "--time", wish.time]
        words += ["--wall-limit" if wish.time == "virtual" else "--timeout", f"{limit:g}s"]
        words += [word for name, value in wish.settings for word in ("--set", f"{name}={value}")]
        words += ["--in", wish.node] if wish.node is not None else []
        words += ["--", sys.executable, "-m", "ktrxer_lab.guest", *(item.nodeid for item in left)]
        package = str(Path(__file__).resolve().parents[1])
        more = {"KTRXER_LAB_DEVICE": "network", "KTRXER_LAB_ROOT": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        with subprocess.Popen(
            words,
            cwd=root,
            env=os.environ | more | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            while True:
                try:
                    output, errors = process.communicate(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    if stop.is_set():
                        process.terminate()
        error = f"the network's pytest ended with {process.returncode}:\n{errors.decode(errors='replace')}" if process.returncode else ""
        self._take(left, output, error)


@dataclass
class Batches:
    """All machines of one test run."""

    of: dict[str, tuple[Batch, Future[None]]]  # by test id; of a worker of pytest-xdist only those whose first test has come
    waiting: dict[str, Batch]  # the others, by test id
    pool: ThreadPoolExecutor
    stop: Event

    def start(self, batch: Batch) -> None:
        future = self.pool.submit(batch.run, self.stop)
        for item in batch.items:
            self.of[item.nodeid] = (batch, future)
            self.waiting.pop(item.nodeid, None)


BATCHES = pytest.StashKey[Batches]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the host's own tests first. A test that waits for a machine would leave a processor idle after the machines are done."""
    if HERE is None:
        items.sort(key=_elsewhere)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the machines now: the host's own tests run beside them. A worker of pytest-xdist knows the tests of all workers, and runs only
    some files of them (`--dist loadfile`): there a machine is for the tests of one file, and starts with the first of them."""
    worker = hasattr(session.config, "workerinput")
    groups: dict[tuple[Path | None, tuple[str, Wish] | Network], list[pytest.Item]] = {}
    for item in session.items:
        if _elsewhere(item):
            network = item.get_closest_marker("in_network")
            machine = (_device(item), _wish(item)) if network is None else _network(item)
            groups.setdefault((item.path if worker else None, machine), []).append(item)
    if not groups or session.config.option.collectonly:
        return
    pool, stop = ThreadPoolExecutor(len(os.sched_getaffinity(0)), "lab"), Event()
    batches = Batches({}, {}, pool, stop)
    for (_, needed), items in groups.items():
        batch = NetworkBatch(items) if isinstance(needed, Network) else Batch(items)
        if worker:
            batches.waiting.update({item.nodeid: batch for item in items})
        else:
            batches.start(batch)
    session.config.stash[BATCHES] = batches


def pytest_sessionfinish(session: pytest.Session) -> None:
    batches = session.config.stash.get(BATCHES, None)
    if batches is not None:
        batches.stop.set()
        batches.pool.shutdown(cancel_futures=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the times of the machines after --durations, because a test in a device reports only its time in the device."""
    batches = config.stash.get(BATCHES, None)
    if batches is None or config.getoption("durations") is None:
        return
    terminalreporter.section("machines")
    all_of = {id(batch): batch for batch, _ in batches.of.values()}.values()
    for line in sorted((line for batch in all_of for line in batch.boots), reverse=True):
        terminalreporter.write_line(line)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not _elsewhere(item):
        return None
    batches = item.config.stash[BATCHES]
    if item.nodeid in batches.waiting:
        batches.start(batches.waiting[item.nodeid])
    batch, future = batches.of[item.nodeid]
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    future.result()
    for report in batch.reports[item.nodeid]:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    # A test of the host that ran before this one has kept the fixtures of the module that both share. If the next test is in another
    # module, they end here.
    item.session._setupstate.teardown_exact(nextitem)
    return True


def _passed_on() -> dict[str, str]:
    """Environment variables for tests, on the host and in devices."""
    return {name: value for name, value in os.environ.items() if name.startswith("KTRXER_TEST_")}


def _device(item: pytest.Item) -> str:
    return str(cast("Any", item).callspec.params["lab_device"])


def _wish(item: pytest.Item) -> Wish:
    marker = item.get_closest_marker("in_device")
    assert marker is not None
    return cast("Wish", marker.args[1])


def _network(item: pytest.Item) -> Network:
    marker = item.get_closest_marker("in_network")
    assert marker is not None
    return cast("Network", marker.args[0])


def _json_lines(output: bytes) -> Iterator[dict[str, Any]]:
    for line in output.decode(errors="replace").splitlines():
        if line.startswith("{"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def _report(item: pytest.Item, outcome: str, words: str) -> pytest.TestReport:
    path, line, _ = item.location
    longrepr: Any = (path, (line or 0) + 1, f"Skipped: {words}") if outcome == "skipped" else words
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome=cast("Any", outcome),
        longrepr=longrepr,
        when="setup" if outcome == "skipped" else "call",
    )


def _files(items: list[pytest.Item], built: dict[str, bytes]) -> Any:
    """The files for the device: the Python files of the tests' folders and of the folders above, `ktrxer_lab` without its packages, and
    pytest. They are in the device's memory."""
    from ktrxer_lab import cpio, image

    tree = cpio.Tree()
    root = items[0].config.rootpath
    for place in dict.fromkeys(item.path.parent for item in items):
        for folder in [place, *(parent for parent in place.parents if parent.is_relative_to(root))]:
            for path in sorted(folder.glob("*.py" if folder == place else "conftest.py")):
                tree.file(f"{ROOT}/{path.relative_to(root)}", path.read_bytes())
    tree.file(f"{ROOT}/pytest.ini", b"[pytest]\n")
    for name, data in built.items():
        tree.file(f"root/{name}", data)
    for path in sorted(Path(__file__).resolve().parent.glob("*.py")):
        tree.file(f"{ROOT}/lab/ktrxer_lab/{path.name}", path.read_bytes())
    for name in ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging"):
        _module(tree, name)
    for name, text in COLOURLESS.items():
        tree.file(f"usr/lib/python3/dist-packages/pygments/{name}", text.encode())
    for path_name in [name for name in tree.entries if name.endswith(".py")]:
        if PurePosixPath(path_name).name.startswith(("test_", "conftest.")) and path_name.startswith(ROOT.strip("/")):
            _rewrite_into(tree, path_name)
        else:
            image.compile_into(tree, path_name)
    return tree


def _rewrite_into(tree: Any, path: str) -> None:
    """Add byte code of a test file, with assertions as pytest rewrites them, at the path where pytest (9.2) keeps its own. A router needs
    half a minute to make it. Another version of pytest or Python ignores it and reads the source."""
    import ast
    import marshal
    from importlib.util import MAGIC_NUMBER, source_hash

    from _pytest.assertion import rewrite

    source = tree.entries[path].data
    try:
        module = ast.parse(source, filename=f"/{path}")
        rewrite.rewrite_asserts(module, source, f"/{path}")
        code = compile(module, f"/{path}", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return  # the pytest in the device reports the error
    folder, _, name = path.rpartition("/")
    data = MAGIC_NUMBER + (3).to_bytes(4, "little") + source_hash(source) + marshal.dumps(code)
    tree.file(f"{folder}/__pycache__/{name.removesuffix('.py')}{rewrite.PYC_TAIL}", data)


def _module(tree: Any, name: str) -> None:
    from importlib.util import find_spec

    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return
    source = Path(spec.origin)
    base = "usr/lib/python3/dist-packages"
    if spec.submodule_search_locations is None:
        tree.file(f"{base}/{source.name}", source.read_bytes())
        return
    for path in sorted(source.parent.rglob("*.py")):
        tree.file(f"{base}/{name}/{path.relative_to(source.parent)}", path.read_bytes())
