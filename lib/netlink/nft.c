/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nft.h"

#include "rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { NETDEV = 5 /* NFPROTO_NETDEV */, TYPE_MASK = 0x3fff, SEND_ROOM = 16 << 20 };

struct nft {
	int fd;
	uint8_t buffer[32768];
};

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

int nft_open(struct nft **out)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	struct timeval patience = { .tv_sec = 10 }; /* a commit waits for an RCU grace period */
	const int bytes = SEND_ROOM;
	struct nft *nft = malloc(sizeof *nft);
	int rc;

	if (!nft)
		return -ENOMEM;
	nft->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (nft->fd < 0 || setsockopt(nft->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
	    bind(nft->fd, (struct sockaddr *)&address, sizeof address)) {
		rc = -errno;
		nft_close(nft);
		return rc;
	}
	/* A transaction is one datagram, however long. */
	if (setsockopt(nft->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
		(void)setsockopt(nft->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	*out = nft;
	return 0;
}

void nft_close(struct nft *nft)
{
	if (!nft)
		return;
	if (nft->fd >= 0)
		close(nft->fd);
	free(nft);
}

/* The answers to a transaction whose last message (before the end) asked for an acknowledgement. */
static int answers_read(struct nft *nft, uint32_t last, uint32_t *message)
{
	for (;;) {
		ssize_t n = recv(nft->fd, nft->buffer, sizeof nft->buffer, 0);
		struct bytes b;

		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		b = bytes_of(nft->buffer, (size_t)n);
		while (bytes_left(&b) >= sizeof(struct nlmsghdr)) {
			struct nlmsghdr header;
			struct nlmsgerr error;
			struct bytes body = b;

			bytes_copy(&body, &header, sizeof header);
			if (header.nlmsg_len < sizeof header || !bytes_skip(&b, NLMSG_ALIGN(header.nlmsg_len) <= bytes_left(&b) ? NLMSG_ALIGN(header.nlmsg_len)
																 : header.nlmsg_len))
				return -EBADMSG;
			if (header.nlmsg_type != NLMSG_ERROR)
				continue;
			if (!bytes_copy(&body, &error, sizeof error))
				return -EBADMSG;
			if (error.error) {
				*message = header.nlmsg_seq;
				return error.error < 0 ? error.error : -EBADMSG;
			}
			if (header.nlmsg_seq == last)
				return 0;
		}
	}
}

int nft_commit(struct nft *nft, struct nft_batch *b, uint32_t *message)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	*message = 0;
	if (b->failed)
		return -ENOMEM;
	if (sendto(nft->fd, b->data, b->length, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
		return -errno;
	return answers_read(nft, b->sequence - 2, message); /* the last but the end's own */
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
	void (*take)(void *context, uint32_t mark, uint64_t packets);
	void *context;
};

static int rule_take(void *context, uint16_t type, struct bytes body)
{
	const struct reading *reading = context;
	uint32_t mark;
	uint64_t packets;

	if (type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE) && nft_rule_read(body, &mark, &packets))
		reading->take(reading->context, mark, packets);
	return 0;
}

int nft_counters(const char *table, void (*take)(void *context, uint32_t mark, uint64_t packets), void *context)
{
	const struct nfgenmsg body = { .nfgen_family = NETDEV, .version = NFNETLINK_V0 };
	struct reading reading = { .take = take, .context = context };
	struct rtnl_request request;
	struct rtnl *rtnl;
	int rc = rtnl_open_family(&rtnl, NETLINK_NETFILTER);

	if (rc < 0)
		return rc;
	rtnl_request_begin(&request, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, NLM_F_DUMP, &body, sizeof body);
	rtnl_request_put(&request, NFTA_RULE_TABLE, table, (uint32_t)strlen(table) + 1);
	rc = rtnl_talk(rtnl, &request, rule_take, &reading, NULL);
	rtnl_close(rtnl);
	return rc;
}
