# SPDX-License-Identifier: MIT OR Apache-2.0
"""
The clauses of RFC 4656 about requests, time-outs, late starts, ends and copies, one by one, with a client of OWAMP-Control and both ends of OWAMP-Test that were
written for these tests from the layouts of the RFC. The client runs in the namespace of A; times are those of the one clock of this machine.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves
"""

import json
import sys

import pytest
from clients import client, servers
from owamp_hand import LISTEN, SENDS, run_here

PORT = 861


@pytest.fixture
def owamp(ktrxer):
    return client(ktrxer, "owamp")


@pytest.fixture
def ask(shared_pair, serve, token):
    """Runs `run_here`'s script in the namespace of A against a server at B."""
    a, b = shared_pair
    serve(b, "--token-file", token, "--owamp-port", PORT)

    def asked(body):
        done = a.run([sys.executable, "-c", run_here(b.address, PORT, body)], check=False, timeout=40)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return asked


# ------------------------------------------------------------------------------------------------------- connection


def test_the_greeting_has_a_random_salt(ask):
    """3.1: Salt is random, Count a power of two of 1024 at least."""
    greetings = ask("print(json.dumps([Control().greeting.hex() for _ in range(2)]))")
    first, second = (bytes.fromhex(one) for one in greetings)
    for one in (first, second):
        assert one[32:48] != bytes(16) and int.from_bytes(one[48:52]) == 1024
    assert first[32:48] != second[32:48]


def test_upper_bits_of_the_mode_have_no_meaning_and_a_refusal_has_no_start_time(ask):
    """3.1: the upper 29 bits of Mode are ignored; Start-Time is 0 in a refusal."""
    got = ask("print(json.dumps([Control(mode).started.hex() for mode in (9, 2)]))")
    (taken, refused) = (bytes.fromhex(one) for one in got)
    assert taken[15] == 0 and taken[32:40] != bytes(8)
    assert refused[15] == 3 and refused[32:40] == bytes(8)


def test_each_request_has_an_answer(ask):
    """3.5: an Accept-Session for each Request-Session, and the connection goes on. Conf fields that are not 0 count as 1."""
    got = ask("""
c = Control()
answers = {}
answers["17 slots"] = c.request(slots=17)
answers["a hundred thousand slots"] = c.request(slots=100_000)
answers["a slot of type 2"] = c.request(slot_type=2)
answers["version 5 of IP"] = c.request(version=5)
answers["both roles"] = c.request(conf=(1, 1))
answers["no role"] = c.request(conf=(0, 0))
answers["another receiver"] = c.request(receiver="10.77.0.99")
answers["DSCP 46 of the client's packets"] = c.request(type_p=46 << 24)
answers["a PHB ID of the client's packets"] = c.request(type_p=1 << 30 | 7 << 14)
answers["DSCP 46 of the server's packets"] = c.request(up=False, type_p=46 << 24)
answers["a conf field of 2"] = c.request(conf=(0, 2))
print(json.dumps({name: one[0] for name, one in answers.items()}))
""")
    assert got == {
        "17 slots": 3, "a hundred thousand slots": 3, "a slot of type 2": 3, "version 5 of IP": 3, "both roles": 3, "no role": 3, "another receiver": 3,
        "DSCP 46 of the client's packets": 0, "a PHB ID of the client's packets": 0, "DSCP 46 of the server's packets": 3, "a conf field of 2": 0,
    }  # fmt: skip


# -------------------------------------------------------------------------------------------------- packets and records


