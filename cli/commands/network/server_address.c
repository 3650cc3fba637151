/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server_address.h"

#include "error.h"
#include "flow_connect.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { ADDRESSES_MAX = 8 };
#define HEAD_START_NS (250 * (uint64_t)KTRXER_NS_PER_MS)
#define WAIT_NS (5 * (uint64_t)KTRXER_NS_PER_S)

struct attempts {
	const struct ktrxer_addr *addrs, *from;
	struct pollfd sockets[ADDRESSES_MAX + 1]; /* and the signal to stop; fd -1: not begun, or failed */
	int count, begun, open;
	uint16_t port;
};

static void begin_next(struct attempts *a)
{
	int error, *fd = &a->sockets[a->begun].fd;

	*fd = flow_connect_socket(&a->addrs[a->begun], a->from, a->port, NULL, &error);
	a->open += *fd >= 0;
	a->begun++;
}

/* Returns the number of the address that is connected, or -1. */
static int look_at(struct attempts *a)
{
	for (int i = 0; i < a->begun; i++) {
		if (a->sockets[i].fd < 0 || !a->sockets[i].revents)
			continue;
		if (flow_connect_established(a->sockets[i].fd))
			return i;
		close(a->sockets[i].fd);
		a->sockets[i].fd = -1;
		a->open--;
	}
	return -1;
}

static int first_connected(struct attempts *a)
{
	const uint64_t start_ns = ktrxer_now_ns();
	int found = -1;

	while (found < 0 && (a->open || a->begun < a->count)) {
		const uint64_t waited_ns = ktrxer_now_ns() - start_ns, next_ns = (uint64_t)a->begun * HEAD_START_NS;
		uint64_t until_ns = WAIT_NS;

		if (a->begun < a->count) {
			if (!a->open || waited_ns >= next_ns) {
				begin_next(a);
				continue;
			}
			until_ns = next_ns;
		}
		if (waited_ns >= until_ns)
			break;
		if (poll(a->sockets, ADDRESSES_MAX + 1, (int)((until_ns - waited_ns) / KTRXER_NS_PER_MS + 1)) < 0 &&
		    errno != EINTR)
			break;
		if (a->sockets[ADDRESSES_MAX].revents)
			break;
		found = look_at(a);
	}
	return found;
}

int server_address_find(const struct cli *cli, const char *host, const struct ktrxer_addr *from, bool v4, bool v6,
			uint16_t port, struct ktrxer_addr *addr, struct ktrxer_error *err)
{
	struct ktrxer_addr addrs[ADDRESSES_MAX];
	struct attempts a = { .addrs = addrs, .from = from, .port = port };
	int found = -1;

	a.count = cli_resolve_all(host, from, v4, v6, addrs, ADDRESSES_MAX, err);
	if (a.count < 0)
		return a.count;
	if (a.count > 1) {
		for (int i = 0; i <= ADDRESSES_MAX; i++)
			a.sockets[i] = (struct pollfd){ .fd = -1, .events = POLLOUT };
		a.sockets[ADDRESSES_MAX] = (struct pollfd){ .fd = cli->stop_fd, .events = POLLIN };
		found = first_connected(&a);
		for (int i = 0; i < a.begun; i++)
			if (a.sockets[i].fd >= 0)
				close(a.sockets[i].fd);
	}
	*addr = addrs[found < 0 ? 0 : found];
	return 0;
}
