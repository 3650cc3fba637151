/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A sender's session against a reflector that says what it likes. First byte: which kind of session; then steps: one
 * byte that says what happens, and for an answer one of length and its bytes. Whatever comes, the accounts must close.
 */
#include "clock_offset.h"
#include "stamp_packet.h"
#include "stamp_session.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REAL 1795000000000000000LL
#define TIME(n) (0xeaabfc8c00000000ULL + (n))

struct run {
	struct stamp_session *session;
	struct clock_offset *clock;
	bool auth;
	struct hmac_key key;
	uint64_t now, next;
	bool closed;
};

static void answer(struct run *r, const uint8_t *bytes, uint32_t length, bool right)
{
	const struct stamp_arrival a = { .received_ns = r->now,
					 .real_near_ns = REAL + (int64_t)r->now,
					 .source = KTRXER_STAMP_KERNEL };
	uint8_t packet[256];

	if (length)
		memcpy(packet, bytes, length);
	if (right && length >= stamp_base_length(r->auth)) { /* as far as a sender can check it */
		const uint32_t number = load_be32(packet + (r->auth ? 48 : 24));

		store_be64(packet + (r->auth ? 64 : 28), TIME(number));
		store_be16(packet + (r->auth ? 26 : 14), 9);
		if (r->auth)
			stamp_sign(packet, &r->key);
	}
	stamp_session_reply(r->session, packet, length, &a);
}

static void probe(struct run *r, bool sent)
{
	const struct ktx_report report = {
		.id = r->next, .status = sent ? KTX_SENT : KTX_FAILED, .at_ns = r->now, .sent_ns = r->now
	};

	if (stamp_session_commit(r->session, r->next, TIME(r->next)) < 0)
		return;
	stamp_session_report(r->session, &report);
	r->next++;
}

static void take(struct run *r, bool flush)
{
	struct stamp_sample sample;
	uint64_t number;

	while (stamp_session_lost(r->session, r->now, &number))
		;
	while (stamp_session_sample(r->session, r->now, flush, &sample)) {
		const struct clock_exchange exchange = { .t1_ns = sample.t1_ns,
							 .t2_ns = sample.t2_real_ns,
							 .t3_ns = sample.t3_real_ns,
							 .t4_ns = sample.t4_ns,
							 .free_running = sample.number % 3 };

		clock_offset_add(r->clock, &exchange);
	}
}

static void check(struct run *r)
{
	struct stamp_session_counts c;
	struct clock_offset_result result;

	stamp_session_counts(r->session, &c);
	if (c.sent != c.received + c.lost + c.too_late + c.waiting)
		abort();
	if (c.lost != c.lost_up + c.lost_down + c.lost_unknown)
		abort();
	if (c.lost_up > c.lost || c.lost_down > c.lost || c.lost_unknown > c.lost)
		abort();
	clock_offset_settle(r->clock);
	clock_offset_result(r->clock, CLOCK_OFFSET_LONGEST, &result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = bytes_of(data, size);
	const uint8_t how = bytes_u8(&b);
	struct run r = { .auth = how & 1, .now = 1000000000 };
	struct stamp_session_options o = { .window = 16, .timeout_ns = 1000000, .ssid = 9, .follow_up = how & 2 };

	hmac_key_set(&r.key, "", 0);
	o.auth_key = r.auth ? &r.key : NULL;
	o.tlv_key = !r.auth && how & 4 ? &r.key : NULL;
	if (stamp_session_new(&r.session, &o) < 0 || clock_offset_new(&r.clock) < 0)
		abort();
	for (int i = 0; i < 8; i++)
		probe(&r, true);
	while (bytes_left(&b)) {
		const uint8_t step = bytes_u8(&b);
		uint32_t length;

		r.now += (uint64_t)(step >> 4) * 10000;
		if (step % 8 < 2) {
			probe(&r, step % 8 == 0);
		} else if (step % 8 == 2) {
			take(&r, false);
		} else if (step % 8 == 3 && step >= 0xf0 && !r.closed) {
			stamp_session_close(r.session, r.next);
			r.closed = true;
		} else {
			length = bytes_u8(&b);
			if (length > bytes_left(&b))
				length = (uint32_t)bytes_left(&b);
			answer(&r, bytes_take(&b, length), length, step % 8 > 3);
		}
	}
	r.now += 2000000;
	take(&r, true);
	check(&r);
	if (!r.closed)
		stamp_session_close(r.session, r.next);
	stamp_session_unsettled(r.session);
	check(&r);
	stamp_session_free(r.session);
	clock_offset_free(r.clock);
	return 0;
}
