/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bpf_quiet.h"

#include <bpf/libbpf.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int depth; /* of begin() without end(); under the lock, as all below */
static libbpf_print_fn_t libbpf_before;

static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

void ktrxer_bpf_quiet_begin(void)
{
	pthread_mutex_lock(&lock);
	if (depth++ == 0)
		libbpf_before = libbpf_set_print(print_nothing);
	pthread_mutex_unlock(&lock);
}

void ktrxer_bpf_quiet_end(void)
{
	pthread_mutex_lock(&lock);
	if (--depth == 0)
		libbpf_set_print(libbpf_before);
	pthread_mutex_unlock(&lock);
}
