// SPDX-License-Identifier: GPL-2.0-only
/*
 * Phase two: calls the driver's transmit function, as pktgen does: past the qdisc, a train with
 * one hold of the queue's lock and xmit_more. Called by the sender alone. A refused probe is tried
 * again, before all others, for a bounded time; every probe gets its report.
 */
#include <linux/if_vlan.h>
#ifdef CONFIG_NETFILTER_EGRESS
#include <linux/netfilter_netdev.h>
#endif

#include "ktrxer_trace.h"
#include "tx.h"

static struct ktx_request *ktx_request_at(const struct ktx_file *f, u32 number)
{
	return &f->requests[number & f->window_mask];
}

static u64 ktx_planned(const struct ktx_file *f, const struct ktx_request *request)
{
	return request->at_ns ? min_t(u64, request->at_ns + f->shift_ns, KTIME_MAX) : 0;
}

static void ktx_probe_end(struct ktx_file *f, enum ktrxer_tx_status status, int error, u64 sent_ns,
			  u64 call_ns)
{
	struct ktrxer_tx_report *report = &f->reports[f->sent & f->mask];
	struct ktx_request *request = ktx_request_at(f, f->sent);

	report->sent_ns = sent_ns;
	report->planned_ns = ktx_planned(f, request);
	report->user = request->user;
	report->call_ns = min_t(u64, call_ns, U32_MAX);
	report->tries = f->tries;
	report->status = status;
	report->reserved = 0;
	report->error = error;
	report->queue = request->queue;
	report->reserved1 = 0;
	trace_ktx_report(f->id, f->sent, status, error, f->tries);
	f->in_train = status == KTRXER_TX_SENT && request->flags & KTRXER_TX_TRAIN;
	request->skb = NULL;
	f->tries = 0;
	f->first_call_ns = 0;
	/*
	 * Two releases: phase one may use the request again, the program may use the slot again.
	 */
	smp_store_release(&f->sent, f->sent + 1);
	smp_store_release(&f->ring->tail, f->sent); /* the report is whole */
}

static void ktx_probe_drop(struct ktx_file *f, enum ktrxer_tx_status status, int error)
{
	dev_kfree_skb_any(ktx_request_at(f, f->sent)->skb); /* interrupts may be off */
	ktx_probe_end(f, status, error, 0, 0);
}

/*
 * The first probe was refused: it stays first and is tried again, or it has failed. The longer a
 * device refuses, the shorter is the time for each further probe.
 */
static void ktx_refused(struct ktx_file *f, int error)
{
	const u64 now = ktime_get_ns();

	f->tries++;
	if (!f->first_call_ns) {
		f->first_call_ns = now;
		f->retry_until_ns = now + (f->expired < 63 ? f->retry_ns >> f->expired : 0);
		f->backoff_ns = KTX_BACKOFF_FIRST_NS;
	}
	if (now >= f->retry_until_ns) {
		f->expired++;
		ktx_probe_drop(f, KTRXER_TX_FAILED, error);
		return;
	}
	f->again_ns = min(now + f->backoff_ns, f->retry_until_ns);
	f->backoff_ns = min_t(u64, f->backoff_ns * 2, KTX_BACKOFF_MOST_NS);
}

/* The reason why the probe cannot be sent; 0: the driver decides. */
static int ktx_wrong(const struct ktx_file *f, const struct ktx_request *request,
		     const struct net_device *dev)
{
	u32 longest = READ_ONCE(dev->mtu) + f->shape.header;

	if (!request->skb)
		return request->error;
	if (request->flags & KTRXER_TX_QUEUE &&
	    request->queue >= READ_ONCE(dev->real_num_tx_queues))
		return -EINVAL;
	/* The outer VLAN tag does not count for the MTU, as in a packet socket. */
	if (eth_type_vlan(request->skb->protocol))
		longest += VLAN_HLEN;
	return request->skb->len > longest ? -EMSGSIZE : 0;
}

static bool ktx_egress_hooked(const struct net_device *dev)
{
#ifdef CONFIG_NETFILTER_EGRESS
	return nf_hook_egress_active() && rcu_access_pointer(dev->nf_hooks_egress);
#else
	return false;
#endif
}

/*
 * Passes `count` probes to netfilter's egress hooks, as the kernel does for a packet socket that
 * bypasses the qdisc. Called without the queue's lock, because a rule may send.
 */
static void ktx_egress(struct ktx_file *f, struct net_device *dev, u32 count)
{
#ifdef CONFIG_NETFILTER_EGRESS
	u32 number;

	for (number = f->sent; number != f->sent + count; number++) {
		struct ktx_request *request = ktx_request_at(f, number);
		int ret;

		if (!request->skb || request->filtered)
			continue;
		request->filtered = true;
		request->skb->dev = dev;
		request->skb = nf_hook_egress(request->skb, &ret, dev);
		if (!request->skb)
			request->error = -EPERM;
	}
#endif
}

