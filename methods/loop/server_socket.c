/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server_socket.h"

#include "error.h"
#include "name.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* bind() or listen() has failed; `ss` has -u for UDP, -t for TCP. */
static int refused(struct ktrxer_error *err, const struct ktrxer_addr *to, uint16_t port, bool tcp)
{
	const char *protocol = tcp ? "TCP" : "UDP";
	const int rc = -errno;
	char text[KTRXER_ADDR_TEXT];

	ktrxer_addr_format(to, text);
	if (rc == -EADDRINUSE)
		return ktrxer_fail(err, rc,
				   "%s port %u of %s is taken by another program; `ss -%clpn sport = :%u` shows which",
				   protocol, port, text, tcp ? 't' : 'u', port);
	if (rc == -EADDRNOTAVAIL)
		return ktrxer_fail(err, rc, "%s is no address of this host; `ip address` lists them", text);
	if (rc == -EACCES)
		return ktrxer_fail(err, rc, "%s port %u needs root or CAP_NET_BIND_SERVICE, as all below 1024 do",
				   protocol, port);
	return ktrxer_fail(err, rc, "%s port %u of %s: %m", protocol, port, text);
}

static bool bound(int fd, const struct ktrxer_addr *to, uint16_t port)
{
	union ktrxer_name name;
	const socklen_t length = ktrxer_name_make(&name, to, port);
	const int one = 1;

	if (to->family == AF_INET6)
		(void)!setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &one, sizeof one);
	return bind(fd, &name.sa, length) == 0;
}

int server_socket_bind(int fd, const struct ktrxer_addr *to, uint16_t port, struct ktrxer_error *err)
{
	return bound(fd, to, port) ? 0 : refused(err, to, port, false);
}

int server_socket_listen(int passed, const struct ktrxer_addr *to, uint16_t port, int backlog, struct ktrxer_error *err)
{
	const int fd = passed ? passed : socket(to->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	int rc;

	if (fd < 0)
		return ktrxer_fail(err, -errno, "TCP socket: %m");
	/* The connections of a server that was stopped a moment ago are no other program. */
	(void)!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if ((passed || bound(fd, to, port)) && listen(fd, backlog) == 0)
		return fd;
	rc = refused(err, to, port, true);
	close(fd);
	return rc;
}
