# SPDX-License-Identifier: MIT OR Apache-2.0
"""A host where ping sockets are closed (`net.ipv4.ping_group_range` is "1 0", the kernel's default) and a user without CAP_NET_RAW: ICMP
echo requests are refused by this host, and everything else goes on."""

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the Python part's packages are not installed: `make .venv/.ok`")

from ktrxer.store import open_run

ROOT = Path(__file__).resolve().parents[2]
PLAIN = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
REMEDY = 'echo "0 2147483647" | sudo tee /proc/sys/net/ipv4/ping_group_range'


@pytest.fixture
def closed(pair, ktrxer, serve, tmp_path):
    """closed(command, *words) of `python3 -m ktrxer`, against a server in b."""
    a, b = pair
    a.sysctl("ipv4/ping_group_range", "'1 0'")
    token = tmp_path / "token"
    token.write_text("a-secret-of-the-tests-of-ktrxer\n")
    token.chmod(0o600)
    serve(b, "--token-file", token)
    environment = os.environ | {"KTRXER_BIN": str(ktrxer), "PYTHONPATH": str(ROOT / "python")}

    def start(command, *words):
        argv = [*PLAIN, sys.executable, "-m", "ktrxer", command, *words, "--token-file", token]
        return a.run([*map(str, argv)], env=environment, cwd=tmp_path, check=False, timeout=120)

    start.a, start.b = pair
    return start


def test_ping_names_commands_that_exist_and_a_way_without_icmp(closed, ktrxer):
    done = closed.a.run([*PLAIN, ktrxer, "ping", closed.b.address, "-c", "1", "--json"], check=False)
    assert done.returncode == 1 and REMEDY in done.stderr and "sysctl " not in done.stderr
    assert "run `sudo" not in done.stderr, "this is root, without the capability"
    assert f"`ktrxer stamp {closed.b.address}`" in done.stderr
    (found,) = json.loads(done.stdout)["reasons"]
    assert found["id"] == "not_permitted" and REMEDY in found["text"] and "stamp" not in found["text"]
    udp = closed.a.run([*PLAIN, ktrxer, "ping", "--udp", closed.b.address, "-c", "1", "-W", "100ms"], check=False)
    assert "ping_group_range" not in udp.stderr
    as_root = closed.a.run([ktrxer, "ping", closed.b.address, "-c", "3", "-i", "1ms", "--json"])
    assert json.loads(as_root.stdout)["received"] == 3


@pytest.mark.parametrize("prefix", [[], PLAIN])
@pytest.mark.parametrize("group", ["1 0", "0 2147483647"])
def test_doctor_opens_a_socket(closed, ktrxer, prefix, group):
    closed.a.sysctl("ipv4/ping_group_range", f"'{group}'")
    made = json.loads(closed.a.run([*prefix, ktrxer, "doctor", "--json"]).stdout)["icmp_echo"]
    text = closed.a.run([*prefix, ktrxer, "doctor"]).stdout
    works = not prefix or group != "1 0"
    assert made["available"] == works and (made["reason"] is None) == works
    assert ("ICMP echo      works:" in text) == works and (REMEDY in text) == (not works)


@pytest.mark.plain_build
def test_a_run_goes_on_without_icmp(closed, tmp_path):
    words = ("rrul", "-H", closed.b.address, "--for", "1", "--delay", "1")
    dry = closed("run", *words, "--dry-run")
    assert dry.returncode == 0 and "Ping (ms) ICMP: it was not measured: ping sockets are closed" in dry.stdout, dry.stderr
    done = closed("run", *words, "--json")
    assert done.stdout, done.stderr
    made = json.loads(done.stdout)
    assert "Ping (ms) ICMP: it was not measured: " in done.stderr
    (found,) = [one for one in made["reasons"] if one["id"] == "not_measured"]
    assert found["names"] == ["Ping (ms) ICMP"] and REMEDY in found["error"] and found["severity"] == "degraded"
    run = open_run(tmp_path / made["file"])
    assert {series.name for series in run.meta.of_kind("latency")} == {"Ping (ms) UDP BE", "Ping (ms) UDP BK", "Ping (ms) UDP EF"}
    assert all((run.arrays(series)["state"] == 0).any() for series in run.meta.of_kind("latency"))
    assert made["verdict"] == "degraded", made["reasons"]


def test_a_run_of_icmp_alone_ends(closed, tmp_path):
    recipe = tmp_path / "alone.py"
    recipe.write_text("from ktrxer.catalogue import recipe\n\n\ndef plan(s, p):\n    return recipe.icmp(s)\n\n\nTEST = recipe.Test('alone', 'ICMP', plan)\n")
    done = closed("run", recipe, "-H", closed.b.address, "--for", "1", "--delay", "0")
    assert done.returncode == 1 and not done.stdout and "ktrxer run: ktrxer ping: ping sockets are closed" in done.stderr, done.stderr


@pytest.mark.plain_build
def test_check_blames_no_firewall(closed):
    done = closed("check", "--server", closed.b.address, "--for", "5", "--delay", "4", "-i", "200ms", "--json")
    assert done.stdout, done.stderr
    made = json.loads(done.stdout)
    (blocked,) = made["blocked"]
    assert blocked.startswith("this host itself sends no ICMP echo request, so the round trips are those of UDP: ping sockets"), blocked
    assert "firewall" not in blocked and REMEDY in blocked and made["probes"] == "UDP"


@pytest.mark.plain_build
def test_check_without_a_server_blames_no_firewall_for_icmp(closed):
    done = closed("check", "--server", closed.b.address, "--port", "9", "--for", "5")
    assert done.returncode == 1 and "because this host sends no ICMP echo request" in done.stderr, done.stderr
    assert "ICMP echo gives no answer" not in done.stderr
    done = closed("check", "--target", closed.b.address, "--download", f"http://{closed.b.address}/x", "--for", "5")
    assert done.returncode == 1 and REMEDY in done.stderr and "name one that does" not in done.stderr, done.stderr
