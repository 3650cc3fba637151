/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which differences of stamps count, and the busy threads. The sockets: tests/system/test_ppt_direct.py. */
#include "busy_threads.h"
#include "cm.h"
#include "host_times.h"

#include <errno.h>
#include <time.h>

#define REAL 1795000000000000000LL
#define SECOND 1000000000ULL

static void times_new(struct host_times *t)
{
	*t = (struct host_times){ 0 };
	for (int i = 0; i < HOST_LAYERS; i++)
		assert_non_null(t->layers[i] = ktrxer_hist_new());
}

TEST(a_difference_is_recorded_in_its_layer)
{
	struct host_times t;

	times_new(&t);
	host_times_record(&t, HOST_NIC_KERNEL, REAL, REAL + 1500, SECOND);
	host_times_record(&t, HOST_NIC_KERNEL, REAL, REAL, SECOND);
	assert_int_equal(ktrxer_hist_count(t.layers[HOST_NIC_KERNEL]), 2);
	assert_int_equal(ktrxer_hist_max(t.layers[HOST_NIC_KERNEL]), 1500);
	assert_int_equal(ktrxer_hist_count(t.layers[HOST_KERNEL_USER]), 0);
	assert_int_equal(t.contradicted, 0);
	host_times_free(&t);
	assert_null(t.layers[0]);
}

TEST(a_missing_stamp_is_no_time)
{
	struct host_times t;

	times_new(&t);
	host_times_record(&t, HOST_DRIVER_NIC, REAL, 0, SECOND);
	host_times_record(&t, HOST_DRIVER_NIC, 0, REAL, SECOND);
	assert_int_equal(ktrxer_hist_count(t.layers[HOST_DRIVER_NIC]), 0);
	assert_int_equal(t.contradicted, 0);
	host_times_free(&t);
}

TEST(a_step_of_the_clock_is_counted_and_left_out)
{
	struct host_times t;

	times_new(&t);
	host_times_record(&t, HOST_SCHED_DRIVER, REAL, REAL - 1, SECOND);
	host_times_record(&t, HOST_SCHED_DRIVER, REAL, REAL + 3600 * (int64_t)SECOND, SECOND);
	host_times_record(&t, HOST_SCHED_DRIVER, INT64_MIN + 1, INT64_MAX, SECOND);
	assert_int_equal(t.contradicted, 3);
	assert_int_equal(ktrxer_hist_count(t.layers[HOST_SCHED_DRIVER]), 0);
	host_times_free(&t);
}

TEST(busy_threads_use_processor_time_and_end)
{
	struct busy_threads *threads;
	struct timespec used = { 0 };

	assert_true(busy_threads_processors() >= 1);
	assert_int_equal(busy_threads_start(&threads, 2), 0);
	while (used.tv_sec == 0 && used.tv_nsec < 50000000)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	busy_threads_stop(threads);
	busy_threads_stop(NULL);
}
