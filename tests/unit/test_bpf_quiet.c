/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The print function of libbpf is the process's: the library must give it back whatever the order in which its threads
 * use libbpf.
 */
#include "cm.h"
#include "bpf_quiet.h"
#include "live_bpf.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 20000 };

static atomic_uint printed;

static int of_this_process(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	atomic_fetch_add(&printed, 1);
	return 0;
}

/* Refused by libbpf at once, with a message. */
static void *opens_bad_objects(void *context)
{
	static const unsigned char bad[64] = { 0 };
	struct bpf_object *object;

	(void)context;
	for (int i = 0; i < ROUNDS; i++)
		if (ktrxer_live_bpf_open(&object, bad, sizeof bad, "bad", NULL) == 0)
			return (void *)"opened";
	return NULL;
}

TEST(threads_give_the_print_function_back)
{
	libbpf_print_fn_t before = libbpf_set_print(of_this_process);
	pthread_t threads[4];
	void *failed;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, opens_bad_objects, NULL), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_true(libbpf_set_print(before) == of_this_process);
	assert_int_equal(printed, 0); /* not one message came out */
}

/* A begins, B begins, A ends, B ends: with one saved function for each caller, B would restore the silent one. */
TEST(overlapping_callers)
{
	libbpf_print_fn_t before = libbpf_set_print(of_this_process);

	ktrxer_bpf_quiet_begin();
	ktrxer_bpf_quiet_begin();
	ktrxer_bpf_quiet_end();
	assert_true(libbpf_set_print(NULL) != of_this_process); /* NULL reads in new libbpf, and silences in old */
	ktrxer_bpf_quiet_end();
	assert_true(libbpf_set_print(before) == of_this_process);
}
