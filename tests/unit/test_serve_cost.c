/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A packet that the reflector refuses costs less processor time than answering it would: a flood of an unauthenticated
 * peer costs the server least when it is refused. Both costs are measured in turn in one run, without the system calls:
 * receiving costs the same for both, and only an answer is sent.
 */
#include "cm.h"
#include "reflector.h"
#include "stamp_packet.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { PACKETS = 2000, ROUNDS = 25, LENGTH = 200 };

#define REAL_NOW 1795000000123456789LL

static uint64_t processor_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * KTRXER_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* A reflector, and a packet for it that has this verdict. */
struct side {
	struct reflector *reflector;
	struct reflector_arrival arrival;
	uint8_t packet[LENGTH];
	uint32_t length, whole;
	enum reflector_verdict verdict;
};

static void side_open(struct side *s, enum reflector_verdict verdict, const struct hmac_key *key)
{
	const bool auth = key != NULL;
	struct reflector_options o = { .auth_key = key,
				       .dscp_granted = REFLECTOR_DSCP_DEFAULT,
				       .dscp_trusted = REFLECTOR_DSCP_TRUSTED,
				       .own_ports = { 8620 },
				       .secret = 12345 };
	const struct stamp_probe probe = { .seq = 1, .time = 0x1122334455667788ULL, .error = 0x0102 };

	*s = (struct side){ .arrival = { .from = { .family = AF_INET, .bytes = { 192, 0, 2, 7 } },
					 .to = { .family = AF_INET, .bytes = { 198, 51, 100, 1 } },
					 .from_port = 50000,
					 .to_port = 862,
					 .ttl = 61,
					 .received_real_ns = REAL_NOW,
					 .now_ns = 1000 * (uint64_t)KTRXER_NS_PER_S },
			    .length = LENGTH,
			    .whole = LENGTH,
			    .verdict = verdict };
	stamp_probe_write(s->packet, &probe, auth);
	/* The rest is padding of one TLV, as most senders have it. */
	s->packet[stamp_base_length(auth) + 1] = STAMP_TLV_PADDING;
	s->packet[stamp_base_length(auth) + 3] = (uint8_t)(LENGTH - stamp_base_length(auth) - 4);
	if (auth)
		stamp_sign(s->packet, key);
	if (verdict == REFLECTOR_SHORT)
		s->length = s->whole = 43;
	if (verdict == REFLECTOR_LONG)
		s->whole = LENGTH + 1;
	if (verdict == REFLECTOR_PORT)
		s->arrival.from_port = 8620;
	if (verdict == REFLECTOR_SOURCE)
		s->arrival.from.bytes[0] = 224;
	if (verdict == REFLECTOR_TARGET)
		s->arrival.to_group = true;
	if (verdict == REFLECTOR_HMAC)
		s->packet[4] ^= 1;
	if (verdict == REFLECTOR_RATE)
		o.rate = o.burst = 1;
	if (verdict == REFLECTOR_RATE_ALL)
		o.max_bps = 1;
	assert_int_equal(reflector_new(&s->reflector, &o), 0);
	if (verdict == REFLECTOR_REFLECTED) {
		struct reflector_answer answer;

		assert_int_equal(reflector_answer(s->reflector, s->packet, LENGTH, LENGTH, &s->arrival, &answer),
				 REFLECTOR_ANSWER);
		reflector_finish(s->reflector, s->packet, &answer, REAL_NOW + 3000);
	}
}

/* Processor time of PACKETS packets. */
static uint64_t cost(struct side *s)
{
	const uint64_t begin = processor_ns();
	struct reflector_answer answer;
	uint8_t packet[LENGTH];

	for (int i = 0; i < PACKETS; i++) {
		memcpy(packet, s->packet, s->length);
		if (reflector_answer(s->reflector, packet, s->length, s->whole, &s->arrival, &answer) ==
		    REFLECTOR_ANSWER)
			reflector_finish(s->reflector, packet, &answer, REAL_NOW + 3000);
	}
	return processor_ns() - begin;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void compare(enum reflector_verdict verdict, const struct hmac_key *key)
{
	uint64_t answered_ns = UINT64_MAX, refused_ns = UINT64_MAX;
	struct reflector_counts counts;
	struct side answered, refused;

	side_open(&answered, REFLECTOR_ANSWER, key);
	side_open(&refused, verdict, key);
	for (int i = 0; i < ROUNDS; i++) {
		answered_ns = least(answered_ns, cost(&answered));
		refused_ns = least(refused_ns, cost(&refused));
	}
	print_message("%-14s %s: %4llu ns refused, %4llu ns answered\n", reflector_verdict_names[verdict],
		      key ? "authenticated" : "open", (unsigned long long)(refused_ns / PACKETS),
		      (unsigned long long)(answered_ns / PACKETS));
	reflector_counts(answered.reflector, &counts);
	assert_int_equal(counts.verdicts[REFLECTOR_ANSWER], PACKETS * ROUNDS);
	reflector_counts(refused.reflector, &counts);
	/* The first few of a limited peer are answered. */
	assert_in_range(counts.verdicts[verdict], PACKETS * ROUNDS - 10, PACKETS * ROUNDS);
	assert_true(refused_ns < answered_ns);
	reflector_free(answered.reflector);
	reflector_free(refused.reflector);
}

TEST(a_refusal_costs_less_than_an_answer)
{
	for (enum reflector_verdict v = REFLECTOR_ANSWER + 1; v < REFLECTOR_VERDICTS; v++)
		if (v != REFLECTOR_HMAC)
			compare(v, NULL);
}

TEST(a_wrong_hmac_costs_less_than_an_answer)
{
	struct hmac_key key;

	hmac_key_set(&key, (const uint8_t *)"a key of a test", 15);
	compare(REFLECTOR_HMAC, &key);
	compare(REFLECTOR_RATE, &key);
}
