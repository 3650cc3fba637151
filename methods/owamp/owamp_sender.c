/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_sender.h"

#include "clock.h"
#include "error.h"
#include "path_find.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
	AT_ONCE = 32, /* packets of one call: other sources get their turn */
	REPORTS = 32,
	PORT_TRIES = 16,
	PORT_ANY = 9,
	SLOTS = 16,           /* without stamps a slot is free when its packet has left */
	SLOTS_STAMPED = 1024, /* half of them for packets that wait in this host's own queue (lib/tx/tx_done.c) */
	SLOTS_BYTES = 4 << 20,
	TIME_AT = 4, /* in a test packet */
};
/* Committed so long before their time: a thread does not starve while the loop waits for a processor. */
#define AHEAD_NS (20 * KTRXER_NS_PER_MS)
#define AHEAD_CLIENT_NS (250 * KTRXER_NS_PER_MS)
#define DRAIN_NS (300 * (uint64_t)KTRXER_NS_PER_MS)

/* ---------------------------------------------------------------------------------------------------------- reports */

/* Ranges stay in order: a packet that expires here comes before the report of an earlier one that failed. */
static void skip(struct owamp_sender *s, uint32_t number)
{
	struct owamp_skip *one;
	uint32_t at = s->skips;

	s->skipped++;
	while (at && s->skip[at - 1].first > number)
		at--;
	one = &s->skip[at];
	if (at && one[-1].last + 1 == number) {
		one[-1].last = number;
	} else if (at < s->skips && one->first == number + 1) {
		one->first = number;
	} else if (s->skips < OWAMP_SKIPS_MOST) {
		memmove(one + 1, one, (s->skips++ - at) * sizeof *one);
		*one = (struct owamp_skip){ number, number };
	}
}

static void reports_take(struct owamp_sender *s)
{
	struct ktx_network_error ignored[4];
	struct ktx_report reports[REPORTS];
	struct ktrxer_clock_pair pair;

	while (ktx_network_errors(s->tx, ignored, 4) > 0)
		;
	for (int n; (n = ktx_reports(s->tx, reports, REPORTS)) > 0;) {
		ktrxer_clock_pair_read(&pair);
		for (int i = 0; i < n; i++) {
			const struct ktx_report *r = &reports[i];

			/* Receivers drop a packet that has left after its time-out. */
			if (r->status == KTX_FAILED || r->status == KTX_SKIPPED ||
			    (r->status == KTX_SENT && r->sent_ns > r->at_ns + s->o.timeout_ns))
				skip(s, (uint32_t)r->id);
			else if (s->sched_real_ns && r->sent_source == KTX_SENT_SCHED)
				s->sched_real_ns[r->id] = pair.real_ns - (int64_t)(pair.mono_ns - r->sent_ns);
		}
	}
}

/* ---------------------------------------------------------------------------------------------------------- sending */

/* False: no room now. A packet that cannot be committed, because the device is gone, counts as failed. */
static bool commit(struct owamp_sender *s)
{
	const struct owamp_test_packet p = { .seq = s->next, .error = s->error };
	const uint64_t at_ns = s->due_ns > 0 ? (uint64_t)s->due_ns : 1;
	const struct ktx_probe probe = { .id = s->next, .at_ns = at_ns, .length = s->length };
	struct ktx_slot slot;
	int rc = ktx_reserve(s->tx, &slot);

	if (rc < 0)
		return false;
	memcpy(slot.frame, s->frame, s->length);
	owamp_test_write(slot.frame + s->length - OWAMP_TEST_BYTES - s->o.padding, &p);
	ktrxer_frame_checksum(slot.frame, s->length, KTRXER_LINK_RAW_IP);
	rc = ktx_commit(s->tx, &probe, NULL);
	if (rc < 0) {
		skip(s, s->next);
		s->uncommitted++;
		s->error_last = rc;
	}
	return true;
}

