/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The next hops of this host's own route: the kernel chooses one of them for each packet or flow. */
#ifndef KTRXER_METHODS_NEXT_HOPS_H
#define KTRXER_METHODS_NEXT_HOPS_H

#include <ktrxer.h>

/*
 * The next hops of the route to an address: by `device` alone if it is not 0, from `from` if it has a family. 1: one,
 * or it is not known.
 */
uint32_t next_hops_count(const struct ktrxer_addr *to, const struct ktrxer_addr *from, uint32_t device);
/* The same from an RTM_NEWROUTE message of the kernel. */
uint32_t next_hops_read(const void *message, size_t length, uint32_t device);

#endif
