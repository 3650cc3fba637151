/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The server's counts as OpenMetrics, and where --metrics puts them. */
#ifndef KTRXER_CLI_SERVE_METRICS_H
#define KTRXER_CLI_SERVE_METRICS_H

#include "figures.h"
#include "serve_metrics.h"

/* ADDR:PORT, an address of IPv6 in brackets. -EINVAL with one line. */
int metrics_address(struct ktrxer_addr *addr, uint16_t *port, const char *text, struct ktrxer_error *err);
void metrics_write(struct metrics_text *text, const struct serve_figures *figures);

#endif
