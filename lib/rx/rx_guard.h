/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rules that would cut off the user. */
#ifndef KTRXER_LIB_RX_GUARD_H
#define KTRXER_LIB_RX_GUARD_H

#include "rule_match.h"

/* -EPERM: a rule drops everything, or packets of a session; err names the rule. */
int krx_guard(const struct krx_ruleset *rules, const struct krx_options *options, struct ktrxer_error *err);

#endif
