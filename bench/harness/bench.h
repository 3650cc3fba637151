/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The harness of `ktrxer bench`: senders send in turns over the same path, and the far end stamps each probe. The
 * result is JSON lines, one sample for each turn with its time stamps; lab/ktrxer_lab/bench makes figures and tables of
 * them. The list of engines is ktx_engines()'s.
 */
#ifndef KTRXER_CLI_BENCH_H
#define KTRXER_CLI_BENCH_H

#include "bench_farend.h"
#include "bench_net.h"
#include "bench_watch.h"
#include "cli.h"
#include "shared_options.h"

enum {
	BENCH_WHO = 48,         /* engines and baselines */
	BENCH_OIR_MOST = 16384, /* probes that may all be with an engine at once */
	BENCH_LEVELS = 8,       /* of cross traffic, or of gaps */
	BENCH_NAME = 32,
	BENCH_JOBS = 3, /* of a turn */
	BENCH_WARM = 5, /* first probes (or pairs) of a turn that are sent and not judged */
};

struct bench_options {
	const char *engines, *cross, *gaps, *methods, *predispatch, *compare, *csv, *device, *far_device, *far_netns;
	struct ktrxer_addr to;
	struct opt_range payload;
	uint64_t rounds, count, interval_ns, for_ns, train, threads, seed;
	bool no_baselines, no_bpf, fq, both_ways;
};

/* BENCH_PATH_OPTIONS has the options of the path, and those of the Python part, which this program refuses. */
#define BENCH_PATH_OPTIONS(FIELDS)                                                                                     \
	OPTION_DEVICE(offsetof(FIELDS, device), .heading = "Path",                                                     \
		      .help = "Send by this device instead of between two hosts in network namespaces of the bench's " \
			      "own"),                                                                                  \
	{ .name = "to", .type = OPT_ADDRESS, .offset = offsetof(FIELDS, to), .argument = "IP",                         \
	  .help = "Destination, with --device" },                                                                      \
	{ .name = "far-device", .type = OPT_STRING, .offset = offsetof(FIELDS, far_device), .argument = "DEV",         \
	  .help = "Where the probes arrive, with --device: a device of this machine, because one clock measures both " \
		  "ends" },                                                                                            \
	{ .name = "far-netns", .type = OPT_STRING, .offset = offsetof(FIELDS, far_netns), .argument = "NAME",          \
	  .help = "The network namespace of --far-device" }
#define BENCH_ROUNDS_OPTION(FIELDS, HELP) \
	{ .name = "rounds", .letter = 'n', .type = OPT_UINT, .offset = offsetof(FIELDS, rounds), .argument = "N", \
	  .fallback = "7", .min = 1, .max = 1000, .help = HELP }
#define BENCH_TABLE_OPTIONS(FIELDS)                                                                                    \
	{ .name = "csv", .type = OPT_STRING, .offset = offsetof(FIELDS, csv), .argument = "FILE",                      \
	  .heading = "Results",                                                                                        \
	  .help = "Write the rows to a CSV file" },                                                                    \
	{ .name = "compare", .type = OPT_STRING, .offset = offsetof(FIELDS, compare), .argument = "OLD.json",          \
	  .help = "Show what has changed since an older run, whose --json output this file is" }

/* When a probe goes to the engine, and with which time (the methods of the OMware paper). */
enum bench_method {
	BENCH_OWN, /* as `ktrxer send` does it: half a second ahead */
	BENCH_OIR, /* all at the start */
	BENCH_OFR, /* each a fixed period before its time */
	BENCH_OSM, /* when a sleep of this process ends; no time */
	BENCH_RSM, /* no engine: a raw socket when a sleep ends */
	BENCH_METHODS,
};

struct bench_who {
	char name[BENCH_NAME], engine_name[BENCH_NAME];
	bool engine;              /* else a frozen program */
	const char *socket;       /* "udp-sendto", "raw-sendmmsg"...: of bursts and floods */
	const char *sleep;        /* "usleep", "absolute", "raw-usleep", "txtime": of timed probes */
	bool needs_fq;            /* which keeps its times */
	bool kernel_waits;        /* engines */
	enum bench_method method; /* engines, of timed probes */
	uint64_t ahead_ns;        /* BENCH_OFR: the pre-dispatch period */
	bool realtime;            /* the program runs under SCHED_FIFO; engines set it themselves */
};

enum bench_pattern {
	BENCH_TIMED = 1,    /* probes or trains at exact times */
	BENCH_FLOOD = 2,    /* as many as go, for a time */
	BENCH_TEMPLATE = 3, /* the same from a template; engines only */
};

