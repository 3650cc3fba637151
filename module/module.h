/* SPDX-License-Identifier: GPL-2.0-only */
/* Declarations that the two halves of the module share. */
#ifndef KTRXER_MODULE_H
#define KTRXER_MODULE_H

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <linux/ktrxer.h>

int ktx_init(void);
void ktx_exit(void);
int krx_init(void);
void krx_exit(void);

/* Both the caller and the opener of the file must have the capability. */
static inline bool ktrxer_ns_may(const struct file *file, struct user_namespace *ns, int cap)
{
	return ns_capable(ns, cap) && file_ns_capable(file, ns, cap);
}

/* KTRXER_IOC_VERSION and KTRXER_IOC_FEATURES, the same on both devices. */
long ktrxer_version_get(void __user *to);
long ktrxer_features_get(void __user *to);

/*
 * Takes the struct of an ioctl, which begins with the caller's sizeof. Fields of a newer caller
 * that this module does not have must be zero. @least: the size of its first version. Returns the
 * caller's size, or a negative errno.
 */
long ktrxer_struct_take(void *to, size_t size, size_t least, const void __user *from);
/* Copies the struct to the caller, @theirs bytes at most: the size of the caller's struct. */
long ktrxer_struct_give(void __user *to, const void *from, size_t size, size_t theirs);

/**
 * struct ktrxer_memory - pages that a program maps
 * @at: the contiguous mapping in the kernel; NULL: no pages
 * @pages: the pages
 * @count: number of pages
 * @charged: pages that count for the limit of the user
 * @user: the user with that limit
 */
struct ktrxer_memory {
	void *at;
	struct page **pages;
	unsigned long count, charged;
	struct ktrxer_user *user;
};

/**
 * ktrxer_memory_take() - pages of zeros, charged to the memory cgroup and to the user
 * @memory: gets the pages; all zero before
 * @bytes: a multiple of the page size
 * @more: further bytes that count for the limit of the user
 *
 * Return: 0, or -ENOMEM: no memory, or more than RLIMIT_MEMLOCK for all files of this user
 * (CAP_IPC_LOCK lifts that limit).
 */
int ktrxer_memory_take(struct ktrxer_memory *memory, size_t bytes, size_t more);
/* @memory may be without pages. */
void ktrxer_memory_free(struct ktrxer_memory *memory);
/*
 * Bytes for ktrxer_tx_setup.map_offset: mapped there, the pages have the same cache colour in the
 * program as in the kernel.
 */
u32 ktrxer_memory_offset(const struct ktrxer_memory *memory);
/* mmap() of all pages. */
int ktrxer_memory_map(const struct ktrxer_memory *memory, struct vm_area_struct *vma);

#endif
