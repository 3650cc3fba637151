/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How the fields of a template vary, computed by the same code in the kernel and in user space: so the frames of both
 * are the same. A part is a field of 1, 2, 4 or 8 bytes. Its value is a function of the probe's number alone:
 *
 *   place = (number / every) % count          value = from + step * place                  counter
 *                                             value = from + step * permute(place)         random
 *                                             value = words[table + place]                 table
 */
#ifndef KTRXER_BPF_VARY_H
#define KTRXER_BPF_VARY_H

#include <linux/types.h>

enum {
	VARY_PARTS = 8,
	VARY_KEYS = 8,
};

enum vary_how { VARY_COUNTER = 0, VARY_PERMUTED = 1, VARY_LOOKED_UP = 2 };

/*
 * In which checksum a part is, and whether its bytes stand at the other parity there (RFC 1071: then its sum has its
 * bytes swapped).
 */
enum vary_in { VARY_NOT_IN = 0, VARY_IN = 1, VARY_IN_SWAPPED = 2 };

struct vary_part {
	__u64 from, step;
	__u64 count; /* 0: 2^64 */
	__u64 every; /* at least 1 */
	__u64 keys[VARY_KEYS];
	__u32 table; /* where its words begin */
	__u16 at;    /* offset in the frame */
	__u8 width, how, in_ip, in_transport;
	__u8 bits; /* permuted: 2^bits <= count < 2^(bits + 1) */
	__u8 reserved[5];
};

/* A frame, less its bytes. Sums are of all but the parts, which are zero there; folded. */
struct vary_plan {
	__u32 length, parts;
	__u16 ip_sum_at, transport_sum_at; /* offsets of the checksums; 0: there is none to keep */
	__u16 ip_sum, transport_sum;
	__u8 udp; /* 0 means "none" there and is sent as 0xffff (RFC 768) */
	__u8 reserved[7];
	struct vary_part part[VARY_PARTS];
};

/* A bijection of [0, 2^bits): odd multiplier, sum and xor with its own higher bits each are one. */
static inline __u64 vary_mix(__u64 x, __u64 bits, __u64 multiplier, __u64 sum)
{
	const __u64 mask = (1ULL << bits) - 1, shift = (bits + 1) / 2;

	x = (x * (multiplier | 1) + sum) & mask;
	x ^= x >> shift;
	x = (x * (sum | 1)) & mask;
	return x ^ x >> shift;
}

/*
 * A permutation of [0, count), any count below 2^63, without a division and without walking on from what falls outside.
 * With 2^bits <= count two windows of 2^bits places cover it, one at each end. Mixing one window and leaving the rest
 * is a permutation, and so are several in turn: lower, upper, lower, upper. Where count is far from a power of two the
 * first quarter of the numbers comes to each part of the space within some percent as often as to the others; in the
 * end it is once each. Written without branches: which window a place is in cannot be predicted.
 */
static inline __u64 vary_permute(const struct vary_part *part, __u64 place)
{
	const __u64 bits = part->bits, size = 1ULL << bits, upper = part->count - size;
	__u64 inside, mixed;

#pragma GCC unroll 8
	for (int turn = 0; turn < VARY_KEYS; turn += 4) {
		inside = (__u64)((__s64)(place - size) >> 63);
		mixed = vary_mix(place, bits, part->keys[turn], part->keys[turn + 1]);
		place ^= (place ^ mixed) & inside;

		inside = ~(__u64)((__s64)(place - upper) >> 63);
		mixed = upper + vary_mix(place - upper, bits, part->keys[turn + 2], part->keys[turn + 3]);
		place ^= (place ^ mixed) & inside;
	}
	return place;
}

static inline __u64 vary_place(const struct vary_part *part, __u64 number)
{
	const __u64 round = part->every == 1 ? number : number / part->every;

	return part->count ? round % part->count : round;
}

/*
 * One's-complement arithmetic is arithmetic modulo 2^16 - 1, in which 2^16 is 1: a wide number's words need not be
 * summed one by one.
 */
static inline __u32 vary_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u32)sum;
}

/* Returns at most 2^33. */
static inline __u64 vary_sum_of(__u64 value, __u8 in)
{
	__u64 sum = (value & 0xffffffff) + (value >> 32);

	if (in != VARY_IN_SWAPPED)
		return sum;
	sum = vary_fold(sum);
	return (sum & 0xff) << 8 | sum >> 8;
}

/*
 * RFC 1624: HC' = ~(~HC + ~m + m'). ~HC + ~m for each field is the plan's sum, made once: 0 where all the rest is
 * zeros, else 0xffff for what is 0 modulo 0xffff. So it is the very number that summing all again would give.
 */
static inline __u16 vary_checksum(__u64 sum, __u8 udp)
{
	const __u16 checksum = (__u16)~vary_fold(sum);

	return udp && !checksum ? 0xffff : checksum;
}

#endif
