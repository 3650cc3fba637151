/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_sender.h"

#include "clock.h"
#include "error.h"
#include "stamp_packet.h"
#include "txstamp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { AT_ONCE = 32 /* packets of one call: other sources get their turn */ };

static void over(struct owamp_sender *s)
{
	if (s->over)
		return;
	s->over = true;
	s->timer.at_ns = KTRXER_NEVER;
	if (s->o.ended)
		s->o.ended(s->o.context);
}

/* The time of the next packet; the end, when there is none. */
static void plan_next(struct owamp_sender *s)
{
	uint64_t at;

	if (s->next == s->o.packets || owamp_schedule_next(&s->schedule, &at) < 0) {
		over(s);
		return;
	}
	s->due_ns = s->timer.at_ns = s->start_ns + owamp_time_to_ns(at);
}

static void skip(struct owamp_sender *s)
{
	if (s->skips && s->skip[s->skips - 1].last + 1 == s->next)
		s->skip[s->skips - 1].last = s->next;
	else if (s->skips < OWAMP_SKIPS_MOST)
		s->skip[s->skips++] = (struct owamp_skip){ s->next, s->next };
}

static void on_sched(void *context, uint32_t key, int64_t real_ns)
{
	struct owamp_sender *s = context;

	if (key < s->stamped)
		s->sched_real_ns[s->number_of[key]] = real_ns;
}

static void on_stamp(void *context, uint32_t key, int64_t real_ns, enum ktx_departure_source source, bool nic_clock)
{
	(void)key;
	(void)real_ns;
	(void)source;
	(void)nic_clock;
	((struct owamp_sender *)context)->left++;
}

static void on_refusal(void *context, const struct ktx_network_error *error)
{
	(void)context;
	(void)error;
}

static void stamps_ready(struct loop_source *source, uint32_t events)
{
	struct owamp_sender *s = (struct owamp_sender *)source;
	const struct ktx_completions completions = {
		.stamp = on_stamp, .sched = on_sched, .refusal = on_refusal, .context = s
	};
	int pending;
	socklen_t length = sizeof pending;

	(void)events;
	ktrxer_txstamp_reap(s->o.fd, &completions);
	/* An error of ICMP would keep the socket ready. */
	(void)!getsockopt(s->o.fd, SOL_SOCKET, SO_ERROR, &pending, &length);
}

static bool send_packet(struct owamp_sender *s)
{
	const size_t length = OWAMP_TEST_BYTES + s->o.padding;
	int error = 0;

	for (int tries = 0; tries < 3; tries++) {
		const struct owamp_test_packet p = { .seq = s->next,
						     .time = stamp_time_of_ns(ktrxer_real_now_ns(), false),
						     .error = s->o.error };

		owamp_test_write(s->packet, &p);
		if (send(s->o.fd, s->packet, length, MSG_DONTWAIT) == (ssize_t)length)
			return true;
		error = errno;
		if (error == ENOBUFS || error == EAGAIN)
			break; /* a queue of this host is full */
		/* The error of an earlier datagram (ICMP) is read once; the next call sends. */
		stamps_ready(&s->source, 0);
	}
	s->error = error;
	return false;
}

static void sender_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct owamp_sender *s = (struct owamp_sender *)((char *)timer - offsetof(struct owamp_sender, timer));

	for (int i = 0; i < AT_ONCE && !s->over && s->due_ns <= now_ns; i++) {
		const bool sent = send_packet(s);

		/* A packet that the queue dropped has a stamp, too. */
		if (s->number_of && (sent || s->error == ENOBUFS))
			s->number_of[s->stamped++] = s->next;
		if (sent) {
			const uint64_t lateness_ns = ktrxer_now_ns() - s->due_ns;

			ktrxer_hist_record(s->lateness, (int64_t)lateness_ns);
			s->late += lateness_ns > s->o.late_ns;
			s->sent++;
		} else {
			skip(s);
		}
		s->next++;
		plan_next(s);
	}
	if (!s->over)
		timer->at_ns = s->due_ns;
}

static int stamps_begin(struct owamp_sender *s)
{
	int rc = ktrxer_txstamp_enable(s->o.fd);

	if (rc < 0 || ktrxer_txstamp_add_sched(s->o.fd) < 0)
		return 0; /* an old kernel: no stamps */
	s->sched_real_ns = calloc(s->o.packets, sizeof *s->sched_real_ns);
	s->number_of = calloc(s->o.packets, sizeof *s->number_of);
	if (!s->sched_real_ns || !s->number_of)
		return -ENOMEM;
	s->source = (struct loop_source){ .fd = s->o.fd, .ready = stamps_ready };
	rc = loop_watch(s->o.loop, &s->source, 0);
	s->watched = rc == 0;
	return rc;
}

int owamp_sender_begin(struct owamp_sender *s, const struct owamp_sender_options *o, struct ktrxer_error *err)
{
	const int on = 1;
	struct ktrxer_clock_pair pair;
	int64_t start_ns;
	int rc;

	memset(s, 0, offsetof(struct owamp_sender, packet));
	s->o = *o;
	s->timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = sender_due };
	loop_timer_add(o->loop, &s->timer);
	/* Without it a datagram that the queue of this host drops counts as sent (udp(7): ENOBUFS). */
	(void)!setsockopt(o->fd, SOL_IP, IP_RECVERR, &on, sizeof on);
	(void)!setsockopt(o->fd, SOL_IPV6, IPV6_RECVERR, &on, sizeof on);
	rc = owamp_schedule_begin(&s->schedule, o->sid, o->slots, o->slot_count);
	s->lateness = ktrxer_hist_new();
	if (rc == 0 && !s->lateness)
		rc = -ENOMEM;
	if (rc == 0 && o->stamps)
		rc = stamps_begin(s);
	if (rc < 0)
		return ktrxer_fail(err, rc, "the sender of a session has no memory, or its schedule is not possible");
	/* Links that compress must not make packets shorter (RFC 4656, 4.1.2). */
	(void)!getrandom(s->packet + OWAMP_TEST_BYTES, o->padding, GRND_NONBLOCK);
	ktrxer_clock_pair_read(&pair);
	start_ns = (int64_t)pair.mono_ns + (o->start_real_ns - pair.real_ns);
	s->start_ns = start_ns > (int64_t)pair.mono_ns ? (uint64_t)start_ns : pair.mono_ns;
	plan_next(s);
	return 0;
}

void owamp_sender_stop(struct owamp_sender *s)
{
	s->over = true;
	s->timer.at_ns = KTRXER_NEVER;
}

void owamp_sender_end(struct owamp_sender *s)
{
	if (!s->o.loop)
		return;
	loop_timer_remove(s->o.loop, &s->timer);
	if (s->watched)
		loop_unwatch(s->o.loop, &s->source);
	owamp_schedule_end(&s->schedule);
	ktrxer_hist_free(s->lateness);
	free(s->sched_real_ns);
	free(s->number_of);
	s->o.loop = NULL;
}
