/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_LIB_RX_MODULE_H
#define KTRXER_LIB_RX_MODULE_H

#include "error.h"

/* A descriptor of /dev/krx; -EPERM, -EOPNOTSUPP: the module is not loaded, or of another version; err says what helps. */
int krx_module_open(struct ktrxer_error *err);

#endif
