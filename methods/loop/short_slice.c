/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "short_slice.h"

#include <linux/types.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000 /* the kernel's least */

/* SCHED_ATTR_SIZE_VER0 of the kernel; its header does not go with the one of all C libraries for scheduling. */
struct attributes {
	__u32 size, policy;
	__u64 flags;
	__s32 nice;
	__u32 priority;
	__u64 runtime_ns, deadline_ns, period_ns;
};

void short_slice(void)
{
	struct attributes now = { .size = 0 };

	/* The nice value that is read is written back, because one call sets both. */
	if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER)
		return;
	now.runtime_ns = SLICE_NS;
	(void)!syscall(SYS_sched_setattr, 0, &now, 0);
}
