/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "passed_sockets.h"

#include "error.h"
#include "name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST = 3 }; /* SD_LISTEN_FDS_START */

#define WANTED "ListenStream= and ListenDatagram= with an address of IPv4 or IPv6 and a port are served"

/* A decimal number from 1 to `most`; 0: anything else. */
static long number_of(const char *text, long most)
{
	char *end;
	long value;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtol(text, &end, 10);
	return errno || *end || value > most ? 0 : value;
}

static int option_of(int fd, int level, int name)
{
	int value = 0;
	socklen_t length = sizeof value;

	return getsockopt(fd, level, name, &value, &length) == 0 ? value : -1;
}

/*
 * Datagrams that arrived before this process started keep their arrival time and their destination only where the
 * socket had these options at that time. For the others the kernel would report the time at which they are read.
 */
static int stamped_check(const struct passed_socket *s, struct ktrxer_error *err)
{
	static const int stamps[] = { SO_TIMESTAMPNS, SO_TIMESTAMP };
	const bool v6 = s->addr.family == AF_INET6;
	bool stamped = false;

	for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++)
		stamped |= option_of(s->fd, SOL_SOCKET, stamps[i]) > 0;
	if (!stamped || option_of(s->fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO) <= 0)
		return ktrxer_fail(err, -EINVAL,
				   "passed descriptor %d: UDP port %u has no arrival time stamps or no packet "
				   "information for datagrams from before the start of the server; set "
				   "Timestamping=ns and PassPacketInfo=yes in the .socket unit",
				   s->fd, s->port);
	/* SO_TIMESTAMPING, which the server sets, reports the same stamps. */
	for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++)
		(void)!setsockopt(s->fd, SOL_SOCKET, stamps[i], &(int){ 0 }, sizeof(int));
	return 0;
}

static bool takes_both_families(const struct passed_socket *s)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff }, any[16];

	return s->addr.family == AF_INET6 && option_of(s->fd, SOL_IPV6, IPV6_V6ONLY) == 0 &&
	       (memcmp(s->addr.bytes, any, sizeof any) == 0 || memcmp(s->addr.bytes, mapped, sizeof mapped) == 0);
}

