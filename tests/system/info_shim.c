/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preloaded: TCP_INFO is as long as that of Linux before 6.18, which has no tcpi_received_ce. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INFO_OLD = 248 };

int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	if (level == IPPROTO_TCP && name == TCP_INFO && *length > INFO_OLD)
		*length = INFO_OLD;
	return (int)syscall(SYS_getsockopt, fd, level, name, value, length);
}
