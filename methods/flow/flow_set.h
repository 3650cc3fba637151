/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Flows, at the one end or the other: each begins at its time, moves bytes, is sampled with all the others on one grid
 * of absolute times, and ends. Client and server hold the same set with the roles exchanged; what a flow does depends
 * on which end sends, and on nothing else. All of it happens in the loop of loop.h.
 *
 * A sample is taken of every flow that runs whenever the grid says so, however much or little it has moved.
 */
#ifndef KTRXER_METHODS_FLOW_SET_H
#define KTRXER_METHODS_FLOW_SET_H

#include "flow_spec.h"
#include "loop.h"

enum {
	KTRXER_FLOW_SETTLE_S = 2,       /* a receiver whose time is over waits for the sender's end */
	KTRXER_FLOW_REPORTED_MS = 1000, /* and after the sender said that it has ended, for what is on its way */
	/* one that was cut off waits for the sender's word on that, while the control connection lives */
	KTRXER_FLOW_WORD_S = 5,
};

enum flow_state {
	FLOW_IDLE = 0, /* nothing connects it yet */
	FLOW_ATTACHED, /* connected, waits for its start */
	FLOW_GOING,
	FLOW_SETTLING, /* nothing is sent any more; the last packets arrive */
	/* a receiver's connection ended before its time: the sender's word is awaited, whether that was the plan */
	FLOW_CUT,
	FLOW_OVER,
};

struct flow_set;
struct path_witness;
struct flow_udp;
struct flow;

/* The differences between TCP and UDP. NULL where nothing is to be done. */
struct flow_ops {
	/* Takes a connected socket; `pace_bps` 0: none. NULL: this kind opens its own. 0 or a negative errno. */
	int (*attach)(struct flow *flow, int fd, uint64_t pace_bps);
	/* With a socket, before its start, and again at its start. */
	void (*begin)(struct flow *flow);
	void (*sample)(struct flow *flow, struct flow_sample *sample);
	/* When it is to end, at the earliest; later than now: not yet. NULL: at its end_ns. */
	uint64_t (*end_ns)(struct flow *flow, uint64_t now_ns);
	void (*stop)(struct flow *flow); /* nothing more is sent */
	/* receiver: when its time was over, or its last data came; 0, or NULL: now */
	uint64_t (*last_ns)(const struct flow *flow);
	void (*reported)(struct flow *flow, const struct flow_end *end); /* receiver: the sender has ended */
	void (*account)(struct flow *flow,
			struct flow_end *end); /* sender: its own accounts, before it is closed; NULL: none */
	int (*error)(const struct flow *flow); /* the network's answer; 0: none */
	void (*settle)(
		struct
		flow *flow); /* receives and forgets, until the other end closes; NULL: there is nothing to wait for */
	void (*close)(struct flow *flow, bool gently); /* in order, or at once, with what is still unsent */
	void (*free)(struct flow *flow);
};

struct flow {
	struct loop_source source; /* first */
	struct flow_set *set;
	const struct flow_ops *ops;
	struct flow_udp *udp;
	struct flow_spec spec;
	uint32_t index;
	bool sends;
	uint8_t state;             /* enum flow_state */
	uint8_t reported;          /* enum flow_reason: the other end's word, once it came */
	int cut_error;             /* errno's; 0: it was closed in order */
	uint64_t start_ns, end_ns; /* end_ns KTRXER_NEVER: by its bytes */
	uint64_t grid_ns;          /* the last time of the grid that it was sampled for */
	uint64_t sampled_ns;       /* time of its last sample; 0: there is none yet */
	struct loop_timer begin;   /* of a slow TCP sender: when it may hand over more of its first bytes */
	uint64_t pace_bps;         /* of a TCP sender; 0: none */
	bool begins;               /* `begin` is in use */
	uint64_t bytes;            /* handed to the kernel, or read */
	uint64_t acked_base;       /* the kernel's count at the beginning */
	uint64_t settle_ns;        /* settling, or waiting for that word, ends then at the latest */
	struct flow_end end;
	uint32_t missed;
	uint64_t stamped_ns; /* when the last stamp for the path was requested; 0: never (flow_witness.h) */
	uint32_t stamp_key;  /* of the last one that arrived */
	bool stamp_seen, stamp_due, unwatched;
	uint64_t began_ns, began_waited_ns; /* run delay of the thread at that time; UINT64_MAX: not known */
};

