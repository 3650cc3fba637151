/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two halves of the module share. */
#ifndef KTRXER_MODULE_H
#define KTRXER_MODULE_H

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <linux/ktrxer.h>

static int ktx_init(void);
static void ktx_exit(void);
static int krx_init(void);
static void krx_exit(void);

/* The one who asks, and the one who opened the file: neither lends the other what it has not. */
static inline bool ktrxer_ns_may(const struct file *file, const struct net *net, int cap)
{
	return ns_capable(net->user_ns, cap) && file_ns_capable(file, net->user_ns, cap);
}

/* KTRXER_IOC_VERSION, the same on both devices. */
static inline long ktrxer_version_tell(void __user *to)
{
	const struct ktrxer_version version = { .magic = KTRXER_MAGIC, .version = KTRXER_UAPI_VERSION };

	return copy_to_user(to, &version, sizeof(version)) ? -EFAULT : 0;
}

/*
 * Takes the struct of an ioctl, which begins with the caller's sizeof; what a newer caller has to say beyond what we know must be zero.
 * `least`: the size of its first version. Returns the caller's size, or a negative errno.
 */
static inline long ktrxer_struct_take(void *to, size_t size, size_t least, const void __user *from)
{
	u32 theirs;
	int ret;

	if (get_user(theirs, (const u32 __user *)from))
		return -EFAULT;
	if (theirs < least || theirs > PAGE_SIZE)
		return -EINVAL;
	ret = copy_struct_from_user(to, size, from, theirs);
	return ret ? ret : (long)theirs;
}

/* Gives it back, as much of it as the caller knows. */
static inline long ktrxer_struct_give(void __user *to, const void *from, size_t size, size_t theirs)
{
	return copy_to_user(to, from, size < theirs ? size : theirs) ? -EFAULT : 0;
}

#endif
