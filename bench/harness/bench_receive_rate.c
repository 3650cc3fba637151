/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How many packets a second reach this process, captured and dropped. All of a round's probes are committed beforehand,
 * with their times, so that while they fly one processor has the sender and the device's polling, and the other is the
 * receiver's alone.
 */
#include "bench_receive.h"

#include "error.h"
#include "fields_bench.h"
#include "reasons.h"
#include "template.h"
#include "thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_NS (300 * KTRXER_NS_PER_MS)
#define START_AHEAD_NS (150 * KTRXER_NS_PER_MS)

enum {
	PORT = 9,
	SLOTS_MAX = 1 << 20,
	PRIORITY = 40,
	FLOOD_PPS = 2000000 /* for how many probes there is to be room */,
	BUNCH = 16 /* probes that share a deadline: a submission of the engine's */
};

struct listener {
	struct krx *rx;
	pthread_t thread;
	int stop_fd;
	_Atomic uint32_t captured; /* of one round, whose probes all have a slot: less than 2^32 */
	uint64_t first_ns, last_ns;
};

static void *listen_thread(void *argument)
{
	struct listener *l = argument;
	struct pollfd fds[2] = { { .fd = krx_fd(l->rx), .events = POLLIN }, { .fd = l->stop_fd, .events = POLLIN } };
	const struct sched_param param = { .sched_priority = PRIORITY };
	struct krx_packet packet;
	uint32_t count = 0;

	/* A higher priority than the sender's threads, where that is permitted, because the receiver is measured. */
	(void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	for (;;) {
		int rc = krx_next(l->rx, &packet);

		if (rc > 0) {
			if (!count++)
				l->first_ns = packet.mono_ns;
			l->last_ns = packet.mono_ns;
			if (count % 64 == 0)
				atomic_store_explicit(&l->captured, count, memory_order_relaxed);
			continue;
		}
		atomic_store_explicit(&l->captured, count, memory_order_relaxed);
		if (rc < 0)
			return NULL;
		poll(fds, 2, -1);
		if (fds[1].revents && !(fds[0].revents & POLLIN))
			return NULL;
	}
}

static int listener_open(struct receive_bench *b, struct listener *l, struct krx_stats *stats, struct ktrxer_error *err)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	struct krx_rule rule = {
		.op = KRX_CAPTURE_DROP, .proto = KTRXER_UDP, .from = b->path.source, .to = b->path.to, .to_port = PORT
	};
	int rc;

	rule.from_prefix = rule.to_prefix = b->path.to.family == AF_INET ? 32 : 128;
	memset(l, 0, sizeof *l);
	l->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (l->stop_fd < 0)
		return ktrxer_fail(err, -errno, "no eventfd");
	options.device = b->net.far_device;
	options.backend = "xdp";
	options.ring_bytes = (uint32_t)b->o->ring;
	rc = bench_net_far(&b->net);
	if (!rc) {
		rc = krx_open(&l->rx, &options, &rule, 1, err);
		if (bench_net_near(&b->net) < 0 && !rc)
			rc = ktrxer_fail(err, -EIO, "no route from the far host to this one");
	}
	if (!rc)
		rc = krx_stats(l->rx, stats, NULL, 0);
	if (!rc)
		rc = cli_thread_start(&l->thread, "receiver", listen_thread, l);
	if (rc) {
		krx_close(l->rx);
		close(l->stop_fd);
	}
	return rc;
}

static void listener_stop(struct listener *l)
{
	const uint64_t one = 1;

	if (write(l->stop_fd, &one, sizeof one) < 0)
		return;
	pthread_join(l->thread, NULL);
}

static void listener_close(struct listener *l)
{
	krx_close(l->rx);
	close(l->stop_fd);
}

static int frame_make(struct receive_bench *b, struct template *t, struct ktrxer_error *err)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;

	spec.path = &b->path;
	spec.proto = KTRXER_UDP;
	spec.from_port = 41000;
	spec.to_port = PORT;
	spec.payload_length = (uint32_t)b->o->payload;
	return template_make(t, &spec, err);
}

static int send_all(struct receive_bench *b, struct ktx *tx, const struct template *t, uint64_t count,
		    struct ktrxer_error *err)
{
	const struct opt_rate *rate = &b->o->rate;
	struct ktx_slot slot;
	uint64_t start = ktrxer_now_ns() + START_AHEAD_NS + count * 150; /* the time that filling takes */

	for (uint64_t i = 0; i < count; i++) {
		const uint64_t bunch = i / BUNCH * BUNCH;
		struct ktx_probe probe = { .id = i, .length = t->length };
		int rc = ktx_reserve(tx, &slot);

		if (rc < 0)
			return ktrxer_fail(err, rc, "no slot for probe %llu", (unsigned long long)i);
		probe.at_ns = start + (rate->given ? bunch * (uint64_t)KTRXER_NS_PER_S * rate->den / rate->num : 0);
		probe.flags = i % BUNCH != BUNCH - 1 && i + 1 < count ? KTX_TRAIN_GOES_ON : 0;
		template_fill(t, slot.frame, i);
		rc = ktx_commit(tx, &probe, err);
		if (rc < 0)
			return rc;
	}
	while (!cli_stopped(b->cli))
		if (ktx_drain(tx, ktrxer_now_ns() + 50 * KTRXER_NS_PER_MS) == 0)
			break;
	return 0;
}

