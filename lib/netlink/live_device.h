/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whether this device's driver accepts frames that an XDP program redirects to it, found before anything is sent. */
#ifndef KTRXER_LIB_LIVE_DEVICE_H
#define KTRXER_LIB_LIVE_DEVICE_H

#include "bytes.h"
#include "error.h"

/* 0: yes, or the kernel is too old to say so (before 6.3). -EOPNOTSUPP: no, and err has the remedy. */
int ktrxer_live_device_check(const struct ktrxer_device *device, struct ktrxer_error *err);

/* Packets that the device has counted as sent. Negative errno: it is gone, or says nothing. */
int ktrxer_live_device_sent(const struct ktrxer_device *device, uint64_t *packets);

/* The answers of the kernel's families `nlctrl` and `netdev`, after the netlink header. 0: a value is missing. */
uint16_t ktrxer_live_family_of(struct bytes body);
bool ktrxer_live_xdp_features_of(struct bytes body, uint32_t index, uint64_t *features);

#endif
