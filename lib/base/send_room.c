/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "send_room.h"

#include <sys/socket.h>

void ktx_sock_send_room(int fd, int bytes)
{
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
		(void)!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}
