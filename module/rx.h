/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/krx inside. The path of a packet: rx_hook.c (the hook) -> ktrxer_classify.h (its fields) ->
 * ktrxer_match.h (which rule) -> rx_record.c (a record). rx_table.c makes the table of rules,
 * rx_ring.c makes the ring, rx_device.c binds a file to its device, rx_file.c has the file
 * operations.
 */
#ifndef KTRXER_MODULE_RX_H
#define KTRXER_MODULE_RX_H

#include "rx_types.h"

/* A table of @rules in user memory. An error pointer: -EFAULT, -EINVAL, -E2BIG, -ENOMEM. */
struct krx_table *krx_table_make(const struct ktrxer_rx_rule __user *rules, u32 count);
/* @table may be NULL. No hook may use the table any more. */
void krx_table_free(struct krx_table *table);
bool krx_table_drops(const struct krx_table *table);
void krx_table_sums(const struct krx_table *table, u64 *matched, u32 count);

/* -ENOMEM: above a limit of ktrxer_memory_take(), or no memory. */
int krx_ring_make(struct krx_ring *ring, u32 bytes);
void krx_ring_free(struct krx_ring *ring);
bool krx_ring_readable(const struct krx_ring *ring);

/* The caller has checked `flags` and `hook`. -ENODEV: no such device. */
int krx_device_bind(struct krx_file *krx, u32 hook, u32 flags);
/* Registers the hooks: from now on the rules judge packets. */
int krx_device_hook(struct krx_file *krx);
/* Unbinds the file from its device. When this returns, no hook uses the file any more. */
void krx_device_leave(struct krx_file *krx);
int krx_device_init(void);
void krx_device_exit(void);

#endif
