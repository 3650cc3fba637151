/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "busy_threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ROUNDS = 10000 }; /* between two looks at the flag: some microseconds */

struct busy_threads {
	_Atomic uint32_t quit;
	uint32_t count;
	pthread_t threads[];
};

uint32_t busy_threads_processors(void)
{
	cpu_set_t set;
	int count;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1;
	count = CPU_COUNT(&set);
	return count > 0 ? (uint32_t)count : 1;
}

static void *compute(void *context)
{
	struct busy_threads *b = context;
	volatile uint32_t x = 1;

	while (!atomic_load_explicit(&b->quit, memory_order_relaxed))
		for (int i = 0; i < ROUNDS; i++)
			x = x * 1664525u + 1013904223u;
	return NULL;
}

int busy_threads_start(struct busy_threads **out, uint32_t count)
{
	struct busy_threads *b = calloc(1, sizeof *b + count * sizeof b->threads[0]);
	int rc = 0;

	*out = NULL;
	if (!b)
		return -ENOMEM;
	while (b->count < count && (rc = pthread_create(&b->threads[b->count], NULL, compute, b)) == 0)
		b->count++;
	if (rc) {
		busy_threads_stop(b);
		return -rc;
	}
	*out = b;
	return 0;
}

void busy_threads_stop(struct busy_threads *b)
{
	if (!b)
		return;
	atomic_store_explicit(&b->quit, 1, memory_order_relaxed);
	for (uint32_t i = 0; i < b->count; i++)
		pthread_join(b->threads[i], NULL);
	free(b);
}
