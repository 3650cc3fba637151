/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The bytes of all flows of one direction over time, at both ends, from the samples: for levels and outages of the
 * direction. The memory does not grow with the number of flows; long runs have a coarser grid. Pure.
 */
#ifndef KTRXER_METHODS_FLOW_SERIES_H
#define KTRXER_METHODS_FLOW_SERIES_H

#include "byte_outages.h"
#include "flow_result.h"
#include "levels.h"

enum { FLOW_SERIES_TICKS = 1 << 15 }; /* 1 MB */

/* All samples of one time of the grid. */
struct flow_tick {
	uint64_t last_ns;
	uint64_t bytes; /* since the samples before */
	uint32_t moved; /* TCP: segments delivered since the samples before */
	uint32_t again; /* TCP: segments sent again since the samples before */
	uint32_t rtt_us;
	bool sampled, partial; /* partial: flows are missing, and their bytes are in a later one */
	bool pending;
};

struct flow_series {
	uint64_t start_ns, step_ns;
	struct flow_tick *ticks;
	uint32_t count, size, most;
	bool failed; /* no memory: it is empty */
};

/* Both ends of a direction. */
struct flow_ends {
	struct flow_series local, remote;
};

/* Before flow_record_sample(), which replaces the sample before in `record`. */
void flow_series_add(struct flow_ends *ends, const struct flow_spec *spec, const struct flow_record *record,
		     bool remote, const struct flow_sample *sample);
/* `share`: so many series together have the memory of one. */
void flow_series_begin(struct flow_ends *ends, uint64_t start_ns, uint64_t sample_ns, uint32_t share);
void flow_series_free(struct flow_ends *ends);

enum { FLOW_STALLS_MOST = 8 };

/* One flow of several had an outage, and others went on. */
struct flow_stall {
	uint32_t flow;
	struct byte_outage outage;
};

struct flow_findings {
	struct rate_level levels[RATE_LEVELS_MOST];
	struct byte_outage outages[BYTE_OUTAGES_MOST];
	struct flow_stall stalls[FLOW_STALLS_MOST]; /* the longest ones, by flow */
	uint32_t level_count, outage_count, stall_count;
};

/* Finds those of the flows of a direction; `results` are those of flow_result(). 0 or -ENOMEM. */
int flow_find(struct flow_findings *findings, const struct flow_ends *ends, bool down, uint32_t flows,
	      const struct flow_spec *specs, const struct flow_result *results, const struct flow_plan *plan);
/* Adds the stalls of single flows, after flow_find(); `each`: the series of each flow. 0 or -ENOMEM. */
int flow_find_stalls(struct flow_findings *findings, const struct flow_ends *each, bool down, uint32_t flows,
		     const struct flow_spec *specs, const struct flow_result *results, const struct flow_plan *plan);

#endif
