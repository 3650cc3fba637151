/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inside a transmitter. One ring of requests, in the order of commitment, walked by cursors that never pass each other:
 *
 *     reaped <= counted <= done <= submitted <= head     (free-running 32-bit numbers; a request is number & mask)
 *
 *   tool side   head: committed.  counted: entered into the accounts.  reaped: free for the next frame.
 *   pump side   submitted: to the engine, or cancelled.  done: final; the request has all its times.
 *
 * Only `head` and `done` are read by the other side. All accounting is done by the tool's thread from final requests,
 * so the pump's way is short and the accounts need no lock and always close.
 */
#ifndef KTRXER_LIB_TX_H
#define KTRXER_LIB_TX_H

#include "clock.h"
#include "engine.h"
#include "error.h"
#include "phc_sampler.h"
#include "schedmap.h"
#include "stampmap.h"
#include "tx_limits.h"
#include "waiter.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define KTX_LINE 64 /* bytes of a cache line, on nearly every machine */

/*
 * The requests and the cursors that both sides read. `head` is written by the tool's side, `done` by the pump's; each
 * has a line of its own, since the other side reads it often, and the constants beside it for each probe.
 */
struct ktx_ring {
	struct ktx_request *requests;
	uint32_t slots, mask;
	_Alignas(KTX_LINE) _Atomic uint32_t head;
	_Alignas(KTX_LINE) _Atomic uint32_t done;
};

/* Requests of each side to the other: written by both, and seldom. */
struct ktx_shared {
	_Alignas(KTX_LINE) _Atomic uint32_t cancel_to; /* requests before this number are to be cancelled */
	_Atomic uint32_t cancel_seq;                   /* raised with each ktx_cancel() */
	_Atomic bool idle;                             /* the pump sleeps without a deadline: a commit must wake it */
	_Atomic bool tool_waits;                       /* a report is awaited on report_fd */
	_Atomic bool space_waits;                      /* a free slot is awaited on report_fd */
	_Atomic bool drain_waits;                      /* ktx_drain() sleeps until done == head */
	_Atomic bool stream_runs;                      /* the pump is to say when it has ended */
	_Atomic bool quit;
	_Atomic int dead; /* negative errno: the device is gone, or -ESHUTDOWN (engine->why_ended) */

	/* ring of one writer (pump) and one reader (tool) */
	_Atomic uint32_t errors_in, errors_out;
	struct ktx_network_error errors[KTX_NETWORK_ERRORS];
};

/*
 * Written by the pump, read by the tool: how many probes entered the packet scheduler by each device, with each source
 * address. A row is published by its count. What has no row any more is in the last one, whose device is 0.
 */
struct ktx_departure_row {
	uint32_t device;
	struct ktrxer_addr from;
	_Atomic uint32_t count;
};

/* The tool's thread alone: cursors and accounts. */
struct ktx_tool {
	_Alignas(KTX_LINE) uint32_t written; /* >= head: requests of a train that is not complete yet */
	uint32_t counted, reaped;
	bool reserved;
	bool shortage;  /* a reservation was refused, and none has been granted since */
	bool event_due; /* the engine's descriptor is to join poll_fd once there is one */
	bool restarts;  /* the next one committed is the first after ktx_cancel() */
	uint64_t last_at_ns;
	uint64_t counted_shift_ns; /* of the probe counted last */
	struct ktx_accounts sums;
	bool streams;     /* a range is with the engine; it is entered into `sums` when it has ended */
	bool stream_open; /* until it is cancelled */
	uint64_t stream_count;
	uint32_t stream_length; /* of its frames */
	struct ktrxer_hist *lateness;
#ifndef KTRXER_SMALL
	/* of this host's queues at the last look; drops_due: frames that failed like dropped ones since then */
	uint64_t drops, drops_due, drops_looked_ns;
	bool drops_known;
	int drop_error; /* of the last look: negative errno */
#endif
};

