/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Is a processor idle? For engines that poll one. */
#ifndef KTRXER_LIB_BUSY_H
#define KTRXER_LIB_BUSY_H

#include <stdbool.h>
#include <stddef.h>

/* Looks for 15 ms. True where it cannot be told. */
bool ktrxer_processor_free(void);

/* How many tasks run or wait to run, the asking one included: "0.20 0.18 0.12 1/80 11206" of /proc/loadavg. -1: it is something else. */
int ktrxer_running_parse(const char *text, size_t length);

#endif
