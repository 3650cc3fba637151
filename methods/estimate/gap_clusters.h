/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Interrupt coalescing at the far end, from the gaps of packet pairs: two packets of one interrupt have stamps close
 * together, two packets of different interrupts have stamps one coalescing period apart. The gaps then form two groups
 * (k-means with k = 2; Salehin, Sahasrabudhe, Rojas-Cessa, IEEE Access 6, 2018; the two groups were first described by
 * Prasad, Jain, Dovrolis, PAM 2004).
 */
#ifndef KTRXER_METHODS_GAP_CLUSTERS_H
#define KTRXER_METHODS_GAP_CLUSTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gap_clusters {
	size_t low_count, high_count;
	size_t left_out;        /* gaps above the upper group: outliers */
	double low_ns, high_ns; /* mean of each group; with coalescing the upper one is the period */
	double low_sigma_ns, high_sigma_ns;
	/*
	 * Each group has 5 % of the gaps (3 at least), the groups are apart, and the mean of the lower is at most a
	 * tenth of the upper's.
	 */
	bool separate;
};

/*
 * The best split of `sorted_ns` (ascending) into two groups: the least sum of squares, found exactly, because in one
 * dimension the groups are neighbours. An upper group with fewer than 5 % of the gaps is left out as outliers, and the
 * rest is split again. Two groups do not yet prove coalescing: cross traffic makes two groups as well, but its lower
 * group lasts as long as the link needs for a packet.
 */
void gap_clusters(const int64_t *sorted_ns, size_t count, struct gap_clusters *result);

/*
 * The period of coalescing, from the gaps of pairs of two sizes, pairs with one stamp included. 0: not known, because
 * interrupts divided too few pairs, or because the upper groups differ with the size: then the gaps are a link's, and
 * only some of the pairs were taken together.
 */
double gap_clusters_period(const struct gap_clusters clusters[2]);

#endif
