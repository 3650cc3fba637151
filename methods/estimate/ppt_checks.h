/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two further trains of compound probes can refute the model of ppt.h. Two sizes fit any line. A third size between
 * them shows whether the gaps lie on one line; a shorter heading packet shows whether the heading packets cover the
 * gap.
 *
 * Behind a heading packet that does not cover the gap, the trailing packet arrives 8 s_t / c_(n-1) - 8 s_h / c_n late
 * at the end link (eq. 25 and 26 of the paper), and each byte that the heading packet has less lengthens the gap by
 * 8 / c_n. A receiver may need a constant time S for each packet, one after the other: the gap is then the longer one
 * of S and the transmission time, so the line of the gaps has a bend, above which they are those of the link.
 */
#ifndef KTRXER_METHODS_PPT_CHECKS_H
#define KTRXER_METHODS_PPT_CHECKS_H

#include "ppt_plan.h"
#include "ppt_probes.h"

/* A longer gap that an end link of this rate would make is not distinguished from the receiver's own time. */
#define PPT_END_LINK_MAX_BIT_S 10e9

struct ppt_checks {
	struct ppt_probes middle;  /* with a trailing packet between both sizes, and the heading packet of both */
	struct ppt_probes shorter; /* as ppt_check_sizes() has it */
	uint32_t heading_bytes, shorter_heading_bytes;
};

struct ppt_check_sizes {
	uint32_t middle, shorter, shorter_heading; /* bytes on the wire */
};

/*
 * Both sizes are PPT_SIZES_APART or more apart. Packets of `least` bytes or more can be sent. Each packet of the
 * shorter probe has three quarters of the heading packet or of the larger trailing packet, with the gap behind it,
 * or both have another common ratio: a path disperses such a probe if and only if it disperses a whole one.
 */
struct ppt_check_sizes ppt_check_sizes(uint32_t heading, const uint32_t sizes[2], uint32_t least);

/*
 * Checks a result of ppt_probes_estimate() that is PPT_RESOLVED; any other one stays. `sets` are those of the
 * result. The reading becomes PPT_UNCOVERED, PPT_BENT, or PPT_TOO_FEW where a check has fewer than
 * PPT_PROBES_LEAST usable probes. Where the line has the bend of a receiver with a constant time, capacity, dPPT
 * and slope become those above the bend, and service_ns is that time. Negative errno with a text as
 * ppt_estimate().
 */
int ppt_probes_check(const struct ppt_probes sets[2], struct ppt_checks *checks, uint32_t resolution_ns,
		     struct ppt_result *result, struct ktrxer_error *err);

#endif
