/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The map finds the probe of a transmit stamp. The kernel numbers the datagrams of a socket (OPT_ID, 32 bits, wraps)
 * and a stamp carries that number. Whether a refused datagram used one up depends on where it was refused: AF_PACKET
 * and raw sockets number the buffer before it reaches the queue (so ENOBUFS from the queue uses a number, EMSGSIZE and
 * EAGAIN do not), UDP gives it back on some errors in newer kernels. A program cannot find out, so after a refusal the
 * map holds several hypotheses:
 *
 *     number of probe n  =  first number + n + shift(n),   shift never falls, and rises by at most 1 with each refusal.
 *
 * Three facts rule hypotheses out: a stamp is never older than the call that sent its probe; a number cannot be that of
 * a probe which was not sent yet; and numbers of one shift are not those of another. While more than one hypothesis is
 * left for a number, ktrxer_stampmap_find() says none: a probe without its stamp is better than a probe with another's.
 * One stamp of the first probe after the refusal usually settles it. Where that one is lost, and a later one does not
 * settle it, ktrxer_stampmap_wants_reset() asks for the sure cure: SOF_TIMESTAMPING_OPT_ID off and on again, which
 * makes the kernel count from 0 (every kernel since 3.17), and ktrxer_stampmap_reset().
 *
 * A refusal without an error code is detected by a number beyond the last probe's or a stamp before its probe; then all
 * that is on its way is given up and the shift is found anew.
 *
 * One thread. Probes of one socket only, in the order in which the kernel took them.
 */
#ifndef KTRXER_LIB_STAMPMAP_H
#define KTRXER_LIB_STAMPMAP_H

#include <ktrxer.h>

enum {
	STAMPMAP_SEGMENTS = 64, /* runs of probes between refusals that are remembered; a power of two */
	STAMPMAP_SPREAD = 1024, /* hypotheses beyond which only a reset helps */
	STAMPMAP_MARKS = 16,
	STAMPMAP_PATIENCE = 16, /* stamps in a row that settle nothing before a reset is asked for */
};

/* A datagram from before a reset may still get its stamp for this long (a queue of a second is a broken device). */
#define STAMPMAP_OLD_NS KTRXER_NS_PER_S

struct stampmap_entry;

struct stampmap_segment { /* probes with no refusal between them: one shift for all, in [low, high] */
	uint64_t first;   /* probe */
	uint32_t low, high;
	uint32_t step; /* refusals between the segment before and this one */
};

struct stampmap {
	struct stampmap_entry *entries;
	uint32_t mask;
	uint32_t base;     /* number of the first datagram since the last reset */
	uint64_t next;     /* probes sent since then */
	uint64_t withheld; /* probes before this one are given up */
	uint64_t last_call_ns;
	struct {
		uint64_t probe, call_ns;
	} marks[STAMPMAP_MARKS]; /* where the numbers were in the last two seconds */
	uint32_t mark;
	uint64_t segment; /* the present one; segments[segment & 63] */
	struct stampmap_segment segments[STAMPMAP_SEGMENTS];
	uint32_t unsettled; /* stamps in a row that settled nothing */
	bool lost;          /* only a reset helps */
	bool was_reset;
	uint64_t reset_ns, old_until_ns;
	uint32_t old_first, old_count; /* numbers that datagrams from before the reset may carry */
	/* for reports and tests */
	uint64_t found, withheld_stamps, contradictions, resets;
};

/*
 * `size`: probes that can wait for their stamp, a power of two. `first_key`: 0 on a socket that has sent nothing.
 * -ENOMEM.
 */
int ktrxer_stampmap_init(struct stampmap *map, uint32_t size, uint32_t first_key);
void ktrxer_stampmap_free(struct stampmap *map);

/* The kernel took a probe; `slot` is the caller's own name for it. call_ns: read before the call. */
void ktrxer_stampmap_sent(struct stampmap *map, uint64_t slot, uint64_t call_ns);

/* A datagram was refused (between the last probe sent and the next one), and it may have used a number up. */
void ktrxer_stampmap_ambiguous(struct stampmap *map);

/*
 * Finds the slot of the probe that a stamp belongs to; false: it is ambiguous, too old, or was never sent. The same
 * stamp may come again (a driver's and a NIC's): it is found again. stamp_ns on CLOCK_MONOTONIC, with an error of at
 * most bound_ns; KTRXER_NEVER where that is not known (a NIC's own clock, a step of CLOCK_REALTIME): then it proves
 * nothing by its time.
 */
bool ktrxer_stampmap_find(struct stampmap *map, uint32_t key, uint64_t stamp_ns, uint32_t bound_ns, uint64_t *slot);

bool ktrxer_stampmap_wants_reset(const struct stampmap *map);
/* OPT_ID was switched off and on; now_ns: read after that. Probes on their way are given up. */
void ktrxer_stampmap_reset(struct stampmap *map, uint64_t now_ns);

#endif
