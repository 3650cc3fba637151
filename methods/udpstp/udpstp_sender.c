/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "udpstp_sender.h"

#include "clock.h"
#include "limiter.h"
#include "udpstp_test.h"

#include <errno.h>

enum { RANDOM_LEAST = 64, IDLE_US = 50000 };

static uint64_t random_next(struct udpstp_sender *s)
{
	s->seed += 0x9e3779b97f4a7c15ULL;
	return limiter_mix(s->seed);
}

/* The bytes of payload that this family sends for a size of the table; 0: no datagram. */
static uint32_t size_of(struct udpstp_sender *s, uint32_t size)
{
	if (size & UDPSTP_RANDOM_SIZE) {
		size &= ~UDPSTP_RANDOM_SIZE;
		if (size > RANDOM_LEAST)
			size = RANDOM_LEAST + (uint32_t)(random_next(s) % (size - RANDOM_LEAST + 1));
	}
	if (!size)
		return 0;
	if (s->v6 && size > UDPSTP_HEADERS_V6 - UDPSTP_HEADERS_V4)
		size -= UDPSTP_HEADERS_V6 - UDPSTP_HEADERS_V4;
	return size < UDPSTP_LOAD_HEAD ? UDPSTP_LOAD_HEAD : size;
}

static void prepare(struct udpstp_sender *s, uint32_t i, uint32_t size)
{
	const uint32_t rest = size - UDPSTP_LOAD_HEAD;
	const size_t from = s->random_payload ? random_next(s) % (UDPSTP_POOL - UDPSTP_PAYLOAD_MAX) : 0;

	s->head.sequence++;
	s->head.payload = (uint16_t)size;
	udpstp_load_write(s->heads[i], &s->head);
	s->parts[i][0] = (struct iovec){ s->heads[i], UDPSTP_LOAD_HEAD };
	s->parts[i][1] = (struct iovec){ s->pool + from, rest };
	s->messages[i].msg_hdr = (struct msghdr){ .msg_iov = s->parts[i], .msg_iovlen = rest ? 2 : 1 };
}

/* `at_ns`: scheduled time of the burst; 0: none. */
static void account_sent(struct udpstp_sender *s, uint32_t count, uint64_t at_ns, uint64_t sent_ns)
{
	struct ktx_accounts *a = &s->accounts;
	const int64_t lateness_ns = (int64_t)(sent_ns - at_ns);

	if (!a->sent)
		a->first_ns = sent_ns;
	a->last_ns = sent_ns;
	a->sent += count;
	a->queued += count;
	if (!at_ns)
		return;
	if (lateness_ns > (int64_t)UDPSTP_LATE_NS)
		a->late += count;
	for (uint32_t i = 0; i < count; i++)
		ktrxer_hist_record(s->lateness, lateness_ns);
}

static void account_failed(struct udpstp_sender *s, uint32_t count, int error)
{
	s->accounts.failed += count;
	s->accounts.last_error = -error;
	if (error == ENOBUFS || error == EAGAIN)
		s->refused += count;
}

/*
 * A datagram that the queue of this host drops keeps its number, so that the search sees a loss. Datagrams that the
 * kernel does not take have none.
 */
