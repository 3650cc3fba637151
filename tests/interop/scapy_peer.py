# SPDX-License-Identifier: MIT OR Apache-2.0
"""
scapy's STAMP codec behind a socket: `send HOST PORT COUNT` or `reflect ADDRESS PORT`. Prints one JSON object at the end, or `up` first.

scapy 2.8.0 has the TLV flags in the wrong order of bits, so TLVs are given as raw numbers: U, the first bit in RFC 8972, is 0x80.
"""

import json
import logging
import socket
import sys
import time

logging.disable(logging.CRITICAL)
from scapy.contrib.stamp import (  # noqa: E402
    ErrorEstimate,
    STAMPSessionReflectorTestUnauthenticated,
    STAMPSessionSenderTestUnauthenticated,
    STAMPTestTLV,
)

NTP = 2208988800


def send(host: str, port: int, count: int) -> None:
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(2)
    answers = []
    for seq in range(count):
        sent = time.time()
        probe = STAMPSessionSenderTestUnauthenticated(
            seq=1000 + seq, ts=sent + NTP, ssid=0x4321, err_estimate=ErrorEstimate(S=1, Z=0, scale=5, multiplier=9),
            tlv_objects=[STAMPTestTLV(flags=0x80, type=1, len=6, value=b"filler"), STAMPTestTLV(flags=0x80, type=7, len=16, value=bytes(16)),
                         STAMPTestTLV(flags=0x80, type=200, len=1, value=b"?")],
        )
        s.sendto(bytes(probe), (host, port))
        data = s.recv(9000)
        back = STAMPSessionReflectorTestUnauthenticated(data)
        answers.append({
            "same_length": len(data) == len(bytes(probe)), "seq": back.seq, "sender_seq": back.seq_sender, "ssid": back.ssid,
            "ttl": back.ttl_sender, "sender_time_kept": bytes(back)[28:36] == bytes(probe)[4:12],
            "sender_error_kept": bytes(back.err_estimate_sender) == bytes(probe.err_estimate), "mbz": back.mbz1 + back.mbz2,
            "t2_after_t1": float(back.ts_rx) - (sent + NTP), "t3_after_t2": float(back.ts) - float(back.ts_rx), "z": back.err_estimate.Z,
            "multiplier": back.err_estimate.multiplier,
            "tlvs": [[int(tlv.flags), tlv.type, bytes(tlv.value).hex()] for tlv in back.tlv_objects],
        })
    print(json.dumps(answers))


def reflect(address: str, port: int) -> None:
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, port))
    print("up", flush=True)
    seq = 0
    while True:
        data, sender = s.recvfrom(9000)
        received = time.time()
        probe = STAMPSessionSenderTestUnauthenticated(data)
        for tlv in probe.tlv_objects:
            tlv.flags = 0x80 if tlv.type != 1 else 0
        answer = STAMPSessionReflectorTestUnauthenticated(
            seq=seq, ts=time.time() + NTP, err_estimate=ErrorEstimate(S=0, Z=0, scale=20, multiplier=1), ssid=probe.ssid, ts_rx=received + NTP,
            seq_sender=probe.seq, ts_sender=probe.ts, err_estimate_sender=probe.err_estimate, ttl_sender=64, tlv_objects=probe.tlv_objects,
        )
        out = bytearray(bytes(answer))
        out[28:36] = data[4:12]  # scapy's time is a float with less than 64 bits
        s.sendto(bytes(out), sender)
        seq += 1


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        reflect(sys.argv[2], int(sys.argv[3]))
