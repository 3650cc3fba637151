/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Transmitters: slots, probes, reports, accounts; and the engines below them. Conventions are in <ktrxer.h>, which includes this. */
#ifndef KTRXER_TX_H
#define KTRXER_TX_H

#include <ktrxer/base.h>
#include <ktrxer/path.h>
#include <ktrxer/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------------- transmitters */

enum ktx_status {
	KTX_PENDING = 0,
	KTX_SENT = 1,
	KTX_FAILED = 2,    /* error says why */
	KTX_SKIPPED = 3,   /* its time had passed and the policy is to skip */
	KTX_CANCELLED = 4, /* the tool stopped, or closed, before its time */
};

/* The last point on the way out of this host at which a probe was stamped. */
enum ktx_proof {
	KTX_PROOF_NONE = 0,
	KTX_PROOF_QUEUED = 1, /* the kernel took it; no stamp */
	KTX_PROOF_DRIVER = 2, /* stamp of the driver (SOF_TIMESTAMPING_TX_SOFTWARE) */
	KTX_PROOF_WIRE = 3,   /* stamp of the NIC (SOF_TIMESTAMPING_TX_HARDWARE) */
};

/*
 * Where the send time (T1 of RFC 8762) was taken. Delays and lateness count from it. All probes of one transmitter have the same source,
 * or KTX_SENT_NONE: the stamp is missing, sent_ns is the time before the system call, and the probe belongs in no statistic of times.
 */
enum ktx_sent_source {
	KTX_SENT_NONE = 0,
	KTX_SENT_USER = 1,   /* this process, before the system call: the engine or the kernel has no stamp */
	KTX_SENT_SCHED = 2,  /* entry into the packet scheduler (SOF_TIMESTAMPING_TX_SCHED) */
	KTX_SENT_DRIVER = 3, /* the driver: the engine bypasses the packet scheduler, or the scheduler keeps the schedule (launch times) */
	KTX_SENT_NIC = 4,    /* likewise, of a NIC without a driver's stamp */
};

enum ktx_late_policy {
	KTX_LATE_CATCH_UP = 0, /* sent at once */
	KTX_LATE_SKIP = 1,
	KTX_LATE_SHIFT = 2, /* it and all that follow move by its lateness */
};

enum ktx_report_kind { KTX_REPORT_ALL = 0, KTX_REPORT_FAILURES = 1, KTX_REPORT_NONE = 2 };

enum ktx_purpose {
	KTX_FOR_TIMING = 0, /* each probe at its time */
	KTX_FOR_RATE = 1,   /* as many as the device takes; times are met in batches */
};

enum ktx_wait {
	KTX_WAIT_SPIN = 0,  /* sleep to deadline - lead, spin the rest */
	KTX_WAIT_SLEEP = 1, /* sleep to the deadline: little CPU, tens of microseconds late */
};

enum ktx_flag {
	KTX_CALLER_PUMPS = 1 << 0, /* no thread: the caller drives it with ktx_pump() */
	KTX_NO_REALTIME = 1 << 1,  /* do not ask for SCHED_FIFO */
	KTX_NO_LOCK = 1 << 2,      /* do not lock memory */
	KTX_NO_STAMPS = 1 << 3,    /* do not ask for transmit stamps: every proof is `queued` */
	KTX_NO_ADVANCE = 1 << 4,   /* do not hand over early by the hand-over's own median cost */
	KTX_NO_SCHED = 1 << 5,     /* no stamp of the packet scheduler (0.5 us a packet): the send time is this process's, for trains */
};

struct ktx_options {
	size_t size;
	const char *device; /* NULL: only engines that send by the host's stack */
	const char *engine; /* NULL or "auto": the best for the purpose */
	enum ktx_purpose purpose;
	enum ktx_wait wait;
	enum ktx_late_policy late;
	enum ktx_report_kind reports;
	uint32_t flags;          /* enum ktx_flag */
	uint32_t slots;          /* probes between commit and report; 0: 1024; rounded up to a power of two */
	uint32_t frame_size;     /* largest frame; 0: the device's MTU and link header */
	uint64_t late_ns;        /* later than this counts as late, and lets the late policy act; 0: 100 us */
	uint64_t retry_ns;       /* how long a refused probe is tried again; 0: 10 ms */
	int cpu;                 /* the waiter's processor; -1: any */
	uint32_t queue;          /* of the device, for engines that are bound to one (xsk) */
};
#define KTX_OPTIONS_INIT { .size = sizeof(struct ktx_options), .cpu = -1 }

struct ktx;
KTRXER_API int ktx_open(struct ktx **tx, const struct ktx_options *options, struct ktrxer_error *err);
/* What is pending is cancelled, reports not read are gone. */
KTRXER_API void ktx_close(struct ktx *tx);

