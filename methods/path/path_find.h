/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The path that a client's probes take. */
#ifndef KTRXER_METHODS_PATH_FIND_H
#define KTRXER_METHODS_PATH_FIND_H

#include <ktrxer.h>

/*
 * Source address, device and MTU. `device` NULL and `from` without a family: those of the route. `with_mac`: the link
 * address of the next hop, too, which engines that write whole frames need. 0, or a negative errno with a text.
 */
int path_find(struct ktrxer_path *path, const char *device, const struct ktrxer_addr *from,
	      const struct ktrxer_addr *to, bool with_mac, struct ktrxer_error *err);

#endif
