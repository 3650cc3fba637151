/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The socket of a TCP flow: its options, its transfers, and the kernel's report about it. */
#ifndef KTRXER_METHODS_FLOW_TCP_H
#define KTRXER_METHODS_FLOW_TCP_H

#include "flow_set.h"

/* Sets DSCP, congestion control and pacing, before it connects or once it is accepted. 0 or a negative errno. */
int flow_tcp_prepare(int fd, const struct flow_spec *spec, bool sends, uint64_t pace_bps);
/* 0 if this congestion control is available here; -ENOENT, -EPERM. */
int flow_tcp_cc(const char *name);
/* The kernel's count of acknowledged bytes; UINT64_MAX: it has none. */
uint64_t flow_tcp_acked(int fd);
/*
 * The traffic of a connection so far, in bytes of IP packets. False: this kernel does not count segments.
 */
bool flow_tcp_traffic(int fd, uint64_t *up_bytes, uint64_t *down_bytes);
/* Segments that TCP sent again so far. */
uint32_t flow_tcp_repeats(int fd);
/* The congestion control in force. */
void flow_tcp_cc_name(int fd, char name[FLOW_CC_MAX]);

extern const struct flow_ops flow_tcp_ops;

#endif