/* Returns the time of the next commit; KTRXER_NEVER: there is none. */
static uint64_t commit_soon(struct owamp_sender *s)
{
	const int64_t ahead_ns = s->o.client ? AHEAD_CLIENT_NS : AHEAD_NS;

	for (int i = 0; s->next < s->packets; i++) {
		const int64_t now_ns = (int64_t)ktrxer_now_ns();
		uint64_t at;

		if (!s->planned && owamp_schedule_next(&s->schedule, &at) < 0) {
			s->packets = s->next;
			break;
		}
		if (!s->planned)
			s->due_ns = s->start_ns + (int64_t)owamp_time_to_ns(at);
		s->planned = true;
		if (s->due_ns > now_ns + ahead_ns)
			return (uint64_t)(s->due_ns - ahead_ns / 2);
		if (i == AT_ONCE)
			return 0;
		if (s->due_ns < now_ns - (int64_t)s->o.timeout_ns) {
			skip(s, s->next);
			s->expired++;
		} else if (!commit(s)) {
			return s->o.client ? KTRXER_NEVER - 1 : 0; /* a thread makes room, and reports that */
		}
		s->planned = false;
		s->next++;
	}
	return KTRXER_NEVER;
}

static void sender_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct owamp_sender *s = (struct owamp_sender *)((char *)timer - offsetof(struct owamp_sender, timer));
	uint64_t pump_ns = KTRXER_NEVER, commit_ns;

	(void)now_ns;
	if (!s->over)
		(void)ktx_pump_due(s->tx, &pump_ns);
	commit_ns = s->over ? KTRXER_NEVER : commit_soon(s);
	(void)ktx_pump(s->tx, &pump_ns);
	reports_take(s);
	timer->at_ns = commit_ns < pump_ns ? commit_ns : pump_ns;
	if (s->over || commit_ns != KTRXER_NEVER)
		return;
	if (s->due_ns > (int64_t)ktrxer_now_ns()) {
		timer->at_ns = (uint64_t)s->due_ns < pump_ns ? (uint64_t)s->due_ns : pump_ns;
		return;
	}
	s->over = true;
	if (s->o.ended)
		s->o.ended(s->o.context);
}

static void reports_ready(struct loop_source *source, uint32_t events)
{
	struct owamp_sender *s = (struct owamp_sender *)source;

	(void)events;
	sender_due(&s->timer, ktrxer_now_ns());
}

/* ---------------------------------------------------------------------------------------------------- begin and end */

static struct ktrxer_frame_spec frame_of(const struct owamp_sender *s, uint16_t to_port)
{
	struct ktrxer_frame_spec f = KTRXER_FRAME_SPEC_INIT;

	f.path = &s->path;
	f.proto = KTRXER_UDP;
	f.from_port = s->port;
	f.to_port = to_port;
	f.tos = (uint8_t)(s->o.dscp << 2);
	f.ttl = OWAMP_TTL;
	f.may_fragment = !s->path.mtu;
	f.payload_length = OWAMP_TEST_BYTES + s->o.padding;
	f.link = KTRXER_LINK_RAW_IP;
	return f;
}

static int tx_open(struct owamp_sender *s, struct ktrxer_error *err)
{
	struct ktx_options t = KTX_OPTIONS_INIT;

	t.engine = "udp";
	t.device = s->o.to.scope_id ? s->path.device.name : NULL;
	t.wait = KTX_WAIT_SLEEP;
	t.flags = s->o.client ? 0 : KTX_CALLER_PUMPS | KTX_NO_LOCK | KTX_NO_STAMPS;
	/* No second try after a drop of this host's full queue: it would be late, and the receiver gets the number. */
	t.retry_ns = 1;
	t.late_ns = s->o.client ? s->o.late_ns : s->o.timeout_ns;
	t.late = s->o.client ? KTX_LATE_CATCH_UP : KTX_LATE_SKIP;
	t.frame_size = s->length;
	t.slots = s->o.client ? SLOTS_STAMPED : SLOTS;
	while (t.slots > SLOTS && (uint64_t)t.slots * t.frame_size > SLOTS_BYTES)
		t.slots /= 2;
	t.send_time = KTX_SEND_TIME_NTP;
	t.send_time_at = s->length - OWAMP_TEST_BYTES - s->o.padding + TIME_AT;
	return ktx_open(&s->tx, &t, err);
}

static int port_find(struct owamp_sender *s, struct ktrxer_error *err)
{
	int rc = -EADDRINUSE;

	for (int tries = 0; tries < PORT_TRIES && rc == -EADDRINUSE; tries++) {
		struct ktrxer_frame_spec f;

		if (getrandom(&s->port, sizeof s->port, 0) != sizeof s->port)
			return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
		s->port |= 49152;
		f = frame_of(s, PORT_ANY);
		rc = ktrxer_frame_build(s->frame, s->length, &f);
		rc = rc < 0 ? ktrxer_fail(err, rc, "no packet fits this route")
			    : ktx_check(s->tx, s->frame, s->length, err);
	}
	return rc;
}

