/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "reflector.h"

#include "base_limits.h"
#include "limiter.h"
#include "reflector_session.h"
#include "reflector_tlv.h"
#include "stamp_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
	/* bytes that cost as much as one small answer: a flood of large ones is 42 Mbit/s, not 737 */
	KTRXER_REFLECTOR_UNIT = 512,
	KTRXER_REFLECTOR_BURST_MS = 100, /* of --max-answer-bitrate: so long the limit of all may be exceeded */
};

const char *const reflector_verdict_names[REFLECTOR_VERDICTS] = {
	"answered",      "too_short",     "too_long",   "own_port", "source_address",
	"group_address", "answer_itself", "wrong_hmac", "rate",     "rate_of_all",
};

enum { REVIEWED = 256 }; /* places in one turn of the loop: some 20 us */

struct reflector {
	struct reflector_options options;
	struct hmac_key auth_key, tlv_key;
	struct limiter *limiter;
	uint64_t full_ns; /* when the bucket of all answers will be full again */
	bool synchronised, adjusted_seen;
	int64_t adjusted_from_ns;
	uint16_t error; /* as it goes into the packet */
	struct reflector_counts counts;
	struct reflector_sessions sessions;
};

int reflector_new(struct reflector **out, const struct reflector_options *options)
{
	struct reflector *r = calloc(1, sizeof *r);

	*out = NULL;
	if (!r || limiter_new(&r->limiter, options->rate, options->burst, options->secret) < 0) {
		free(r);
		return -ENOMEM;
	}
	r->options = *options;
	if (options->auth_key) {
		r->auth_key = *options->auth_key;
		r->options.auth_key = &r->auth_key;
	}
	if (options->tlv_key) {
		r->tlv_key = *options->tlv_key;
		r->options.tlv_key = &r->tlv_key;
	}
	r->sessions.secret = limiter_mix(~options->secret);
	r->sessions.ended = options->ended;
	r->sessions.context = options->context;
	reflector_set_clock(r, false, UINT64_MAX);
	*out = r;
	return 0;
}

void reflector_free(struct reflector *r)
{
	if (!r)
		return;
	limiter_free(r->limiter);
	secret_forget(&r->auth_key, sizeof r->auth_key);
	secret_forget(&r->tlv_key, sizeof r->tlv_key);
	free(r);
}

void reflector_set_clock(struct reflector *r, bool synchronised, uint64_t bound_ns)
{
	const struct stamp_error error = { .synchronised = synchronised, .ptp = r->options.ptp, .bound_ns = bound_ns };

	r->synchronised = synchronised;
	r->error = stamp_error_write(&error);
}

/* True if one host can have this address. A packet from another address is forged, or a mistake. */
static bool is_one_host(const struct ktrxer_addr *addr)
{
	const uint8_t *b = addr->bytes;

	if (addr->family == AF_INET)
		return b[0] != 0 && b[0] < 224;
	if (addr->family != AF_INET6 || b[0] == 0xff)
		return false;
	for (int i = 0; i < 16; i++)
		if (b[i])
			return true;
	return false;
}

static bool is_own_port(const struct reflector *r, uint16_t port)
{
	for (size_t i = 0; i < sizeof r->options.own_ports / sizeof *r->options.own_ports && r->options.own_ports[i];
	     i++)
		if (port == r->options.own_ports[i])
			return true;
	return false;
}

/* The limit of all answers. */
static bool all_take(struct reflector *r, uint32_t length, uint64_t now_ns)
{
	if (!r->options.max_bps)
		return true;
	return limiter_bucket_take(&r->full_ns, length * 8 * (uint64_t)KTRXER_NS_PER_S / r->options.max_bps,
				   KTRXER_REFLECTOR_BURST_MS * (uint64_t)KTRXER_NS_PER_MS, now_ns);
}

/* The cheap reasons first: under attack they are what counts. */
static enum reflector_verdict judge(struct reflector *r, const uint8_t *packet, uint32_t length, uint32_t whole,
				    const struct reflector_arrival *a)
{
	const bool auth = r->options.auth_key != NULL;

	if (length < stamp_base_length(auth))
		return REFLECTOR_SHORT;
	if (whole > length || length > KTRXER_REFLECTOR_PACKET_MAX)
		return REFLECTOR_LONG;
	if (!a->from_port || a->from_port == a->to_port || is_own_port(r, a->from_port))
		return REFLECTOR_PORT;
	if (!is_one_host(&a->from))
		return REFLECTOR_SOURCE;
	if (a->to_group || !is_one_host(&a->to))
		return REFLECTOR_TARGET;
	if (stamp_looks_reflected(packet, length, auth))
		return REFLECTOR_REFLECTED;
	/*
	 * Check it before the rate: packets that a forger sends in a client's name must not use up the client's rate.
	 */
	if (auth && !stamp_is_signed(packet, r->options.auth_key))
		return REFLECTOR_HMAC;
	if (!limiter_take(r->limiter, &a->from, 1 + (length - 1) / KTRXER_REFLECTOR_UNIT, a->now_ns))
		return REFLECTOR_RATE;
	return all_take(r, length, a->now_ns) ? REFLECTOR_ANSWER : REFLECTOR_RATE_ALL;
}