struct bench_job {
	enum bench_pattern pattern;
	uint32_t payload;
	uint64_t count; /* trains (of one: probes) */
	uint32_t train;
	uint64_t train_gap_ns; /* 0: back to back */
	uint64_t interval_ns;  /* between trains */
	enum bench_method method;
	uint64_t ahead_ns;
	bool kernel_waits;
	uint64_t for_ns;    /* of a flood */
	uint32_t threads;   /* of a template */
	bool trains_matter; /* the engine is opened for rate */
	bool reports;       /* sent_ns is wanted */
};

struct bench_turn {
	struct farend_result far;
	uint64_t sent;                 /* by the sender's own word; UINT64_MAX: it says nothing */
	uint64_t *sent_ns;             /* by number, 0: no report; with job.reports */
	uint64_t driver, wire, queued; /* sources of the last stamp, likewise */
	struct bench_quiet quiet;
};

struct bench_point {
	uint32_t payload;
	uint64_t cross_pps;
	uint64_t gap_ns;
};

struct bench_tally {
	uint64_t rounds;
	int failures;                /* in a row */
	char why[KTRXER_ERROR_TEXT]; /* of the last failure */
};

struct bench_run;

struct bench_kind {
	const char *name;
	bool calls;                        /* wants the driver's calls stamped */
	bool gaps;                         /* runs over --gaps */
	const struct bench_who *baselines; /* an empty name ends them */
	/* Writes the jobs of a sender in one turn, in their order. Returns their number. */
	int (*jobs)(const struct bench_run *run, const struct bench_who *who, const struct bench_point *point,
		    struct bench_job *jobs);
};

struct bench_cross;

struct bench_run {
	struct cli *cli;
	const struct bench_options *o;
	const struct bench_kind *kind;
	struct bench_net net;
	struct ktrxer_path path;
	struct farend *far;
	struct bench_watch *watch;
	struct bench_cross *cross[2]; /* there, and back */
	struct bench_who who[BENCH_WHO];
	int whos;
	uint64_t cross_pps[BENCH_LEVELS], gaps_ns[BENCH_LEVELS], predispatch_ns[BENCH_LEVELS];
	int crosses, gaps, predispatches;
	bool methods[BENCH_METHODS]; /* asked for */
	uint64_t *sent_ns;
	uint32_t slots;
	uint64_t turns, stalled_turns, measured, done, planned;
	char programs[512]; /* where the baselines are */
};

extern const struct bench_kind bench_rate, bench_schedule, bench_methods, bench_pairs, bench_stamps;

int bench_run_kind(struct cli *cli, const struct bench_kind *kind, const struct bench_options *options);

/* bench_turn.c: 0, or a negative errno with a line: this sender cannot do it. */
int bench_turn(struct bench_run *run, const struct bench_who *who, const struct bench_job *job, struct bench_turn *turn,
	       struct ktrxer_error *err);
/* bench_engine.c, bench_baseline.c: sends, until all is sent. */
int bench_send_engine(struct bench_run *run, const struct bench_who *who, const struct bench_job *job, uint16_t port,
		      struct bench_turn *turn, struct ktrxer_error *err);
int bench_send_template(struct bench_run *run, const struct bench_who *who, const struct bench_job *job, uint16_t port,
			struct bench_turn *turn, struct ktrxer_error *err);
struct template;
int bench_frame(struct bench_run *run, struct ktx *tx, struct template *probe, uint16_t port, uint16_t from_port,
		uint32_t payload, struct ktrxer_error *err);
int bench_send_baseline(struct bench_run *run, const struct bench_who *who, const struct bench_job *job, uint16_t port,
			struct bench_turn *turn, struct ktrxer_error *err);
int bench_baselines_find(struct bench_run *run, struct ktrxer_error *err);

/* bench_cross.c: random packets of 100 to 1400 bytes beside the probes, from the sender's host. */
int bench_cross_start(struct bench_run *run, uint64_t pps, struct ktrxer_error *err);
void bench_cross_stop(struct bench_run *run);

#define BENCH_CROSS_PORT 19999

int bench_who_list(struct bench_run *run, struct ktrxer_error *err);
/* bench_plan.c: lists as users type them, "0,12k,24k" and "0,10us,1ms". */
int bench_methods_parse(struct bench_run *run, struct ktrxer_error *err);
int bench_list_parse(uint64_t *values, int *count, const char *text, bool durations, const char *option,
		     struct ktrxer_error *err);

/* bench_sample.c: one sample a turn. NULL: the run was stopped. */
struct json *bench_sample(struct cli *cli, const char *kind);
void bench_sample_job(struct json *json, const struct bench_job *job, const struct bench_turn *turn);

#endif
