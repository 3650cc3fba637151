/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Metrics of the server in the text format of OpenMetrics 1.0, by HTTP: GET /metrics. They have a listening socket of
 * their own and few connections at once; each has a few seconds.
 */
#ifndef KTRXER_METHODS_SERVE_METRICS_H
#define KTRXER_METHODS_SERVE_METRICS_H

#include "loop.h"

/* Text of a fixed size: a longer text makes the answer an error of the server (status 500). */
struct metrics_text {
	char *text;
	size_t size, used;
	bool full;
};

enum metrics_type { METRICS_GAUGE, METRICS_COUNTER };

/* A family; its values follow. The name of a counter without its `_total`. */
void metrics_family(struct metrics_text *text, const char *name, enum metrics_type type, const char *help);
/* A value of this family; `label` NULL: without one. Names and labels are constants of the program. */
void metrics_value(struct metrics_text *text, const char *name, enum metrics_type type, const char *label,
		   const char *label_value, uint64_t value);
/* The same for a time, in seconds. */
void metrics_seconds(struct metrics_text *text, const char *name, uint64_t ns);

struct serve_metrics_options {
	struct ktrxer_addr bind;
	uint16_t port;
	void (*fill)(void *context, struct metrics_text *text);
	void *context;
};

struct serve_metrics;
int serve_metrics_open(struct serve_metrics **metrics, struct loop *loop, const struct serve_metrics_options *options,
		       struct ktrxer_error *err);
void serve_metrics_close(struct serve_metrics *metrics);

#endif
