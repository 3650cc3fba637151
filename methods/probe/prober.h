/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The common part of ping and STAMP client: probes that leave on a schedule to one host, answers that arrive beside
 * them, one event loop. A client fills in a specification, opens the prober, and runs it; the figures that both have
 * are in struct probe_result.
 */
#ifndef KTRXER_METHODS_PROBER_H
#define KTRXER_METHODS_PROBER_H

#include "loop.h"
#include "path_witness.h"
#include "reply_receiver.h"
#include "template.h"

struct probe_spec {
	struct ktrxer_addr to, from; /* from.family 0: the address of the route */
	const char *device, *engine; /* device NULL: the device of the route */
	uint64_t count;              /* send times; 0: no limit */
	uint64_t for_ns;             /* 0: no limit */
	uint64_t interval_ns;        /* mean time between send times */
	uint64_t timeout_ns;         /* a probe without an answer for so long is lost */
	/*
	 * A probe is lost before its time-out when a probe that was sent so much later has its answer: a queue of
	 * seconds keeps the order of the probes. 0: only after the time-out (RFC 6673, 5.4).
	 */
	uint64_t overtaken_ns;
	uint64_t late_ns; /* a probe is late if it leaves later than this after its scheduled time */
	bool poisson;     /* exponential intervals */
	bool precise;     /* spin before each send time */
	int cpu;          /* of the spinning thread; -1: any */
	uint16_t port;    /* of the responder, for UDP */
	uint8_t ttl;
	uint32_t payload; /* bytes; 0: the smallest */
};

/* The calls that a client adds to the prober; `client` is the client's own. */
struct prober_client {
	bool (*commit)(
		void *client,
		uint64_t at_ns);     /* the probes of number `next`; false: no room for all of them now, or a failure */
	void (*take)(void *client);  /* reports, answers, losses */
	bool (*ended)(void *client); /* each committed probe has been accounted for */
	uint64_t (*next_loss)(void *client); /* when the next probe is given up; KTRXER_NEVER */
};

/* Calls while the prober runs. `context` is that of prober_run(). tick and network_error may be NULL. */
struct probe_events {
	void (*lost)(void *context, uint64_t number, uint32_t which); /* which: of the probes at one send time */
	void (*network_error)(void *context, const struct ktx_network_error *error); /* an ICMP error about a probe */
	void (*tick)(void *context); /* after each look at what has arrived */
	void *context;
};

struct probe_result {
	struct ktx_accounts accounts; /* of probes; those that were requested and never committed are cancelled */
	uint64_t wanted;              /* send times; UINT64_MAX: no limit */
	uint64_t committed;           /* send times of which each probe was committed */
	uint64_t arrivals[5];         /* round trips, by the enum ktrxer_stamp_source of their answer */
	uint64_t user_sent;           /* round trips without a send stamp of the kernel */
	uint64_t network_errors;
	uint64_t contradictions; /* round trips left out of the times: an answer before its probe */
	uint64_t impossible; /* the same: the reflector claims to have sent the answer before it received the probe */
	/* round trips left out of the times: the stamp of the send time or of the answer is missing */
	uint64_t unstamped;
	uint64_t socket_drops,
		receiver_drops; /* packets lost in this host's receive socket or receiver: loss is overstated */
	struct ktrxer_hist *rtt, *own_queue; /* ns; own_queue: the wait in the packet scheduler of this host */
	struct ktrxer_hist *lateness;        /* ns; NULL before the end */
	struct ktrxer_qdiscs qdiscs;         /* of the device, when the probes began */
	struct path_witness path;            /* after the end */
	bool stopped;                        /* by stop_fd, before all probes had ended */
	struct ktrxer_error failure;         /* code 0: none; the first one */
};