int owamp_sender_open(struct owamp_sender *s, const struct owamp_sender_options *o, struct ktrxer_error *err)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	const struct sock_fprog nothing = { .len = 1, .filter = code };
	struct ktrxer_frame_spec f;
	int rc;

	memset(s, 0, offsetof(struct owamp_sender, skip));
	s->o = *o;
	s->timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = sender_due };
	s->source = (struct loop_source){ .fd = -1, .ready = reports_ready };
	loop_timer_add(o->loop, &s->timer);
	if ((rc = path_find(&s->path, NULL, &o->from, &o->to, false, err)) < 0)
		return rc;
	f = frame_of(s, PORT_ANY);
	s->length = (uint32_t)ktrxer_frame_header_length(&f) + f.payload_length;
	if (s->length > s->path.mtu)
		s->path.mtu = 0; /* the kernel sends it in fragments */
	s->frame = malloc(s->length);
	if (!s->frame)
		return ktrxer_fail(err, -ENOMEM, "no memory for a packet");
	if ((rc = tx_open(s, err)) < 0 || (rc = port_find(s, err)) < 0)
		return rc;
	s->source.fd = ktx_fd(s->tx);
	/* The socket sends alone: what others send to it must not take the room of its stamps and errors. */
	(void)!setsockopt(ktx_reply_fd(s->tx), SOL_SOCKET, SO_ATTACH_FILTER, &nothing, sizeof nothing);
	rc = loop_watch(o->loop, &s->source, EPOLLIN);
	if (rc < 0)
		s->source.fd = -1;
	return rc < 0 ? ktrxer_fail(err, rc, "the event loop does not take a transmitter") : 0;
}

int owamp_sender_begin(struct owamp_sender *s, const struct owamp_sender_plan *plan, struct ktrxer_error *err)
{
	struct ktrxer_frame_spec f = frame_of(s, plan->to_port);
	struct ktrxer_clock_pair pair;
	int rc = owamp_schedule_begin(&s->schedule, plan->sid, plan->slots, plan->slot_count);

	s->packets = plan->packets;
	s->error = plan->error;
	if (rc == 0 && s->o.client && !(s->sched_real_ns = calloc(plan->packets, sizeof *s->sched_real_ns)))
		rc = -ENOMEM;
	if (rc < 0)
		return ktrxer_fail(err, rc, "the sender of a session has no memory, or its schedule is not possible");
	(void)ktrxer_frame_build(s->frame, s->length, &f);
	/* Links that compress must not make packets shorter (RFC 4656, 4.1.2). */
	if (!s->o.zeros)
		(void)!getrandom(s->frame + s->length - s->o.padding, s->o.padding, GRND_NONBLOCK);
	ktrxer_clock_pair_read(&pair);
	s->start_ns = (int64_t)pair.mono_ns + (plan->start_real_ns - pair.real_ns);
	s->timer.at_ns = 0;
	return 0;
}

void owamp_sender_stop(struct owamp_sender *s)
{
	struct ktx_accounts a;

	s->over = true;
	ktx_cancel(s->tx);
	if (s->o.client)
		(void)ktx_drain(s->tx, ktrxer_now_ns() + DRAIN_NS);
	reports_take(s);
	/* The last ones that were committed are those that were cancelled. */
	ktx_accounts(s->tx, &a);
	s->next -= (uint32_t)a.cancelled;
}

void owamp_sender_accounts(const struct owamp_sender *s, struct ktx_accounts *accounts)
{
	ktx_accounts(s->tx, accounts);
	accounts->requested += s->uncommitted + s->expired;
	accounts->failed += s->uncommitted;
	accounts->skipped += s->expired;
	if (s->uncommitted)
		accounts->last_error = s->error_last;
}

void owamp_sender_end(struct owamp_sender *s)
{
	if (!s->o.loop)
		return;
	loop_timer_remove(s->o.loop, &s->timer);
	if (s->source.fd >= 0)
		loop_unwatch(s->o.loop, &s->source);
	ktx_close(s->tx);
	owamp_schedule_end(&s->schedule);
	free(s->frame);
	free(s->sched_real_ns);
	s->o.loop = NULL;
}
