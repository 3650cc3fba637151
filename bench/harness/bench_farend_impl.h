/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions of a judge: two files implement them, bench_farend.c chooses one. */
#ifndef KTRXER_CLI_BENCH_FAREND_IMPL_H
#define KTRXER_CLI_BENCH_FAREND_IMPL_H

#include "bench_farend.h"

struct farend_judge {
	const char *name;
	/* Opened with the thread at the far host. */
	int (*open)(struct farend *farend, const struct bench_net *net, const struct farend_options *options,
		    struct ktrxer_error *err);
	void (*close)(struct farend *farend);
	void (*begin)(struct farend *farend, uint16_t port, uint16_t cross_port);
	void (*read)(struct farend *farend, struct farend_result *result); /* so far; all but the arrays */
	void (*end)(struct farend *farend);
};

struct farend {
	const struct farend_judge *judge;
	void *state;
	uint64_t *arrivals, *calls;
	uint32_t slots;
	char note[400];
};

extern const struct farend_judge farend_xdp, farend_kernel;

#endif
