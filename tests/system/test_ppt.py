# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer ppt estimate` and `ktrxer ppt plan`: files with known properties, invalid files, and the paper's paths."""

from __future__ import annotations

import json
import random
import resource
import subprocess
from pathlib import Path
from typing import Any

import probe_files
import pytest
from programs import KTRXER, run

SIZES = (72, 232)


def estimate(path: Path, *options: str, status: int = 0) -> dict[str, Any]:
    done = run(KTRXER, "ppt", "estimate", str(path), "--json", *options)
    assert done.returncode == status, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def refusal(path: Path, *options: str) -> str:
    done = run(KTRXER, "ppt", "estimate", str(path), *options)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith("ktrxer ppt estimate: "), (done.stdout, done.stderr)
    return done.stderr


def contains(interval: dict[str, float], truth: float) -> bool:
    return interval["low"] <= truth <= interval["high"]


@pytest.mark.parametrize("rate,sizes", [(10e6, (87, 112)), (100e6, SIZES), (1e9, (72, 1472))])
def test_capacity_and_delta_from_gaps(rate: float, sizes: tuple[int, int], tmp_path: Path) -> None:
    found = estimate(probe_files.csv(tmp_path / "gaps.csv", probe_files.gaps(rate, 2500, sizes, 50, 100)))
    assert found["reading"] == "resolved" and found["clock_resolution_ns"] == 1
    assert abs(found["capacity_bit_s"]["value"] - rate) < 0.03 * rate
    assert contains(found["capacity_bit_s"], rate) and contains(found["delta_ns"], 2500), found
    paper = found["paper"]
    assert paper["ppt_note"].startswith("fixed by construction")
    assert paper["ppt_trailing_ns"] == pytest.approx(8e9 * (sizes[1] - sizes[0]) / found["capacity_bit_s"]["value"], rel=1e-5)


def test_the_same_from_a_capture(tmp_path: Path) -> None:
    rows = probe_files.gaps(100e6, -1200, SIZES, 50, 60)
    packets = probe_files.probes(rows)
    whole = estimate(probe_files.csv(tmp_path / "gaps.csv", rows))
    found = estimate(probe_files.pcap(tmp_path / "whole.pcap", packets))
    assert found["capture"]["heading_wire_bytes"] == probe_files.HEADING and found["capture"]["probes"] == 100
    for name in ("capacity_bit_s", "delta_ns", "trains"):
        assert found[name] == whole[name], name
    # Only headers, and through a pipe.
    cut = probe_files.pcap(tmp_path / "cut.pcap", packets, snap=64)
    done = subprocess.run([str(KTRXER), "ppt", "estimate", "-", "--json"], input=cut.read_bytes(), capture_output=True, timeout=30)
    assert json.loads(done.stdout)["capacity_bit_s"] == whole["capacity_bit_s"], done.stderr


def test_losses_reordering_and_clock_steps_of_a_capture(tmp_path: Path) -> None:
    packets = probe_files.probes(probe_files.gaps(100e6, -1200, SIZES, 50, 60))
    del packets[21], packets[10]  # a trailing packet, and an earlier heading packet
    packets[40], packets[41] = (packets[40][0], packets[41][1]), (packets[41][0], packets[40][1])  # the trailing packet first
    packets[61] = (packets[61][0] - 3_600_000_000_000, packets[61][1])
    found = estimate(probe_files.pcap(tmp_path / "lossy.pcap", packets))
    counts = found["capture"]
    assert counts["backwards"] >= 1 and counts["trailing_alone"] >= 1 and counts["heading_alone"] >= 1
    assert 90 <= counts["probes"] <= 97 and contains(found["capacity_bit_s"], 100e6), found


