"""`make timing`: two hosts, what the machine can do, a ping, and a timed send against sockets that sleep."""

from __future__ import annotations

import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Sequence

from ktrxer_lab import hosts
from ktrxer_lab.bench import contest, judge
from ktrxer_lab.hosts import Netns

INTERVAL_US, COUNT, ROUNDS = 10_000, 100, 3
BOLD, DIM, PLAIN = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ("", "", "")


def title(text: str) -> None:
    print(f"\n{BOLD}{text}{PLAIN}", flush=True)


def show(host: Netns, *arguments: str) -> None:
    print(f"{DIM}{host.label}${PLAIN} {shlex.join(['ktrxer', *arguments])}", flush=True)
    done = host.run([contest.ktrxer(), *arguments], check=False)
    sys.stdout.write(done.stdout + done.stderr)
    sys.stdout.flush()


def row(cells: Sequence[str]) -> str:
    return f"  {cells[0]:<34}" + "".join(f"{cell:>12}" for cell in cells[1:])


def duel(a: Netns, b: Netns) -> None:
    interval, errors = INTERVAL_US * 1000, defaultdict[str, list[int]](list)
    names = {
        "usleep": "UDP socket, usleep()",
        "absolute": "UDP socket, absolute nanosleep",
        "ktrxer": "ktrxer send",
    }
    own: dict[str, object] = {}
    for turn in range(ROUNDS):
        print(f"{DIM}round {turn + 1} of {ROUNDS}: {COUNT} probes each{PLAIN}", flush=True)
        for kind in ("usleep", "absolute"):
            errors[kind] += judge.interval_errors_ns(contest.sleeper(a, b, kind, INTERVAL_US, COUNT).arrivals, interval)
        sent = contest.send(a, b, "--interval", f"{INTERVAL_US}us", count=COUNT, seconds=COUNT * INTERVAL_US / 1e6)
        errors["ktrxer"] += judge.interval_errors_ns(sent.arrivals, interval)
        own = sent.result
    best = judge.timing(errors["ktrxer"]).median_us
    print()
    print(row(["error of 10 ms between probes", "p50", "IQR", "p99", "p50 ratio"]))
    for sender, name in names.items():
        one = judge.timing(errors[sender])
        ratio = f"{one.median_us / best:.1f}" if best else "-"
        print(row([name, f"{one.median_us:.2f} us", f"{one.iqr_us:.2f} us", f"{one.p99_us:.1f} us", ratio]))
    print(f"\n  selected engine: {own.get('engine', '?')}:  {own.get('engine_reason', '?')}")
    print("  Measured by the arrival stamps of host b's kernel, not by the senders.")


def main() -> int:
    there = contest.commands()
    try:
        hosts.sweep()
        with hosts.pair() as (a, b):
            print(f"Two hosts in network namespaces: a {a.address} {a.device} ------ {b.device} {b.address} b")
            if "doctor" in there:
                title("Available engines")
                show(a, "doctor", "--device", a.device)
            if "ping" in there:
                title("A ping with kernel stamps at both ends of the round trip")
                show(a, "ping", b.address, "--count", "10", "--interval", "50ms")
            if "send" in there:
                title("One probe every 10 ms: error of each sender")
                duel(a, b)
    except RuntimeError as error:
        print(f"timing: {error}", file=sys.stderr)
        return 1
    print(f"\nNext: {BOLD}{contest.ktrxer().relative_to(contest.ROOT)} --help{PLAIN}, `make test`, docs/index.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
