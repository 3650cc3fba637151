/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stamps of a NIC: switched on, taken over from the NIC's own clock (a PTP hardware clock) to CLOCK_MONOTONIC, and left
 * as they were found.
 *
 * The NIC's clock has a rate of its own, so one difference does not do: samples of both clocks make a line, which is
 * good near its ends. Each sample has the error of its reading, and what lies away from the last one has that of the
 * line's slope besides.
 */
#ifndef KTRXER_LIB_PHC_H
#define KTRXER_LIB_PHC_H

#include "clock.h"
#include "nic_setting.h"

#include <linux/ptp_clock.h>

/* Both clocks at one instant; real_ns is within bound_ns of it. */
struct phc_reading {
	int64_t nic_ns, real_ns;
	uint32_t bound_ns;
};

/* Read the results of the kernel's three calls: the narrowest sample of a call. False: no sample is plausible. */
bool ktrxer_phc_of_precise(const struct ptp_sys_offset_precise *reported, struct phc_reading *reading);
bool ktrxer_phc_of_extended(const struct ptp_sys_offset_extended *reported, struct phc_reading *reading);
bool ktrxer_phc_of_plain(const struct ptp_sys_offset *reported, struct phc_reading *reading);

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

/* The line of a map near its newest sample: all that converting a stamp takes. */
struct phc_line {
	int64_t nic_ns, rate_ppb;
	uint64_t mono_ns;
	uint32_t bound_ns, rate_error_ppb;
};

/* False: no sample yet. */
bool ktrxer_phc_map_line(const struct phc_map *map, struct phc_line *line);
/* A stamp on CLOCK_MONOTONIC and how far it may be off. */
void ktrxer_phc_line_mono(const struct phc_line *line, int64_t nic_ns, uint64_t *mono_ns, uint32_t *bound_ns);
/* One more sample; one that contradicts the line is a step of the NIC's clock, and begins a new one. */
void ktrxer_phc_map_add(struct phc_map *map, int64_t nic_ns, uint64_t mono_ns, uint32_t bound_ns);
/* Both in one. False: no sample yet. */
bool ktrxer_phc_map_mono(const struct phc_map *map, int64_t nic_ns, uint64_t *mono_ns, uint32_t *bound_ns);

#define PHC_SAMPLE_NS (100 * KTRXER_NS_PER_MS) /* between two samples: they cost some PCI reads each */

struct phc {
	int fd;  /* of /dev/ptpN; -1: stamps are not on */
	int way; /* how it is read */
	uint64_t sampled_ns;
	struct phc_map map;
	struct nic_setting setting;
};

enum {
	PHC_SENT = NIC_SENT,         /* stamps of all that is sent */
	PHC_RECEIVED = NIC_RECEIVED, /* of all that is received, or else of what is PTP's */
	PHC_ALL = 4,                 /* with PHC_RECEIVED: those of PTP's packets alone are of no use */
	PHC_AS_IT_IS = 8,            /* with PHC_RECEIVED: only where they are on */
};

/* True if the device reports this feature. */
bool ktrxer_phc_offered(const char *device, int what);
/*
 * NIC stamps of this device: 0, or a negative errno: it has none (EOPNOTSUPP), they are not on (ENODATA), or this
 * process may not.
 */
int ktrxer_phc_open(struct phc *phc, const char *device, uint32_t index, int what);
/* Restores the device's setting, unless another program uses or has changed it (nic_setting.h). */
void ktrxer_phc_close(struct phc *phc);
/* Takes a sample when the last one is old. */
void ktrxer_phc_refresh(struct phc *phc, struct ktrxer_clock_map *real, uint64_t now_ns);
/*
 * A stamp of what was received, which lies between these two times: false where it cannot, also after a fresh look at
 * the NIC's clock (it was set, say).
 */
bool ktrxer_phc_stamp(struct phc *phc, struct ktrxer_clock_map *real, int64_t nic_ns, uint64_t earliest_ns,
		      uint64_t latest_ns, uint64_t *mono_ns, uint32_t *bound_ns);

#endif
