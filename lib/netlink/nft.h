/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A small client of nf_tables: one batch that makes a table, and a look at its counters. A table made here is owned by
 * its socket (Linux 5.12): the kernel takes it away when the socket closes, that is, with the process. No nft program
 * and no library is needed.
 */
#ifndef KTRXER_LIB_NFT_H
#define KTRXER_LIB_NFT_H

#include "rtnl.h"

/*
 * A transaction: a batch of messages NFT_MSG_..., each begun here and filled by ktrxer_rtnl_request_put(). The last one
 * asks for the acknowledgement.
 */
void ktrxer_nft_batch_begin(struct rtnl_request *batch);
void ktrxer_nft_batch_end(struct rtnl_request *batch);
void ktrxer_nft_message_begin(struct rtnl_request *batch, uint8_t type, uint16_t flags);

/*
 * ktrxer_rtnl_batch() uses this socket. The kernel removes the tables that were made by it when ktrxer_rtnl_close()
 * closes it.
 */
int ktrxer_nft_open(struct rtnl **rtnl);

/*
 * One rule of a dump: its user data and its counter. False: the message is no rule, or it has neither.
 */
bool ktrxer_nft_rule_read(struct bytes body, uint32_t *mark, uint64_t *packets);
/*
 * `take` is called for each rule; `restart` at the beginning, and when the rules changed while they were read: forget
 * what was taken.
 */
struct nft_reader {
	void (*restart)(void *context);
	void (*take)(void *context, uint32_t mark, uint64_t packets);
};
int ktrxer_nft_counters(const char *table, const struct nft_reader *reader, void *context);

#endif
