/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The programs and sockets that process an arriving packet before the rules of a receiver. */
#ifndef KTRXER_LIB_RX_PRECEDING_H
#define KTRXER_LIB_RX_PRECEDING_H

#include <ktrxer/base.h>
#include <ktrxer/path.h>

/* The kernel's order of a received packet: XDP, taps, tc ingress, netfilter's ingress hook. */
enum krx_place { KRX_AT_XDP, KRX_AT_TAPS, KRX_AT_INGRESS };

/*
 * Writes what the device has before this place now, e.g. "XDP program 12 (generic), 2 taps, 1 tc filter"; "": nothing.
 * Taps of this process count, too. 0, or a negative errno.
 */
int krx_preceding_read(char *text, size_t size, const struct ktrxer_device *device, enum krx_place place);

#endif
