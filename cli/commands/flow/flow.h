/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer flow`: its options, and its parts. */
#ifndef KTRXER_CLI_FLOW_H
#define KTRXER_CLI_FLOW_H

#include "cli.h"
#include "flow_client.h"
#include "flow_result.h"
#include "flow_series.h"

struct flow_options {
	const char *direction, *host, *token_file, *cc, *dscp, *ecn, *engine, *device;
	struct ktrxer_addr from;
	struct opt_range payload;
	uint64_t flows, for_ns, bytes, sample_ns, stagger_ns, ahead_ns, rate_bps, port, tolerance;
	int64_t cpu;
	int model;
	bool v4, v6, udp, precise, flood;
};

enum flow_ecn { FLOW_ECN_ANY = 0, FLOW_ECN_ON, FLOW_ECN_OFF };

struct flow_shown {
	uint8_t ecn_wanted;   /* enum flow_ecn */
	char cc[FLOW_CC_MAX]; /* in force at this end; "": not known */
	uint64_t bytes;       /* by the last line for people */
};

struct flow_pending {
	uint32_t flow;
	bool remote;
	struct flow_origin origin;
	struct flow_sample sample;
};

struct flow_run {
	struct cli *cli;
	const struct flow_options *o;
	struct loop *loop;
	struct flow_client *client;
	struct flow_client_options plan;
	struct flow_client_result result;
	struct ktrxer_path path; /* of the route before the beginning; device.index 0: there was none */
	struct path_witness witness;
	struct flow_spec *specs;
	struct flow_record *records;
	struct flow_result *results; /* at the end */
	struct flow_ends ends[2];    /* up, down */
	struct flow_ends *each;      /* of each flow */
	struct flow_findings findings[2];
	struct flow_shown *shown;
	struct hmac_key token;
	bool up, down, interrupted, done;
	uint64_t shown_ns; /* of the last line for people */
	uint64_t late_ns;  /* the start, against --start-at */
	/*
	 * Samples that wait for room in the output: all flows are sampled at once, and a reader takes them as it can.
	 */
	struct flow_pending *pending;
	uint32_t pending_at, pending_count, pending_size;
	uint64_t pending_lost;
	struct loop_timer pending_timer;
};

/* The server's key, from a file or (`token_file` NULL) from KTRXER_TOKEN. -EINVAL with a text: neither is given. */
int flow_token_read(struct hmac_key *key, const char *token_file, struct ktrxer_error *err);
int flow_plan(struct flow_run *run, struct ktrxer_error *err);
void flow_release(struct flow_run *run);

/* flow_samples.c: the client's reports while it runs */
void flow_on_sample(void *run, uint32_t flow, const struct flow_sample *sample, const struct flow_origin *origin);
void flow_on_connected(void *run, uint32_t flow, int fd);
void flow_on_started(void *run, uint64_t start_ns, uint64_t late_ns);
void flow_on_ended(void *run, uint32_t flow, bool remote, const struct flow_end *end);
void flow_on_tick(void *run, uint64_t at_ns);
void flow_pending_due(struct loop_timer *timer, uint64_t now_ns);
void flow_pending_flush(struct flow_run *run); /* waits for the reader, within limits */

/* -ENOENT or -EPERM: this host, or the server (`there`), does not have or not allow this congestion control. */
int flow_cc_refused(struct ktrxer_error *err, int rc, const char *name, bool there);
int flow_failure_describe(struct ktrxer_error *err, const struct flow_client_options *options,
			  const struct flow_failure *failure);

struct path_report;
struct path_report flow_path_report(const struct flow_run *run);

/* flow_findings.c: levels and outages of a direction */
void flow_findings_text(struct flow_run *run, bool down);
void flow_findings_json(const struct flow_run *run, struct json *end);

/* flow_marks.c: DSCP and ECN, sent against received. Not in small builds. */
static inline bool flow_marks_known(const struct flow_side *receiver)
{
	return receiver->ended && (!receiver->end.packets || receiver->end.marks.packets[0]);
}
#ifndef KTRXER_SMALL
void flow_marks_judge(struct flow_run *run);
void flow_marks_text(struct flow_run *run);
#else
static inline void flow_marks_judge(struct flow_run *run)
{
	(void)run;
}
static inline void flow_marks_text(struct flow_run *run)
{
	(void)run;
}
#endif

void flow_say_what(struct flow_run *run);
int flow_finish_report(struct flow_run *run);

void flow_end_json(const struct flow_run *run, struct json *end, const struct flow_total totals[2]);

void flow_judge(struct flow_run *run, const struct flow_total totals[2]);
const char *flow_direction_of(const struct flow_run *run, uint32_t flow);
const char *flow_why_ended(const struct flow_run *run, uint32_t flow);
/* The end of the flows on one host that waited longest; UINT32_MAX: not known. */
uint32_t flow_waited_most(const struct flow_run *run, bool here);

#endif
