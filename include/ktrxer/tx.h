/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Transmitters: slots, probes, reports, accounts, engines. The conventions are in <ktrxer.h>, which includes this. */
#ifndef KTRXER_TX_H
#define KTRXER_TX_H

#include <ktrxer/base.h>
#include <ktrxer/path.h>
#include <ktrxer/schedule.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ktx_status {
	KTX_PENDING = 0,
	KTX_SENT = 1,
	KTX_FAILED = 2,    /* error says why */
	KTX_SKIPPED = 3,   /* its time had passed, and the policy is KTX_LATE_SKIP */
	KTX_CANCELLED = 4, /* ktx_cancel() or ktx_close() came first */
};

/* The last point inside this host at which a probe got a time stamp. */
enum ktx_departure_source {
	KTX_DEPARTURE_NONE = 0,
	KTX_DEPARTURE_QUEUED = 1, /* no stamp; the kernel accepted the frame */
	KTX_DEPARTURE_DRIVER = 2, /* by the driver (SOF_TIMESTAMPING_TX_SOFTWARE) */
	KTX_DEPARTURE_NIC = 3,    /* by the NIC (SOF_TIMESTAMPING_TX_HARDWARE) */
};

/*
 * The send time (T1 of RFC 8762) is taken at one of these points. Delays and lateness count from it. All probes of one
 * transmitter have the same source, or KTX_SENT_NONE: the stamp is missing, sent_ns is the time before the system call,
 * and the probe belongs in no statistic of times.
 */
enum ktx_sent_source {
	KTX_SENT_NONE = 0,
	KTX_SENT_USER = 1,   /* in this process, before the system call: the engine or the kernel has no stamp */
	KTX_SENT_SCHED = 2,  /* at the entry into the packet scheduler (SOF_TIMESTAMPING_TX_SCHED) */
	KTX_SENT_DRIVER = 3, /* by the driver: the engine bypasses the packet scheduler, or the scheduler delays to the
				launch time */
	KTX_SENT_NIC = 4,    /* by the NIC, likewise, where the driver has no stamp */
};

enum ktx_late_policy {
	KTX_LATE_CATCH_UP = 0, /* send it at once */
	KTX_LATE_SKIP = 1,     /* do not send it */
	KTX_LATE_SHIFT = 2,    /* send it at once, and move all that follow by its lateness */
};

enum ktx_report_kind { KTX_REPORT_ALL = 0, KTX_REPORT_FAILURES = 1, KTX_REPORT_NONE = 2 };

enum ktx_purpose {
	KTX_FOR_TIMING = 0, /* each probe at its scheduled time */
	KTX_FOR_RATE = 1,   /* as many probes as the device takes; those whose times have come leave in batches */
};

enum ktx_wait {
	KTX_WAIT_SPIN = 0,  /* sleep until a wake-up margin before the deadline, then spin */
	KTX_WAIT_SLEEP = 1, /* sleep until the deadline: little CPU time, tens of microseconds late */
};

/*
 * The time field of each frame, which the engine writes just before the system call: 64 bits on CLOCK_REALTIME, of
 * which the first 32 are seconds. The udp engine connects its socket to the destination of the first frame, so
 * ktx_reply_fd() has the answers of that address and port alone.
 */
enum ktx_send_time {
	KTX_SEND_TIME_NONE = 0,
	KTX_SEND_TIME_NTP = 1,  /* since 1900, and their fraction (RFC 5905) */
	KTX_SEND_TIME_UNIX = 2, /* since 1970, and nanoseconds */
};

enum ktx_flag {
	KTX_CALLER_PUMPS = 1 << 0,    /* no thread: the caller calls ktx_pump() */
	KTX_NO_REALTIME = 1 << 1,     /* no SCHED_FIFO */
	KTX_NO_LOCK = 1 << 2,         /* no locked memory */
	KTX_NO_STAMPS = 1 << 3,       /* no transmit stamps: each departure_source is KTX_DEPARTURE_QUEUED */
	KTX_NO_COMPENSATION = 1 << 4, /* no transmit latency compensation: submit at the scheduled time, not earlier */
	KTX_NO_SCHED = 1 << 5,        /* no stamp of the packet scheduler, which costs 0.5 us a packet: KTX_SENT_USER,
					 for trains */
};

