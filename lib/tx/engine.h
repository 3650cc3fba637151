/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tables of operations that an engine fills in, one file each: what all have, and those for frames that the pump
 * submits, for a kernel that takes requests by itself, and for streams. Nothing above these tables knows an engine's
 * name.
 *
 * The transmitter (tx.c) keeps the slots in a ring, in the order of commitment, and decides when; an engine only
 * submits frames and says what became of them. The pump calls the operations, but for those that name the committing
 * or the tool's thread; these touch nothing that the pump touches.
 */
#ifndef KTRXER_LIB_ENGINE_H
#define KTRXER_LIB_ENGINE_H

#include "error.h"
#include "base_limits.h"
#include "completions.h"
#include "packet.h"

#include <stdatomic.h>

/*
 * One probe between commit and report. Written by the tool until committed, by the pump until final. At a rate the two
 * sides are on two processors and each line that both write travels twice a probe: what sending as such needs is in the
 * first line of 64 bytes, and the second is left alone then.
 */
struct ktx_request {
	uint8_t *frame;
	uint64_t id;
	uint64_t at_ns;   /* 0: no time */
	uint64_t call_ns; /* just before the submission that succeeded */
	uint64_t sent_ns;
	uint32_t length;
	uint32_t tries;
	uint16_t flags;            /* enum ktx_probe_flag */
	uint8_t status, departure; /* enum ktx_departure_source */
	bool stamp_due;            /* submitted; its stamp is awaited */
	bool stamp_missing;        /* it did not come in time */
	bool buffer_busy;          /* the kernel still reads `frame`: set by send, cleared by reap; not final before
				   that */
	bool first_of_call;        /* its stamp tells what the submission costs */
	bool sched_due;            /* the packet scheduler's stamp is awaited */
	bool restarts;             /* first one after ktx_cancel(): KTX_LATE_SHIFT begins again at 0 */
	bool untimed;              /* the stamp of its send time is missing (KTX_SENT_NONE) */
	bool bypasses; /* no packet scheduler delayed it beyond its launch time: its send time is the driver's
				   stamp */

	/* only with a time, a stamp or a failure; 0 otherwise */
	_Alignas(64) uint64_t planned_ns;
	uint64_t leave_ns; /* ktx_submit_ops.queue: the launch time for the kernel; 0: right behind what is before it */
	int64_t raw_ns;
	uint32_t bound_ns;
	int32_t error;
	uint64_t sched_ns;  /* entry into the packet scheduler; 0: not stamped */
	uint64_t driver_ns; /* the driver's stamp; 0: none */
};

struct ktx_engine_state; /* each engine's own */

struct ktx_engine_setup {
	const struct ktx_options *options;
	const struct ktrxer_device *device; /* NULL when none was named */
	enum ktrxer_link link;              /* the first header of the frames; without a device: IP */
	uint32_t frame_size;                /* capacity of a slot */
	uint32_t slots;                     /* power of two */
	struct ktx_request *requests;       /* where the kernel waits: a request lies at its number & (slots -
						     1) */
};

/*
 * State of the pump for an engine whose kernel side waits, at each look. Requests [done, head) are with the engine.
 */
struct ktx_work {
	uint32_t done, head;
	uint32_t cancel_to; /* requests before it that are not sent yet are to end as cancelled */
	uint64_t now_ns;
	uint64_t compensation_ns; /* submit that much before the time */
};

/* How an engine takes frames for a queue that waits. */
struct ktx_queue {
	uint64_t ahead_ns; /* so long before their time */
	uint32_t depth;    /* and not more than so many at once */
};

/* A range of a template's numbers that an engine sends by itself. */
struct ktx_stream {
	const struct ktx_template *made;
	uint64_t first, count;
	uint32_t threads;
};

/* How far it is. */
struct ktx_stream_look {
	uint64_t taken;                       /* numbers, of `count`; each is sent or failed soon */
	uint64_t sent, failed, queued, tries; /* queued: the sent ones without a stamp */
	uint64_t first_ns, last_ns;
	int error; /* negative errno of the last failure */
	int lost;  /* negative errno that ended it early */
	bool ended;
};

/*
 * Frames that the pump submits at their times. With `queue` the kernel waits, too: it is given each frame ahead of
 * its time (`queue` says by how much) and with it, in leave_ns. Frames there cannot be cancelled.
 */
struct ktx_submit_ops {
	/*
	 * Submits requests[0..count), back to back, in one call where that can be. Returns how many the kernel took, or
	 * a negative errno when it took none: -EAGAIN and -ENOBUFS mean "try again", all else means that requests[0]
	 * will never go. It may take fewer than it could (one protocol a call, say): it is called again at once.
	 */
	int (*send)(struct ktx_engine_state *state, struct ktx_request *const *requests, int count);
	bool checksums; /* the kernel writes those of the transport header */

	/*
	 * Goes the way of `send` as far as it can without sending, so that the caches are warm when the time has
	 * come; NULL: cannot.
	 */
	void (*warm)(struct ktx_engine_state *state);

	/*
	 * Collects stamps, late failures and buffers that are there. Never blocks. Returns how many, or a negative
	 * errno (device gone).
	 */
	int (*reap)(struct ktx_engine_state *state, const struct ktx_completions *completions);

	/*
	 * The buffer of this request has been out for KTX_BUFFER_WAIT_NS: looks a last time, then ends that, and puts
	 * another frame in the request, so that what the kernel may still read stays out of use. 0, or a negative
	 * errno: it never took the frame. NULL: this engine sets no buffer_busy.
	 */
	int (*give_up)(struct ktx_engine_state *state, struct ktx_request *request);

	/* True if a submitted packet waits in a queue of this host. Each engine with KTX_CAN_SCHED_STAMP has it. */
	bool (*holds)(const struct ktx_engine_state *state);

