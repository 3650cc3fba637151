# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names with several addresses, of which one is dead: the server is measured at the one that accepts connections."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from flows import secret

DEAD = {"dead-first-4": ("10.77.0.99", "address"), "dead-first-6": ("fd00:77::99", "address6"), "dead-6-before-4": ("fd00:77::99", "address")}


@pytest.fixture(params=DEAD)
def named(request, shared_pair, tmp_path: Path) -> tuple[list, str]:
    """A command before others that have the name `twin`, and the address that lives. Neighbour discovery of the other one fails after 3 s."""
    dead, living = DEAD[request.param]
    address = getattr(shared_pair[1], living)
    names = tmp_path / "hosts"
    names.write_text(f"{dead} twin\n{address} twin\n")
    return ["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', names], address


@pytest.mark.parametrize("words", [("flow", "up", "--for", "300ms"), ("flow", "down", "-u", "-b", "1M", "--for", "300ms"), ("pair", "--count", "20"), ("owamp", "-c", "10", "-i", "10ms")], ids=" ".join)
def test_the_address_that_accepts_connections(shared_pair, ktrxer, serve, tmp_path, named, words):
    a, b = shared_pair
    before, address = named
    token = secret(tmp_path / "token")
    serve(b, "--token-file", token, "--owamp-port", "861")
    more = [] if words[0] == "owamp" else ["--token-file", token]
    place = 2 if words[0] == "flow" else 1
    done = a.run([*before, ktrxer, *words[:place], "twin", *words[place:], *more, "--json"], check=False)
    assert done.stdout and json.loads(done.stdout)["to"] == address, done.stderr


def test_a_run(shared_pair, serve, tmp_path, named):
    a, b = shared_pair
    before, _ = named
    token = secret(tmp_path / "token")
    serve(b, "--token-file", token)
    words = ["run", "tcp_upload", "-H", "twin", "--for", "2", "--delay", "0.5", "--no-extras", "--token-file", token, "-D", tmp_path, "--json"]
    done = a.run([*before, sys.executable, "-m", "ktrxer", *words], check=False)
    assert done.returncode in (0, 3) and done.stdout, done.stderr
    assert json.loads(done.stdout)["summary"]["verdict"] != "invalid", done.stdout


def test_without_a_server_the_first_address_is_named(shared_pair, ktrxer, tmp_path):
    """Both addresses refuse: the error is that of the first one of the resolver's order (RFC 6724)."""
    a, b = shared_pair
    token = secret(tmp_path / "token")
    names = tmp_path / "hosts"
    names.write_text(f"{b.address} twin\n{b.address6} twin\n")
    done = a.run(["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', names, ktrxer, "flow", "up", "twin", "--token-file", token], check=False)
    assert done.returncode == 1 and f"{b.address6}: nothing listens on TCP port 8620" in done.stderr, done.stderr
