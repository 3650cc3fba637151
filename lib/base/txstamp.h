/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Transmit stamps of the kernel: asked for on a socket, read from its error queue. */
#ifndef KTRXER_LIB_TXSTAMP_H
#define KTRXER_LIB_TXSTAMP_H

#include "completions.h"

/*
 * Asks for a software stamp of each datagram, numbered from 0 (OPT_ID). The socket must not have sent anything yet.
 * 0, or a negative errno when this kernel has no such thing.
 */
int ktrxer_txstamp_enable(int fd);
/*
 * The packet scheduler's stamps (Linux 3.17), too: a packet without a queue on its way gives two stamps. The numbers go
 * on.
 */
int ktrxer_txstamp_add_sched(int fd);
/*
 * Stamps report the device and the source address of the packet (Linux 4.13), too: the kernel then queues a clone of
 * each packet instead of an empty message. Nothing happens where the host forbids that (net.core.tstamp_allow_data).
 */
void ktrxer_txstamp_add_path(int fd, uint8_t family);
/*
 * `on`: what a socket sends from now on gives stamps of the packet scheduler with device and source address, whatever
 * its other stamps are; else it gives none of these, and those of packets that were sent before still come. A TCP
 * socket is connected before.
 */
void ktrxer_txstamp_path(int fd, uint8_t family, bool on);
/* Requests the NIC's stamps, too (phc.h); the numbers continue. */
int ktrxer_txstamp_add_nic(int fd);
/* Numbers from 0 again: OPT_ID off and on (every kernel since 3.17 restarts its counter then). */
void ktrxer_txstamp_restart(int fd);
/* Arrival stamps of what this socket receives, as SCM_TIMESTAMPING control messages. */
int ktrxer_rxstamp_enable(int fd);

/*
 * Arrival stamps, and transmit stamps for those datagrams alone that ask for one by a control message of SOL_SOCKET,
 * KTRXER_TXSTAMP_CONTROL, with the 32-bit value KTRXER_TXSTAMP_ONE (Linux 4.6; older kernels refuse such a datagram
 * with EINVAL). Only these are numbered.
 */
#define KTRXER_TXSTAMP_CONTROL 37
#define KTRXER_TXSTAMP_ONE (1u << 1) /* SOF_TIMESTAMPING_TX_SOFTWARE */
int ktrxer_replystamp_enable(int fd);
void ktrxer_replystamp_restart(int fd);

/*
 * Reads what is in the error queue of `fd` and passes the stamps to `completions`. Returns how many, or a negative
 * errno. Never blocks.
 */
int ktrxer_txstamp_reap(int fd, const struct ktx_completions *completions);

#endif
