/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "answer_limit.h"
#include "cm.h"

#include <stdlib.h>

enum { PROBES = 1000 };

/* A bucket of tokens with this burst; a token comes every `every` probes. */
static struct answer_log bucket(double every, double burst)
{
	struct answer_log log = { .answered = NULL };
	double tokens = burst;

	for (int i = 0; i < PROBES; i++, tokens = tokens + 1 / every < burst ? tokens + 1 / every : burst)
		if (tokens >= 1) {
			answer_log_add(&log, (uint64_t)i);
			tokens--;
		}
	return log;
}

static struct answer_log at_random(unsigned int seed, int percent, int probes)
{
	struct answer_log log = { .answered = NULL };

	srand(seed);
	for (int i = 0; i < probes; i++)
		if (rand() % 100 >= percent)
			answer_log_add(&log, (uint64_t)i);
	return log;
}

TEST(a_bucket_of_tokens_is_a_limit)
{
	static const double every[] = { 1.25, 2, 3.7, 10, 30 };
	double share;

	for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
		struct answer_log log = bucket(every[i], 5);

		assert_true(answer_limit(&log, &share));
		assert_true(share * every[i] > 0.95 && share * every[i] < 1.05);
		answer_log_free(&log);
	}
}

TEST(random_losses_are_none)
{
	double share;

	for (unsigned int seed = 0; seed < 20000; seed++) {
		struct answer_log log = at_random(seed, (int)(seed % 98) + 1, seed % 2 ? PROBES : 60);

		assert_false(answer_limit(&log, &share));
		answer_log_free(&log);
	}
}

TEST(bursts_of_losses_and_an_outage_are_none)
{
	struct answer_log dead = { .answered = NULL }, turns = { .answered = NULL };
	double share;

	for (uint64_t i = 0; i < PROBES; i++)
		if (i < 300 || i > 500)
			answer_log_add(&dead, i);
	for (uint64_t i = 0; i < PROBES; i++)
		if (i % 20 < 10)
			answer_log_add(&turns, i);
	assert_false(answer_limit(&dead, &share));
	assert_false(answer_limit(&turns, &share));
	answer_log_free(&dead);
	answer_log_free(&turns);
}

TEST(no_answer_no_loss_and_numbers_out_of_range)
{
	struct answer_log log = { .answered = NULL };
	double share;

	assert_false(answer_limit(&log, &share));
	answer_log_add(&log, UINT64_MAX);
	answer_log_add(&log, 1 << 20);
	assert_int_equal(log.end, 0);
	for (uint64_t i = 0; i < PROBES; i++)
		answer_log_add(&log, i);
	assert_false(answer_limit(&log, &share));
	answer_log_free(&log);
}
