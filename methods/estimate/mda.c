/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "mda.h"

uint32_t mda_probes(uint32_t hops, double failure)
{
	/*
	 * seen[j]: the probability that j different hops were seen so far. All terms are positive, so that no digits
	 * are lost in differences, as they are with inclusion and exclusion.
	 */
	double seen[MDA_HOPS_MAX + 1] = { 1 };
	uint32_t probes = 0;

	if (hops < 2 || hops > MDA_HOPS_MAX || !(failure > 0 && failure < 1))
		return 0;
	while (probes < UINT32_MAX) {
		double missing = 0;

		probes++;
		for (uint32_t j = hops; j > 0; j--)
			seen[j] = seen[j] * j / hops + seen[j - 1] * (hops - j + 1) / hops;
		seen[0] = 0;
		for (uint32_t j = 1; j < hops; j++)
			missing += seen[j];
		if (missing <= failure)
			break;
	}
	return probes;
}
