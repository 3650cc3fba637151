/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The interface of all subcommands: the common options, the output of results, and the reasons to stop. */
#ifndef KTRXER_CLI_CLI_H
#define KTRXER_CLI_CLI_H

#include "json.h"
#include "opt.h"
#include "run_delay.h"

#include <stdio.h>

enum verdict { VERDICT_VALID = 0, VERDICT_DEGRADED = 1, VERDICT_INVALID = 2 };

/* Exit status (decision 77). EXIT_DOUBTFUL: a result was printed, and it is degraded or invalid. */
enum { EXIT_VALID = 0, EXIT_NO_RESULT = 1, EXIT_USAGE = 2, EXIT_DOUBTFUL = 3 };

struct cli_common {
	bool json, jsonl, quiet, stop_on_eof;
	uint64_t start_at_real_ns; /* 0: at once */
};

struct out;
struct host_watch;
struct verdict_builder;
struct figure_bounds;

struct cli {
	const struct command *command;
	struct cli_common common;
	int argc;
	char *const *argv; /* the whole command line, for the records */
	struct out *out;
	int stop_fd; /* readable once asked to stop: SIGINT, SIGTERM, end of input; never read from it */
	struct host_watch *host;
	struct run_delay run_delay;
	struct verdict_builder *builder;
	struct figure_bounds *bounds; /* bounds.h; NULL: no headline figure */
	bool no_result;               /* the command ended with complaints alone */
	bool no_figure;               /* no answer came, or there is no estimate: the exit status is EXIT_NO_RESULT */
#ifndef KTRXER_SMALL
	const char *part;   /* a second measurement of the same command, see cli_part_open(); NULL: the command's own */
	struct cli *second; /* of a command: its part that has ended, see out_part_finish() */
	struct json *part_end;
#endif
};

/*
 * The threads of output, of --stop-on-eof and of the host's load. They are started before each command but those that
 * serve: these start them after they have given up their privileges, because a thread keeps the capabilities that it
 * was started with. 0 or a negative errno.
 */
int cli_helpers_start(struct cli *cli);
/*
 * Nonzero once asked to stop: the signal's number (SIGPIPE: the output cannot be written), or -1 for end of input.
 * A second SIGINT or SIGTERM kills at once.
 */
int cli_stopped(const struct cli *cli);
/*
 * A line on standard error: "ktrxer send: TEXT". When the command then ends without out_finish(), it is a reason in its
 * end object.
 */
