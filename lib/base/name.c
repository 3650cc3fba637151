/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "name.h"

#include <arpa/inet.h>
#include <string.h>

socklen_t ktrxer_name_make(union ktrxer_name *name, const struct ktrxer_addr *addr, uint16_t port)
{
	memset(name, 0, sizeof *name);
	name->sa.sa_family = addr->family;
	if (addr->family == AF_INET6) {
		name->v6.sin6_port = htons(port);
		name->v6.sin6_scope_id = addr->scope_id;
		memcpy(&name->v6.sin6_addr, addr->bytes, 16);
		return sizeof name->v6;
	}
	name->v4.sin_port = htons(port);
	memcpy(&name->v4.sin_addr, addr->bytes, 4);
	return sizeof name->v4;
}

uint16_t ktrxer_name_read(const union ktrxer_name *name, struct ktrxer_addr *addr)
{
	memset(addr, 0, sizeof *addr);
	addr->family = (uint8_t)name->sa.sa_family;
	if (addr->family == AF_INET6) {
		memcpy(addr->bytes, &name->v6.sin6_addr, 16);
		addr->scope_id = name->v6.sin6_scope_id;
		return ntohs(name->v6.sin6_port);
	}
	memcpy(addr->bytes, &name->v4.sin_addr, 4);
	return ntohs(name->v4.sin_port);
}
