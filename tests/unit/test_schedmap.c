/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stamps of the packet scheduler find their probes: in order, past refusals that use numbers up or not, past lost
 * stamps, by seed.
 */
#include "cm.h"
#include "schedmap.h"

static struct schedmap map;

static void start(void)
{
	assert_int_equal(ktrxer_schedmap_init(&map, 64), 0);
}

static void assert_found(uint32_t key, uint64_t stamp_ns, uint32_t probe)
{
	uint32_t found;

	assert_true(ktrxer_schedmap_sched(&map, key, stamp_ns, 0, &found));
	assert_int_equal(found, probe);
	assert_true(ktrxer_schedmap_driver(&map, key, &found));
	assert_int_equal(found, probe);
}

static void assert_none(uint32_t key, uint64_t stamp_ns)
{
	uint32_t found;

	assert_false(ktrxer_schedmap_sched(&map, key, stamp_ns, 0, &found));
}

TEST(numbers_in_order)
{
	uint32_t found;

	start();
	assert_false(ktrxer_schedmap_driver(&map, 0, &found));
	for (uint32_t n = 0; n < 1000; n++) {
		ktrxer_schedmap_sent(&map, n, 1, 1000 * n + 1, 1000 * n + 20);
		assert_found(n, 1000 * n + 10, n);
		assert_none(n, 1000 * n + 12); /* the same packet at the device below */
	}
	assert_false(ktrxer_schedmap_driver(&map, 900, &found)); /* long gone */
	ktrxer_schedmap_free(&map);
}

TEST(a_train_in_one_call)
{
	start();
	ktrxer_schedmap_sent(&map, 0, 3, 100, 200);
	ktrxer_schedmap_sent(&map, 3, 3, 1100, 1200);
	for (uint32_t n = 0; n < 6; n++)
		assert_found(n, (n / 3) * 1000 + 110 + n % 3 * 10, n);
	ktrxer_schedmap_free(&map);
}

/* The queue of this host is full: the stamp of the refused datagram comes, the datagram does not. */
TEST(a_refused_datagram_that_used_a_number)
{
	start();
	ktrxer_schedmap_sent(&map, 0, 1, 100, 120);
	assert_found(0, 110, 0);
	ktrxer_schedmap_refused(&map); /* number 1, at 210 */
	ktrxer_schedmap_refused(&map); /* number 2, at 310 */
	ktrxer_schedmap_sent(&map, 1, 1, 400, 420);
	assert_none(1, 210);
	assert_none(2, 310);
	assert_found(3, 410, 1);
	ktrxer_schedmap_refused(&map); /* its stamp is read before the next call */
	assert_none(4, 510);
	ktrxer_schedmap_sent(&map, 2, 2, 600, 640);
	assert_found(5, 610, 2);
	assert_found(6, 620, 3);
	ktrxer_schedmap_free(&map);
}

/* Newer kernels give a number back: the next datagram has it again. */
TEST(a_refused_datagram_that_gave_its_number_back)
{
	start();
	ktrxer_schedmap_sent(&map, 0, 1, 100, 120);
	assert_found(0, 110, 0);
	ktrxer_schedmap_refused(&map);
	assert_none(1, 210);
	ktrxer_schedmap_refused(&map);
	ktrxer_schedmap_sent(&map, 1, 1, 400, 420);
	assert_none(1, 310);
	assert_found(1, 410, 1);
	ktrxer_schedmap_free(&map);
}

TEST(a_packet_that_waits_for_its_neighbour)
{
	start();
	ktrxer_schedmap_sent(&map, 0, 1, 100, 120);
	ktrxer_schedmap_sent(&map, 1, 1, 1100, 1120);
	assert_found(0, 900000, 0);
	assert_found(1, 900010, 1);
	ktrxer_schedmap_free(&map);
}

TEST(lost_stamps_take_no_others)
{
	start();
	for (uint32_t n = 0; n < 5; n++)
		ktrxer_schedmap_sent(&map, n, 1, 1000 * n + 1, 1000 * n + 20);
	assert_found(0, 10, 0);
	assert_found(3, 3010, 3); /* 1 and 2 were lost */
	ktrxer_schedmap_sent(&map, 5, 4, 5000, 5100);
	assert_found(4, 4010, 4);
	assert_found(5, 5010, 5);
	assert_found(7, 5030, 7); /* 6 was lost */
	assert_found(8, 5040, 8);
	ktrxer_schedmap_sent(&map, 9, 3, 6000, 6100);
	assert_none(10, 6020); /* the first of a train was lost, or one before it: not known which */
	ktrxer_schedmap_sent(&map, 12, 1, 7000, 7100);
	assert_none(11, 6030);
	assert_found(12, 7010, 12);
	ktrxer_schedmap_free(&map);
}

/* Each datagram has a second stamp, of the device below, when the first device's queue lets it go. */
TEST(the_device_belows_stamp_replaces_no_lost_one)
{
	uint32_t found;

	start();
	ktrxer_schedmap_sent(&map, 0, 1, 100, 120);
	assert_found(0, 110, 0);
	assert_none(0, 48110);
	for (uint32_t n = 1; n < 4; n++)
		ktrxer_schedmap_sent(&map, n, 1, 50000 * n + 100, 50000 * n + 120);
	/* Only the second stamp of number 1 comes: between two calls. */
	assert_none(1, 98110);
	assert_false(ktrxer_schedmap_driver(&map, 1, &found));
	assert_found(2, 100110, 2);
	assert_none(2, 148110);
	/* Of number 3, too: within the call of the next probe. */
	ktrxer_schedmap_sent(&map, 4, 1, 198100, 198120);
	assert_none(3, 198105);
	assert_found(4, 198110, 4);
	assert_false(ktrxer_schedmap_driver(&map, 3, &found));
	ktrxer_schedmap_free(&map);
}

/* Whatever is lost or refused, no probe gets the stamp of another call: those of one train are microseconds apart. */
TEST(never_another_calls)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t now = 1000, chance = seed;
		uint32_t key = 0, sent = 0, hits = 0, lost = 0, exact = 0;

		start();
		for (int i = 0; i < 400; i++) {
			const uint64_t call = now;
			uint32_t count;

			chance = chance * 6364136223846793005ULL + 1442695040888963407ULL;
			count = 1 + (chance >> 40) % 3;
			if ((chance >> 33) % 8 == 0) { /* refused; half of them give their number back */
				uint32_t found;

				ktrxer_schedmap_refused(&map);
				assert_false(ktrxer_schedmap_sched(&map, key, now + 5, 0, &found));
				key += (chance >> 50) % 2;
				now += 100;
				continue;
			}
			now += 100;
			ktrxer_schedmap_sent(&map, sent, count, call, now);
			for (uint32_t n = 0; n < count; n++, key++) {
				uint32_t found;

				if ((chance >> (10 + n)) % 16 == 0) {
					lost++;
					continue;
				}
				if (ktrxer_schedmap_sched(&map, key, call + 10 + n, 0, &found)) {
					assert_true(found - sent < count);
					exact += found == sent + n;
					hits++;
				}
			}
			sent += count;
			now += 1000;
		}
		assert_true(hits > (sent - lost) * 6 / 10);
		assert_true(exact > hits * 95 / 100);
		ktrxer_schedmap_free(&map);
	}
}
