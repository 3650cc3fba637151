# SPDX-License-Identifier: MIT OR Apache-2.0
# ruff: noqa: E501
"""The reasons of a verdict, and the thresholds. `contract/reasons.py write` makes this file from contract/reasons.toml."""

from typing import NamedTuple


class Form(NamedTuple):
    severity: str  # "": the caller decides by the numbers
    cause: str
    text: str
    worst: str = ""


LATE_DEGRADED_PERCENT = 1
LATE_INVALID_PERCENT = 10
LATE_INTERVAL_PARTS = 10
LATE_FLOOR_NS = 100_000
BUSY_PERCENT = 90
BUSY_SHARE_PERCENT = 5
WAITED_PERCENT = 20
MARKS_CHANGED_PERCENT = 1
COVERAGE_PERCENT = 99
OWN_LOAD_PERCENT = 2

FAILURES = (  # of a command that ended without a result
    "error",
    "refused",
    "unanswered",
    "unreachable",
    "far_ended",
    "other_protocol",
    "server_limit",
    "token_missing",
    "token_wrong",
    "udp_blocked_up",
    "not_permitted",
    "no_memory",
    "wrong_use",
    "not_possible",
)

WORDS = {
    "figure",
    "value",
    "bound",
    "tolerance",
    "answer",
    "device",
    "direction",
    "effect",
    "engine",
    "error",
    "event",
    "file",
    "finding",
    "found",
    "groups",
    "host",
    "location",
    "of_class",
    "other_engine",
    "path",
    "phase",
    "qdisc",
    "refers",
    "sender",
    "shaper",
    "side",
    "what",
    "where",
    "why",
    "first_line",
    "stopped_by",
    "place",
    "step_list",
    "kind",
    "result",
    "ending",
    "tool",
    "traffic",
    "advice",
    "of_path",
    "one",
    "other",
    "protocol",
    "grade",
    "other_grade",
    "of_host",
    "before",
    "after",
    "change",
    "probes_of",
    "flows_of",
    "processor",
    "again",
    "url",
}

