# SPDX-License-Identifier: MIT OR Apache-2.0
"""A stand-in for `ktrxer ping`, `stamp` and `flow`: prints their output without measuring, with the faults of the given behaviour.

    fake_ktrxer.py BEHAVIOUR ping|stamp|flow ... --for Nns --start-at NS --jsonl
"""

import json
import os
import select
import signal
import sys
import time

S = 10**9
behaviour, command, words = sys.argv[1], sys.argv[2], sys.argv[3:]


def option(name, fallback=None):
    return words[words.index(name) + 1] if name in words else fallback


def say(made):
    sys.stdout.write(json.dumps(made, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def say_echo(made, *left_out):
    """--echo: the same of ICMP echo, as another command."""
    if "--echo" in words:
        say({"type": made["type"], "of": "ping"} | {name: value for name, value in made.items() if name not in left_out})


def stop(*_):
    global stopped
    stopped = True


stopped = False
signal.signal(signal.SIGINT, stop)
if behaviour == "refuses":
    sys.exit(f"ktrxer {command}: HOST answers, but its token is another one: name it by --token-file")
if "--json" in words:  # a check beforehand
    say({"type": "end", "verdict": "valid", "reasons": [], "received": 3, "bytes": 1})
    sys.exit(0)
if behaviour == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
length = int(option("--for").removesuffix("ns"))
real_minus_mono = time.time_ns() - time.monotonic_ns()
start = int(option("--start-at")) - real_minus_mono
interval = int(option("--interval", option("--sample-interval", "10000000ns")).removesuffix("ns"))
flows = int(option("--flows", "0"))
several = option("--dscp", "0").count(",") + 1
classes = [{"class": which} for which in range(several)] if several > 1 else [{}]
say({"type": "start", "schema": 1})
if behaviour == "silent_death":
    sys.exit("ktrxer: a bug")
n, answered, lost = 0, 0, 0
while not stopped:
    due = start + n * interval
    if due >= start + length + (10**15 if behaviour == "deaf" else 0):
        break
    while (left := due - time.monotonic_ns()) > 0 and not stopped:
        if select.select([0], [], [], left / S)[0] and not os.read(0, 10):
            stopped = True
    part = (due - start) / length
    if behaviour == "garbage" and n == 3:
        print("Segmentation fault (just kidding)", '{"type": "sample", "kind": "round_trip", "number": NaN}', "[1, 2", '"x"', sep="\n")
    if behaviour == "mad":
        print("x" * 5000)
    if behaviour == "endless_line":
        sys.stdout.write("y" * 200_000)
    if behaviour == "killed" and part > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "early" and part > 0.3:
        break
    if command == "flow":
        up = words[0] == "up"
        for flow in range(flows):
            if behaviour == "server_dies" and part > 0.5:
                say({"type": "event", "name": "flow_failed", "time_ns": due, "flow": flow, "direction": words[0], "reason": "broken",
                     "error": "Connection reset by peer"})
                continue
            for end in ("local", "remote"):
                # During the run the uncertainty of the far clock is large; at the end it is small.
                wrong = 3_000_000 if end == "remote" else 0
                say({"type": "sample", "kind": "bytes", "flow": flow, "direction": words[0], "end": end, "time_ns": due + wrong,
                     "bytes": n * interval // 1000 * (flow + 1), **({"remote_ns": due + 10**9} if end == "remote" else {})})
            say({"type": "sample", "kind": "tcp_info", "flow": flow, "direction": words[0], "end": "local" if up else "remote", "time_ns": due,
                 "rtt_us": 20000, "ssthresh_segments": None, "cwnd_segments": 10, "something_new": 1})
        if behaviour == "server_dies" and part > 0.5:
            break
    elif n % 10 == 9:
        lost += 1
        for which in classes:
            say({"type": "sample", "kind": "lost", "number": n, **which})
        say_echo({"type": "sample", "kind": "lost", "number": n})
    else:
        answered += 1
        far = {"reflector_received_real_ns": due + real_minus_mono + 5_000_000 + 1_000_000, "reflector_sequence": n} if command == "stamp" else {}
        trip = {"type": "sample", "kind": "round_trip", "number": n, "scheduled_ns": due, "sent_ns": due + 2000, "lateness_ns": 2000,
                "rtt_ns": -5_000 if behaviour == "backwards" and n % 10 == 5 else 10_000_000 + 1000 * (n % 7)}
        for which in classes:
            say(trip | far | which)
        say_echo(trip)
    n += 1
end = {"type": "end", "end_ns": time.monotonic_ns(), "verdict": "valid", "reasons": [], "received": answered * several, "sent": (answered + lost) * several,
       "host": {"cpu_percent": 1.0, "steal_percent": 0.0, "clock_steps": 0}, "output": {"dropped": 0}, "clock": {"offset_ns": 10**9, "bound_ns": 777, "at_ns": start, "skew_ppm": 0.0}}
if behaviour == "server_dies":
    end |= {"verdict": "degraded", "reasons": ["2 flows ended early"]}
if behaviour == "bleached":
    end["mark_changed_up"] = answered
if behaviour == "late":
    end |= {"verdict": "invalid", "reasons": ["30 of 100 probes (30.0 %) left more than 1 ms late"]}
say_echo(end | {"sent": answered + lost, "received": answered}, "clock")
if several > 1:
    end["classes"] = [{"dscp": 0, "ecn": "off", "received": answered, "unanswered_at_end": 0, "untimed": 0} for _ in classes]
if behaviour == "miscounts":
    end["received"] += 10
    if several > 1:
        end["classes"][1]["received"] += 10
say(end)
