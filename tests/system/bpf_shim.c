/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Preloaded, it makes this kernel look like another one to callers of bpf(), for the tests of the live engine:
 * KTRXER_BPF_SHIM=no-live (BPF_PROG_RUN knows no live frames: before Linux 5.18), no-bpf (no such call),
 * no-tracepoint (CONFIG_BPF_EVENTS is off), no-map-memory (maps find no memory).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { MAP_CREATE = 0, PROG_TEST_RUN = 10, RAW_TRACEPOINT_OPEN = 17 };

static int refusal(long command)
{
	const char *shim = getenv("KTRXER_BPF_SHIM");

	if (!shim)
		return 0;
	if (!strcmp(shim, "no-bpf"))
		return ENOSYS;
	if (!strcmp(shim, "no-live") && command == PROG_TEST_RUN)
		return EINVAL;
	if (!strcmp(shim, "no-tracepoint") && command == RAW_TRACEPOINT_OPEN)
		return ENOENT;
	if (!strcmp(shim, "no-map-memory") && command == MAP_CREATE)
		return ENOMEM;
	return 0;
}

long syscall(long number, ...)
{
	long (*next)(long, ...) = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_bpf && refusal(a[0])) {
		errno = refusal(a[0]);
		return -1;
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