/*
 * The wait ends earlier by the time from its end to the stamp. The first samples set this
 * compensation: a disturbance can only delay a stamp, so an early stamp is used in full. Then small
 * steps follow the median.
 */
static void ktx_compensation_learn(struct ktx_file *f, u64 call)
{
	const s64 late = call - ktx_planned(f, ktx_request_at(f, f->sent));
	s32 step = late > 0 ? KTX_COMPENSATION_STEP_NS : -KTX_COMPENSATION_STEP_NS;

	f->waited = false;
	if (!f->learns_compensation || late > KTX_COMPENSATION_WINDOW_NS ||
	    late < -KTX_COMPENSATION_WINDOW_NS)
		return;
	if (!f->compensation_samples ||
	    (late < 0 && f->compensation_samples < KTX_COMPENSATION_SAMPLES))
		step = late;
	else if (late <= KTX_COMPENSATION_RIGHT_NS && late >= -KTX_COMPENSATION_RIGHT_NS)
		/* within the resolution of the wait: a step would only add noise */
		step = 0;
	if (f->compensation_samples < KTX_COMPENSATION_SAMPLES)
		f->compensation_samples++;
	f->compensation_ns =
		clamp_t(s32, (s32)f->compensation_ns + step, 0, KTX_COMPENSATION_MAX_NS);
}

/* Called with the queue's lock. False: send no more probes now. */
static bool ktx_try_one(struct ktx_file *f, struct net_device *dev, struct netdev_queue *txq,
			bool more)
{
	struct ktx_request *request = ktx_request_at(f, f->sent);
	struct sk_buff *skb = request->skb;
	u64 call, after;
	int ret;

	if (netif_xmit_frozen_or_drv_stopped(txq)) {
		ktx_refused(f, -ENOBUFS);
		return false;
	}
	skb->dev = dev;
	request->queue = txq - dev->_tx;
	skb_set_queue_mapping(skb, request->queue);
	call = ktime_get_ns();
	ret = netdev_start_xmit(skb, dev, txq, more);
	after = ktime_get_ns();
	trace_ktx_transmit(f->id, f->sent, ktx_planned(f, request), call, request->queue, ret);
	if (!dev_xmit_complete(ret)) {
		ktx_refused(f, -ENOBUFS);
		return false;
	}
	f->tries++;
	f->expired = 0;
	if (f->waited)
		ktx_compensation_learn(f, call);
	/* The driver took the frame and dropped it. NET_XMIT_CN of a lower device is a hint. */
	if (ret != NETDEV_TX_OK && ret != NET_XMIT_CN)
		ktx_probe_end(f, KTRXER_TX_FAILED, ret < 0 ? ret : -EIO, 0, after - call);
	else
		ktx_probe_end(f, KTRXER_TX_SENT, 0, call, after - call);
	return true;
}

static struct netdev_queue *ktx_queue(const struct ktx_request *request, struct net_device *dev)
{
	const u32 queues = READ_ONCE(dev->real_num_tx_queues);
	const u32 wanted =
		request->queue == KTRXER_TX_ANY_QUEUE ? raw_smp_processor_id() : request->queue;

	return netdev_get_tx_queue(dev, wanted < queues ? wanted : wanted % queues);
}

/* Probes [sent, sent + count): all are prepared. Bottom halves are off. */
static void ktx_hand_over(struct ktx_file *f, u32 count)
{
	struct netdev_queue *txq;
	struct net_device *dev;

	rcu_read_lock();
	dev = rcu_dereference(f->dev);
	if (!dev || !netif_running(dev)) {
		ktx_ring_fail(f, dev ? ENETDOWN : ENODEV);
		goto unlock;
	}
	if (!netif_carrier_ok(dev)) {
		ktx_refused(f, -ENOLINK);
		goto unlock;
	}
	if (ktx_egress_hooked(dev)) {
		if (irqs_disabled()) /* rules need interrupts: send without the guard */
			goto unlock;
		ktx_egress(f, dev, count);
	}
	txq = ktx_queue(ktx_request_at(f, f->sent), dev);
	HARD_TX_LOCK(dev, txq, smp_processor_id());
	for (; count; count--) {
		/*
		 * The last frame must ring the doorbell: `more` is false before a frame that will
		 * not be sent.
		 */
		const bool more = count > 1 && !ktx_wrong(f, ktx_request_at(f, f->sent + 1), dev);
		const int wrong = ktx_wrong(f, ktx_request_at(f, f->sent), dev);

		if (wrong)
			ktx_probe_drop(f, KTRXER_TX_FAILED, wrong);
		else if (!ktx_try_one(f, dev, txq, more))
			break;
	}
	HARD_TX_UNLOCK(dev, txq);
unlock:
	rcu_read_unlock();
}