void cli_complain(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * The same, with the negative errno of the failure: it gives the reason its identifier (`errors` in
 * contract/reasons.toml).
 */
void cli_complain_code(const struct cli *cli, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * The complaint of `err`, and the exit status: EXIT_USAGE for -EINVAL and -ENOKEY (no token was given), else
 * EXIT_NO_RESULT.
 */
int cli_fail(const struct cli *cli, const struct ktrxer_error *err);
/* The same with advice for people after "; ". The reason in the end object does not contain it. */
int cli_fail_advice(const struct cli *cli, const struct ktrxer_error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * When to begin, on CLOCK_MONOTONIC: at once, or for --start-at by waiting until 50 ms before it. 0, a positive number
 * when asked to stop meanwhile, or a negative errno after a complaint (more than a day ahead: probably not in
 * nanoseconds). A start that has passed is now, and degrades the verdict.
 */
int cli_wait_start(struct cli *cli, uint64_t *start_ns);
/* The same, with a longer time to get ready before the start. */
int cli_wait_start_ahead(struct cli *cli, uint32_t ahead_ms, uint64_t *start_ns);
/*
 * Sleeps from there until start_ns, for a command whose method has no start time of its own. Ends early when asked to
 * stop.
 */
void cli_sleep_until(const struct cli *cli, uint64_t start_ns);

/*
 * HOST, an address or a name, to an address of that family; `from` (family 0: not given) must be of the same one.
 * Negative errno with one line. May block as long as the resolver does.
 */
int cli_resolve(const char *host, const struct ktrxer_addr *from, bool v4, bool v6, struct ktrxer_addr *addr,
		struct ktrxer_error *err);
/* The same for up to `max` addresses of a name, in the order of the resolver (RFC 6724). Returns their number. */
int cli_resolve_all(const char *host, const struct ktrxer_addr *from, bool v4, bool v6, struct ktrxer_addr *addrs,
		    int max, struct ktrxer_error *err);
/*
 * Above 10 kpps, or without a rate (!rate->num), an address that is not local use needs --flood: -EPERM and what to
 * do.
 */
int cli_guard_rate(const struct ktrxer_addr *to, const struct opt_rate *rate, bool flood, struct ktrxer_error *err);

/*
 * Results. In --jsonl mode one `start` object, then `sample` and `event` objects, then one `end`; in --json mode only
 * the end object, pretty; otherwise text for people. Objects pass through a bounded queue and a writer thread: a slow
 * reader never delays a probe. Objects without room are counted and degrade the verdict. Only the end may block, and
 * after 2 s without a byte taken it gives up. Any thread may call these; one object is filled by one thread.
 */
/* NULL when samples are not wanted; else fill, then out_put. */
struct json *out_sample(struct cli *cli, const char *kind);
struct json *out_event(struct cli *cli, const char *name); /* likewise; carries its time_ns already */
void out_put(struct cli *cli, struct json *object);
/* About so many samples of usual size would find room now: for a caller that has many at once, and can wait. */
uint32_t out_room(const struct cli *cli);
bool out_wants_samples(const struct cli *cli);
/*
 * A line for people on standard output, its newline added; nothing under --json, --jsonl or --quiet. Through the same
 * queue; up to 1 KiB, control characters become '?'.
 */
void out_text(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Beside losses up, for protocols without a field for them. */
#define CLI_FAR_SOCKET "lost up by the path or the server's socket: lost_in_socket in its end object"

/* A rate with its unit; "no limit" for one that no link has. `text`: KTRXER_UNITS_TEXT bytes (units.h). */
const char *out_rate(char *text, double bit_s);

/*
 * Adds a reason; the verdict is the worst reported so far. For the functions that contract/reasons.py makes, which
 * check the arguments. `form`: identifier, cause and sentence, each ended by NUL; {tNAME} in the sentence is a const
 * char *, {uNAME} a uint64_t, {nNAME} an int64_t in nanoseconds, {fNAME} a double, {rNAME} a double in bit/s.
 */
void reason_add(struct cli *cli, enum verdict verdict, const char *form, ...);
enum verdict verdict_now(const struct cli *cli);
/* enum ktx_sent_source, as results name it. */
extern const char *const sent_source_names[];
/* A probe is late from a tenth of the interval on, 100 us at least. */
uint64_t verdict_late_ns(uint64_t interval_ns);
/* Adds a reason if the accounts do not close. */
void verdict_accounts(struct cli *cli, const struct ktx_accounts *accounts);
/*
 * Judges the accounts, and whether any probe left. The error bounds (bounds.h) judge those that did not. Call it after
 * ktx_drain().
 */
void verdict_probes(struct cli *cli, const struct ktx_accounts *accounts);
/* The same for a command without bounds: more than 1 % of the packets that did not leave are a reason. */
void verdict_packets(struct cli *cli, const struct ktx_accounts *accounts);
/* Probes without a stamp of the driver, which stamped others: they may not have left. `answered` of them have. */
uint64_t verdict_unseen(const struct ktx_accounts *accounts, uint64_t answered);
/* Why the kernel did not take a packet, as a clause. */
const char *verdict_send_error(int error, char *text, size_t size);
/* The failure of the last probe that could not be sent, as a clause. */
const char *verdict_last_error(const struct ktx_accounts *accounts, char *text, size_t size);
/* Adds a reason if the engine bypasses a qdisc that shapes. `other`: the engine that passes the qdisc. */
void verdict_bypass(struct cli *cli, const struct ktx_info *info, const struct ktrxer_qdiscs *qdiscs,
		    const char *other);
/* "late" and "late_after_us": the count, and the threshold that it was made with (0: null). */
void json_late(struct json *json, uint64_t late, uint64_t late_ns);
/*
 * The end: `object` (from out_end, never NULL; filled by the command with its accounts) gets verdict and reasons, is
 * written, and the exit status is returned. Once; without it a measuring command ends as invalid, with its complaints
 * as reasons.
 */
struct json *out_end(struct cli *cli);
int out_finish(struct cli *cli, struct json *object);

#ifndef KTRXER_SMALL
/*
 * A second measurement in the same process, with a verdict of its own. Its objects have the name of the part in `of`,
 * its lines of text begin with it, and its end object comes before that of the command. 0 or -ENOMEM.
 */
int cli_part_open(struct cli *part, const struct cli *command, const char *name);
void cli_part_close(struct cli *part);
/* NULL: no memory. */
struct json *out_part_end(struct cli *part);
/* out_finish() of the command will write the part's end first, and judge the host for both. */
void out_part_finish(struct cli *command, struct cli *part, struct json *end);
#endif

/* "target", "to", "from", "device": what a client measures, and from where. */
void json_target(struct json *json, const char *host, const struct ktrxer_path *path);

/* {"min":…,"p50":…,"iqr":…,"p95":…,"p99":…,"max":…} in microseconds with three decimals; nulls when empty. */
void json_hist_us(struct json *json, const char *key, const struct ktrxer_hist *hist);

/* "min 1 ms, p50 2 ms (quantiles +- 0.1 %)": the figures of `which`, with the resolution of the histogram. */
enum { HIST_TEXT = 192, HIST_IQR = 1 << 2, HIST_P95 = 1 << 3, HIST_MIN = 1, HIST_TAIL = 1 << 1 | 1 << 4 | 1 << 5 };
const char *hist_text(char text[HIST_TEXT], const struct ktrxer_hist *hist, unsigned int which);

/* The whole command: main() with a table of commands (NULL-terminated, in the order of the alphabet). */
int cli_main(int argc, char *const argv[], const struct command *const *commands);
/* The common options of a command, as further tables for its help. The bases are NULL. */
const struct opt_set *cli_common_sets(const struct command *command);

#endif
