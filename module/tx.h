/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/ktx inside. One ring of probes in the order of commitment, with cursors that never pass
 * each other:
 *
 *     sent <= taken <= head        (free-running 32-bit numbers)
 *
 *   phase one   head: published by the program, and accepted.  taken: copied, checked, made into a
 *               socket buffer. Runs under take_lock, in the program's own KICK, or in the sender
 *               between two probes.
 *   phase two   sent: final, and reported. Runs in the sender alone, which is one of three: a
 *               real-time thread (tx_thread.c), a timer's softirq (tx_softirq.c), or the KICK
 *               itself where there is no timer (tx_file.c).
 *
 * No value in the mapped memory is trusted: each one is read once, checked, and kept here.
 */
#ifndef KTRXER_TX_H
#define KTRXER_TX_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/poll.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "module.h"

enum ktx_limits {
	KTX_WINDOW_MAX = 4096,             /* socket buffers made ahead, of one file */
	KTX_WINDOW_BYTES = 16 << 20,       /* bytes of these socket buffers */
	KTX_MAP_MAX = 512 << 20,           /* of a ring */
	/*
	 * frames submitted while the queue's lock is held; probes ended between two looks at the
	 * rest
	 */
	KTX_BATCH = 128,
	/* frames that the sender prepares between two looks at the clock */
	KTX_TAKE_STEP = 8,
	KTX_MARGIN_EXTRA_NS = 3 * 1000,    /* beyond what was measured */
	KTX_MARGIN_MIN_NS = 20 * 1000,     /* room for one or two softirqs of other traffic */
	KTX_MARGIN_MAX_NS = 200 * 1000,    /* the longest spin */
	KTX_MARGIN_FIRST_NS = 50 * 1000,   /* without a measurement */
	KTX_MARGIN_DECAY = 256,            /* each probe: 1/256 of the part above the base */
	KTX_GUARD_MIN_NS = 2 * 1000,       /* shortest time with interrupts off before a probe */
	KTX_GUARD_MAX_NS = 20 * 1000,
	KTX_GUARD_MARGIN_NS = 1000,        /* beyond the longest interrupt that was seen */
	KTX_GUARD_DECAY = 256,
	KTX_WAIT_TRIALS = 4, KTX_WAIT_LOOKS = 16, KTX_WAIT_TURNS = 256,
	/* frames of a train that leave before interrupts are on again */
	KTX_GUARD_TRAIN = 4,
	KTX_COMPENSATION_MAX_NS = 50 * 1000,
	KTX_COMPENSATION_SAMPLES = 16,     /* with large steps; then with small ones */
	KTX_COMPENSATION_STEP_NS = 4,
	KTX_COMPENSATION_RIGHT_NS = 20,
	/* a larger lateness has another cause than the cost of the path to the driver */
	KTX_COMPENSATION_WINDOW_NS = 5 * 1000,
	KTX_RETRY_MAX_S = 10,
	KTX_BACKOFF_FIRST_NS = 2 * 1000,
	KTX_BACKOFF_MOST_NS = 100 * 1000,
	/* the reader is woken when the next probe is further away than this */
	KTX_QUIET_NS = 50 * 1000,
	/* the debt above which a sender rests (tx_budget.c): 1.2 ms of work without a rest */
	KTX_BUDGET_NS = 400 * 1000,
	/* a rest in wake-up margins (60 to 400 us in all), after three times as much work */
	KTX_REST_MARGINS = 3,
	/* between two runs of a tasklet: longer than the kernel takes to leave its softirqs */
	KTX_SOFTIRQ_GAP_NS = 5 * 1000,
	/* charged for each run of the tasklet: the timer's interrupt, and starting the timer */
	KTX_INTERRUPT_NS = 2 * 1000,
	/* charged at most for a sleep of the thread: two switches of tasks */
	KTX_SWITCHES_NS = 20 * 1000,
	KTX_TRIALS = 12,                   /* of each kind of timer */
	KTX_TRIAL_NS = 200 * 1000,
};

