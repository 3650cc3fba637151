/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Privileges that a server does not need after its sockets are open. docs/reference/server.md lists them.
 */
#ifndef KTRXER_METHODS_PRIVILEGE_H
#define KTRXER_METHODS_PRIVILEGE_H

#include <ktrxer.h>

struct privilege_left {
	uint32_t uid;      /* effective user id from now on */
	bool no_new_privs; /* nothing that we start can gain any */
	bool no_capabilities;
};

/*
 * Root becomes the user 65534 where that user can be had (not in a user namespace that lacks it), all capabilities go,
 * and none can come back: the ambient set is empty, and NO_NEW_PRIVS is set. Capabilities belong to a thread: call it
 * before others are started. A negative errno when a capability is left that should be gone.
 */
int privilege_drop(struct privilege_left *left, struct ktrxer_error *err);

#endif