struct ktx_info {
	const char *engine;
	const char *reason;      /* why `auto` chose it, or what was asked for */
	bool chosen;             /* by `auto` */
	enum ktrxer_link link;   /* the frames' first header */
	uint32_t frame_size;
	uint32_t slots;
	enum ktx_proof best_proof; /* what may be hoped for: it is each report that tells */
	bool realtime;           /* SCHED_FIFO is on */
	bool locked;             /* memory is locked */
	int cpu;                 /* of the waiter, -1: any */
	uint32_t timer_slack_ns;
	uint64_t lead_ns;        /* of the spin, as calibrated, now */
	int64_t advance_ns;      /* the hand-over begins that much before the deadline */
	uint32_t features;       /* enum ktx_feature, of the engine as it is open */
	char notes[512];         /* lines: what was not permitted and what that costs; "" when all was */
};
KTRXER_API void ktx_info(const struct ktx *tx, struct ktx_info *info);

struct ktx_slot {
	uint8_t *frame;    /* write the frame here, from the link header on */
	uint32_t capacity; /* of it */
	uint32_t index;
};

struct ktx_probe {
	uint64_t id;      /* the tool's own */
	uint64_t at_ns;   /* when it is to leave; 0: at once, back to back with what is before it */
	uint32_t length;  /* of the frame */
	uint32_t flags;   /* enum ktx_probe_flag */
};
enum ktx_probe_flag {
	KTX_TRAIN_GOES_ON = 1 << 0, /* the next probe leaves back to back with this one */
};

/* -EAGAIN: every slot is taken; wait for reports (ktx_fd). One slot can be reserved at a time; reserving again returns the same. */
KTRXER_API int ktx_reserve(struct ktx *tx, struct ktx_slot *slot);
/*
 * The reserved slot goes to the engine. Nothing is sent and the slot stays reserved on:
 * -EINVAL a deadline before the last one's, -EMSGSIZE a frame too large, -EBADMSG no frame that this engine can parse,
 * -EOPNOTSUPP a header that this engine cannot reproduce, -ENETDOWN / -ENODEV the device is down or gone.
 */
KTRXER_API int ktx_commit(struct ktx *tx, const struct ktx_probe *probe, struct ktrxer_error *err);

/*
 * Would this frame be taken? As ktx_commit() says, without sending. Engines that own one socket (udp) make it for the first frame
 * that they see, here or at commit: -EADDRINUSE when its port or identifier is taken.
 */
KTRXER_API int ktx_check(struct ktx *tx, const uint8_t *frame, uint32_t length, struct ktrxer_error *err);

struct ktx_report {
	uint64_t id;
	uint64_t at_ns;        /* scheduled, as committed; 0: it had no time */
	uint64_t planned_ns;   /* the same, moved by KTX_LATE_SHIFT */
	uint64_t sent_ns;      /* the send time, T1; 0 unless sent */
	uint64_t departure_ns; /* stamp of the driver or the NIC, as `proof` says; 0: none */
	int64_t own_queue_ns;  /* driver's stamp - sent_ns, the wait in this host's packet scheduler; -1: not known, or no scheduler on the way */
	uint32_t bound_ns;     /* error of the conversion to CLOCK_MONOTONIC in these times */
	uint32_t tries;        /* hand-overs, the last one included */
	uint8_t status;        /* enum ktx_status */
	uint8_t proof;         /* enum ktx_proof */
	uint8_t sent_source;   /* enum ktx_sent_source */
	uint8_t reserved;
	int32_t error;         /* negative errno of the last try, 0 when sent */
	int64_t raw_ns;        /* the stamp as its clock had it, 0: none */
};

/* Up to `max` reports in the order of commitment; returns how many, 0 when none is ready. Never blocks. */
KTRXER_API int ktx_reports(struct ktx *tx, struct ktx_report *reports, int max);
/* Readable while reports (of the kind asked for) or free slots wait after a shortage, and when ktx_pump() has work. */
KTRXER_API int ktx_fd(const struct ktx *tx);

/*
 * For KTX_CALLER_PUMPS: does what is due, never waits, and says when to come back (KTRXER_NEVER: when ktx_fd() is
 * readable or something was committed). With KTX_WAIT_SPIN that is before the next send time by the margin of a
 * wake-up, and from then on now: come back at once, until it is sent. Returns 0 or a fatal negative errno; probes are
 * accounted for in any case.
 */
KTRXER_API int ktx_pump(struct ktx *tx, uint64_t *next_ns);
/* The same without a look for stamps and errors, unless many wait: for who comes at each deadline, and looks after several of them. */
KTRXER_API int ktx_pump_due(struct ktx *tx, uint64_t *next_ns);

/* Blocks until nothing is pending (all sent or failed, stamps in or given up), or the time has come: -ETIMEDOUT. */
KTRXER_API int ktx_drain(struct ktx *tx, uint64_t until_ns);
/* All that is not yet handed to the device becomes `cancelled`; the transmitter stays usable, and deadlines begin anew. */
KTRXER_API void ktx_cancel(struct ktx *tx);

