# SPDX-License-Identifier: MIT OR Apache-2.0
"""The harness of `ktrxer bench` inside the devices, with the module: every sender takes its turns, and the result is complete."""

from __future__ import annotations

import json
from pathlib import Path

import figures
import pytest
from ktrxer_lab import device, kbuild, places, vm, wiring
from ktrxer_lab.bench import kinds
from ktrxer_lab.bench.command import hosts
from ktrxer_lab.errors import Unavailable

PATH = "--device to-far --to 10.99.0.2 --far-device to-near --far-netns far"
BENCH = f"""
insmod /root/ktrxer.ko
tc -n near qdisc replace dev to-far root fq timer_slack 0 || exit 5
ip netns exec near /usr/bin/ktrxer-bench bench schedule --no-bpf -n 1 -c 30 -i 2ms {PATH} || exit 10
tc -n near qdisc del dev to-far root
echo ----
ip netns exec near /usr/bin/ktrxer-bench bench rate --no-bpf -n 1 --payload 28 --for 10ms {PATH} || exit 20
"""
# The senders of the papers and of today, beside the engines of these builds.
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
        answer = vm.boot(vm.Machine.named(name), vm.Job(("sh", "-c", BENCH), put=put, setup=wiring.script(hosts()), limit_s=230.0))
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert answer.status == 0, (answer.stderr.decode(), answer.stdout.decode())
    for name_of, senders, lines in zip(("schedule", "rate"), (SCHEDULE, RATE), answer.stdout.decode().split("----\n"), strict=True):
        reader = kinds.reader(name_of, methods=False)
        *told, end = map(json.loads, lines.splitlines())
        assert end["type"] == "end" and end["verdict"] != "invalid", end
        for sample in told:
            if sample["type"] == "sample":
                reader.add(sample)
        rows = {str(row["engine"]): row for row in reader.table().rows}
        assert senders <= rows.keys() and len(rows) > len(senders), rows.keys()
        for sender, row in rows.items():
            assert row["rounds"] == 1, row
            print(f"{name} {name_of} {sender}: {row}")
