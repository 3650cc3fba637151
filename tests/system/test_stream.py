# SPDX-License-Identifier: MIT OR Apache-2.0
"""The parameters of the stream beside its figures: RFC 3393 1.3, RFC 7679 3.8.1 and 3.8.2, RFC 7680 2.8.2."""

import json

import pytest

GIVEN = {
    (): {"timeout_ns": 4_000_000_000, "model": "constant", "dscp": 0},
    ("--timeout", "2500ms", "--model", "poisson", "--dscp", "ef"): {"timeout_ns": 2_500_000_000, "model": "poisson", "dscp": 46},
}


@pytest.mark.parametrize("address", ["address", "address6"])
@pytest.mark.parametrize("options", GIVEN)
@pytest.mark.parametrize("command", ["ping", "stamp"])
def test_the_end_object_has_the_parameters(shared_pair, ktrxer, serve, command, options, address):
    a, b = shared_pair
    if command == "stamp":
        serve(b)
    words = [ktrxer, command, getattr(b, address), "--count", "5", "--interval", "7ms", *options, "--json"]
    end = json.loads(a.run(words, check=False).stdout)
    assert {name: end[name] for name in ("timeout_ns", "interval_ns", "model", "dscp")} == GIVEN[options] | {"interval_ns": 7_000_000}


def test_classes_have_their_own_marks(shared_pair, ktrxer, serve):
    a, b = shared_pair
    serve(b)
    end = json.loads(a.run([ktrxer, "stamp", b.address, "--count", "5", "--dscp", "be,ef", "--json"], check=False).stdout)
    assert "dscp" not in end and [one["dscp"] for one in end["classes"]] == [0, 46] and end["timeout_ns"] == 4_000_000_000
