/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tests whether a stream of packets at a constant rate fills the queue of the path: those of pathload (Jain, Dovrolis,
 * "End-to-end available bandwidth", ToN 2003) on the one-way delays of the stream, and the drift of these delays.
 * Delays may contain an unknown clock offset.
 */
#ifndef KTRXER_METHODS_ABW_TREND_H
#define KTRXER_METHODS_ABW_TREND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Times of one train; send times and arrivals may be of different clocks. 0: not known, or it never happened. */
struct abw_train {
	const uint64_t *sent_ns, *arrived_ns;
	uint32_t packets;
};

enum abw_trend {
	ABW_NO_TREND,
	ABW_RISING,
	ABW_AMBIGUOUS,
	ABW_UNUSABLE, /* fewer than ABW_TREND_LEAST packets are known */
};

enum { ABW_TREND_LEAST = 9, ABW_LOSS_PERCENT = 15, ABW_LOSS_MODERATE_PERCENT = 3 };

struct abw_trend_result {
	enum abw_trend trend;
	double pct, pdt; /* pairwise comparison test, pairwise difference test: of the medians of groups */
	double drift;    /* growth of the delay in a second, in seconds (least squares) */
	double gap_ns;   /* the mean gap between the send times */
	double came_ns;  /* and between the arrivals */
	uint32_t lost;   /* packets that did not arrive */
};

/*
 * A growth of less than `noise_ns` over the train is ABW_NO_TREND: stamps of a receiver that takes packets in groups
 * drift by as much. More than ABW_LOSS_PERCENT of the packets lost: ABW_RISING, because the queue has overflowed.
 */
void abw_trend(const struct abw_train *train, double noise_ns, struct abw_trend_result *result);

enum abw_fleet {
	ABW_FLEET_BELOW, /* the rate is below the available bandwidth */
	ABW_FLEET_ABOVE,
	ABW_FLEET_GREY,     /* the available bandwidth varied around the rate */
	ABW_FLEET_UNUSABLE, /* fewer than half of the streams are usable */
};

/* Six tenths of the streams of one rate with a known trend decide. */
enum abw_fleet abw_fleet(const struct abw_trend_result *streams, size_t count);

/*
 * pathload lowers the rate after a fleet with such losses, whatever its delays show: ABW_LOSS_PERCENT of the packets of
 * one stream, or ABW_LOSS_MODERATE_PERCENT in half of the streams. The constants are those of the source of pathload
 * 1.3.3 (HIGH_LOSS_RATE, MEDIUM_LOSS_RATE, MAX_LOSSY_STREAM_FRACTION). Each stream has `packets` packets.
 */
bool abw_fleet_is_lossy(const struct abw_trend_result *streams, size_t count, uint32_t packets);

/* The binary search over rates, with its grey region. */
struct abw_search {
	double low, high;           /* of the range */
	double grey_low, grey_high; /* grey_high 0: no grey region yet */
	double resolution;          /* ends it: of the range, and of either distance to the grey region */
};

double abw_search_rate(const struct abw_search *search);
void abw_search_take(struct abw_search *search, double rate, enum abw_fleet fleet);
int abw_search_over(const struct abw_search *search);

#endif