static int socket_read(struct passed_socket *s, struct ktrxer_error *err)
{
	const int family = option_of(s->fd, SOL_SOCKET, SO_DOMAIN), type = option_of(s->fd, SOL_SOCKET, SO_TYPE),
		  protocol = option_of(s->fd, SOL_SOCKET, SO_PROTOCOL);
	union ktrxer_name name;
	socklen_t length = sizeof name;
	struct stat st;

	if (fstat(s->fd, &st) != 0)
		return ktrxer_fail(err, -EINVAL, "passed descriptor %d is not open, but LISTEN_FDS counts it", s->fd);
	if (!S_ISSOCK(st.st_mode))
		return ktrxer_fail(err, -EINVAL, "passed descriptor %d is no socket; " WANTED, s->fd);
	if (family != AF_INET && family != AF_INET6)
		return ktrxer_fail(err, -EINVAL, "passed descriptor %d is a socket of address family %d; " WANTED,
				   s->fd, family);
	s->udp = type == SOCK_DGRAM && protocol == IPPROTO_UDP;
	if (!s->udp && !(type == SOCK_STREAM && protocol == IPPROTO_TCP))
		return ktrxer_fail(err, -EINVAL,
				   "passed descriptor %d is a socket of type %d and protocol %d, neither TCP nor "
				   "UDP; " WANTED,
				   s->fd, type, protocol);
	if (getsockname(s->fd, &name.sa, &length) != 0 || name.sa.sa_family != family ||
	    !(s->port = ktrxer_name_read(&name, &s->addr)))
		return ktrxer_fail(err, -EINVAL, "passed descriptor %d is not bound to a port; " WANTED, s->fd);
	if (!s->udp && option_of(s->fd, SOL_SOCKET, SO_ACCEPTCONN) != 1)
		return ktrxer_fail(err, -EINVAL,
				   "passed descriptor %d: the socket of TCP port %u does not listen; set Accept=no in "
				   "the .socket unit",
				   s->fd, s->port);
	length = sizeof name;
	if (s->udp && getpeername(s->fd, &name.sa, &length) == 0)
		return ktrxer_fail(err, -EINVAL,
				   "passed descriptor %d: the socket of UDP port %u is connected to one peer; " WANTED,
				   s->fd, s->port);
	if (takes_both_families(s))
		return ktrxer_fail(err, -EINVAL,
				   "passed descriptor %d: the socket of port %u takes IPv4 and IPv6; set "
				   "BindIPv6Only=ipv6-only in the .socket unit, and give each family its own line",
				   s->fd, s->port);
	if (fcntl(s->fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(s->fd, F_SETFL, O_RDWR | O_NONBLOCK) != 0)
		return ktrxer_fail(err, -errno, "passed descriptor %d: %m", s->fd);
	return s->udp ? stamped_check(s, err) : 0;
}

int passed_sockets_take(struct passed_sockets *passed, struct ktrxer_error *err)
{
	static const char *const names[] = { "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID" };
	const char *count = getenv("LISTEN_FDS");
	int rc = 0;

	passed->count = 0;
	/* Variables of another process, for example of the parent, were inherited, and are not for this one. */
	if (!count || number_of(getenv("LISTEN_PID"), INT32_MAX) != getpid())
		return 0;
	passed->count = (int)number_of(count, PASSED_SOCKETS);
	if (!passed->count)
		rc = ktrxer_fail(err, -EINVAL, "LISTEN_FDS=%s: not a number from 1 to %d", count, PASSED_SOCKETS);
	for (int i = 0; rc == 0 && i < passed->count; i++) {
		passed->sockets[i].fd = FIRST + i;
		rc = socket_read(&passed->sockets[i], err);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
	return rc;
}

const struct passed_socket *passed_sockets_find(const struct passed_sockets *passed, const struct ktrxer_addr *addr,
						uint16_t port, bool udp)
{
	for (int i = 0; i < passed->count; i++) {
		const struct passed_socket *s = &passed->sockets[i];

		if (s->udp == udp && s->port == port && ktrxer_addr_equal(&s->addr, addr) &&
		    s->addr.scope_id == addr->scope_id)
			return s;
	}
	return NULL;
}

int passed_sockets_check(const struct passed_sockets *passed, uint16_t port, uint16_t stamp_port, bool flows,
			 struct ktrxer_error *err)
{
	char text[KTRXER_ADDR_TEXT];

	for (int i = 0; i < passed->count; i++) {
		const struct passed_socket *s = &passed->sockets[i];
		const char *const kind = s->udp ? "UDP" : "TCP";

		ktrxer_addr_format(&s->addr, text);
		if (s->port != port && !(s->udp && stamp_port && s->port == stamp_port))
			return ktrxer_fail(err, -EINVAL,
					   "passed descriptor %d: %s port %u of %s is neither --port %u nor, for UDP, "
					   "--stamp-port; name the same ports in the .socket unit and the options",
					   s->fd, kind, s->port, text, port);
		if (passed_sockets_find(passed, &s->addr, s->port, s->udp) != s)
			return ktrxer_fail(err, -EINVAL,
					   "passed descriptor %d: a second socket of %s port %u of %s; the server "
					   "needs one",
					   s->fd, kind, s->port, text);
		if (!s->udp && !flows)
			return ktrxer_fail(err, -EINVAL,
					   "passed descriptor %d: TCP port %u of %s is for flows, which "
					   "--max-clients 0 switches off",
					   s->fd, s->port, text);
		if (!passed_sockets_find(passed, &s->addr, port, true) ||
		    (flows && !passed_sockets_find(passed, &s->addr, port, false)))
			return ktrxer_fail(err, -EINVAL,
					   "passed descriptor %d: of %s there is %s port %u, but not both TCP and UDP "
					   "port %u; give ListenStream= and ListenDatagram= of each address, or "
					   "--max-clients 0 and ListenDatagram= alone",
					   s->fd, text, kind, s->port, port);
	}
	return 0;
}
