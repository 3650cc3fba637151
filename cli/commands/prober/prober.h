/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `ping` and `stamp` have in common: probes on a schedule to one host, and answers that come in beside. */
#ifndef KTRXER_CLI_PROBER_H
#define KTRXER_CLI_PROBER_H

#include "cli.h"
#include "reply_receiver.h"
#include "template.h"

struct prober_options {
	const char *host, *device, *engine;
	struct ktrxer_addr from;
	uint64_t count, for_ns, interval_ns;
	int64_t cpu;
	int model; /* enum probe_model */
	bool precise, v4, v6, flood, brief;
};

extern const char *const prober_engines[];

/* Nothing that came in is left unseen for longer than about this. Well below KTX_STAMP_WAIT_NS. */
enum { PROBER_SLOTS_MAX = 2048, PROBER_SLOTS_BYTES = 4 << 20 };
#define PROBER_LOOK_NS (50 * (uint64_t)KTRXER_NS_PER_MS)
enum { PROBER_LOOK_PROBES = 8 }; /* or for so many: a socket's buffer holds hundreds */

/* The rows "How" of an option table; FIELD(name) is the offset of a member of the prober_options in the command's own. */
#define PROBER_HOW_OPTIONS(FIELD) \
	{ .name = "precise", .type = OPT_FLAG, .offset = FIELD(precise), .heading = "How", \
	  .help = "Spin before each send time: microseconds late at most, for a share of a processor" }, \
	{ .name = "brief", .type = OPT_FLAG, .offset = FIELD(brief), \
	  .help = "Samples of --jsonl with their number and times alone, many in one object: what a collector needs" }, \
	{ .name = "ipv4", .letter = '4', .type = OPT_FLAG, .offset = FIELD(v4), .help = "IPv4 only" }, \
	{ .name = "ipv6", .letter = '6', .type = OPT_FLAG, .offset = FIELD(v6), .help = "IPv6 only" }, \
	{ .name = "from", .type = OPT_ADDRESS, .offset = FIELD(from), .argument = "IP", .help = "Source address; by default the route's" }, \
	{ .name = "device", .letter = 'd', .type = OPT_STRING, .offset = FIELD(device), .argument = "DEV", \
	  .help = "Network device; by default the route's" }, \
	{ .name = "engine", .letter = 'e', .type = OPT_STRING, .offset = FIELD(engine), .argument = "E", .fallback = "udp", \
	  .choices = prober_engines, .help = "Engine: udp (the host's sockets, no privilege), raw, packet, or auto" }, \
	{ .name = "cpu", .type = OPT_INT, .offset = FIELD(cpu), .argument = "N", .fallback = "-1", .min = (uint64_t)-1, .max = 4095, \
	  .help = "Processor of the waiting thread of --precise; -1: any" }, \
	{ .name = "flood", .type = OPT_FLAG, .offset = FIELD(flood), \
	  .help = "Allow more than 10,000 probes a second to an address that is not private, link-local or loopback" }

/* What the command adds to the loop; `run` is the command's own. */
struct prober_work {
	bool (*commit)(void *run, uint64_t at_ns);  /* the probes of number `next`; false: no room for all now, or a failure */
	void (*take)(void *run);                    /* reports, answers, losses */
	bool (*ended)(void *run);                   /* every committed probe has been accounted for */
	uint64_t (*next_loss)(void *run);           /* when the next probe is given up; KTRXER_NEVER */
};

/* Under --brief round trips are told many at a time, a column for each of these fields: a line for each would cost its reader more than the probe. */
enum { PROBER_BATCH = 64, PROBER_COLUMNS = 9 };
#define PROBER_BATCH_NS (200 * (uint64_t)KTRXER_NS_PER_MS)
struct prober_batch {
	uint32_t count;
	uint64_t since_ns;
	int64_t values[PROBER_COLUMNS][PROBER_BATCH];
};