/* requested == sent + failed + skipped + cancelled + pending, at any instant and exactly. */
struct ktx_accounts {
	uint64_t requested, sent, failed, skipped, cancelled, pending;
	uint64_t late;      /* left (or skipped) more than late_ns after their planned time; a shift counts once */
	uint64_t tries;     /* hand-overs, refused ones included */
	uint64_t bytes;     /* of the frames sent */
	uint64_t wire, driver, queued; /* the sent ones, by proof */
	uint64_t first_ns, last_ns; /* sent times of the first and the last one sent */
	uint64_t stamps_missing;    /* of driver or NIC: asked for and given up. Dropped by this host's queue, or not stamped */
	uint64_t untimed;           /* sent, with KTX_SENT_NONE */
	int32_t last_error; /* negative errno of the last failure */
	/* Sent on the kernel's word alone, and missing in the device's own statistics: lost, or (some drivers) not counted yet. */
	uint64_t uncounted;
};
KTRXER_API void ktx_accounts(const struct ktx *tx, struct ktx_accounts *accounts);
/* Lateness (signed) of all probes sent that had a time: a copy, to be freed with ktrxer_hist_free(). NULL: no memory. */
KTRXER_API struct ktrxer_hist *ktx_lateness(const struct ktx *tx);

/*
 * The socket on which the host's stack delivers the answers to what this engine sends (udp: the socket that sends), for the caller
 * to read; -EOPNOTSUPP where there is none: use a krx then. There is none before the first frame was checked or committed.
 */
KTRXER_API int ktx_reply_fd(const struct ktx *tx);

/* An ICMP error about something that was sent, or an error of the host's own stack, as the sending socket was told of it. */
struct ktx_network_error {
	uint64_t when_ns;
	int error;                  /* positive errno */
	uint8_t origin;             /* 1 this host, 2 ICMP, 3 ICMPv6 (SO_EE_ORIGIN_*) */
	uint8_t type, code;         /* of the ICMP message */
	struct ktrxer_addr reporter; /* who says so; family 0: this host */
	uint16_t quoted_length;     /* of the datagram that it is about, transport header first for ICMP */
	uint8_t quoted[64];
};
/* Engines that send by the host's stack only. Oldest first; returns how many. When 64 wait unread, newer ones are dropped. */
KTRXER_API int ktx_network_errors(struct ktx *tx, struct ktx_network_error *errors, int max);

/* --------------------------------------------------------------------------------------------------------- engines */

enum ktx_feature {
	KTX_CAN_WHOLE_FRAME = 1 << 0,   /* any link header, any address */
	KTX_CAN_IPV4 = 1 << 1,
	KTX_CAN_IPV6 = 1 << 2,
	KTX_CAN_TRAIN = 1 << 3,         /* one call for a train */
	KTX_CAN_DRIVER_STAMP = 1 << 4,
	KTX_CAN_WIRE_STAMP = 1 << 5,
	KTX_CAN_KERNEL_WAIT = 1 << 6,   /* the kernel keeps the time */
	KTX_CAN_MAPPED = 1 << 7,        /* slots lie in memory shared with the kernel */
	KTX_CAN_UNPRIVILEGED = 1 << 8,
	KTX_CAN_REPLY_FD = 1 << 9,
	KTX_CAN_BYPASS = 1 << 10,       /* past the qdisc */
	KTX_CAN_ZERO_COPY = 1 << 11,    /* the NIC reads the slots themselves; as the device is now */
	KTX_CAN_TEMPLATE = 1 << 12,     /* ktx_template_send(): the engine makes the frames itself */
	KTX_CAN_POLL = 1 << 13,         /* a processor of its own looks for what is due: times at a rate cost no call */
	KTX_CAN_SCHED_STAMP = 1 << 14,  /* stamps at the entry into the packet scheduler */
	KTX_CAN_HOST_STACK = 1 << 15,   /* sends by the host's stack, whose routes find the device: none has to be named */
};

struct ktx_engine_info {
	const char *name;
	const char *summary;
	bool available;
	uint32_t features; /* as found by trying, where that can be tried */
	char reason[KTRXER_ERROR_TEXT]; /* not available: what is missing and how to get it */
};
/*
 * Will this engine send by the host's stack (KTX_CAN_HOST_STACK)? Then ktx_open() needs no device. `name` as in
 * ktx_options. `stack_needed` (ktrxer_path.needs_stack): whole frames are lost on this path, so `auto` is to choose
 * among the engines of the stack, for which no device is named. False for names that no engine has.
 */
KTRXER_API bool ktx_engine_by_stack(const char *name, bool stack_needed);
/* All engines of this build, each tried on `device` (NULL: those that need one say so). Returns how many there are. */
KTRXER_API int ktx_engines(struct ktx_engine_info *engines, int max, const char *device);

#ifdef __cplusplus
}
#endif
#endif
