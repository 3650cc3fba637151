/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "hop_queues.h"
#include "random_here.h"

#include <string.h>

enum { HOPS = 6, TIMES = 100 };
#define MS 1000000

/* A path: each hop adds 1 ms; answers vary by up to 50 us. */
struct path {
	int64_t idle[HOPS][TIMES], loaded[HOPS][TIMES];
	struct hop_times hops[HOPS];
	struct hop_queue queues[HOPS];
	size_t fullest;
};

static int64_t below(int64_t limit)
{
	return (int64_t)(random_uniform() * (double)limit);
}

static void path_make(struct path *p)
{
	memset(p, 0, sizeof *p);
	for (int hop = 1; hop < HOPS; hop++) {
		p->hops[hop] = (struct hop_times){ p->idle[hop], p->loaded[hop] };
		for (int i = 0; i < TIMES; i++) {
			p->idle[hop][i] = hop * MS + below(50000);
			p->loaded[hop][i] = hop * MS + below(50000);
		}
	}
}

/* A queue in front of `first`, whose delay rises and falls between 20 and 80 ms. */
static void queue_fill(struct path *p, int first)
{
	for (int i = 0; i < TIMES; i++) {
		const int64_t delay = 20 * MS + (int64_t)(i % 25) * (60 * MS / 25);

		for (int hop = first; hop < HOPS; hop++)
			p->loaded[hop][i] += delay + below(MS);
	}
}

static void estimate(struct path *p)
{
	assert_int_equal(hop_queues_estimate(p->hops, HOPS, TIMES, TIMES, p->queues, &p->fullest), 0);
}

TEST(the_queue_that_fills_is_found_at_each_place)
{

	for (int first = 1; first < HOPS; first++) {
		struct path p;

		path_make(&p);
		queue_fill(&p, first);
		estimate(&p);
		assert_int_equal(p.fullest, first);
		for (int hop = 1; hop < HOPS; hop++) {
			const struct hop_queue *q = &p.queues[hop];

			assert_true(q->known && q->measured);
			assert_int_equal(q->fills, hop == first);
			assert_int_equal(q->after, hop - 1);
			/* The median of the delays is 48.8 ms, and noise of 0.5 ms. */
			if (hop == first)
				assert_true(q->queue_ns > 45 * MS && q->queue_ns < 53 * MS);
			else
				assert_true(q->queue_ns < MS / 5 && q->queue_uncertainty_ns < MS);
		}
	}
}

TEST(without_a_queue_none_is_named)
{

	for (int round = 0; round < 200; round++) {
		struct path p;

		path_make(&p);
		estimate(&p);
		assert_int_equal(p.fullest, HOPS);
	}
}

TEST(a_router_that_answers_slowly_under_load_is_not_a_queue)
{
	struct path p;

	path_make(&p);
	queue_fill(&p, 4);
	for (int i = 0; i < TIMES; i++)
		p.loaded[2][i] += 300 * MS;
	estimate(&p);
	assert_int_equal(p.fullest, 4);
	assert_false(p.queues[2].fills);
	assert_false(p.queues[3].fills);
	assert_true(p.queues[2].added_ns > 250 * MS);
	assert_true(p.queues[4].queue_ns > 45 * MS && p.queues[4].queue_ns < 53 * MS);
}

/*
 * The queue grows between a probe to one hop and the probe to the next one, 2 ms later: in step with the packets of the
 * flows, always by the same time. In virtual time this is exact.
 */
TEST(a_queue_that_grows_between_two_probes_is_one_queue)
{
	struct path p;

	path_make(&p);
	for (int hop = 3; hop < HOPS; hop++)
		for (int i = 0; i < TIMES; i++) {
			p.idle[hop][i] = hop * MS;
			p.loaded[hop][i] = hop * MS + 40 * MS + (hop - 3) * (MS / 2);
		}
	estimate(&p);
	assert_int_equal(p.fullest, 3);
	assert_true(p.queues[4].queue_ns > HOP_QUEUES_FLOOR_NS);
	assert_false(p.queues[4].fills);
}

TEST(hops_without_answers_are_left_out)
{
	struct path p;

	path_make(&p);
	queue_fill(&p, 4);
	for (int i = 0; i < TIMES; i++)
		p.idle[3][i] = p.loaded[3][i] = -1;
	for (int i = HOP_QUEUES_LEAST - 1; i < TIMES; i++)
		p.loaded[1][i] = -1;
	estimate(&p);
	assert_false(p.queues[3].known || p.queues[1].known);
	assert_int_equal(p.queues[1].loaded_answers, HOP_QUEUES_LEAST - 1);
	assert_int_equal(p.fullest, 4);
	assert_int_equal(p.queues[4].after, 2);
	assert_int_equal(p.queues[2].after, 0);
}

