/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer send`: its options, and its parts. */
#ifndef KTRXER_CLI_SEND_H
#define KTRXER_CLI_SEND_H

#include "cli.h"
#include "loop.h"
#include "path_witness.h"
#include "send_replay.h"
#include "shared_options.h"
#include "template.h"
#include "send_vary.h"

#include <pthread.h>

struct send_options {
	const char *device, *engine, *schedule_file, *reports, *pcap;
	const char *host; /* NULL with --pcap */
	struct ktrxer_addr from;
	struct opt_mac next_hop_mac;
	uint8_t dscp, ecn;
	uint64_t port, from_port, payload, ttl, count, for_ns, interval_ns, train, gap_ns, late_after_ns, retry_ns;
	int64_t cpu;
	uint64_t repeat, max_gap_ns;
	struct opt_rate rate, speed;
	const char *seed;
	int late, model, precise;
	bool v4, v6, flood, no_realtime, no_stamps, may_fragment;
	struct opt_list vary;
	bool combine;
	uint64_t threads;
};

struct send_run;

struct send_worker {
	struct send_run *run;
	uint32_t number;
	struct ktx *tx;
	struct template probe;            /* the frame of number 0; without --pcap */
	struct ktx_template *made;        /* the same with what varies */
	struct ktrxer_schedule *schedule; /* NULL: as fast as it goes */
	uint64_t next;                    /* number of its next probe */
	uint64_t committed;
	uint64_t chunk_left;     /* without a schedule: numbers of its chunk that it has not committed */
	uint64_t network_errors; /* ICMP errors that came back */
	uint64_t unreachable;    /* of them those of this host's own kernel: its next hop did not answer */
	int failure;             /* negative errno that ended it early */
	char failure_text[KTRXER_ERROR_TEXT];
	struct loop *loop;
	struct loop_timer timer;                      /* of the next step */
	struct loop_source events;                    /* ktx_fd() */
	uint64_t (*step)(struct send_worker *worker); /* when to call it again at the latest; 0: it has finished */
	struct ktrxer_deadline due;                   /* of the probe that is committed next */
	bool has_due;
	pthread_t thread;
};

struct send_run {
	struct cli *cli;
	const struct send_options *o;
	struct ktrxer_addr to;
	struct ktrxer_path path;
	struct path_witness witness; /* at the end */
	struct send_worker *workers;
	uint32_t workers_count;
	struct ktx_info info;  /* of the first one's transmitter */
	const char *reason;    /* why this engine */
	bool polled_rate;      /* at a rate, with times that the kernel side polls for */
	char auto_reason[256]; /* as `auto` said it, where the engine was opened once more */
	struct vary vary;
	struct replay replay; /* with --pcap */
	bool precise;         /* spins before each send time */
	uint64_t late_ns;     /* from this lateness on a probe is late */
	bool timed;           /* there is a schedule, or the file's own times */
	bool streams;         /* the engine makes the frames itself */
	struct schedule_list *list;
	uint64_t interval_ns;      /* between trains; 0: none */
	uint64_t wanted;           /* probes, UINT64_MAX: until the time is over */
	uint64_t start_ns, end_ns; /* end_ns KTRXER_NEVER: no end in time */
	pthread_mutex_t lock;      /* of what follows, while several workers run */
	uint64_t next_chunk;       /* first number that no worker has taken yet */
	FILE *csv;
};

/* send_plan.c: all that can be wrong is found here, before anything is sent. */
int send_plan(struct send_run *run, struct ktrxer_error *err);
void send_release(struct send_run *run);
/* Makes a schedule for each worker, when the start is known. */
int send_schedule(struct send_run *run, struct ktrxer_error *err);

/* send_worker.c: all that is to be sent, by all workers, to the end or until asked to stop. */
void send_work(struct send_run *run);

void send_report(struct send_run *run, const struct ktx_report *report);
int send_finish(struct send_run *run);
int send_csv_open(struct send_run *run, struct ktrxer_error *err);

#endif