/*
 * The number of probes for one call: the rest of the train, or all probes without a send time;
 * without a timer all probes that are due.
 */
static u32 ktx_together(const struct ktx_file *f, u32 taken, u64 now)
{
	const u32 most = min_t(u32, taken - f->sent, KTX_BATCH);
	u32 n = 1;

	for (; n < most; n++) {
		const struct ktx_request *before = ktx_request_at(f, f->sent + n - 1),
				      *request = ktx_request_at(f, f->sent + n);
		const bool train = before->flags & KTRXER_TX_TRAIN,
			   at_once = !request->at_ns && !before->at_ns;
		const bool due =
			f->timer_kind == KTRXER_TX_TIMER_NONE && ktx_planned(f, request) <= now;

		if (request->error || request->queue != before->queue || !(train || at_once || due))
			break;
	}
	return n;
}

/* Applies the late policy to a probe that is due. True: send it. */
static bool ktx_late_allows(struct ktx_file *f, u64 now)
{
	const u64 planned = ktx_planned(f, ktx_request_at(f, f->sent));

	/* A train that has begun goes on, and so does a probe that is being retried. */
	if (!planned || f->in_train || f->first_call_ns || now <= planned ||
	    now - planned <= f->late_ns)
		return true;
	if (f->late == KTRXER_TX_LATE_SKIP) {
		ktx_probe_drop(f, KTRXER_TX_SKIPPED, 0);
		return false;
	}
	if (f->late == KTRXER_TX_LATE_SHIFT)
		f->shift_ns += now - planned;
	return true;
}

/*
 * Ends a probe that is not to be sent: refused by phase one, cancelled, or its device has ended.
 */
static bool ktx_ends_now(struct ktx_file *f)
{
	const int error = READ_ONCE(f->error), refused = ktx_request_at(f, f->sent)->error;

	if (ktx_cancelled(f, f->sent))
		ktx_probe_drop(f, KTRXER_TX_CANCELLED, 0);
	else if (error || refused)
		ktx_probe_drop(f, KTRXER_TX_FAILED, error ? -error : refused);
	else
		return false;
	return true;
}

u64 ktx_send_next(const struct ktx_file *f)
{
	const u64 compensation =
		min_t(u32, READ_ONCE(f->ring->compensation_ns), KTX_COMPENSATION_MAX_NS) +
		f->compensation_ns;
	u64 planned;

	if (f->sent == smp_load_acquire(&f->taken)) /* ktx_ring_take() */
		return KTX_NEVER;
	if (f->first_call_ns)
		return f->again_ns;
	planned = ktx_planned(f, ktx_request_at(f, f->sent));
	return planned > compensation ? planned - compensation : 0;
}

bool ktx_send_urgent(const struct ktx_file *f)
{
	return (atomic64_read(&f->cancel) || READ_ONCE(f->error)) && f->sent != READ_ONCE(f->taken);
}

/*
 * Clears a cancellation when its last probe has ended: after two billion further probes its number
 * would be ahead of `sent` again.
 */
static void ktx_cancel_over(struct ktx_file *f)
{
	const u64 cancel = atomic64_read(&f->cancel);

	if (cancel && !ktx_before(f->sent, (u32)cancel))
		atomic64_cmpxchg(&f->cancel, cancel, 0);
}

/* Sends due probes: `budget` submissions of `most` frames; at most `ends` probes end. */
static u64 ktx_send_some(struct ktx_file *f, unsigned int budget, unsigned int ends, u32 most)
{
	u64 next = 0;

	while (budget && ends-- && (next = ktx_send_next(f)) != KTX_NEVER) {
		u64 now;

		if (ktx_ends_now(f)) {
			next = 0;
			continue;
		}
		now = ktime_get_ns();
		if (next > now) {
			f->waited = true;
			break;
		}
		if (!ktx_late_allows(f, now))
			continue;
		ktx_hand_over(f, min(ktx_together(f, READ_ONCE(f->taken), now), most));
		budget--;
	}
	ktx_cancel_over(f);
	return next;
}

u64 ktx_send_due(struct ktx_file *f, unsigned int budget)
{
	u64 next;

	local_bh_disable();
	next = ktx_send_some(f, budget, KTX_BATCH, KTX_BATCH);
	local_bh_enable();
	return next;
}

void ktx_send_quietly(struct ktx_file *f)
{
	ktx_send_some(f, 1, 1, KTX_GUARD_TRAIN);
}