FORMS: dict[str, Form] = {
    "stopped_early": Form(
        "degraded",
        "stopped",
        "it was stopped before its end",
    ),
    "bound_wide": Form(
        "degraded",
        "host",
        "{figure} ({value}) can be wrong by {bound}, and the tolerance is {tolerance}: {why}",
    ),
    "bound_unknown": Form(
        "invalid",
        "host",
        "the error of {figure} has no bound: {why}",
    ),
    "nothing_measured": Form(
        "invalid",
        "stopped",
        "nothing was measured",
    ),
    "bench_stalled": Form(
        "degraded",
        "host_cpu",
        "the machine was away in {stalled} of {turns} turns: a busy host of a virtual machine, or the firmware",
    ),
    "error": Form(
        "",
        "tool",
        "{error}",
    ),
    "refused": Form(
        "",
        "far",
        "{error}",
    ),
    "unanswered": Form(
        "",
        "far",
        "{error}",
    ),
    "unreachable": Form(
        "",
        "path",
        "{error}",
    ),
    "far_ended": Form(
        "",
        "far",
        "{error}",
    ),
    "other_protocol": Form(
        "",
        "far",
        "{error}",
    ),
    "server_limit": Form(
        "",
        "far_limit",
        "{error}",
    ),
    "token_missing": Form(
        "",
        "settings",
        "{error}",
    ),
    "token_wrong": Form(
        "",
        "settings",
        "{error}",
    ),
    "udp_blocked_up": Form(
        "",
        "path",
        "{error}",
    ),
    "not_permitted": Form(
        "",
        "host",
        "{error}",
    ),
    "no_memory": Form(
        "",
        "host",
        "{error}",
    ),
    "wrong_use": Form(
        "",
        "settings",
        "{error}",
    ),
    "not_possible": Form(
        "",
        "host",
        "{error}",
    ),
    "bench_no_rate": Form(
        "degraded",
        "tool",
        "no rate was measured: {error}",
    ),
    "abw_chirps": Form(
        "degraded",
        "settings",
        "{direction}: the range is that of the estimates of chirps, which are biased: use another --method",
    ),
    "abw_check_failed": Form(
        "degraded",
        "path",
        "{direction}: streams {side} the range of the empty queue contradict it, so the path is not one link that serves packets in order: the range is that of short fleets",
    ),
    "abw_noise": Form(
        "degraded",
        "far",
        "{direction}: the noise of the arrival stamps of {host} ({noise_ns}) hides whether a queue is empty: the range is that of short fleets; its interrupts may be coalesced (`ethtool -C DEV rx-usecs 0` there)",
    ),
    "abw_by_loss": Form(
        "degraded",
        "path",
        "{direction}: {by_loss} of {fleets} fleets count as too fast by their losses, not by their delays: if the losses have another cause than a full queue, the range is too low: compare with another --method",
    ),
    "abw_later_load": Form(
        "degraded",
        "path",
        "{direction}: cross traffic came between packets that were sent back to back (a load of {load_percent} %), so several links may be loaded, and the range is then too low: compare with another --method",
    ),
    "abw_wide": Form(
        "degraded",
        "samples",
        "{direction}: the range is wider than {limit_percent} % of the capacity",
    ),
    "abw_open": Form(
        "invalid",
        "samples",
        "{direction}: the search over rates has not converged after {fleets} fleets",
    ),
    "abw_coalesced": Form(
        "invalid",
        "far",
        "{direction}: the gaps between arrivals at {host} do not grow with the packets: its interrupts are coalesced (`ethtool -C DEV rx-usecs 0` there) or packets merged (`ethtool -K DEV gro off`), or {shaper}a device on the path sends in bursts",
    ),
    "abw_sender_slow": Form(
        "invalid",
        "host_cpu",
        "{direction}: {host} does not send packets at their times: its link or its processor is the narrow one",
    ),
    "abw_sender_narrow": Form(
        "invalid",
        "host",
        "{direction}: packets arrive as far apart as {host} sends them back to back: its link or its processor is the narrow one, or {shaper}a shaper of the path lets them pass in one burst",
    ),
    "abw_changed": Form(
        "invalid",
        "path",
        "{direction}: the capacity of the narrow link changed from {before_bit_s} to {after_bit_s} during the measurement: measure again",
    ),
    "abw_lost": Form(
        "invalid",
        "path",
        "{direction}: too many probes were lost or overtaken by others: {lost} of {sent}",
        "lost",
    ),
    "abw_late": Form(
        "degraded",
        "host_cpu",
        "{direction}: {late} of {sent} gaps between probes that {host} sent are wrong by more than a tenth",
    ),
    "overtaken": Form(
        "degraded",
        "path",
        "{direction}: {overtaken} of {sent} probes were overtaken: the path delays probes without a queue, so the range may be too low",
    ),
    "train_lost": Form(
        "degraded",
        "path",
        "{direction}: {lost} of {sent} probes were lost",
        "lost",
    ),
    "abw_stopped": Form(
        "",
        "stopped",
        "{direction}: it was stopped before the range was known",
    ),
    "abw_ends_missing": Form(
        "degraded",
        "path",
        "{direction}: the server did not report the end of {flows} flows of probes",
    ),
    "capacity_missing": Form(
        "degraded",
        "path",
        "{direction}: {missing} of {sent} datagrams did not arrive, and are not in the loss: the path drops all, or large ones, or the server stood still",
        "missing",
    ),
    "capacity_fixed": Form(
        "degraded",
        "settings",
        "{direction}: the rate was fixed by --row: the capacity may be higher",
    ),
    "capacity_rising": Form(
        "degraded",
        "samples",
        "{direction}: the rate was still rising at the end: the capacity is higher; give more time (--for)",
    ),
    "capacity_not_filled": Form(
        "degraded",
        "far_limit",
        "{direction}: the load has not filled the path: no datagram was lost, and the delay did not rise; the capacity may be higher, or the server has a limit",
    ),
    "capacity_own_queue": Form(
        "degraded",
        "host_queue",
        "{direction}: limited by this host: its own queue was full and dropped {refused} of {sent} datagrams, so the capacity is that of its device or its shaper: the path may have more",
    ),
    "capacity_unsent": Form(
        "degraded",
        "host",
        "{direction}: this host could not send {failed} of {sent} datagrams (the last one: {error})",
    ),
    "capacity_late": Form(
        "degraded",
        "host_cpu",
        "{direction}: limited by this host: its processor was late, and it did not send {left_out} of {sent} datagrams",
    ),
    "capacity_socket_drops": Form(
        "degraded",
        "host",
        "{direction}: this host lost {dropped} datagrams in its own socket, which the search takes for losses of the path: raise `sysctl net.core.rmem_max`",
        "dropped",
    ),
    "user_stamped": Form(
        "degraded",
        "host",
        "{direction}: {packets} packets have no stamp of the kernel: delays include this program's",
        "packets",
    ),
    "capacity_stood_still": Form(
        "",
        "host_cpu",
        "{direction}: limited by this host: this program did not run for {held_ns}: it was stopped, or its processor was too busy",
        "held_ns",
    ),
    "capacity_stopped": Form(
        "",
        "stopped",
        "{direction}: the test was stopped after {done} of {wanted} sub-intervals",
    ),
    "capacity_silent": Form(
        "",
        "far",
        "{direction}: nothing came from the server in the last five seconds of the test: the server has ended, or the path has failed",
    ),
    "capacity_ended": Form(
        "",
        "far",
        "{direction}: the server ended the test after {done} of {wanted} sub-intervals",
    ),
    "capacity_server_time": Form(
        "degraded",
        "far_limit",
        "{direction}: the server limits the test to {limit_s} s",
    ),
    "capacity_server_paused": Form(
        "degraded",
        "far_cpu",
        "{direction}: limited by the server: by its own clock it sent nothing for {paused_ns} of the test, the longest time for {longest_ns}: its processor was too busy, or it was stopped",
    ),
    "capacity_copies": Form(
        "degraded",
        "path",
        "{direction}: {copies} of {arrived} datagrams that arrived were copies, which the path made: the capacity contains them",
    ),
    "capacity_waited": Form(
        "degraded",
        "host_cpu",
        "limited by this host: its thread waited for a processor during {waited_percent} % of the test (run delay)",
        "waited_percent",
    ),
    "flow_ended_early": Form(
        "degraded",
        "path",
        "flow {flow} ({direction}) ended {early_ns} early, after {after_ns}: {why}",
    ),
    "flow_not_covered": Form(
        "degraded",
        "path",
        "only {covered_percent} % of the time of the flows {direction} is counted, so there is no rate of this direction",
    ),
    "flow_ended": Form(
        "degraded",
        "path",
        "flow {flow} ({direction}) ended after {after_ns} with {moved_bytes} bytes: {why}",
    ),
    "flow_stopped": Form(
        "degraded",
        "stopped",
        "it was stopped: {stopped} of {flows} flows had not ended yet",
    ),
    "flow_samples_missing": Form(
        "degraded",
        "host_cpu",
        "{lost} of {samples} samples of {flows} flows are missing (one is flow {flow}, {direction}): a host was stopped or busy, or the control connection too slow",
        "lost",
    ),
    "flow_samples_lost": Form(
        "degraded",
        "output",
        "the reader of the output was too slow: {dropped} samples are lost",
        "dropped",
    ),
    "flow_ecn": Form(
        "degraded",
        "settings",
        "flow {flow} ({direction}) has {found} ECN: `sysctl net.ipv4.tcp_ecn={setting}` on {host} decides it",
    ),
    "flow_socket_drops": Form(
        "degraded",
        "host",
        "flow {flow} ({direction}): {dropped} packets were lost in this host's own socket, so that loss is overstated",
        "dropped",
    ),
    "flow_server_socket_drops": Form(
        "degraded",
        "far_cpu",
        "flow {flow} ({direction}): limited by the server: its socket dropped {dropped} packets, so of {lost} lost packets the path lost {path_lost} at the least; its processor was too busy, or it was stopped",
        "dropped",
    ),
    "flow_begun_late": Form(
        "degraded",
        "path",
        "the server began its part {late_ns} late, because {why}",
        "late_ns",
    ),
    "flow_server_late": Form(
        "degraded",
        "far_cpu",
        "flow {flow} ({direction}): limited by the server: {late} of {due} packets left late there",
    ),
    "flow_nothing_received": Form(
        "invalid",
        "path",
        "nothing was received at all by any of {flows} flows",
    ),
    "flow_ends_missing": Form(
        "degraded",
        "path",
        "the server's final counts of {missing} of {flows} flows did not arrive: the path down is lost or slow. The figures of the server's end are from its last samples",
        "missing",
    ),
    "flow_started_late": Form(
        "degraded",
        "path",
        "the flows started {late_ns} after the time of --start-at: to connect them took longer than there was",
        "late_ns",
    ),
    "flow_clock_jumped": Form(
        "degraded",
        "clock",
        "the monotonic clock of one of the hosts jumped, or was slewed by more than {limit_ppm} ppm (count: {changes}): a host was suspended, another one answers, or a time daemon corrects a large error",
    ),
    "socket_drops": Form(
        "degraded",
        "host",
        "{direction}: this host lost {dropped} packets in its own socket",
        "dropped",
    ),
    "pair_few_undisturbed": Form(
        "degraded",
        "samples",
        "{direction}: cross traffic left {first} and {second} pairs undisturbed, fewer than {least}: send more pairs (--count)",
    ),
    "pair_wide": Form(
        "degraded",
        "samples",
        "{direction}: the interval of the capacity is wider than {limit_percent} %: send more pairs (--count) or larger packets (--payload)",
    ),
    "pair_sender_narrow": Form(
        "invalid",
        "host",
        "{direction}: both packets of a pair arrive as far apart as {host} sends them: its link or its processor is the narrow one, or {shaper}a shaper of the path lets a pair pass in one burst",
    ),
    "pair_disturbed": Form(
        "invalid",
        "samples",
        "{direction}: no pair passed undisturbed: cross traffic, or arrivals in groups; send more pairs (--count)",
    ),
    "pair_changed": Form(
        "invalid",
        "path",
        "{direction}: the least delays of the first and the second half of the run differ: the path or its rate changed",
    ),
    "pair_few": Form(
        "invalid",
        "samples",
        "{direction}: {first} and {second} usable pairs: the estimate needs {least} of each size",
    ),
    "stopped": Form(
        "degraded",
        "stopped",
        "it was stopped before all {what} were sent",
    ),
    "ppt_stopped": Form(
        "",
        "stopped",
        "{phase}: it was stopped after {sent} of {wanted} probes",
    ),
    "ppt_no_answer": Form(
        "invalid",
        "far",
        "{phase}: no answer to {sent} probes to UDP port {port} of {host}: is `ktrxer serve`, or another STAMP reflector, there?",
    ),
    "ppt_lost": Form(
        "degraded",
        "path",
        "{phase}: {lost} of {sent} probes were lost: times of the answered ones alone are known",
        "lost",
    ),
    "ppt_refused": Form(
        "degraded",
        "host_queue",
        "{phase}: this host's kernel refused {refused} probes",
    ),
    "ppt_contradicted": Form(
        "degraded",
        "clock",
        "{phase}: {times} times were negative or longer than --timeout and are left out: the clock of a host was stepped",
    ),
    "ppt_wide": Form(
        "degraded",
        "samples",
        "{direction}: the interval of the capacity is wider than {limit_percent} %: send more probes (--count) or choose sizes farther apart (--size2)",
    ),
    "ppt_unresolved": Form(
        "invalid",
        "samples",
        "{direction}: the gaps do not show whether they grow with the packet's size: send more probes (--count) or choose sizes farther apart (--size2)",
    ),
    "ppt_service_time": Form(
        "invalid",
        "far",
        "{direction}: the gaps do not grow with the packet's size: {host} needs more time for a packet than its link, or coalesces interrupts",
    ),
    "ppt_decreasing": Form(
        "invalid",
        "path",
        "{direction}: the gaps fall as packets grow, which no link does",
    ),
    "ppt_sender_slow": Form(
        "invalid",
        "host_cpu",
        "{direction}: {host} did not send the trailing packets before the end link had transmitted the heading packets: the gaps are those of the sender",
    ),
    "ppt_changed": Form(
        "invalid",
        "path",
        "{direction}: the gaps of the first and the last part of the run differ: the link's rate or the path changed",
    ),
    "ppt_few": Form(
        "invalid",
        "samples",
        "{direction}: {first} and {second} usable probes: the estimate needs {least} of each size",
    ),
    "ended_early": Form(
        "",
        "tool",
        "it ended early: {error}",
    ),
    "too_late": Form(
        "",
        "settings",
        "{host} answered {too_late} of {sent} probes after the time-out of {timeout_ns}: they are not among the lost, and the times lack them. Set a longer --timeout",
        "too_late",
    ),
    "silent": Form(
        "invalid",
        "far",
        "{host} answered nothing at all{where}{why}",
    ),
    "receive_buffer": Form(
        "degraded",
        "host",
        "limited by this host: its receive buffer was full and dropped {dropped} packets, perhaps answers to lost probes",
        "dropped",
    ),
    "contradicting_stamps": Form(
        "degraded",
        "clock",
        "{round_trips} round trips have stamps that contradict each other (a step of the clock?) and are left out of the times",
    ),
    "unstamped": Form(
        "degraded",
        "host",
        "{unstamped} of {received} round trips lack the stamp of their send time or of their answer and are left out of the times",
    ),
    "device_gone": Form(
        "degraded",
        "host",
        "device '{device}' {event} after {after_ms} ms, before the end",
    ),
    "recv_loss_unknown": Form(
        "degraded",
        "host",
        "the kernel does not report how many packets were lost",
    ),
    "recv_lost": Form(
        "degraded",
        "host_cpu",
        "{lost} packets were lost because they came faster than they were taken; a larger --ring, a smaller --snap or narrower rules help",
        "lost",
    ),
    "recv_nothing": Form(
        "invalid",
        "path",
        "nothing was received: no packet matched a rule",
    ),
    "replay_cut": Form(
        "degraded",
        "settings",
        "{packets} packets were not captured whole, and were not sent",
        "packets",
    ),
    "replay_size": Form(
        "degraded",
        "settings",
        "{packets} packets are larger than the MTU of {mtu_bytes} on '{device}', and were not sent",
        "packets",
    ),
    "replay_link": Form(
        "degraded",
        "settings",
        "{packets} packets have another link header than '{device}', and were not sent",
        "packets",
    ),
    "none_left": Form(
        "invalid",
        "host",
        "none of the {sent} probes that this host's stack took left this host: {error}",
    ),
    "uncounted": Form(
        "degraded",
        "host",
        "{uncounted} of {queued} submitted frames are missing in the statistics of '{device}', and this kernel has no tracepoints for the frames that a driver takes",
    ),
    "send_ended_early": Form(
        "",
        "tool",
        "sending ended early: {error}",
    ),
    "reports_unwritten": Form(
        "degraded",
        "output",
        "not all reports could be written to {file} (disk full?)",
    ),
    "ttl_changed": Form(
        "degraded",
        "path",
        "the TTL on arrival {direction} changed between {low} and {high} (count: {changes}): a route changed, or a router uses several routes of different lengths, so the figures are of more than one path",
    ),
    "ttl_of_classes": Form(
        "degraded",
        "path",
        "the TTL on arrival {direction} differs between classes ({low} to {high}): routers send them by routes of different lengths, so a difference of their delays is not of their queues alone",
    ),
    "marks_changed": Form(
        "degraded",
        "path",
        "the DSCP or ECN of {changed_percent} % of the probes {direction}{of_class} was changed on the path: routers behind that place see another mark than was sent",
        "changed_percent",
    ),
    "host_delay_unknown": Form(
        "invalid",
        "far",
        "--host-delay: no round trip could be corrected: {host} reports no driver stamps of its answers (follow-up telemetry), or this host's device gives none",
    ),
    "host_delay_partly": Form(
        "degraded",
        "host",
        "--host-delay: {uncorrected} of {received} round trips lack a driver's stamp and are left out of the times",
    ),
    "server_refused": Form(
        "degraded",
        "far_limit",
        "limited by the server: it refused {refused} probes beyond its limit of {limit_pps} answers a second to one network (`serve --max-answer-rate`); of {lost} lost probes so many may not be lost on the path",
        "lost",
    ),
    "stamps_impossible": Form(
        "degraded",
        "far",
        "{impossible} of {received} answers left the reflector before their probes arrived there, by its stamps: no delay is computed from them",
    ),
    "server_held": Form(
        "degraded",
        "far_cpu",
        "limited by the server: it held a probe for up to {longest_ns} before its answer, and {held} of {received} for longer than {limit_ns} (not in the round trip): its processor was too busy, or it was stopped",
    ),
    "server_dropped": Form(
        "degraded",
        "far_cpu",
        "limited by the server: its socket dropped {dropped} packets: its processor was too busy, or it was stopped; of {lost} lost probes so many may not be lost on the path",
        "dropped",
    ),
    "clock_changed": Form(
        "degraded",
        "clock",
        "the clock of {host} was stepped, or slewed by more than {limit_ppm} ppm, {changes} times, by up to {largest_ns}: {effect}",
        "largest_ns",
    ),
    "clocks_stepped": Form(
        "degraded",
        "clock",
        "the clocks were stepped against each other, or slewed by more than {limit_ppm} ppm, {changes} times; one-way delays are of the longest time without a step",
    ),
    "clock_drifts": Form(
        "degraded",
        "clock",
        "an oscillator changed its rate by more than {drift_ppm_s} ppm a second: the uncertainty of one-way delays is widened to that of clocks that are slewed by {limit_ppm} ppm",
    ),
    "clocks_contradicted": Form(
        "degraded",
        "clock",
        "both clocks report that they are synchronised, and the round trips contradict that",
    ),
    "stamp_stopped": Form(
        "degraded",
        "stopped",
        "it was stopped after {sent} of {wanted} probes",
    ),
    "wrong_hmac": Form(
        "invalid",
        "settings",
        "{host} answers with a wrong HMAC: the keys of the two ends differ",
    ),
    "not_a_reflector": Form(
        "invalid",
        "far",
        "{packets} packets came from UDP port {port} of {host}, but no packet answers a probe of this run by its sequence number, time and session identifier. Is this a STAMP or TWAMP Light reflector?",
        "packets",
    ),
    "from_elsewhere": Form(
        "invalid",
        "path",
        "{packets} packets came, but from other addresses than {host}: the reflector answers from another address, or a NAT changes it",
        "packets",
    ),
    "reflector_restarted": Form(
        "degraded",
        "far",
        "the reflector began to count anew (count: {restarts}): it restarted, deleted this session, or a NAT changed the port",
    ),
    "extensions_refused": Form(
        "degraded",
        "settings",
        "the extensions of {answers} answers failed their HMAC and were not used: the keys of the two ends differ, or something changes packets on the way",
    ),
    "tcp_refused": Form(
        "",
        "far",
        "{host} refused the connection: no program listens on TCP port {port}",
    ),
    "tcp_silent": Form(
        "",
        "path",
        "{host} did not answer on TCP port {port} within {timeout_ns}: the host is down, a firewall drops SYN segments, or the round trip is longer: give a longer --timeout",
    ),
    "tcp_not_http": Form(
        "",
        "far",
        "the server on TCP port {port} of {host} does not answer with HTTP/1: this command needs a web server without TLS",
    ),
    "tcp_status": Form(
        "",
        "far",
        "the server answered {status} {answer} to GET {path}{refers}{location}: choose another --path",
    ),
    "tcp_window": Form(
        "",
        "far_limit",
        "the server's receive window of {window_bytes} bytes and segment size of {segment_bytes} have no room for two requests of {request_bytes} bytes: give a smaller --payload, or another server",
    ),
    "tcp_short_response": Form(
        "",
        "settings",
        "the responses to GET {path} do not fill two segments of {segment_bytes} bytes: choose a --path of a larger file, or a smaller --mss",
    ),
    "tcp_closes": Form(
        "",
        "far_limit",
        "the server closed {in_a_row} connections in a row before a pair had a result: it does not keep them open (HTTP/1.1); a --path of a file of some megabytes may help",
    ),
    "tcp_stopped_answering": Form(
        "",
        "far",
        "the server stopped answering on {in_a_row} connections in a row",
    ),
    "tcp_no_result": Form(
        "invalid",
        "samples",
        "no pair has a result",
    ),
    "tcp_stopped": Form(
        "degraded",
        "stopped",
        "it was stopped after {pairs} pairs",
    ),
    "trace_queue_before": Form(
        "degraded",
        "samples",
        "the round trips of the flows {direction} grew by {flows_ns}, those of the probes to nearer hops by {hops_ns} at most, and hop {hop} answered fewer than {least} probes: the queue may be before that hop. Give a longer --load-for, or --protocol icmp",
    ),
    "trace_queue_elsewhere": Form(
        "degraded",
        "path",
        "the round trips of the flows {direction} grew by {flows_ns}, those of the probes by {hops_ns} at most: the probes do not wait in the queue of the flows, because a router has one for each flow (fq_codel, classes), or because the engine packet bypasses this host's own",
    ),
    "trace_stopped_before_load": Form(
        "degraded",
        "stopped",
        "it was stopped before the load had begun",
    ),
    "trace_load_ended": Form(
        "degraded",
        "path",
        "the load ended early: {error}",
    ),
    "trace_load_closed": Form(
        "degraded",
        "path",
        "the load ended early: a flow was closed",
    ),
    "trace_no_queue": Form(
        "degraded",
        "samples",
        "no hop answered {least} probes without the load and with it: no queue can be named",
    ),
    "trace_load_too_late": Form(
        "degraded",
        "settings",
        "{too_late} answers under load came after the time-out, and are missing in the added delay: give a longer --timeout",
        "too_late",
    ),
    "trace_memory": Form(
        "degraded",
        "host",
        "there was no memory for the round trips of hop {hop}",
    ),
    "trace_stopped": Form(
        "degraded",
        "stopped",
        "it was stopped before all routes were known",
    ),
    "trace_unsent": Form(
        "degraded",
        "host",
        "{failed} probes could not be sent (the last one: {error})",
    ),
    "trace_too_late": Form(
        "",
        "settings",
        "{too_late} answers came after the time-out of {timeout_ns}: their hops count as silent, and the round trips lack them. Set a longer --timeout",
        "too_late",
    ),
    "trace_silent": Form(
        "invalid",
        "far",
        "no router and no host answered within {timeout_ns}",
    ),
    "trace_target_silent": Form(
        "degraded",
        "far",
        "{host} did not answer within {timeout_ns}: the route is known up to hop {hop}",
    ),
    "trace_too_many": Form(
        "degraded",
        "tool",
        "there are more routers or routes than this program keeps: the graph is not complete",
    ),
    "trace_in_doubt": Form(
        "degraded",
        "far_limit",
        "{in_doubt} probes had no answer from routers that answered others, and are left out: the routers limit their answers, and routes may be missing; a smaller --rate helps",
    ),
    "trace_moved": Form(
        "degraded",
        "path",
        "{moved} repeated probes were answered by another router than before: the route changed, or a router balances packet by packet",
    ),
    "train_coalesced": Form(
        "invalid",
        "far",
        "{direction}: {host} receives {groups}: {shaper}a device on the path sends in bursts, or interrupts are coalesced there (`ethtool -C DEV rx-usecs 0`), or packets merged (`ethtool -K DEV gro off`)",
    ),
    "train_ends_missing": Form(
        "degraded",
        "path",
        "the server did not report the end of {missing} of {flows} flows of {what}",
        "missing",
    ),
    "reader_slow": Form(
        "degraded",
        "output",
        "the reader of the output was too slow: {dropped} objects are lost",
        "dropped",
    ),
    "clock_stepped": Form(
        "degraded",
        "clock",
        "CLOCK_REALTIME was stepped {steps} times during the run, by {largest_ns} at most",
        "largest_ns",
    ),
    "started_late": Form(
        "degraded",
        "settings",
        "the time of --start-at had passed {late_ns} before the start",
        "late_ns",
    ),
    "no_result": Form(
        "invalid",
        "tool",
        "the command ended without a result",
    ),
    "all_skipped": Form(
        "",
        "host_cpu",
        "all {probes} probes were skipped, since their time had passed",
    ),
    "accounts_open": Form(
        "invalid",
        "tool",
        "the accounts do not close: {requested} requested, but {sent} sent, {failed} failed, {skipped} skipped, {cancelled} cancelled, {pending} pending",
    ),
    "accounts_by_stamp_open": Form(
        "invalid",
        "tool",
        "the accounts do not close: {sent} sent, but {nic} by wire, {driver} by driver, {queued} queued",
    ),
    "unsent": Form(
        "",
        "host",
        "{failed} of {all} probes could not be sent (the last one: {error})",
    ),
    "unseen_by_driver": Form(
        "degraded",
        "host_queue",
        "{missing} of {sent} probes that this host's stack took have no stamp of the driver: their neighbour did not answer, a queue of this host dropped them, or their stamps were lost. The path may not have lost them",
        "missing",
    ),
    "bypass": Form(
        "degraded",
        "settings",
        "engine {engine} bypasses the qdisc {qdisc} of this host's device, which delays and limits its other packets: the figures are without it; --engine {other_engine} has it",
    ),
    "capacity_receiver_late": Form(
        "degraded",
        "host_cpu",
        "{direction}: limited by this host, which receives: its processor was too busy, or it was stopped, so {late} sub-intervals ended late; each counts together with the next one",
    ),
    "capacity_server_receiver_late": Form(
        "degraded",
        "far_cpu",
        "{direction}: limited by the server, which receives: its processor was too busy, or it was stopped, so {late} sub-intervals ended late; each counts together with the next one",
    ),
    "flow_unsent": Form(
        "degraded",
        "host_cpu",
        "flow {flow} ({direction}): this host sent {sent} of the {due} packets that were due ({sent_percent} %): its processor was too busy, or its own queue was full",
        "-sent_percent",
    ),
    "flow_server_unsent": Form(
        "degraded",
        "far_cpu",
        "flow {flow} ({direction}): the server sent {sent} of the {due} packets that were due ({sent_percent} %): limited by the server: its processor was too busy, or its own queue was full",
        "-sent_percent",
    ),
    "flow_network_answered": Form(
        "degraded",
        "path",
        "flow {flow} ({direction}): the network answered: {error}",
    ),
    "flow_no_neighbour": Form(
        "degraded",
        "host",
        "flow {flow} ({direction}): limited by this host: {error}",
    ),
    "flow_server_no_neighbour": Form(
        "degraded",
        "far",
        "flow {flow} ({direction}): limited by the server: {error}",
    ),
    "flow_waited": Form(
        "degraded",
        "host_cpu",
        "limited by this host: the flows' thread waited for a processor during {waited_percent} % of a flow's time (run delay)",
        "waited_percent",
    ),
    "flow_server_waited": Form(
        "degraded",
        "far_cpu",
        "limited by the server: it waited for a processor during {waited_percent} % of a flow's time (run delay)",
        "waited_percent",
    ),
    "flow_window": Form(
        "degraded",
        "host",
        "{direction}: limited by this host: the window of its socket (tcp_rmem) was full in {limited} of {flows} flows, and the path had no queue: the path may carry more",
    ),
    "flow_server_window": Form(
        "degraded",
        "far",
        "{direction}: limited by the server: the window of its socket (tcp_rmem) was full in {limited} of {flows} flows, and the path had no queue: the path may carry more",
    ),
    "flow_buffer": Form(
        "degraded",
        "host",
        "{direction}: limited by this host: the send buffer of its socket (tcp_wmem) was too small in {limited} of {flows} flows: all its data was sent, and both windows had room: the path may carry more",
    ),
    "flow_server_buffer": Form(
        "degraded",
        "far",
        "{direction}: limited by the server: the send buffer of its socket (tcp_wmem) was too small in {limited} of {flows} flows: all its data was sent, and both windows had room: the path may carry more",
    ),
    "flow_idle": Form(
        "degraded",
        "host_cpu",
        "{direction}: limited by this host: the sender of {idle} of {flows} flows had no unacknowledged data during up to {idle_percent} % of its time, because its process did not run: the path may carry more",
    ),
    "flow_server_idle": Form(
        "degraded",
        "far_cpu",
        "{direction}: limited by the server: the sender of {idle} of {flows} flows had no unacknowledged data during up to {idle_percent} % of its time, because its process did not run: the path may carry more",
    ),
    "tcp_no_connection": Form(
        "degraded",
        "far_limit",
        "{busy} of {pairs} pairs were not sent because no connection was ready: losses that last are counted too seldom; give more --connections or a longer --interval",
    ),
    "tcp_unprimed": Form(
        "degraded",
        "far",
        "{unprimed} of {pairs} pairs were not sent because the server did not send the two segments before the pair in time",
    ),
    "tcp_no_conclusion": Form(
        "degraded",
        "samples",
        "{no_conclusion} of {pairs} pairs have no result: the server's answers fit no event",
    ),
    "tcp_short_segments": Form(
        "degraded",
        "far",
        "{short_segments} of {pairs} pairs have no result: the server sent shorter segments than --mss",
    ),
    "tcp_connection_ended": Form(
        "degraded",
        "far",
        "{connection_ended} of {pairs} pairs have no result: the server closed the connection meanwhile",
    ),
    "tcp_user_stamped": Form(
        "degraded",
        "host",
        "{segments} segments have no stamp of the kernel: round trips include this program's delay",
    ),
    "processors_busy": Form(
        "degraded",
        "host_cpu",
        "the processors of this host were more than {limit_percent} % used or stolen during {busy_percent} % of the run (CPU {cpu_percent} %, of it stolen by the hypervisor {steal_percent} %)",
        "busy_percent",
    ),
    "late": Form(
        "",
        "host_cpu",
        "{late} of {all} probes ({late_percent} %) left more than {late_after_ns} late or were skipped (lateness: p50 {p50_ns}, max {max_ns}): this machine is too busy or too slow",
        "late_percent",
    ),
    "late_refused": Form(
        "",
        "host_queue",
        "{late} of {all} probes ({late_percent} %) left more than {late_after_ns} late or were skipped (lateness: p50 {p50_ns}, max {max_ns}): limited by this host: its own queue was full and refused {refused} submissions",
        "late_percent",
    ),
    "late_waited": Form(
        "",
        "host_cpu",
        "{late} of {all} probes ({late_percent} %) left more than {late_after_ns} late or were skipped (lateness: p50 {p50_ns}, max {max_ns}): limited by this host: its thread waited for a processor for {waited_ns}, because other threads ran",
        "late_percent",
    ),
    "late_stopped": Form(
        "",
        "host_cpu",
        "{late} of {all} probes ({late_percent} %) left more than {late_after_ns} late or were skipped (lateness: p50 {p50_ns}, max {max_ns}): limited by this host: its threads waited for a processor for only {waited_ns}, so it was stopped, or a timer or the hypervisor was late",
        "late_percent",
    ),
    "bench_failed": Form(
        "degraded",
        "tool",
        "{sender} at {payload_bytes} bytes: {error}",
    ),
    "more_reasons": Form(
        "degraded",
        "tool",
        "and {more} more reasons",
    ),
    "not_ended": Form(
        "degraded",
        "tool",
        "it did not end by itself, and was stopped",
    ),
    "no_time_left": Form(
        "degraded",
        "settings",
        "no time was left for it after {other}",
    ),
    "place_lost": Form(
        "degraded",
        "far",
        "the place {place} was lost {at_s} s into the run: {error}",
    ),
    "unreadable_lines": Form(
        "degraded",
        "tool",
        "it printed {lines} lines that cannot be read as results; the first: {first_line}",
        "lines",
    ),
    "unreadable_samples": Form(
        "degraded",
        "tool",
        "{samples} samples could not be read; the first: {first_line}",
        "samples",
    ),
    "clocks_not_compared": Form(
        "degraded",
        "clock",
        "the clocks could not be compared at the end: {error}",
    ),
    "place_clock_stepped": Form(
        "degraded",
        "clock",
        "its clock was stepped by {moved_ns} during the run, to +- {allowed_ns}",
        "moved_ns",
    ),
    "own_clock_stepped": Form(
        "degraded",
        "clock",
        "{step_list}",
    ),
    "run_stopped": Form(
        "degraded",
        "stopped",
        "the run was stopped by {stopped_by} after {after_s} s of {planned_s} s",
    ),
    "negative_round_trips": Form(
        "degraded",
        "clock",
        "{round_trips} round trips are shorter than 0: their stamps are wrong, and they are left out",
        "round_trips",
    ),
    "hosts_stepped": Form(
        "degraded",
        "clock",
        "the clocks of the two hosts were stepped against each other {steps} times",
        "steps",
    ),
    "measured_nothing": Form(
        "invalid",
        "far",
        "{kind} measured nothing: {result}",
    ),
    "none_measured": Form(
        "invalid",
        "far",
        "none of the {processes} processes of {kind} measured anything: {result}",
    ),
    "nothing_recorded": Form(
        "invalid",
        "tool",
        "nothing at all was recorded",
    ),
    "not_recorded": Form(
        "degraded",
        "tool",
        "it was no longer recorded: {error}",
    ),
    "not_measured": Form(
        "degraded",
        "host",
        "it was not measured: {error}",
    ),
    "process_failed": Form(
        "degraded",
        "tool",
        "the process {ending}",
    ),
    "exit_status": Form(
        "degraded",
        "tool",
        "the process ended with exit status {status}{error}",
    ),
    "no_reason_given": Form(
        "",
        "tool",
        "the process gives no reason",
    ),
    "runner_defect": Form(
        "degraded",
        "tool",
        "{error}",
    ),
    "check_failed": Form(
        "degraded",
        "tool",
        "the check of {finding} failed: {error}",
    ),
    "tool_failed": Form(
        "degraded",
        "tool",
        "{tool}: {error}",
    ),
    "netperf_silent": Form(
        "degraded",
        "tool",
        "netperf printed nothing in its last {silent_s} s: UDP_RR stops measuring after a lost packet",
        "silent_s",
    ),
    "fetches_failed": Form(
        "degraded",
        "far",
        "{failed} of {fetches} fetches failed; the first: {error}",
        "failed",
    ),
    "irtt_left_out": Form(
        "degraded",
        "host_cpu",
        "irtt left out {missing} of {sent} probes, because its timer was late",
        "missing",
    ),
    "flow_failed": Form(
        "degraded",
        "path",
        "the flow failed {at_s} s into the run: {why}",
    ),
    "too_many_series": Form(
        "degraded",
        "settings",
        "it has more than {limit} series: the others are not recorded",
    ),
    "ended_before_time": Form(
        "degraded",
        "tool",
        "it ended {early_s} s before its time",
        "early_s",
    ),
    "late_probes": Form(
        "",
        "host_cpu",
        "{late_percent} % of the probes left more than {late_after_ns} late",
        "late_percent",
    ),
    "answers_too_late": Form(
        "degraded",
        "settings",
        "{too_late} answers came after the time-out, the last after {longest_s} s: they are not among the lost, and their delays are recorded; a longer --timeout has them in the statistics",
        "too_late",
    ),
    "answers_missing": Form(
        "invalid",
        "tool",
        "the accounts do not close: {received} probes were answered, but {recorded} answers are recorded",
        "received",
    ),
    "probes_missing": Form(
        "degraded",
        "host_cpu",
        "only {recorded} of {due} probes are recorded ({recorded_percent} %): the process stood still, or ended early",
        "-recorded_percent",
    ),
    "receiver_counts_missing": Form(
        "degraded",
        "tool",
        "the byte counts of the receiver are missing: its throughput is of the bytes that the sender counted",
    ),
    "counts_missing": Form(
        "degraded",
        "path",
        "only {covered_percent} % of its time is covered by byte counts of the {side}: the flow began late, or counts are missing",
        "-covered_percent",
    ),
    "host_busy": Form(
        "degraded",
        "host_cpu",
        "its processors were busy to more than {limit_percent} % for {busy_percent} % of the run",
        "busy_percent",
    ),
    "far_busy": Form(
        "degraded",
        "far_cpu",
        "its processors were busy to more than {limit_percent} % for {busy_percent} % of the run",
        "busy_percent",
    ),
    "host_stolen": Form(
        "degraded",
        "host_cpu",
        "its hypervisor gave its processors to others to more than {limit_percent} % for {busy_percent} % of the run",
        "busy_percent",
    ),
    "far_stolen": Form(
        "degraded",
        "far_cpu",
        "its hypervisor gave its processors to others to more than {limit_percent} % for {busy_percent} % of the run",
        "busy_percent",
    ),
    "own_load": Form(
        "degraded",
        "settings",
        "the {traffic} of the run takes {own_percent} % of the rate that the run got {direction} ({own_kbit_s} kbit/s of {run_kbit_s} kbit/s; the path has more if other traffic was on it), and may change what is measured; {advice}",
        "own_percent",
    ),
    "round_trips_apart": Form(
        "degraded",
        "path",
        "{of_path}{one} and {other} round trips of the same class contradict each other: medians {one_ms} and {other_ms}, difference {difference_ms} (95 %: {from_ms} to {to_ms}): they take different paths, or a host or router delays them differently, so the delay of one kind is not that of the other",
    ),
    "losses_apart": Form(
        "degraded",
        "path",
        "{lost_udp} of {sent_udp} UDP and {lost_icmp} of {sent_icmp} ICMP probes of the same class are lost: a host or router limits or filters the one kind, or they take different paths, so the losses of one kind are not those of the other, and the loss of all probes together is of neither",
    ),
    "idle_apart": Form(
        "degraded",
        "path",
        "the idle {protocol} round trips before and after the load are apart: medians {before_ms} and {after_idle_ms}: other traffic filled the path in one of these times, or the path changed, so the delay that the load adds is uncertain by as much",
    ),
    "idle_delayed": Form(
        "degraded",
        "path",
        "the idle {protocol} round trips were not those of an idle path: median {before_ms}, but {least_ms} at another time of the run: other traffic filled the path, or a device saved power. The grade of the delay that the load adds is {grade} beside the one and {other_grade} beside the other",
    ),
    "route_changed": Form(
        "degraded",
        "host",
        "the route{of_host} to the target changed during the run: from device {before} to {after}",
    ),
    "qdisc_changed": Form(
        "degraded",
        "host",
        "the qdisc of {host}'s device {device} was changed during the run ({change}): the figures are of both settings",
    ),
    "routed_apart": Form(
        "degraded",
        "host",
        "{probes_of}: these probes leave this host by another route than the flows ({flows_of}): device {before} and device {after}. Their delays are not those of the path under load; `ip rule` shows the rules",
    ),
    "softirqs_waited": Form(
        "degraded",
        "host_cpu",
        "limited by this host: the softirqs of processor {processor}, which receive and send packets, waited for the processor for {waited_percent} % of the run, because other work had it",
        "waited_percent",
    ),
    "cut_off": Form(
        "",
        "stopped",
        "the run was cut off: its last sample is at {last_s} s of {planned_s} s",
    ),
    "damaged": Form(
        "degraded",
        "tool",
        "{error}",
    ),
    "connection_failed": Form(
        "degraded",
        "far",
        "connection {number} failed{again}: {error}",
    ),
    "no_byte": Form(
        "invalid",
        "far",
        "{url}: no byte was transferred",
    ),
    "load_stopped": Form(
        "degraded",
        "stopped",
        "the load was stopped before its end",
    ),
    "http_failed": Form(
        "invalid",
        "far",
        "{error}",
    ),
    "rpm_aborted": Form(
        "degraded",
        "far",
        "{error}",
    ),
    "rpm_unknown": Form(
        "invalid",
        "far",
        "no responsiveness: a kind of probe has no answer",
    ),
    "rpm_unanswered": Form(
        "degraded",
        "far",
        "more than {share_percent} % of the {kind} probes had no answer within {wait_s} s, and count as 0 round trips a minute",
    ),
    "rpm_late": Form(
        "degraded",
        "host_cpu",
        "limited by this host: the program was up to {lag_ms} late (p99), which is a part of the probes' times",
        "lag_ms",
    ),
    "owamp_nothing_arrived": Form(
        "invalid",
        "path",
        "{direction}: no packet arrived: a firewall may drop UDP to the port of the session",
    ),
    "owamp_server_queue": Form(
        "degraded",
        "far_queue",
        "{direction}: limited by the server: it did not send {skipped} of {due} packets: its queue was full",
    ),
    "owamp_server_late": Form(
        "degraded",
        "far_cpu",
        "{direction}: limited by the server: by its own clock it sent {late} of {arrived} packets late, by up to {late_ns}: its processor was too busy, or it was stopped",
        "late_ns",
    ),
    "owamp_server_behind": Form(
        "degraded",
        "far_cpu",
        "{direction}: limited by the server: when the time-out of the last packet ended, it had sent {sent} of {wanted} packets: its processor was too busy, or it was stopped",
    ),
    "owamp_no_sched_stamp": Form(
        "degraded",
        "host",
        "{direction}: {without} of {arrived} packets have no stamp of the packet scheduler: their delays begin at the send call and include this program's time",
    ),
    "owamp_impossible_times": Form(
        "degraded",
        "clock",
        "{direction}: {packets} packets have impossible send times",
        "packets",
    ),
    "owamp_not_synchronised": Form(
        "degraded",
        "clock",
        "{direction}: the least delay is negative by more than its uncertainty: one host reports a synchronised clock, and the clock is not synchronised",
    ),
    "owamp_stopped": Form(
        "degraded",
        "stopped",
        "the sessions were stopped before their time",
    ),
    "owamp_server_stopped": Form(
        "degraded",
        "far",
        "the server stopped the sessions before their time",
    ),
}
