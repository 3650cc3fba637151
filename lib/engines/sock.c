/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sock.h"

#include "txstamp.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <unistd.h>

void ktx_sock_init(struct ktx_sock *sock, int fd)
{
	memset(sock, 0, sizeof *sock);
	sock->fd = fd;
	for (int i = 0; i < KTX_BATCH_MAX; i++) {
		sock->messages[i].msg_hdr.msg_iov = &sock->vectors[i];
		sock->messages[i].msg_hdr.msg_iovlen = 1;
	}
}

void ktx_sock_close(struct ktx_sock *sock)
{
	if (sock->fd >= 0)
		close(sock->fd);
	sock->fd = -1;
}

void ktx_sock_stamps(struct ktx_sock *sock, int fd, uint8_t family, const struct ktx_options *options)
{
	sock->stamps = ktrxer_txstamp_enable(fd) == 0;
	sock->sched = sock->stamps && !(options->flags & KTX_NO_SCHED) && ktrxer_txstamp_add_sched(fd) == 0;
#ifndef KTRXER_SMALL
	if (sock->sched && family)
		ktrxer_txstamp_add_path(fd, family);
#else
	(void)family;
#endif
}

uint32_t ktx_sock_stamp_features(const struct ktx_sock *sock)
{
	return (sock->stamps ? KTX_CAN_DRIVER_STAMP : 0) | (sock->sched ? KTX_CAN_SCHED_STAMP : 0);
}

/* The kernel counts a packet as the socket's memory until the driver has taken it, or a queue has dropped it. */
bool ktx_sock_holds(const struct ktx_sock *sock)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof memory;

	return getsockopt(sock->fd, SOL_SOCKET, SO_MEMINFO, memory, &size) == 0 && memory[SK_MEMINFO_WMEM_ALLOC];
}

int ktx_sock_send(struct ktx_sock *sock, int count)
{
	int n;

	/* One datagram is cheaper by the plain call. */
	if (count == 1)
		n = sendmsg(sock->fd, &sock->messages[0].msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
	else
		n = sendmmsg(sock->fd, sock->messages, (unsigned)count, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

/*
 * More than any datagram or frame: EMSGSIZE before a byte of it is looked at. Never written or read, so it takes no
 * memory.
 */
#define WARM_LENGTH (128 << 10)
static uint8_t warm_nothing[WARM_LENGTH];

void ktx_sock_warm(struct ktx_sock *sock)
{
	struct iovec vector = { .iov_base = warm_nothing, .iov_len = WARM_LENGTH };
	struct msghdr message = sock->messages[0].msg_hdr;

	message.msg_iov = &vector;
	(void)!sendmsg(sock->fd, &message, MSG_DONTWAIT);
}
