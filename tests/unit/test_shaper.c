/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Token buckets from trains over simulated links: shapers, policers, and paths that have neither. */
#include "shaper.h"

#include "cm.h"

#include <math.h>

enum { PACKETS = 256, BYTES = 1500, PATHS = 400 };

struct path {
	uint64_t seed;
	double line, sustained, bucket;    /* bit/s, bytes; bucket 0: there is none */
	double load, loss, noise_s, queue; /* cross traffic as a share of the line; queue in packets */
	bool policer;
};

static double uniform(struct path *p)
{
	p->seed = p->seed * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(p->seed >> 11) + 0.5) / 9007199254740992.0;
}

static double between(struct path *p, double low, double high)
{
	return low * pow(high / low, uniform(p));
}

/* The packets leave back to back ten times as fast as the line, where there is a queue, and as fast otherwise. */
static void train(struct path *p, uint32_t packets, uint64_t *arrived)
{
	const double gap = 8.0 * BYTES / p->line, sent = p->queue > 0 ? gap / 10 : gap;
	double tokens = p->bucket, ready = 0, shaped = 0, before = 0,
	       cross = -log(uniform(p)) * gap / fmax(p->load, 1e-9);

	for (uint32_t i = 0; i < packets; i++) {
		double at = i * sent;

		for (; cross < at; cross -= log(uniform(p)) * gap / fmax(p->load, 1e-9))
			ready = fmax(ready, cross) + gap;
		arrived[i] = 0;
		if (uniform(p) < p->loss || (p->queue > 0 && ready - at > p->queue * gap))
			continue;
		at = ready = fmax(ready, at) + gap;
		if (p->bucket > 0) {
			tokens = fmin(p->bucket, tokens + (at - before) * p->sustained / 8);
			before = at;
			if (p->policer && tokens < BYTES)
				continue;
			tokens -= BYTES;
			at = shaped = fmax(shaped, tokens < 0 ? at - tokens * 8 / p->sustained : at);
		}
		arrived[i] = (uint64_t)((1 + at + p->noise_s * uniform(p)) * 1e9);
	}
}

static bool found(struct path *p, uint32_t packets, struct shaper *shaper)
{
	uint64_t arrived[PACKETS];
	struct shaper again;

	train(p, packets, arrived);
	if (!shaper_of_train(arrived, packets, BYTES, shaper))
		return false;
	train(p, packets, arrived);
	return shaper_of_train(arrived, packets, BYTES, &again) && shaper_agree(shaper, &again);
}

TEST(test_no_bucket_is_found_on_a_path_without_one)
{
	int count = 0;

	for (uint64_t i = 0; i < PATHS; i++) {
		struct path p = { .seed = i * 7919 + 1 };
		struct shaper shaper;

		p.line = between(&p, 2e6, 1e9);
		p.queue = i % 2 ? between(&p, 5, 300) : 0;
		p.load = i % 4 < 2 ? uniform(&p) * 0.9 : 0;
		p.loss = i % 3 ? 0 : between(&p, 0.001, 0.5);
		p.noise_s = i % 5 ? 0 : between(&p, 1e-6, 3e-3);
		count += found(&p, i % 2 ? PACKETS : 64, &shaper);
	}
	print_message("figure: %d buckets on %d paths without one\n", count, PATHS);
	assert_int_equal(count, 0);
}

TEST(test_buckets)
{
	int count = 0, wrong = 0;

	for (uint64_t i = 0; i < PATHS; i++) {
		struct path p = { .seed = i * 104729 + 1, .policer = i % 2 };
		struct shaper shaper;

		p.sustained = between(&p, 1e6, 1e8);
		p.line = p.sustained * between(&p, 2, p.policer ? 15 : 100);
		p.bucket = between(&p, 5e3, 6e4);
		if (!found(&p, p.policer ? PACKETS : 64, &shaper))
			continue;
		count++;
		wrong += fabs(shaper.sustained_bit_s / p.sustained - 1) > 0.1 ||
			 fabs(shaper.line_bit_s / p.line - 1) > 0.1 || fabs(shaper.bucket_bytes - p.bucket) > 2 * BYTES;
	}
	print_message("figure: %d of %d buckets, %d wrong\n", count, PATHS, wrong);
	assert_true(count > PATHS * 9 / 10);
	assert_true(wrong * 100 <= count);
}
