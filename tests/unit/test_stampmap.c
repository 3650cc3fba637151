/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A simulated kernel refuses, loses, delays and repeats; what counts is that no stamp is ever given to a wrong probe.
 */
#include "cm.h"
#include "draw_here.h"
#include "stampmap.h"

#include <stdlib.h>
#include <string.h>

static bool chance(uint32_t per_mille)
{
	return draw() % 1000 < per_mille;
}

struct stamp {
	uint64_t at, visible; /* taken, and readable from the error queue */
	uint64_t slot;
	uint32_t key;
};

struct plan {
	uint32_t size, first_key;
	uint64_t gap;                        /* between calls: up to this */
	uint64_t latency;                    /* of a stamp: up to this */
	uint64_t reading;                    /* and until it can be read */
	uint32_t refused, eats, lost, twice; /* per mille */
	uint32_t burst;                      /* refusals in a row: up to this */
	uint32_t bound;                      /* error of the stamps' times: up to this */
	uint32_t silent;                     /* per mille: numbers that are used up and not announced */
	bool cure;                           /* the engine resets when asked */
	bool no_time;
};

struct outcome {
	uint64_t right, wrong, none, sent;
	uint64_t longest; /* stamps in a row that belong to no probe */
	uint64_t resets, contradictions;
};

enum { QUEUE = 8192 };

static struct outcome run(const struct plan *plan, int calls)
{
	static struct stamp queue[QUEUE];
	struct outcome out = { 0 };
	struct stampmap map;
	uint64_t now = 1000000, row = 0, slot;
	uint32_t counter = plan->first_key;
	int queued = 0;

	assert_int_equal(ktrxer_stampmap_init(&map, plan->size, plan->first_key), 0);
	for (int i = 0; i < calls; i++) {
		now += 1 + draw() % plan->gap;
		if (chance(plan->silent))
			counter++;
		if (chance(plan->refused)) {
			for (uint64_t n = 1 + draw() % plan->burst; n; n--) {
				counter += chance(plan->eats);
				ktrxer_stampmap_ambiguous(&map);
			}
		} else {
			ktrxer_stampmap_sent(&map, (uint64_t)i, now);
			out.sent++;
			for (int copies = chance(plan->lost) ? 0 : 1 + chance(plan->twice); copies && queued < QUEUE;
			     copies--) {
				uint64_t at = now + draw() % plan->latency;

				queue[queued++] =
					(struct stamp){ at, at + draw() % plan->reading, (uint64_t)i, counter };
			}
			counter++;
		}
		for (int k = 0; k < queued;) {
			uint64_t error = draw() % (2 * plan->bound + 1), at = queue[k].at + error - plan->bound;

			if (queue[k].visible > now) {
				k++;
				continue;
			}
			if (ktrxer_stampmap_find(&map, queue[k].key, plan->no_time ? KTRXER_NEVER : at, plan->bound,
						 &slot)) {
				out.right += slot == queue[k].slot;
				out.wrong += slot != queue[k].slot;
				row = 0;
			} else {
				out.none++;
				out.longest = ++row > out.longest ? row : out.longest;
			}
			queue[k] = queue[--queued]; /* readers see them in any order */
		}
		if (plan->cure && ktrxer_stampmap_wants_reset(&map)) {
			ktrxer_stampmap_reset(&map, now);
			counter = 0;
		}
	}
	out.resets = map.resets;
	out.contradictions = map.contradictions;
	assert_true(map.found == out.right + out.wrong);
	ktrxer_stampmap_free(&map);
	return out;
}

static const struct plan calm = {
	.size = 1024, .gap = 20000, .latency = 3000, .reading = 5000, .burst = 1, .bound = 200
};

TEST(without_refusals_all_is_found)
{
	static const uint32_t first[] = { 0, 1, 0x7fffff00, 0x80000000, 0xffffff00, 0xffffffff };

	seed = 1;
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		struct plan plan = calm;
		struct outcome out;

		plan.first_key = first[i]; /* the counter wraps during the run */
		plan.lost = 100;
		plan.twice = 100;
		out = run(&plan, 20000);
		assert_true(out.wrong == 0 && out.none == 0 && out.right > 17000);
		plan.no_time = true;
		out = run(&plan, 20000);
		assert_true(out.wrong == 0 && out.none == 0);
	}
}