/* Waits until the receiver has captured all sent probes, or captures no more. */
static void settle(const struct listener *l, uint64_t sent)
{
	uint32_t seen = atomic_load(&l->captured);
	uint64_t since = ktrxer_now_ns();
	const struct timespec nap = { .tv_nsec = 2000000 };

	while (seen < sent && ktrxer_now_ns() < since + SETTLE_NS) {
		uint32_t now;

		nanosleep(&nap, NULL);
		now = atomic_load(&l->captured);
		if (now != seen)
			since = ktrxer_now_ns();
		seen = now;
	}
}

struct round_result {
	uint64_t sent, captured, matched, lost, first_ns, last_ns;
	struct bench_quiet quiet;
	char note[400]; /* of the receiver, which is closed by then */
};

static int one_round(struct receive_bench *b, const struct template *t, uint64_t count, struct round_result *r,
		     struct krx_stats *stats, struct ktrxer_error *err)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct krx_rule_stats rule = { 0 };
	struct ktx_accounts accounts;
	struct listener l;
	struct ktx *tx = NULL;
	int rc = listener_open(b, &l, stats, err);

	if (rc < 0)
		return rc;
	options.device = b->net.near_device;
	options.engine = "live";
	options.purpose = KTX_FOR_RATE;
	options.flags = KTX_NO_STAMPS;
	options.slots = (uint32_t)count;
	options.frame_size = t->length;
	options.reports = KTX_REPORT_NONE;
	rc = ktx_open(&tx, &options, err);
	if (rc == 0) {
		bench_watch_begin(b->watch);
		rc = send_all(b, tx, t, count, err);
		ktx_accounts(tx, &accounts);
		settle(&l, accounts.sent);
		r->quiet = bench_watch_end(b->watch);
		r->sent = accounts.sent;
	}
	ktx_close(tx);
	listener_stop(&l);
	if (rc == 0)
		rc = krx_stats(l.rx, stats, &rule, 1);
	if (rc == 0)
		snprintf(r->note, sizeof r->note, "%s", stats->note);
	r->matched = rule.matched;
	r->captured = rule.captured;
	r->lost = stats->lost;
	r->first_ns = l.first_ns;
	r->last_ns = l.last_ns;
	if (rc == 0 && r->matched != r->captured + r->lost)
		rc = ktrxer_fail(err, -EBADMSG, "its accounts do not close: %llu matched, %llu captured, %llu lost",
				 (unsigned long long)r->matched, (unsigned long long)r->captured,
				 (unsigned long long)r->lost);
	listener_close(&l);
	return rc;
}

static void sample_put(struct receive_bench *b, const struct round_result *r, uint64_t round)
{
	struct json *sample = receive_sample(b, "rate", "capture+drop", 0, 1, round);

	if (!sample)
		return;
	bench_taken_sent(sample, r->sent);
	bench_taken_captured(sample, r->captured);
	bench_taken_lost(sample, r->lost + (r->sent > r->matched ? r->sent - r->matched : 0));
	bench_taken_first_ns(sample, r->first_ns);
	bench_taken_last_ns(sample, r->last_ns);
	out_put(b->cli, sample);
}

int receive_rate(struct receive_bench *b, struct ktrxer_error *err)
{
	const uint64_t pps = b->o->rate.given ? b->o->rate.num / b->o->rate.den : FLOOD_PPS;
	uint64_t count = b->o->for_ns / 1000 * pps / 1000000;
	struct krx_stats stats = { .note = "" };
	struct template t = { 0 };
	char note[400] = "";
	int rc;

	if (count > SLOTS_MAX)
		count = SLOTS_MAX;
	rc = frame_make(b, &t, err);
	/* Round -1 warms up. */
	for (int64_t round = -1; rc == 0 && round < (int64_t)b->o->rounds && !cli_stopped(b->cli); round++) {
		struct round_result r = { 0 };

		rc = one_round(b, &t, count, &r, &stats, err);
		if (rc < 0) {
			/* Without an engine to send with, or without XDP, the other parts are still measured. */
			if (rc == -EBADMSG)
				break;
			reason_bench_no_rate(b->cli, err->text);
			rc = 0;
			break;
		}
		memcpy(note, r.note, sizeof note);
		if (round < 0)
			continue;
		b->stalled += r.quiet.stalled;
		sample_put(b, &r, (uint64_t)round);
	}
	template_free(&t);
	if (rc == 0 && note[0])
		receive_note(b, note);
	return rc;
}