struct ktx_options {
	size_t size;
	const char *device; /* NULL: only engines that send by the host's stack */
	const char *engine; /* NULL or "auto": the best one for the purpose */
	enum ktx_purpose purpose;
	enum ktx_wait wait;
	enum ktx_late_policy late;
	enum ktx_report_kind reports;
	uint32_t flags;      /* enum ktx_flag */
	uint32_t slots;      /* probes between commit and report; 0: 1024; rounded up to a power of two */
	uint32_t frame_size; /* largest frame; 0: the device's MTU and link header */
	uint64_t late_ns;    /* a probe with more lateness is late: it is counted, and the late policy applies; 0:
				    100 us */
	uint64_t retry_ns;   /* how long a rejected probe is retried; 0: 10 ms */
	int cpu;             /* processor of the transmitter's thread; -1: any */
	uint32_t queue;      /* of the device, for engines that are bound to one (xsk) */
	enum ktx_send_time send_time; /* only engines with KTX_CAN_SEND_TIME */
	uint32_t send_time_at;        /* offset of that field in the IP packet */
};
#define KTX_OPTIONS_INIT { .size = sizeof(struct ktx_options), .cpu = -1 }

struct ktx;
/*
 * 0; -EINVAL: an option, or there is no such engine; -ENODEV: there is no such device, or the engine needs one;
 * -ENETDOWN: the device is down; -EMSGSIZE: frame_size is too large; -EPERM, -EOPNOTSUPP: the engine does not work
 * here, or lacks send_time; -ENOMEM, -EMFILE.
 */
KTRXER_API int ktx_open(struct ktx **tx, const struct ktx_options *options, struct ktrxer_error *err);
/* Cancels pending probes. Reports that were not read are lost. */
KTRXER_API void ktx_close(struct ktx *tx);

struct ktx_info {
	const char *engine;
	const char *reason;    /* why this engine was chosen */
	bool chosen;           /* by `auto` */
	enum ktrxer_link link; /* the first header of the frames */
	uint32_t frame_size;
	uint32_t slots;
	enum ktx_departure_source best_departure; /* that the device and the options allow; each report has its own */
	bool realtime;                            /* SCHED_FIFO is on */
	bool locked;                              /* memory is locked */
	int cpu;                                  /* of the transmitter's thread, -1: any */
	uint32_t timer_slack_ns;
	uint64_t wakeup_margin_ns; /* present length of the spin before a deadline */
	int64_t compensation_ns;   /* transmit latency compensation: the submission starts this early */
	uint32_t features;         /* enum ktx_feature, of the open engine */
	char notes[512];           /* lines: what was not permitted, and the consequence; "": none */
};
/* The present state. The strings exist until ktx_close(). */
KTRXER_API void ktx_info_sized(const struct ktx *tx, struct ktx_info *info, size_t size);
static inline void ktx_info(const struct ktx *tx, struct ktx_info *info)
{
	ktx_info_sized(tx, info, sizeof *info);
}

struct ktx_slot {
	uint8_t *frame;    /* write the frame here, from the link header on; yours until ktx_commit() */
	uint32_t capacity; /* bytes at `frame` */
	uint32_t index;    /* number of the slot, below ktx_info.slots */
};

/* A later version reads a further field only if a flag, which is new as well, says that the field is there. */
struct ktx_probe {
	uint64_t id;     /* any number; the report contains it */
	uint64_t at_ns;  /* scheduled time; 0: at once, back to back with the probe before it */
	uint32_t length; /* of the frame */
	uint32_t flags;  /* enum ktx_probe_flag */
};
enum ktx_probe_flag {
	KTX_TRAIN_GOES_ON = 1 << 0, /* the next probe leaves back to back with this one */
};

/*
 * 0; -EAGAIN: no slot is free; poll ktx_fd() and read reports. One slot is reserved at a time: a second call returns
 * the same.
 */
KTRXER_API int ktx_reserve_sized(struct ktx *tx, struct ktx_slot *slot, size_t size);
static inline int ktx_reserve(struct ktx *tx, struct ktx_slot *slot)
{
	return ktx_reserve_sized(tx, slot, sizeof *slot);
}
/*
 * Submits the reserved slot. 0, or the probe is not sent and the slot stays reserved: -EINVAL: no slot is reserved, a
 * deadline before the last one, an unknown flag; -EMSGSIZE: the frame is too large, or ends before its time field;
 * -EBADMSG: the engine cannot parse the frame; -EOPNOTSUPP: the engine cannot send one of its headers; -ENETDOWN,
 * -ENODEV: the device is down or was removed.
 */
KTRXER_API int ktx_commit(struct ktx *tx, const struct ktx_probe *probe, struct ktrxer_error *err);

/*
 * The result that ktx_commit() would have for this frame; nothing is sent. Engines with one socket (udp) open it for
 * the first frame, here or at commit: -EADDRINUSE: another program uses its port or identifier.
 */
KTRXER_API int ktx_check(struct ktx *tx, const uint8_t *frame, uint32_t length, struct ktrxer_error *err);