def test_a_packet_after_its_time_out_is_lost(ask):
    """4.2: the record of a packet that comes later than Timeout is that of a lost one; a copy in time has a record for each."""
    got = ask("""
c = Control()
c.request(packets=4, timeout=0.4)
c.begin()
stamp = [c.due(n) for n in range(4)]
sleep_until(stamp[3])
for n in (0, 2, 3):
    c.send(n, stamp[n])
sleep_until(stamp[1] + 1)
c.send(1, stamp[1])  # a second after its send time
time.sleep(0.6)
c.stop(4)
print(json.dumps(c.fetch()))
""")
    arrived = {one[0] for one in got["records"] if one[4]}
    lost = [one for one in got["records"] if not one[4]]
    assert arrived == {0, 2, 3} and [one[0] for one in lost] == [1]
    # 3.9: its presumed send time, no receive time, TTL 255, and an error estimate without a bound: S 0, Multiplier 1, the highest Scale.
    (one,) = lost
    assert one[1] == 0x3F01 and one[5] == 255 and abs(one[3] - got["due"][1]) < 1e-5


@pytest.mark.parametrize("off_s", [-5, 5])
def test_a_send_time_off_the_schedule_is_dropped(ask, off_s):
    """4.2: a send time that is further than Timeout from the schedule, or from now."""
    got = ask(f"""
c = Control()
c.request(packets=3, timeout=0.5)
c.begin()
for n in range(3):
    sleep_until(c.due(n))
    c.send(n, time.time() + ({off_s} if n == 1 else 0))
time.sleep(0.8)
c.stop(3)
print(json.dumps(c.fetch()))
""")
    assert {one[0]: bool(one[4]) for one in got["records"]} == {0: True, 1: False, 2: True}


def test_an_error_estimate_with_multiplier_0_is_corrupt(ask):
    """4.1.2."""
    got = ask("""
c = Control()
c.request(packets=2, timeout=0.3)
c.begin()
sleep_until(c.due(1))
c.send(0, c.due(0), error=0x0100)
c.send(1, c.due(1), error=0x0101)
time.sleep(0.6)
c.stop(2)
print(json.dumps(c.fetch()))
""")
    assert {one[0]: bool(one[4]) for one in got["records"]} == {0: False, 1: True}


def test_each_copy_has_a_record(ask):
    """4.2: here 12 of one packet and 2 of another one, of 3 packets in all."""
    got = ask("""
c = Control()
c.request(packets=3, timeout=0.5)
c.begin()
sleep_until(c.due(2))
for n, copies in ((0, 12), (1, 1), (2, 2)):
    for _ in range(copies):
        c.send(n, c.due(n))
time.sleep(0.8)
c.stop(3)
print(json.dumps(c.fetch()))
""")
    assert [sum(one[0] == number for one in got["records"]) for number in range(3)] == [12, 1, 2]


# ---------------------------------------------------------------------------------------------------------- the end


def test_packets_within_their_time_out_at_the_end_have_no_record(ask):
    """3.8: neither those that arrived nor those that did not."""
    got = ask("""
c = Control()
c.request(packets=40, timeout=1)
c.begin()
for n in range(40):
    sleep_until(c.due(n))
    if n not in (5, 38):
        c.send(n, time.time())
c.stop(40)  # numbers from about 20 on are younger than a second
print(json.dumps(c.fetch()))
""")
    numbers = {one[0] for one in got["records"]}
    assert numbers >= set(range(5)) and numbers == set(range(len(numbers))) and 10 < len(numbers) <= 21, numbers
    assert [one[0] for one in got["records"] if not one[4]] == [5]


@pytest.mark.parametrize("accept", [1, 9])
def test_a_stop_because_of_a_failure_leaves_no_results(ask, accept):
    """3.8: Accept is not 0; 3.3: an unknown value counts as 1."""
    got = ask(f"""
c = Control()
c.request(packets=2, timeout=0.2)
c.begin()
sleep_until(c.due(1))
for n in range(2):
    c.send(n, c.due(n))
time.sleep(0.4)
c.stop(2, accept={accept})
print(json.dumps(c.fetch()))
""")
    assert got["accept"] == 1 and not got["records"]


def test_a_next_number_that_has_arrived_makes_the_session_invalid(ask):
    """3.8."""
    got = ask("""
c = Control()
c.request(packets=5, timeout=0.2)
c.begin()
sleep_until(c.due(4))
for n in (0, 1, 3):
    c.send(n, c.due(n))
time.sleep(0.4)
c.stop(2)
print(json.dumps(c.fetch()))
""")
    assert got["accept"] == 1 and not got["records"]


