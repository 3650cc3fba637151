/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A rule set as an nf_tables chain at a device's ingress: rules that drop do so there; others let the packet go on. A
 * rule that means several kinds of packets (both IP versions, five protocols with ports) becomes several of the chain;
 * their counters bear its position.
 *
 * Where it is blunter than XDP: it looks behind one VLAN tag, not two, and a packet whose IP header lies about its
 * length is not one of any protocol. Such packets go on.
 */
#ifndef KTRXER_LIB_NFT_RULES_H
#define KTRXER_LIB_NFT_RULES_H

#include "nft.h"
#include "rule_match.h"

/* Ends with the message that asks for the acknowledgement. */
int ktrxer_nft_rules_make(struct rtnl_request *batch, const struct krx_ruleset *rules, const char *table,
			  const char *device, struct ktrxer_error *err);

#endif
