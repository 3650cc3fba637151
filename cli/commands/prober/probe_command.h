/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Options and output that the commands `ping` and `stamp` have in common. The measurement is in methods/probe. */
#ifndef KTRXER_CLI_PROBE_COMMAND_H
#define KTRXER_CLI_PROBE_COMMAND_H

#include "bounds.h"
#include "cli.h"
#include "path_report.h"
#include "prober.h"
#include "shared_options.h"

struct probe_options {
	const char *host, *device, *engine;
	struct ktrxer_addr from;
	uint64_t count, for_ns, interval_ns, timeout_ns, overtaken_ns, payload, port, ttl, tolerance;
	int64_t cpu;
	int model; /* enum probe_model */
	bool precise, v4, v6, flood, brief;
};

/*
 * The rows "How" of an option table; FIELD(name) is the offset of a member of the probe_options in the command's own.
 */
#define PROBE_HOW_OPTIONS(FIELD)                                                                                       \
	OPTION_PRECISE(FIELD(precise), OPT_FLAG, "", "", "How"),                                                       \
	{ .name = "brief", .type = OPT_FLAG, .offset = FIELD(brief),                                                   \
	  .help = "Samples of --jsonl with their number and times alone, many in one object: what a collector "        \
		  "needs" },                                                                                           \
	OPTIONS_FAMILY(FIELD(v4), FIELD(v6)), OPTION_FROM(FIELD(from), ""),                                            \
	OPTION_DEVICE_OF_ROUTE(FIELD(device), "", NULL), OPTION_ENGINE_OF_STACK(FIELD(engine), ""),                    \
	OPTION_CPU(FIELD(cpu), "waiting thread of --precise"),                                                         \
	OPTION_TOLERANCE(FIELD(tolerance)) OPTION_FLOOD(FIELD(flood), "probes a second")

/*
 * probe_options.c. HOST is resolved once, and the rate of `each` probes at a time is allowed for the address that was
 * found.
 */
int probe_spec_make(struct probe_spec *spec, const struct probe_options *options, uint32_t each,
		    struct ktrxer_error *err);
/* Each answer gets a line of text. */
static inline bool probe_is_talkative(const struct probe_options *o)
{
	return o->interval_ns >= 200 * (uint64_t)KTRXER_NS_PER_MS;
}

/*
 * Under --brief the round trips of many probes are printed together, a column for each of these fields: a line for each
 * would cost its reader more than the probe.
 */
enum { PROBE_BATCH = 64, PROBE_COLUMNS = 16 };
struct probe_batch {
	uint32_t count;
	uint64_t since_ns;
	const char *const *columns; /* names */
	int column_count;
	int64_t values[PROBE_COLUMNS][PROBE_BATCH];
};

/* Output of a command while its probes run. First member of the command's struct, which is the context of its calls. */
struct probe_report {
	struct cli *cli;
	const struct probe_options *o;
	const struct prober *prober;
	uint32_t each;           /* probes at each send time */
	uint64_t network_errors; /* printed or counted so far */
	struct probe_batch batch;
};

/* probe_report.c. The calls of a client whose context is a probe_report. */
extern const struct probe_events probe_report_events;
/* Waits for the time to start: 0 or a negative errno, after a complaint. *start_ns is for prober_run(). */
int probe_wait_start(struct probe_report *report, uint64_t *start_ns);
/*
 * A round trip under --brief: one value for each of the columns. It is printed soon; probe_batch_flush() prints the
 * rest.
 */
void probe_batch_add(struct probe_report *report, const int64_t *values);
void probe_batch_flush(struct probe_report *report);
/* The arguments of path_report.h. */
struct path_report probe_path(const struct probe_report *report);
/* Judges the accounts and an early end. */
void probe_judge(const struct probe_report *report, uint64_t received);
/* Answers after the time-out; or none at all, with `where` (a port) and `why` added to the sentence. */
void probe_judge_answers(const struct probe_report *report, uint64_t sent, uint64_t received, uint64_t too_late,
			 const char *where, const char *why);
/* The parts of the error bounds that the prober knows; and its judgement of an engine that bypasses a shaper. */
struct bound_parts probe_bound_parts(const struct probe_report *report, uint64_t received);
/* Returns the qdisc that shapes, else the root. */
const char *probe_own_qdisc(const struct probe_report *report);
void probe_own_queue_json(const struct probe_report *report, struct json *end);
void probe_accounts_json(const struct probe_report *report, struct json *end, uint64_t sent, uint64_t received);
/* The sources of the time stamps at both ends of the round trips; the object `stamps` is open, and is left so. */
void probe_stamps_json(const struct probe_report *report, struct json *end);
/* `tos`: of the probes; below 0: they have several. */
void probe_stream_json(const struct probe_report *report, struct json *end, int tos);
void probe_errors_json(const struct probe_report *report, struct json *end);
void probe_unsent_text(const struct probe_report *report);
/* "N lost (N.N %), N answered after the time-out", into `text`. */
enum { PROBE_LOST_TEXT = 96 };
const char *probe_lost_text(char text[PROBE_LOST_TEXT], uint64_t sent, uint64_t lost, uint64_t too_late);
/* The round trips of a summary line: with losses they are of the answered probes alone. */
const char *probe_trip_text(uint64_t lost);

#endif
