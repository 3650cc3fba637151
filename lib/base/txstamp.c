/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "txstamp.h"

#include "bytes.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h> /* errqueue.h uses struct timespec and forgets to say so */
#include <linux/errqueue.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The 64-bit forms (Linux 5.1) have numbers of their own, which old C libraries do not know. */
#ifndef SO_TIMESTAMPING_NEW
#define SO_TIMESTAMPING_NEW 65
#endif
#define TIMESTAMPING_OLD 37
#define OPT_TX_SWHW (1u << 14) /* SOF_TIMESTAMPING_OPT_TX_SWHW */
#define ORIGIN_TXTIME 6 /* SO_EE_ORIGIN_TXTIME, Linux 4.19 */

static int timestamping_set(int fd, uint32_t flags)
{
	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING_NEW, &flags, sizeof flags) == 0)
		return 0;
	if (errno == ENOPROTOOPT && setsockopt(fd, SOL_SOCKET, TIMESTAMPING_OLD, &flags, sizeof flags) == 0)
		return 0;
	return -errno;
}

#define TX_FLAGS (SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE | \
		  SOF_TIMESTAMPING_OPT_TSONLY)

int ktrxer_txstamp_enable(int fd)
{
	/*
	 * Stamps wait in the receive buffer's allowance: room for a few thousand. Refused without privilege beyond the
	 * limit: fine.
	 */
	const int room = 4 << 20;

	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	return timestamping_set(fd, TX_FLAGS | SOF_TIMESTAMPING_OPT_ID);
}

static uint32_t timestamping_get(int fd)
{
	uint32_t flags = 0;
	socklen_t length = sizeof flags;

	return getsockopt(fd, SOL_SOCKET, TIMESTAMPING_OLD, &flags, &length) == 0 ? flags
										  : TX_FLAGS | SOF_TIMESTAMPING_OPT_ID;
}

int ktrxer_txstamp_add_sched(int fd)
{
	return timestamping_set(fd, timestamping_get(fd) | SOF_TIMESTAMPING_TX_SCHED);
}

#ifndef KTRXER_SMALL
#define OPT_CMSG (1u << 10) /* SOF_TIMESTAMPING_OPT_CMSG */