TEST(paced_probes_settle_at_once)
{
	static const uint32_t eats[] = { 0, 1000, 500 };

	seed = 2;
	for (int i = 0; i < 3; i++) {
		struct plan plan = calm;
		struct outcome out;

		plan.gap = 1000000;
		plan.first_key = 0xfffffff0;
		plan.refused = 50;
		plan.eats = eats[i];
		plan.burst = 3;
		out = run(&plan, 50000);
		assert_int_equal(out.wrong, 0);
		/* no cure was at hand, and hardly a stamp was withheld */
		if (out.none * 50 > out.right)
			fail_msg("eats %u: %llu withheld", eats[i], (unsigned long long)out.none);
		assert_true(out.longest < 50);
	}
}

/* Everything at once, thousands of times with other parameters: never a wrong one. */
TEST(never_a_wrong_probe)
{
	uint64_t right = 0, none = 0, sent = 0;

	for (int round = 0; round < 500; round++) {
		struct plan plan = { 0 };
		struct outcome out;

		seed = 1000 + (uint64_t)round;
		for (int i = 0; i < 10; i++)
			draw();
		plan.size = 16u << draw() % 8;
		plan.first_key = draw() % 2 ? (uint32_t)-(int32_t)(draw() % 2000) : 0;
		plan.gap = (uint64_t)1 << draw() % 21; /* 1 ns (a burst) to 1 ms */
		plan.latency = (uint64_t)1 << draw() % 18;
		plan.reading = (uint64_t)1 << draw() % 20;
		plan.refused = (uint32_t[]){ 1, 10, 100, 500 }[draw() % 4];
		plan.eats = (uint32_t[]){ 0, 1000, 500, 10, 990 }[draw() % 5];
		plan.lost = (uint32_t[]){ 0, 10, 300, 900 }[draw() % 4];
		plan.twice = (uint32_t[]){ 0, 500 }[draw() % 2];
		plan.burst = (uint32_t[]){ 1, 5, 200 }[draw() % 3];
		plan.bound = (uint32_t[]){ 0, 50, 5000 }[draw() % 3];
		plan.cure = draw() % 2;
		plan.no_time = draw() % 8 == 0;
		out = run(&plan, 3000);
		if (out.wrong)
			fail_msg("round %d: %llu wrong (size %u gap %llu latency %llu refused %u eats %u lost %u burst "
				 "%u bound %u cure %d "
				 "time %d resets %llu)",
				 round, (unsigned long long)out.wrong, plan.size, (unsigned long long)plan.gap,
				 (unsigned long long)plan.latency, plan.refused, plan.eats, plan.lost, plan.burst,
				 plan.bound, plan.cure, !plan.no_time, (unsigned long long)out.resets);
		assert_int_equal(out.contradictions, 0);
		right += out.right;
		none += out.none;
		sent += out.sent;
	}
	print_message("%llu probes, %llu stamps found, %llu withheld\n", (unsigned long long)sent,
		      (unsigned long long)right, (unsigned long long)none);
	assert_true(right > sent / 10);
}

/* With the cure, a row of stamps without a probe has an end: patience, and what was on its way at the reset. */
TEST(settles_within_bounds)
{
	for (int round = 0; round < 200; round++) {
		struct plan plan = calm;
		struct outcome out;

		seed = 77 + (uint64_t)round;
		plan.gap = 2000000000 / 100; /* so that the second after a reset is 100 probes */
		plan.refused = 3;
		plan.eats = 500;
		plan.lost = 200;
		plan.cure = true;
		out = run(&plan, 5000);
		assert_int_equal(out.wrong, 0);
		if (out.longest > STAMPMAP_PATIENCE + 250)
			fail_msg("round %d: %llu in a row", round, (unsigned long long)out.longest);
	}
}

static void one_refusal(bool eaten, bool first_lost, uint64_t *none_until_found, bool *reset)
{
	struct stampmap map;
	uint32_t key = 0;
	uint64_t now = 1000, slot;

	assert_int_equal(ktrxer_stampmap_init(&map, 64, 0), 0);
	for (uint64_t i = 0; i < 10; i++, now += 1000000) {
		ktrxer_stampmap_sent(&map, i, now);
		assert_true(ktrxer_stampmap_find(&map, key++, now + 500, 0, &slot) && slot == i);
	}
	ktrxer_stampmap_ambiguous(&map);
	key += eaten;
	*none_until_found = 0;
	for (uint64_t i = 10; i < 100; i++, now += 1000000) {
		ktrxer_stampmap_sent(&map, i, now);
		if (i > 10 || !first_lost) {
			if (ktrxer_stampmap_find(&map, key, now + 500, 0, &slot)) {
				assert_true(slot == i);
				break;
			}
			(*none_until_found)++;
		}
		key++;
		if (ktrxer_stampmap_wants_reset(&map))
			break;
	}
	*reset = ktrxer_stampmap_wants_reset(&map);
	ktrxer_stampmap_free(&map);
}

