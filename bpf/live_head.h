/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Common parts of the programs that send: the device, and the errors of a driver that takes no more frames. */
#ifndef KTRXER_BPF_LIVE_HEAD_H
#define KTRXER_BPF_LIVE_HEAD_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define READ(x) (*(const volatile typeof(x) *)&(x))
#define WRITE(x, v) (*(volatile typeof(x) *)&(x) = (v))

enum {
	TRY_AGAIN = 11,
	DEVICE_BUSY = 16,
	NO_SPACE = 28,
	NO_BUFFERS = 105,
	NO_DEVICE = 19,
	TOO_LONG = 90,
	INVALID = 22,
};

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} device SEC(".maps");

/* Its ring is full, or the like: the frame may be tried again. */
static __always_inline _Bool may_try_again(int error)
{
	return error == NO_BUFFERS || error == TRY_AGAIN || error == DEVICE_BUSY || error == NO_SPACE;
}

#endif
