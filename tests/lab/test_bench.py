# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer bench` inside the devices, with the module: every sender takes its turns there, and the result is whole."""

from __future__ import annotations

import json
from pathlib import Path

import figures
import pytest
from ktrxer.lab import device, kbuild, places, vm
from ktrxer.lab.errors import Unavailable

BENCH = """
insmod /root/ktrxer.ko
/usr/bin/ktrxer-bench bench schedule --fq --no-bpf -n 1 -c 30 -i 2ms --json >/root/schedule.json || exit 10
/usr/bin/ktrxer-bench bench rate --no-bpf -n 1 --payload 28 --for 10ms --json >/root/rate.json || exit 20
cat /root/schedule.json
echo ----
cat /root/rate.json
"""
# The papers' senders and today's, beside the engines that these builds have.
SCHEDULE = {"module", "packet", "raw", "udp", "xsk", "txtime"}
RATE = {"module", "packet", "raw", "udp", "xsk"}


@pytest.mark.slow
@pytest.mark.parametrize("name", figures.DEVICES)
def test_bench_schedule_and_rate(name: str, tmp_path: Path) -> None:
    chosen = device.load(name)
    command = figures.bench_tree(chosen.build) / "bench" / "harness" / "ktrxer-bench"
    if not command.exists():
        pytest.skip(f"no {command.relative_to(places.root())}: `make lab-benches` builds it")
    try:
        (module,) = kbuild.build(chosen, chosen.kernel(None), places.root() / "module", tmp_path, vm.quiet)
        put = ((command, "/usr/bin/ktrxer-bench"), (module, "/root/ktrxer.ko"), *figures.baselines(chosen.build))
        answer = vm.boot(vm.Machine.named(name), vm.Job(("sh", "-c", BENCH), put=put, limit_s=230.0))
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert answer.status == 0, (answer.stderr.decode(), answer.stdout.decode())
    schedule, rate = (json.loads(part) for part in answer.stdout.decode().split("----\n"))
    for bench, senders in ((schedule, SCHEDULE), (rate, RATE)):
        rows = {row["engine"]: row for row in bench["rows"]}
        assert senders <= rows.keys() and len(rows) > len(senders), rows.keys()
        for sender, row in rows.items():
            assert row["rounds"] == 1, row
            print(f"{name} {bench['bench']} {sender}: {row}")