struct ktx_report {
	uint64_t id;
	uint64_t at_ns;        /* scheduled time, as committed; 0: it had none */
	uint64_t planned_ns;   /* the same, moved by KTX_LATE_SHIFT */
	uint64_t sent_ns;      /* send time, T1; 0 unless sent */
	uint64_t departure_ns; /* time stamp of the driver or the NIC (departure_source); 0: none */
	int64_t own_queue_ns;  /* driver's stamp - sent_ns, the delay in this host's packet scheduler; -1: unknown, or
				  bypassed */
	uint32_t bound_ns;     /* largest error of these times, from the conversion to CLOCK_MONOTONIC */
	uint32_t tries;        /* submissions, with the last one */
	uint8_t status;        /* enum ktx_status */
	uint8_t departure_source; /* enum ktx_departure_source */
	uint8_t sent_source;      /* enum ktx_sent_source */
	int32_t error;            /* negative errno of the last submission, 0 when sent */
	int64_t raw_ns;           /* the stamp on its own clock, 0: none */
};

/*
 * Reads up to `max` reports in the order of commitment. Returns how many, 0: none is ready. The slots of these probes
 * become free.
 */
KTRXER_API int ktx_reports_sized(struct ktx *tx, struct ktx_report *reports, size_t size, int max);
static inline int ktx_reports(struct ktx *tx, struct ktx_report *reports, int max)
{
	return ktx_reports_sized(tx, reports, sizeof *reports, max);
}
/*
 * The descriptor stays open and the same until ktx_close(). Readable while reports wait (of the kind in
 * ktx_options.reports), when slots are free again after -EAGAIN, and when ktx_pump() has work. Only for poll() and the
 * like: do not read it.
 */
KTRXER_API int ktx_fd(const struct ktx *tx);

/*
 * Does due work of a transmitter with KTX_CALLER_PUMPS, does not wait, and sets *next_ns to the time of the next call.
 * KTRXER_NEVER: call when ktx_fd() is readable or after a commit. With KTX_WAIT_SPIN that time is a wake-up margin
 * before the next send time; from then on it is now, so call again at once. 0, or a negative errno: the device is gone.
 * Probes stay in the accounts in any case.
 */
KTRXER_API int ktx_pump(struct ktx *tx, uint64_t *next_ns);
/*
 * The same, but reads stamps and errors only when many wait: for a thread that pumps several transmitters at each
 * deadline.
 */
KTRXER_API int ktx_pump_due(struct ktx *tx, uint64_t *next_ns);

/*
 * Waits until no probe is pending (each has ended, and its stamps have arrived or are missing). 0; -ETIMEDOUT: until_ns
 * came first. until_ns 0 does not wait, for event loops: after -ETIMEDOUT ktx_fd() becomes readable when no probe is
 * pending.
 */
KTRXER_API int ktx_drain(struct ktx *tx, uint64_t until_ns);
/*
 * Cancels all probes that were not submitted to the device. The transmitter stays usable; the next deadline may be any.
 */
KTRXER_API void ktx_cancel(struct ktx *tx);

/* requested == sent + failed + skipped + cancelled + pending, at any time. */
struct ktx_accounts {
	uint64_t requested, sent, failed, skipped, cancelled, pending;
	uint64_t late;                /* lateness above late_ns, or skipped; a shift counts once */
	uint64_t tries;               /* submissions, with rejected ones */
	uint64_t bytes;               /* of the frames sent */
	uint64_t nic, driver, queued; /* the sent probes, by enum ktx_departure_source */
	uint64_t first_ns, last_ns;   /* send times of the first and the last probe */
	uint64_t stamps_missing;      /* sent; the stamp of driver or NIC did not arrive: this host's queue
				       dropped the frame, or no stamp was taken */
	uint64_t untimed;             /* sent, with KTX_SENT_NONE */
	/*
	 * Negative errno of the last failure. -ENOBUFS: this host's queue was full; -ENOSR: a filter behind the socket,
	 * or a lower device, dropped it; -ENETDOWN: the device has no link.
	 */
	int32_t last_error;
	/* The statistics of the device lack these of `queued`: they are lost, or (some drivers) not counted yet. */
	uint64_t uncounted;
};
/* The accounts now. */
KTRXER_API void ktx_accounts_sized(struct ktx *tx, struct ktx_accounts *accounts, size_t size);
static inline void ktx_accounts(struct ktx *tx, struct ktx_accounts *accounts)
{
	ktx_accounts_sized(tx, accounts, sizeof *accounts);
}
/*
 * Lateness in nanoseconds of all sent probes that had a scheduled time: a copy, free it with ktrxer_hist_free(). NULL:
 * no memory.
 */
KTRXER_API struct ktrxer_hist *ktx_lateness(struct ktx *tx);

/*
 * This socket receives the answers (the udp engine sends by it, too); the caller reads it. It belongs to the
 * transmitter: do not close it. -EOPNOTSUPP: the engine has none, use a krx; or no frame was checked or committed yet.
 */
