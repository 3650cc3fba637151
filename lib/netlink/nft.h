/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A small client of nf_tables: one batch that makes a table, and a look at its counters. A table made here is owned by its socket
 * (Linux 5.12): the kernel takes it away when the socket closes, that is, with the process. No nft program and no library is needed.
 */
#ifndef KTRXER_LIB_NFT_H
#define KTRXER_LIB_NFT_H

#include "bytes.h"
#include "error.h"

#include <linux/netlink.h>

/* Messages of one transaction. What finds no memory marks it as failed, and it is not sent. */
struct nft_batch {
	uint8_t *data;
	size_t length, room;
	uint32_t sequence; /* of the message that was begun last */
	size_t message;	   /* where it begins */
	bool failed;
};

void nft_batch_begin(struct nft_batch *batch);
void nft_batch_end(struct nft_batch *batch);
void nft_batch_free(struct nft_batch *batch);

/* A message NFT_MSG_...; attributes follow, then nft_message_end(). */
void nft_message_begin(struct nft_batch *batch, uint8_t type, uint16_t flags);
void nft_message_end(struct nft_batch *batch);
void nft_put(struct nft_batch *batch, uint16_t type, const void *value, size_t length);
void nft_put_be32(struct nft_batch *batch, uint16_t type, uint32_t value);
void nft_put_string(struct nft_batch *batch, uint16_t type, const char *text);
size_t nft_nest(struct nft_batch *batch, uint16_t type);
void nft_nest_end(struct nft_batch *batch, size_t nest);

struct rtnl;
/* The kernel removes the tables that were made by this socket when rtnl_close() closes it. */
int nft_open(struct rtnl **rtnl);
/* All of it or nothing. The kernel's error, and which message it is about (0: the transaction; 1, 2...: in their order). */
int nft_commit(struct rtnl *rtnl, struct nft_batch *batch, uint32_t *message);

/* One rule of a dump: what it carries as user data, and its counter. False: the message is no rule, or it has neither. */
bool nft_rule_read(struct bytes body, uint32_t *mark, uint64_t *packets);
/* `take` is called for each rule; `restart` at the beginning, and when the rules changed while they were read: forget what was taken. */
struct nft_reader {
	void (*restart)(void *context);
	void (*take)(void *context, uint32_t mark, uint64_t packets);
};
int nft_counters(const char *table, const struct nft_reader *reader, void *context);

#endif
