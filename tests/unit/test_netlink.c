/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The transport of all netlink clients (rtnetlink, generic netlink, nf_tables): signals, datagrams of other processes,
 * answers to earlier requests, errors of one message of a batch, tables that change under a dump. The kernel is this
 * file's (--wrap).
 */
#include "cm.h"
#include "nft.h"
#include "rtnl.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

enum { SIGNAL = -1, END = 0, MESSAGE = 1, PART = 2, CHANGED = 4, DONE = 8 };

/* Messages of the kernel's socket, in this order. Sequence numbers count from the first message of the last request. */
struct step {
	int what; /* SIGNAL: EINTR; MESSAGE: an error or an acknowledgement; PART, DONE: of a dump, with CHANGED too */
	uint32_t sender, sequence;
	int32_t error;
};

static const struct step *script;
static uint32_t port, first;
static int signals, sends;

int __real_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	int rc = __real_getsockname(fd, address, length);

	port = ((const struct sockaddr_nl *)(const void *)address)->nl_pid;
	return rc;
}

ssize_t __wrap_sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to,
		      socklen_t to_length);
ssize_t __wrap_sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to,
		      socklen_t to_length)
{
	struct nlmsghdr header;

	(void)fd, (void)flags, (void)to, (void)to_length;
	if (signals-- > 0) {
		errno = EINTR;
		return -1;
	}
	memcpy(&header, data, sizeof header);
	first = header.nlmsg_seq;
	sends++;
	return (ssize_t)length;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
	} answer = { 0 };
	const struct step *step = script;

	(void)fd, (void)flags;
	if (step->what == END) {
		errno = EAGAIN; /* the time is over */
		return -1;
	}
	script++;
	if (step->what == SIGNAL) {
		errno = EINTR;
		return -1;
	}
	answer.header = (struct nlmsghdr){ .nlmsg_len = sizeof answer,
					   .nlmsg_seq = first + step->sequence,
					   .nlmsg_pid = port,
					   .nlmsg_type = NLMSG_ERROR };
	if (step->what != MESSAGE) {
		answer.header.nlmsg_type = step->what & DONE ? NLMSG_DONE : RTM_NEWLINK;
		answer.header.nlmsg_flags = (uint16_t)(NLM_F_MULTI | (step->what & CHANGED ? NLM_F_DUMP_INTR : 0));
	}
	answer.error.error = step->error;
	answer.error.msg.nlmsg_len = sizeof answer.error.msg;
	assert_true(message->msg_iov->iov_len >= sizeof answer);
	memcpy(message->msg_iov->iov_base, &answer, sizeof answer);
	*(struct sockaddr_nl *)message->msg_name =
		(struct sockaddr_nl){ .nl_family = AF_NETLINK, .nl_pid = step->sender };
	message->msg_namelen = sizeof(struct sockaddr_nl);
	message->msg_flags = 0;
	return sizeof answer;
}

/* A batch of a beginning (number 0), two messages (1, 2), and an end (3): the acknowledgement of 2 ends it. */
static int commit(struct rtnl *rtnl, const struct step *steps, uint32_t *message)
{
	struct rtnl_request batch;
	int rc;

	ktrxer_nft_batch_begin(&batch);
	ktrxer_nft_message_begin(&batch, NFT_MSG_NEWTABLE, 0);
	ktrxer_rtnl_request_put_string(&batch, NFTA_TABLE_NAME, "t");
	ktrxer_nft_message_begin(&batch, NFT_MSG_NEWTABLE, 0);
	ktrxer_nft_batch_end(&batch);
	script = steps;
	rc = ktrxer_rtnl_batch(rtnl, &batch, message);
	ktrxer_rtnl_request_free(&batch);
	return rc;
}

