/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_METHODS_FLOW_OPS_H
#define KTRXER_METHODS_FLOW_OPS_H

#include "flow_set.h"

const struct flow_ops *flow_ops_of(const struct flow_spec *spec);

#endif
