/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stamps of a NIC: switched on, taken over from the NIC's own clock (a PTP hardware clock) to CLOCK_MONOTONIC, and left as they were found.
 *
 * The NIC's clock has a rate of its own, so one difference does not do: samples of both clocks make a line, which is good near its ends. Each sample
 * has the error of its reading, and what lies away from the last one has that of the line's slope besides.
 */
#ifndef KTRXER_LIB_PHC_H
#define KTRXER_LIB_PHC_H

#include "clock.h"

#include <linux/ptp_clock.h>

/* Both clocks at one instant; real_ns is within bound_ns of it. */
struct phc_reading {
	int64_t nic_ns, real_ns;
	uint32_t bound_ns;
};

/* What the kernel's three ways to read them tell, the narrowest sample of a call. False: no sample that can be. */
bool phc_of_precise(const struct ptp_sys_offset_precise *told, struct phc_reading *reading);
bool phc_of_extended(const struct ptp_sys_offset_extended *told, struct phc_reading *reading);
bool phc_of_plain(const struct ptp_sys_offset *told, struct phc_reading *reading);

enum { PHC_POINTS = 8 };

struct phc_map {
	struct {
		int64_t nic_ns;
		uint64_t mono_ns;
		uint32_t bound_ns;
	} points[PHC_POINTS]; /* the newest at (count - 1) % PHC_POINTS */
	uint32_t count;       /* since the last step */
	int64_t rate_ppb;     /* mono runs so much faster */
	uint32_t rate_error_ppb;
	uint32_t steps;
};

/* One more sample; one that contradicts the line is a step of the NIC's clock, and begins a new one. */
void phc_map_add(struct phc_map *map, int64_t nic_ns, uint64_t mono_ns, uint32_t bound_ns);
/* A stamp on CLOCK_MONOTONIC and how far it may be off. False: no sample yet. */
bool phc_map_mono(const struct phc_map *map, int64_t nic_ns, uint64_t *mono_ns, uint32_t *bound_ns);

/* ------------------------------------------------------------------------------------------------------- a real one */

#define PHC_SAMPLE_NS (100 * KTRXER_NS_PER_MS) /* between two samples: they cost some PCI reads each */

struct phc {
	int fd;            /* of /dev/ptpN; -1: stamps are not on */
	int way;           /* how it is read */
	uint64_t sampled_ns;
	struct phc_map map;
	char device[16];
	int32_t before[3], ours[3]; /* struct hwtstamp_config */
	bool changed;      /* by us */
};

/* Does the device say that it can? */
bool phc_offered(const char *device);
/* NIC stamps of what is sent by this device: 0, or a negative errno: it has none, or may not. */
int phc_open(struct phc *phc, const char *device);
/* Puts the device's setting back, unless somebody else has changed it since. */
void phc_close(struct phc *phc);
/* Takes a sample when the last one is old. */
void phc_refresh(struct phc *phc, struct ktrxer_clock_map *real, uint64_t now_ns);

#endif
