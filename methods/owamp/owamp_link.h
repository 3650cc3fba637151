/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The client's control connection: exchanges of whole messages, each with a limit of time. */
#ifndef KTRXER_METHODS_OWAMP_LINK_H
#define KTRXER_METHODS_OWAMP_LINK_H

#include <ktrxer.h>

#define OWAMP_PATIENCE_NS (10 * (uint64_t)KTRXER_NS_PER_S)

struct owamp_link {
	int fd, stop_fd;      /* stop_fd -1: none, or the stop has been handled */
	uint64_t patience_ns; /* for a message of the client and the whole answer; owamp_link_open(): 10 s */
	uint64_t end_ns;      /* of this exchange, which begins with the connection and with each owamp_link_write() */
	struct ktrxer_addr local;
};

/* -EINTR: stop_fd is readable. All: 0, or a negative errno with a text; owamp_link_close() in any case. */
int owamp_link_open(struct owamp_link *link, const struct ktrxer_addr *to, const struct ktrxer_addr *from,
		    uint16_t port, int stop_fd, struct ktrxer_error *err);
int owamp_link_write(struct owamp_link *link, const uint8_t *data, size_t length, struct ktrxer_error *err);
int owamp_link_read(struct owamp_link *link, uint8_t *data, size_t length, struct ktrxer_error *err);
void owamp_link_close(struct owamp_link *link);
/* `accept` of an answer about `what`: 0, or -ECONNREFUSED with a text. */
int owamp_link_accepted(uint8_t accept, const char *what, struct ktrxer_error *err);
/* `what` of the server is malformed: -EPROTO with a text. */
int owamp_link_bad(const char *what, struct ktrxer_error *err);

#endif
