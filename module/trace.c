// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints' bodies. */
#include <linux/module.h>

#define CREATE_TRACE_POINTS
#include "ktrxer_trace.h"