/* The pump alone: the waiter thread, or the caller of ktx_pump(). */
struct ktx_pump {
	_Alignas(KTX_LINE) uint32_t submitted;
	uint32_t cancel_seen;
	bool unlooked; /* do not reap although there is time */
	bool look;     /* reap although nothing is waited for: an error may be there */
	bool starved;  /* the last pass ended because nothing was committed, not because it is too early */
	bool in_train; /* the last one submitted belongs together with the next */
	uint64_t shift_ns;
	uint64_t last_call_ns;  /* of the last submission */
	uint64_t reaped_ns;     /* when stamps were last looked for */
	uint64_t warm_cost_ns;  /* of the last warming */
	uint64_t first_call_ns; /* of the probe that is being retried; 0: none */
	uint64_t retry_until_ns, retry_at_ns, backoff_ns;
	uint64_t spin_to_ns; /* the next request starts then, and the pump's thread is to spin until then; 0: none */
	uint32_t expired;    /* probes in a row whose retries came to nothing */
	uint32_t cancel_to_kernel;
	uint64_t busy_ns; /* where the kernel waits: when requests were last with it */
	struct ktrxer_clock_map clock;
	struct phc_line nic_line; /* the NIC's clock on ours, as published last */
	uint32_t nic_version;     /* of nic_line */
	bool nic_seen;            /* one of its stamps came */
	bool driver_seen;         /* the driver stamps */
	uint32_t stamped_end;     /* behind the last request with a driver's stamp */
	uint32_t passer;          /* a request behind `done` that was stamped before it, and when that was seen; 0:
				     none */
	uint64_t passed_ns;
	struct stampmap stamps; /* which request a stamp belongs to; its slots are request numbers */
	struct schedmap scheds; /* the same where the packet scheduler stamps */
	uint32_t path_key;      /* of the last stamp for the path alone */
	bool path_seen;         /* there was one */
	struct ktrxer_waiter waiter;
};

/* Divided by the thread that writes: constants of an open transmitter first. */
struct ktx {
	struct ktx_options options;
	char reason[KTRXER_ERROR_TEXT];
	struct ktrxer_device device;
	bool has_device;
	enum ktrxer_link link;
	const struct ktx_engine *const *engines; /* to choose from; ends with NULL */
	const struct ktx_engine *engine;
	bool chosen; /* by `auto` */
	struct ktx_engine_state *state;
	struct ktx_queue queue; /* ktx_submit_ops.queue */
	uint32_t frame_min, frame_size;
	uint32_t time_at; /* offset in the frame of the field of ktx_options.send_time */
	uint8_t *memory;  /* of the frames; NULL where the engine has its own */
	size_t memory_size;
	int wake_fd, report_fd, poll_fd;

	struct ktx_ring ring;
	struct ktx_shared shared;
	struct ktx_tool tool;
	struct ktx_pump pump;
#ifndef KTRXER_SMALL
	struct ktx_departure_row departures[KTX_DEPARTURES];
#endif

	_Alignas(KTX_LINE) struct phc_sampler nic; /* the NIC's clock, where its stamps are on */
	pthread_t thread;
	bool has_thread;
	/* the waiter posts it after its start-up, when info is complete */
	pthread_mutex_t lock;
	pthread_cond_t started;
	bool is_started;
};

/* The send time of a request and where it was taken (enum ktx_sent_source). */
static inline enum ktx_sent_source ktx_sent_time(const struct ktx_request *request, uint64_t *sent_ns)
{
	*sent_ns = request->leave_ns > request->call_ns ? request->leave_ns : request->call_ns;
	if (request->untimed)
		return KTX_SENT_NONE;
	if (request->sched_ns) {
		*sent_ns = request->sched_ns;
		return KTX_SENT_SCHED;
	}
	/* An engine of the kernel side has no stamps to match: its report is the driver's time. */
	if (request->departure >= KTX_DEPARTURE_DRIVER && (request->bypasses || !request->driver_ns)) {
		*sent_ns = request->driver_ns ? request->driver_ns : request->sent_ns;
		return request->driver_ns || request->departure == KTX_DEPARTURE_DRIVER ? KTX_SENT_DRIVER
											: KTX_SENT_NIC;
	}
	return KTX_SENT_USER;
}

