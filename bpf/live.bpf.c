/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The live engine's half in the kernel. BPF_PROG_RUN with live frames runs the program over and over, in batches, and
 * flushes what it redirects at the end of each batch. One run looks at one probe: not there or not due, the frame is
 * dropped, which is a poll; due within microseconds, it is written and waited for; due, it is redirected to the device.
 * The tracepoint behind the driver's transmit function shows the result of a bulk, frame by frame in their order.
 */
#include "live.h"
#include "live_head.h"

#define BEFORE(a, b) ((__s32)((__u32)(a) - (__u32)(b)) < 0)

enum {
	LINK_HEADER = 14,
	/* The program spins this long itself, in a softirq; for probes that are due later it is called again. */
	WAIT_NS = 20000,
	WAIT_ROUNDS = 1 << 13, /* a round is at least 5 ns */
};

/*
 * Set before loading, so the verifier has its values. Alone in its section, so that the library finds it at the start.
 */
const volatile struct live_config config = { .frame_most = LIVE_FRAME_MAX };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct live_slot) + LIVE_FRAME_MAX); /* as loaded: less */
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64));
} ends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct live_control));
} control SEC(".maps");

static __always_inline struct live_control *control_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline __u64 *end_of(__u32 number)
{
	__u32 at = number & config.mask;

	return bpf_map_lookup_elem(&ends, &at);
}

static __always_inline struct live_slot *slot_of(__u32 number)
{
	__u32 at = number & config.mask;

	return bpf_map_lookup_elem(&slots, &at);
}

static long forget(__u32 round, void *context)
{
	struct live_control *c = control_get();
	__u64 *end;

	(void)round;
	(void)context;
	if (!c || c->completed == c->submitted)
		return 1;
	end = end_of(c->pending[c->completed++ & (LIVE_PENDING - 1)]);
	if (end && *end == LIVE_SUBMITTED)
		WRITE(*end, LIVE_END(LIVE_UNPROVEN, 0));
	return 0;
}

/* The owner gives the ring between two batches to the worker that came last. False: it is another worker's turn. */
static __always_inline _Bool my_turn(struct live_control *c, struct live_worker *worker, __u32 me, _Bool batch_begins)
{
	if (READ(c->owner) != me) {
		worker->mine = 0;
		if (READ(c->taker) != me && !worker->runs)
			WRITE(c->taker, me);
		return 0;
	}
	if (!worker->mine) {
		__sync_fetch_and_add(&c->reached, 1);
		worker->mine = 1;
	}
	if (!batch_begins)
		return 1;
	/* Nothing is pending between batches, unless a tracepoint was not run: the end of such a frame is not known. */
	if (c->completed != c->submitted)
		bpf_loop(LIVE_PENDING, forget, (void *)0, 0);
	c->cpu = bpf_get_smp_processor_id();
	if (READ(c->taker) == me)
		return 1;
	__sync_fetch_and_add(&c->reached, 1);
	WRITE(c->owner, c->taker);
	return 0;
}

static long not_yet(__u32 round, void *until)
{
	(void)round;
	return bpf_ktime_get_ns() >= *(__u64 *)until;
}

static __always_inline void pass_over(struct live_control *c, __u64 *end, __u64 word)
{
	__sync_fetch_and_add(&c->reached, 1); /* rare ends: their data is visible before them */
	WRITE(*end, word);
	c->tail++;
}

/* Writes the frame into the buffer, whose length is that of the frame before. */
static __always_inline int frame_write(struct xdp_md *ctx, struct live_slot *slot)
{
	__u32 length = READ(slot->length), have = bpf_xdp_get_buff_len(ctx);

	if (length < LINK_HEADER || length > config.frame_most)
		return -TOO_LONG;
	if (have != length && bpf_xdp_adjust_tail(ctx, (int)length - (int)have))
		return -INVALID;
	return bpf_xdp_store_bytes(ctx, 0, slot->frame, length) ? -INVALID : 0;
}

