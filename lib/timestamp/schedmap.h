/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds the probe that a stamp belongs to, where the packet scheduler stamps, too. The kernel numbers the datagrams of
 * a socket (OPT_ID); a refused datagram may use a number up or not (stampmap.h). But the packet scheduler's stamp is
 * taken within the system call that sends, also for a datagram that the queue then refuses. So the time of this stamp
 * identifies the call, and the call identifies the probe. The driver's stamp has the same number, however long the
 * packet has waited between.
 *
 * Consecutive numbers without a refusal between them identify the probe without the time. This covers a packet that
 * waits for its neighbour's address: it enters the packet scheduler after the call. Where the devices are stacked,
 * such a stamp may also be the second one of its packet, so only the time identifies the probe.
 *
 * One thread. Probes of one socket, in the order in which the kernel took them.
 */
#ifndef KTRXER_LIB_SCHEDMAP_H
#define KTRXER_LIB_SCHEDMAP_H

#include <ktrxer.h>

struct schedmap_call;
struct schedmap_key;

struct schedmap {
	struct schedmap_call *calls; /* whose stamps are awaited: [begin, end), a ring */
	struct schedmap_key *keys;   /* probes by the number of their datagram, a ring */
	uint32_t mask;
	uint32_t begin, end;
	uint32_t next_key; /* the number after that of the last stamp */
	uint32_t refused;  /* datagrams refused since the last call, whose stamp was not seen */
	bool was_refused;  /* the last stamp was of a refused datagram: its number may come again */
	bool stacked;      /* a datagram had a second stamp, of a device below the first */
};

/* `size`: probes that can wait for a stamp, a power of two. On a socket that has sent nothing. -ENOMEM. */
int ktrxer_schedmap_init(struct schedmap *map, uint32_t size);
void ktrxer_schedmap_free(struct schedmap *map);

/* A call that began at call_ns and ended at after_ns sent `count` probes, numbered from `first` on. */
void ktrxer_schedmap_sent(struct schedmap *map, uint32_t first, uint32_t count, uint64_t call_ns, uint64_t after_ns);
/* A datagram was refused after that, before the next one is sent. */
void ktrxer_schedmap_refused(struct schedmap *map);

/* False: a refused datagram's, or unknown. stamp_ns +- bound_ns. */
bool ktrxer_schedmap_sched(struct schedmap *map, uint32_t key, uint64_t stamp_ns, uint32_t bound_ns, uint32_t *probe);
/* False: the packet scheduler's stamp of that number was not seen. */
bool ktrxer_schedmap_driver(const struct schedmap *map, uint32_t key, uint32_t *probe);

#endif