def test_flows_of_a_capture(tmp_path: Path) -> None:
    packets = probe_files.probes(probe_files.gaps(100e6, -1200, SIZES, 50, 60))
    others = [(at + 5_000_000, probe_files.frame(200, port=53)) for at, _ in packets[::4]]
    mixed = probe_files.pcap(tmp_path / "mixed.pcap", sorted(packets + others))
    assert "several UDP flows: choose that of the probes by their destination port" in refusal(mixed)
    found = estimate(mixed, "--port", str(probe_files.PORT))
    assert found["capture"]["other_packets"] == len(others) and contains(found["capacity_bit_s"], 100e6)
    assert "no compound probe" in refusal(mixed, "--port", "99")


def test_readings_that_are_no_estimate(tmp_path: Path) -> None:
    dice = random.Random(3)
    flat = [(size, round(dice.gauss(50000, 300))) for _ in range(100) for size in SIZES]
    found = estimate(probe_files.csv(tmp_path / "flat.csv", flat), status=1)
    assert found["reading"] == "service_time" and found["capacity_bit_s"] is None and found["service_ns"] == pytest.approx(50000, rel=0.01)
    timer = [(size, round(dice.gauss(125000, 500) if dice.random() < 0.3 else dice.gauss(900, 60))) for _ in range(100) for size in SIZES]
    path = probe_files.csv(tmp_path / "timer.csv", timer)
    found = estimate(path, status=1)
    assert found["reading"] == "coalesced" and found["coalescing_ns"] == pytest.approx(125000, rel=0.02)
    assert "coalesces interrupts with a period of about 12" in run(KTRXER, "ppt", "estimate", str(path)).stdout
    coarse = estimate(probe_files.csv(tmp_path / "coarse.csv", [(87, 8), (97, 9)] * 50, unit="us"), status=1)
    assert coarse["reading"] == "unresolved" and coarse["clock_resolution_ns"] == 1000


HEAD = "wire_bytes,gap_ns\n"


