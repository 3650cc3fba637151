/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a NIC stamps (SIOCSHWTSTAMP): one setting for all who use the device, and the last of ours to want a half of it puts that half back.
 *
 * Who of ours uses a device is told by abstract sockets: their names live in the device's own network namespace, are read in /proc/net/unix, and go
 * with their process, however that ends. A name says which half is wanted, and how both were before the first of us came.
 */
#ifndef KTRXER_LIB_NIC_SETTING_H
#define KTRXER_LIB_NIC_SETTING_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/net_tstamp.h>

enum { NIC_SENT = 1, NIC_RECEIVED = 2 };

/* The halves: what of all that is sent, and of what that is received (enum hwtstamp_tx_types, enum hwtstamp_rx_filters). */
struct nic_halves {
	int wants; /* NIC_... */
	int sent, received;
};

struct nic_setting {
	int place; /* the socket whose name says that we are here; -1: not in use */
	uint32_t index;
	char device[16];
	struct nic_halves before, now;
};

/* One line of /proc/net/unix: true, and another user of this device. */
bool nic_setting_user(const char *line, uint32_t index, struct nic_halves *user);

/*
 * Raises what `wants` names: all that is sent, and `filter` of what is received, unless as much is stamped already. Nothing is ever lowered.
 * 0, or a negative errno: it may not (EPERM), or the driver refuses.
 */
int nic_setting_take(struct nic_setting *setting, const char *device, uint32_t index, int wants, int filter);
/* Puts back what nobody else of ours wants, and nobody else has changed. */
void nic_setting_give(struct nic_setting *setting);
/* As it is now: 0, or a negative errno; a driver that does not tell is at its start, all off. */
int nic_setting_read(const char *device, struct nic_halves *now);

#endif
