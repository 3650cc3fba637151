/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One rule: its check, its fields, its packed form. Parsing and formatting are in ktrxer.h. */
#ifndef KTRXER_LIB_RULE_H
#define KTRXER_LIB_RULE_H

#include "packet.h"

/* The fields of a rule that are not wildcards. A coarse filter compares a subset of them. */
enum krx_field {
	KRX_FIELD_PROTO = 1 << 0,
	KRX_FIELD_FROM = 1 << 1,
	KRX_FIELD_TO = 1 << 2,
	KRX_FIELD_FROM_PORT = 1 << 3,
	KRX_FIELD_TO_PORT = 1 << 4,
	KRX_FIELDS_ALL = 31,
};

/* The end of the first version of struct krx_rule. */
#define KRX_RULE_LEAST (offsetof(struct krx_rule, priority) + sizeof(uint32_t))

/* -EINVAL: the rule is one that krx_rule_parse() would refuse; err says why. */
int krx_rule_check(const struct krx_rule *rule, struct ktrxer_error *err);

/* 0: the rule matches every packet, also one that is not IP. */
uint32_t krx_rule_fields(const struct krx_rule *rule);

/* The rule as module and library add it to a table of rules. */
struct ktrxer_rx_rule;
void krx_rule_pack(struct ktrxer_rx_rule *to, const struct krx_rule *rule);

#endif
