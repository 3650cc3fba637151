/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Gaps of compound probes, from a file. */
#ifndef KTRXER_CLI_PPT_SAMPLES_H
#define KTRXER_CLI_PPT_SAMPLES_H

#include "ppt_compound.h"

#include <ktrxer.h>

#include <stdio.h>

enum { KTRXER_PPT_SAMPLES_MAX = 1 << 24 /* gaps of a file, or packets of a capture: 200 to 270 MB */ };

struct ppt_samples {
	uint32_t *sizes;  /* of the trailing packets, in bytes on the wire */
	int64_t *gaps_ns; /* not checked: negative and zero where the file has them */
	size_t count, room;
};

struct ppt_capture_counts {
	struct ppt_compound compound;
	struct ktrxer_addr from, to;
	uint16_t from_port, to_port; /* of the first packet */
	size_t packets;              /* UDP from one address to one address and port */
	size_t other_packets;        /* no UDP, or of another port */
	size_t other_flows;          /* UDP of other addresses and ports */
	size_t no_time;              /* of the packets, without a time stamp */
};

/*
 * The first line is "wire_bytes,gap_ns" or "wire_bytes,gap_us", each other line two such numbers; empty lines, and
 * those that begin with #, are left out. -EBADMSG with the number of the line; -E2BIG beyond KTRXER_PPT_SAMPLES_MAX.
 * ppt_samples_free() is right in any case.
 */
int ppt_csv_read(struct ppt_samples *samples, FILE *stream, const char *name, struct ktrxer_error *err);

/*
 * The probes of a capture file: UDP to `port`; with port 0, to the one UDP port that the capture has. Closes `stream`.
 * -EBADMSG: no capture file, or a damaged one; -ENODATA: no probes; -EINVAL: several flows and no port.
 */
int ppt_capture_read(struct ppt_samples *samples, FILE *stream, const char *name, uint16_t port,
		     struct ppt_capture_counts *counts, struct ktrxer_error *err);

void ppt_samples_free(struct ppt_samples *samples);

#endif
