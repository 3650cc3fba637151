/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The gap that the narrow link makes between packets sent back to back, and the noise of the stamps in it. */
#ifndef KTRXER_METHODS_ABW_LINE_H
#define KTRXER_METHODS_ABW_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct abw_line {
	uint32_t gaps;       /* that are usable */
	uint32_t spread;     /* not back to back: the send times are more than half of the gap apart */
	double gap_ns;       /* the mean of the least gaps that are equal but for noise */
	double train_gap_ns; /* the least mean of a whole train: gap_ns, unless arrivals come in groups; 0: none */
	double tolerance_ns; /* ten times the width of the densest quarter: stamps differ by less */
	/* Mean share by which the gaps are longer than gap_ns, train by train, and its standard error. */
	double extra, extra_error;
	bool grouped; /* a quarter of the gaps or more are less than a tenth of the mean */
};

/* `packets` of each train, train after train; 0: not known. At most ABW_LINE_MOST gaps are looked at. */
enum { ABW_LINE_MOST = 256 };
void abw_line(const uint64_t *sent_ns, const uint64_t *arrived_ns, uint32_t trains, uint32_t packets,
	      struct abw_line *result);

#endif