struct flow_set_options {
	struct loop *loop;
	uint32_t flows; /* how many there will be */
	bool server;
	uint64_t for_ns; /* of each; 0: none */
	uint64_t bytes;  /* of each; 0: none */
	uint64_t sample_ns;
	uint64_t pace_bps; /* of all TCP flows of one direction; 0: none */
	void (*sample)(void *context, uint32_t flow, const struct flow_sample *sample);
	void (*ended)(void *context, uint32_t flow, const struct flow_end *end); /* after its last sample */
	void (*tick)(void *context, uint64_t at_ns); /* after all samples of one time; NULL: nothing */
	void (*turned)(void *context);               /* after all that was due at one time; NULL: nothing */
	/* FLOW_TRAIN needs it. */
	void (*packet)(void *context, uint32_t flow, const struct flow_packet *packet);
	struct path_witness *witness; /* of a client; NULL: none */
	void *context;
};

/* The context may free the set in none of its calls. */
int flow_set_new(struct flow_set **set, const struct flow_set_options *options);
void flow_set_free(struct flow_set *set);

/* The next one; `ops` of flow_tcp.h or flow_udp.h. */
int flow_set_add(struct flow_set *set, const struct flow_ops *ops, const struct flow_spec *spec);
uint32_t flow_set_count(const struct flow_set *set);
const struct flow *flow_set_at(const struct flow_set *set, uint32_t index);

/*
 * A connected socket for it, which becomes the set's; `acked_base` what the kernel had counted as acknowledged before
 * the first byte of the flow. Congestion control, DSCP and pacing are set here. 0, or a negative errno: then it stays
 * the caller's.
 */
int flow_set_attach(struct flow_set *set, uint32_t index, int fd, uint64_t acked_base);
/* A UDP flow whose end here is open, and whose other end is known. */
void flow_set_attach_udp(struct flow_set *set, uint32_t index);
bool flow_set_attached(const struct flow_set *set); /* all */

void flow_set_start(struct flow_set *set, uint64_t at_ns);
void flow_set_stop(struct flow_set *set);
/* The same in the turns of the loop, in shares: for sets that have started, and whose size a peer has chosen. */
void flow_set_stop_soon(struct flow_set *set);
/* Closes all flows in turns of the loop, without a call of the context. flow_set_free() may follow at any time. */
void flow_set_close(struct flow_set *set);
bool flow_set_closed(const struct flow_set *set); /* it has */
struct flow_set_cut {
	uint64_t bytes[2], packets[2]; /* [0] received, [1] sent; packets of UDP */
};
/* Call it after flow_set_close(): closes the remaining flows. Returns their counts. */
const struct flow_set_cut *flow_set_close_now(struct flow_set *set);
/* All have ended. */
bool flow_set_over(const struct flow_set *set);
/* The other end has reported its end: the open parts here close soon. */
void flow_set_reported(struct flow_set *set, uint32_t index, const struct flow_end *end);

/* A sample of it was lost on the way out. */
void flow_set_missed(struct flow_set *set, uint32_t index);

/* Operations call this when a flow has ended by itself. */
void flow_finish(struct flow *flow, enum flow_reason reason, int error);
/*
 * The connection of a receiver whose time is not over has ended. A sender resets its connection at its end time and
 * drops what it has not sent yet. Its clock is known with an uncertainty, and its report on the control connection may
 * come after the reset. A sender that dies reports nothing.
 */
void flow_cut(struct flow *flow, int error);
const struct flow_set_options *flow_set_options(const struct flow_set *set);
struct flow *flow_set_flow(struct flow_set *set, uint32_t index);
/* Bytes that nothing compresses, to send. */
enum { FLOW_BLOCK = 128 << 10 };
const uint8_t *flow_set_block(struct flow_set *set);
/* Returns the turns of one flow before the others get theirs. */
int flow_set_rounds(const struct flow_set *set);

#endif