#define KTX_NEVER (~0ULL)

/* A probe between phase one and phase two. */
struct ktx_request {
	struct sk_buff *skb; /* NULL: refused, error says why */
	u64 at_ns;
	u64 user;
	u32 flags;
	u32 queue;     /* KTRXER_TX_ANY_QUEUE: of the processor that sends */
	int error;
	bool filtered; /* netfilter's egress hooks have seen it */
};

/* Properties of the device for phase one, read when the file was bound to it. */
struct ktx_shape {
	u16 header;     /* hard_header_len */
	u16 headroom, tailroom;
	bool raw_ip;    /* no link header */
	bool quiet;     /* its driver may be called with interrupts off */
};

struct ktx_file {
	struct net *net;
	u32 id; /* in tracepoints and fdinfo */
	struct mutex lock; /* setup, once; and mapping after it */
	/* set up: all fields below are set, and the geometry does not change any more */
	bool ready;

	/* mapped */
	struct ktrxer_memory memory;
	struct ktrxer_tx_ring *ring;
	struct ktrxer_tx_slot *slots;
	struct ktrxer_tx_report *reports;
	u8 *frames;
	u32 count, mask, frame_size, stride;

	/* phase one */
	struct mutex take_lock;
	struct ktx_shape shape;
	struct ktx_request *requests; /* window of them */
	u32 window, window_mask;
	u32 head, taken;

	/* both phases */
	atomic64_t cancel; /* KTX_CANCEL | number: probes before it end */
	int error;         /* positive errno that ends all probes; 0 */

	/* phase two: the sender's own, but for `sent`, which others read */
	u32 sent;
	u32 late, queue;
	u64 late_ns, retry_ns;
	u64 shift_ns;
	bool waited;                  /* the sender waited for the next submission's time */
	u32 compensation_ns;          /* median time from the end of the wait to the stamp */
	u32 compensation_samples;
	bool learns_compensation;
	u64 first_call_ns;            /* of the probe that is being retried; 0: none */
	u64 again_ns, retry_until_ns; /* its next try, and its last one */
	u64 backoff_ns;
	u32 tries;
	u32 expired;                  /* probes in a row whose retries all failed */
	u32 announced;                /* reports before this number have been announced */
	bool in_train;                /* the last sent probe and the next one are of one train */

	/* the timer */
	u32 timer_kind; /* enum ktrxer_tx_timer */
	u32 cpu;
	u64 margin_ns, base_ns; /* the present margin, and the measured one */
	u64 guard_ns, guard_most_ns; /* 0: interrupts stay on */
	u32 look_ns, turns_us;       /* cost of reading the clock; turns of ktx_burn() in 1 us */
	u32 softirq_late_ns, thread_late_ns;
	struct hrtimer timer;
	struct task_struct *thread;
	bool idle;          /* the thread sleeps without an end time */
	bool alarmed;       /* the timer woke the thread */
	struct completion measured;
	spinlock_t arm_lock; /* softirq: protects `armed` and `closing` */
	bool armed, closing;
	struct tasklet_struct tasklet;
	struct ktx_budget *budget; /* between ktx_budget_begin() and ktx_budget_end() */
	u64 alarm_ns;       /* softirq: the time of the timer; 0: at once */
	struct work_struct refill;

	struct net_device __rcu *dev;
	netdevice_tracker tracker;
	struct list_head node; /* of all files that are bound to a device; under rtnl */

	wait_queue_head_t readers;
};

/* A request that is being retried is late already: the sender does not spin for it. */
static inline u64 ktx_margin_now(const struct ktx_file *f)
{
	return f->first_call_ns ? 0 : f->margin_ns;
}

#define KTX_CANCEL (1ULL << 32)

/* Is cursor `a` before cursor `b`? Both wrap around. */
static inline bool ktx_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

