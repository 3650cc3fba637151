/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The time-stamp setting of a NIC (SIOCSHWTSTAMP) is one for all processes. The last user of a half (sent, received)
 * puts that half back.
 *
 * Each user holds a lock on one byte of a file that belongs to the device. The number of the byte says which halves the
 * user wants and the values of both before the first user. The kernel drops the lock when the process ends, in whatever
 * way. Only root can open the file, so no other user can pretend a former setting. A process that cannot open the file
 * raises the setting and leaves it raised.
 */
#ifndef KTRXER_LIB_NIC_SETTING_H
#define KTRXER_LIB_NIC_SETTING_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/net_tstamp.h>

enum { NIC_SENT = 1, NIC_RECEIVED = 2 };

/*
 * The halves: what of all that is sent, and of what that is received (enum hwtstamp_tx_types, enum
 * hwtstamp_rx_filters).
 */
struct nic_halves {
	int wants; /* NIC_... */
	int sent, received;
};

struct nic_setting {
	int place; /* the lock file; -1: nothing to put back */
	char device[16];
	struct nic_halves before, now;
};

/* The folder of the lock files. Tests use one of their own. */
extern const char *ktrxer_nic_lock_folder;

/*
 * Raises what `wants` names: all that is sent, and `filter` of what is received, unless as much is stamped already.
 * Nothing is ever lowered. 0, or a negative errno: it may not (EPERM), or the driver refuses.
 */
int ktrxer_nic_setting_take(struct nic_setting *setting, const char *device, uint32_t index, int wants, int filter);
/* Restores the setting, unless another ktrxer process still needs it or another program has changed it. */
void ktrxer_nic_setting_give(struct nic_setting *setting);
/* 0, or a negative errno. A driver that does not report its setting has all off, as at its start. */
int ktrxer_nic_setting_read(const char *device, struct nic_halves *now);

#endif
