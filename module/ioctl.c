// SPDX-License-Identifier: GPL-2.0-only
/* The common parts of both devices' ioctl() calls. */
#include <linux/time.h>

#include "module.h"

long ktrxer_version_get(void __user *to)
{
	const struct ktrxer_version version = {
		.magic = KTRXER_MAGIC,
		.version = KTRXER_UAPI_VERSION,
	};

	return copy_to_user(to, &version, sizeof(version)) ? -EFAULT : 0;
}

long ktrxer_features_get(void __user *to)
{
	struct ktrxer_features features;
	long size = ktrxer_struct_take(&features, sizeof(features), 8, to);

	if (size < 0)
		return size;
	if (features.reserved)
		return -EINVAL;
	features = (struct ktrxer_features){
		.size = sizeof(features),
		.features = KTRXER_FEATURE_PROBE_QUEUE | KTRXER_FEATURE_PROBE_USER |
			    KTRXER_FEATURE_BUDGET | KTRXER_FEATURE_GENERATION |
			    KTRXER_FEATURE_EVENTS,
		.clocks = 1ULL << CLOCK_MONOTONIC,
		.slots_max = KTRXER_TX_SLOTS_MAX,
		.frame_max = KTRXER_TX_FRAME_MAX,
		.rules_max = KTRXER_RX_RULES_MAX,
		.list_max = KTRXER_RX_LIST_MAX,
	};
	if (IS_ENABLED(CONFIG_NETFILTER_EGRESS))
		features.features |= KTRXER_FEATURE_EGRESS;
	return ktrxer_struct_give(to, &features, sizeof(features), size);
}

long ktrxer_struct_take(void *to, size_t size, size_t least, const void __user *from)
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

long ktrxer_struct_give(void __user *to, const void *from, size_t size, size_t theirs)
{
	return copy_to_user(to, from, min(size, theirs)) ? -EFAULT : 0;
}
