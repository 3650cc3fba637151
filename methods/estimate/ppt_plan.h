/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sizes of compound probes for a path whose links are known, and the dispersion of a probe on it
 * (methods/estimate/ppt.h names the paper). Links are numbered from 1 at the sender to n, the end link; node i joins
 * link i to link i + 1. Sizes are bytes on the wire.
 */
#ifndef KTRXER_METHODS_PPT_PLAN_H
#define KTRXER_METHODS_PPT_PLAN_H

#include <ktrxer.h>

enum {
	PPT_LINKS_MAX = 64,
	PPT_SIZE_MIN = 72,   /* a frame of 64 bytes with preamble and start delimiter */
	PPT_SIZE_MAX = 1526, /* a frame with 1500 bytes of IP, likewise */
	/* The smallest trailing packet of `ppt measure`: FLOW_PACKET_HEAD (24 bytes), UDP, IP, Ethernet. */
	PPT_TRAILING_MIN = 78,
	PPT_TRAILING_MIN_V6 = 98,
	PPT_SIZES_APART = 8, /* the least difference of its two sizes, between which it has a third one */
};

struct ppt_path {
	uint64_t capacity_bit_s[PPT_LINKS_MAX];
	uint32_t links;
	uint32_t gap_bits; /* between two frames of a link: PPT_GAMMA_BITS as in ppt.h; 0 as in the paper's examples */
};

struct ppt_sizing {
	uint32_t narrow; /* the last link with the least capacity */
	/* z: the node after it with the largest ratio of capacities; 0: the narrow link is the end link */
	uint32_t node;
	/* (17): heading / trailing of at least this excludes dispersion at every node: sufficient, not necessary */
	double alpha_rule;
	/* (20) to (23): the largest trailing packet without dispersion after z, before any other limit */
	double trailing_max_bytes;
	double alpha_min; /* heading / trailing_max, at least 1 */
	/* the largest trailing packet that arrives without dispersion by (24) to (29); 0: none does */
	uint32_t largest_undispersed;
	uint32_t size1,
		/*
		 * advice: PPT_TRAILING_MIN, and the largest one within trailing_max and largest_undispersed, and
		 * smaller than the heading packet: sizes that `ppt measure` accepts
		 */
		size2;
	uint32_t step_min; /* the least s2 - s1 that the receiver's clock resolves: 2 R c_n bits, rounded up to bytes */
	bool resolvable;   /* size2 - size1 is at least step_min and PPT_SIZES_APART */
};

/*
 * Cross traffic: on the queue of each link, packets ahead of the heading packet, and between heading and trailing
 * packet. That of link 1 is not used.
 */
struct ppt_cross {
	uint32_t bytes; /* of each of its packets */
	struct {
		uint32_t before, between;
	} links[PPT_LINKS_MAX];
};

/*
 * -EINVAL with a text: no link, too many, one without capacity, or a heading size outside PPT_SIZE_MIN to PPT_SIZE_MAX.
 * `cross` NULL: none.
 */
int ppt_size(const struct ppt_path *path, uint32_t heading, uint32_t resolution_ns, const struct ppt_cross *cross,
	     struct ppt_sizing *result, struct ktrxer_error *err);

struct ppt_dispersion {
	double delta_ns;       /* delta_n: the dispersion gap at the end link */
	double gap_ns;         /* G_n */
	double capacity_bit_s; /* from the gap: 8 s_t / G_n; the end link's capacity only without dispersion */
	bool unbiased;         /* delta_n is 0, to a millionth of a nanosecond */
};

/* (24) to (29). The path passed ppt_size(). `cross` NULL: none. */
void ppt_disperse(const struct ppt_path *path, uint32_t heading, uint32_t trailing, const struct ppt_cross *cross,
		  struct ppt_dispersion *result);

#endif
