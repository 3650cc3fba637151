/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "phc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define RATE_SPAN_MAX_NS (100ll * KTRXER_NS_PER_S) /* a longer span would give an old rate */

enum {
	SAMPLES = 3,   /* of one call; the narrowest counts */
	LATCH_NS = 50, /* of a cross-stamp made by hardware: both clocks are latched within some ns, and rounded */
	READING_MAX_NS = 1000 * 1000, /* a sample that took longer was interrupted */
	CRYSTAL_PPB = 100000,         /* IEEE 802.3, 22.3.2.2.1 and others: 100 ppm */
	WANDER_PPB = 100,       /* what a rate found some 100 ms ago may have changed by, steering by ptp4l included */
	FRESH_NS = 1000 * 1000, /* a stamp that cannot be is no reason to read the clock again so soon */
	RATE_SPAN_NS = 50 * 1000 * 1000, /* of two samples that tell it */
};

static int64_t ptp_ns(const struct ptp_clock_time *t)
{
	return ktrxer_timespec_ns(t->sec, t->nsec);
}

bool ktrxer_phc_of_precise(const struct ptp_sys_offset_precise *reported, struct phc_reading *reading)
{
	*reading = (struct phc_reading){ ptp_ns(&reported->device), ptp_ns(&reported->sys_realtime), LATCH_NS };
	return reported->device.nsec < KTRXER_NS_PER_S && reported->sys_realtime.nsec < KTRXER_NS_PER_S;
}

/* The system's clock before and after the NIC's, which was read at an unknown time between them. */
static void narrower(struct phc_reading *best, bool *any, const struct ptp_clock_time *before,
		     const struct ptp_clock_time *nic, const struct ptp_clock_time *after)
{
	const int64_t from = ptp_ns(before), width = ptp_ns(after) - from;

	if (width < 0 || width > READING_MAX_NS || (*any && width / 2 + 1 >= best->bound_ns))
		return;
	*any = true;
	*best = (struct phc_reading){ ptp_ns(nic), from + width / 2, (uint32_t)(width / 2 + 1) };
}

bool ktrxer_phc_of_extended(const struct ptp_sys_offset_extended *reported, struct phc_reading *reading)
{
	bool any = false;

	for (unsigned int i = 0; i < reported->n_samples && i < PTP_MAX_SAMPLES; i++)
		narrower(reading, &any, &reported->ts[i][0], &reported->ts[i][1], &reported->ts[i][2]);
	return any;
}

bool ktrxer_phc_of_plain(const struct ptp_sys_offset *reported, struct phc_reading *reading)
{
	bool any = false;

	for (unsigned int i = 0; i < reported->n_samples && i < PTP_MAX_SAMPLES; i++)
		narrower(reading, &any, &reported->ts[2 * i], &reported->ts[2 * i + 1], &reported->ts[2 * i + 2]);
	return any;
}

/* `ppb` of a span, without an overflow where the span is absurd. */
static int64_t part(int64_t span_ns, int64_t ppb)
{
	return span_ns / KTRXER_NS_PER_S * ppb + span_ns % KTRXER_NS_PER_S * ppb / KTRXER_NS_PER_S;
}

bool ktrxer_phc_map_line(const struct phc_map *map, struct phc_line *line)
{
	const uint32_t last = (map->count - 1) % PHC_POINTS;

	if (!map->count)
		return false;
	*line = (struct phc_line){
		.nic_ns = map->points[last].nic_ns,
		.mono_ns = map->points[last].mono_ns,
		.bound_ns = map->points[last].bound_ns,
		.rate_ppb = map->rate_ppb,
		.rate_error_ppb = map->rate_error_ppb,
	};
	return true;
}

void ktrxer_phc_line_mono(const struct phc_line *line, int64_t nic_ns, uint64_t *mono_ns, uint32_t *bound_ns)
{
	/* Unsigned: the difference of two clocks may have any size. */
	const int64_t span = (int64_t)((uint64_t)nic_ns - (uint64_t)line->nic_ns);
	const int64_t off = line->bound_ns + part(span < 0 ? -(span + 1) : span, line->rate_error_ppb);

	*mono_ns = line->mono_ns + (uint64_t)span + (uint64_t)part(span, line->rate_ppb);
	*bound_ns = off > UINT32_MAX ? UINT32_MAX : (uint32_t)off;
}