struct prober {
	struct cli *cli;
	const struct prober_options *o;
	const struct prober_work *work;
	void *run;
	struct ktrxer_path path;
	struct ktx *tx;
	struct ktx_info info;
	struct template frame;     /* all but what changes from probe to probe */
	struct ktrxer_schedule *schedule;
	struct reply_receiver receiver;
	uint16_t id;               /* ICMP identifier or UDP source port */
	uint8_t seed[16];          /* random: of the schedule, and whatever else must not be guessed */
	uint64_t wanted, next;     /* times at which probes are due */
	uint32_t each, part;       /* probes at each of them, and how many of the next are committed already */
	uint64_t start_ns, end_ns;
	uint64_t ahead_ns;         /* probes are committed so long before their time */
	uint64_t committed_ns, fresh_ns; /* when the last of them leaves, and the first of those committed just now */
	uint64_t network_errors, contradictions, unstamped; /* unstamped: round trips without the stamp of their send time */
	struct ktrxer_qdiscs qdiscs; /* of the device, when the probes began */
	uint64_t arrivals[5];      /* round trips, by the enum ktrxer_stamp_source of their answer */
	bool talkative;            /* a line for each answer */
	bool unhurried;            /* what comes in is looked at when a later probe leaves, if that is soon: the kernel has stamped it */
	bool blind;                /* nothing but time has ended the last sleep */
	uint64_t looked_ns, looked; /* when that was last done, and `next` then */
	const char *const *columns; /* names of a batch's, NULL at the end */
	struct prober_batch batch;
	int failure;
	char failure_text[KTRXER_ERROR_TEXT];
};

/* The first failure is the one that is told. */
void prober_fail(struct prober *p, int rc, const char *text);

/* Planning, in this order. The host: resolved once, and the rate allowed for what was found. */
int prober_resolve(struct prober *p, struct ktrxer_error *err);
/* The path to the host, and the engine with room for `slots` frames of `frame_size` bytes. */
int prober_open(struct prober *p, uint32_t slots, uint32_t frame_size, struct ktrxer_error *err);
/* An identifier that is ours alone, for which make() builds p->frame. */
int prober_identify(struct prober *p, int (*make)(void *run, struct ktrxer_error *err), struct ktrxer_error *err);
/* The schedule is tried, so that what is wrong with it is told before anything starts. */
int prober_try_schedule(struct prober *p, struct ktrxer_error *err);
/* From start_ns on. */
int prober_schedule(struct prober *p, struct ktrxer_error *err);

/* Waits for the time to start and begins the schedule. False: the command ends with EXIT_BAD, and has said why. */
bool prober_begin(struct prober *p);
/* Until all probes have ended, or it is stopped (true), or something failed. */
bool prober_loop(struct prober *p);
/* One round: pumps, takes in. Returns the time at which the engine must be pumped again. */
uint64_t prober_take(struct prober *p);
/*
 * After `n` of `room` reports: read again? Reading an empty queue arms the wake-up for the next report. A thread that
 * pumps itself needs no wake-up, so it reads again only after a full batch.
 */
static inline bool prober_more(const struct prober *p, int n, int room)
{
	return p->o->precise ? n > 0 : n == room;
}
/* Until then, or something comes in that is worth a wake-up. */
void prober_sleep(struct prober *p, uint64_t until);
/* A probe without an answer: a line, a sample. `which` of those at one time. */
void prober_say_lost(struct prober *p, uint64_t number, uint32_t which);
/* A round trip under --brief: one value for each of `columns`. Told soon; what is left, at the end. */
void prober_batch_add(struct prober *p, const int64_t *values);
void prober_batch_tell(struct prober *p);
/* Does this round trip count in the times? One that does not is counted, and told by prober_judge_times(). */
bool prober_is_timed(struct prober *p, int64_t rtt_ns, uint8_t sent_source);
/* For the verdict: round trips without times, and an engine that bypasses a shaper. */
void prober_judge_times(const struct prober *p, uint64_t received);
/* The qdisc that holds the host's own queue: the one that shapes, else the root. */
const char *prober_own_qdisc(const struct prober *p);
/* This qdisc, and the wait in it. */
void prober_own_queue_json(const struct prober *p, struct json *end, const struct ktrxer_hist *own_queue);
/* The accounts, with what was asked for and never committed as cancelled. */
void prober_accounts(const struct prober *p, struct ktx_accounts *accounts);
/* As they stand in the result, with the session's own counts of what was sent and answered. */
void prober_accounts_json(struct json *end, const struct ktx_accounts *accounts, uint64_t sent, uint64_t received);
/* The sources of the time stamps at both ends of the round trips; the object `stamps` is open, and is left so. */
void prober_stamps_json(const struct prober *p, struct json *end, const struct ktx_accounts *accounts);
void prober_close(struct prober *p);

#endif
