/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	KTRXER_NETLINK_BUFFER = 32768,
	KTRXER_NETLINK_BATCH = 16 << 20, /* one transaction of nftables */
	KTRXER_NETLINK_DUMP_TRIES = 4,   /* of a table that changes while it is read */
};

/* Headers of an old router's toolchain may lack the names; an old kernel refuses the numbers. */
enum {
	OPTION_CAP_ACK = 10,        /* Linux 4.3: an acknowledgement does not bring the whole request back */
	OPTION_EXT_ACK = 11,        /* Linux 4.12: words beside an error's number */
	OPTION_GET_STRICT_CHK = 12, /* Linux 4.20: dumps honour the filters in their request */
	FLAG_CAPPED = 0x100,
	FLAG_ACK_TLVS = 0x200,
	ATTRIBUTE_MESSAGE = 1,
};

struct rtnl {
	int fd;
	uint32_t port, sequence;
	uint8_t buffer[KTRXER_NETLINK_BUFFER];
};

int ktrxer_rtnl_open(struct rtnl **rtnl)
{
	return ktrxer_rtnl_open_family(rtnl, NETLINK_ROUTE);
}

int ktrxer_rtnl_open_family(struct rtnl **rtnl, int family)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	socklen_t length = sizeof address;
	/* The kernel answers within the call that asks; this is for one that never does. */
	struct timeval patience = { .tv_sec = 2 };
	struct rtnl *r = malloc(sizeof *r);
	int one = 1, ret;

	if (!r)
		return -ENOMEM;
	r->sequence = 0;
	r->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, family);
	if (r->fd < 0) {
		ret = -errno;
		goto free_it;
	}
	setsockopt(r->fd, SOL_NETLINK, OPTION_CAP_ACK, &one, sizeof one);
	setsockopt(r->fd, SOL_NETLINK, OPTION_EXT_ACK, &one, sizeof one);
	setsockopt(r->fd, SOL_NETLINK, OPTION_GET_STRICT_CHK, &one, sizeof one);
	if (setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
	    bind(r->fd, (struct sockaddr *)&address, sizeof address) ||
	    getsockname(r->fd, (struct sockaddr *)&address, &length)) {
		ret = -errno;
		goto close_it;
	}
	r->port = address.nl_pid;
	*rtnl = r;
	return 0;

close_it:
	close(r->fd);
free_it:
	free(r);
	return ret;
}

void ktrxer_rtnl_close(struct rtnl *rtnl)
{
	if (!rtnl)
		return;
	close(rtnl->fd);
	free(rtnl);
}

/*
 * Zeroed room at the end, up to the next boundary of netlink's, which the message's length includes. NULL: there is
 * none.
 */
static uint8_t *request_room(struct rtnl_request *request, size_t length)
{
	const size_t padded = NLMSG_ALIGN(length);
	uint32_t message_length;
	uint8_t *at;

	if (!request->failed && request->length + padded > request->room && request->grows) {
		size_t room = request->room ? request->room : 4096;

		while (room < request->length + padded)
			room *= 2;
		at = realloc(request->data, room);
		if (at) {
			request->data = at;
			request->room = room;
		}
	}
	request->failed |= request->length + padded > request->room;
	if (request->failed)
		return NULL;
	at = request->data + request->length;
	memset(at, 0, padded);
	request->length += padded;
	message_length = (uint32_t)(request->length - request->message);
	memcpy(request->data + request->message, &message_length,
	       sizeof message_length); /* struct nlmsghdr: nlmsg_len comes first */
	return at;
}

void ktrxer_rtnl_request_begin(struct rtnl_request *request, uint16_t type, uint16_t flags, const void *body,
			       size_t length)
{
	request->data = request->own;
	request->room = sizeof request->own;
	request->length = 0;
	request->grows = request->failed = false;
	ktrxer_rtnl_message_begin(request, type, flags, body, length);
}