static inline struct ktx_request *ktx_request_at(const struct ktx *tx, uint32_t number)
{
	return &tx->ring.requests[number & tx->ring.mask];
}

#ifndef KTRXER_SMALL
/* tx_slots.c: the drops of this host's queues from now on are counted. */
void ktx_drops_begin(struct ktx *tx);
#endif
/* tx_slots.c: as ktx_reserve() and ktx_commit(), of arguments that are known to be right. NULL: no slot is free. */
struct ktx_request *ktx_request_reserve(struct ktx *tx);
int ktx_request_commit(struct ktx *tx, struct ktx_request *request, const struct ktx_probe *probe,
		       struct ktrxer_error *err);

/* tx_departures.c: the first packet scheduler has a probe. It is that of the device which the host's routing chose. */
#ifndef KTRXER_SMALL
void ktx_departure_count(struct ktx *tx, uint32_t device, const struct ktrxer_addr *from);
/* A stamp that the caller has requested of some packets, for their path alone (ktrxer_txstamp_path). */
void ktx_path_stamp(struct ktx *tx, uint32_t key, uint32_t device, const struct ktrxer_addr *from);
#else
static inline void ktx_departure_count(struct ktx *tx, uint32_t device, const struct ktrxer_addr *from)
{
	(void)tx, (void)device, (void)from;
}
static inline void ktx_path_stamp(struct ktx *tx, uint32_t key, uint32_t device, const struct ktrxer_addr *from)
{
	(void)tx, (void)key, (void)device, (void)from;
}
#endif

/* tx_done.c: publishes the final requests, in order, and wakes the threads that wait for them. */
void ktx_done_advance(struct ktx *tx, uint64_t now);

/* tx_kernel.c: a pass where the kernel waits. */
void ktx_pump_kernel(struct ktx *tx, uint64_t *next_ns);

/* Nothing can be sent any more. */
static inline void ktx_dead(struct ktx *tx, int rc)
{
	atomic_store(&tx->shared.dead, rc == -ENETDOWN || (rc == -ESHUTDOWN && tx->engine->why_ended) ? rc : -ENODEV);
}

/* tx_pump.c: one pass, which never waits; *next_ns is when the next is due. */
int ktx_pump_once(struct ktx *tx, uint64_t *next_ns);
/*
 * The request of spin_to_ns, whose time has come since that pass: submitted first, since all that a pass does before is
 * lateness.
 */
void ktx_pump_start(struct ktx *tx);

/* tx_thread.c */
int ktx_thread_start(struct ktx *tx, struct ktrxer_error *err);
void ktx_thread_stop(struct ktx *tx);

/* tx_stream.c: ranges of templates that are with the engine. */
bool ktx_stream_running(struct ktx *tx);
void ktx_stream_count(const struct ktx *tx, struct ktx_accounts *accounts);
void ktx_stream_stop(struct ktx *tx);

/* engine_choose.c; lists end with NULL */
/* `refused`: one that was chosen before and could not be opened, as err->text says; or NULL. */
const struct ktx_engine *ktx_engine_choose(const struct ktx_engine *const *list, const struct ktrxer_device *device,
					   const struct ktx_options *options, uint32_t frame_size,
					   const struct ktx_engine *refused, char reason[KTRXER_ERROR_TEXT],
					   struct ktrxer_error *err);

/* tx_signal.c: wake-ups by eventfd; never block */
void ktx_signal(int fd);
void ktx_signal_clear(int fd);

#endif