static inline bool ktx_cancelled(const struct ktx_file *f, u32 number)
{
	const u64 cancel = atomic64_read(&f->cancel);

	return cancel && ktx_before(number, (u32)cancel);
}

/* tx_ring.c: the mapped memory */
int ktx_ring_make(struct ktx_file *f, struct ktrxer_tx_setup *setup);
void ktx_ring_free(struct ktx_file *f);
/* Phase one for up to `most` probes. Returns the number of them. */
u32 ktx_ring_take(struct ktx_file *f, u32 most);
/* True: the program has published probes that are not prepared yet. */
bool ktx_ring_has_more(const struct ktx_file *f);
void ktx_ring_fail(struct ktx_file *f, int error);
/* Wakes the reader of reports, if `next_ns` is far enough away. */
void ktx_ring_announce(struct ktx_file *f, u64 next_ns);

/*
 * tx_budget.c: the budget of this processor; the sender does not move to another one. The time
 * from begin to end is charged to the sender, and `before_ns` before it; charge counts the time so
 * far. rest: the end of the time in which the sender must rest; 0: no rest.
 */
void ktx_budget_begin(struct ktx_file *f, u64 before_ns);
void ktx_budget_charge(struct ktx_file *f);
void ktx_budget_end(struct ktx_file *f);
u64 ktx_budget_rest(const struct ktx_file *f, u64 now);

/* tx_frame.c */
struct sk_buff *ktx_frame_make(const struct ktx_shape *shape, const void *frame, u32 length);

/* tx_send.c: phase two */
/*
 * Ends probes that need no sending, sends probes that are due, `budget` trains at most. Returns
 * the time of the next call; KTX_NEVER: no probe is prepared.
 */
u64 ktx_send_due(struct ktx_file *f, unsigned int budget);
/* The same for one train or a few frames of it, with interrupts off already. */
void ktx_send_quietly(struct ktx_file *f);
/*
 * The time at which the next probe is to be submitted; KTX_NEVER: no probe is prepared, 0: at
 * once. Ends no probe.
 */
u64 ktx_send_next(const struct ktx_file *f);
/* True: the sender must handle a cancellation or the end of the device. */
bool ktx_send_urgent(const struct ktx_file *f);

/* tx_margin.c: how long before the time of a probe the wait begins */
void ktx_margin_learn(struct ktx_file *f, u64 late_ns);
void ktx_margin_begin(struct ktx_file *f, u64 late_ns);

/*
 * tx_wait.c: the rest of the wait, with bottom halves off. The probe may have been sent when
 * ktx_wait_out() returns.
 */
void ktx_wait_begin(struct ktx_file *f);
void ktx_wait_out(struct ktx_file *f, u64 until);

/* tx_thread.c */
int ktx_thread_start(struct ktx_file *f);
void ktx_thread_stop(struct ktx_file *f);
void ktx_thread_kick(struct ktx_file *f, bool urgent);

/* tx_softirq.c */
void ktx_softirq_start(struct ktx_file *f);
void ktx_softirq_stop(struct ktx_file *f);
void ktx_softirq_kick(struct ktx_file *f, bool urgent);
u64 ktx_softirq_try(void);

/* tx_sender.c: the one of these timers that the file has */
int ktx_sender_start(struct ktx_file *f, u32 wanted);
void ktx_sender_stop(struct ktx_file *f);
/* There is a new probe, a cancellation or an error. */
void ktx_sender_kick(struct ktx_file *f, bool urgent);

/* tx_device.c */
int ktx_device_init(void);
void ktx_device_exit(void);
int ktx_device_bind(struct ktx_file *f, u32 ifindex, u32 queue);
/*
 * Removes the file from the list of the notifier. Returns the device for ktx_device_put(), which
 * is called after the sender has stopped.
 */
struct net_device *ktx_device_release(struct ktx_file *f);
void ktx_device_put(struct ktx_file *f, struct net_device *dev);

#endif