TEST(the_four_cases_of_one_refusal)
{
	uint64_t none;
	bool reset;

	one_refusal(false, false, &none, &reset);
	assert_true(none == 0 && !reset);
	one_refusal(true, false, &none, &reset);
	assert_true(none == 0 && !reset);
	one_refusal(true, true, &none, &reset);
	assert_true(none == 0 && !reset);
	/* not eaten, and the stamp that would have shown it is lost: only a reset can tell */
	one_refusal(false, true, &none, &reset);
	assert_true(none == STAMPMAP_PATIENCE && reset);
}

TEST(unannounced_shift_is_noticed)
{
	struct stampmap map;
	uint64_t now = 1000, slot, wrong = 0, right = 0;
	uint32_t key = 0;

	assert_int_equal(ktrxer_stampmap_init(&map, 64, 0), 0);
	for (uint64_t i = 0; i < 2000; i++, now += 1000000) {
		key += i % 100 == 99; /* used up, and not announced */
		ktrxer_stampmap_sent(&map, i, now);
		if (ktrxer_stampmap_find(&map, key++, now + 500, 0, &slot)) {
			wrong += slot != i;
			right += slot == i;
		}
	}
	assert_true(wrong == 0 && right > 1900 && map.contradictions >= 20);
	ktrxer_stampmap_free(&map);
}

TEST(unknown_stamps_are_of_no_request)
{
	struct stampmap map;
	uint64_t slot;

	assert_int_equal(ktrxer_stampmap_init(&map, 16, 0), 0);
	assert_false(ktrxer_stampmap_find(&map, 0xffffffff, 5, 0, &slot)); /* before the first */
	for (uint64_t i = 0; i < 100; i++)
		ktrxer_stampmap_sent(&map, i, i);
	assert_false(ktrxer_stampmap_find(&map, 83, 1000, 0, &slot)); /* long gone */
	assert_false(ktrxer_stampmap_find(&map, 0, 1000, 0, &slot));
	assert_true(ktrxer_stampmap_find(&map, 84, 1000, 0, &slot) && slot == 84);
	assert_true(ktrxer_stampmap_find(&map, 84, 1000, 0, &slot) && slot == 84); /* again: driver, then NIC */
	assert_true(ktrxer_stampmap_find(&map, 99, 1000, 0, &slot) && slot == 99);
	assert_false(ktrxer_stampmap_find(&map, 99 + 0x40000000, 1000, 0, &slot)); /* a number from nowhere */
	assert_true(ktrxer_stampmap_wants_reset(&map));
	ktrxer_stampmap_reset(&map, 2000);
	assert_false(ktrxer_stampmap_wants_reset(&map));
	for (uint64_t i = 0; i < 200; i++)
		ktrxer_stampmap_sent(&map, 1000 + i, 3000 + i);
	assert_false(ktrxer_stampmap_find(&map, 190, 1999, 0, &slot)); /* taken before the reset */
	assert_false(ktrxer_stampmap_find(&map, 60, 4000, 0, &slot));  /* could be either */
	ktrxer_stampmap_free(&map);
}

/* Datagrams of before a reset get their stamps after it, with numbers that the new ones have too. */
TEST(reset_with_old_ones_on_their_way)
{
	struct stampmap map;
	uint64_t slot, now = 1000, found = 0;

	seed = 5;
	assert_int_equal(ktrxer_stampmap_init(&map, 64, 0), 0);
	for (uint64_t generation = 0; generation < 50; generation++) {
		uint32_t count = 1 + (uint32_t)(draw() % 100);

		for (uint32_t i = 0; i < count; i++)
			ktrxer_stampmap_sent(&map, generation * 1000 + i, now += 100);
		ktrxer_stampmap_reset(&map, now += 100);
		for (uint32_t i = 0; i < 100; i++)
			ktrxer_stampmap_sent(&map, 1000000 + generation * 1000 + i, now += 100);
		for (uint32_t i = 0; i < count; i++) /* the old ones, late */
			assert_false(ktrxer_stampmap_find(&map, i, now, 0, &slot));
		ktrxer_stampmap_reset(&map, now += 100);
		now += STAMPMAP_OLD_NS;
		for (uint32_t i = 0; i < 10; i++) {
			ktrxer_stampmap_sent(&map, i, now += 100);
			found += ktrxer_stampmap_find(&map, i, now, 0, &slot) && slot == i;
		}
		ktrxer_stampmap_reset(&map, now += 100);
		now += STAMPMAP_OLD_NS;
	}
	assert_int_equal(found, 50 * 9); /* all but number 0 */
	ktrxer_stampmap_free(&map);
}
