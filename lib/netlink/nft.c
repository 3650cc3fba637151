/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nft.h"

#include "rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { NETDEV = 5 /* NFPROTO_NETDEV */, TYPE_MASK = 0x3fff };

/* --------------------------------------------------------------------------------------------------------- messages */

static uint8_t *room_for(struct nft_batch *b, size_t length)
{
	const size_t padded = NLMSG_ALIGN(length);
	uint8_t *at;

	if (b->failed)
		return NULL;
	if (b->length + padded > b->room) {
		size_t room = b->room ? b->room : 4096;

		while (room < b->length + padded)
			room *= 2;
		at = realloc(b->data, room);
		if (!at) {
			b->failed = true;
			return NULL;
		}
		b->data = at;
		b->room = room;
	}
	at = b->data + b->length;
	memset(at, 0, padded);
	b->length += padded;
	return at;
}

static void header_put(struct nft_batch *b, uint16_t type, uint16_t flags, uint8_t family, uint16_t resource)
{
	struct nlmsghdr header = { .nlmsg_type = type, .nlmsg_flags = flags | NLM_F_REQUEST, .nlmsg_seq = b->sequence++ };
	struct nfgenmsg body = { .nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(resource) };
	uint8_t *at;

	b->message = b->length;
	at = room_for(b, sizeof header + sizeof body);
	if (!at)
		return;
	memcpy(at, &header, sizeof header);
	memcpy(at + sizeof header, &body, sizeof body);
}

void nft_message_end(struct nft_batch *b)
{
	const uint32_t length = (uint32_t)(b->length - b->message);

	if (!b->failed)
		memcpy(b->data + b->message, &length, sizeof length); /* struct nlmsghdr: nlmsg_len comes first */
}

void nft_batch_begin(struct nft_batch *b)
{
	*b = (struct nft_batch){ 0 };
	header_put(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	nft_message_end(b);
}

void nft_batch_end(struct nft_batch *b)
{
	header_put(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	nft_message_end(b);
}

void nft_batch_free(struct nft_batch *b)
{
	free(b->data);
	*b = (struct nft_batch){ 0 };
}

void nft_message_begin(struct nft_batch *b, uint8_t type, uint16_t flags)
{
	header_put(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, NETDEV, 0);
}

void nft_put(struct nft_batch *b, uint16_t type, const void *value, size_t length)
{
	const struct nlattr attribute = { .nla_len = (uint16_t)(sizeof attribute + length), .nla_type = type };
	uint8_t *at = room_for(b, sizeof attribute + length);

	if (!at)
		return;
	memcpy(at, &attribute, sizeof attribute);
	if (length)
		memcpy(at + sizeof attribute, value, length);
}

void nft_put_be32(struct nft_batch *b, uint16_t type, uint32_t value)
{
	const uint32_t swapped = htonl(value);

	nft_put(b, type, &swapped, sizeof swapped);
}

void nft_put_string(struct nft_batch *b, uint16_t type, const char *text)
{
	nft_put(b, type, text, strlen(text) + 1);
}

size_t nft_nest(struct nft_batch *b, uint16_t type)
{
	const size_t at = b->length;

	nft_put(b, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void nft_nest_end(struct nft_batch *b, size_t nest)
{
	const uint16_t length = (uint16_t)(b->length - nest);

	if (!b->failed)
		memcpy(b->data + nest, &length, sizeof length); /* struct nlattr: nla_len comes first */
}

/* ------------------------------------------------------------------------------------------------------- the kernel */

int nft_open(struct rtnl **rtnl)
{
	int rc = rtnl_open_family(rtnl, NETLINK_NETFILTER);

	if (rc == 0)
		rtnl_batch_allow(*rtnl);
	return rc;
}

int nft_commit(struct rtnl *rtnl, struct nft_batch *b, uint32_t *message)
{
	*message = 0;
	return b->failed ? -ENOMEM : rtnl_batch(rtnl, b->data, b->length, message);
}

/* --------------------------------------------------------------------------------------------------------- counters */

static bool counter_read(struct bytes expression, uint64_t *packets)
{
	struct bytes value, data = { 0 };
	char name[16] = "";
	uint16_t type;

	while (rtnl_next(&expression, &type, &value)) {
		if ((type & TYPE_MASK) == NFTA_EXPR_NAME)
			rtnl_string(value, name, sizeof name);
		else if ((type & TYPE_MASK) == NFTA_EXPR_DATA)
			data = value;
	}
	if (strcmp(name, "counter") != 0)
		return false;
	while (rtnl_next(&data, &type, &value))
		if ((type & TYPE_MASK) == NFTA_COUNTER_PACKETS && bytes_left(&value) == 8) {
			*packets = bytes_be64(&value);
			return true;
		}
	return false;
}

bool nft_rule_read(struct bytes body, uint32_t *mark, uint64_t *packets)
{
	bool marked = false, counted = false;
	struct bytes value, expression;
	uint16_t type, inner;

	if (!bytes_skip(&body, sizeof(struct nfgenmsg)))
		return false;
	while (rtnl_next(&body, &type, &value)) {
		type &= TYPE_MASK;
		if (type == NFTA_RULE_USERDATA && bytes_left(&value) == sizeof *mark)
			marked = bytes_copy(&value, mark, sizeof *mark);
		else if (type == NFTA_RULE_EXPRESSIONS)
			while (rtnl_next(&value, &inner, &expression))
				if ((inner & TYPE_MASK) == NFTA_LIST_ELEM)
					counted |= counter_read(expression, packets);
	}
	return marked && counted;
}

struct reading {
	const struct nft_reader *reader;
	void *context;
};

static void reading_restart(void *context)
{
	const struct reading *reading = context;

	reading->reader->restart(reading->context);
}

static int rule_take(void *context, uint16_t type, struct bytes body)
{
	const struct reading *reading = context;
	uint32_t mark;
	uint64_t packets;

	if (type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE) && nft_rule_read(body, &mark, &packets))
		reading->reader->take(reading->context, mark, packets);
	return 0;
}

int nft_counters(const char *table, const struct nft_reader *reader, void *context)
{
	const struct nfgenmsg body = { .nfgen_family = NETDEV, .version = NFNETLINK_V0 };
	struct reading reading = { .reader = reader, .context = context };
	struct rtnl_request request;
	struct rtnl *rtnl;
	int rc = rtnl_open_family(&rtnl, NETLINK_NETFILTER);

	if (rc < 0)
		return rc;
	rtnl_request_begin(&request, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, NLM_F_DUMP, &body, sizeof body);
	rtnl_request_put(&request, NFTA_RULE_TABLE, table, (uint32_t)strlen(table) + 1);
	rc = rtnl_dump(rtnl, &request, reading_restart, rule_take, &reading);
	rtnl_close(rtnl);
	return rc == -EINTR ? 0 : rc; /* rules that change all the time: what was read last is good enough */
}