void ktrxer_rtnl_batch_begin(struct rtnl_request *batch)
{
	batch->data = NULL;
	batch->length = batch->room = 0;
	batch->failed = false;
	batch->grows = true;
}

void ktrxer_rtnl_request_free(struct rtnl_request *request)
{
	if (request->grows)
		free(request->data);
	ktrxer_rtnl_batch_begin(request);
}

static void request_append(struct rtnl_request *request, const void *data, size_t length)
{
	uint8_t *at = request_room(request, length);

	if (at && length)
		memcpy(at, data, length);
}

void ktrxer_rtnl_message_begin(struct rtnl_request *request, uint16_t type, uint16_t flags, const void *body,
			       size_t length)
{
	struct nlmsghdr header = { .nlmsg_type = type, .nlmsg_flags = flags | NLM_F_REQUEST };
	uint8_t *at;

	request->message = request->length;
	at = request_room(request, sizeof header);
	if (!at)
		return;
	header.nlmsg_len = sizeof header;
	memcpy(at, &header, sizeof header);
	request_append(request, body, length);
}

void ktrxer_rtnl_request_put(struct rtnl_request *request, uint16_t type, const void *value, size_t length)
{
	struct rtattr attribute = { .rta_len = (uint16_t)(sizeof attribute + length), .rta_type = type };
	uint8_t *at = request_room(request, sizeof attribute + length);

	if (!at)
		return;
	memcpy(at, &attribute, sizeof attribute);
	if (length)
		memcpy(at + sizeof attribute, value, length);
}

void ktrxer_rtnl_request_put_u32(struct rtnl_request *request, uint16_t type, uint32_t value)
{
	ktrxer_rtnl_request_put(request, type, &value, sizeof value);
}

void ktrxer_rtnl_request_put_be32(struct rtnl_request *request, uint16_t type, uint32_t value)
{
	ktrxer_rtnl_request_put_u32(request, type, htonl(value));
}

void ktrxer_rtnl_request_put_string(struct rtnl_request *request, uint16_t type, const char *text)
{
	ktrxer_rtnl_request_put(request, type, text, strlen(text) + 1);
}