enum reflector_verdict reflector_answer(struct reflector *r, uint8_t *packet, uint32_t length, uint32_t whole,
					const struct reflector_arrival *a, struct reflector_answer *answer)
{
	const bool auth = r->options.auth_key != NULL;
	const uint64_t granted = auth || a->trusted ? r->options.dscp_trusted : r->options.dscp_granted;
	struct reflector_tlv_context c = { .arrival = a,
					   .auth = auth,
					   .ptp = r->options.ptp,
					   .synchronised = r->synchronised,
					   .dscp_granted = granted,
					   .rate = r->options.rate,
					   .refused = (uint32_t)(r->counts.verdicts[REFLECTOR_RATE] +
								 r->counts.verdicts[REFLECTOR_RATE_ALL]),
					   .tos = granted >> (a->tos >> 2) & 1 ? a->tos & 0xfc : 0 };
	struct reflector_session *session = NULL;
	const enum reflector_verdict verdict = judge(r, packet, length, whole, a);
	struct stamp_reply reply;
	struct stamp_probe probe;

	r->counts.received++;
	r->counts.verdicts[verdict]++;
	if (KTRXER_SERVER_EXTRAS)
		r->counts.bytes_in += whole;
	if (verdict != REFLECTOR_ANSWER)
		return verdict;
	if (KTRXER_SERVER_EXTRAS)
		r->counts.bytes_out += length;
	stamp_probe_read(&probe, packet, length, auth);
	if (!r->options.stateless)
		session = reflector_session_of(&r->sessions, a, probe.ssid, probe.seq);
	if (!r->adjusted_seen)
		r->adjusted_from_ns = a->adjusted.ns;
	r->adjusted_seen = true;
	c.adjusted_from_ns = r->adjusted_from_ns;
	reply = (struct stamp_reply){ .seq = session ? session->sent : probe.seq,
				      .error = r->error,
				      .ssid = probe.ssid,
				      .received = stamp_time_of_ns(a->received_real_ns, r->options.ptp),
				      .sender_seq = probe.seq,
				      .sender_time = probe.time,
				      .sender_error = probe.error,
				      .sender_ttl = a->ttl };
	if (session)
		reflector_session_count(session, probe.seq, length);
	stamp_reply_write(packet, &reply, auth);
	c.session = session;
	c.key = auth ? r->options.auth_key : r->options.tlv_key;
	if (length > stamp_base_length(auth))
		reflector_tlvs(packet, length, probe.seq, &c);
	r->counts.tlv_integrity += c.integrity_bad;
	*answer = (struct reflector_answer){ .tos = c.tos,
					     .auth = auth,
					     .follow = c.follow,
					     .seq = reply.seq,
					     .session = session ? reflector_session_name(&r->sessions, session)
								: UINT32_MAX };
	return REFLECTOR_ANSWER;
}

void reflector_finish(const struct reflector *r, uint8_t *packet, const struct reflector_answer *answer,
		      int64_t now_real_ns)
{
	stamp_reply_set_time(packet, stamp_time_of_ns(now_real_ns, r->options.ptp), answer->auth);
	if (answer->auth)
		stamp_sign(packet, r->options.auth_key);
}

void reflector_sent(struct reflector *r, uint32_t name, uint32_t seq, int64_t real_ns, bool nic)
{
	struct reflector_session *s = reflector_session_by_name(&r->sessions, name);
	const struct reflector_left left = { .real_ns = real_ns,
					     .seq = seq,
					     .method = nic ? STAMP_BY_HARDWARE : STAMP_BY_SOFTWARE };

	if (s)
		reflector_session_left(s, &left);
}

void reflector_review(struct reflector *r, bool all, uint64_t now_ns)
{
	reflector_sessions_review(&r->sessions, all ? KTRXER_REFLECTOR_SESSIONS : REVIEWED, all, now_ns);
}

void reflector_counts(const struct reflector *r, struct reflector_counts *counts)
{
	*counts = r->counts;
	counts->sessions = r->sessions.made;
	counts->without_session = r->sessions.refused;
}