/* Each router answers only some probes, and never the same repetition as the hop before it. */
TEST(hops_that_answer_in_turns_show_the_queue)
{
	struct path p;

	path_make(&p);
	queue_fill(&p, 3);
	for (int hop = 1; hop < HOPS; hop++)
		for (int i = 0; i < TIMES; i++)
			if (i % 2 != hop % 2)
				p.idle[hop][i] = p.loaded[hop][i] = -1;
	estimate(&p);
	assert_int_equal(p.fullest, 3);
	for (int hop = 1; hop < HOPS; hop++)
		assert_true(p.queues[hop].measured && p.queues[hop].fills == (hop == 3));
	assert_true(p.queues[3].queue_ns > 40 * MS && p.queues[3].queue_ns < 58 * MS);
	assert_true(p.queues[3].queue_uncertainty_ns < 20 * MS);
}

TEST(probes_lost_in_a_full_queue_leave_the_others)
{
	struct path p;

	path_make(&p);
	queue_fill(&p, 3);
	for (int hop = 3; hop < HOPS; hop++)
		for (int i = 0; i < TIMES; i++)
			if (below(10) < 3)
				p.loaded[hop][i] = -1;
	estimate(&p);
	assert_int_equal(p.fullest, 3);
	assert_true(p.queues[5].loaded_answers < TIMES);
	assert_false(p.queues[4].fills || p.queues[5].fills);
}

TEST(the_queue_of_this_host_is_hop_0)
{
	struct path p;

	path_make(&p);
	p.hops[0] = (struct hop_times){ p.idle[0], p.loaded[0] };
	for (int i = 0; i < TIMES; i++) {
		p.loaded[0][i] = 30 * MS + below(MS);
		for (int hop = 1; hop < HOPS; hop++)
			p.loaded[hop][i] += p.loaded[0][i];
	}
	estimate(&p);
	assert_int_equal(p.fullest, 0);
	assert_false(p.queues[1].fills);
	assert_true(p.queues[0].queue_ns > 30 * MS && p.queues[0].queue_ns < 31 * MS);
	assert_true(p.queues[5].added_ns > 30 * MS);
}

TEST(two_queues_fill)
{
	struct path p;

	path_make(&p);
	queue_fill(&p, 2);
	for (int i = 0; i < TIMES; i++)
		for (int hop = 4; hop < HOPS; hop++)
			p.loaded[hop][i] += 5 * MS;
	estimate(&p);
	assert_int_equal(p.fullest, 2);
	assert_true(p.queues[2].fills && p.queues[4].fills);
	assert_false(p.queues[3].fills || p.queues[5].fills);
	assert_true(p.queues[4].queue_ns > 4 * MS && p.queues[4].queue_ns < 6 * MS);
}

TEST(too_few_repetitions)
{
	struct path p;

	path_make(&p);
	queue_fill(&p, 2);
	for (size_t times = 0; times <= HOP_QUEUES_LEAST; times++) {
		assert_int_equal(hop_queues_estimate(p.hops, HOPS, TIMES, times, p.queues, &p.fullest), 0);
		assert_int_equal(p.fullest, times == HOP_QUEUES_LEAST ? 2 : HOPS);
		assert_int_equal(p.queues[1].known, times == HOP_QUEUES_LEAST);
	}
}

/* The stated uncertainty holds the true delay as often as stated, and where there are more than 1000 repetitions. */
TEST(the_uncertainty_is_as_stated)
{
	enum { ROUNDS = 1000, LONG = 1600 };
	static int64_t idle[LONG], loaded[LONG];
	const struct hop_times hops[2] = { { 0 }, { idle, loaded } };
	struct hop_queue queues[2];
	size_t fullest;

	for (size_t times = 20; times <= LONG; times *= 4) {
		const int rounds = times > 500 ? ROUNDS / 5 : ROUNDS;
		int held = 0;

		for (int round = 0; round < rounds; round++) {
			for (size_t i = 0; i < times; i++) {
				idle[i] = MS + below(MS);
				loaded[i] = 3 * MS + below(MS);
			}
			assert_int_equal(hop_queues_estimate(hops, 2, times, times, queues, &fullest), 0);
			held += queues[1].queue_ns - 2 * MS <= queues[1].queue_uncertainty_ns &&
				2 * MS - queues[1].queue_ns <= queues[1].queue_uncertainty_ns;
		}
		assert_true(held >= rounds * 98 / 100);
	}
}