size_t ktrxer_rtnl_request_nest(struct rtnl_request *request, uint16_t type)
{
	const size_t at = request->length;

	ktrxer_rtnl_request_put(request, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void ktrxer_rtnl_request_nest_end(struct rtnl_request *request, size_t nest)
{
	const uint16_t length = (uint16_t)(request->length - nest);

	if (!request->failed)
		memcpy(request->data + nest, &length, sizeof length); /* struct rtattr: rta_len comes first */
}

void ktrxer_rtnl_request_acknowledge(struct rtnl_request *request)
{
	struct nlmsghdr header;

	if (request->failed)
		return;
	memcpy(&header, request->data + request->message, sizeof header);
	header.nlmsg_flags |= NLM_F_ACK;
	memcpy(request->data + request->message, &header, sizeof header);
}

/* Netlink aligns attributes; the last one may end without padding. */
static void skip_padding(struct bytes *b, size_t length)
{
	size_t padding = -length % NLMSG_ALIGNTO, left = bytes_left(b);

	bytes_skip(b, padding < left ? padding : left);
}

bool ktrxer_rtnl_next(struct bytes *attributes, uint16_t *type, struct bytes *value)
{
	struct rtattr attribute;

	if (!bytes_left(attributes) || !bytes_copy(attributes, &attribute, sizeof attribute))
		return false;
	if (attribute.rta_len < sizeof attribute) {
		attributes->ok = false; /* it would stand still, or go back */
		return false;
	}
	*type = attribute.rta_type & NLA_TYPE_MASK;
	*value = bytes_sub(attributes, attribute.rta_len - sizeof attribute);
	if (!attributes->ok)
		return false;
	skip_padding(attributes, attribute.rta_len);
	return true;
}

uint32_t ktrxer_rtnl_u32(struct bytes value)
{
	uint32_t number = 0;

	if (bytes_left(&value) == sizeof number)
		bytes_copy(&value, &number, sizeof number);
	return number;
}

void ktrxer_rtnl_string(struct bytes value, char *text, size_t size)
{
	size_t left = bytes_left(&value), length;
	const char *from = (const char *)bytes_take(&value, left);

	text[0] = '\0';
	if (!from || !left || !memchr(from, '\0', left))
		return;
	length = strlen(from);
	if (length >= size)
		length = size - 1;
	memcpy(text, from, length);
	text[length] = '\0';
}

static void read_words(struct rtnl_answer *answer, struct bytes attributes)
{
	struct bytes value;
	uint16_t type;

	while (ktrxer_rtnl_next(&attributes, &type, &value))
		if (type == ATTRIBUTE_MESSAGE)
			ktrxer_rtnl_string(value, answer->text, sizeof answer->text);
}

static int read_error(struct rtnl_answer *answer, uint16_t flags, struct bytes body)
{
	struct nlmsghdr request;
	int32_t code;

	answer->complete = true;
	if (!bytes_copy(&body, &code, sizeof code) || !bytes_copy(&body, &request, sizeof request))
		return -EBADMSG;
	if (flags & FLAG_ACK_TLVS) {
		if (!(flags & FLAG_CAPPED)) {
			if (request.nlmsg_len < sizeof request ||
			    !bytes_skip(&body, request.nlmsg_len - sizeof request))
				return -EBADMSG;
			skip_padding(&body, request.nlmsg_len);
		}
		read_words(answer, body);
	}
	/* An error is negative and an errno; 0 is an acknowledgement. */
	return code <= 0 && code > -4096 ? code : -EBADMSG;
}

static int read_done(struct rtnl_answer *answer, uint16_t flags, struct bytes body)
{
	int32_t code;

	answer->complete = true;
	if (!bytes_left(&body))
		return 0;
	if (!bytes_copy(&body, &code, sizeof code))
		return -EBADMSG;
	if (flags & FLAG_ACK_TLVS)
		read_words(answer, body);
	/* Some dumps leave a length here, which is positive. */
	return code < 0 ? (code > -4096 ? code : -EBADMSG) : 0;
}

int ktrxer_rtnl_read(struct rtnl_answer *answer, struct bytes datagram, rtnl_take *take, void *context)
{
	while (bytes_left(&datagram) && !answer->complete) {
		struct nlmsghdr header;
		struct bytes body;
		int ret = 0;

		if (!bytes_copy(&datagram, &header, sizeof header) || header.nlmsg_len < sizeof header)
			return -EBADMSG;
		body = bytes_sub(&datagram, header.nlmsg_len - sizeof header);
		if (!datagram.ok)
			return -EBADMSG;
		skip_padding(&datagram, header.nlmsg_len);
		if (header.nlmsg_seq - answer->sequence > answer->last || header.nlmsg_pid != answer->port)
			continue;
		if (header.nlmsg_flags & NLM_F_DUMP_INTR)
			answer->interrupted = true;

		switch (header.nlmsg_type) {
		case NLMSG_ERROR:
			answer->message = header.nlmsg_seq - answer->sequence;
			ret = read_error(answer, header.nlmsg_flags, body);
			if (ret < 0 || answer->message == answer->last)
				return ret;
			answer->complete = false; /* of another message of the batch */
			break;
		case NLMSG_DONE:
			return read_done(answer, header.nlmsg_flags, body);
		case NLMSG_NOOP:
			break;
		case NLMSG_OVERRUN:
			return -ENOBUFS;
		default:
			if (take)
				ret = take(context, header.nlmsg_type, body);
			if (ret < 0)
				return ret;
			if (!(header.nlmsg_flags & NLM_F_MULTI))
				answer->complete = true;
		}
	}
	return 0;
}

/*
 * One datagram from the kernel (any process may send to our port: those are passed over). Its length, or a negative
 * errno.
 */
static ssize_t receive(struct rtnl *rtnl)
{
	for (;;) {
		struct sockaddr_nl from = { .nl_family = AF_UNSPEC };
		struct iovec iov = { .iov_base = rtnl->buffer, .iov_len = sizeof rtnl->buffer };
		struct msghdr message = {
			.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1
		};
		ssize_t n = recvmsg(rtnl->fd, &message, 0);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		}
		if (message.msg_namelen != sizeof from || from.nl_family != AF_NETLINK || from.nl_pid != 0)
			continue;
		return message.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
	}
}

static int send_all(struct rtnl *rtnl, const uint8_t *data, size_t length)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	while (sendto(rtnl->fd, data, length, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int answer_read(struct rtnl *rtnl, struct rtnl_answer *answer, rtnl_take *take, void *context)
{
	int ret = 0;

	while (!ret && !answer->complete) {
		ssize_t n = receive(rtnl);

		ret = n < 0 ? (int)n : ktrxer_rtnl_read(answer, bytes_of(rtnl->buffer, (size_t)n), take, context);
	}
	return !ret && answer->interrupted ? -EINTR : ret;
}

int ktrxer_rtnl_talk(struct rtnl *rtnl, struct rtnl_request *request, rtnl_take *take, void *context,
		     char text[RTNL_TEXT])
{
	struct rtnl_answer answer = { .sequence = ++rtnl->sequence, .port = rtnl->port };
	struct nlmsghdr header;
	int ret;

	if (text)
		text[0] = '\0';
	if (request->failed)
		return -EMSGSIZE;
	memcpy(&header, request->data, sizeof header);
	header.nlmsg_seq = answer.sequence;
	memcpy(request->data, &header, sizeof header);
	ret = send_all(rtnl, request->data, request->length);
	if (ret < 0)
		return ret;
	ret = answer_read(rtnl, &answer, take, context);
	if (text)
		memcpy(text, answer.text, RTNL_TEXT);
	return ret;
}

int ktrxer_rtnl_dump(struct rtnl *rtnl, struct rtnl_request *request, void (*restart)(void *context), rtnl_take *take,
		     void *context)
{
	int ret = -EINTR;

	for (int i = 0; ret == -EINTR && i < KTRXER_NETLINK_DUMP_TRIES; i++) {
		if (restart)
			restart(context);
		ret = ktrxer_rtnl_talk(rtnl, request, take, context, NULL);
	}
	return ret;
}

void ktrxer_rtnl_batch_allow(struct rtnl *rtnl)
{
	const struct timeval patience = { .tv_sec = 10 }; /* a commit waits for an RCU grace period */
	const int bytes = KTRXER_NETLINK_BATCH;

	(void)setsockopt(rtnl->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (setsockopt(rtnl->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
		(void)setsockopt(rtnl->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

int ktrxer_rtnl_batch(struct rtnl *rtnl, struct rtnl_request *batch, uint32_t *message)
{
	struct rtnl_answer answer = { .sequence = rtnl->sequence + 1, .port = rtnl->port };
	struct nlmsghdr header;
	uint32_t count = 0;
	int ret;

	*message = 0;
	if (batch->failed)
		return -ENOMEM;
	for (size_t at = 0; at < batch->length; at += header.nlmsg_len, count++) {
		memcpy(&header, batch->data + at, sizeof header);
		header.nlmsg_seq = ++rtnl->sequence;
		memcpy(batch->data + at, &header, sizeof header);
	}
	if (count < 3)
		return -EINVAL; /* a beginning, a message, an end */
	answer.last = count - 2;
	ret = send_all(rtnl, batch->data, batch->length);
	if (ret < 0)
		return ret;
	ret = answer_read(rtnl, &answer, NULL, NULL);
	*message = ret < 0 ? answer.message : 0;
	return ret;
}