KTRXER_API int ktx_reply_fd(const struct ktx *tx);

/* An ICMP error about a sent datagram, or an error of this host's stack. */
struct ktx_network_error {
	uint64_t when_ns;
	int error;                   /* positive errno */
	uint8_t origin;              /* 1 this host, 2 ICMP, 3 ICMPv6 (SO_EE_ORIGIN_*) */
	uint8_t type, code;          /* of the ICMP message */
	struct ktrxer_addr reporter; /* sender of the ICMP message; family 0: this host */
	uint16_t quoted_length;      /* bytes in `quoted` */
	uint8_t quoted[64];          /* begin of the datagram; for ICMP from its transport header on */
};
/* Engines that send by the host's stack only. Oldest first; returns how many. When 64 wait, newer ones are dropped. */
KTRXER_API int ktx_network_errors_sized(struct ktx *tx, struct ktx_network_error *errors, size_t size, int max);
static inline int ktx_network_errors(struct ktx *tx, struct ktx_network_error *errors, int max)
{
	return ktx_network_errors_sized(tx, errors, sizeof *errors, max);
}

/* Probes by the device, and with the source address, that the host's routing, netfilter and NAT gave them. */
enum { KTX_DEPARTURES = 8 };
struct ktx_departure {
	uint32_t device; /* index; 0: this row has all probes for which there was no other row */
	uint32_t count;  /* UINT32_MAX: so many or more */
	struct ktrxer_addr from;
};
/*
 * Of the engines udp and raw, from the stamps of the packet scheduler (KTX_CAN_SCHED_STAMP, Linux 4.13). Returns the
 * number of rows, at most KTX_DEPARTURES, of which the first `max` are written; 0: nothing was observed.
 */
KTRXER_API int ktx_departures_sized(const struct ktx *tx, struct ktx_departure *departures, size_t size, int max);
static inline int ktx_departures(const struct ktx *tx, struct ktx_departure *departures, int max)
{
	return ktx_departures_sized(tx, departures, sizeof *departures, max);
}

enum ktx_feature {
	KTX_CAN_WHOLE_FRAME = 1 << 0, /* sends any link header and any address */
	KTX_CAN_IPV4 = 1 << 1,
	KTX_CAN_IPV6 = 1 << 2,
	KTX_CAN_TRAIN = 1 << 3, /* submits a train with one call */
	KTX_CAN_DRIVER_STAMP = 1 << 4,
	KTX_CAN_NIC_STAMP = 1 << 5,
	KTX_CAN_KERNEL_WAIT = 1 << 6, /* the kernel waits for the send time */
	KTX_CAN_MAPPED = 1 << 7,      /* the slots are in memory shared with the kernel */
	KTX_CAN_UNPRIVILEGED = 1 << 8,
	KTX_CAN_REPLY_FD = 1 << 9,
	KTX_CAN_BYPASS = 1 << 10,      /* bypasses the qdisc */
	KTX_CAN_ZERO_COPY = 1 << 11,   /* the NIC reads the slots themselves, in the present state of the device */
	KTX_CAN_TEMPLATE = 1 << 12,    /* ktx_template_send(): the engine makes the frames itself */
	KTX_CAN_POLL = 1 << 13,        /* a processor polls for due probes: send times at a high rate cost no system
					   call */
	KTX_CAN_SCHED_STAMP = 1 << 14, /* stamps at the entry into the packet scheduler */
	KTX_CAN_HOST_STACK = 1 << 15,  /* sends by the host's stack: its routes choose the device, ktx_options.device
					   may be NULL */
	KTX_CAN_SEND_TIME = 1 << 16,   /* writes ktx_options.send_time */
};

struct ktx_engine_info {
	const char *name;
	const char *summary;
	bool available;
	uint32_t features;              /* enum ktx_feature, tested on the device where that is possible */
	char reason[KTRXER_ERROR_TEXT]; /* not available: what is missing, what to do */
};
/*
 * True if this engine sends by the host's stack (KTX_CAN_HOST_STACK), so that ktx_open() needs no device. `name` as in
 * ktx_options; "auto" is such an engine if stack_needed (ktrxer_path.needs_stack). False for a name that no engine has.
 */
KTRXER_API bool ktx_engine_by_stack(const char *name, bool stack_needed);
/*
 * The first `max` engines of this build, each tried on `device` (NULL: engines that need one are not available). The
 * strings are constant. Returns the number of engines, which may be larger than `max`, or a negative errno.
 */
KTRXER_API int ktx_engines_sized(struct ktx_engine_info *engines, size_t size, int max, const char *device);
static inline int ktx_engines(struct ktx_engine_info *engines, int max, const char *device)
{
	return ktx_engines_sized(engines, sizeof *engines, max, device);
}

#ifdef __cplusplus
}
#endif
#endif
