/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sockets that a service manager has opened for this process, by the protocol of sd_listen_fds(3): descriptors from 3
 * on, their number in LISTEN_FDS, the process that they are for in LISTEN_PID.
 */
#ifndef KTRXER_CLI_SERVE_PASSED_SOCKETS_H
#define KTRXER_CLI_SERVE_PASSED_SOCKETS_H

#include <ktrxer.h>

#include <stdbool.h>

enum { PASSED_SOCKETS = 64 };

struct passed_socket {
	int fd;
	struct ktrxer_addr addr;
	uint16_t port;
	bool udp;
};

struct passed_sockets {
	struct passed_socket sockets[PASSED_SOCKETS];
	int count; /* 0: none were passed */
};

/*
 * Removes the variables from the environment. Each socket is a listening TCP socket or a bound UDP socket that has
 * stamped its datagrams so far; anything else is -EINVAL with one line. The descriptors belong to the caller, also
 * after a failure.
 */
int passed_sockets_take(struct passed_sockets *passed, struct ktrxer_error *err);
/* Of this address, port and kind; NULL: there is none. */
const struct passed_socket *passed_sockets_find(const struct passed_sockets *passed, const struct ktrxer_addr *addr,
						uint16_t port, bool udp);
/*
 * Checks that the sockets are those of a server with these ports: each address has UDP `port`, with `flows` also TCP
 * `port`, and may have UDP `stamp_port` (0: none). -EINVAL with one line.
 */
int passed_sockets_check(const struct passed_sockets *passed, uint16_t port, uint16_t stamp_port, bool flows,
			 struct ktrxer_error *err);

#endif
