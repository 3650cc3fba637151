/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KTRXER_COMPAT_MM_H
#define KTRXER_COMPAT_MM_H

#include_next <linux/mm.h>

#ifndef KTRXER_HAS_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

#endif
