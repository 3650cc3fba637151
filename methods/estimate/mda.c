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

uint32_t mda_share_probes(uint32_t seen, double share, double failure)
{
	/* So many next hops, seen or not, can have the share. The room is for rounding of 1/0.1. */
	const double most = 1 / share + 1e-9, larger = seen > 1 ? 0 : share;
	double missing = 1, other = 1;
	uint32_t probes = 0, hops;

	if (!seen || !(share > 0 && share <= 0.5) || !(failure > 0 && failure < 1))
		return 0;
	hops = seen == 1 ? 1 : seen < most - 1 ? seen + 1 : (uint32_t)most;
	do {
		probes++;
		missing *= 1 - share;
		other *= larger;
	} while (hops * missing + other > failure && probes < UINT32_MAX);
	return probes;
}
