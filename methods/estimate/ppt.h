/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packet processing time of a remote host, by the scheme of Salehin, Rojas-Cessa, Lin, Dong, Kijkanjanarat ("Scheme to
 * Measure Packet Processing Time of a Remote Host through Estimation of End-Link Capacity"). Numbers in brackets are
 * the equations of that paper.
 *
 * A compound probe is a large heading packet, followed back to back by a small trailing one. Two trains differ in the
 * size of the trailing packet. Model: G = (8 s + 96) / c + dPPT, where G is the gap between the stamps of both packets
 * at the receiver, s the trailing packet's size in bytes on the wire (preamble, start delimiter, Ethernet header and
 * FCS included, inter-frame gap excluded), c the end link's capacity, and dPPT = PPT of the trailing packet minus PPT
 * of the heading packet. Capacity and dPPT are results. PPT of one packet is none: by (15) it equals 8 (s2 - s1) / c
 * for every host.
 */
#ifndef KTRXER_METHODS_PPT_H
#define KTRXER_METHODS_PPT_H

#include <ktrxer.h>

enum { PPT_GAMMA_BITS = 96, PPT_RESAMPLES = 1000 };

/* The filter of one train, before phase 1. */
struct ppt_gaps {
	size_t count, kept;
	int64_t bin_ns;              /* of the histogram */
	int64_t small_ns, peak_ns;   /* G_small: the minimum. G_peak: the mean of the first bin with the highest count
				  among those near the shortest half */
	int64_t limit_ns;            /* G_peak + J, J = G_peak - G_small; larger gaps are dropped */
	double average_ns, sigma_ns; /* G_avg and the population's standard deviation of what is kept */
	double low_ns, high_ns;      /* (18), (19): G_avg - sigma, G_avg + sigma */
};

/*
 * The bin is the clock's resolution, or 2 w / count^(1/3) where that is more (Freedman, Diaconis 1981, with the width w
 * of the shortest interval that has half of the gaps, instead of the interquartile range): with one gap a bin, the
 * first gap would be the mode. The mode is searched there: equal packets of cross traffic can make a higher bin
 * elsewhere. Sorts `gaps_ns`. -EINVAL: no gap, or a resolution of 0; -ERANGE: a gap outside 0 .. 2^61 ns.
 */
int ppt_filter(int64_t *gaps_ns, size_t count, uint32_t resolution_ns, struct ppt_gaps *result);

struct ppt_phase1 {
	double m_low, m_high, m_avg;       /* (3), (4), (5): ns a byte. m_low is the larger number */
	double gamma_ns;                   /* the inter-frame gap */
	double expected1_ns, expected2_ns; /* (6), (7): t^ of both sizes */
	double delta1_ns, delta2_ns;       /* (8): dPPT by the first and by the second size; equal but for rounding */
};

/*
 * Only low_ns, high_ns and average_ns of the gaps are used. `gamma_ns` below 0: 96 bit times at the capacity 8 / m_avg.
 * The sizes differ.
 */
void ppt_phase1(const struct ppt_gaps *one, uint32_t size1, const struct ppt_gaps *two, uint32_t size2, double gamma_ns,
		struct ppt_phase1 *result);

/* Fixed by construction: 8 (s2 - s1) / c. */
struct ppt_phase2 {
	double trailing_ns; /* (15): PPT_t */
	double heading_ns;  /* (16): PPT_h */
	double average_ns;  /* the mean of both */
};

void ppt_phase2(double average1_ns, double average2_ns, double delta_ns, struct ppt_phase2 *result);

/*
 * The clock that the gaps were read from: the largest of 1 ms, 1 us and 1 ns of which all gaps are multiples. 1 ns
 * without a gap.
 */
uint32_t ppt_resolution_ns(const int64_t *gaps_ns, size_t count);

enum ppt_reading {
	PPT_RESOLVED,     /* capacity and dPPT are results */
	PPT_UNRESOLVED,   /* the interval of the slope contains 0: more probes, a larger s2 - s1, or a finer clock */
	PPT_SERVICE_TIME, /* G does not depend on the size: it is the time that the receiver needs for a packet */
	PPT_DECREASING,   /* G falls with the size: no model of a link does that */
	PPT_COALESCED,    /* the receiver's interrupts are coalesced: the gaps are those of the interrupts */
	/* Readings of probes whose send times are known (ppt_probes.h): */
	PPT_TOO_FEW, /* fewer than PPT_PROBES_LEAST usable probes of a size */
	PPT_SPREAD,  /* most probes were not back to back */
	PPT_CHANGED, /* the gaps of one part of the run differ from those of the other */
	/* Readings of probes with further sizes (ppt_checks.h): */
	PPT_UNCOVERED, /* a shorter heading packet lengthens the gap: the end link is faster than the links before it */
	PPT_BENT,      /* the gaps of three sizes lie on no line */
	PPT_READINGS,
};
extern const char *const ppt_reading_names[PPT_READINGS]; /* as in the JSON objects of the commands */

struct ppt_train {
	uint32_t size_bytes; /* of the trailing packet, on the wire */
	int64_t *gaps_ns;    /* sorted, and shortened to what is used, by ppt_estimate() */
	size_t count;
	size_t negative,
		zero; /* left out by ppt_estimate(): reordering or a clock step; below the clock's resolution */
};

struct ppt_interval {
	double low, high;
};

struct ppt_result {
	enum ppt_reading reading;
	uint32_t resolution_ns; /* that was used; 0: no estimate */
	struct ppt_gaps gaps[2];
	struct ppt_phase1 phase1;
	struct ppt_phase2 phase2;
	double capacity_bit_s;        /* 8 / m_avg; INFINITY or negative unless PPT_RESOLVED */
	struct ppt_interval capacity; /* 95 %; high is INFINITY where the slope's interval contains 0 */
	double delta_ns;              /* dPPT, the mean of both sizes */
	struct ppt_interval delta;    /* 95 % */
	struct ppt_interval slope;    /* 95 %, ns a byte */
	double service_ns;            /* the mean of both G_avg; a result where PPT_SERVICE_TIME or `serial` */
	bool serial; /* the receiver needs service_ns for each packet, one after the other; PPT_RESOLVED above that */
	double coalescing_ns; /* the period; a result where PPT_COALESCED; 0: not known */
	size_t together;      /* pairs whose packets came with one interrupt; likewise */
};

/*
 * Both trains, in any order of their sizes; trains[0] is the smaller one afterwards. The intervals are t intervals with
 * the standard error of PPT_RESAMPLES bootstrap resamples of filter and phases, by their 2.5 % and 97.5 % quantiles; a
 * train whose gaps vary by less than the clock's resolution widens them by half of it. The random numbers are the same
 * at each call. -EINVAL with a text: equal sizes, or a train without two gaps above zero; -ERANGE; -ENOMEM.
 */
int ppt_estimate(struct ppt_train trains[2], uint32_t resolution_ns, double gamma_ns, struct ppt_result *result,
		 struct ktrxer_error *err);

#endif