struct prober {
	struct probe_spec spec;
	const struct prober_client *work;
	void *client;
	struct probe_events events;
	struct ktrxer_path path;
	struct ktx *tx;
	struct ktx_info info;
	struct template frame; /* all but what changes from probe to probe */
	struct ktrxer_schedule *schedule;
	struct reply_receiver receiver;
	uint16_t id;         /* ICMP identifier or UDP source port */
	uint8_t seed[16];    /* random: of the schedule, and of all else that must be hard to guess */
	uint32_t each, part; /* probes at each send time, and how many of the next are committed already */
	uint64_t start_ns, end_ns;
	uint64_t ahead_ns;               /* probes are committed so long before their time */
	uint64_t committed_ns, fresh_ns; /* when the last of them leaves, and the first of those committed just now */
	struct ktrxer_deadline due;
	bool have_due;
	/* answers are read when a later probe leaves, if that is soon: the kernel has stamped them */
	bool unhurried;
	bool blind;                 /* nothing but time has ended the last sleep */
	uint64_t looked_ns, looked; /* time of the last look, and `committed` then */
	uint64_t exact_ns; /* the send time that ends the present sleep; KTRXER_NEVER: another reason ends it */
	uint64_t wake_ns;  /* the end of the present sleep; 0: not by time */
	bool sends;        /* this round sends, and a later one takes what has arrived */
	uint64_t margin_ns, margin_max_ns; /* a sleep ends so long before exact_ns, then the thread spins */
	struct loop *loop;
	struct loop_timer timer;
	struct loop_source events_source, reply_source;
	uint64_t (*step)(struct prober *p);
	bool done;
	struct prober *leader; /* in its loop this prober runs; most often itself */
#ifndef KTRXER_SMALL
	struct prober *beside; /* a prober that runs in the loop of this one; NULL: none. See prober_join() */
	uint32_t turn;         /* of the order of both */
#endif
	struct probe_result result;
};

/* Opening, in this order. `each`: probes at each send time. -EINVAL: the specification is wrong. */
int prober_begin(struct prober *p, const struct probe_spec *spec, uint32_t each, struct ktrxer_error *err);
/* The path, and the engine with room for `slots` frames of `frame_size` bytes. */
int prober_open(struct prober *p, uint32_t slots, uint32_t frame_size, struct ktrxer_error *err);
/* An identifier that no other program uses, for which make() builds p->frame. */
int prober_identify(struct prober *p, int (*make)(void *client, struct ktrxer_error *err), struct ktrxer_error *err);
/*
 * The last step. It tries the schedule, so that an error in it shows before anything starts. `snap`: bytes of each
 * answer that are wanted.
 */
int prober_listen(struct prober *p, uint8_t proto, uint32_t snap, struct ktrxer_error *err);
/* prober_listen() and prober_run() call it. Send times begin at start_ns. */
int prober_schedule(struct prober *p, struct ktrxer_error *err);
void prober_close(struct prober *p);

/*
 * Sends the probes from start_ns on (0: as soon as receive stamps are certain), until all have ended, a failure
 * (result.failure), or stop_fd is readable (result.stopped). Afterwards all of the result is valid.
 */
void prober_run(struct prober *p, uint64_t start_ns, int stop_fd, const struct probe_events *events);

#ifndef KTRXER_SMALL
/*
 * `p` will run in the loop of `leader`, at the same send times: one wake-up and one spin serve both. Their
 * specifications have equal times. prober_run(leader) runs both, and returns when both have ended.
 */
void prober_join(struct prober *leader, struct prober *p, const struct probe_events *events);
#endif

/* Clients call this. The first failure counts. */
void prober_fail(struct prober *p, int rc, const char *text);
/* Further rounds of the same loop: `step` returns the time of the next one, 0 to end. False: stop_fd ended it. */
bool prober_loop(struct prober *p, int stop_fd, uint64_t (*step)(struct prober *p));
/* The margin after a wake-up `late_ns` after the end of its sleep, which is `margin_ns` before a send time. */
uint64_t prober_margin(uint64_t margin_ns, uint64_t largest_ns, uint64_t late_ns);
/* One look: pumps, takes what has arrived. Returns the time at which the engine must be pumped again. */
uint64_t prober_take(struct prober *p);
/*
 * Read again after `n` of `room` reports? Reading an empty queue arms the wake-up for the next report. A thread that
 * pumps itself needs no wake-up, so it reads again only after a full batch.
 */
static inline bool prober_more(const struct prober *p, int n, int room)
{
	return p->spec.precise ? n > 0 : n == room;
}
/* Records a round trip, or counts why it is left out of the times and returns false. own_queue_ns -1: not known. */
bool prober_record(struct prober *p, int64_t rtt_ns, int64_t own_queue_ns, uint8_t sent_source, uint8_t arrival_source);

#endif
