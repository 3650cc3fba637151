/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One rule: whether it makes sense, and whether a packet is meant by it. Parsing and formatting are in ktrxer.h. */
#ifndef KTRXER_LIB_RULE_H
#define KTRXER_LIB_RULE_H

#include "packet.h"

/* The fields of a rule that say something; a mask of them is also how coarse a filter looks. */
enum krx_field {
	KRX_FIELD_PROTO = 1 << 0,
	KRX_FIELD_FROM = 1 << 1,
	KRX_FIELD_TO = 1 << 2,
	KRX_FIELD_FROM_PORT = 1 << 3,
	KRX_FIELD_TO_PORT = 1 << 4,
	KRX_FIELDS_ALL = 31,
};

const char *krx_op_name(enum krx_op op); /* NULL: no such operation */

/* A rule made by a program obeys the same laws as one that was parsed; err says which it breaks. */
int krx_rule_check(const struct krx_rule *rule, struct ktrxer_error *err);

/* The fields that are not wildcards. 0: the rule means every packet, also one that is not IP. */
uint32_t krx_rule_fields(const struct krx_rule *rule);

/* The rule as module and library add it to a table of rules. */
struct ktrxer_rx_rule;
void krx_rule_pack(struct ktrxer_rx_rule *to, const struct krx_rule *rule);

#endif
