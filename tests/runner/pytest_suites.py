# SPDX-License-Identifier: MIT OR Apache-2.0
"""The suites of pytest: the system tests in parts, the tests of Python, the installation."""

from __future__ import annotations

import tempfile
from pathlib import Path

import counts

from runner.suite import BUILD, CORES, ROOT, VENV, Suite

SYSTEM, FIGURES, FAULTS = "tests/system", "tests/system/test_figures.py", "tests/truth/faults"
PAGES = ["tests/system/test_docs.py", "tests/system/test_how_to_add.py"]
# Rates, lateness, processor time: no more than two of these run at a time.
TIMED = [f"{SYSTEM}/test_{name}.py" for name in ("bench", "flow", "live", "live_faults", "own_queue", "ping", "replay", "send", "stamp", "tcp", "xsk")]
TIMED_FAULTS = [f"{FAULTS}/test_{name}.py" for name in ("starved_processor", "on_time")]
TIMED += TIMED_FAULTS
# Pages, runs, topologies: together with the faults they need less than a fifth of two processors.
SLEEPERS = [*PAGES, f"{SYSTEM}/test_experiments.py", f"{SYSTEM}/test_lab_run.py"]
# --quick: without tests that last, and without those of programs that `scripts/setup check` does not install.
QUICK = "not slow and not tool"
ADVERSARY = "tests/system/test_adversary.py"
# For ThreadSanitizer, of each command that has threads: the transmit thread with each engine, the writer, the watchers of the host, of the
# input and of NIC clocks, the threads that keep processors busy, and signals that end them.
THREADED = [
    f"{SYSTEM}/test_{name}"
    for name in (
        "send.py",
        "live.py",
        "flow_faults.py::test_stop_on_eof",
        "flow_faults.py::test_the_server_is_stopped_and_comes_back",
        "flow_udp.py::test_udp",
        "interruptions.py::test_a_stalled_reader_delays_no_probe",
        *(f"interruptions.py::test_signals_at_any_moment[{turn}]" for turn in (7, 8, 9, 10)),
        "ping.py::test_round_trips",
        "ppt_direct.py::test_each_layer_in_both_phases",
        "recv.py::test_a_signal_ends_with_the_accounts",
        "recv.py::test_overrun_is_counted_to_the_last_packet",
        "recv.py::test_the_device_goes_in_mid_run",
        "serve_report.py::test_each_client_has_one_line",
        "stamp.py::test_samples",
    )
]
# Of these, what is about time alone.
NOT_THREADED = ("test_a_rate_past_what_calls_can_do", "test_expedited_grace_periods_end_beside_it", "test_idle_ends_the_polling", "test_times_are_met")


def pytest(suite: Suite, part: str, timeout: float, environment: dict[str, str], *arguments: str) -> None:
    python = VENV / "python"
    if not python.exists():
        suite.failed("pytest", "there is no .venv: `make .venv/.tests` makes it (and `make test` does)")
        return
    result = suite.log.with_name(f"{suite.name}-{part}.xml")
    result.unlink(missing_ok=True)
    command = ["scripts/netns-root", str(python), "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs", "--tb=short", f"--junitxml={result}"]
    with tempfile.TemporaryDirectory(prefix="ktrxer-") as place:
        # Root of a user namespace may not use pytest's default folder after the real root has used it.
        status, output = suite.run([*command, f"--basetemp={place}/t", *arguments], timeout, environment)
    if status == 77 and not result.exists():
        suite.skipped(part, output)
    else:
        suite.add(f"pytest {part}", counts.junit(result) if result.exists() else [], status, output)
        if status not in (0, 1):  # interrupted or stopped at the time limit: some tests did not run
            suite.failed(f"pytest {part} as a whole", f"{output[-4000:]}\nexit status {status}: not all tests ran")


def pytest_again(suite: Suite, environment: dict[str, str]) -> None:
    suite.again(lambda nodes, later: pytest(later, "again", 600, environment, *nodes), lambda name: counts.node(name, ROOT))


# Side by side: two files, whose tests look at time; a pool of tests that pass on a busy machine too, three for two processors with sanitizers and four
# without; a pool of tests that sleep for two thirds of their time or more.
TWO_FILES = ("-n", "2", "--dist", "loadfile")
POOL = ("-n", str(CORES + 1), "--dist", "worksteal")
PLAIN_POOL = ("-n", str(2 * CORES), "--dist", "worksteal")
SLEEPERS_POOL = ("-n", str(4 * CORES), "--dist", "worksteal")
QUICK_POOL = ("-n", str(CORES), "--dist", "worksteal")  # quick tests seldom wait, and each process needs four seconds to collect the tests


def system_tests(suite: Suite, where: Path, environment: dict[str, str], *parts: tuple[str, ...]) -> None:
    """A part is files and options of pytest. Most tests wait most of the time."""
    environment = environment | {"KTRXER_BUILD": str(where)}
    for number, part in enumerate(parts, 1):
        pytest(suite, f"system-{number}", 900, environment, *part)
    pytest_again(suite, environment)


def figures(suite: Suite) -> None:
    system_tests(suite, BUILD, {}, (FIGURES,))


def timed(suite: Suite) -> None:
    system_tests(suite, BUILD, {}, (*TIMED, *TWO_FILES))


def system(suite: Suite) -> None:
    system_tests(suite, BUILD, {}, (SYSTEM, *(f"--ignore={file}" for file in (FIGURES, *TIMED, *SLEEPERS)), *PLAIN_POOL))


def pages(suite: Suite) -> None:
    """The commands of the pages, whole runs, and faults of paths: tests that sleep most of the time."""
    system_tests(suite, BUILD, {}, (*SLEEPERS, FAULTS, *(f"--ignore={file}" for file in TIMED_FAULTS), *SLEEPERS_POOL))


def python(suite: Suite, quick: bool) -> None:
    pytest(suite, "python", 900, {}, "tests/python", *(("-m", QUICK, *QUICK_POOL) if quick else PLAIN_POOL))
    pytest_again(suite, {})


def lab(suite: Suite, quick: bool) -> None:
    """The distribution ktrxer-lab, which must not need the experiments: they are not in its path."""
    pytest(suite, "lab", 900, {"PYTHONPATH": str(ROOT / "lab")}, "lab/tests", *(("-m", QUICK, *QUICK_POOL) if quick else PLAIN_POOL))
    pytest_again(suite, {"PYTHONPATH": str(ROOT / "lab")})


def install(suite: Suite) -> None:
    pytest(suite, "install", 300, {"KTRXER_BUILD": str(BUILD)}, "tests/install")
    pytest_again(suite, {"KTRXER_BUILD": str(BUILD)})