static __always_inline int one(struct xdp_md *ctx, __u32 me)
{
	struct live_control *c = control_get();
	__u32 tail, train, left, need;
	struct live_worker *worker;
	struct live_slot *slot;
	__u64 *end, until = 0;
	_Bool begins;
	int rc;

	if (!c)
		return XDP_ABORTED;
	worker = &c->workers[me];
	begins = !worker->left;
	left = begins ? c->batch[me] : worker->left;
	worker->left = left - 1;
	if (!my_turn(c, worker, me, begins)) {
		worker->runs++;
		return XDP_DROP;
	}
	worker->runs++;
	tail = c->tail;
	if (tail == c->head_seen) {
		__u32 head = READ(c->head);

		if (head == tail)
			return XDP_DROP;
		__sync_fetch_and_add(&c->reached, 1);
		c->head_seen = head;
	}
	end = end_of(tail);
	slot = slot_of(tail);
	if (!end || !slot)
		return XDP_ABORTED;
	if (*end) { /* it went ahead of one that the driver refused */
		c->tail = tail + 1;
		return XDP_DROP;
	}
	if (BEFORE(tail, READ(c->cancel_to))) {
		c->in_train = 0;
		pass_over(c, end, LIVE_END(LIVE_CANCELLED, 0));
		return XDP_DROP;
	}
	train = slot->train;
	/*
	 * A train leaves in one bulk, and a probe that has a time is flushed with the run that takes it: the last of
	 * the batch.
	 */
	need = train < LIVE_BULK ? train : LIVE_BULK;
	if (need > c->batch[me])
		need = c->batch[me];
	if (!c->in_train) {
		__u64 at = slot->at_ns;

		if (at) {
			__u64 now = bpf_ktime_get_ns(), early = READ(c->compensation_ns);

			/* A shift stays within the range of the clock. */
			if (config.shifts && slot->restarts && !slot->refused)
				c->shift_ns = 0;
			if (config.shifts && !slot->refused)
				at = at > ~0ULL - c->shift_ns ? ~0ULL : at + c->shift_ns;
			until = at > early ? at - early : 0;
			if (now + WAIT_NS < until)
				return XDP_DROP;
			if (now > at && now - at > config.late_most_ns && !slot->refused) {
				if (config.skips) {
					pass_over(c, end, LIVE_END(LIVE_SKIPPED, 0));
					return XDP_DROP;
				}
				if (config.shifts) {
					c->shift_ns += now - at;
					at = now;
				}
			}
			if (now >= until)
				until = 0;
			else if (!config.times)
				return XDP_DROP; /* waiting here would hold up what this batch has already redirected */
		}
		if (left < need || (left > need && config.times && (at || need > 1)))
			return XDP_DROP;
		if (config.shifts)
			slot->at_ns = at;
	}
	rc = frame_write(ctx, slot);
	if (rc) {
		c->in_train = train > 1;
		pass_over(c, end, LIVE_END(LIVE_FAILED, -rc));
		return XDP_DROP;
	}
	if (until)
		bpf_loop(WAIT_ROUNDS, not_yet, &until, 0);
	rc = bpf_redirect_map(&device, 0, 0);
	c->in_train = train > 1;
	if (rc != XDP_REDIRECT) { /* the map lets go of a device that is gone */
		pass_over(c, end, LIVE_END(LIVE_FAILED, NO_DEVICE));
		return XDP_DROP;
	}
	c->tail = tail + 1;
	if (!config.traced) {
		WRITE(*end, LIVE_END(LIVE_UNPROVEN, 0));
		return XDP_REDIRECT;
	}
	WRITE(*end, LIVE_SUBMITTED);
	c->pending[c->submitted & (LIVE_PENDING - 1)] = tail;
	c->submitted++;
	return XDP_REDIRECT;
}

