/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nft.h"

#include "rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

enum { NETDEV = 5 /* NFPROTO_NETDEV */, TYPE_MASK = 0x3fff };

static void batch_mark(struct rtnl_request *b, uint16_t type)
{
	const struct nfgenmsg body = { .nfgen_family = AF_UNSPEC,
				       .version = NFNETLINK_V0,
				       .res_id = htons(NFNL_SUBSYS_NFTABLES) };

	ktrxer_rtnl_message_begin(b, type, 0, &body, sizeof body);
}

void ktrxer_nft_batch_begin(struct rtnl_request *b)
{
	ktrxer_rtnl_batch_begin(b);
	batch_mark(b, NFNL_MSG_BATCH_BEGIN);
}

void ktrxer_nft_batch_end(struct rtnl_request *b)
{
	ktrxer_rtnl_request_acknowledge(b);
	batch_mark(b, NFNL_MSG_BATCH_END);
}

void ktrxer_nft_message_begin(struct rtnl_request *b, uint8_t type, uint16_t flags)
{
	const struct nfgenmsg body = { .nfgen_family = NETDEV, .version = NFNETLINK_V0 };

	ktrxer_rtnl_message_begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &body, sizeof body);
}

int ktrxer_nft_open(struct rtnl **rtnl)
{
	int rc = ktrxer_rtnl_open_family(rtnl, NETLINK_NETFILTER);

	if (rc == 0)
		ktrxer_rtnl_batch_allow(*rtnl);
	return rc;
}

static bool counter_read(struct bytes expression, uint64_t *packets)
{
	struct bytes value, data = { 0 };
	char name[16] = "";
	uint16_t type;

	while (ktrxer_rtnl_next(&expression, &type, &value)) {
		if ((type & TYPE_MASK) == NFTA_EXPR_NAME)
			ktrxer_rtnl_string(value, name, sizeof name);
		else if ((type & TYPE_MASK) == NFTA_EXPR_DATA)
			data = value;
	}
	if (strcmp(name, "counter") != 0)
		return false;
	while (ktrxer_rtnl_next(&data, &type, &value))
		if ((type & TYPE_MASK) == NFTA_COUNTER_PACKETS && bytes_left(&value) == 8) {
			*packets = bytes_be64(&value);
			return true;
		}
	return false;
}

bool ktrxer_nft_rule_read(struct bytes body, uint32_t *mark, uint64_t *packets)
{
	bool marked = false, counted = false;
	struct bytes value, expression;
	uint16_t type, inner;

	if (!bytes_skip(&body, sizeof(struct nfgenmsg)))
		return false;
	while (ktrxer_rtnl_next(&body, &type, &value)) {
		type &= TYPE_MASK;
		if (type == NFTA_RULE_USERDATA && bytes_left(&value) == sizeof *mark)
			marked = bytes_copy(&value, mark, sizeof *mark);
		else if (type == NFTA_RULE_EXPRESSIONS)
			while (ktrxer_rtnl_next(&value, &inner, &expression))
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

	if (type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE) && ktrxer_nft_rule_read(body, &mark, &packets))
		reading->reader->take(reading->context, mark, packets);
	return 0;
}

int ktrxer_nft_counters(const char *table, const struct nft_reader *reader, void *context)
{
	const struct nfgenmsg body = { .nfgen_family = NETDEV, .version = NFNETLINK_V0 };
	struct reading reading = { .reader = reader, .context = context };
	struct rtnl_request request;
	struct rtnl *rtnl;
	int rc = ktrxer_rtnl_open_family(&rtnl, NETLINK_NETFILTER);

	if (rc < 0)
		return rc;
	ktrxer_rtnl_request_begin(&request, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, NLM_F_DUMP, &body,
				  sizeof body);
	ktrxer_rtnl_request_put_string(&request, NFTA_RULE_TABLE, table);
	rc = ktrxer_rtnl_dump(rtnl, &request, reading_restart, rule_take, &reading);
	ktrxer_rtnl_close(rtnl);
	return rc == -EINTR ? 0 : rc; /* rules that change all the time: the last reading is good enough */
}
