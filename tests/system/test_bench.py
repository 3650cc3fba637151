# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer bench` in small: not whether figures are good, but whether they are there, agree with each other, and leave nothing behind.
"""

import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from noise import least


def bench(ktrxer, *arguments, status=(0, 1), timeout=120, **more):
    done = subprocess.run([ktrxer, "bench", *arguments], capture_output=True, text=True, timeout=timeout, **more)
    assert done.returncode in status, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def result(ktrxer, *arguments, **more):
    told = json.loads(bench(ktrxer, *arguments, "--json", **more).stdout)
    assert told["verdict"] in ("valid", "degraded"), told["reasons"]
    assert told["rows"], told["reasons"]
    return told


@pytest.fixture(scope="module", autouse=True)
def there(requires_namespaces, needs_command):
    needs_command("bench")


def namespaces_of(pid):
    """Those that a process holds, by its threads and descriptors."""
    found = set()
    for link in [*Path(f"/proc/{pid}/task").glob("*/ns/net"), *Path(f"/proc/{pid}/fd").glob("*")]:
        try:
            name = os.readlink(link)
        except OSError:
            continue
        if name.startswith("net:["):
            found.add(name)
    return found - {os.readlink("/proc/self/ns/net")}


def alive(names):
    told = subprocess.run(["lsns", "-t", "net", "-n", "-o", "NS"], capture_output=True, text=True).stdout.split()
    return {name for name in names if name.strip("net:[]") in told}


def test_schedule_rows_agree_with_the_csv_and_with_themselves(ktrxer, tmp_path):
    table = tmp_path / "rows.csv"
    old = tmp_path / "old.json"
    told = result(ktrxer, "schedule", "--rounds", "2", "--count", "10", "--interval", "2ms", "--csv", str(table))
    names = [row["engine"] for row in told["rows"]]
    assert {"usleep", "raw usleep", "absolute sleep"} <= set(names)
    if not os.environ.get("KTRXER_USER_NAMESPACE"):
        assert {"usleep FIFO", "absolute sleep FIFO"} <= set(names)
    doctor = json.loads(subprocess.run([ktrxer, "doctor", "--json"], capture_output=True, text=True).stdout)
    assert set(names) & {engine["name"] for engine in doctor["engines"]}
    for row in told["rows"]:
        assert row["rounds"] == 2
        assert 0 <= row["stalled_rounds"] <= 2
        assert row["payload"] == 100 and row["cross"] == 0 and row["interval_us"] == 2000
        assert row["median_us"] >= 0 and row["p90_us"] <= row["p99_us"] < 1e6
        assert row["offset_iqr_us"] >= 0 and row["offset_p99_us"] >= 0
        assert 0 <= row["lost_percent"] <= 100
    rows = list(csv.DictReader(table.open()))
    assert [row["engine"] for row in rows] == names
    assert [float(row["median_us"]) for row in rows] == [row["median_us"] for row in told["rows"]]

    # Its own output, read back by the command: a run against itself has rows in common, and says so.
    old.write_text(json.dumps(told, indent=2))
    again = result(ktrxer, "schedule", "--rounds", "2", "--count", "10", "--interval", "2ms", "--compare", str(old))
    assert again["compared"] >= len(again["rows"]) - 1
    assert all(change["figure"] == "median_us" for change in again["changes"])
    bench(ktrxer, "rate", "--rounds", "1", "--compare", str(old), status=(2,))
    same = result(ktrxer, "--compare", str(old))
    assert same["settings"] == told["settings"] and same["bench"] == "schedule"
    bench(ktrxer, status=(2,))


def test_methods_of_handing_over(ktrxer, tmp_path):
    """O5: who waits, and since when. A sleep between two sends ends late each time, and these delays add up; times that are given do not."""
    old = tmp_path / "old.json"
    told = {}

    def given_less_slept_us():
        told.update(result(ktrxer, "schedule", "--engines", "udp", "--methods", "oir,ofr,osm,rsm", "--predispatch", "0,5ms", "--interval", "1ms",
                           "--rounds", "1", "--count", "30", "--cross", "1k", "--both-ways"))
        rows = {row["engine"]: row for row in told["rows"]}
        assert list(rows) == ["udp OIR", "udp OFR 0s", "udp OFR 5ms", "udp OSM", "RSM"]
        for row in rows.values():
            assert row["gap_p10_us"] <= row["gap_p25_us"] <= row["gap_p75_us"] <= row["gap_p90_us"] and row["cross"] == 1000
        given = max(abs(rows[name]["gap_median_us"] - 1000) for name in ("udp OIR", "udp OFR 5ms"))
        return given - min(rows[sleeper]["gap_median_us"] - 1000 for sleeper in ("udp OSM", "RSM"))

    assert least(given_less_slept_us, enough=-0.001) < 0
    old.write_text(json.dumps(told))
    again = result(ktrxer, "--compare", str(old))
    assert again["settings"] == told["settings"] and again["settings"]["methods"] == "oir,ofr,osm,rsm"


def test_rate_of_one_engine_with_cross_traffic(ktrxer):
    (name,) = (e["name"] for e in json.loads(subprocess.run([ktrxer, "doctor", "--json"], capture_output=True, text=True).stdout)["engines"]
               if e["name"] == "udp")
    told = result(ktrxer, "rate", "--engines", name, "--no-baselines", "--rounds", "2", "--payload", "28..1428/1400", "--cross", "0,5k",
                  "--for", "50ms")
    assert [(row["payload"], row["cross"]) for row in told["rows"]] == [(28, 0), (1428, 0), (28, 5000), (1428, 5000)]
    for row in told["rows"]:
        assert row["train_kpps"] > 1 and row["rate_kpps"] > 1
        assert (row["cross_arrived_kpps"] is None) == (row["cross"] == 0)
        assert row["rate_mbps"] == pytest.approx(row["rate_kpps"] * (row["payload"] + 28) * 8 / 1000, rel=0.01)


def test_pairs_and_stamps(ktrxer):
    told = result(ktrxer, "pairs", "--rounds", "2", "--count", "20")
    assert all(row["pairs"] <= 2 * 20 and row["arrival_median_us"] >= 0 for row in told["rows"])
    assert told["driver_calls"] == any(row["driver_median_us"] is not None for row in told["rows"])
    told = result(ktrxer, "stamps", "--rounds", "2", "--count", "10", "--gaps", "0us,1ms", "--no-bpf")
    assert told["judge"] == "kernel"
    assert {row["gap_us"] for row in told["rows"]} == {0, 1000}
    assert all(row["size_median_us"] < 1000 for row in told["rows"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["schedule", "--engines", "warp"], "no such engine"),
        (["schedule", "--methods", "oir,"], "there are oir, ofr, osm and rsm"),
        (["schedule", "--methods", "oir", "--count", "20000"], "at most 16384"),
        (["schedule", "--methods", "ofr", "--predispatch", "1x"], "--predispatch"),
        (["schedule", "--methods", "rsm", "--no-baselines", "--engines", "udp"], "nobody"),
        (["schedule", "--fq", "--device", "lo", "--to", "127.0.0.1", "--far-device", "lo"], "tc qdisc replace dev lo root fq"),
        (["schedule", "--cross", "1,,2"], "--cross"),
        (["schedule", "--cross", "2M"], "at most 1M"),
        (["rate", "--payload", "4"], "payload"),
        (["stamps", "--gaps", "ten"], "--gaps"),
        (["schedule", "--compare", "/nonexistent"], "No such file"),
        (["schedule", "--device", "lo"], "--far-device"),
        (["schedule", "--device", "lo", "--to", "127.0.0.1", "--far-device", "nodev0"], "no such device"),
    ],
)
def test_refusals(ktrxer, arguments, words):
    done = bench(ktrxer, *arguments, status=(1, 2))
    assert words in done.stderr


def test_compare_refuses_damaged_files(ktrxer, tmp_path):
    bad = tmp_path / "bad.json"
    for text in ("", "{", '{"bench": "schedule", "rows": [{"payload": 1e9}]}', "[" * 100000, "\0" * 100):
        bad.write_text(text)
        assert "is not what" in bench(ktrxer, "schedule", "--compare", str(bad), status=(1,)).stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_behind(ktrxer, how):
    child = subprocess.Popen([ktrxer, "bench", "schedule", "--cross", "5k", "--engines", "udp", "--count", "1000", "--interval", "1ms"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    programs = set()
    for _ in range(300):  # until a baseline is on its turn
        time.sleep(0.05)
        programs = set(Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split())
        if programs:
            break
    held = namespaces_of(child.pid)
    assert programs and len(held) == 2 and alive(held)
    child.send_signal(how)
    child.wait(timeout=20)
    for _ in range(50):
        if not alive(held) and not any(Path(f"/proc/{pid}").exists() for pid in programs):
            break
        time.sleep(0.1)
    assert not alive(held)
    assert not any(Path(f"/proc/{pid}").exists() for pid in programs)


def test_without_privileges(ktrxer):
    if os.geteuid() != 0:
        pytest.skip("this needs the machine's root, to become somebody else")
    done = bench(ktrxer, "schedule", status=(1,), user=65534, group=65534, cwd="/")
    assert "network namespace" in done.stderr


def test_receive(ktrxer, requires_real_root):
    """In small: every part is there, and what was sent is captured or counted as lost."""
    if bench(ktrxer, "receive", "--help", status=(0, 2)).returncode != 0:
        pytest.skip("this ktrxer has no `bench receive`")
    told = json.loads(bench(ktrxer, "receive", "--rounds", "1", "--repeat", "10000", "--rules", "1,1000", "--for", "10ms", "--no-flow", "--json").stdout)
    rows = {(row["what"], row["rules"], row["wildcards"]): row for row in told["rows"]}
    for version in (4, 6):
        for count in (1, 1000):
            assert 5 < rows[f"cost, unmatched IPv{version}", count, 0]["cost_ns"] < 100_000
    assert rows["cost, unmatched IPv4", 1, 256]["cost_ns"] > rows["cost, unmatched IPv4", 1, 0]["cost_ns"], "256 rules one after another are seen"
    rate = rows.get(("capture+drop", 0, 1))
    if not rate:
        assert any("no rate was measured" in reason for reason in told["reasons"])
        pytest.skip(next(reason for reason in told["reasons"] if "no rate was measured" in reason))
    assert rate["captured"] + rate["lost"] == rate["sent"] > 10_000 and rate["rate_kpps"] > 0
    bench(ktrxer, "receive", "--rules", "0", status=(2,))
    bench(ktrxer, "receive", "--rules", "1,x", status=(2,))
