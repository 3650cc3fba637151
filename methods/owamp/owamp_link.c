/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_link.h"

#include "error.h"
#include "name.h"
#include "owamp_packet.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* Until the connection is ready for `events`, or the exchange has taken too long. */
static int wait_for(const struct owamp_link *l, short events, struct ktrxer_error *err)
{
	struct pollfd fds[2] = { { .fd = l->fd, .events = events }, { .fd = l->stop_fd, .events = POLLIN } };

	for (;;) {
		const uint64_t now_ns = ktrxer_now_ns();
		const uint64_t left_ns = now_ns < l->end_ns ? l->end_ns - now_ns : 0;
		const int n = left_ns ? poll(fds, 2, (int)(left_ns / KTRXER_NS_PER_MS) + 1) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ktrxer_fail(err, -errno, "the control connection: %m");
		if (n == 0)
			return ktrxer_fail(err, -ETIMEDOUT,
					   "the server's answer on the control connection is not complete after %u s",
					   (unsigned)(l->patience_ns / KTRXER_NS_PER_S));
		if (fds[1].revents)
			return ktrxer_fail(err, -EINTR, "stopped before the end of the exchange with the server");
		return 0;
	}
}

/* One limit for all waits: a limit for each would not end with a server that sends one byte at a time. */
static void exchange_begin(struct owamp_link *l)
{
	l->end_ns = ktrxer_now_ns() + l->patience_ns;
}

int owamp_link_open(struct owamp_link *l, const struct ktrxer_addr *to, const struct ktrxer_addr *from, uint16_t port,
		    int stop_fd, struct ktrxer_error *err)
{
	union ktrxer_name name;
	socklen_t length;
	int rc = 0, error;

	*l = (struct owamp_link){ .stop_fd = stop_fd, .patience_ns = OWAMP_PATIENCE_NS };
	exchange_begin(l);
	l->fd = socket(to->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return ktrxer_fail(err, -errno, "TCP socket: %m");
	if (from->family) {
		length = ktrxer_name_make(&name, from, 0);
		if (bind(l->fd, &name.sa, length) != 0)
			return ktrxer_fail(err, -errno, "the source address is no address of this host: %m");
	}
	length = ktrxer_name_make(&name, to, port);
	if (connect(l->fd, &name.sa, length) != 0 && errno != EINPROGRESS)
		return ktrxer_fail(err, -errno, "the server cannot be reached: %m");
	rc = wait_for(l, POLLOUT, err);
	length = sizeof error;
	if (rc == 0 && getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error) {
		errno = error;
		rc = ktrxer_fail(err, -error,
				 error == ECONNREFUSED ? "no program serves OWAMP on this port; start `ktrxer serve` "
							 "there with a port of OWAMP, or name its port"
						       : "the server cannot be reached: %m");
	}
	length = sizeof name;
	if (rc == 0 && getsockname(l->fd, &name.sa, &length) == 0)
		(void)ktrxer_name_read(&name, &l->local);
	exchange_begin(l);
	return rc;
}

int owamp_link_write(struct owamp_link *l, const uint8_t *data, size_t length, struct ktrxer_error *err)
{
	exchange_begin(l);
	for (size_t at = 0; at < length;) {
		const ssize_t n = send(l->fd, data + at, length - at, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			const int rc = wait_for(l, POLLOUT, err);

			if (rc < 0)
				return rc;
		} else if (n < 0 && errno != EINTR) {
			return ktrxer_fail(err, -errno, "the control connection to the server broke: %m");
		} else if (n > 0) {
			at += (size_t)n;
		}
	}
	return 0;
}

int owamp_link_read(struct owamp_link *l, uint8_t *data, size_t length, struct ktrxer_error *err)
{
	for (size_t at = 0; at < length;) {
		const ssize_t n = recv(l->fd, data + at, length - at, 0);

		if (n < 0 && errno == EAGAIN) {
			const int rc = wait_for(l, POLLIN, err);

			if (rc < 0)
				return rc;
		} else if (n == 0) {
			return ktrxer_fail(err, -ECONNRESET,
					   "the server closed the control connection: the server may have too many "
					   "clients, or may not support the request");
		} else if (n < 0 && errno != EINTR) {
			return ktrxer_fail(err, -errno, "the control connection to the server broke: %m");
		} else if (n > 0) {
			at += (size_t)n;
		}
	}
	return 0;
}

void owamp_link_close(struct owamp_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

static const char *const accepts[] = {
	[OWAMP_FAILURE] = "without a reason",
	[OWAMP_INTERNAL] = "because of an internal error of the server",
	[OWAMP_NOT_SUPPORTED] = "because the server does not support the addresses, DSCP or size of the packets",
	[OWAMP_NEVER] = "because the number, rate or duration of the packets exceeds a limit of the server",
	[OWAMP_BUSY] = "because the server has no resources left: try later",
};

int owamp_link_accepted(uint8_t accept, const char *what, struct ktrxer_error *err)
{
	if (accept == OWAMP_OK)
		return 0;
	return ktrxer_fail(err, -ECONNREFUSED, "the server refuses %s %s", what, accepts[accept]);
}

int owamp_link_bad(const char *what, struct ktrxer_error *err)
{
	return ktrxer_fail(err, -EPROTO, "%s of the server is not that of OWAMP (RFC 4656)", what);
}
