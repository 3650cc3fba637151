/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* True if a processor is idle, for engines that poll one. */
#ifndef KTRXER_LIB_BUSY_H
#define KTRXER_LIB_BUSY_H

#include <stdbool.h>
#include <stddef.h>

/* Looks for 15 ms. True where that is unknown. */
bool ktrxer_processor_free(void);

#endif