	/* Makes the numbers of stamps begin at 0 again (stampmap.h says when); NULL: they cannot go wrong. */
	void (*restart_stamps)(struct ktx_engine_state *state);

	/* Where the kernel waits, too; else NULL. left_early: a packet left before its time; looks again. */
	void (*queue)(const struct ktx_engine_state *state, struct ktx_queue *queue);
	void (*left_early)(struct ktx_engine_state *state);
};

/*
 * Requests that the kernel takes from the ring by itself. They belong to the engine from publish, which the committing
 * thread calls, to collect, which the pump calls.
 */
struct ktx_kernel_ops {
	void (*publish)(struct ktx_engine_state *state, uint32_t from, uint32_t to);

	/*
	 * Follows on publish, after `head` shows the requests to the pump; NULL: none. A request that ends before that
	 * wakes a pump that finds nothing to collect, at once and again, and where the pump is the more urgent thread
	 * of one processor the committing one never comes to publish `head`.
	 */
	void (*go)(struct ktx_engine_state *state, uint32_t to);

	/*
	 * Starts and ends the workers of the kernel side, and sets *next_ns to the latest time of the next call. A
	 * negative errno: the device or the kernel side is gone, and every request ends with one of the next collects.
	 */
	int (*update)(struct ktx_engine_state *state, const struct ktx_work *work, uint64_t *next_ns);

	/* Makes requests final in their order, from work->done on, and returns how many. */
	uint32_t (*collect)(struct ktx_engine_state *state, const struct ktx_work *work);
};

/*
 * Ranges of templates (KTX_CAN_TEMPLATE). Called by the tool's thread, but for `ended`; `update` of the kernel's
 * operations updates one that runs. One is started when the one before has ended.
 */
struct ktx_stream_ops {
	int (*start)(struct ktx_engine_state *state, const struct ktx_stream *stream, struct ktrxer_error *err);
	void (*stop)(struct ktx_engine_state *state); /* no more numbers: it ends within milliseconds */
	void (*look)(const struct ktx_engine_state *state, struct ktx_stream_look *look);
	bool (*ended)(const struct ktx_engine_state *state);
};

/* Common members of all engines, and tables: `submit` or `kernel`, the other one is NULL; `stream`, or NULL. */
struct ktx_engine {
	const char *name;
	const char *summary;
	const struct ktx_submit_ops *submit;
	const struct ktx_kernel_ops *kernel;
	const struct ktx_stream_ops *stream;
	uint32_t can;               /* features that are known without trying: KTX_CAN_HOST_STACK; KTX_CAN_SEND_TIME
				     where `send` reads the frames when it is called */
	uint32_t frame_max;         /* longest frame, 0: no limit of its own */
	uint32_t reap_ns;           /* no descriptor tells when there is something to collect: look this often while
				     requests wait; 0: one does */
	bool nic_stamps;            /* event_fd is the socket that sends, from the start: it can report the NIC's
					stamps, too */
	bool polls;                 /* takes a processor for itself while it works */
	int rank_timing, rank_rate; /* `auto` takes the available one with the highest */
	const char *why_timing, *why_rate; /* "no qdisc in the way" */
	const char *why_ended; /* the reason when the engine stops by itself: -ESHUTDOWN; NULL: it never does */

	/*
	 * Tries, and leaves nothing behind. 0 and info->features, or a negative errno and info->reason with its
	 * remedy.
	 */
	int (*probe)(const struct ktrxer_device *device, struct ktx_engine_info *info);

	int (*open)(struct ktx_engine_state **state, const struct ktx_engine_setup *setup, struct ktrxer_error *err);
	void (*close)(struct ktx_engine_state *state);

	/* The features that this open state really has (a device may lack stamps). */
	uint32_t (*features)(const struct ktx_engine_state *state);

	/* Memory of the slots where the engine has its own (mapped), else NULL: tx.c allocates. */
	uint8_t *(*memory)(struct ktx_engine_state *state, uint32_t slot);

	/*
	 * 0 if the engine can reproduce this frame, header by header; else err names the field. Called by the
	 * committing thread.
	 */
	int (*check)(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err);

	/* A line that the user should know of this device, or NULL. The op may be NULL. */
	const char *(*note)(const struct ktx_engine_state *state);

	/*
	 * Packets sent since the engine was opened by the statistics of the device, for an engine without stamps; NULL,
	 * or -EOPNOTSUPP.
	 */
	int (*device_sent)(const struct ktx_engine_state *state, uint64_t *packets);

	/*
	 * Readable (POLLIN where the kernel takes requests by itself, else POLLERR) when reap or collect has work;
	 * -1: never, and where the kernel takes them and reap_ns is 0: a commit is to wake the pump.
	 */
	int (*event_fd)(const struct ktx_engine_state *state);
	int (*reply_fd)(const struct ktx_engine_state *state); /* NULL: none */
};

/*
 * One that sends by the host's stack finds the device by its routes. One that this build leaves out (no `open`) says
 * so without a device.
 */
static inline bool ktx_engine_needs_device(const struct ktx_engine *engine)
{
	return engine->open && !(engine->can & KTX_CAN_HOST_STACK);
}

/* NULL, "" or "auto": not named. */
bool ktx_engine_is_auto(const char *name);
/* ktx_open() and ktx_engines() over a list of engines that ends with NULL. */
int ktx_open_of(struct ktx **out, const struct ktx_engine *const *list, const struct ktx_options *options,
		struct ktrxer_error *err);
const struct ktx_engine *ktx_engine_find(const struct ktx_engine *const *list, const char *name);
int ktx_engine_try_all(const struct ktx_engine *const *list, struct ktx_engine_info *engines, size_t size, int max,
		       const char *device_name);

#endif
