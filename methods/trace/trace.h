/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The routes to a host: probes with growing hop limits, which routers answer with ICMP errors. trace_graph.h chooses
 * the probes, this part sends them at a bounded rate, repeats those without an answer, and measures each round trip
 * from the kernel's send stamp to its arrival stamp.
 */
#ifndef KTRXER_METHODS_TRACE_H
#define KTRXER_METHODS_TRACE_H

#include "path_witness.h"
#include "privilege.h"
#include "trace_graph.h"
#include "trace_probe.h"

struct trace_spec {
	struct ktrxer_addr to, from; /* from.family 0: the address of the route */
	const char *device, *engine; /* device NULL: the device of the route */
	uint8_t proto;               /* KTRXER_UDP, KTRXER_TCP or KTRXER_ICMP (for IPv6 too) */
	uint16_t port;
	uint8_t tos;
	uint8_t hops_max, silent_max;
	double failure, share; /* see trace_graph_options; failure 0: one flow */
	uint64_t gap_ns;       /* between two probes */
	uint64_t timeout_ns;   /* for the last try */
	uint32_t tries;
	bool keep_privileges; /* else they are dropped once all is open */
};

enum trace_stage { TRACE_SEARCH = 0, TRACE_REPEAT = 1, TRACE_LOADED = 2, TRACE_SAME_FLOW = 3 };

/* An answer, once the send time of its probe is known. */
struct trace_sample {
	struct trace_sent sent;
	struct ktrxer_addr from;
	uint64_t sent_ns, received_ns;
	int64_t rtt_ns;
	int64_t own_queue_ns;           /* of rtt_ns, the part in this host's packet scheduler; -1: unknown */
	uint32_t repetition;            /* of the stage; of a search 0 */
	uint8_t stage;                  /* enum trace_stage */
	uint8_t sent_source;            /* enum ktx_sent_source */
	uint8_t source;                 /* enum ktrxer_stamp_source */
	uint8_t kind, type, code;       /* enum trace_reply_kind; of ICMP */
	uint8_t ttl;                    /* of the answer on arrival */
	uint8_t quoted_ttl, quoted_tos; /* of the probe, where it met the router; errors only */
	uint8_t label_count;
	struct trace_changes changes;
	struct trace_label labels[TRACE_LABELS_MAX];
};

struct trace_hop_counts {
	uint64_t sent, answered; /* probes, with repeated ones */
};

struct trace_result {
	struct trace_hop_counts hops[TRACE_HOPS_MAX + 1];
	uint64_t sent, answered, unanswered, failed;
	uint64_t duplicates;   /* a second answer to one probe */
	uint64_t late;         /* an answer after its probe was given up */
	uint64_t foreign;      /* ICMP messages and segments that are no answers */
	uint64_t user_stamped; /* answers whose arrival this program has stamped: the round trip includes its delay */
	uint64_t receiver_drops;
	struct ktrxer_qdiscs qdiscs; /* of the device, when the search began */
	uint64_t too_late;           /* of `late`: later than timeout_ns after the probe */
	uint32_t in_doubt; /* probes without an answer that are left out: their routers may limit their answers */
	uint64_t begin_ns, end_ns;
	int failed_error;            /* negative errno of the last probe that could not be sent */
	struct path_witness path;    /* departures only */
	uint32_t own_next_hops;      /* of this host's route, by the device that was named */
	bool stopped;                /* by stop_fd */
	struct ktrxer_error failure; /* code 0: none; the first one */
};

struct trace_events {
	void (*answer)(void *context, const struct trace_sample *sample);
	void *context;
};

struct loop;
struct trace;
/* Opens all that is needed, and drops the privileges. *trace is to be freed in any case. */
int trace_new(struct trace **trace, const struct trace_spec *spec, struct ktrxer_error *err);
void trace_free(struct trace *trace);
/* The whole search, and the test of routers that balance load packet by packet. Once. */
void trace_search(struct trace *trace, int stop_fd, const struct trace_events *events);
/*
 * `rounds` more probes of the first flow to each hop that answered it, one round each `interval_ns`: round trips, and
 * changes of the route. After trace_search(); the samples are of this stage.
 */
void trace_repeat(struct trace *trace, enum trace_stage stage, uint32_t rounds, uint64_t interval_ns, int stop_fd);

/* The time that one probe for each hop of the first flow's route takes at the rate of the probes. */
uint64_t trace_round_ns(const struct trace *trace);
/*
 * Other sources and timers that run beside the probes use it. It runs in the calls of trace_search() and
 * trace_repeat().
 */
struct loop *trace_loop_of(const struct trace *trace);

const struct trace_graph *trace_graph_of(const struct trace *trace);
const struct trace_result *trace_result_of(const struct trace *trace);
const struct ktrxer_path *trace_path_of(const struct trace *trace);
const struct ktx_info *trace_info_of(const struct trace *trace);
const struct privilege_left *trace_privileges_of(const struct trace *trace);
/* All samples, in the order of their answers. */
const struct trace_sample *trace_samples(const struct trace *trace, size_t *count);
/* The last hop of the first flow's route that answered. */
uint8_t trace_first_route(const struct trace *trace);

/* The meaning of an answer for the search, from `to`'s point of view. */
enum trace_end trace_end_of(const struct trace_reply *reply, const struct ktrxer_addr *to);

#endif
