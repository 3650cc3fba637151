/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sockets of the servers. An IPv6 socket takes no IPv4, so that there is one socket for each address. */
#ifndef KTRXER_METHODS_SERVER_SOCKET_H
#define KTRXER_METHODS_SERVER_SOCKET_H

#include <ktrxer.h>

/* Gives a UDP socket its address and port. A negative errno says what to do about the port. */
int server_socket_bind(int fd, const struct ktrxer_addr *to, uint16_t port, struct ktrxer_error *err);
/* A TCP socket that listens: `passed`, which is bound, or a new one (0). A negative errno as above. */
int server_socket_listen(int passed, const struct ktrxer_addr *to, uint16_t port, int backlog,
			 struct ktrxer_error *err);

#endif