static void send_prepared(struct udpstp_sender *s, uint32_t count, uint64_t at_ns)
{
	uint32_t at = 0;
	bool again = false;

	s->accounts.requested += count;
	while (at < count) {
		const uint64_t call_ns = ktrxer_now_ns();
		const int n = sendmmsg(s->fd, s->messages + at, count - at, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		s->accounts.tries += n < 0 ? 1 : (uint32_t)n;
		if (n < 0 && errno == ENOBUFS) {
			account_failed(s, 1, errno);
			at++;
			continue;
		}
		/* The error of an earlier datagram (ICMP) is read once; the next call sends. */
		if (n < 0 && errno != EAGAIN && !again) {
			again = true;
			continue;
		}
		if (n <= 0) {
			account_failed(s, count - at, errno);
			break;
		}
		for (int i = 0; i < n; i++)
			s->bytes += s->parts[at + (uint32_t)i][0].iov_len +
				    (s->messages[at + (uint32_t)i].msg_hdr.msg_iovlen > 1
					     ? s->parts[at + (uint32_t)i][1].iov_len
					     : 0);
		account_sent(s, (uint32_t)n, at_ns, call_ns);
		at += (uint32_t)n;
		again = false;
	}
	s->head.sequence -= count - at;
}

static void burst(struct udpstp_sender *s, uint64_t at_ns, uint32_t datagrams, uint32_t payload, uint32_t add)
{
	const int64_t real_ns = ktrxer_real_now_ns();
	uint32_t count = 0;

	s->head.sent_s = (uint32_t)(real_ns / KTRXER_NS_PER_S);
	s->head.sent_ns = (uint32_t)(real_ns % KTRXER_NS_PER_S);
	if (s->status_arrived_real_ns) {
		const int64_t held_ms = (real_ns - s->status_arrived_real_ns + KTRXER_NS_PER_MS / 2) / KTRXER_NS_PER_MS;

		s->head.answer_delay_ms = (uint16_t)(held_ms < 0 ? 0 : held_ms > UINT16_MAX ? UINT16_MAX : held_ms);
	}
	for (uint32_t i = 0; i < datagrams && i < UDPSTP_BURST - 1; i++) {
		const uint32_t size = size_of(s, payload);

		if (size)
			prepare(s, count++, size);
	}
	add = size_of(s, add);
	if (add)
		prepare(s, count++, add);
	if (count)
		send_prepared(s, count, at_ns);
}

static void send_least(struct udpstp_sender *s, uint64_t at_ns)
{
	burst(s, at_ns, 0, 0, UDPSTP_LOAD_HEAD + (s->v6 ? UDPSTP_HEADERS_V6 - UDPSTP_HEADERS_V4 : 0));
}

void udpstp_sender_one(struct udpstp_sender *s)
{
	send_least(s, 0);
}

void udpstp_sender_accounts(const struct udpstp_sender *s, struct ktx_accounts *accounts)
{
	*accounts = s->accounts;
	accounts->bytes = s->bytes + s->accounts.sent * (s->v6 ? UDPSTP_HEADERS_V6 : UDPSTP_HEADERS_V4);
}

/* --------------------------------------------------------------------------------------------------------- schedule */

static bool transmits(const struct udpstp_rate *rate, int which)
{
	return rate->interval_us[which] && (rate->burst[which] || (which && rate->add));
}

static void transmitter_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct udpstp_transmitter *t = (struct udpstp_transmitter *)timer;
	struct udpstp_sender *s = t->sender;
	const int w = t->which;
	const bool minimal = s->slow || s->head.action != UDPSTP_GOES_ON;
	const uint64_t interval_ns = (minimal ? IDLE_US : s->rate.interval_us[w]) * (uint64_t)1000;
	uint64_t at_ns = t->next_ns;

	t->next_ns = KTRXER_NEVER;
	if (minimal) {
		send_least(s, at_ns);
		t->next_ns = timer->at_ns = now_ns + interval_ns;
		return;
	}
	if (!transmits(&s->rate, w))
		return;
	if (now_ns > at_ns + UDPSTP_BEHIND_NS) {
		const uint64_t missed = (now_ns - at_ns) / interval_ns,
			       datagrams = missed * (s->rate.burst[w] + (w && s->rate.add));

		s->accounts.requested += datagrams;
		s->accounts.skipped += datagrams;
		s->accounts.late += datagrams;
		at_ns += missed * interval_ns;
	}
	burst(s, at_ns, s->rate.burst[w], s->rate.payload[w], w ? s->rate.add : 0);
	t->next_ns = timer->at_ns = at_ns + interval_ns;
}

void udpstp_sender_rate(struct udpstp_sender *s, const struct udpstp_rate *rate)
{
	const uint64_t now_ns = ktrxer_now_ns();

	s->rate = *rate;
	for (int w = 0; w < 2; w++) {
		struct udpstp_transmitter *t = &s->transmitters[w];
		const uint64_t soon_ns = now_ns + rate->interval_us[w] * (uint64_t)1000;

		if (!transmits(rate, w))
			t->next_ns = KTRXER_NEVER;
		else if (t->next_ns == KTRXER_NEVER || t->next_ns > soon_ns)
			t->next_ns = soon_ns;
		t->timer.at_ns = t->next_ns;
	}
}

void udpstp_sender_begin(struct udpstp_sender *s, struct loop *loop, int fd, bool v6, bool random_payload,
			 uint64_t seed)
{
	*s = (struct udpstp_sender){ .loop = loop,
				     .fd = fd,
				     .v6 = v6,
				     .random_payload = random_payload,
				     .seed = seed,
				     .lateness = ktrxer_hist_new() };
	for (size_t i = 0; random_payload && i < UDPSTP_POOL; i++)
		s->pool[i] = (uint8_t)random_next(s);
	for (int w = 0; w < 2; w++) {
		s->transmitters[w] = (struct udpstp_transmitter){
			.timer = { .at_ns = KTRXER_NEVER, .due = transmitter_due },
			.sender = s,
			.next_ns = KTRXER_NEVER,
			.which = w,
		};
		loop_timer_add(loop, &s->transmitters[w].timer);
	}
}

void udpstp_sender_end(struct udpstp_sender *s)
{
	for (int w = 0; w < 2 && s->loop; w++)
		loop_timer_remove(s->loop, &s->transmitters[w].timer);
	s->loop = NULL;
}
