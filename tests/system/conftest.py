# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the system tests: hosts in network namespaces, the command under test, and reasons to skip."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "contract"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))

import recorded
from far_end import Engine, gro
from flows import flow, narrow_pair, refusal, token  # noqa: F401
from ktrxer_lab import hosts
from ktrxer_lab.bench import contest
from ktrxer_lab.pytest_plugin import limited
from noise import LIMIT_S
from stamps import stamp  # noqa: F401


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "plain_build: not for the sanitized pass, because its claim is a figure, a time or Python's, and each region of C that it runs is run by"
        " another test of that pass (docs/measurements/2026-11-23-tests.md)",
    )
    # A test run that is stopped takes its hosts down first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with limited(LIMIT_S):
        yield


@pytest.fixture(autouse=True)
def objects_fit_their_schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of all output of the command under test that a test reads to its end."""
    found: list[str] = []
    monkeypatch.setattr(subprocess.Popen, "communicate", recorded.watch(found))
    yield
    assert not found, f"the tables of fields do not allow, or a figure has two values: {sorted(set(found))}"


@pytest.fixture(autouse=True)
def figures_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each run that a test has recorded: a figure that stands in two places is the same (tests/python/agreement.py)."""
    yield
    path = request.node.funcargs.get("tmp_path")
    if path is not None and path.is_dir() and next(path.rglob("*.ktrxer"), None) is not None:
        from agreement import of_test

        assert not of_test(path)


@pytest.fixture(scope="session", autouse=True)
def swept() -> None:
    """A test run that was killed leaves its namespaces; the next one removes them."""
    if hosts.why_not() is None:
        for name in hosts.sweep():
            print(f"removed the stale namespace {name}")


@pytest.fixture(scope="session")
def requires_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("not root: run under scripts/netns-root (tests/run does)")


@pytest.fixture(scope="session")
def requires_namespaces(requires_root: None) -> None:
    reason = hosts.why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def requires_real_root(requires_root: None) -> None:
    """Root outside of a user namespace, for real-time scheduling, XDP and other users."""
    if os.environ.get("KTRXER_USER_NAMESPACE"):
        pytest.skip("root of a user namespace only: this needs the machine's root")


@pytest.fixture(scope="session")
def ktrxer() -> Path:
    """The command under test: $KTRXER_BIN, else that of $KTRXER_BUILD, else build/cli/ktrxer."""
    path = contest.ktrxer()
    if not path.exists():
        pytest.fail(f"{path} is not built: run `make`")
    return path


@pytest.fixture
def pair(requires_namespaces: None) -> Iterator[tuple[hosts.Netns, hosts.Netns]]:
    """Two fresh hosts: 10.77.0.1 and fd00:77::1 on a0, 10.77.0.2 and fd00:77::2 on b0."""
    with hosts.pair() as both:
        yield both


@pytest.fixture(scope="module")
def shared_pair(requires_namespaces: None) -> Iterator[tuple[hosts.Netns, hosts.Netns]]:
    """The same two hosts for all tests of a module, for tests that do not change them."""
    with hosts.pair() as both:
        yield both


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Fail for two members of the same name, of which a parser would keep only one."""
    members = dict(pairs)
    assert len(members) == len(pairs), f"a name twice in one object: {[name for name, _ in pairs]}"
    return members


class Json:
    """`ktrxer ... --json` in a host, parsed."""

    def __init__(self, command: Path) -> None:
        self.command = command

    def __call__(self, host: hosts.Netns, *arguments: str, status: int | None = 0, timeout: float = 60) -> dict[str, Any]:
        done = host.run([self.command, *arguments, "--json"], check=False, timeout=timeout)
        assert status is None or done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        result: dict[str, Any] = json.loads(done.stdout, object_pairs_hook=unique)
        return result


@pytest.fixture(scope="session")
def ktrxer_json(ktrxer: Path) -> Json:
    return Json(ktrxer)


@pytest.fixture(scope="session")
def needs_command(ktrxer: Path) -> Any:
    there = contest.commands()

    def check(name: str) -> None:
        if name == "bench" and name not in there:  # a choice of the build (-Dbench=false)
            pytest.skip(f"this ktrxer has no `{name}`")
        assert name in there, f"this ktrxer has no `{name}`"

    return check


class Serve:
    """`ktrxer serve` in a host. It listens when the constructor returns; `end` is its last object after a stop."""

    def __init__(self, command: Path, host: hosts.Netns, *options: object, prefix: Sequence[str] = ()) -> None:
        self.process = host.popen([*prefix, command, "serve", "--jsonl", *map(str, options)])
        assert self.process.stdout is not None
        self.process.stdout.readline()  # start
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"ktrxer serve does not listen: {self.process.communicate()[1]}")
        self.listening: dict[str, Any] = json.loads(line)
        self.end: dict[str, Any] = {}

    def stop(self, number: int = signal.SIGTERM) -> dict[str, Any]:
        """The reflector's counts."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, err
        self.end = json.loads(out.splitlines()[-1])
        counts: dict[str, Any] = self.end["stamp"]
        return counts


@pytest.fixture
def serve(ktrxer: Path) -> Any:
    """serve(host, *options) starts a server; all are stopped at the end."""
    started: list[Serve] = []

    def start(host: hosts.Netns, *options: object, prefix: Sequence[str] = ()) -> Serve:
        started.append(Serve(ktrxer, host, *options, prefix=prefix))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


@pytest.fixture
def live(requires_real_root: None, pair: tuple[hosts.Netns, hosts.Netns], ktrxer: Path, ktrxer_json: Json) -> Engine:
    """The live engine. The test is skipped with the engine's own reason if the kernel, build or machine lacks it."""
    engine = Engine("live", ktrxer, ktrxer_json)
    gro(pair[1], True)
    said = engine.doctor(pair[0])
    if not said["available"] and re.search("built without|Linux 5.18|one for all|CONFIG_BPF", said["reason"]):
        pytest.skip(said["reason"])
    return engine
