/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The ancillary data of a received datagram (cmsg(3)): one reader for engines, methods and the server. */
#ifndef KTRXER_LIB_MESSAGE_H
#define KTRXER_LIB_MESSAGE_H

#include <ktrxer.h>

#include <sys/socket.h>

/* Room for all that ktrxer_message_read() reads, and for what later kernels add. */
#define KTRXER_MESSAGE_CONTROL 256

struct ktrxer_message {
	int64_t real_ns;          /* the kernel's arrival or transmit stamp on CLOCK_REALTIME; 0: none */
	int64_t nic_ns;           /* the NIC's, on the clock of the NIC; 0: none */
	struct ktrxer_addr to;    /* the destination in the IP header; family 0: not reported */
	struct ktrxer_addr local; /* this host's address that received it: an answer is sent from there */
	uint32_t ifindex;         /* the interface that it arrived on; 0: not reported */
	uint32_t drops;           /* datagrams that this socket has dropped so far, modulo 2^32: valid with has_drops */
	bool has_drops;
	uint8_t ttl, tos; /* 0 where not reported */
};

/*
 * Requests TTL, TOS and the count of drops for each datagram that this socket receives from now on; a kernel without
 * one of them leaves its field 0. Time stamps are requested apart (txstamp.h), destination addresses by IP_PKTINFO.
 */
void ktrxer_message_enable(int fd, uint8_t family);
/* Requests the device and the destination address (IP_PKTINFO), too. Small builds do not read the device. */
#ifndef KTRXER_SMALL
void ktrxer_message_enable_device(int fd, uint8_t family);
#else
static inline void ktrxer_message_enable_device(int fd, uint8_t family)
{
	(void)fd, (void)family;
}
#endif
/* Call it after recvmsg(). The control buffer of `header` is aligned as struct cmsghdr. */
void ktrxer_message_read(struct ktrxer_message *message, struct msghdr *header);

/*
 * Appends ancillary data for sendmsg() to a buffer that begins with msg_controllen 0 and is aligned as struct cmsghdr.
 */
void ktrxer_message_add(struct msghdr *header, int level, int type, const void *value, size_t length);
/*
 * The same: sends an answer from the address that received the request. `ifindex` counts for link-local addresses only;
 * for others it would override the route.
 */
void ktrxer_message_add_source(struct msghdr *header, const struct ktrxer_addr *local, uint32_t ifindex);

/*
 * Adds what a socket has dropped to `sum`: up to this datagram, and up to now. A datagram has the drops before it, so
 * those after the last one are in the socket's own count (Linux 4.12) only. `seen` is the count that `sum` has, 0 at
 * first; a datagram that waited in the socket meanwhile has a smaller one.
 */
void ktrxer_message_drops(const struct ktrxer_message *message, uint32_t *seen, uint64_t *sum);
void ktrxer_socket_drops(int fd, uint32_t *seen, uint64_t *sum);

#endif
