/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A trace, as its own files use it. */
#ifndef KTRXER_METHODS_TRACE_STATE_H
#define KTRXER_METHODS_TRACE_STATE_H

#include "loop.h"
#include "trace.h"

enum {
	TRACE_PROBES = 0xfffe, /* numbers whose low 16 bits differ (trace_probe.c) */
	TRACE_JOBS_MAX = 8192,
};

enum probe_state { FREE, COMMITTED, SENT, UNSENT };

/* A probe, from its commit until its number is used again. */
struct trace_pending {
	struct trace_sample sample;
	uint32_t job;
	uint32_t round; /* the job is of this round */
	uint8_t state;
	bool answered;
};

/* One task of the search: to get an answer from a hop on a flow. */
struct trace_job {
	struct trace_want want;
	uint32_t tries, repetition;
	uint64_t at_ns;    /* not sent before */
	uint64_t until_ns; /* end of the present try; 0: the job waits to be sent */
	bool done;
};

struct trace {
	struct trace_spec spec;
	struct trace_probe probe;
	struct trace_graph *graph;
	struct ktx *tx;
	struct krx *rx;
	struct ktx_info info;
	struct privilege_left privileges;
	struct trace_events events;
	struct trace_result result;
	struct trace_pending *probes;
	uint32_t number; /* of the next probe */
	struct trace_sample *samples;
	size_t sample_count, sample_room;
	struct trace_want *wants;
	struct trace_job *jobs;
	uint32_t *queue; /* jobs to send, oldest first: a ring of TRACE_JOBS_MAX */
	uint32_t queued, queue_at;
	uint32_t job_count, open; /* of this round */
	uint32_t round;
	uint8_t stage;
	uint32_t rounds, repetition; /* of trace_repeat(): their number, and the next one */
	uint64_t interval_ns;
	uint64_t send_ns;   /* when the next probe may leave */
	uint64_t check_ns;  /* no try ends before */
	uint64_t linger_ns; /* the end of the wait for late answers; 0: it has not begun */
	uint64_t last_ns;   /* scheduled time of the last probe */
	uint64_t rtt_max_ns;
	bool by_socket;                  /* the host's socket sends and gets the ICMP errors; rx is NULL */
	bool silent[TRACE_HOPS_MAX + 1]; /* a probe of the hop had no answer within the time-out */
	uint8_t first_route;
	struct loop *loop;
	struct loop_timer timer;
	struct loop_source tx_source, rx_source;
};

void trace_fail(struct trace *t, int rc, const char *text);
void trace_job_start(struct trace *t, struct trace_want want, uint64_t at_ns);
uint64_t trace_job_wait_ns(const struct trace *t, const struct trace_job *job); /* for an answer */
void trace_job_end(struct trace *t, struct trace_job *job);
void trace_give_up(struct trace *t, uint64_t now); /* tries without an answer in time */
void trace_graph_take(struct trace *t, struct trace_want want, const struct ktrxer_addr *from, enum trace_end end);

void trace_take_reports(struct trace *t);
void trace_take_replies(struct trace *t);
void trace_take_errors(struct trace *t);

#endif
