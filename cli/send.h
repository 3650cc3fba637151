/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer send`: its options, and its parts. */
#ifndef KTRXER_CLI_SEND_H
#define KTRXER_CLI_SEND_H

#include "cli.h"
#include "send_replay.h"
#include "template.h"

struct send_options {
	const char *device, *engine, *schedule_file, *reports, *pcap;
	struct opt_endpoint to;
	struct ktrxer_addr from;
	struct opt_mac next_hop_mac;
	uint64_t from_port, payload, tos, ttl, count, for_ns, interval_ns, train, gap_ns, late_after_ns, retry_ns;
	int64_t cpu;
	uint64_t repeat, max_gap_ns;
	struct opt_rate rate, speed;
	const char *seed;
	int late;
	bool poisson, flood, sleep, no_realtime, no_stamps, may_fragment;
};

/* One run of it. */
struct send_run {
	struct cli *cli;
	const struct send_options *o;
	struct ktrxer_path path;
	struct ktx *tx;
	struct ktx_info info;
	const char *reason;   /* why this engine */
	struct template probe;
	struct replay replay; /* with --pcap */
	struct ktrxer_schedule *schedule; /* NULL: as fast as it goes */
	struct ktrxer_schedule_list *list;
	uint64_t interval_ns; /* between trains; 0: none */
	uint64_t wanted;      /* probes, UINT64_MAX: until the time is over */
	uint64_t start_ns, end_ns; /* end_ns KTRXER_NEVER: no end in time */
	uint64_t next;        /* number of the next probe to commit */
	uint64_t never_committed;
	uint64_t network_errors; /* ICMP errors that came back */
	int failure;          /* negative errno that ended it early */
	char failure_text[KTRXER_ERROR_TEXT];
	FILE *csv;
};

/* send_plan.c: all that can be wrong is found here, before anything is sent. */
int send_plan(struct send_run *run, struct ktrxer_error *err);
void send_release(struct send_run *run);
/* After the start is known. */
int send_schedule(struct send_run *run, struct ktrxer_error *err);

/* send_report.c */
void send_report(struct send_run *run, const struct ktx_report *report);
int send_finish(struct send_run *run);
int send_csv_open(struct send_run *run, struct ktrxer_error *err);

#endif
