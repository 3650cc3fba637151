/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The table of operations that every back end of the receiver fills in, one file each. Nothing above it knows a back
 * end's name.
 *
 * rx.c owns the rules and their counts. A back end brings packets with their stamps; it may let through more than the
 * rules ask for (rx.c decides once more), never less. One that applies the rules itself says `decides`, and counts.
 */
#ifndef KTRXER_LIB_RX_H
#define KTRXER_LIB_RX_H

#include "rule_match.h"
#include "rx_preceding.h"

enum {
	KRX_STAMPS_ON_NS = 2 * 1000 * 1000, /* the kernel switches arrival stamps on by deferred work */
	KRX_NOTE = 320,
};

struct krx_backend_state; /* each back end's own */

struct krx_backend_setup {
	const struct krx_options *options;  /* checked, with the defaults filled in */
	const struct ktrxer_device *device; /* NULL: all devices */
	const struct krx_ruleset *rules;
	bool nic; /* the NIC's stamps are on, and rx.c can read its clock */
};

struct krx_backend {
	const char *name;
	uint32_t ops;      /* bit 1 << enum krx_op for each operation that it can carry out */
	const char *no_op; /* why it cannot do the others, and what can: the end of a sentence that names the rule */
	bool before_taps, after_gro;
	enum krx_place place;
	const char *why; /* why `auto` takes it: a sentence */
	bool decides;    /* krx_packet.rule is set by next(), and rule_stats() counts */
	/*
	 * where `nic` is set, next() may give raw_ns on KTRXER_CLOCK_PHC; mono_ns is then when it was there at the
	 * latest
	 */
	bool nic_stamps;

	/* Nothing that arrived before the rules were in force is ever delivered. */
	int (*open)(struct krx_backend_state **state, const struct krx_backend_setup *setup, struct ktrxer_error *err);
	void (*close)(struct krx_backend_state *state);
	int (*fd)(const struct krx_backend_state *state);

	/*
	 * 1 and a packet, all fields but `rule` set, its data valid (and read-only) until the next call; 0
	 * when none is there; or a negative errno. Never blocks.
	 */
	int (*next)(struct krx_backend_state *state, struct krx_packet *packet);

	/* Packets for which there was no room, since open; clock steps. */
	int (*losses)(struct krx_backend_state *state, uint64_t *lost, uint64_t *clock_steps);
	/* NULL: rx.c counts all. Else fills them; unless `decides`, it adds to what rx.c has counted. */
	int (*rule_stats)(struct krx_backend_state *state, struct krx_rule_stats *rules, int count);
	/* NULL, or: before_taps, after_gro, mode, note as they came out here. */
	void (*describe)(const struct krx_backend_state *state, struct krx_stats *stats);
};

/* `auto` tries them in this order; NULL-terminated. */
extern const struct krx_backend *const krx_backend_table[];
extern const struct krx_backend krx_backend_packet, krx_backend_xdp, krx_backend_nft, krx_backend_module,
	krx_backend_module_prerouting;

#endif
