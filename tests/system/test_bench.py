# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Short runs of `ktrxer bench`: the figures exist and agree with each other, and the bench leaves nothing behind. Their values are not judged.
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


def bench(ktrxer, *arguments, status=(0, 3), timeout=120, **more):
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


def children(pid):
    try:
        return {child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()}
    except OSError:
        return set()


def descendants(pid):
    """Numbers and names of all descendants of a process. The namespaces of a bench exist as long as these do."""
    found, waiting = {}, [pid]
    while waiting:
        for child in children(waiting.pop()):
            waiting.append(child)
            try:
                found[child] = Path(f"/proc/{child}/comm").read_text().strip()
            except OSError:
                continue
    return found


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

    # Compare a run with itself: all rows have a counterpart.
    old.write_text(json.dumps(told, indent=2))
    again = result(ktrxer, "schedule", "--rounds", "2", "--count", "10", "--interval", "2ms", "--compare", str(old))
    assert again["compared"] >= len(again["rows"]) - 1
    assert all(change["figure"] == "median_us" for change in again["changes"])
    bench(ktrxer, "rate", "--rounds", "1", "--compare", str(old), status=(2,))
    same = result(ktrxer, "--compare", str(old))
    assert same["settings"] == told["settings"] and same["bench"] == "schedule"
    bench(ktrxer, status=(2,))


@pytest.mark.plain_build
def test_methods_of_handing_over(ktrxer, tmp_path):
    """O5: the delays of sleeps between sends add up; the delays of scheduled times do not."""
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
        (["schedule", "--methods", "rsm", "--no-baselines", "--engines", "udp"], "no engine can send here"),
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
    for text in ('{"bench": "schedule", "rows": [], "settings": {"rounds": [1]}}', "", "{", '{"bench": "schedule", "rows": [{"payload": 1e9}]}', "[" * 100000, "\0" * 100):
        bad.write_text(text)
        assert "not a result of" in bench(ktrxer, "schedule", "--compare", str(bad), status=(1,)).stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_behind(ktrxer, how):
    child = subprocess.Popen([ktrxer, "bench", "schedule", "--cross", "5k", "--engines", "udp", "--count", "1000", "--interval", "1ms"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    below = {}
    end = time.monotonic() + 30
    while not {"ktrxer-bench", "sleeper"} <= set(below.values()) and time.monotonic() < end:  # until a baseline program sends
        time.sleep(0.05)
        below = descendants(child.pid)
    assert {"ktrxer-bench", "sleeper"} <= set(below.values())
    child.send_signal(how)
    child.wait(timeout=20)
    end = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in below) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [name for pid, name in below.items() if Path(f"/proc/{pid}").exists()]
    assert not {"near", "far"} & set(subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.split())


def test_without_privileges(ktrxer):
    """A user runs a bench in user namespaces, if the kernel allows them."""
    if os.geteuid() != 0:
        pytest.skip("this needs the machine's root, to become another user")
    user = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
    allowed = subprocess.run(["unshare", "-Urnm", "true"], capture_output=True, **user).returncode == 0
    done = bench(ktrxer, "schedule", "--engines", "udp", "--rounds", "1", "--count", "5", "--interval", "1ms", "--json", **user)
    if allowed:
        assert {"udp", "usleep"} <= {row["engine"] for row in json.loads(done.stdout)["rows"]}
    else:
        assert "no namespaces can be made here" in done.stderr


def test_the_harness_prints_json_lines(ktrxer, pair):
    """`ktrxer bench` without the Python part, on the user's own path."""
    a, b = pair
    program = ktrxer.parents[1] / "bench" / "harness" / "ktrxer-bench"
    path = ["--device", a.device, "--to", b.address, "--far-device", b.device, "--far-netns", b.name]
    done = a.run([program, "bench", "schedule", "--engines", "udp", "--no-baselines", "--rounds", "1", "--count", "10", "-i", "1ms", *path], check=False)
    start, *turns, end = [line for line in map(json.loads, done.stdout.splitlines()) if line["type"] != "event"]
    assert (start["type"], end["type"], end["bench"]) == ("start", "end", "schedule") and "rows" not in end
    assert [(turn["engine"], turn["round"], turn["failed"]) for turn in turns] == [("udp", -1, None), ("udp", 0, None)]
    (job,) = turns[1]["jobs"]
    assert len(job["arrivals_ns"]) == 15 and job["arrivals_ns"] == sorted(job["arrivals_ns"]) and job["arrived"] == 15
    for option in (["--csv", "x"], ["--compare", "x"], ["--fq"], ["--json"]):
        done = a.run([program, "bench", "schedule", *path, *option], check=False)
        assert done.returncode == 2 and f"{option[0]}: the Python part of ktrxer does this, and is not installed" in done.stderr
    done = a.run([program, "bench", "schedule"], check=False)
    assert done.returncode == 2 and "--far-device" in done.stderr


def test_output_that_cannot_be_written_is_a_failure(ktrxer):
    with open("/dev/full", "w") as full:
        words = ["bench", "pairs", "--engines", "udp", "--no-baselines", "--rounds", "1", "--count", "5", "--jsonl"]
        done = subprocess.run([ktrxer, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr == "ktrxer bench: standard output cannot be written: No space left on device\n"


def test_a_path_of_the_users(ktrxer, pair):
    a, b = pair
    path = ["--device", a.device, "--to", b.address, "--far-device", b.device, "--far-netns", b.name]
    words = [ktrxer, "bench", "pairs", "--engines", "udp", "--no-baselines", "--rounds", "1", "--count", "10", *path, "--jsonl"]
    lines = list(map(json.loads, a.run(words, check=False).stdout.splitlines()))
    assert lines[0]["type"] == "start" and lines[-1]["type"] == "end" and sum(line["type"] == "sample" for line in lines) == 2
    assert lines[-1]["own_hosts"] is False and [row["engine"] for row in lines[-1]["rows"]] == ["udp"]


def test_receive(ktrxer, requires_real_root):
    """A short run: every part has figures, and each sent packet is captured or counted as lost."""
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
        assert any("no rate was measured" in reason["text"] for reason in told["reasons"])
        pytest.skip(next(reason for reason in told["reasons"] if "no rate was measured" in reason["text"]))
    assert rate["captured"] + rate["lost"] == rate["sent"] > 10_000 and rate["rate_kpps"] > 0
    bench(ktrxer, "receive", "--rules", "0", status=(2,))
    bench(ktrxer, "receive", "--rules", "1,x", status=(2,))
