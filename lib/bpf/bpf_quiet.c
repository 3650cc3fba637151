/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bpf_quiet.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#ifdef KTRXER_HAVE_LIBXDP
#include <xdp/libxdp.h>
#endif

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

#ifdef KTRXER_HAVE_LIBXDP
static libxdp_print_fn_t libxdp_before;

static int xdp_print_nothing(enum libxdp_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}
#endif

void ktrxer_bpf_quiet_begin(void)
{
	pthread_mutex_lock(&lock);
	if (depth++ == 0) {
		libbpf_before = libbpf_set_print(print_nothing);
#ifdef KTRXER_HAVE_LIBXDP
		libxdp_before = libxdp_set_print(xdp_print_nothing);
#endif
	}
	pthread_mutex_unlock(&lock);
}

void ktrxer_bpf_quiet_end(void)
{
	pthread_mutex_lock(&lock);
	if (--depth == 0) {
		libbpf_set_print(libbpf_before);
#ifdef KTRXER_HAVE_LIBXDP
		libxdp_set_print(libxdp_before);
#endif
	}
	pthread_mutex_unlock(&lock);
}