SEC("xdp")
int live_worker0(struct xdp_md *ctx)
{
	return one(ctx, 0);
}

SEC("xdp")
int live_worker1(struct xdp_md *ctx)
{
	return one(ctx, 1);
}

struct completion {
	__u64 now;
	__u32 sent, all;
	int error; /* of those behind the ones sent */
};

static __always_inline void refused(struct live_control *c, __u32 number, __u64 *end,
				    const struct completion *completion)
{
	struct live_slot *slot = slot_of(number);
	int error = completion->error;

	if (!slot)
		return;
	slot->refused++;
	c->refusals++;
	if (error == 0)
		error = NO_BUFFERS; /* its ring is full */
	if (may_try_again(error)) {
		if (!c->refused_since_ns)
			c->refused_since_ns = completion->now;
		if (completion->now - c->refused_since_ns < config.retry_ns) {
			/*
			 * The tail returns to the refused probe. Submitted probes behind it are skipped when their turn
			 * comes.
			 */
			WRITE(*end, 0);
			if (BEFORE(number, c->tail)) {
				c->tail = number;
				c->in_train = 0;
			}
			return;
		}
	}
	__sync_fetch_and_add(&c->reached, 1);
	WRITE(*end, LIVE_END(LIVE_FAILED, error));
}

static long complete_one(__u32 round, void *context)
{
	const struct completion *completion = context;
	struct live_control *c = control_get();
	__u32 number;
	__u64 *end;

	if (!c || round >= completion->all || c->completed == c->submitted)
		return 1;
	number = c->pending[c->completed++ & (LIVE_PENDING - 1)];
	end = end_of(number);
	if (!end)
		return 1;
	if (round < completion->sent)
		WRITE(*end, completion->now);
	else
		refused(c, number, end, completion);
	return 0;
}

/*
 * NULL: it is not about pending requests. Softirqs are off from redirect to flush, so no other call comes between.
 */
static __always_inline struct live_control *flight_here(void)
{
	struct live_control *c = control_get();

	return c && c->completed != c->submitted && c->cpu == bpf_get_smp_processor_id() ? c : (void *)0;
}

/* (from, to, sent, drops, err): the driver's transmit function has returned. */
SEC("raw_tp/xdp_devmap_xmit")
int live_taken(struct bpf_raw_tracepoint_args *ctx)
{
	const int sent = (int)ctx->args[2], drops = (int)ctx->args[3], error = (int)ctx->args[4];
	struct live_control *c = flight_here();
	struct completion completion;

	if (!c)
		return 0;
	completion.now = bpf_ktime_get_ns();
	completion.sent = sent > 0 ? (__u32)sent : 0;
	completion.all = completion.sent + (drops > 0 ? (__u32)drops : 0);
	completion.error = error < 0 ? -error : 0;
	if (sent > 0)
		c->refused_since_ns = 0;
	bpf_loop(LIVE_BATCH_MAX, complete_one, &completion, 0);
	/* A final refusal ends the time of retries. */
	if (drops > 0 && c->refused_since_ns && completion.now - c->refused_since_ns >= config.retry_ns)
		c->refused_since_ns = 0;
	return 0;
}

/*
 * (dev, program, target, err, ...): a frame did not get as far as the driver: the device is down, the frame too long
 * for it.
 */
SEC("raw_tp/xdp_redirect_err")
int live_turned_back(struct bpf_raw_tracepoint_args *ctx)
{
	const int error = (int)ctx->args[3];
	struct live_control *c = flight_here();
	__u32 number;
	__u64 *end;

	if (!c)
		return 0;
	number = c->pending[(c->submitted - 1) & (LIVE_PENDING - 1)];
	end = end_of(number);
	if (!end)
		return 0;
	c->submitted--;
	__sync_fetch_and_add(&c->reached, 1);
	WRITE(*end, LIVE_END(LIVE_FAILED, error < 0 ? -error : INVALID));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