/* An ordinary user without this permission gets no stamps at all if it requests them with the packets. */
static bool data_allowed(void)
{
	char value = '1';
	const int fd = open("/proc/sys/net/core/tstamp_allow_data", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return true; /* not the first network namespace, or a kernel without the limit */
	(void)!read(fd, &value, 1);
	close(fd);
	return value != '0';
}

/* These stamps, and the packets of all stamps beside them. */
static void path_add(int fd, uint8_t family, uint32_t flags)
{
	const uint32_t whole = (timestamping_get(fd) & ~(uint32_t)SOF_TIMESTAMPING_OPT_TSONLY) | OPT_CMSG;

	if (data_allowed() && timestamping_set(fd, whole | flags) == 0)
		ktrxer_message_enable_device(fd, family);
}

void ktrxer_txstamp_add_path(int fd, uint8_t family)
{
	path_add(fd, family, 0);
}

void ktrxer_txstamp_path(int fd, uint8_t family, bool on)
{
	const uint32_t flags = timestamping_get(fd);

	if (on)
		path_add(fd, family, SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID);
	else if (flags & SOF_TIMESTAMPING_TX_SCHED)
		(void)timestamping_set(fd, (flags & ~(uint32_t)SOF_TIMESTAMPING_TX_SCHED) |
						   (flags & SOF_TIMESTAMPING_TX_SOFTWARE ? SOF_TIMESTAMPING_OPT_TSONLY
											 : 0));
}
#endif

/* With a NIC's stamp on its way the kernel makes none of its own, unless asked (SWHW, Linux 4.14). */
int ktrxer_txstamp_add_nic(int fd)
{
	return timestamping_set(fd, timestamping_get(fd) | SOF_TIMESTAMPING_TX_HARDWARE |
					    SOF_TIMESTAMPING_RAW_HARDWARE | OPT_TX_SWHW);
}

void ktrxer_txstamp_restart(int fd)
{
	const uint32_t flags = timestamping_get(fd);

	(void)timestamping_set(fd, flags & ~(uint32_t)SOF_TIMESTAMPING_OPT_ID);
	(void)timestamping_set(fd, flags | SOF_TIMESTAMPING_OPT_ID);
}

int ktrxer_rxstamp_enable(int fd)
{
	return timestamping_set(fd, SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
}

#define REPLY_FLAGS (SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY)
_Static_assert(KTRXER_TXSTAMP_ONE == SOF_TIMESTAMPING_TX_SOFTWARE && KTRXER_TXSTAMP_CONTROL == TIMESTAMPING_OLD,
	       "txstamp.h");

int ktrxer_replystamp_enable(int fd)
{
	return timestamping_set(fd, REPLY_FLAGS | SOF_TIMESTAMPING_OPT_ID);
}

void ktrxer_replystamp_restart(int fd)
{
	(void)timestamping_set(fd, REPLY_FLAGS);
	(void)timestamping_set(fd, REPLY_FLAGS | SOF_TIMESTAMPING_OPT_ID);
}

static bool is_error(const struct cmsghdr *c)
{
	return (c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) ||
	       (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR) ||
	       (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_TX_TIMESTAMP);
}

/* The sender of the ICMP error: the address behind the error, where the kernel gives one. */
static void reporter_copy(struct ktrxer_addr *reporter, struct bytes *b)
{
	uint16_t family;

	memset(reporter, 0, sizeof *reporter);
	if (!bytes_copy(b, &family, sizeof family))
		return;
	if (family == AF_INET && bytes_skip(b, 2) && bytes_copy(b, reporter->bytes, 4))
		reporter->family = AF_INET;
	else if (family == AF_INET6 && bytes_skip(b, 6) && bytes_copy(b, reporter->bytes, 16))
		reporter->family = AF_INET6;
}

static void refusal_report(const struct sock_extended_err *e, struct bytes *offender, const uint8_t *quoted,
			   uint32_t length, const struct ktx_completions *completions)
{
	struct ktx_network_error error = { .when_ns = ktrxer_now_ns(),
					   .error = (int)e->ee_errno,
					   .origin = e->ee_origin,
					   .type = e->ee_type,
					   .code = e->ee_code };

	if (!completions->refusal)
		return;
	reporter_copy(&error.reporter, offender);
	error.quoted_length = (uint16_t)(length < sizeof error.quoted ? length : sizeof error.quoted);
	memcpy(error.quoted, quoted, error.quoted_length);
	completions->refusal(completions->context, &error);
}

static int reap_one(struct mmsghdr *received, const struct ktx_completions *completions)
{
	struct msghdr *message = &received->msg_hdr;
	struct sock_extended_err e = { 0 };
	struct bytes offender = bytes_of(NULL, 0);
	struct ktrxer_message m;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
		if (is_error(c)) {
			offender = bytes_of(CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
			bytes_copy(&offender, &e, sizeof e);
		}
	if (e.ee_origin == SO_EE_ORIGIN_ICMP || e.ee_origin == SO_EE_ORIGIN_ICMP6 || e.ee_origin == SO_EE_ORIGIN_LOCAL)
		refusal_report(&e, &offender, message->msg_iov->iov_base, received->msg_len, completions);
	/*
	 * The queue that was to keep its time has dropped it: too late (ECANCELED), or not a time that it can keep
	 * (EINVAL).
	 */
	if (e.ee_origin == ORIGIN_TXTIME && completions->dropped)
		completions->dropped(completions->context, (uint64_t)e.ee_data << 32 | e.ee_info,
				     e.ee_errno == ECANCELED ? -ETIME : -EINVAL);
	if (e.ee_origin != SO_EE_ORIGIN_TIMESTAMPING || (e.ee_info != SCM_TSTAMP_SND && e.ee_info != SCM_TSTAMP_SCHED))
		return 0;
	ktrxer_message_read(&m, message);
	if (e.ee_info == SCM_TSTAMP_SCHED) {
		struct ktrxer_addr from = { 0 };

		if (!m.real_ns || !completions->sched)
			return 0;
#ifndef KTRXER_SMALL
		if (m.ifindex)
			reporter_copy(&from, &offender);
#endif
		completions->sched(completions->context, e.ee_data, m.real_ns, m.ifindex, &from);
		return 0;
	}
	if (m.nic_ns)
		completions->stamp(completions->context, e.ee_data, m.nic_ns, KTX_DEPARTURE_NIC, true);
	else if (m.real_ns)
		completions->stamp(completions->context, e.ee_data, m.real_ns, KTX_DEPARTURE_DRIVER, false);
	else
		return 0;
	return 1;
}

/* sock_extended_err with an address behind it, and three times: 128 is enough, 256 leaves room for what kernels add. */
#define CONTROL_ROOM 256
#define QUOTE_ROOM 64
#define REAP_BATCH 16

int ktrxer_txstamp_reap(int fd, const struct ktx_completions *completions)
{
	union {
		char room[CONTROL_ROOM];
		struct cmsghdr align;
	} control[REAP_BATCH];
	uint8_t quote[REAP_BATCH][QUOTE_ROOM];
	struct iovec vectors[REAP_BATCH];
	struct mmsghdr messages[REAP_BATCH];
	int total = 0, n;

	do {
		for (int i = 0; i < REAP_BATCH; i++) {
			vectors[i] = (struct iovec){ .iov_base = quote[i], .iov_len = QUOTE_ROOM };
			messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &vectors[i],
								     .msg_iovlen = 1,
								     .msg_control = control[i].room,
								     .msg_controllen = sizeof control[i].room } };
		}
		n = recvmmsg(fd, messages, REAP_BATCH, MSG_ERRQUEUE | MSG_DONTWAIT, NULL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? total : -errno;
		for (int i = 0; i < n; i++)
			if (!(messages[i].msg_hdr.msg_flags & MSG_CTRUNC))
				total += reap_one(&messages[i], completions);
	} while (n == REAP_BATCH);
	return total;
}
