/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/krx inside. A packet goes: rx_hook.c (the hook) -> ktrxer_classify.h (its fields) ->
 * ktrxer_match.h (which rule) -> rx_record.c (a record). rx_table.c makes the rules and rx_ring.c
 * the ring, rx_device.c binds a file to its device, rx_file.c is what user space calls.
 */
#ifndef KTRXER_MODULE_RX_H
#define KTRXER_MODULE_RX_H

#include "rx_types.h"

/* ---------------------------------------------------------------------------------------- rules */

/* Of rules in user memory. An error pointer: -EFAULT, -EINVAL, -E2BIG, -ENOMEM. */
struct krx_table *krx_table_make(const struct ktrxer_rx_rule __user *rules, u32 count);
/* May be NULL. No hook uses the table any more. */
void krx_table_free(struct krx_table *table);
bool krx_table_drops(const struct krx_table *table);
void krx_table_sums(const struct krx_table *table, u64 *matched, u32 count);

/* ----------------------------------------------------------------------------------------- ring */

/* -ENOMEM: more than is reasonable here, or there is none. */
int krx_ring_make(struct krx_ring *ring, u32 bytes);
void krx_ring_free(struct krx_ring *ring);
bool krx_ring_readable(const struct krx_ring *ring);

/* ----------------------------------------------------------------------------------------- file */

/* `flags` and `hook` are known ones. -ENODEV. */
int krx_device_bind(struct krx_file *krx, u32 hook, u32 flags);
/* From now on packets are asked. */
int krx_device_hook(struct krx_file *krx);
/* Takes the file off its device; when it returns no packet is with it. */
void krx_device_leave(struct krx_file *krx);
int krx_device_init(void);
void krx_device_exit(void);

#endif