@pytest.mark.parametrize(
    "text,reason",
    [
        ("", "neither a capture nor a CSV file with the first line `wire_bytes,gap_ns`"),
        ("87,79000\n112,99000\n", "neither a capture nor a CSV file"),
        ("bytes,gap\n87,79000\n", "neither a capture nor a CSV file"),
        (HEAD, "there is no gap in it"),
        (HEAD + "87,NaN\n", "line 2: 'NaNns'"),
        (HEAD + "87,79000\n87,inf\n", "line 3: "),
        (HEAD + "nan,79000\n", "line 2: 'nan'"),
        (HEAD + "87\n", "line 2: '87' is not two numbers with a comma between"),
        (HEAD + "87,1,2\n", "line 2: '87,1,2' is not two numbers"),
        (HEAD + "0,79000\n", "line 2: a packet of 0 bytes"),
        (HEAD + "70000,79000\n", "line 2: a packet of 70000 bytes"),
        (HEAD + "-87,79000\n", "line 2: '-87'"),
        (HEAD + "87,4000000000000\n", "line 2: a gap of more than an hour"),
        (HEAD + "87,79000.5\n", "line 2: "),
        (HEAD + "87," + "9" * 200 + "\n", "line 2 is no text, or longer than 126 bytes"),
        (HEAD + "87,79\0000\n", "line 2 is no text"),
        (HEAD + "87,79000\n87,79001\n", "all trailing packets have the same size (87 bytes)"),
        (HEAD + "87,79000\n112,99000\n", "size 87: 1 gaps above zero"),
        (HEAD + "87,0\n87,-5\n112,99000\n112,99001\n", "size 87: 0 gaps above zero (1 negative and 1 zero ones are left out)"),
        (HEAD + "87,1\n112,2\n150,3\n", "three or more sizes (87, 112, 150 bytes): choose two"),
    ],
)
def test_files_that_are_no_measurement(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "gaps.csv"
    path.write_text(text)
    assert reason in refusal(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "missing.csv: No such file" in refusal(tmp_path / "missing.csv")
    assert "cannot be read" in refusal(tmp_path)
    short = tmp_path / "short.pcap"
    short.write_bytes(probe_files.pcap(tmp_path / "whole.pcap", probe_files.probes([(72, 8000)] * 3)).read_bytes()[:-5])
    assert "cut short" in refusal(short)
    done = run(KTRXER, "ppt", "estimate", str(short), "--size1", "87")
    assert done.returncode == 2 and "--size1 and --size2 go together" in done.stderr


def test_two_sizes_of_three(tmp_path: Path) -> None:
    rows = probe_files.gaps(100e6, 0, SIZES, 50, 60) + [(300, 1000)] * 20
    found = estimate(probe_files.csv(tmp_path / "gaps.csv", rows), "--size1", "232", "--size2", "72")
    assert [train["trailing_wire_bytes"] for train in found["trains"]] == [72, 232] and contains(found["capacity_bit_s"], 100e6)


@pytest.mark.plain_build
def test_ten_million_gaps(tmp_path: Path) -> None:
    rows = "".join(f"{size},{gap}\n" for size, gap in probe_files.gaps(100e6, 2000, SIZES, 50_000, 300))
    path = tmp_path / "gaps.csv"
    with path.open("w") as file:
        file.write(HEAD)
        for _ in range(100):
            file.write(rows)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = run(KTRXER, "ppt", "estimate", str(path), "--json", timeout=300)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["trains"][0]["gaps"] == 5_000_000, done.stderr
    assert abs(found["capacity_bit_s"]["value"] - 100e6) < 1e5 and seconds < 60, seconds


def plan(*arguments: str, status: int = 0) -> dict[str, Any]:
    done = run(KTRXER, "ppt", "plan", *arguments, "--json")
    assert done.returncode == status, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


PATHS = {
    ("100M", "155M", "100M", "10M"): (15000, 1, 1500, None),
    ("10M", "155M", "10M", "100M"): (150, 10, 150, 75),
    ("100M", "10M", "155M", "100M"): (231.818, 6.470588, 225, 175),
}


@pytest.mark.parametrize("path", PATHS)
def test_the_papers_paths(path: tuple[str, ...]) -> None:
    largest, alpha, on_grid, with_cross = PATHS[path]
    cross = ("--cross", "2:1:1", "--cross", "3:1:1")
    for more, expected in (((), on_grid), (cross, with_cross)):
        found = plan(*path, "--heading", "1500", "--frame-gap", "0", "--trailing", "50..1500/25", *more)
        assert found["trailing_max_wire_bytes"] == largest and found["alpha_min"] == alpha
        assert len(found["rows"]) == 59
        unbiased = [row["trailing_wire_bytes"] for row in found["rows"] if row["dispersion_ns"] == 0]
        capacity = found["links_bit_s"][-1]
        assert all((row["apparent_capacity_bit_s"] == capacity) == (row["dispersion_ns"] == 0) for row in found["rows"])
        if expected:
            assert max(unbiased) == expected
            assert found["size2_wire_bytes"] < expected + 25


def test_plans_without_two_sizes_and_wrong_options() -> None:
    assert plan("10M", "155M", "10M", "100M", "--clock-resolution", "10us", status=1)["resolvable"] is False
    for words, reason in (
        (["0"], "link 1 has a capacity of 0"),
        (["x"], "'x' is not a bit rate"),
        (["1M"] * 65, "65 capacities: a path has at most 64 links"),
        (["10M", "10M", "--cross", "2:1"], "--cross '2:1': write LINK:A:B"),
        (["10M", "10M", "--cross", "3:1:1"], "--cross '3:1:1'"),
        (["10M", "10M", "--cross", "2:4294967296:1"], "--cross '2:4294967296:1'"),
        (["10M", "--heading", "1600"], "--heading"),
        (["10M", "--heading", "500", "--trailing", "72..600"], "--trailing: 600 bytes are more than the heading packet has (500)"),
    ):
        done = run(KTRXER, "ppt", "plan", *words)
        assert done.returncode == 2 and reason in done.stderr, done.stderr
