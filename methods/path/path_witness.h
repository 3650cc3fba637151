/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The path witness: the devices and source addresses by which the probes of a measurement really left, the devices by
 * which answers arrived, and their comparison with the path that was resolved before it began. Each list is bounded.
 * Small builds observe nothing.
 */
#ifndef KTRXER_METHODS_PATH_WITNESS_H
#define KTRXER_METHODS_PATH_WITNESS_H

#include <ktrxer.h>

enum { PATH_WAYS = KTX_DEPARTURES };

struct path_way {
	uint32_t device; /* index; 0: all ways for which there was no other row */
	uint64_t count;
	char name[16]; /* "#7": the device is gone */
	/* of departures only; family 0: not known */
	struct ktrxer_addr from;
	struct ktrxer_addr next_hop; /* of the route by this device, at the end */
};

struct path_witness {
	struct path_way left[PATH_WAYS], arrived[PATH_WAYS];
	int left_count, arrived_count;
	uint64_t probes;     /* sum of `left` */
	uint64_t elsewhere;  /* of these, by another device than the claimed one */
	uint64_t other_from; /* of these, by the claimed device with another source address */
	uint64_t answers;    /* sum of `arrived` */
	uint64_t answers_elsewhere;
	bool stamped;  /* `left` is from stamps of packets, not from the frames of an engine that writes them whole */
	bool departs;  /* probes were sent */
	bool compared; /* probes were sent or answers arrived, and the comparison was made */
	bool changed;  /* more than 1 % of the probes differ from the claim: they move the figures */
	bool rerouted; /* the next hop by the claimed device is another one at the end than at the beginning */
	struct ktrxer_addr next_hop; /* the later one */
	int way; /* of `left`: the one with most of the probes that differ from the claim; -1: none */
};

/* The path that was resolved before the measurement, and by which options. */
struct path_claim {
	const struct ktrxer_path *path;
	const char *device;             /* as in path_find() */
	const struct ktrxer_addr *from; /* the same */
	const struct ktx *tx;           /* NULL: path_witness_left() and path_witness_sent() made the rows */
	uint64_t sent;                  /* probes; by `tx`, where it is given */
	bool any_source;                /* the frames of the measurement have many source addresses */
};

#ifndef KTRXER_SMALL
/* So many packets left by this device, with this source address, as stamps report it; device 0 is ignored. */
void path_witness_left(struct path_witness *witness, uint32_t device, const struct ktrxer_addr *from, uint64_t count);
/* The departures of one of several transmitters, which sent so many probes by this path. */
void path_witness_sent(struct path_witness *witness, const struct ktx *tx, const struct ktrxer_path *path,
		       uint64_t sent);
/* An answer arrived by this device; 0 is ignored. */
void path_witness_arrived(struct path_witness *witness, uint32_t device);
/* The answer that was counted last came through a device below this one (bridge, VLAN): this one counts. */
void path_witness_moved(struct path_witness *witness, uint32_t from, uint32_t to);
/* After the last report, and again after later ones. Names of devices, next hops and sums are those of now. */
void path_witness_end(struct path_witness *witness, const struct path_claim *claim);
#else
static inline void path_witness_left(struct path_witness *witness, uint32_t device, const struct ktrxer_addr *from,
				     uint64_t count)
{
	(void)witness, (void)device, (void)from, (void)count;
}
static inline void path_witness_sent(struct path_witness *witness, const struct ktx *tx, const struct ktrxer_path *path,
				     uint64_t sent)
{
	(void)witness, (void)tx, (void)path, (void)sent;
}
static inline void path_witness_arrived(struct path_witness *witness, uint32_t device)
{
	(void)witness, (void)device;
}
static inline void path_witness_moved(struct path_witness *witness, uint32_t from, uint32_t to)
{
	(void)witness, (void)from, (void)to;
}
static inline void path_witness_end(struct path_witness *witness, const struct path_claim *claim)
{
	(void)witness, (void)claim;
}
#endif

#endif