# ------------------------------------------------------------------------------------------------ the server as a sender


def test_a_start_in_the_past_moves_no_packet(ask):
    """4.1.1: what is late by more than Timeout is not sent, and is in a skip range; the rest leaves at once."""
    got = ask("""
c = Control()
c.request(up=False, packets=40, timeout=0.5, start=-1.55)  # packets are due each 50 ms
begun = c.begin()
came = c.receive(1.2)
print(json.dumps({"stop": c.stop(None), "came": came, "late": [at - c.due(n) for n, at in came], "begun": begun - c.start}))
""")
    ((following, skips),) = got["stop"]
    assert following == 40 and len(skips) == 1 and skips[0][0] == 0
    not_sent = skips[0][1] + 1
    # The packets that were due half a second before the server started are the last ones of the range.
    assert not_sent == pytest.approx((got["begun"] - 0.5) / 0.05 - 1, abs=2)
    assert [number for number, _ in got["came"]] == list(range(not_sent, 40))
    assert max(got["late"]) < 0.6 and min(got["late"]) > -0.001


# ---------------------------------------------------------------------------------------------------------- our client


def test_the_client_reads_an_unknown_accept_as_a_failure(shared_pair, owamp):
    """3.3."""
    a, b = shared_pair
    with servers(b, sys.executable, "-c", LISTEN.format(address=b.address, port=PORT, accept=9)) as start:
        start()
        assert "the server refuses the connection without a reason" in owamp(a, b.address, "--count", 2, status=1).stderr


def test_padding_of_zeros(shared_pair, owamp, serve, token):
    """4.1.2: random, and an option for zeros."""
    a, b = shared_pair
    serve(b, "--token-file", token, "--owamp-port", PORT)
    quick = ("--count", 3, "--interval", "20ms", "--timeout", "200ms", "--direction", "up", "--payload", 114, "--json")
    seen = []
    for more in ((), ("--zero-padding",)):
        watch = b.popen([sys.executable, "-c", WATCH])
        watch.stdout.readline()
        end = json.loads(owamp(a, b.address, *quick, *more).stdout)
        assert end["up"]["arrived"] == 3 and end["timeout_ns"] == 200_000_000 and end["dscp"] == 0
        seen.append(bytes.fromhex(watch.communicate(timeout=20)[0]))
    assert seen[0] != bytes(100) and seen[1] == bytes(100)


WATCH = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(0x0800))
print("ready", flush=True)
while True:
    data = s.recv(2000)
    if data[9] == 17 and len(data) == 142:
        print(data[42:].hex())
        break
"""


@pytest.fixture
def by_hand(shared_pair):
    """A server at B that sends number 3 0.6 s late, with its own send time, and claims the next number `following`."""
    _, b = shared_pair
    with servers(b, sys.executable, "-c", SENDS) as start:
        yield lambda following: start(b.address, str(PORT), str(following))


DOWN = ("--count", 10, "--interval", "50ms", "--model", "constant", "--timeout", "400ms", "--direction", "down", "--json")


def test_a_packet_down_after_its_time_out_is_lost(shared_pair, owamp, by_hand):
    """4.2, at the client. The other packets have delays of less than the time-out."""
    by_hand(10)
    end = json.loads(owamp(shared_pair[0], shared_pair[1].address, *DOWN, status=0).stdout)
    down = end["down"]
    assert (down["sent"], down["arrived"], down["lost"], down["too_late"]) == (10, 9, 1, 1), down
    assert down["delay_variation_us"]["max"] < 400_000


def test_a_next_number_down_that_has_arrived_leaves_no_results(shared_pair, owamp, by_hand):
    """3.8."""
    by_hand(7)
    err = owamp(shared_pair[0], shared_pair[1].address, *DOWN, status=1).stderr
    assert "the server claims not to have sent packet 9 down, which has arrived" in err