bool ktrxer_phc_map_mono(const struct phc_map *map, int64_t nic_ns, uint64_t *mono_ns, uint32_t *bound_ns)
{
	struct phc_line line;

	if (!ktrxer_phc_map_line(map, &line))
		return false;
	ktrxer_phc_line_mono(&line, nic_ns, mono_ns, bound_ns);
	return true;
}

/* The line goes through the newest sample and the oldest that is kept. */
static void rate_find(struct phc_map *map)
{
	const uint32_t new = (map->count - 1) % PHC_POINTS, old = map->count > PHC_POINTS ? map->count % PHC_POINTS : 0;
	const int64_t nic = (int64_t)((uint64_t)map->points[new].nic_ns - (uint64_t)map->points[old].nic_ns);
	const int64_t mono = (int64_t)(map->points[new].mono_ns - map->points[old].mono_ns);
	const int64_t bounds = (int64_t)map->points[new].bound_ns + map->points[old].bound_ns;

	map->rate_ppb = 0;
	map->rate_error_ppb = CRYSTAL_PPB;
	/* mono - nic is 10 ms at the most, or the sample was a step: nothing overflows. */
	if (nic < RATE_SPAN_NS || nic > RATE_SPAN_MAX_NS || bounds * KTRXER_NS_PER_S / nic > CRYSTAL_PPB)
		return;
	map->rate_ppb = (mono - nic) * KTRXER_NS_PER_S / nic;
	map->rate_error_ppb = (uint32_t)(bounds * KTRXER_NS_PER_S / nic) + WANDER_PPB;
}

void ktrxer_phc_map_add(struct phc_map *map, int64_t nic_ns, uint64_t mono_ns, uint32_t bound_ns)
{
	uint64_t predicted;
	uint32_t bound, at;

	if (ktrxer_phc_map_mono(map, nic_ns, &predicted, &bound)) {
		const uint64_t off = predicted > mono_ns ? predicted - mono_ns : mono_ns - predicted;

		if (off > (uint64_t)bound + bound_ns) {
			map->count = 0;
			map->steps++;
		}
	}
	at = map->count++ % PHC_POINTS;
	map->points[at].nic_ns = nic_ns;
	map->points[at].mono_ns = mono_ns;
	map->points[at].bound_ns = bound_ns;
	rate_find(map);
}

enum { NOT_READ, PRECISE, EXTENDED, PLAIN };

static bool read_both(struct phc *phc, int way, struct phc_reading *reading)
{
	union {
		struct ptp_sys_offset_precise precise;
		struct ptp_sys_offset_extended extended;
		struct ptp_sys_offset plain;
	} reported;

	memset(&reported, 0, sizeof reported);
	if (way == PRECISE)
		return ioctl(phc->fd, PTP_SYS_OFFSET_PRECISE, &reported.precise) == 0 &&
		       ktrxer_phc_of_precise(&reported.precise, reading);
	if (way == EXTENDED) {
		reported.extended.n_samples = SAMPLES;
		return ioctl(phc->fd, PTP_SYS_OFFSET_EXTENDED, &reported.extended) == 0 &&
		       ktrxer_phc_of_extended(&reported.extended, reading);
	}
	reported.plain.n_samples = SAMPLES;
	return ioctl(phc->fd, PTP_SYS_OFFSET, &reported.plain) == 0 && ktrxer_phc_of_plain(&reported.plain, reading);
}

void ktrxer_phc_refresh(struct phc *phc, struct ktrxer_clock_map *real, uint64_t now_ns)
{
	struct phc_reading reading;

	if (phc->sampled_ns && now_ns - phc->sampled_ns < PHC_SAMPLE_NS)
		return;
	phc->sampled_ns = now_ns;
	/* The best way that works, found with the first sample. */
	for (int way = phc->way ? phc->way : PRECISE; way <= PLAIN; way++)
		if (read_both(phc, way, &reading)) {
			phc->way = way;
			ktrxer_clock_map_sample(real);
			ktrxer_phc_map_add(&phc->map, reading.nic_ns, ktrxer_clock_map_mono(real, reading.real_ns),
					   reading.bound_ns + ktrxer_clock_map_bound(real));
			return;
		} else if (phc->way) {
			return;
		}
}

