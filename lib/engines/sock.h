/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Common parts of the engines that use a socket: batches of sendmmsg, and their stamps. */
#ifndef KTRXER_LIB_SOCK_H
#define KTRXER_LIB_SOCK_H

#include "engine.h"

#include <sys/socket.h>

struct ktx_sock {
	int fd;
	bool stamps; /* asked for, and numbered by the kernel */
	bool sched;  /* the packet scheduler's, too */
	struct mmsghdr messages[KTX_BATCH_MAX];
	struct iovec vectors[KTX_BATCH_MAX];
};

/* Takes over `fd` (may be -1 for now); the messages point at their vectors. */
void ktx_sock_init(struct ktx_sock *sock, int fd);
void ktx_sock_close(struct ktx_sock *sock);
/*
 * Asks for the stamps of what `fd` sends: the driver's, and the packet scheduler's unless the options decline them.
 * `family` of an IP socket, else 0: the latter report the device, too.
 */
void ktx_sock_stamps(struct ktx_sock *sock, int fd, uint8_t family, const struct ktx_options *options);
/* enum ktx_feature of the stamps that were granted. */
uint32_t ktx_sock_stamp_features(const struct ktx_sock *sock);
/* `holds` of the engine table. Kernels before 4.12: false. */
bool ktx_sock_holds(const struct ktx_sock *sock);
/* `send` of the engine table: sendmmsg of the first `count` messages. */
int ktx_sock_send(struct ktx_sock *sock, int count);
/* A call that the kernel refuses for its size, deep on the way to the device: it sends nothing and numbers no stamp. */
void ktx_sock_warm(struct ktx_sock *sock);

#endif
