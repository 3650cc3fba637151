# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run` over a path or from a host with a planted fault; each test names the verdict and the cause that must come out.

    a 10.77.0.1 ---- 10.77.0.2 r 10.78.0.1 ---- 10.78.0.2 b        a measures, b serves, the faults of the path are in r

The hosts and the command come from the fixtures of the system tests.
"""

import contextlib
import importlib.util
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "system"))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

from ktrxer.store import Run, open_run
from ktrxer.summary import figures, model, text
from noise import before_others
from routed import routed

ROOT = Path(__file__).resolve().parents[3]


def _of_the_system_tests():
    spec = importlib.util.spec_from_file_location("system_conftest", ROOT / "tests" / "system" / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_system = _of_the_system_tests()
pytest_configure, pytest_runtest_call = _system.pytest_configure, _system.pytest_runtest_call
swept, requires_root, requires_namespaces = _system.swept, _system.requires_root, _system.requires_namespaces
ktrxer, serve = _system.ktrxer, _system.serve


# UDP at a rate, in Mbit/s.
FILL = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
due = begun = time.monotonic()
while True:
    try:
        s.sendto(bytes(1200), (sys.argv[1], 9))
    except OSError:
        pass  # the queue is full
    if begun and time.monotonic() > begun + 1:
        begun = print("full", flush=True)
    due += 0.0096 / float(sys.argv[2])
    time.sleep(max(0, due - time.monotonic()))
"""


@dataclass
class Result:
    run: Run
    verdict: str
    reasons: list[str]
    summary: model.Summary
    lines: list[str]  # lines of the printed summary

    def says(self, *words: str) -> bool:
        """Whether one reason contains all of these words."""
        return any(all(word in reason for word in words) for reason in self.reasons)


class Path3:
    """Three hosts, and `ktrxer run` from a to b."""

    def __init__(self, a, r, b, ktrxer, token, directory):
        self.a, self.r, self.b = a, r, b
        self.ktrxer, self.token, self.directory = ktrxer, token, directory

    def shape(self, device, mbit, limit, host=None):
        """`device` is rb (up) or ra (down) of the router, or a device of `host`."""
        (host or self.r).run(["tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{mbit}mbit", "burst", "5k", "limit", str(limit)])

    def counted(self, device, host=None):
        """The counters of the qdisc, from tc."""
        (found, *_) = json.loads((host or self.r).run(["tc", "-s", "-j", "qdisc", "show", "dev", device, "root"]).stdout)
        return found

    def drops(self, device, host=None):
        """Drops of the qdisc, from tc."""
        return self.counted(device, host)["drops"]

    @contextlib.contextmanager
    def filled(self, host, to="10.78.0.2", mbit=4.0):
        """The host sends so much UDP to an address, and has done so for a second."""
        with host.popen([*before_others(), sys.executable, "-c", FILL, to, str(mbit)]) as child:
            try:
                assert child.stdout.readline() == "full\n"
                yield
            finally:
                child.kill()

    def start(self, *words, host=None):
        environment = os.environ | {"KTRXER_BIN": str(self.ktrxer), "PYTHONPATH": str(ROOT / "python")}
        command = [sys.executable, "-m", "ktrxer", "run", *words, "-H", "10.78.0.2", "-D", self.directory, "--token-file", self.token, "--json"]
        return (host or self.a).popen(list(map(str, command)), env=environment)

    def wait_for_run(self):
        """Wait until a run has begun. On a full path the trial flows before it repeat lost segments: 20 s were too few twice."""
        for _ in range(3000):
            if any(self.directory.glob("*.part")):
                return
            time.sleep(0.02)
        raise AssertionError("no run has begun")

    def wait_for_samples(self, number):
        """Wait until at least so many of a run's probes are stored."""
        for _ in range(1000):
            if any(part.stat().st_size > 40 * number for part in self.directory.glob("*.part/latency.arrows")):
                return
            time.sleep(0.02)
        raise AssertionError("the run stores no samples")

    def result(self, child, timeout=120) -> Result:
        out, err = child.communicate(timeout=timeout)
        assert child.returncode in (0, 3) and out, err
        told = json.loads(out)
        run = open_run(told["file"])
        summary = figures.summarise(run)
        made = Result(run, told["verdict"], [one["text"] for one in told["reasons"]], summary, text.lines(summary))
        print("\n".join(made.lines))
        return made

    def measure(self, *words, host=None) -> Result:
        return self.result(self.start(*words, host=host))

    def check(self, serve, *words):
        """The object of `ktrxer check`, by default against `ktrxer serve` in b."""
        serve(self.b, "--token-file", self.token)
        where = () if "--download" in words else ("--server", "10.78.0.2")
        done = self.checked(*where, *words)
        assert done.stdout, done.stderr
        made = json.loads(done.stdout)
        print(f"figure: {made['answer']}; {made['reasons']}")
        return made

    def checked(self, *words):
        environment = os.environ | {"KTRXER_BIN": str(self.ktrxer), "PYTHONPATH": str(ROOT / "python")}
        command = [sys.executable, "-m", "ktrxer", "check", "-D", self.directory, "--token-file", self.token, "--json", *words]
        return self.a.run(list(map(str, command)), env=environment, check=False, timeout=120)


@pytest.fixture
def path(requires_namespaces, ktrxer, tmp_path):
    pytest.importorskip("pyarrow", reason="the Python part's packages are not installed: `make .venv/.ok`")
    token = tmp_path / "token"
    token.write_text("a-secret-of-the-tests-of-faults\n")
    token.chmod(0o600)
    (tmp_path / "runs").mkdir()
    with routed() as (a, r, b):
        yield Path3(a, r, b, ktrxer, token, tmp_path / "runs")