/* Clocks without a fine counter tick in microseconds. */
#define GRAIN_NS 1000

bool ktrxer_phc_stamp(struct phc *phc, struct ktrxer_clock_map *real, int64_t nic_ns, uint64_t earliest_ns,
		      uint64_t latest_ns, uint64_t *mono_ns, uint32_t *bound_ns)
{
	for (int tries = 0;; tries++) {
		const uint64_t now = ktrxer_now_ns();

		ktrxer_phc_refresh(phc, real, now);
		if (ktrxer_phc_map_mono(&phc->map, nic_ns, mono_ns, bound_ns) &&
		    *mono_ns + *bound_ns + GRAIN_NS >= earliest_ns && *mono_ns <= latest_ns + *bound_ns + GRAIN_NS)
			return true;
		if (tries || now - phc->sampled_ns < FRESH_NS)
			return false;
		phc->sampled_ns = 0;
	}
}

/* The number of the device's clock, or a negative errno; and the widest filter that it offers. */
static int clock_number(const char *device, int what, int *filter)
{
	struct ethtool_ts_info info = { .cmd = ETHTOOL_GET_TS_INFO };
	struct ifreq ifr = { .ifr_data = (void *)&info };
	uint32_t needs = SOF_TIMESTAMPING_RAW_HARDWARE;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", device);
	rc = ioctl(fd, SIOCETHTOOL, &ifr) ? -errno : 0;
	close(fd);
	if (rc < 0)
		return rc;
	if (what & PHC_SENT)
		needs |= SOF_TIMESTAMPING_TX_HARDWARE;
	if (what & PHC_RECEIVED)
		needs |= SOF_TIMESTAMPING_RX_HARDWARE;
	if (!(what & PHC_ALL) && info.rx_filters & 1u << HWTSTAMP_FILTER_PTP_V2_EVENT)
		*filter = HWTSTAMP_FILTER_PTP_V2_EVENT;
	if (info.rx_filters & 1u << HWTSTAMP_FILTER_ALL)
		*filter = HWTSTAMP_FILTER_ALL;
	if ((info.so_timestamping & needs) != needs || info.phc_index < 0 ||
	    (what & PHC_SENT && !(info.tx_types & 1u << HWTSTAMP_TX_ON)) ||
	    (what & PHC_RECEIVED && *filter == HWTSTAMP_FILTER_NONE))
		return -EOPNOTSUPP;
	return info.phc_index;
}

bool ktrxer_phc_offered(const char *device, int what)
{
	int filter = HWTSTAMP_FILTER_NONE;

	return clock_number(device, what, &filter) >= 0;
}

int ktrxer_phc_open(struct phc *phc, const char *device, uint32_t index, int what)
{
	int filter = HWTSTAMP_FILTER_NONE, number = clock_number(device, what, &filter), rc;
	struct nic_halves now;
	char path[32];

	*phc = (struct phc){ .fd = -1, .setting.place = -1 };
	if (number < 0)
		return number;
	if (what & PHC_AS_IT_IS) {
		if (ktrxer_nic_setting_read(device, &now) < 0 || now.received == HWTSTAMP_FILTER_NONE ||
		    (what & PHC_ALL && now.received != HWTSTAMP_FILTER_ALL))
			return -ENODATA;
		filter = now.received;
	}
	snprintf(path, sizeof path, "/dev/ptp%d", number);
	phc->fd = open(path, O_RDONLY | O_CLOEXEC);
	rc = phc->fd < 0
		     ? -errno
		     : ktrxer_nic_setting_take(&phc->setting, device, index, what & (PHC_SENT | PHC_RECEIVED), filter);
	if (rc < 0)
		ktrxer_phc_close(phc);
	return rc;
}

void ktrxer_phc_close(struct phc *phc)
{
	if (phc->fd < 0)
		return;
	ktrxer_nic_setting_give(&phc->setting);
	close(phc->fd);
	phc->fd = -1;
}
