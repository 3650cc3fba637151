/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Addresses as sockets have them. */
#ifndef KTRXER_LIB_NAME_H
#define KTRXER_LIB_NAME_H

#include <ktrxer.h>

#include <netinet/in.h>
#include <sys/socket.h>

union ktrxer_name {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* `port` in host order. Its length. */
socklen_t ktrxer_name_make(union ktrxer_name *name, const struct ktrxer_addr *addr, uint16_t port);
/* The port, in host order. */
uint16_t ktrxer_name_read(const union ktrxer_name *name, struct ktrxer_addr *addr);

#endif