TEST(a_commit)
{
	static const struct step good[] = { { SIGNAL, 0, 0, 0 }, { MESSAGE, 0, 2, 0 }, { END, 0, 0, 0 } };
	/* Another process, an earlier transaction and a later one say no; the kernel says yes. */
	static const struct step forged[] = { { MESSAGE, 4711, 1, -EPERM }, { MESSAGE, 0, (uint32_t)-1, -ENOENT },
					      { MESSAGE, 0, 7, -ENOENT },   { MESSAGE, 0, 1, 0 },
					      { MESSAGE, 0, 2, 0 },         { END, 0, 0, 0 } };
	/* Another process says yes. */
	static const struct step yes[] = { { MESSAGE, 4711, 2, 0 }, { MESSAGE, 0, 1, -EEXIST }, { END, 0, 0, 0 } };
	static const struct step whole[] = { { MESSAGE, 0, 0, -EPERM }, { END, 0, 0, 0 } };
	static const struct step silent[] = { { MESSAGE, 0, 1, 0 }, { END, 0, 0, 0 } };
	static const struct step lies[] = { { MESSAGE, 0, 2, 5 }, { END, 0, 0, 0 } };
	struct rtnl_request failed = { .failed = true };
	struct rtnl *rtnl;
	uint32_t message = 9;

	assert_int_equal(ktrxer_rtnl_open(&rtnl), 0);
	signals = 2;
	assert_int_equal(commit(rtnl, good, &message), 0);
	assert_int_equal(message, 0);
	assert_int_equal(commit(rtnl, forged, &message), 0);
	assert_int_equal(commit(rtnl, yes, &message), -EEXIST);
	assert_int_equal(message, 1);
	assert_int_equal(commit(rtnl, whole, &message), -EPERM);
	assert_int_equal(message, 0);
	assert_int_equal(commit(rtnl, silent, &message), -ETIMEDOUT);
	assert_int_equal(commit(rtnl, lies, &message), -EBADMSG);
	assert_int_equal(ktrxer_rtnl_batch(rtnl, &failed, &message), -ENOMEM);
	ktrxer_rtnl_close(rtnl);
}

TEST(batches_that_are_none)
{
	struct rtnl_request batch;
	struct rtnl *rtnl;
	uint32_t message;

	assert_int_equal(ktrxer_rtnl_open(&rtnl), 0);
	sends = 0;
	ktrxer_rtnl_batch_begin(&batch);
	assert_int_equal(ktrxer_rtnl_batch(rtnl, &batch, &message), -EINVAL);
	ktrxer_nft_batch_begin(&batch);
	ktrxer_nft_batch_end(&batch);
	assert_int_equal(ktrxer_rtnl_batch(rtnl, &batch, &message), -EINVAL);
	ktrxer_rtnl_request_free(&batch);
	assert_int_equal(sends, 0);
	ktrxer_rtnl_close(rtnl);
}

/* A batch grows past the room of a request, and each message has its own length. */
TEST(a_long_batch)
{
	static const uint8_t value[100] = { 0 };
	struct rtnl_request batch;
	uint32_t count = 0, length;

	ktrxer_nft_batch_begin(&batch);
	for (int i = 0; i < 500; i++) {
		ktrxer_nft_message_begin(&batch, NFT_MSG_NEWRULE, 0);
		for (int k = 0; k <= i % 3; k++)
			ktrxer_rtnl_request_put(&batch, 1, value, sizeof value);
	}
	ktrxer_nft_batch_end(&batch);
	assert_false(batch.failed);
	for (size_t at = 0; at < batch.length; at += length, count++) {
		memcpy(&length, batch.data + at, sizeof length);
		assert_int_equal(length, count == 0 || count == 501 ? 20 : 20 + 104 * ((count - 1) % 3 + 1));
	}
	assert_int_equal(count, 502);
	ktrxer_rtnl_request_free(&batch);
}

static int count_part(void *context, uint16_t type, struct bytes body)
{
	(void)type, (void)body;
	++*(int *)context;
	return 0;
}

static void count_again(void *context)
{
	*(int *)context = 0;
}

TEST(a_table_that_changes_under_a_dump)
{
	static const struct step once[] = { { PART, 0, 0, 0 }, { PART | CHANGED, 0, 0, 0 }, { DONE, 0, 0, 0 },
					    { PART, 0, 0, 0 }, { DONE, 0, 0, 0 },           { END, 0, 0, 0 } };
	static const struct step always[] = { { PART, 0, 0, 0 }, { DONE | CHANGED, 0, 0, 0 },
					      { PART, 0, 0, 0 }, { DONE | CHANGED, 0, 0, 0 },
					      { PART, 0, 0, 0 }, { DONE | CHANGED, 0, 0, 0 },
					      { PART, 0, 0, 0 }, { DONE | CHANGED, 0, 0, 0 },
					      { END, 0, 0, 0 } };
	const struct ifinfomsg info = { 0 };
	struct rtnl_request request;
	struct rtnl *rtnl;
	int parts = 0;

	assert_int_equal(ktrxer_rtnl_open(&rtnl), 0);
	ktrxer_rtnl_request_begin(&request, RTM_GETLINK, NLM_F_DUMP, &info, sizeof info);
	script = once;
	assert_int_equal(ktrxer_rtnl_dump(rtnl, &request, count_again, count_part, &parts), 0);
	assert_int_equal(parts, 1);
	script = always;
	sends = 0;
	assert_int_equal(ktrxer_rtnl_dump(rtnl, &request, count_again, count_part, &parts), -EINTR);
	assert_int_equal(sends, 4);
	assert_int_equal(parts, 1);
	ktrxer_rtnl_close(rtnl);
}
